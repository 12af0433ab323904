/* $name: the state from measurements and past inputs, made by `solver export --observer`; not to be edited. SI units.
 *     cc -std=c99 -O3 -c $name.c ${name}_observer.c
 *
 * An extended Kalman filter, and a prediction over the delay. In every control period of $period s:
 *     ${name}_observer_estimate(&observer, y, x);   y measured now -> x when the next input acts
 *     ...                                           the policy of x gives u
 *     ${name}_observer_compensate(&observer, u);    takes what disturbs the drive, such as friction, off u
 *     ${name}_observer_sent(&observer, u);          u is on its way to the drive
 *
 * y are the positions ($coordinates). Wherever this header is read, one of
 *     -D${NAME}_DELAY=d           control periods from a measurement until its input acts, 0 otherwise;
 *     -D${NAME}_LONGEST_DELAY=d   the observer finds them, 0 to d, by d + 1 filters side by side;
 * and where the rates are measured too
 *     -D${NAME}_RATES             y has them after the positions ($rates).
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
#ifdef ${NAME}_RATES
#define ${NAME}_SENSORS $n
#else
#define ${NAME}_SENSORS $q
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What one delay makes of the measurements and inputs. */
typedef struct {
    ${name}_real x[$n];                            /* at the time of the last y */
    ${name}_real disturbance[$m];                  /* of the inputs: what acts is the input and this */
    ${name}_real parameters[$parameters];                   /* of the robot; estimated: $estimated */
    ${name}_real covariance[$errors + $m + $e][$errors + $m + $e]; /* U D U^T of the error of x, disturbance and estimated: U above, D on the diagonal */
    ${name}_real innovation;                       /* squared and normalised: as many on average where the model holds as `variance` has */
    ${name}_real unlikely;                         /* twice the logarithm of how much likelier the likeliest is */
} ${name}_filter;

/* The whole memory of one robot's observer. */
typedef struct {
    int measured;                                  /* times since the reset: 0, 1, or 2 for more */
$known    int likeliest;                                 /* of the filters; with LONGEST_DELAY it is the delay that was found */
    ${name}_filter filters[${NAME}_FILTERS];
    ${name}_real waiting[${NAME}_DELAY + 1][$m];   /* the last inputs, the oldest first */
    ${name}_real variance[${NAME}_SENSORS - $rotations];        /* of the error of each entry of y$of_turns: counts^2 / 12 of an encoder */
} ${name}_observer;

/* Forgets everything. Sets the variances of encoders with 2048 counts a turn or 0.025 mm; write others after it. Those
 * of rates are so large that they are as good as not measured: write those of your sensors. */
void ${name}_observer_reset(${name}_observer *observer);

$know/* y -> $states.
 * An entry of y that is no number, or beyond 1e6 and ten times its limit, counts as not measured: the model alone moves
 * it on. x is NaN until all of y was measured once, and where too much was missing; the observer then begins anew. */
void ${name}_observer_estimate(${name}_observer *observer, const ${name}_real *y, ${name}_real *x);

/* $inputs: from what shall act to what is to be sent, within the limits and never NaN, of which it makes 0. */
void ${name}_observer_compensate(const ${name}_observer *observer, ${name}_real *u);

/* $inputs. */
void ${name}_observer_sent(${name}_observer *observer, const ${name}_real *u);

#ifdef __cplusplus
}
#endif

#endif
