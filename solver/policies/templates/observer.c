/* $name: made by `solver export --observer`; not to be edited. See ${name}_observer.h. */

#include "${name}_observer.h"

#include <math.h>
#include <string.h>

typedef ${name}_real real;

enum { STATES = $n, INPUTS = $m, ALL = STATES + INPUTS, POSITIONS = $q, COLUMNS = $columns, PARAMETERS = COLUMNS - ALL };
enum { STEPS = $steps, DELAY = ${NAME}_DELAY };

static const int turns[STATES] = {$turns};
static const real limit[STATES] = {$state_limits}, input_limit[INPUTS] = {$input_limits};
/* Standard deviations of the parameters, variances of states and disturbances at the start and of what a period adds. */
static const double wrong[PARAMETERS + 1] = {$wrong}, unknown[ALL] = {$unknown}, added[ALL] = {$added};
static const double left = $left; /* of a disturbance after a period */
static const double usual[POSITIONS] = {$measured};

static real turned(real angle) {
    const real turn = (real)6.283185307179586;
    return angle - turn * ${NAME}_CALL(floor)(angle / turn + (real)0.5);
}

static void confine(real *x) {
    for (int i = 0; i < STATES; i++)
        x[i] = turns[i] ? turned(x[i]) : x[i] > limit[i] ? limit[i] : x[i] < -limit[i] ? -limit[i] : x[i];
}

/* dx/dt, and dD/dt of the derivatives D of x by the first state, the input and the parameters. */
static void rates(const real *x, const real *u, real D[STATES][COLUMNS], real *v, real E[STATES][COLUMNS]) {
    real a[STATES], B[STATES][INPUTS], da[STATES][STATES], dB[STATES][INPUTS][STATES];
    real da_dtheta[STATES * PARAMETERS + 1], dB_dtheta[STATES * INPUTS * PARAMETERS + 1];
    ${name}_jacobians(x, $nominal, a, B[0], da[0], dB[0][0], da_dtheta, dB_dtheta);
    for (int i = 0; i < STATES; i++) {
        v[i] = a[i];
        for (int k = 0; k < INPUTS; k++) {
            v[i] += B[i][k] * u[k];
            for (int j = 0; j < STATES; j++) da[i][j] += dB[i][k][j] * u[k];
        }
        for (int c = 0; c < COLUMNS; c++) {
            E[i][c] = 0;
            for (int j = 0; j < STATES; j++) E[i][c] += da[i][j] * D[j][c];
        }
        for (int k = 0; k < INPUTS; k++) E[i][STATES + k] += B[i][k];
        for (int p = 0; p < PARAMETERS; p++) {
            real *entry = &E[i][STATES + INPUTS + p];
            *entry += da_dtheta[i * PARAMETERS + p];
            for (int k = 0; k < INPUTS; k++) *entry += dB_dtheta[(i * INPUTS + k) * PARAMETERS + p] * u[k];
        }
    }
}

/* Moves x on by one control period, and finds its derivatives. */
static void period(real *x, const real *u, real D[STATES][COLUMNS]) {
    const real h = (real)$period / STEPS, share[4] = {0, h / 2, h / 2, h}, weight[4] = {h / 6, h / 3, h / 3, h / 6};
    for (int i = 0; i < STATES; i++)
        for (int c = 0; c < COLUMNS; c++) D[i][c] = i == c;
    for (int step = 0; step < STEPS; step++) {
        real at[STATES], v[STATES] = {0}, sum[STATES], Dat[STATES][COLUMNS], E[STATES][COLUMNS] = {{0}}, Dsum[STATES][COLUMNS];
        memcpy(sum, x, sizeof sum);
        memcpy(Dsum, D, sizeof Dsum);
        for (int stage = 0; stage < 4; stage++) {
            for (int i = 0; i < STATES; i++) {
                at[i] = x[i] + share[stage] * v[i];
                for (int c = 0; c < COLUMNS; c++) Dat[i][c] = D[i][c] + share[stage] * E[i][c];
            }
            rates(at, u, Dat, v, E);
            for (int i = 0; i < STATES; i++) {
                sum[i] += weight[stage] * v[i];
                for (int c = 0; c < COLUMNS; c++) Dsum[i][c] += weight[stage] * E[i][c];
            }
        }
        memcpy(x, sum, sizeof sum);
        memcpy(D, Dsum, sizeof Dsum);
        confine(x);
    }
}

/* Moves x on under u and the disturbance. */
static void disturbed(const ${name}_observer *o, real *x, const real *u, real D[STATES][COLUMNS]) {
    real acting[INPUTS];
    for (int k = 0; k < INPUTS; k++) acting[k] = u[k] + o->disturbance[k];
    period(x, acting, D);
}

/* One control period from o->x under u, linearised about `about`, and corrected by the positions at its end. */
static void advance(${name}_observer *o, const real *about, const real *u, const real *positions) {
    real x[STATES], D[STATES][COLUMNS];
    double half[ALL][ALL], P[ALL][ALL], correction[ALL] = {0};
    memcpy(x, about, sizeof x);
    disturbed(o, x, u, D);
    for (int i = 0; i < STATES; i++)
        for (int j = 0; j < STATES; j++) x[i] += D[i][j] * (o->x[j] - about[j]);
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < ALL; j++) {
            half[i][j] = i < STATES ? 0 : left * o->covariance[i][j];
            for (int k = 0; i < STATES && k < ALL; k++) half[i][j] += D[i][k] * o->covariance[k][j];
        }
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < ALL; j++) {
            P[i][j] = (i == j ? added[i] : 0) + (j < STATES ? 0 : left * half[i][j]);
            for (int k = 0; j < STATES && k < ALL; k++) P[i][j] += half[i][k] * D[j][k];
            for (int p = 0; i < STATES && j < STATES && p < PARAMETERS; p++)
                P[i][j] += wrong[p] * D[i][ALL + p] * wrong[p] * D[j][ALL + p];
        }
    o->innovation = 0;
    for (int q = 0; q < POSITIONS; q++) {
        double error = positions[q] - x[q], column[ALL];
        error = (turns[q] ? (double)turned((real)error) : error) - correction[q];
        for (int i = 0; i < ALL; i++) column[i] = P[i][q];
        const double spread = column[q] + o->variance[q];
        o->innovation += error * error / spread;
        for (int i = 0; i < ALL; i++) {
            correction[i] += column[i] / spread * error;
            for (int j = 0; j < ALL; j++) P[i][j] -= column[i] / spread * column[j];
        }
    }
    for (int i = 0; i < STATES; i++) o->x[i] = x[i] + (real)correction[i];
    for (int k = 0; k < INPUTS; k++)
        o->disturbance[k] = (real)(left * o->disturbance[k] + correction[STATES + k]);
    for (int i = 0; i < ALL; i++) /* what rounding leaves between P and its transpose grows as an unstable robot does */
        for (int j = 0; j < ALL; j++) o->covariance[i][j] = (P[i][j] + P[j][i]) / 2;
    confine(o->x);
}

void ${name}_observer_reset(${name}_observer *o) {
    memset(o, 0, sizeof *o);
    memcpy(o->variance, usual, sizeof usual);
}

void ${name}_observer_estimate(${name}_observer *o, const real *positions, real *x) {
    if (o->measured == 0) {
        for (int i = 0; i < STATES; i++) o->x[i] = i < POSITIONS ? positions[i] : 0;
        for (int i = 0; i < ALL; i++) o->covariance[i][i] = i < POSITIONS ? o->variance[i] : unknown[i];
        confine(o->x);
    } else {
        real about[STATES];
        memcpy(about, o->x, sizeof about);
        if (o->measured == 1) { /* a linearisation about rest is wrong by the square of the velocities */
            ${name}_observer look = *o;
            advance(&look, about, o->waiting[0], positions);
            for (int i = POSITIONS; i < STATES; i++) about[i] = look.x[i];
        }
        advance(o, about, o->waiting[0], positions);
        for (int d = 0; d < DELAY; d++) memcpy(o->waiting[d], o->waiting[d + 1], sizeof o->waiting[d]);
    }
    if (o->measured < 2) o->measured++;
    memcpy(x, o->x, sizeof o->x);
    for (int d = 0; d < DELAY; d++) {
        real D[STATES][COLUMNS];
        disturbed(o, x, o->waiting[d], D);
    }
}

void ${name}_observer_compensate(const ${name}_observer *o, real *u) {
    for (int k = 0; k < INPUTS; k++) {
        u[k] -= o->disturbance[k];
        u[k] = u[k] > input_limit[k] ? input_limit[k] : u[k] < -input_limit[k] ? -input_limit[k] : u[k];
    }
}

void ${name}_observer_sent(${name}_observer *o, const real *u) { memcpy(o->waiting[DELAY], u, sizeof o->waiting[DELAY]); }
