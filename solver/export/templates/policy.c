/* $label: made by `solver export`; not to be edited. See ${name}_policy.h. */

#include "${name}_policy.h"

#include <math.h>

typedef ${name}_real real;
#define REAL(function) ${NAME}_CALL(function)

enum { STATES = $n, INPUTS = $m, ANGLES = $angles, FEATURES = $features, LAYERS = $layers, WIDEST = $widest };
enum { MEMBERS = $members, WEIGHTS = $weights, ROTATIONS = $rotations, ERRORS = STATES - ROTATIONS };

static const int size[LAYERS + 2] = {$sizes};
static const int angle[] = {$angle_index}, other[] = {$other_index};
static const real scale[] = {$scale}, at_target[FEATURES] = {$at_target};

$constants/* Of every member and layer: weights, inputs by outputs, then biases. */
static const float network[MEMBERS][WEIGHTS] = {
$network
};

$rotation_functions$domain
/* Where e^T P e < level, e = x - target, V is -e^T P e. Angles that turn are taken the short way round. */
static const real target[STATES] = {$target};
static const int turns[STATES] = {$turns};

/* Whether x lies where V is the quadratic form; if so, V and dV/dx there. */
static int in_basin(${to}const real *x, real *value, real *gradient) {
    const real turn = (real)6.283185307179586;
    real error[ERRORS], slopes[ERRORS], distance = 0;
    for (int i = 0, e = 0; i < STATES; i++, e++) {
$rotation_error        error[e] = x[i] - target[i];
        if (turns[i]) error[e] -= turn * REAL(rint)(error[e] / turn);
    }
    for (int i = 0; i < ERRORS; i++) {
        slopes[i] = 0;
        for (int j = 0; j < ERRORS; j++) slopes[i] += ${of}cost[j][i] * error[j];
        distance += slopes[i] * error[i];
    }
    if (!(${of}level > 0 && distance < ${of}level)) return 0;
    *value = -distance;
    for (int i = 0, e = 0; i < STATES; i++, e++) {
$rotation_slope        gradient[i] = -2 * slopes[e];
    }
    return 1;
}

/* Adds V of one member to the value, and its derivatives by the features and the error to dz and dy. */
static void member(const float *weights, const real *z, const real *error, real *value, real *dz, real *dy) {
    real out[LAYERS + 1][WIDEST], y[FEATURES] = {0}, back[2][WIDEST];
    const float *layer[LAYERS + 1];
    const real *in = z;
    for (int l = 0; l <= LAYERS; l++) {
        const int rows = size[l], columns = size[l + 1];
        layer[l] = weights;
        for (int j = 0; j < columns; j++) out[l][j] = (real)weights[rows * columns + j];
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) out[l][j] += in[i] * (real)weights[i * columns + j];
        if (l < LAYERS)
            for (int j = 0; j < columns; j++) out[l][j] = REAL(tanh)(out[l][j]);
        weights += (rows + 1) * columns;
        in = out[l];
    }
    real *entry = out[LAYERS], *adjoint = back[LAYERS % 2];
    for (int r = 0, k = 0; r < FEATURES; r++)
        for (int c = 0; c <= r; c++, k++) {
            adjoint[k] = 1;
            if (c == r) {
                adjoint[k] = 1 / (1 + REAL(exp)(-entry[k]));
                entry[k] = (entry[k] > 20 ? entry[k] : REAL(log1p)(REAL(exp)(entry[k]))) + (real)$floor;
            }
            y[c] += entry[k] * error[r];
        }
    for (int c = 0; c < FEATURES; c++) *value -= y[c] * y[c];
    for (int r = 0, k = 0; r < FEATURES; r++)
        for (int c = 0; c <= r; c++, k++) {
            dy[r] -= 2 * y[c] * entry[k];
            adjoint[k] *= -2 * y[c] * error[r];
        }
    for (int l = LAYERS; l >= 0; l--) {
        const real *from = back[l % 2];
        real *to = back[(l + 1) % 2];
        for (int i = 0; i < size[l]; i++) {
            real sum = 0;
            for (int j = 0; j < size[l + 1]; j++) sum += from[j] * (real)layer[l][i * size[l + 1] + j];
            if (l == 0)
                dz[i] += sum;
            else
                to[i] = sum * (1 - out[l - 1][i] * out[l - 1][i]);
        }
    }
}

real ${name}_value(${to}const real *state, real *gradient) {
    real x[STATES], z[$seen], error[FEATURES] = {0}, dz[$seen] = {0}, dy[FEATURES] = {0}, value = 0, square = 0, along = 0;
    confine(state, x);
$shifted    if (in_basin(${pass}x, &value, gradient)) return value;
    for (int i = 0; i < ANGLES; i++) {
        z[i] = REAL(sin)(x[angle[i]]);
        z[ANGLES + i] = REAL(cos)(x[angle[i]]);
    }
    for (int i = 2 * ANGLES; i < FEATURES - 9 * ROTATIONS; i++) z[i] = x[other[i - 2 * ANGLES]] * scale[i - 2 * ANGLES];
$rotation_features$context_features    for (int i = 0; i < FEATURES; i++)
        for (int j = 0; j < FEATURES; j++) error[j] += (z[i] - at_target[i]) * ${of}metric[i][j];
    for (int i = 0; i < FEATURES; i++) square += error[i] * error[i];
    const real shrunk = 1 / REAL(sqrt)(1 + ${of}bend * square);
    for (int i = 0; i < FEATURES; i++) error[i] *= shrunk;
    for (int i = 0; i < MEMBERS; i++) member(network[i], z, error, &value, dz, dy);
    for (int i = 0; i < FEATURES; i++) along += ${of}bend * dy[i] * error[i];
    for (int i = 0; i < FEATURES; i++) dy[i] = (dy[i] - along * error[i]) * shrunk;
    for (int i = 0; i < FEATURES; i++)
        for (int j = 0; j < FEATURES; j++) dz[i] += ${of}metric[i][j] * dy[j];
    for (int i = 0; i < FEATURES; i++) dz[i] /= MEMBERS;
    for (int i = 0; i < ANGLES; i++) gradient[angle[i]] = dz[i] * z[ANGLES + i] - dz[ANGLES + i] * z[i];
    for (int i = 2 * ANGLES; i < FEATURES - 9 * ROTATIONS; i++) gradient[other[i - 2 * ANGLES]] = dz[i] * scale[i - 2 * ANGLES];
$rotation_gradient    return value / MEMBERS;
}

/* w = B^T dV/dx. */
static void slope(${to}const real *x, const real *B, real *w) {
    real gradient[STATES];
    ${name}_value(${pass}x, gradient);
    for (int k = 0; k < INPUTS; k++) {
        w[k] = 0;
        for (int i = 0; i < STATES; i++) w[k] += B[i * INPUTS + k] * gradient[i];
    }
}

$trim
$act
${name}_watchdog ${name}_policy(${to}const real *state, real *u) {
    real x[STATES], a[STATES], B[STATES * INPUTS], w[INPUTS];
    const int finite = is_finite(state);
    confine(state, x);
    ${name}_affine_dynamics(x, $parameters, a, B);
$drift    slope(${pass}x, B, w);
    act(${pass}x, B, w, u);
    for (int k = 0; k < INPUTS; k++)
        if (!finite || isnan(u[k])) u[k] = ${of}trim[k];
    return in_domain(state);
}
