/* $label
 *
 * The policy of one state and the value function behind it, made by `solver export`; not to be edited.
 *     modelgen export $name --c .
 *     cc -std=c99 -O3 -c $name.c ${name}_policy.c
 * It computes in float on a chip without an operating system; elsewhere -D${NAME}_REAL=float makes it. Not with
 * -ffast-math, which drops the tests for NaN. `solver export --budget` makes a policy that a microcontroller can compute.
 *
$facts
 */
#ifndef ${NAME}_POLICY_H
#define ${NAME}_POLICY_H

#include "$name.h"

#ifdef __cplusplus
extern "C" {
#endif

$context_struct/* $states -> $inputs, within the limits and never NaN; call it once every $period s and hold u in between.
 * Returns 1, or 0 where the state is not in the domain that the policy was made for: stop the robot then. u is 0 where
 * a state is not a finite number. */
int ${name}_policy(${to}const ${name}_real *x, ${name}_real *u);

/* V(x) <= 0, and dV/dx ($n). */
${name}_real ${name}_value(${to}const ${name}_real *x, ${name}_real *gradient);

#ifdef __cplusplus
}
#endif

#endif
