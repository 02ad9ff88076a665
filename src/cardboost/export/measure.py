"""The size and speed of a C header on a microcontroller, by the tools that are on the path.

A program that only calls the header is linked without unused code, and the size of the same program without
the call is subtracted: the rest is code, tables and the helpers for floating point that they need.

Time is read from a timer of an emulated processor before and after a call, for every row of the test vectors.
QEMU gives every instruction of a Cortex-M0 the same time, so there instructions are counted; simavr knows the
cycles of an AVR. Both ways are calibrated in the same program with instructions that do nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.export.c import header
from cardboost.export.c_model import CModel, c_model
from cardboost.export.c_vectors import rows

_TIME_LIMIT = 60  # seconds, of a program
_NOPS = 256  # instructions that do nothing, to calibrate the timer


@dataclass(frozen=True)
class Target:
    """A processor, the tools that compile for it, and a program that emulates it."""

    name: str
    tools: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]  # with the helpers for floating point
    doubles: bool = True  # of 64 bits
    command: tuple[str, ...] = ()  # that runs a file on an emulator; without one there are sizes only
    unit: str = ""  # of the counts
    returning: int = 0  # counts of the return from a function
    leave: str = ""  # the instruction for it
    start: str = ""  # C: the timer and the output
    memory: str | None = None  # the linker's script; None: that of the compiler
    room: int = 0  # bytes for rows
    ram: int = 0  # bytes for variables, beside the stack

    @property
    def compiler(self) -> str | None:
        return shutil.which(f"{self.tools}gcc")

    @property
    def emulated(self) -> bool:
        """Whether a program that emulates it is installed."""
        return bool(self.command) and shutil.which(self.command[0]) is not None


def _source(name: str) -> str:
    """A file of the folder ``emulated``."""
    return (Path(__file__).parent / "emulated" / name).read_text(encoding="ascii")


CORTEX = Target(
    "Cortex-M0",
    "arm-none-eabi-",
    ("-mcpu=cortex-m0", "-mthumb"),
    ("-lgcc",),
    # 1024 ns for every instruction: several ticks of the timer
    command=(
        *("qemu-system-arm", "-M", "microbit", "-nographic", "-icount", "shift=10,sleep=off"),
        *("-semihosting-config", "enable=on,target=native", "-kernel"),
    ),
    unit="instructions",
    returning=1,
    leave="bx lr",
    start=_source("cortex_m0.c"),
    memory=_source("cortex_m0.ld"),
    room=150_000,
    ram=15_000,
)
AVR = Target(
    "AVR ATmega328P",
    "avr-",
    ("-mmcu=atmega328p",),
    ("-lm", "-lgcc"),
    doubles=False,
    command=("simavr", "-m", "atmega328p", "-f", "16000000"),
    unit="cycles",
    returning=4,
    leave="ret",
    start=_source("avr.c"),
    room=10_000,
    ram=1_800,
)
TARGETS = (CORTEX, AVR)
_FLAGS = ("-std=c99", "-Os", "-ffreestanding", "-ffunction-sections", "-fdata-sections")
_LINK = ("-nostdlib", "-nostartfiles", "-Wl,--gc-sections", "-Wl,-e,main")


@dataclass(frozen=True)
class Size:
    """Bytes of code and constant tables."""

    target: str
    header: int
    linked: int  # with the compiler's helpers


def measure(ensemble: Any, **options: Any) -> list[Size]:
    """The size on every target whose compiler is installed.

    Parameters
    ----------
    ensemble : Ensemble or MulticlassEnsemble
    **options
        Those of :func:`cardboost.export.c_model.c_model`.

    Returns
    -------
    list of Size
        Targets that lack the doubles which a model needs are left out.
    """
    model = c_model(ensemble, **options)
    return [_size(model, target) for target in _targets(model)]


def _targets(model: CModel) -> list[Target]:
    installed = [target for target in TARGETS if target.compiler is not None]
    return [target for target in installed if target.doubles or model.points is not None]


def _size(model: CModel, target: Target) -> Size:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(header(model), encoding="ascii")
        (folder / "with.c").write_text(_program(model, True), encoding="ascii")
        (folder / "without.c").write_text(_program(model, False), encoding="ascii")
        compiled, linked = (
            _bytes(target, folder, "with", link) - _bytes(target, folder, "without", link)
            for link in (False, True)
        )
    return Size(target.name, compiled, linked)


def _program(model: CModel, call: bool) -> str:
    """A program with volatile input and output, so that nothing is computed by the compiler."""
    kind, count = model.c_type, max(len(model.plan.inputs), 1)
    value = f"{_function(model)}((const {kind} *)input)" if call else "0"
    return (
        '#include "model.h"\n'
        f"{kind} input[{count}];\nvolatile int32_t output;\nint main(void);\n"
        f"int main(void)\n{{\n    output = (int32_t){value};\n    return 0;\n}}\n"
    )


def _function(model: CModel) -> str:
    """The name of the function that predicts."""
    return f"{model.prefix}_{'class' if model.plan.decides else 'score'}"


def _bytes(target: Target, folder: Path, name: str, linked: bool) -> int:
    product = folder / f"{name}.{'elf' if linked else 'o'}"
    source = ["-o", str(product), f"{name}.c"]
    options = [*_LINK, *source, *target.libraries] if linked else ["-c", *source]
    _run([f"{target.tools}gcc", *target.flags, *_FLAGS, *options], folder)
    text, data, _ = _sections(target, folder, product.name)
    return text + data


def _sections(target: Target, folder: Path, name: str) -> tuple[int, int, int]:
    """Bytes of code and constants, of variables with a value, and of others."""
    output = _run([f"{target.tools}size", name], folder)
    text, data, rest = re.findall(r"^\s*(\d+)\s+(\d+)\s+(\d+)", output, re.MULTILINE)[-1]
    return int(text), int(data), int(rest)


# ------------------------------------------------------------------------------------------------ time


@dataclass(frozen=True, eq=False)
class Time:
    """The time of one prediction, for the rows of the test vectors: the function with its return."""

    target: str
    unit: str  # instructions or cycles
    counts: NDArray[np.int64]  # one per row

    @property
    def mean(self) -> float:
        return float(self.counts.mean())

    @property
    def most(self) -> int:
        return int(self.counts.max())


def measure_time(ensemble: Any, **options: Any) -> list[Time]:
    """The time of a prediction on every target whose compiler and emulator are installed.

    Parameters
    ----------
    ensemble : Ensemble or MulticlassEnsemble
    **options
        Those of :func:`cardboost.export.c_model.c_model`.

    Returns
    -------
    list of Time
        Targets on which the rows, or a prediction, take too much are left out.
    """
    model = c_model(ensemble, **options)
    times = [_time(model, target) for target in _targets(model) if target.emulated]
    return [time for time in times if time is not None]


def _time(model: CModel, target: Target) -> Time | None:
    table = rows(model).astype(np.float32 if model.number == "float" else np.int16)
    size = table.itemsize * max(table.shape[1], 1)
    max_rows = target.room // size
    if max_rows < 1:
        return None
    table = table[:: -(-len(table) // max_rows)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(header(model), encoding="ascii")
        (folder / "time.c").write_text(timing_program(model, target, table), encoding="ascii")
        try:
            build_for(target, folder, "time")
        except ValueError as error:
            if "region" in str(error):  # of the memory, too small for this program
                return None
            raise
        if sum(_sections(target, folder, "time.elf")[1:]) > target.ram:
            return None
        output = _run([*target.command, "time.elf"], folder)
    ticks = np.array([int(number) for number in re.findall(r"=(\d+)", output)], dtype=np.int64)
    if len(ticks) != len(table) + 2 or not ticks.all():
        return None
    ticks_per_nop = (ticks[1] - ticks[0]) / _NOPS
    counts = np.rint((ticks[2:] - ticks[0]) / ticks_per_nop).astype(np.int64) + target.returning
    return Time(target.name, target.unit, counts)


def build_for(target: Target, folder: Path, name: str) -> None:
    """Compile name.c in a folder to name.elf, for the target's emulator."""
    script = []
    if target.memory is not None:
        (folder / "memory.ld").write_text(target.memory, encoding="ascii")
        script = ["-ffreestanding", "-nostdlib", "-nostartfiles", "-T", "memory.ld"]
    flags = [*target.flags, "-std=gnu99", "-Os", "-ffunction-sections", "-fdata-sections", *script]
    _run([f"{target.tools}gcc", *flags, "-o", f"{name}.elf", f"{name}.c", *target.libraries], folder)


def timing_program(model: CModel, target: Target, table: NDArray[Any]) -> str:
    """A program that shows the ticks of a function that returns, of one that does nothing, of predictions."""
    width = table.itemsize * max(table.shape[1], 1)
    content = (table if table.shape[1] else np.zeros((len(table), 1), dtype=table.dtype)).tobytes()
    call = f"{_function(model)}((const {model.c_type} *)row)"
    values = {
        "START": target.start,
        "ROWS": len(table),
        "WIDTH": width,
        "WORDS": (width + 3) // 4,
        "BYTES": ", ".join(map(str, content)),
        "NOPS": _NOPS,
        "NOP": "nop",
        "RETURN": target.leave,
        "CALL_TYPE": call.replace("row)", "0)"),
        "CALL": call,
    }
    return re.sub("@([A-Z_]+)@", lambda match: str(values[match[1]]), _source("timing.c"))


def _run(command: list[str], folder: Path) -> str:
    """Both outputs of a program."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIME_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{command[0]} could not be run: {error}.") from None
    if done.returncode:
        raise ValueError(f"{command[0]} failed: {done.stderr.strip()[:500]}")
    return done.stdout + done.stderr
