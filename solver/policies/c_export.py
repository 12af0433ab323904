"""A run's policy as C99 source, for the robot's own controller: no allocation, no state, no library but libm.

It calls NAME_affine_dynamics of `modelgen export NAME --c DIR` for B(x), and has the weights as constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from string import Template

import torch

from modelgen.loader import CompiledRobot
from solver.fvi.solution import Solution
from solver.game.held_input_policy import BISECTIONS, CONTRACTIONS, SHORTEST, SMALL, held_seconds
from solver.value.network import DIAGONAL_FLOOR


@dataclass(frozen=True)
class Shape:
    """grad g~(w) = gain shape(w/width), within the limits; gain and width from the weight R and the limit."""

    function: str  # of C's mathematical library; empty is the identity
    gain: Callable[[float, float], float]
    width: Callable[[float, float], float]


SHAPES = {
    "log_cos": Shape(
        "atan", lambda _, limit: 2.0 * (limit + 1e-3) / math.pi, lambda R, limit: 4.0 * limit**2 * R / math.pi
    ),
    "quadratic": Shape("", lambda _R, _limit: 1.0, lambda R, _: 2.0 * R),
    "tanh": Shape("tanh", lambda _, limit: limit, lambda R, limit: 2.0 * R * limit),
}

HEADER = Template("""\
/* $label
 *
 * The policy of one state and the value function behind it, made by `solver export`; not to be edited. SI units.
 *     modelgen export $name --c .
 *     cc -std=c99 -O3 -c $name.c ${name}_policy.c
 */
#ifndef ${NAME}_POLICY_H
#define ${NAME}_POLICY_H

#include "$name.h"

#ifdef __cplusplus
extern "C" {
#endif

/* $states -> $inputs, within the limits; call it once every $period s and hold u in between. */
void ${name}_policy(const ${name}_real *x, ${name}_real *u);

/* V(x) <= 0, and dV/dx ($n). */
${name}_real ${name}_value(const ${name}_real *x, ${name}_real *gradient);

#ifdef __cplusplus
}
#endif

#endif
""")

SOURCE = Template("""\
/* $label: made by `solver export`; not to be edited. See ${name}_policy.h. */

#include "${name}_policy.h"

#include <tgmath.h>

typedef ${name}_real real;

enum { STATES = $n, INPUTS = $m, ANGLES = $angles, FEATURES = $features, LAYERS = $layers, WIDEST = $widest };
enum { MEMBERS = $members, WEIGHTS = $weights };

static const int size[LAYERS + 2] = {$sizes};
static const int angle[] = {$angle_index}, other[] = {$other_index};
static const real scale[] = {$scale}, at_target[FEATURES] = {$at_target};
static const real limit[INPUTS] = {$limits}, gain[INPUTS] = {$gains}, width[INPUTS] = {$widths};

/* Of every member and layer: weights, inputs by outputs, then biases. */
static const float network[MEMBERS][WEIGHTS] = {
$network
};

/* Adds V of one member to the value, and its derivatives by the features to dz. */
static void member(const float *weights, const real *z, const real *error, real *value, real *dz) {
    real out[LAYERS + 1][WIDEST], y[FEATURES] = {0}, back[2][WIDEST];
    const float *layer[LAYERS + 1];
    const real *in = z;
    for (int l = 0; l <= LAYERS; l++) {
        const int rows = size[l], columns = size[l + 1];
        layer[l] = weights;
        for (int j = 0; j < columns; j++) out[l][j] = weights[rows * columns + j];
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) out[l][j] += in[i] * weights[i * columns + j];
        if (l < LAYERS)
            for (int j = 0; j < columns; j++) out[l][j] = tanh(out[l][j]);
        weights += (rows + 1) * columns;
        in = out[l];
    }
    real *entry = out[LAYERS], *adjoint = back[LAYERS % 2];
    for (int r = 0, k = 0; r < FEATURES; r++)
        for (int c = 0; c <= r; c++, k++) {
            adjoint[k] = 1;
            if (c == r) {
                adjoint[k] = 1 / (1 + exp(-entry[k]));
                entry[k] = (entry[k] > 20 ? entry[k] : log1p(exp(entry[k]))) + (real)$floor;
            }
            y[c] += entry[k] * error[r];
        }
    for (int c = 0; c < FEATURES; c++) *value -= y[c] * y[c];
    for (int r = 0, k = 0; r < FEATURES; r++)
        for (int c = 0; c <= r; c++, k++) {
            dz[r] -= 2 * y[c] * entry[k];
            adjoint[k] *= -2 * y[c] * error[r];
        }
    for (int l = LAYERS; l >= 0; l--) {
        const real *from = back[l % 2];
        real *to = back[(l + 1) % 2];
        for (int i = 0; i < size[l]; i++) {
            real sum = 0;
            for (int j = 0; j < size[l + 1]; j++) sum += from[j] * layer[l][i * size[l + 1] + j];
            if (l == 0)
                dz[i] += sum;
            else
                to[i] = sum * (1 - out[l - 1][i] * out[l - 1][i]);
        }
    }
}

real ${name}_value(const real *x, real *gradient) {
    real z[FEATURES], error[FEATURES], dz[FEATURES] = {0}, value = 0;
    for (int i = 0; i < ANGLES; i++) {
        z[i] = sin(x[angle[i]]);
        z[ANGLES + i] = cos(x[angle[i]]);
    }
    for (int i = 2 * ANGLES; i < FEATURES; i++) z[i] = x[other[i - 2 * ANGLES]] * scale[i - 2 * ANGLES];
    for (int i = 0; i < FEATURES; i++) error[i] = z[i] - at_target[i];
    for (int i = 0; i < MEMBERS; i++) member(network[i], z, error, &value, dz);
    for (int i = 0; i < FEATURES; i++) dz[i] /= MEMBERS;
    for (int i = 0; i < ANGLES; i++) gradient[angle[i]] = dz[i] * z[ANGLES + i] - dz[ANGLES + i] * z[i];
    for (int i = 2 * ANGLES; i < FEATURES; i++) gradient[other[i - 2 * ANGLES]] = dz[i] * scale[i - 2 * ANGLES];
    return value / MEMBERS;
}

/* The input that maximises w u - g(u), grad g~(w). */
static real best(int i, real w) {
    const real u = gain[i] * $shape(w / width[i]);
    return u > limit[i] ? limit[i] : u < -limit[i] ? -limit[i] : u;
}

/* w = B^T dV/dx. */
static void slope(const real *x, const real *B, real *w) {
    real gradient[STATES];
    ${name}_value(x, gradient);
    for (int k = 0; k < INPUTS; k++) {
        w[k] = 0;
        for (int i = 0; i < STATES; i++) w[k] += B[i * INPUTS + k] * gradient[i];
    }
}
$sampled
void ${name}_policy(const real *x, real *u) {
    real a[STATES], B[STATES * INPUTS], w[INPUTS];
    ${name}_affine_dynamics(x, $nominal, a, B);
    slope(x, B, w);
$act
}
""")

SAMPLED = Template("""
/* -dw/du (INPUTS, INPUTS): chords between no input and the closed form, and of them what a concave V may have. */
static void steepness(const real *x, const real *B, const real *w, real p[INPUTS][INPUTS]) {
    real beside[STATES], moved[INPUTS], chord[INPUTS][INPUTS];
    for (int k = 0; k < INPUTS; k++) {
        real step = best(k, w[k]);
        if (fabs(step) < (real)$shortest * limit[k]) step = copysign((real)$shortest * limit[k], step);
        for (int i = 0; i < STATES; i++) beside[i] = x[i] + (real)$seconds * B[i * INPUTS + k] * step;
        slope(beside, B, moved);
        for (int j = 0; j < INPUTS; j++) chord[j][k] = (w[j] - moved[j]) / step;
    }
    for (int i = 0; i < INPUTS; i++)
        for (int k = 0; k <= i; k++) {
            chord[i][k] = chord[k][i] = (chord[i][k] + chord[k][i]) / 2;
            p[i][k] = p[k][i] = 0;
        }
    for (int j = 0; j < INPUTS; j++) {
        real column[INPUTS];
        for (int i = j; i < INPUTS; i++) {
            const real most = sqrt(fmax(chord[i][i], (real)0)), root = sqrt(fmax(chord[j][j], (real)0));
            const real entry = chord[i][j] / fmax(root, (real)$small);
            column[i] = entry > most ? most : entry < -most ? -most : entry;
        }
        for (int i = j; i < INPUTS; i++)
            for (int k = j; k < INPUTS; k++) {
                chord[i][k] -= column[i] * column[k];
                p[i][k] += column[i] * column[k];
            }
    }
}
""")

ONE_INPUT = Template("""\
    real p[1][1], low = -limit[0], high = limit[0];
    steepness(x, B, w, p);
    for (int i = 0; i < $bisections; i++) {
        const real middle = (low + high) / 2;
        if (best(0, w[0] - p[0][0] * middle) > middle)
            low = middle;
        else
            high = middle;
    }
    u[0] = best(0, w[0] - p[0][0] * (low + high) / 2);""")

SEVERAL_INPUTS = Template("""\
    real p[INPUTS][INPUTS], at[INPUTS], row[INPUTS][INPUTS + 1];
    steepness(x, B, w, p);
    for (int k = 0; k < INPUTS; k++) at[k] = w[k];
    for (int i = 0; i < $contractions; i++) {
        for (int j = 0; j < INPUTS; j++) {
            for (int k = 0; k < INPUTS; k++) {
                const real away = fabs(at[k]) < (real)$small ? (real)$small : at[k];
                row[j][k] = (j == k) + p[j][k] * best(k, away) / away;
            }
            row[j][INPUTS] = w[j];
        }
        for (int j = 0; j < INPUTS; j++) /* elimination; the pivots are positive */
            for (int r = j + 1; r < INPUTS; r++)
                for (int k = INPUTS; k >= j; k--) row[r][k] -= row[r][j] / row[j][j] * row[j][k];
        for (int j = INPUTS - 1; j >= 0; j--) {
            at[j] = row[j][INPUTS];
            for (int k = j + 1; k < INPUTS; k++) at[j] -= row[j][k] * at[k];
            at[j] /= row[j][j];
        }
    }
    for (int k = 0; k < INPUTS; k++) u[k] = best(k, at[k]);""")

CLOSED = "    for (int k = 0; k < INPUTS; k++) u[k] = best(k, w[k]);"

DRIVER = Template("""\
/* Reads rows of $n states from the standard input and writes rows of $m inputs, V and dV/dx; made by `solver export`.
 *     cc -std=c99 -O3 $name.c ${name}_policy.c ${name}_policy_driver.c -lm -o ${name}_policy
 */

#include <stdio.h>

#include "${name}_policy.h"

int main(void) {
    ${name}_real x[$n], out[$m + 1 + $n];
    for (;;) {
        for (int i = 0; i < $n; i++) {
            double value;
            if (scanf("%lf", &value) != 1) return i == 0 && feof(stdin) ? 0 : 1;
            x[i] = (${name}_real)value;
        }
        ${name}_policy(x, out);
        out[$m] = ${name}_value(x, out + $m + 1);
        for (int i = 0; i < $m + 1 + $n; i++) printf(i < $m + $n ? "%.17g " : "%.17g\\n", (double)out[i]);
    }
}
""")


def emit(solution: Solution, label: str) -> dict[str, str]:
    """NAME_policy.h, NAME_policy.c and NAME_policy_driver.c of a run, by file name."""
    robot = solution.problem.robot
    fields = {**_names(robot, label), **_action(robot), **_network(solution)}
    seconds = held_seconds(solution.problem, solution.run.settings.reaction_periods)
    one = len(robot.metadata.inputs) == 1
    fields |= {"sampled": "", "act": CLOSED}
    if seconds:
        fields["sampled"] = SAMPLED.substitute(shortest=repr(SHORTEST), seconds=repr(seconds), small=repr(SMALL))
        own = (ONE_INPUT if one else SEVERAL_INPUTS).substitute(
            bisections=BISECTIONS, contractions=CONTRACTIONS, small=repr(SMALL)
        )
        fields["act"] = own
    stem = f"{robot.name}_policy"
    texts = {f"{stem}.h": HEADER, f"{stem}.c": SOURCE, f"{stem}_driver.c": DRIVER}
    return {name: template.substitute(fields) for name, template in texts.items()}


def _names(robot: CompiledRobot, label: str) -> dict[str, object]:
    metadata = robot.metadata
    return {
        "name": robot.name,
        "NAME": robot.name.upper(),
        "label": label,
        "n": len(metadata.states),
        "m": len(metadata.inputs),
        "states": f"x ({', '.join(state.name for state in metadata.states)})",
        "inputs": f"u ({', '.join(entry.name for entry in metadata.inputs)})",
        "period": repr(1.0 / metadata.task.control_rate),
        "nominal": f"{robot.name}_nominal" if metadata.parameters else "0",
    }


def _action(robot: CompiledRobot) -> dict[str, object]:
    cost, limits = robot.metadata.task.action_cost, [float(limit) for limit in robot.input_limits]
    shape = SHAPES[cost.name]
    pairs = list(zip(cost.weights, limits, strict=True))
    return {
        "shape": shape.function,
        "limits": _listed(limits),
        "gains": _listed(shape.gain(weight, limit) for weight, limit in pairs),
        "widths": _listed(shape.width(weight, limit) for weight, limit in pairs),
    }


def _network(solution: Solution) -> dict[str, object]:
    features, first = solution.ensemble.features, solution.ensemble.factors[0]
    sizes = [features.size, *(len(bias) for bias in first.biases)]
    members = []
    for member in solution.ensemble.factors:
        parts = [
            torch.cat([w.detach().flatten(), b.detach()]) for w, b in zip(member.weights, member.biases, strict=True)
        ]
        members.append(torch.cat(parts).numpy())
    rows = (", ".join(f"{value!s}f" for value in member) for member in members)
    return {
        "angles": len(features.angles),
        "features": features.size,
        "layers": len(sizes) - 2,
        "widest": max(sizes),
        "members": len(members),
        "weights": len(members[0]),
        "sizes": ", ".join(map(str, sizes)),
        "angle_index": ", ".join(map(str, features.angles.tolist())) or "0",
        "other_index": ", ".join(map(str, features.others.tolist())) or "0",
        "scale": _listed(features.scale.tolist()) or "0",
        "at_target": _listed(features.error_at_target.tolist()),
        "floor": repr(DIAGONAL_FLOOR),
        "network": ",\n".join(f"    {{{row}}}" for row in rows),
    }


def _listed(values: Iterable[float]) -> str:
    return ", ".join(map(repr, values))
