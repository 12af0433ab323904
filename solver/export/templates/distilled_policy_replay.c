/* Whether ${name}_policy gives on this machine what it gave in Torch, at $rows states; made by `solver export --budget`.
 *     cc -std=c99 -O2 -D${NAME}_REAL=float $name.c ${name}_policy.c ${name}_policy_replay.c -lm -o replay && ./replay
 * On a board without an operating system, call ${name}_policy_replay() yourself; -D${NAME}_NO_MAIN leaves main out.
 */

#include "${name}_policy.h"

static const ${name}_real states[$rows][$n] = {
$replayed_states};
static const ${name}_real inputs[$rows][$m] = {
$replayed_inputs};
static const ${name}_real input_limits[$m] = {$input_limits};

/* 0, or the number of the first state, counted from 1, whose input is off by more than 0.1 % of its limit. */
int ${name}_policy_replay(void) {
    for (int row = 0; row < $rows; row++) {
        ${name}_real u[$m];
        ${name}_policy(states[row], u);
        for (int k = 0; k < $m; k++) {
            const ${name}_real off = u[k] - inputs[row][k], most = (${name}_real)$close * input_limits[k];
            if (!(-most <= off && off <= most)) return row + 1;
        }
    }
    return 0;
}

#ifndef ${NAME}_NO_MAIN
int main(void) { return ${name}_policy_replay(); }
#endif
