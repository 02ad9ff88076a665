/* An ATmega328P of simavr: the timer and output by the serial line. */
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
