/* $name: made by `solver export --observer`; not to be edited. See ${name}_observer.h. */

#include "${name}_observer.h"

#include <math.h>
#include <string.h>

typedef ${name}_real real;
#define REAL(function) ${NAME}_CALL(function)

enum { STATES = $n, ROTATIONS = $rotations, ERRORS = STATES - ROTATIONS, INPUTS = $m, ESTIMATED = $e, ALL = ERRORS + INPUTS + ESTIMATED };
enum { POSITIONS = $q, EXACT = $exact, POSE = POSITIONS - ROTATIONS, SENSORS = ${NAME}_SENSORS, MEASURED = SENSORS - ROTATIONS };
enum { PARAMETERS = $p, COLUMNS = ERRORS + INPUTS + PARAMETERS, OTHERS = PARAMETERS - ESTIMATED, UNSETTLED = ALL - POSE };
enum { STEPS = $steps, DELAY = ${NAME}_DELAY, FILTERS = ${NAME}_FILTERS, SOURCES = ALL + OTHERS + UNSETTLED };

static const int turns[STATES] = {$turns};
static const real limit[STATES] = {$state_limits};
static const real lower[INPUTS] = {$lower}, upper[INPUTS] = {$upper}, trim[INPUTS] = {$trim}; /* of the inputs */
static const int order[PARAMETERS + 1] = {$order}; /* of the parameters: those that are estimated first */
/* Variances of the other parameters, of all that is estimated at the start, and of what a period adds to what is not measured. */
static const real wrong[OTHERS + 1] = {$wrong}, unknown[ALL] = {$unknown}, added[UNSETTLED] = {$added};
static const real lowest[UNSETTLED] = {$lowest}, highest[UNSETTLED] = {$highest}; /* disturbances and parameters, from ERRORS on */
/* Variances of what is measured$of_turns. */
#ifdef ${NAME}_RATES
static const real usual[MEASURED] = {$usual, $usual_rates}, least[MEASURED] = {$least, $least_rates};
#else
static const real usual[MEASURED] = {$usual}, least[MEASURED] = {$least};
#endif

static real turned(real angle) {
    const real turn = (real)6.283185307179586;
    return angle - turn * REAL(floor)(angle / turn + (real)0.5);
}

$rotation_functions
static void confine(real *x) {
    for (int i = 0; i < STATES; i++)
        x[i] = turns[i] ? turned(x[i]) : x[i] > limit[i] ? limit[i] : x[i] < -limit[i] ? -limit[i] : x[i];
$rotation_limit}

/* Errors of the first `count` entries of x from those of target. */
static void errors_between(const real *x, const real *target, int count, real *error) {
    for (int i = 0, e = 0; i < count; i++, e++) {
$rotation_error        error[e] = turns[i] ? turned(x[i] - target[i]) : x[i] - target[i];
    }
}

/* x at this error from it. */
static void moved(real *x, const real *error) {
    for (int i = 0, e = 0; i < STATES; i++, e++) {
$rotation_moved        x[i] += error[e];
    }
}

/* Whether a sensor can have measured this entry of y: a number, and no further away than any. */
static int usable(const real *y, int q) {
    static const real farthest[STATES] = {$farthest};
    return REAL(fabs)(y[q]) <= farthest[q];
}

/* v = dx/dt. */
static void rate(const real *x, const real *u, const real *theta, real *v) {
    real B[STATES][INPUTS];
    ${name}_affine_dynamics(x, theta, v, B[0]);
    for (int i = POSITIONS; i < STATES; i++)
        for (int k = 0; k < INPUTS; k++) v[i] += B[i][k] * u[k];
}

/* The same, and E = dD/dt of the derivatives D of x by the first error, the input and the parameters in their order. */
static void rates(const real *x, const real *u, const real *theta, real D[STATES][COLUMNS], real *v, real E[STATES][COLUMNS]) {
    real B[STATES][INPUTS], da[STATES][STATES], dB[STATES][INPUTS][STATES];
    real da_dtheta[STATES * PARAMETERS + 1], dB_dtheta[STATES * INPUTS * PARAMETERS + 1];
    ${name}_jacobians(x, theta, v, B[0], da[0], dB[0][0], da_dtheta, dB_dtheta);
    memcpy(E, D[POSITIONS], EXACT * sizeof *E); /* these positions change as the velocities say */
    for (int i = EXACT; i < STATES; i++) {
        for (int k = 0; k < INPUTS; k++) {
            v[i] += B[i][k] * u[k];
            for (int j = 0; j < STATES; j++) da[i][j] += dB[i][k][j] * u[k];
        }
        for (int c = 0; c < COLUMNS; c++) {
            real sum = 0;
            for (int j = 0; j < STATES; j++) sum += da[i][j] * D[j][c];
            E[i][c] = sum;
        }
        for (int k = 0; k < INPUTS; k++) E[i][ERRORS + k] += B[i][k];
        for (int p = 0; p < PARAMETERS; p++) {
            real entry = da_dtheta[i * PARAMETERS + order[p]];
            for (int k = 0; k < INPUTS; k++) entry += dB_dtheta[(i * INPUTS + k) * PARAMETERS + order[p]] * u[k];
            E[i][ERRORS + INPUTS + p] += entry;
        }
    }
}

static const real share[4] = {0, (real)0.5, (real)0.5, 1}, weight[4] = {1, 2, 2, 1}; /* Runge and Kutta's */
static const real seconds = (real)$period / STEPS;

/* Moves x on by one control period under u. */
static void move(real *x, const real *u, const real *theta) {
    for (int step = 0; step < STEPS; step++) {
        real at[STATES], v[STATES] = {0}, sum[STATES];
        memcpy(sum, x, sizeof sum);
        for (int stage = 0; stage < 4; stage++) {
            for (int i = 0; i < STATES; i++) at[i] = x[i] + share[stage] * seconds * v[i];
            rate(at, u, theta, v);
            for (int i = 0; i < STATES; i++) sum[i] += weight[stage] * seconds / 6 * v[i];
        }
        memcpy(x, sum, sizeof sum);
        confine(x);
    }
}

/* The same, and finds the derivatives of the error at the end, in the first rows of D. */
static void move_with_derivatives(real *x, const real *u, const real *theta, real D[STATES][COLUMNS]) {
    memset(D, 0, STATES * sizeof *D);
    for (int i = 0, e = 0; i < STATES; i++, e++) {
$rotation_begin        D[i][e] = 1;
    }
    for (int step = 0; step < STEPS; step++) {
        real at[STATES], v[STATES] = {0}, sum[STATES], Dat[STATES][COLUMNS], E[STATES][COLUMNS] = {{0}}, Dsum[STATES][COLUMNS];
        memcpy(sum, x, sizeof sum);
        memcpy(Dsum, D, sizeof Dsum);
        for (int stage = 0; stage < 4; stage++) {
            const real ahead = share[stage] * seconds, part = weight[stage] * seconds / 6;
            for (int i = 0; i < STATES; i++) {
                at[i] = x[i] + ahead * v[i];
                for (int c = 0; c < COLUMNS; c++) Dat[i][c] = D[i][c] + ahead * E[i][c];
            }
            rates(at, u, theta, Dat, v, E);
            for (int i = 0; i < STATES; i++) {
                sum[i] += part * v[i];
                for (int c = 0; c < COLUMNS; c++) Dsum[i][c] += part * E[i][c];
            }
        }
        memcpy(x, sum, sizeof sum);
        memcpy(D, Dsum, sizeof Dsum);
        confine(x);
    }
$rotation_end}

/* The covariance P = U D U^T is kept as its factors, U above the diagonal and D on it: the product has no negative
 * variance, whatever is rounded (Bierman, Factorization Methods for Discrete Sequential Estimation, 1977, chapters V, VI).
 */

/* P after a period with the derivatives `by`: orthogonalises the rows of what its error is made of. */
static void predict(real P[ALL][ALL], real by[STATES][COLUMNS]) {
    real W[ALL][SOURCES] = {{0}}, variance[SOURCES], weighted[SOURCES];
    for (int i = POSE; i < ALL; i++) {
        real sum = P[i][i], room = 1;
        if (i >= ERRORS) { /* a walk between bounds: its variance is at most that at the start */
            for (int j = i + 1; j < ALL; j++) sum += P[i][j] * P[i][j] * P[j][j];
            room = sum < unknown[i] ? 1 - sum / unknown[i] : 0;
        }
        variance[SOURCES - ALL + i] = room * added[i - POSE];
        W[i][SOURCES - ALL + i] = 1;
    }
    for (int j = 0; j < ALL; j++) {
        variance[j] = P[j][j];
        for (int i = 0; i < ERRORS; i++) {
            real sum = by[i][j];
            for (int k = 0; k < j; k++) sum += by[i][k] * P[k][j];
            W[i][j] = sum;
        }
        for (int i = ERRORS; i < ALL; i++) W[i][j] = i == j ? 1 : i < j ? P[i][j] : 0;
    }
    for (int p = 0; p < OTHERS; p++) {
        variance[ALL + p] = wrong[p];
        for (int i = 0; i < ERRORS; i++) W[i][ALL + p] = by[i][ALL + p];
    }
    for (int j = ALL - 1; j >= 0; j--) {
        real total = 0;
        for (int s = 0; s < SOURCES; s++) {
            weighted[s] = variance[s] * W[j][s];
            total += weighted[s] * W[j][s];
        }
        P[j][j] = total;
        for (int i = 0; i < j; i++) {
            real common = 0;
            for (int s = 0; s < SOURCES; s++) common += W[i][s] * weighted[s];
            P[i][j] = common = total > 0 ? common / total : 0;
            for (int s = 0; s < SOURCES; s++) W[i][s] -= common * W[j][s];
        }
    }
}

/* P after error q was measured with this variance. Returns the variance of what is measured; gain is that times it. */
static real measure(real P[ALL][ALL], int q, real variance, real *gain) {
    real total = variance > least[q] ? variance : least[q];
    for (int j = 0; j < ALL; j++) {
        const real f = j < q ? 0 : j == q ? 1 : P[q][j], v = f * P[j][j], before = total;
        total += f * v;
        P[j][j] *= before / total;
        for (int i = 0; i < j; i++) {
            const real entry = P[i][j];
            P[i][j] -= gain[i] * f / before;
            gain[i] += v * entry;
        }
        gain[j] = v;
    }
    return total;
}

/* One control period from f->x under u, linearised about `about`, and corrected by y at its end, NaN where not measured. */
static void advance(${name}_filter *f, const real *about, const real *u, const real *y, const real *variance) {
    real x[STATES], acting[INPUTS], by[STATES][COLUMNS], apart[ERRORS], error[ERRORS] = {0}, correction[ALL] = {0};
    memcpy(x, about, sizeof x);
    for (int k = 0; k < INPUTS; k++) acting[k] = u[k] + f->disturbance[k];
    move_with_derivatives(x, acting, f->parameters, by);
    errors_between(f->x, about, STATES, apart);
    for (int i = 0; i < ERRORS; i++)
        for (int j = 0; j < ERRORS; j++) error[i] += by[i][j] * apart[j];
    moved(x, error);
    predict(f->covariance, by);
    f->innovation = 0;
    errors_between(y, x, SENSORS, error);
    for (int q = 0; q < MEASURED; q++) {
        if (isnan(error[q])) continue;
        real gain[ALL];
        const real rest = error[q] - correction[q];
        const real spread = measure(f->covariance, q, variance[q], gain);
        f->innovation += rest * rest / spread;
        if (FILTERS > 1) f->unlikely += REAL(log)(spread);
        for (int i = 0; i < ALL; i++) correction[i] += gain[i] * rest / spread;
    }
    f->unlikely += f->innovation;
    memcpy(f->x, x, sizeof x);
    moved(f->x, correction);
    for (int k = ERRORS; k < ALL; k++) {
        real *slow = k < ERRORS + INPUTS ? &f->disturbance[k - ERRORS] : &f->parameters[order[k - ERRORS - INPUTS]];
        const real found = *slow + correction[k], low = lowest[k - ERRORS], high = highest[k - ERRORS];
        *slow = found > high ? high : found < low ? low : found;
    }
    confine(f->x);
}

/* One filter takes y; u: what acted since the last one. */
static void follow(const ${name}_observer *o, ${name}_filter *f, const real *u, const real *y) {
    real seen[SENSORS];
    for (int q = 0; q < SENSORS; q++) seen[q] = usable(y, q) ? y[q] : (real)NAN;
$rotation_seen    if (o->measured == 0) {
        for (int i = 0; i < STATES; i++) f->x[i] = i < SENSORS ? seen[i] : $still;
        for (int i = 0; i < ALL; i++) f->covariance[i][i] = i < MEASURED ? o->variance[i] : unknown[i];
        memcpy(f->parameters, $start, PARAMETERS * sizeof(real));
        confine(f->x);
    } else {
        real about[STATES];
        memcpy(about, f->x, sizeof about);
$between        advance(f, about, u, seen, o->variance);
    }
}

/* The delay that a filter stands for. */
static int delay(int filter) { return FILTERS > 1 ? filter : DELAY; }

/* Finds the likeliest filter, and tells every one how unlikely it is beside it. What is no number loses. */
static void compare(${name}_observer *o) {
    real least = (real)HUGE_VAL;
    for (int f = 0; f < FILTERS; f++)
        if (o->filters[f].unlikely < least) least = o->filters[o->likeliest = f].unlikely;
    for (int f = 0; f < FILTERS; f++) o->filters[f].unlikely -= least;
}

/* Forgets the state and not the inputs on their way. */
static void begin(${name}_observer *o) {
    memset(o->filters, 0, sizeof o->filters);
    for (int f = 0; f < FILTERS; f++) memcpy(o->filters[f].parameters, $start, PARAMETERS * sizeof(real));
    o->measured = o->likeliest = 0;
}

void ${name}_observer_reset(${name}_observer *o) {
    memset(o, 0, sizeof *o);
    for (int d = 0; d <= DELAY; d++) memcpy(o->waiting[d], trim, sizeof trim);
    memcpy(o->variance, usual, sizeof usual);
$knows_nominal    begin(o);
}

$know_function/* Whether every number of it is finite; without measurements, the covariance grows beyond all bounds. */
static int sound(const ${name}_filter *f) {
    real sum = f->innovation;
    for (int i = 0; i < STATES; i++) sum += REAL(fabs)(f->x[i]);
    for (int k = 0; k < INPUTS; k++) sum += REAL(fabs)(f->disturbance[k]);
    for (int p = 0; p < PARAMETERS; p++) sum += REAL(fabs)(f->parameters[p]);
    for (int i = 0; i < ALL; i++) sum += f->covariance[i][i];
    return isfinite(sum) ? 1 : 0;
}

void ${name}_observer_estimate(${name}_observer *o, const real *y, real *x) {
    int whole = 1;
    for (int q = 0; q < SENSORS; q++) whole &= usable(y, q);
    if (o->measured < 2 && !whole) begin(o);
    else {
        for (int f = 0; f < FILTERS; f++) follow(o, &o->filters[f], o->waiting[DELAY - delay(f)], y);
        if (o->measured < 2) o->measured++;
    }
    for (int d = 0; d < DELAY; d++) memcpy(o->waiting[d], o->waiting[d + 1], sizeof o->waiting[d]);
    if (FILTERS > 1) compare(o);
    const ${name}_filter *f = &o->filters[o->likeliest];
    if (!sound(f)) begin(o);
    for (int i = 0; i < STATES; i++) x[i] = o->measured ? f->x[i] : (real)NAN;
    if (!o->measured) return;
    for (int d = DELAY - delay(o->likeliest); d < DELAY; d++) {
        real acting[INPUTS];
        for (int k = 0; k < INPUTS; k++) acting[k] = o->waiting[d][k] + f->disturbance[k];
        move(x, acting, f->parameters);
    }
}

$shift
void ${name}_observer_compensate(const ${name}_observer *o, real *u) {
    const ${name}_filter *f = &o->filters[o->likeliest];
    real shifted[INPUTS] = {0};
$shifted    for (int k = 0; k < INPUTS; k++) {
        u[k] -= f->disturbance[k] + shifted[k];
        u[k] = u[k] > upper[k] ? upper[k] : u[k] < lower[k] ? lower[k] : isnan(u[k]) ? trim[k] : u[k];
    }
}

void ${name}_observer_sent(${name}_observer *o, const real *u) { memcpy(o->waiting[DELAY], u, sizeof o->waiting[DELAY]); }
