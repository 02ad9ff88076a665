"""Tools for microcontrollers, and models that run on a Cortex-M0 which QEMU plays."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardboost.export.c import header
from cardboost.export.c_model import CModel
from cardboost.export.measure import CORTEX, build_for


def cross_tool(name: str) -> str:
    """A compiler, emulator or checker that not every machine has. Its absence is a failure where
    CARDBOOST_CROSS is "required"."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CARDBOOST_CROSS") == "required":
            pytest.fail(f"{name} is needed where CARDBOOST_CROSS is required")
        pytest.skip(f"{name} is not installed: the same C runs on this computer in other tests")
    return found


def application(name: str) -> str:
    """A program of users that runs an export. Its absence is a failure where CARDBOOST_APPLICATIONS is
    "required"."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CARDBOOST_APPLICATIONS") == "required":
            pytest.fail(f"{name} is needed where CARDBOOST_APPLICATIONS is required")
        pytest.skip(f"{name} is not installed")
    return found


# rows come from a file of this computer and answers go to another one, by semihosting
_PROGRAM = """
static int32_t demand(uint32_t number, const void *about)
{{
    register uint32_t operation __asm__("r0") = number;
    register const void *argument __asm__("r1") = about;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(argument) : "memory");
    return (int32_t)operation;
}}
static uint32_t open_file(const char *name, uint32_t mode, uint32_t length)
{{
    const uint32_t block[3] = {{ (uint32_t)name, mode, length }};
    return (uint32_t)demand(1u, block);
}}
static int32_t file(uint32_t operation, uint32_t handle, const void *at, uint32_t size)
{{
    const uint32_t block[3] = {{ handle, (uint32_t)at, size }};
    return demand(operation, block);
}}
static {kind} row[{width}];
static {score} scores[{count}];
static uint16_t decision;
int main(void)
{{
    const uint32_t in = open_file("rows.bin", 1u, 8u), out = open_file("answers.bin", 5u, 11u);
    while (file(6u, in, row, sizeof row) == 0) {{
        {run}
        (void)file(5u, out, scores, sizeof scores);
        (void)file(5u, out, &decision, sizeof decision);
    }}
    end();
    return 0;
}}
"""


def run_on_cortex(model: CModel, x: Any, folder: Path) -> tuple[Any, Any]:
    """Scores (rows, scores) and classes of rows."""
    for name in ("arm-none-eabi-gcc", CORTEX.command[0]):
        cross_tool(name)
    kind = np.float32 if model.number == "float" else np.int16
    rows = np.ascontiguousarray(x, dtype=kind)
    if rows.shape[1] == 0:
        rows = np.zeros((len(rows), 1), dtype=kind)
    own, several = model.prefix, model.plan.n_scores > 1
    lines = [f"{own}_scores(row, scores);" if several else f"scores[0] = {own}_score(row);"]
    lines.append(f"decision = {own}_class(row);" if model.plan.decides else "decision = 0u;")
    program = _PROGRAM.format(
        kind=model.c_type,
        width=rows.shape[1],
        score=model.score_type,
        count=model.plan.n_scores,
        run=" ".join(lines),
    )
    (folder / "model.h").write_text(header(model), encoding="ascii")
    start = f'#include <stddef.h>\n#include "model.h"\n{CORTEX.start}'
    (folder / "parity.c").write_text(start + program, encoding="ascii")
    (folder / "rows.bin").write_bytes(rows.tobytes())
    build_for(CORTEX, folder, "parity")
    done = subprocess.run(
        [*CORTEX.command, "parity.elf"], cwd=folder, capture_output=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    number = {"double": "<f8", "int32_t": "<i4", "int64_t": "<i8"}[model.score_type]
    form = np.dtype([("scores", number, (model.plan.n_scores,)), ("class", "<u2")])
    answers = np.frombuffer((folder / "answers.bin").read_bytes(), dtype=form)
    return answers["scores"], answers["class"]
