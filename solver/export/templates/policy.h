/* $label
 *
 * SPDX-License-Identifier: MIT
 * $copyright
 * The policy of one state$also, made by $made; not to be edited. $note
 *     cc -std=c99 -O3 -c $name.c ${name}_policy.c
 * It computes in float on a chip without an operating system; elsewhere -D${NAME}_REAL=float makes it. Not with
 * -ffast-math, which drops the tests for NaN. Macros of the states, inputs, limits and units are in $name.h.
 *
$facts
 */
#ifndef ${NAME}_POLICY_H
#define ${NAME}_POLICY_H

#include "$name.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ${NAME}_POLICY_VERSION "$version"
#define ${NAME}_POLICY_ARTIFACT "$artifact_hash"
#define ${NAME}_POLICY_MODEL "$model_hash"

/* Whether the state is in the domain that the policy was made for. */
typedef enum { ${NAME}_OUT_OF_DOMAIN = 0, ${NAME}_IN_DOMAIN = 1 } ${name}_watchdog;

$context_struct/* $states -> $inputs, within the limits and never NaN; call it once every $period s and hold u in between.
 * Where it returns ${NAME}_OUT_OF_DOMAIN, stop the robot. u is the input that holds the target where a state is not a
 * finite number. */
${name}_watchdog ${name}_policy(${to}const ${name}_real *x, ${name}_real *u);

$value_declaration/* In ${name}_policy_replay.c: 0 where this machine computes what Torch did. */
int ${name}_policy_replay(void);

#ifdef __cplusplus
}
#endif

#endif
