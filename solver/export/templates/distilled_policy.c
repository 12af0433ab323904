/* $label: made by `solver export --budget`; not to be edited. See ${name}_policy.h. */

#include "${name}_policy.h"

#include <math.h>

typedef ${name}_real real;
#define REAL(function) ${NAME}_CALL(function)

enum { STATES = $n, INPUTS = $m, ANGLES = $angles, FEATURES = $features, LAYERS = $layers, WIDEST = $widest, ROTATIONS = $rotations };

static const int size[LAYERS + 2] = {$sizes};
static const int angle[] = {$angle_index}, other[] = {$other_index};
static const real scale[] = {$scale}, input_scale[INPUTS] = {$input_scale};

$constants/* Of every output of every layer: its bias, then the weights of its inputs. */
enum { WEIGHTS = $weights };
static const float network[WEIGHTS] = {
$network
};

/* Outputs of all layers at the inputs z. */
static void propagate(const real *z, real out[LAYERS + 1][WIDEST]) {
    const float *weight = network;
    for (int l = 0; l <= LAYERS; l++) {
        const real *in = l == 0 ? z : out[l - 1];
        for (int j = 0; j < size[l + 1]; j++) {
            real sum = (real)*weight++;
            for (int i = 0; i < size[l]; i++) sum += (real)*weight++ * in[i];
            out[l][j] = l < LAYERS ? REAL(tanh)(sum) : sum;
        }
    }
}

$rotation_functions$domain
$trim${name}_watchdog ${name}_policy(${to}const real *state, real *u) {
    real x[STATES], z[$seen], out[LAYERS + 1][WIDEST], *s = out[LAYERS];
    const int finite = is_finite(state);
    confine(state, x);
$shifted    for (int i = 0; i < ANGLES; i++) {
        z[i] = REAL(sin)(x[angle[i]]);
        z[ANGLES + i] = REAL(cos)(x[angle[i]]);
    }
    for (int i = 2 * ANGLES; i < FEATURES - 9 * ROTATIONS; i++) z[i] = x[other[i - 2 * ANGLES]] * scale[i - 2 * ANGLES];
$rotation_features$context_features    propagate(z, out);
    for (int k = 0; k < INPUTS; k++) {
        real along = (real)${of}level[k];
        for (int i = 0; i < FEATURES; i++) along += (real)${of}gain[k][i] * z[i];
        s[k] += ${biased}REAL(tanh)(along);
        const real kept = s[k] > (real)$largest ? (real)$largest : s[k] >= -(real)$largest ? s[k] : -(real)$largest;
        s[k] = finite && !isnan(s[k]) ? input_scale[k] * REAL(sinh)(kept) : 0;
    }
    ${optimal}s, u);
    return in_domain(state);
}
