"""The self-tests run on a Cortex-M0, which QEMU plays."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from exported import fixed_models

from cardboost.export.c import header
from cardboost.export.c_model import c_model
from cardboost.export.c_vectors import vectors

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
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed: the same C runs on this computer in test_c.py")
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
        "-nostdlib",
        "-nostartfiles",
        "-T",
        "memory.ld",
    ]
    subprocess.run([TOOLS[0], *flags, "start.c", "-lgcc", "-o", "card.elf"], cwd=tmp_path, check=True)
    machine = ["-M", "microbit", "-nographic", "-semihosting-config", "enable=on,target=native"]
    done = subprocess.run([TOOLS[1], *machine, "-kernel", "card.elf"], cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == int(broken)
