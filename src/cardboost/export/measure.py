"""How large and how fast a C header is on a microcontroller, by the tools that are on the path.

A program that only calls the header is linked without what it does not use, and the size of the same program
without the call is subtracted: what is left is code, tables and the helpers for floating point that they
need.

Time is what a timer of an emulated processor says before and after a call, for every row of the test vectors.
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

from cardboost.export.c import c_type, header
from cardboost.export.c_model import CModel, c_model
from cardboost.export.c_vectors import rows

_SECONDS = 60
_NOTHING = 256  # instructions that do nothing, to calibrate the timer


@dataclass(frozen=True)
class Emulator:
    """A program that runs a file for a processor, and what a program for it is made of."""

    command: tuple[str, ...]
    unit: str  # of the counts
    returning: int  # what the return from a function takes
    start: str  # C: the timer and the output
    memory: str | None  # the linker's script; None: that of the compiler
    room: int  # bytes for rows
    ram: int  # bytes for variables, beside the stack
    nothing: str = "nop"
    leave: str = "bx lr"

    @property
    def there(self) -> bool:
        return shutil.which(self.command[0]) is not None


_CORTEX_START = """
extern uint32_t top;
static volatile uint32_t *const timer = (volatile uint32_t *)0xE000E010u;
static void ask(uint32_t number, const void *about)
{
    register uint32_t operation __asm__("r0") = number;
    register const void *argument __asm__("r1") = about;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(argument) : "memory");
}
static void begin(void) { timer[1] = 0xffffffu; timer[0] = 5u; }
static void show(const char *text) { ask(4u, text); }
static void end(void)
{
    static uint32_t block[2];
    block[0] = 0x20026u;
    ask(0x20u, block);
    for (;;) { }
}
static __attribute__((noinline)) uint32_t ticks(void (*function)(const void *), const void *row)
{
    uint32_t before;
    timer[2] = 0u;
    while (timer[2] == 0u) { }
    (void)timer[0];
    before = timer[2];
    function(row);
    before -= timer[2];
    return ((timer[0] & 0x10000u) != 0u) ? 0u : before;
}
static void fault(void) { show("fault"); end(); }
int main(void);
static void reset(void) { (void)main(); }
__attribute__((section(".vectors"), used)) static const void *const vector_table[16] = {
    &top, (void *)reset, (void *)fault, (void *)fault
};
void *memcpy(void *to, const void *from, size_t size)
{
    unsigned char *a = to;
    const unsigned char *b = from;
    while (size-- > 0u) { *a++ = *b++; }
    return to;
}
#define FLASH
#define from_flash memcpy
"""
_CORTEX_MEMORY = """
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
_AVR_START = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
static void begin(void) { UCSR0B = 1u << TXEN0; TCCR1B = 1u; }
static void show(const char *text)
{
    for (; *text != 0; text++) {
        while ((UCSR0A & (1u << UDRE0)) == 0u) { }
        UDR0 = (uint8_t)*text;
    }
}
static void end(void)
{
    cli();
    sleep_enable();
    sleep_cpu();
    for (;;) { }
}
static __attribute__((noinline)) uint32_t ticks(void (*function)(const void *), const void *row)
{
    uint16_t after;
    TCNT1 = 0u;
    TIFR1 = 1u << TOV1;
    function(row);
    after = TCNT1;
    return ((TIFR1 & (1u << TOV1)) != 0u) ? 0u : after;
}
#define FLASH PROGMEM
#define from_flash memcpy_P
"""
CORTEX = Emulator(
    # 1024 ns for every instruction: several ticks of the timer
    (
        *("qemu-system-arm", "-M", "microbit", "-nographic", "-icount", "shift=10,sleep=off"),
        *("-semihosting-config", "enable=on,target=native", "-kernel"),
    ),
    "instructions",
    1,
    _CORTEX_START,
    _CORTEX_MEMORY,
    150_000,
    15_000,
)
AVR = Emulator(
    ("simavr", "-m", "atmega328p", "-f", "16000000"),
    "cycles",
    4,
    _AVR_START,
    None,
    10_000,
    1_800,
    leave="ret",
)


@dataclass(frozen=True)
class Target:
    """A processor, and the tools that compile for it."""

    name: str
    tools: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]  # with the helpers for floating point
    doubles: bool = True  # of 64 bits
    emulator: Emulator | None = None

    @property
    def compiler(self) -> str | None:
        return shutil.which(f"{self.tools}gcc")


TARGETS = (
    Target("Cortex-M0", "arm-none-eabi-", ("-mcpu=cortex-m0", "-mthumb"), ("-lgcc",), True, CORTEX),
    Target("AVR ATmega328P", "avr-", ("-mmcu=atmega328p",), ("-lm", "-lgcc"), False, AVR),
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
    return [_size(model, target) for target in _targets(model)]


def _targets(model: CModel) -> list[Target]:
    there = [own for own in TARGETS if own.compiler is not None]
    return [own for own in there if own.doubles or model.points is not None]


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
    used = f"{_function(model)}((const {kind} *)input)" if call else "0"
    return (
        '#include "model.h"\n'
        f"{kind} input[{count}];\nvolatile int32_t output;\nint main(void);\n"
        f"int main(void)\n{{\n    output = (int32_t){used};\n    return 0;\n}}\n"
    )


def _function(model: CModel) -> str:
    """What makes a prediction."""
    return f"{model.prefix}_{'class' if model.plan.decides else 'score'}"


def _bytes(target: Target, folder: Path, name: str, linked: bool) -> int:
    product = folder / f"{name}.{'elf' if linked else 'o'}"
    compiler = [f"{target.tools}gcc", *target.flags, *_FLAGS]
    last = (
        [*_LINK, "-o", str(product), f"{name}.c", *target.libraries]
        if linked
        else ["-c", "-o", str(product), f"{name}.c"]
    )
    _run([*compiler, *last], folder)
    text, data, _ = _sections(target, folder, product.name)
    return text + data


def _sections(target: Target, folder: Path, name: str) -> tuple[int, int, int]:
    """Bytes of code and constants, of variables with a value, and of others."""
    found = _run([f"{target.tools}size", name], folder)
    text, data, rest = re.findall(r"^\s*(\d+)\s+(\d+)\s+(\d+)", found, re.MULTILINE)[-1]
    return int(text), int(data), int(rest)


# ------------------------------------------------------------------------------------------------ time


@dataclass(frozen=True, eq=False)
class Time:
    """What one prediction takes, for the rows of the test vectors: the function with its return."""

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
    """Time on every target whose compiler and emulator are there; options are those of ``c_model``.

    Targets on which the rows, or a prediction, take too much are left out.
    """
    model = c_model(ensemble, **options)
    found = [_time(model, own) for own in _targets(model) if own.emulator is not None and own.emulator.there]
    return [own for own in found if own is not None]


def _time(model: CModel, target: Target) -> Time | None:
    emulator = target.emulator
    assert emulator is not None
    table = rows(model).astype(np.float32 if model.number == "float" else np.int16)
    size = table.itemsize * max(table.shape[1], 1)
    most = emulator.room // size
    if most < 1:
        return None
    table = table[:: -(-len(table) // most)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(header(model), encoding="ascii")
        (folder / "time.c").write_text(timing_program(model, emulator, table), encoding="ascii")
        try:
            build_for(target, folder, "time")
        except ValueError as error:
            if "region" in str(error):  # of the memory, too small for this program
                return None
            raise
        if sum(_sections(target, folder, "time.elf")[1:]) > emulator.ram:
            return None
        said = _run([*emulator.command, "time.elf"], folder, both=True)
    ticks = np.array([int(own) for own in re.findall(r"=(\d+)", said)], dtype=np.int64)
    if len(ticks) != len(table) + 2 or not ticks.all():
        return None
    per = (ticks[1] - ticks[0]) / _NOTHING
    counts = np.rint((ticks[2:] - ticks[0]) / per).astype(np.int64) + emulator.returning
    return Time(target.name, emulator.unit, counts)


def build_for(target: Target, folder: Path, name: str) -> None:
    """Compile name.c in a folder to name.elf, for the target's emulator."""
    script = []
    if target.emulator is not None and target.emulator.memory is not None:
        (folder / "memory.ld").write_text(target.emulator.memory, encoding="ascii")
        script = ["-ffreestanding", "-nostdlib", "-nostartfiles", "-T", "memory.ld"]
    flags = [*target.flags, "-std=gnu99", "-Os", "-ffunction-sections", "-fdata-sections", *script]
    _run([f"{target.tools}gcc", *flags, "-o", f"{name}.elf", f"{name}.c", *target.libraries], folder)


def timing_program(model: CModel, emulator: Emulator, table: NDArray[Any]) -> str:
    """A program that shows the ticks of a function that returns, of one that does nothing, of predictions."""
    width = table.itemsize * max(table.shape[1], 1)
    content = (table if table.shape[1] else np.zeros((len(table), 1), dtype=table.dtype)).tobytes()
    call = f"{_function(model)}((const {c_type(model)} *)row)"
    return f"""#include <stddef.h>
#include <stdint.h>
#include "model.h"
{emulator.start}
static const uint8_t rows[{len(table)}][{width}] FLASH = {{ {", ".join(map(str, content))} }};
static uint32_t row_buffer[{(width + 3) // 4}];
static __attribute__((naked, noinline)) void leave(const void *row) {{ __asm__("{emulator.leave}"); }}
static __attribute__((naked, noinline)) void nothing(const void *row)
{{
    __asm__(".rept {_NOTHING}\\n{emulator.nothing}\\n.endr\\n{emulator.leave}");
}}
static __attribute__((noinline)) __typeof__({call.replace("row)", "0)")}) predict(const void *row)
{{
    return {call};
}}
static void show_number(uint32_t number)
{{
    char text[13];
    uint8_t at = 12u;
    text[at] = 0;
    text[--at] = '\\n';
    do {{ text[--at] = (char)('0' + number % 10u); number /= 10u; }} while (number > 0u);
    text[--at] = '=';
    show(text + at);
}}
int main(void)
{{
    uint16_t i;
    begin();
    show_number(ticks(leave, row_buffer));
    show_number(ticks(nothing, row_buffer));
    for (i = 0u; i < {len(table)}u; i++) {{
        from_flash(row_buffer, rows[i], {width}u);
        show_number(ticks((void (*)(const void *))predict, row_buffer));
    }}
    end();
    return 0;
}}
"""


def _run(command: list[str], folder: Path, both: bool = False) -> str:
    """What a program says, ``both``: also on its second output."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{command[0]} could not be run: {error}.") from None
    if done.returncode:
        raise ValueError(f"{command[0]} failed: {done.stderr.strip()[:500]}")
    return done.stdout + done.stderr if both else done.stdout
