/* $label: made by `solver export --budget`; not to be edited. See ${name}_policy.h. */

#include "${name}_policy.h"

#include <math.h>

typedef ${name}_real real;
#define REAL(function) ${NAME}_CALL(function)

enum { STATES = $n, INPUTS = $m, ANGLES = $angles, FEATURES = $features, LAYERS = $layers, WIDEST = $widest, ROTATIONS = $rotations };

static const int size[LAYERS + 2] = {$sizes};
static const int angle[] = {$angle_index}, other[] = {$other_index};
static const real scale[] = {$scale}, input_scale[INPUTS] = {$input_scale};

/* Of every output of every layer: its bias, then the weights of its inputs. */
static const float network[$weights] = {
$network
};

/* tanh(slope z + level) is added to the last layer: the gain at the target is that of the run's policy. */
static const float slope[INPUTS][FEATURES] = {
$slope
};
static const float level[INPUTS] = {$level};

$rotation_functions$domain
${name}_watchdog ${name}_policy(const real *state, real *u) {
    real x[STATES], z[FEATURES], values[2][WIDEST];
    const float *weight = network;
    const int finite = is_finite(state);
    confine(state, x);
    for (int i = 0; i < ANGLES; i++) {
        z[i] = REAL(sin)(x[angle[i]]);
        z[ANGLES + i] = REAL(cos)(x[angle[i]]);
    }
    for (int i = 2 * ANGLES; i < FEATURES - 9 * ROTATIONS; i++) z[i] = x[other[i - 2 * ANGLES]] * scale[i - 2 * ANGLES];
$rotation_features    for (int l = 0; l <= LAYERS; l++) {
        const real *in = l == 0 ? z : values[l % 2];
        real *out = values[(l + 1) % 2];
        for (int j = 0; j < size[l + 1]; j++) {
            real sum = (real)*weight++;
            for (int i = 0; i < size[l]; i++) sum += (real)*weight++ * in[i];
            out[j] = l < LAYERS ? REAL(tanh)(sum) : sum;
        }
    }
    real *s = values[(LAYERS + 1) % 2];
    for (int k = 0; k < INPUTS; k++) {
        real along = (real)level[k];
        for (int i = 0; i < FEATURES; i++) along += (real)slope[k][i] * z[i];
        s[k] += REAL(tanh)(along);
        const real kept = s[k] > (real)$largest ? (real)$largest : s[k] >= -(real)$largest ? s[k] : -(real)$largest;
        s[k] = finite && !isnan(s[k]) ? input_scale[k] * REAL(sinh)(kept) : 0;
    }
    ${name}_optimal_input(s, u);
    return in_domain(state);
}
