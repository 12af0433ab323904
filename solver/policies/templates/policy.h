/* $label
 *
 * The policy of one state and the value function behind it, made by `solver export`; not to be edited. SI units.
 *     modelgen export $name --c .
 *     cc -std=c99 -O3 -c $name.c ${name}_policy.c
 */
#ifndef ${NAME}_POLICY_H
#define ${NAME}_POLICY_H

#include "$name.h"

#ifdef __cplusplus
extern "C" {
#endif

/* $states -> $inputs, within the limits; call it once every $period s and hold u in between. */
void ${name}_policy(const ${name}_real *x, ${name}_real *u);

/* V(x) <= 0, and dV/dx ($n). */
${name}_real ${name}_value(const ${name}_real *x, ${name}_real *gradient);

#ifdef __cplusplus
}
#endif

#endif
