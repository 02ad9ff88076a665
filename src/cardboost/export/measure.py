"""How large a C header is on a microcontroller, by the compilers that are on the path.

A program that only calls the header is linked without what it does not use, and the size of the same program
without the call is subtracted: what is left is code, tables and the helpers for floating point that they
need.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardboost.export.c import c_type, header
from cardboost.export.c_model import CModel, c_model

_SECONDS = 60


@dataclass(frozen=True)
class Target:
    """A processor, and the tools that compile for it."""

    name: str
    tools: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]  # with the helpers for floating point
    doubles: bool = True  # of 64 bits

    @property
    def compiler(self) -> str | None:
        return shutil.which(f"{self.tools}gcc")


TARGETS = (
    Target("Cortex-M0", "arm-none-eabi-", ("-mcpu=cortex-m0", "-mthumb"), ("-lgcc",)),
    Target("AVR ATmega328P", "avr-", ("-mmcu=atmega328p",), ("-lm", "-lgcc"), doubles=False),
)
_FLAGS = ("-std=c99", "-Os", "-ffreestanding", "-ffunction-sections", "-fdata-sections")
_LINK = ("-nostdlib", "-nostartfiles", "-Wl,--gc-sections", "-Wl,-e,main")


@dataclass(frozen=True)
class Size:
    """Bytes of code and constant tables."""

    target: str
    own: int  # of the header
    linked: int  # with the compiler's helpers


def measure(ensemble: Any, **options: Any) -> list[Size]:
    """The size on every target whose compiler is there; options are those of ``c_model``.

    Targets that lack the doubles which a model needs are left out.
    """
    model = c_model(ensemble, **options)
    there = [own for own in TARGETS if own.compiler is not None]
    targets = [own for own in there if own.doubles or model.points is not None]
    return [_size(model, target) for target in targets]


def _size(model: CModel, target: Target) -> Size:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(header(model), encoding="ascii")
        (folder / "with.c").write_text(_program(model, True), encoding="ascii")
        (folder / "without.c").write_text(_program(model, False), encoding="ascii")
        own = _bytes(target, folder, "with", False) - _bytes(target, folder, "without", False)
        linked = _bytes(target, folder, "with", True) - _bytes(target, folder, "without", True)
    return Size(target.name, own, linked)


def _program(model: CModel, call: bool) -> str:
    """Inputs and outputs are volatile, so that nothing is computed by the compiler."""
    kind, count = c_type(model), max(len(model.plan.inputs), 1)
    several = model.plan.n_scores > 1
    name = "class" if model.plan.decides else ("scores" if several else "score")
    used = f"{model.prefix}_{name}((const {kind} *)input)" if call else "0"
    return (
        '#include "model.h"\n'
        f"{kind} input[{count}];\nvolatile int32_t output;\nint main(void);\n"
        f"int main(void)\n{{\n    output = (int32_t){used};\n    return 0;\n}}\n"
    )


def _bytes(target: Target, folder: Path, name: str, linked: bool) -> int:
    product = folder / f"{name}.{'elf' if linked else 'o'}"
    compiler = [f"{target.tools}gcc", *target.flags, *_FLAGS]
    last = (
        [*_LINK, "-o", str(product), f"{name}.c", *target.libraries]
        if linked
        else ["-c", "-o", str(product), f"{name}.c"]
    )
    _run([*compiler, *last], folder)
    found = _run([f"{target.tools}size", str(product)], folder)
    text, data = re.findall(r"^\s*(\d+)\s+(\d+)", found, re.MULTILINE)[-1]
    return int(text) + int(data)


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{command[0]} could not be run: {error}.") from None
    if done.returncode:
        raise ValueError(f"{command[0]} failed: {done.stderr.strip()[:500]}")
    return done.stdout
