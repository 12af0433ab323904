// Rotations: unit quaternions (w, x, y, z) in a state, from the index `at`. Formulas as in solver.problem.geometry.
function quaternionProduct([a, b, c, d], [w, x, y, z]) {
  return [a * w - b * x - c * y - d * z, a * x + b * w + c * z - d * y, a * y - b * z + c * w + d * x, a * z + b * y - c * x + d * w];
}
function normaliseRotation(x, at) {
  const length = Math.hypot(x[at], x[at + 1], x[at + 2], x[at + 3]);
  for (let i = at; i < at + 4; i++) x[i] /= length;
}
function between(from, to, at) {
  return quaternionProduct([from[at], -from[at + 1], -from[at + 2], -from[at + 3]], to.slice(at, at + 4));
}
function turnOf([w, ...v]) {
  return v.map((each) => (w < 0 ? -2 : 2) * each);
}
function cross(a, b) {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}
function slopeOfTurns(x, at, turn) {
  return quaternionProduct(x.slice(at, at + 4), [0, 2 * turn[0], 2 * turn[1], 2 * turn[2]]);
}
function rotationMatrix(q, at) {
  const w = q[at], x = q[at + 1], y = q[at + 2], z = q[at + 3];
  return [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
    2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
    2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)];
}

// The policy and V of a run, `run` its numbers, on `robot`, the functions of one sample. Formulas as in policy.c.
function makePolicy(robot, facts, run) {
  const n = facts.states.length, m = facts.inputs.length;
  const { sizes, angles, others, scale, rotations, atTarget, floor, basin, seconds, drift, farthest, shortest, small, told, nominal } = run;
  let { metric, bend, trim, slope: slopeAtTrim, cost: costAtTrim } = run, parameters = nominal;
  let shift = null, ready = true; // of the target, by references; whether it is the policy of a robot that was asked for
  const turning = angles.length, features = atTarget.length, layers = sizes.length - 2;
  const members = decoded(run);
  const z = new Float64Array(fours(sizes[0])), error = new Float64Array(features), dz = new Float64Array(fours(sizes[0]));
  const y = new Float64Array(features), dy = new Float64Array(features), out = sizes.slice(1).map((size) => new Float64Array(fours(size)));
  const adjoint = sizes.slice(1).map((size) => new Float64Array(fours(size))), away = new Float64Array(n);
  const errors = n - rotations.length, plain = 2 * turning + others.length;
  const slopes = new Float64Array(n), gradient = new Float64Array(n), a = new Float64Array(n), B = new Float64Array(n * m);
  const w = new Float64Array(m), at = new Float64Array(m), closed = new Float64Array(m), moved = new Float64Array(m);
  const beside = new Float64Array(n), argument = new Float64Array(m), p = new Float64Array(m * m), one = new Float64Array(1);
  const first = new Float64Array(m), second = new Float64Array(m), size1 = new Float64Array(m);

  function inBasin(x) {
    let distance = 0;
    for (let i = 0, e = 0; i < n; i++, e++) {
      if (rotations.includes(i)) {
        away.set(turnOf(between(basin.target, x, i)), e);
        i += 3;
        e += 2;
        continue;
      }
      away[e] = x[i] - basin.target[i];
      if (basin.turns[i]) away[e] -= 2 * Math.PI * Math.round(away[e] / (2 * Math.PI));
    }
    for (let i = 0; i < errors; i++) {
      slopes[i] = 0;
      for (let j = 0; j < errors; j++) slopes[i] += basin.cost[j][i] * away[j];
      distance += slopes[i] * away[i];
    }
    return basin.level > 0 && distance < basin.level ? distance : NaN;
  }

  // Adds V of one member, returned, and its derivatives by the features and the error to dz and dy. Four rows of weights
  // at a time: the sums do not wait for one another.
  function member(layersOf) {
    let input = z;
    for (let l = 0; l <= layers; l++) {
      const { weights, biases } = layersOf[l], o = out[l], columns = sizes[l + 1];
      o.set(biases);
      for (let i = 0; i < sizes[l]; i += 4) {
        const k0 = i * columns, k1 = k0 + columns, k2 = k1 + columns, k3 = k2 + columns;
        const f0 = input[i], f1 = input[i + 1], f2 = input[i + 2], f3 = input[i + 3];
        for (let j = 0; j < columns; j++)
          o[j] += f0 * weights[k0 + j] + f1 * weights[k1 + j] + (f2 * weights[k2 + j] + f3 * weights[k3 + j]);
      }
      if (l < layers) for (let j = 0; j < columns; j++) o[j] = Math.tanh(o[j]);
      input = o;
    }
    const entry = out[layers], back = adjoint[layers];
    let value = 0;
    y.fill(0);
    for (let r = 0, k = 0; r < features; r++)
      for (let c = 0; c <= r; c++, k++) {
        back[k] = 1;
        if (c === r) {
          back[k] = 1 / (1 + Math.exp(-entry[k]));
          entry[k] = (entry[k] > 20 ? entry[k] : Math.log1p(Math.exp(entry[k]))) + floor;
        }
        y[c] += entry[k] * error[r];
      }
    for (let c = 0; c < features; c++) value -= y[c] * y[c];
    for (let r = 0, k = 0; r < features; r++)
      for (let c = 0; c <= r; c++, k++) {
        dy[r] -= 2 * y[c] * entry[k];
        back[k] *= -2 * y[c] * error[r];
      }
    for (let l = layers; l >= 0; l--) {
      if (l > 0) adjoint[l - 1].fill(0);
      const from = adjoint[l], { weights } = layersOf[l], columns = sizes[l + 1];
      for (let i = 0; i < sizes[l]; i += 4) {
        const k0 = i * columns, k1 = k0 + columns, k2 = k1 + columns, k3 = k2 + columns;
        let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (let j = 0; j < columns; j++) {
          const f = from[j];
          s0 += f * weights[k0 + j];
          s1 += f * weights[k1 + j];
          s2 += f * weights[k2 + j];
          s3 += f * weights[k3 + j];
        }
        const to = l === 0 ? dz : adjoint[l - 1];
        to[i] += s0;
        to[i + 1] += s1;
        to[i + 2] += s2;
        to[i + 3] += s3;
      }
      if (l > 0) for (let i = 0; i < sizes[l]; i++) adjoint[l - 1][i] *= 1 - out[l - 1][i] * out[l - 1][i];
    }
    return value;
  }

  // The state that everything is computed at: entries beyond `farthest` count as that, and one that is not finite as NaN.
  function confined(x) {
    if (x.length !== n) throw new RangeError(`a state has ${n} numbers, ${facts.states.map(({ name }) => name).join(", ")}; ${x.length} are given`);
    const y = Float64Array.from(x, (each, i) => (Number.isFinite(each) ? Math.min(Math.max(each, -farthest[i]), farthest[i]) : NaN));
    for (const at of rotations) normaliseRotation(y, at);
    return y;
  }

  // V(x) <= 0; fills dV/dx.
  function value(state, dV) {
    if (!ready) throw new Error("a nominal value is outside the range of the training: tell V first");
    if (dV?.length !== n) throw new RangeError(`value(x, gradient) fills gradient: give it an array of ${n}`);
    return valueWithin(confined(state), dV);
  }

  function valueWithin(state, dV) {
    const x = shift ? state.map((each, i) => each - shift[i]) : state;
    const distance = inBasin(x);
    if (distance === distance) {
      for (let i = 0, e = 0; i < n; i++, e++) {
        if (rotations.includes(i)) {
          const [w, ...v] = between(basin.target, x, i);
          const g = Array.from(slopes.subarray(e, e + 3), (each) => (w < 0 ? 2 : -2) * each), c = cross(v, g);
          dV.set(slopeOfTurns(x, i, g.map((each, k) => w * each - c[k])), i);
          i += 3;
          e += 2;
          continue;
        }
        dV[i] = -2 * slopes[e];
      }
      return -distance;
    }
    for (let i = 0; i < turning; i++) {
      z[i] = Math.sin(x[angles[i]]);
      z[turning + i] = Math.cos(x[angles[i]]);
    }
    for (let i = 0; i < others.length; i++) z[2 * turning + i] = x[others[i]] * scale[i];
    rotations.forEach((at, r) => z.set(rotationMatrix(x, at), plain + 9 * r));
    if (told) z.set(told.entries, features);
    error.fill(0);
    for (let i = 0; i < features; i++)
      for (let j = 0; j < features; j++) error[j] += (z[i] - atTarget[i]) * metric[i][j];
    let square = 0, along = 0, sum = 0;
    for (let i = 0; i < features; i++) square += error[i] * error[i];
    const shrunk = 1 / Math.sqrt(1 + bend * square);
    for (let i = 0; i < features; i++) error[i] *= shrunk;
    dz.fill(0);
    dy.fill(0);
    for (const each of members) sum += member(each);
    for (let i = 0; i < features; i++) along += bend * dy[i] * error[i];
    for (let i = 0; i < features; i++) dy[i] = (dy[i] - along * error[i]) * shrunk;
    for (let i = 0; i < features; i++)
      for (let j = 0; j < features; j++) dz[i] += metric[i][j] * dy[j];
    const count = members.length;
    for (let i = 0; i < turning; i++) dV[angles[i]] = (dz[i] * z[turning + i] - dz[turning + i] * z[i]) / count;
    for (let i = 0; i < others.length; i++) dV[others[i]] = (dz[2 * turning + i] * scale[i]) / count;
    rotations.forEach((at, r) => {
      const turn = [0, 0, 0];
      for (let j = plain + 9 * r; j < plain + 9 * r + 9; j += 3)
        cross(dz.subarray(j, j + 3), z.subarray(j, j + 3)).forEach((each, k) => (turn[k] += each / count));
      dV.set(slopeOfTurns(x, at, turn), at);
    });
    return sum / count;
  }

  function slope(x, result) {
    valueWithin(x, gradient);
    for (let k = 0; k < m; k++) {
      result[k] = 0;
      for (let i = 0; i < n; i++) result[k] += B[i * m + k] * gradient[i];
    }
  }

  // The optimal input, with the action cost measured from the trim.
  function optimal(w, u) {
    for (let k = 0; k < m; k++) argument[k] = w[k] + slopeAtTrim[k];
    robot.optimal_input(argument, u);
  }

  // P = -dw/du of an input that is held, by chords from the trim; positive semidefinite.
  function steepness(x) {
    optimal(w, closed);
    for (let k = 0; k < m; k++) closed[k] -= trim[k];
    const chord = Array.from({ length: m }, () => new Float64Array(m));
    for (let k = 0; k < m; k++) {
      let step = Math.max(Math.abs(closed[k]), shortest * facts.inputs[k].limit);
      if (closed[k] < 0 || Object.is(closed[k], -0)) step = -step;
      for (let i = 0; i < n; i++) beside[i] = x[i] + seconds * B[i * m + k] * step;
      slope(beside, moved);
      for (let j = 0; j < m; j++) chord[j][k] = (w[j] - moved[j]) / step;
    }
    for (let i = 0; i < m; i++) for (let k = 0; k <= i; k++) chord[i][k] = chord[k][i] = (chord[i][k] + chord[k][i]) / 2;
    p.fill(0);
    for (let j = 0; j < m; j++) {
      const root = Math.sqrt(Math.max(chord[j][j], 0)), column = [];
      for (let i = j; i < m; i++) {
        const most = Math.sqrt(Math.max(chord[i][i], 0));
        column[i] = Math.min(Math.max(chord[i][j] / Math.max(root, small), -most), most);
      }
      for (let i = j; i < m; i++)
        for (let k = j; k < m; k++) {
          chord[i][k] -= column[i] * column[k];
          p[i * m + k] += column[i] * column[k];
        }
    }
  }

  function held(x) {
    steepness(x);
    if (m === 1) {
      // Newton's method for the size d of u - trim, with the sign of w: g'(u) + p (u - trim) = w; else bisection
      const target = Math.abs(w[0]), side = w[0] < 0 ? -1 : 1;
      let low = 0, high = Math.abs(closed[0]), d = high;
      for (let i = 0; i < run.newtonSteps; i++) {
        size1[0] = trim[0] + side * d;
        robot.action_cost(size1, one, first, second);
        const excess = side * (first[0] - slopeAtTrim[0]) + p[0] * d - target;
        if (excess > 0) high = d;
        else low = d;
        const step = d - excess / (second[0] + p[0]);
        d = step >= low && step <= high ? step : (low + high) / 2;
      }
      at[0] = w[0] - p[0] * side * d;
      return;
    }
    at.set(w);
    for (let i = 0; i < run.contractions; i++) {
      for (let k = 0; k < m; k++) moved[k] = Math.abs(at[k]) < small ? small : at[k];
      optimal(moved, closed);
      const rows = [];
      for (let j = 0; j < m; j++) {
        rows.push([]);
        for (let k = 0; k < m; k++) rows[j].push((j === k ? 1 : 0) + (p[j * m + k] * (closed[k] - trim[k])) / moved[k]);
        rows[j].push(w[j]);
      }
      at.set(eliminated(rows));
    }
  }

  // Fills u, within the limits; returns its cost g(u).
  function policy(state, u) {
    if (!ready) throw new Error("a nominal value is outside the range of the training: tell the policy first");
    if (u?.length !== m) throw new RangeError(`policy(x, u) fills u: give it an array of ${m}`);
    const x = confined(state);
    robot.affine_dynamics(x, parameters, a, B);
    if (drift && seconds > 0) { // the state that the trim reaches within the hold
      for (let i = 0; i < n; i++) x[i] += seconds * trim.reduce((rate, each, k) => rate + B[i * m + k] * each, a[i]);
      x.set(confined(x));
      robot.affine_dynamics(x, parameters, a, B);
    }
    slope(x, w);
    if (seconds > 0) held(x);
    else at.set(w);
    optimal(at, u);
    robot.optimal_input_cost(argument, one);
    for (let k = 0; k < m; k++) one[0] -= slopeAtTrim[k] * (u[k] - trim[k]);
    return Math.max(one[0] - costAtTrim, 0);
  }

  // The cost g(u) of any input, measured from the trim of the robot that `known` described.
  function cost(u, from = known()) {
    robot.action_cost(u, one, first, second);
    for (let k = 0; k < m; k++) one[0] -= from.slope[k] * (u[k] - from.trim[k]);
    return Math.max(one[0] - from.cost, 0);
  }

  // Makes the policy of the robot with these values of what it is told, in SI units by name; the others are nominal.
  // Returns whether they are in their ranges: beyond, it is the policy of the nearest robot in range.
  function tell(values = {}) {
    const powers = [], names = told.context.map(({ name }) => name), other = Object.keys(values).find((name) => !names.includes(name));
    if (other !== undefined) throw new Error(`the policy cannot be told ${other}: it is told ${names.join(", ")}`);
    let inside = true;
    parameters = [...nominal];
    told.context.forEach(({ name, lower, upper, nominal: usual, place }, i) => {
      const given = values[name] ?? usual, value = Number.isNaN(given) ? usual : Math.min(Math.max(given, lower), upper);
      inside &&= value === given;
      const c = (2 * value - lower - upper) / (upper - lower), power = [1, c];
      for (let d = 2; d <= told.degree; d++) power.push(2 * c * power[d - 1] - power[d - 2]);
      powers.push(power);
      told.entries[i] = c;
      parameters[place] = value;
    });
    if (told.shift) shift = told.shift[0].map((_, s) => told.entries.reduce((sum, c, i) => sum + c * told.shift[i][s], 0));
    const sums = told.polynomial[0].map(() => 0);
    told.degrees.forEach((degrees, t) => {
      const term = degrees.reduce((product, d, i) => product * powers[i][d], 1);
      told.polynomial[t].forEach((each, j) => { sums[j] += term * each; });
    });
    basin.level = told.share / sums[0];
    bend = basin.level > 0 ? 1 / (told.reach * basin.level) : 0;
    let next = 1;
    const parts = [1, basin.level], pivots = [], factor = basin.cost.map(() => []);
    for (let i = 0; i < errors; i++) {
      for (let j = 0; j < i; j++) factor[i][j] = sums[next++];
      factor[i][i] = 1;
      pivots.push(1 / sums[next++]);
      for (let j = 0; j <= i; j++) {
        const entry = pivots.slice(0, j + 1).reduce((sum, pivot, l) => sum + factor[i][l] * factor[j][l] * pivot, 0);
        basin.cost[i][j] = basin.cost[j][i] = entry;
        parts.push(entry);
      }
    }
    const form = told.form[0].map((_, k) => parts.reduce((sum, part, p) => sum + part * told.form[p][k], 0));
    next = 0;
    metric = atTarget.map(() => atTarget.map(() => 0));
    for (let i = 0; i < features; i++) // Cholesky's decomposition of the form
      for (let j = 0; j <= i; j++) {
        let rest = form[next++];
        for (let l = 0; l < j; l++) rest -= metric[i][l] * metric[j][l];
        metric[i][j] = j === i ? Math.sqrt(rest) : rest / metric[j][j];
      }
    if (told.held) hold();
    ready = true;
    return inside;
  }

  // The input that holds the target, and the action cost and its slope there.
  function hold() {
    trim = [...trim];
    robot.trim(basin.target.map((each, i) => each + (shift ? shift[i] : 0)), parameters, trim);
    robot.action_cost(trim, one, first, second);
    [costAtTrim, slopeAtTrim] = [one[0], [...first]];
  }

  // Solution of m linear equations, each a row of coefficients with the right side at its end.
  function eliminated(rows) {
    for (let j = 0; j < m; j++)
      for (let r = j + 1; r < m; r++)
        for (let k = m; k >= j; k--) rows[r][k] -= (rows[r][j] / rows[j][j]) * rows[j][k];
    const solution = new Array(m);
    for (let j = m - 1; j >= 0; j--) {
      solution[j] = rows[j][m];
      for (let k = j + 1; k < m; k++) solution[j] -= rows[j][k] * solution[k];
      solution[j] /= rows[j][j];
    }
    return solution;
  }

  // Parameters and trim of the robot that it is the policy of, and the action cost and its slope there.
  function known() {
    return { theta: parameters, trim, slope: slopeAtTrim, cost: costAtTrim };
  }

  if (!told) return { policy, value, cost, known };
  ready = tell();
  return { policy, value, cost, known, tell };
}

// A size filled up to whole fours.
function fours(size) {
  return 4 * Math.ceil(size / 4);
}

// The weights of every member and layer, from base64 of float32: weights (in, out) row by row, zeros up to whole fours of
// rows, then biases.
function decoded(run) {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const places = new Uint8Array(128), text = run.weights.replace(/=+$/, "");
  for (let i = 0; i < 64; i++) places[digits.charCodeAt(i)] = i;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  for (let i = 0, k = 0, bits = 0, held = 0; i < text.length; i++) {
    held = ((held << 6) | places[text.charCodeAt(i)]) & 0xffffff;
    bits += 6;
    if (bits >= 8) bytes[k++] = (held >> (bits -= 8)) & 255;
  }
  const numbers = new DataView(bytes.buffer), all = [];
  let position = 0;
  const take = (count, size = count) => {
    const taken = new Float64Array(size);
    for (let i = 0; i < count; i++) taken[i] = numbers.getFloat32(4 * position++, true);
    return taken;
  };
  for (let i = 0; i < run.members; i++) {
    const layers = [];
    for (let l = 0; l + 1 < run.sizes.length; l++) {
      const [rows, columns] = run.sizes.slice(l, l + 2);
      layers.push({ weights: take(rows * columns, fours(rows) * columns), biases: take(columns) });
    }
    all.push(layers);
  }
  return all;
}
