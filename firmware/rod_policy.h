/* rod rfvi fast
 *
 * The policy of one state and the value function behind it, made by `solver export`; not to be edited.
 *     modelgen export rod --c .
 *     cc -std=c99 -O3 -c rod.c rod_policy.c
 * It computes in float on a chip without an operating system; elsewhere -DROD_REAL=float makes it. Not with
 * -ffast-math, which drops the tests for NaN. `solver export --budget` makes a policy that a microcontroller can compute.
 *
 * x[0] angle (rad) any number of turns
 * x[1] angle_rate (rad/s) -8 to 8
 * u[0] torque (N m) -2.5 to 2.5
 *
 * Made from artifact 79107835a04a0845e8fb84c675eb01c605ab24248dcab73a0f2b1446aec903e4
 * of model d32ec25e1e4806ed614f7dcb32739005612c27a440ea1c87e70fb418a37e328b.
 * Control rate 125 Hz.
 */
#ifndef ROD_POLICY_H
#define ROD_POLICY_H

#include "rod.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x (angle, angle_rate) -> u (torque), within the limits and never NaN; call it once every 0.008 s and hold u in between.
 * Returns 1, or 0 where the state is not in the domain that the policy was made for: stop the robot then. u is 0 where
 * a state is not a finite number. */
int rod_policy(const rod_real *x, rod_real *u);

/* V(x) <= 0, and dV/dx (2). */
rod_real rod_value(const rod_real *x, rod_real *gradient);

#ifdef __cplusplus
}
#endif

#endif
