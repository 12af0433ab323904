/* Whether ${name}_policy gives on this machine what it gave in Torch, at $rows states, the first $inside of them in the domain; made by $made.
 *     cc -std=c99 -O2 -D${NAME}_REAL=float $name.c ${name}_policy.c ${name}_policy_replay.c -lm -o replay && ./replay
 * On a board without an operating system, call ${name}_policy_replay() yourself; -D${NAME}_NO_MAIN leaves main out.
 */

#include "${name}_policy.h"

/* Of every row the state$and_context. */
static const ${name}_real states[$rows][${NAME}_STATES + $k] = {
$replayed_states};
static const ${name}_real inputs[$rows][${NAME}_INPUTS] = {
$replayed_inputs};
static const ${name}_real spans[${NAME}_INPUTS] = {$input_limits}; /* half of the ranges of the inputs */

/* 0, or the number of the first state, counted from 1, whose watchdog is another or whose input is off by more than
 * $close of half of its range. */
int ${name}_policy_replay(void) {
$told_in_driver    for (int row = 0; row < $rows; row++) {
        const ${name}_real *in = states[row];
        ${name}_real u[${NAME}_INPUTS];
$tell_in_driver        if (${name}_policy(${driver_pass}in, u) != (row < $inside ? ${NAME}_IN_DOMAIN : ${NAME}_OUT_OF_DOMAIN)) return row + 1;
        for (int k = 0; k < ${NAME}_INPUTS; k++) {
            const ${name}_real off = u[k] - inputs[row][k], most = (${name}_real)$close * spans[k];
            if (!(-most <= off && off <= most)) return row + 1;
        }
    }
    return 0;
}

#ifndef ${NAME}_NO_MAIN
int main(void) { return ${name}_policy_replay(); }
#endif
