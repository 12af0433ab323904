/* Counts the instructions and the stack of a policy at every state of states.h, on the emulated board mps2-an386.
 *
 * Under `-icount shift=0` an instruction takes 1 ns, and SysTick counts the 25 MHz clock of the board: 40 instructions a
 * tick. Each state is called CALLS times, so that a count is right to 40/CALLS instructions; CALLS is 1 for what keeps a
 * memory, such as an observer. A second loop, with an empty function in place of the policy, is taken off. Writes a line
 * of instructions and inputs a state (floats as their bits), then the bytes of stack.
 */

#include <stdint.h>

#include "states.h" /* STATES, INPUTS, ROWS, CALLS, PAINTED, POLICY, states[ROWS][STATES], and the policy's header */

enum { PER_TICK = 40, PAINT = 0x5a };

extern char stack_top[];
int main(void);
void reset(void);
__attribute__((section(".vectors"), used)) static void *const vectors[] = {stack_top, (void *)reset};

#define SYST_CSR (*(volatile uint32_t *)0xE000E010)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018)
#define CPACR (*(volatile uint32_t *)0xE000ED88)

static int semihosting(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void write_number(uint32_t number, char end) {
    char text[12], *begin = text + 11;
    *begin = 0;
    *--begin = end;
    do *--begin = (char)('0' + number % 10);
    while (number /= 10);
    semihosting(4, begin);
}

__attribute__((noinline)) static void nothing(const float *x, float *u) {
    __asm__ volatile("" : : "r"(x), "r"(u) : "memory");
}

__attribute__((noinline)) static void policy(const float *x, float *u) { POLICY(x, u); }

__attribute__((noinline)) static uint32_t ticks(void (*function)(const float *, float *), const float *x, float *u) {
    SYST_CVR = 0;
    const uint32_t begin = SYST_CVR;
    for (int i = 0; i < CALLS; i++) function(x, u);
    return (begin - SYST_CVR) & 0xffffff;
}

/* The stack below `top` is painted before the policy runs; what is no longer painted was used. */
__attribute__((noinline)) static void paint(volatile char *top) {
    for (volatile char *each = top - PAINTED; each < top - 64; each++) *each = PAINT;
}

__attribute__((noinline)) static uint32_t used(volatile char *top) {
    volatile char *low = top - PAINTED;
    while (low < top && *low == PAINT) low++;
    return (uint32_t)(top - low);
}

int main(void) {
    uint32_t stack = 0;
    SYST_RVR = 0xffffff;
    SYST_CSR = 5; /* on, from the clock of the core */
    for (int row = 0; row < ROWS; row++) {
        float u[INPUTS];
        volatile char *top = (volatile char *)__builtin_frame_address(0);
        const uint32_t empty = ticks(nothing, states[row], u);
        paint(top);
        const uint32_t full = ticks(policy, states[row], u), now = used(top);
        write_number((full - empty) * PER_TICK / CALLS, ' ');
        for (int k = 0; k < INPUTS; k++) {
            union { float value; uint32_t bits; } each = {u[k]};
            write_number(each.bits, k + 1 < INPUTS ? ' ' : '\n');
        }
        if (now > stack) stack = now;
    }
    write_number(stack, '\n');
    const uint32_t ended = 0x20026;
    semihosting(0x18, (void *)ended);
    return 0;
}

void reset(void) {
    CPACR |= 0xf << 20; /* the floating-point unit on */
    __asm__ volatile("dsb\nisb");
    main();
    for (;;) {}
}
