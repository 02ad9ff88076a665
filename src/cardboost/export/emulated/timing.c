/* Shows the ticks of a return, of instructions that do nothing, and of the prediction of every row. */
#include <stddef.h>
#include <stdint.h>
#include "model.h"
@START@
static const uint8_t rows[@ROWS@][@WIDTH@] FLASH = { @BYTES@ };
static uint32_t row_buffer[@WORDS@];
static __attribute__((naked, noinline)) void leave(const void *row) { __asm__("@RETURN@"); }
static __attribute__((naked, noinline)) void nothing(const void *row)
{
    __asm__(".rept @NOPS@\n@NOP@\n.endr\n@RETURN@");
}
static __attribute__((noinline)) __typeof__(@CALL_TYPE@) predict(const void *row)
{
    return @CALL@;
}
static void show_number(uint32_t number)
{
    char text[13];
    uint8_t at = 12u;
    text[at] = 0;
    text[--at] = '\n';
    do { text[--at] = (char)('0' + number % 10u); number /= 10u; } while (number > 0u);
    text[--at] = '=';
    show(text + at);
}
int main(void)
{
    uint16_t i;
    begin();
    show_number(ticks(leave, row_buffer));
    show_number(ticks(nothing, row_buffer));
    for (i = 0u; i < @ROWS@u; i++) {
        from_flash(row_buffer, rows[i], @WIDTH@u);
        show_number(ticks((void (*)(const void *))predict, row_buffer));
    }
    end();
    return 0;
}
