/* $label: a controller as FMU; made by `solver export`, not to be edited. */

#include "${name}_policy_fmu.h"

#include <string.h>

enum { SENSED = $sensed, INPUTS = $m, IN_DOMAIN = SENSED + INPUTS };

const char *const ${name}_policy_fmu_token = "$$token";
const double ${name}_policy_fmu_nominal[STATES + 1] = {1};
static const double start[VALUES] = {$start};
static const double period = $period; /* s */

void ${name}_policy_fmu_reset(${name}_policy_fmu *f) {
    memset(f, 0, sizeof *f);
    memcpy(f->value, start, sizeof start);
    $reset
}

int ${name}_policy_fmu_settable(unsigned reference) {
    return reference < SENSED || (reference > IN_DOMAIN && reference < VALUES);
}

/* Whether the next control period begins now. The master's sum of its steps may be rounded. */
static int due(const ${name}_policy_fmu *f) { return f->time >= f->begin + (f->periods - 1e-6) * period; }

/* At the beginning of a control period the inputs are those for the present measurement, else the last ones. */
int ${name}_policy_fmu_refresh(${name}_policy_fmu *f) {
    double x[$n], *u = f->value + SENSED;
    f->fresh = 1;
    if (!due(f)) return 1;
    $tell$estimate
    f->value[IN_DOMAIN] = ${name}_policy(${pass}x, u);
    $compensate
    return 1;
}

/* Takes what is measured now, unless a control period goes on; inputs are held until the next one. */
int ${name}_policy_fmu_step(${name}_policy_fmu *f, double seconds) {
    const double end = f->time + seconds;
    while (due(f)) {
        ${name}_policy_fmu_refresh(f);
        $sent
        f->periods++;
        f->time = f->begin + f->periods * period;
        if (f->time >= end - 1e-6 * period) break;
    }
    f->time = end;
    return 1;
}

const double *${name}_policy_fmu_jacobian(const ${name}_policy_fmu *f, double *space) {
    (void)f;
    (void)space;
    return 0;
}

double ${name}_policy_fmu_derivative(const double *jacobian, unsigned unknown, unsigned known) {
    (void)jacobian;
    (void)unknown;
    (void)known;
    return 0;
}
