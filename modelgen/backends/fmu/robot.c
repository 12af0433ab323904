/* $name: a robot as FMU; made by modelgen, not to be edited. */

#include "$name_fmu.h"

#include <math.h>
#include <string.h>

enum { INPUTS = $inputs, PARAMETERS = $parameters, RATES = STATES, ACTING = 2 * STATES, THETA = ACTING + INPUTS };

const char *const $name_fmu_token = "$token";
const double $name_fmu_nominal[STATES + 1] = {$nominal};
static const double start[VALUES] = {$start};
static const double longest = $longest;  /* s, of an integration step in co-simulation */

void $name_fmu_reset($name_fmu *f) {
    memset(f, 0, sizeof *f);
    memcpy(f->value, start, sizeof start);
}

int $name_fmu_settable(unsigned reference) { return reference < STATES || (reference >= ACTING && reference < VALUES); }

static void rates(const $name_fmu *f, const double *x, double *xdot) {
    $name_dynamics(x, f->value + ACTING, f->value + THETA, xdot);
}

static int all_finite(const double *values) {
    for (int i = 0; i < STATES; i++)
        if (values[i] - values[i] != 0) return 0;
    return 1;
}

int $name_fmu_refresh($name_fmu *f) {
    rates(f, f->value, f->value + RATES);
    f->fresh = 1;
    return all_finite(f->value + RATES);
}

/* The classical Runge-Kutta method of fourth order. */
int $name_fmu_step($name_fmu *f, double seconds) {
    static const double share[4] = {0, 0.5, 0.5, 1}, weight[4] = {1, 2, 2, 1};
    const double steps = fmax(1, ceil(seconds / longest - 1e-6)), step = seconds / steps;
    for (double done = 0; done < steps; done++) {
        double at[STATES], slope[STATES] = {0}, sum[STATES] = {0};
        for (int stage = 0; stage < 4; stage++) {
            for (int i = 0; i < STATES; i++) at[i] = f->value[i] + share[stage] * step * slope[i];
            rates(f, at, slope);
            for (int i = 0; i < STATES; i++) sum[i] += weight[stage] * slope[i];
        }
        for (int i = 0; i < STATES; i++) f->value[i] += step / 6 * sum[i];
$normalised    }
    f->fresh = 0;
    return all_finite(f->value);
}

const double *$name_fmu_jacobian(const $name_fmu *f, double *space) {
    double a[STATES], *B = space, *da_dx = B + STATES * INPUTS, *da_dtheta = da_dx + STATES * STATES;
    double *dB_dx = da_dtheta + STATES * PARAMETERS, *dB_dtheta = dB_dx + STATES * INPUTS * STATES;
    const double *u = f->value + ACTING;
    $name_jacobians(f->value, f->value + THETA, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta);
    for (int i = 0; i < STATES; i++)
        for (int k = 0; k < INPUTS; k++) {
            for (int j = 0; j < STATES; j++) da_dx[i * STATES + j] += dB_dx[(i * INPUTS + k) * STATES + j] * u[k];
            for (int p = 0; p < PARAMETERS; p++)
                da_dtheta[i * PARAMETERS + p] += dB_dtheta[(i * INPUTS + k) * PARAMETERS + p] * u[k];
        }
    return space;
}

double $name_fmu_derivative(const double *jacobian, unsigned unknown, unsigned known) {
    const double *B = jacobian, *by_state = B + STATES * INPUTS, *by_parameter = by_state + STATES * STATES;
    if (unknown < STATES || unknown >= ACTING) return unknown == known;
    const unsigned i = unknown - RATES;
    if (known < STATES) return by_state[i * STATES + known];
    if (known < ACTING || known >= VALUES) return 0;  /* time, which nothing depends on, comes last */
    if (known < THETA) return B[i * INPUTS + known - ACTING];
    return by_parameter[i * PARAMETERS + known - THETA];
}
