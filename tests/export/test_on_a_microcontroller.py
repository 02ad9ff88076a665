"""The self-tests run on a Cortex-M0, which QEMU plays; and what a prediction takes there and on an AVR."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from cross import cross_tool
from exported import fixed_models, random_ensemble, stumps

from cardboost.cli.main import main
from cardboost.export import export_model
from cardboost.export import measure as measuring
from cardboost.export.c import header
from cardboost.export.c_model import c_model
from cardboost.export.c_vectors import rows, vectors
from cardboost.export.measure import AVR, CORTEX, build_for, measure_time, timing_program

VARIANTS = [{}, {"layout": "ifs"}, {"score": "double"}, {"number": "int16"}]
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")

# a vector table, a call, and an exit code by semihosting
START = """
#include "card_test.h"
extern uint32_t top;
void reset(void);
void fault(void);
void *memcpy(void *to, const void *from, unsigned int size);
static void leave(uint32_t code)
{
    static uint32_t block[2];
    register uint32_t operation __asm__("r0") = 0x20u;
    register uint32_t *argument __asm__("r1") = block;
    block[0] = 0x20026u;
    block[1] = code;
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(argument) : "memory");
    for (;;) { }
}
void fault(void) { leave(200u); }
void reset(void) { leave(card_self_test() > 0u ? 1u : 0u); }
void *memcpy(void *to, const void *from, unsigned int size)
{
    unsigned char *a = to;
    const unsigned char *b = from;
    while (size-- > 0u) { *a++ = *b++; }
    return to;
}
__attribute__((section(".vectors"), used)) static const void *const table[16] = {
    &top, (void *)reset, (void *)fault, (void *)fault
};
"""
MEMORY = """
MEMORY
{
  FLASH (rx) : ORIGIN = 0x00000000, LENGTH = 256K
  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 16K
}
top = 0x20004000;
SECTIONS
{
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > FLASH
  .data : { *(.data*) *(.bss*) } > RAM
}
"""


@pytest.mark.long
@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("broken", [False, True])
def test_self_test(options, broken, tmp_path):
    for name in TOOLS:
        cross_tool(name)
    model = c_model(fixed_models()["random"], prefix="card", **options)
    text = header(model)
    (tmp_path / "card.h").write_text(text.replace(" sum = ", " sum = 1 + ") if broken else text)
    (tmp_path / "card_test.h").write_text(vectors(model))
    (tmp_path / "start.c").write_text(START)
    (tmp_path / "memory.ld").write_text(MEMORY)
    flags = [
        "-mcpu=cortex-m0",
        "-mthumb",
        "-Os",
        "-std=gnu99",
        "-ffreestanding",
        "-nostdlib",
        "-nostartfiles",
        "-T",
        "memory.ld",
    ]
    subprocess.run([TOOLS[0], *flags, "start.c", "-lgcc", "-o", "card.elf"], cwd=tmp_path, check=True)
    machine = ["-M", "microbit", "-nographic", "-semihosting-config", "enable=on,target=native"]
    done = subprocess.run([TOOLS[1], *machine, "-kernel", "card.elf"], cwd=tmp_path, check=False, timeout=600)
    assert done.returncode == int(broken)


# ------------------------------------------------------------------------------------------------ time


def emulated(monkeypatch, target):
    """This target alone, with its emulator."""
    cross_tool(f"{target.tools}gcc")
    cross_tool(target.command[0])
    monkeypatch.setattr(measuring, "TARGETS", (target,))
    return target


def paths(listing):
    """How many instructions each way through a function without loops takes."""
    lines = re.findall(r"^ +([0-9a-f]+):\t[0-9a-f ]+\t(\S+)\s*(.*)$", listing, re.MULTILINE)
    code = [(int(at, 16), name.removesuffix(".n"), rest) for at, name, rest in lines if name != ".word"]
    places = {at: k for k, (at, _, _) in enumerate(code)}

    def lengths(k, before=frozenset()):
        assert k not in before, "a loop"
        _, name, rest = code[k]
        if name == "bx" or (name == "pop" and "pc" in rest):
            return {1}
        found = set()
        if re.fullmatch(r"b(eq|ne|cs|cc|mi|pl|hi|ls|ge|lt|gt|le)?", name):
            found |= lengths(places[int(rest.split()[0], 16)], before | {k})
        assert name != "bl", "a call"
        if name != "b":
            found |= lengths(k + 1, before | {k})
        return {1 + length for length in found}

    return lengths(0)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_instructions_are_those_of_the_listing(count, monkeypatch, tmp_path):
    """Every count is the length of a way through the function, and with one cut the longest is met."""
    target = emulated(monkeypatch, CORTEX)
    ensemble = stumps(*((k, 10.0 * k, 1.0 + k) for k in range(count)), intercept=0.25)
    options = {"number": "int16", "layout": "ifs", "prefix": "card"}
    (found,) = measure_time(ensemble, **options)
    model = c_model(ensemble, **options)
    (tmp_path / "model.h").write_text(header(model))
    (tmp_path / "time.c").write_text(timing_program(model, CORTEX, rows(model).astype(np.int16)))
    build_for(target, tmp_path, "time")
    command = ["arm-none-eabi-objdump", "-d", "--disassemble=predict", "time.elf"]
    listing = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    ways = paths(listing)
    assert found.unit == "instructions"
    assert len(found.counts) == len(rows(model))
    assert set(found.counts.tolist()) <= ways
    if count < 2:  # with more, some ways are through conditions that exclude each other
        assert found.most == max(ways)


@pytest.mark.parametrize("name", ["random", "several classes", "regression", "many cuts"])
@pytest.mark.parametrize("emulator", [CORTEX, AVR], ids=lambda own: own.command[0])
def test_time_of_a_prediction(name, emulator, monkeypatch):
    emulated(monkeypatch, emulator)
    ensemble = fixed_models()[name]
    (whole,) = measure_time(ensemble, number="int16")
    (table,) = measure_time(ensemble, score="points")
    assert whole.unit == emulator.unit
    assert 0 < whole.counts.min() <= whole.mean <= whole.most < 20_000
    assert whole.mean < table.mean  # floats have to be put into order first
    (again,) = measure_time(ensemble, number="int16")
    assert (again.counts == whole.counts).all()


def test_the_cycles_of_nothing(monkeypatch):
    """An AVR loads a constant in one cycle and returns in four."""
    emulated(monkeypatch, AVR)
    (found,) = measure_time(stumps(intercept=1.0), number="int16")
    assert found.counts.tolist() == [5]


def test_more_terms_take_more_time(monkeypatch):
    emulated(monkeypatch, CORTEX)
    few, many = (measure_time(random_ensemble(1, terms=k), number="int16")[0] for k in (3, 30))
    assert few.mean < many.mean


def test_too_much_is_left_out(monkeypatch):
    """A prediction that the timer of an AVR cannot hold, tables and rows that its memory cannot."""
    own = emulated(monkeypatch, AVR)
    long = stumps(*((0, float(k), 1.0 + k / 1000) for k in range(1_500)))
    assert len(measure_time(stumps((0, 0.5, 1.0)), number="int16")) == 1
    assert measure_time(long, score="points", layout="ifs", point_bits=32) == []
    assert measure_time(long, score="points", layout="table", point_bits=32) == []
    monkeypatch.setattr(measuring, "TARGETS", (replace(own, room=1),))
    assert measure_time(stumps((0, 0.5, 1.0)), number="int16") == []


@pytest.mark.parametrize("emulator", [CORTEX, AVR], ids=lambda own: own.command[0])
def test_the_verb_shows_time(emulator, monkeypatch, tmp_path, capsys):
    own = emulated(monkeypatch, emulator)
    monkeypatch.chdir(tmp_path)
    export_model(random_ensemble(1), "json", "model.json")
    words = ["export", "model.json", "--format", "c-int16", "--out", "card.h", "--measure"]
    assert main(words) == 0
    size, took = capsys.readouterr().out.splitlines()[-2:]
    assert re.fullmatch(rf"{own.name}: \d+ bytes, \d+ of them in the header", size)
    pattern = (
        rf"{own.name}: \d+ {emulator.unit} for a prediction, \d+ at most \(\d+ rows of the test vectors\)"
    )
    assert re.fullmatch(pattern, took)


def test_without_an_emulator_there_are_sizes_only(monkeypatch, tmp_path, capsys):
    target = measuring.Target("this computer", "", (), ("-lgcc",))
    monkeypatch.setattr(measuring, "TARGETS", (target,))
    monkeypatch.chdir(tmp_path)
    export_model(random_ensemble(1), "json", "model.json")
    assert main(["export", "model.json", "--format", "c", "--out", "card.h", "--measure"]) == 0
    out = capsys.readouterr().out
    assert "this computer: " in out
    assert "prediction" not in out


# ------------------------------------------------------------------------------------------------ rules

#: those of docs/export.md
REPORTED = {"2.3", "2.4", "2.5", "5.7", "10.3"}


@pytest.mark.long
@pytest.mark.parametrize("options", [{"number": "int16"}, {}, {"layout": "ifs"}], ids=str)
@pytest.mark.parametrize("name", ["random", "several classes"])
def test_misra_rules(name, options, tmp_path):
    command = [cross_tool("cppcheck"), "--addon=misra", "--enable=style", "--std=c99", "--quiet"]
    model = c_model(fixed_models()[name], prefix="card", **options)
    (tmp_path / "card.h").write_text(header(model))
    (tmp_path / "use.c").write_text('#include "card.h"\n')
    done = subprocess.run(
        [*command, "--template={id}", "use.c"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = {line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()}
    assert found
    assert found <= {f"misra-c2012-{rule}" for rule in REPORTED}
