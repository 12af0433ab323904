/* $name: the state from measured positions and past inputs, made by `solver export --observer`; not to be edited. SI units.
 *     cc -std=c99 -O3 -c $name.c ${name}_observer.c
 *
 * An extended Kalman filter, and a prediction over the delay. In every control period of $period s:
 *     ${name}_observer_estimate(&observer, positions, x);   positions measured now -> x when the next input acts
 *     ...                                                   the policy of x gives u
 *     ${name}_observer_compensate(&observer, u);            takes what disturbs the drive, such as friction, off u
 *     ${name}_observer_sent(&observer, u);                  u is on its way to the drive
 *
 * Wherever this header is read, one of
 *     -D${NAME}_DELAY=d           control periods from a measurement until its input acts, 0 otherwise;
 *     -D${NAME}_LONGEST_DELAY=d   the observer finds them, 0 to d, by d + 1 filters side by side.
 */
#ifndef ${NAME}_OBSERVER_H
#define ${NAME}_OBSERVER_H

#include "$name.h"

#ifdef ${NAME}_LONGEST_DELAY
#define ${NAME}_DELAY ${NAME}_LONGEST_DELAY
#define ${NAME}_FILTERS (${NAME}_LONGEST_DELAY + 1)
#else
#define ${NAME}_FILTERS 1
#endif
#ifndef ${NAME}_DELAY
#define ${NAME}_DELAY 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What one delay makes of the positions and inputs. */
typedef struct {
    ${name}_real x[$n];                            /* at the time of the last positions */
    ${name}_real disturbance[$m];                  /* of the inputs: what acts is the input and this */
    ${name}_real covariance[$n + $m][$n + $m];     /* U D U^T of the error of x and disturbance: U above, D on the diagonal */
    ${name}_real innovation;                       /* squared and normalised: $q on average where the model holds */
    ${name}_real unlikely;                         /* twice the logarithm of how much likelier the likeliest is */
} ${name}_filter;

/* The whole memory of one robot's observer. */
typedef struct {
    int measured;                                  /* positions since the reset: 0, 1, or 2 for more */
    int likeliest;                                 /* of the filters; with LONGEST_DELAY it is the delay that was found */
    ${name}_filter filters[${NAME}_FILTERS];
    ${name}_real waiting[${NAME}_DELAY + 1][$m];   /* the last inputs, the oldest first */
    ${name}_real variance[$q];                     /* of the error of each position: counts^2 / 12 of its encoder */
} ${name}_observer;

/* Forgets everything. Sets the variances of encoders with 2048 counts a turn or 0.025 mm; write others after it. */
void ${name}_observer_reset(${name}_observer *observer);

/* $positions -> $states.
 * A position that is no number, or beyond 1e6, counts as not measured: the model alone moves it on. x is NaN until all
 * positions were measured once, and where too many were missing; the observer then begins anew. */
void ${name}_observer_estimate(${name}_observer *observer, const ${name}_real *positions, ${name}_real *x);

/* $inputs: from what shall act to what is to be sent, within the limits and never NaN, of which it makes 0. */
void ${name}_observer_compensate(const ${name}_observer *observer, ${name}_real *u);

/* $inputs. */
void ${name}_observer_sent(${name}_observer *observer, const ${name}_real *u);

#ifdef __cplusplus
}
#endif

#endif
