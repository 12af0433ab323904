// The observer of one robot with encoders: an extended Kalman filter of its states, of a disturbance of every input and of
// chosen parameters. Formulas, names and references as in solver.observer; `run.observer` holds its numbers.
// confine(y): holds a state in the domain. target: of the present references. reset({ delay, noise, estimated, theta }):
// begins anew, with the delay of the drive in control periods, the deviations of the noise of positions, the estimated
// parameters and the first ones.
function makeObserver(robot, facts, rules, { counts, limits, bounds, shifts, drive, found, change, push, rolls }, confine, target) {
  const n = facts.states.length, m = facts.inputs.length, q = rules.position.length, p = facts.parameters.length;
  const rotations = (facts.rotations || []).map(({ coordinate }) => coordinate), size = n - rotations.length, pose = q - rotations.length, columns = size + m + p;
  const velocities = limits.slice(counts.length), period = 1 / facts.task.control_rate;
  const floats = (size) => new Float64Array(size), range = (size) => Array.from({ length: size }, (_, i) => i);
  const turned = (angle) => angle - 2 * Math.PI * Math.floor((angle + Math.PI) / (2 * Math.PI));
  const error = (to, from, i) => (facts.states[i].continuous ? turned(to[i] - from[i]) : to[i] - from[i]);
  const trim = facts.inputs.map((input) => input.trim), x = floats(n), a = floats(n), B = floats(n * m), other = floats(n);
  const slopes = [floats(n * n), floats(n * m * n), floats(n * p), floats(n * m * p)];
  const grows = (seconds) => 1 - Math.exp((-2 * period) / seconds);
  const spread = bounds.map(([low, high]) => (high - low) ** 2 / 12); // variances of the parameters
  const own = { x, parameters: floats(p), disturbance: floats(m), estimated: [], reset, estimate, upright, lean, shifted, compensate, sent };
  let apart, P, waiting, measured, unknown, added, largest, taken, steps, h;

  function reset({ delay, noise, estimated, theta }) {
    const walk = facts.inputs.map((input, k) => Math.min(range(p).reduce((sum, i) => sum + (estimated.includes(i) ? 0 : shifts[i][k]), drive[k]), input.limit));
    const slow = estimated.map((i) => spread[i]), at = facts.inputs.map((_, k) => walk[k] ** 2 / 3);
    measured = counts.map((count, i) => count ** 2 / 12 + noise[i] ** 2);
    unknown = [...measured, ...velocities.map((limit) => limit ** 2 / 3), ...at, ...slow];
    added = [...counts.map(() => 0), ...velocities.map((limit) => push ** 2 * period * limit ** 2), ...at.map((each) => each * grows(found)), ...slow.map((each) => each * grows(change))];
    [largest, taken, apart] = [walk, 0, null];
    steps = rules.steps[estimated.length ? 1 : 0]; // the robot of the estimates may be any within the bounds
    h = period / steps;
    waiting = Array.from({ length: delay }, () => trim);
    own.estimated = [...estimated];
    own.parameters.set(theta);
    own.disturbance.fill(0);
  }
  // Errors of the first `count` entries of a state from those of another: three small turns of a rotation.
  function errors(to, from, count) {
    const result = [];
    for (let i = 0; i < count; i++) {
      if (!rotations.includes(i)) { result.push(error(to, from, i)); continue; }
      const [w, ...v] = between(from, to, i);
      result.push(...v.map((each) => (w < 0 ? -2 : 2) * each));
      i += 3;
    }
    return result;
  }
  // Moves y by errors. A rotation is moved by half a turn at most.
  function shifted(y, e) {
    for (let i = 0, k = 0; i < n; i++, k++) {
      if (!rotations.includes(i)) { y[i] += e[k]; continue; }
      const long = Math.max(1, Math.hypot(e[k], e[k + 1], e[k + 2]) / 2), half = [0, 1, 2].map((a) => e[k + a] / 2 / long);
      const w = Math.sqrt(Math.max(0, 1 - half.reduce((sum, each) => sum + each ** 2, 0)));
      y.set(quaternionProduct(y.slice(i, i + 4), [w, ...half]), i);
      i += 3;
      k += 2;
    }
  }
  // Calls plain(i, k) for every state i with the error k, and turns(i, k, K) for a rotation with its products with x, y and z.
  function each(y, plain, turns) {
    for (let i = 0, k = 0; i < n; i++, k++) {
      if (!rotations.includes(i)) { plain(i, k); continue; }
      turns(i, k, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]].map((unit) => quaternionProduct(y.slice(i, i + 4), unit)));
      i += 3;
      k += 2;
    }
  }
  // dx/de of the errors e from y, with zeros for inputs and parameters; and derivatives of the errors from those of y.
  function inward(y) {
    const D = range(n).map(() => floats(columns));
    each(y, (i, k) => { D[i][k] = 1; }, (i, k, K) => K.forEach((unit, a) => unit.forEach((entry, j) => { D[i + j][k + a] = entry / 2; })));
    return D;
  }
  function outward(y, D) {
    const rows = [];
    each(y, (i) => rows.push(D[i]), (i, k, K) => rows.push(...K.map((unit) => D[i].map((_, c) => 2 * unit.reduce((sum, entry, j) => sum + entry * D[i + j][c], 0)))));
    return rows;
  }
  // dx/dt, and of the derivatives D of x by the first error, the input and the parameters.
  function rates(y, u, D, theta = own.parameters) {
    if (!D) robot.affine_dynamics(y, theta, a, B);
    else robot.jacobians(y, theta, a, B, ...slopes);
    const [da, dB, atheta, Btheta] = slopes, v = Float64Array.from(a, (each, i) => u.reduce((sum, input, k) => sum + B[i * m + k] * input, each));
    if (!D) return { v };
    const E = range(n).map((i) => {
      const row = floats(columns);
      for (let j = 0; j < n; j++) {
        let slope = da[i * n + j];
        for (let k = 0; k < m; k++) slope += dB[(i * m + k) * n + j] * u[k];
        for (let c = 0; c < columns; c++) row[c] += slope * D[j][c];
      }
      for (let k = 0; k < m; k++) row[size + k] += B[i * m + k];
      for (let e = 0; e < p; e++) {
        row[size + m + e] += atheta[i * p + e];
        for (let k = 0; k < m; k++) row[size + m + e] += Btheta[(i * m + k) * p + e] * u[k];
      }
      return row;
    });
    return { v, E };
  }
  // Moves y on by a control period under u plus the disturbance; returns the derivatives at its end if they are wanted.
  function move(y, sent, wanted) {
    const u = sent.map((each, k) => each + own.disturbance[k]);
    let D = wanted ? inward(y) : null;
    for (let step = 0; step < steps; step++) {
      const stages = [];
      for (const share of [0, 0.5, 0.5, 1]) {
        const last = stages.at(-1);
        stages.push(rates(y.map((each, i) => each + (last ? share * h * last.v[i] : 0)), u, D?.map((row, i) => row.map((each, c) => each + (last ? share * h * last.E[i][c] : 0)))));
      }
      const sum = (of) => (h / 6) * (of(stages[0]) + 2 * of(stages[1]) + 2 * of(stages[2]) + of(stages[3]));
      y.set(y.map((each, i) => each + sum(({ v }) => v[i])));
      D = D?.map((row, i) => row.map((each, c) => each + sum(({ E }) => E[i][c])));
      confine(y);
    }
    return D && outward(y, D);
  }
  function begin(y) {
    x.set(range(n).map((i) => (i < q ? y[i] : facts.states[i].kind === "internal" ? facts.task.target[i] : 0)));
    confine(x);
    P = unknown.map((each, i) => unknown.map((_, j) => (i === j ? each : 0)));
  }
  // A period under the input u, corrected by the positions y at its end.
  function advance(u, y) {
    const about = Float64Array.from(x), { estimated } = own, all = unknown.length;
    if (taken === 1 && !rolls) { // a linearisation about rest is wrong by the square of the velocities
      errors(y, x, q).forEach((each, i) => { about[q + i] = each / period; });
      confine(about);
    }
    const ahead = Float64Array.from(about), by = move(ahead, u, true);
    const apart = errors(x, about, n);
    shifted(ahead, by.map((row) => apart.reduce((sum, each, j) => sum + row[j] * each, 0)));
    const chosen = [...range(size + m), ...estimated.map((i) => size + m + i)], innovation = errors(y, ahead, q);
    const S = range(all).map((i) => (i < size ? chosen.map((c) => by[i][c]) : range(all).map((j) => Number(i === j))));
    const SP = S.map((row) => range(all).map((j) => row.reduce((sum, each, k) => sum + each * P[k][j], 0)));
    const next = SP.map((row) => S.map((to) => row.reduce((sum, each, k) => sum + each * to[k], 0)));
    // A walk between reflecting bounds: at the variance of a uniform distribution, it adds nothing.
    for (let i = 0; i < all; i++) next[i][i] += added[i] * (i < size ? 1 : Math.max(1 - P[i][i] / unknown[i], 0));
    for (let e = 0; e < p; e++)
      if (!estimated.includes(e)) for (let i = 0; i < size; i++) for (let j = 0; j < size; j++) next[i][j] += by[i][size + m + e] * by[j][size + m + e] * spread[e];
    P = next;
    const correction = floats(all);
    for (let i = 0; i < pose; i++) { // one after the other, because their errors are independent
      const column = P.map((row) => row[i]), total = column[i] + measured[i], left = innovation[i] - correction[i];
      for (let j = 0; j < all; j++) correction[j] += (column[j] / total) * left;
      P = P.map((row, j) => row.map((each, k) => each - (column[j] / total) * column[k]));
    }
    P = P.map((row, j) => row.map((each, k) => 0.5 * (each + P[k][j])));
    x.set(ahead);
    shifted(x, correction);
    confine(x);
    for (let k = 0; k < m; k++) own.disturbance[k] = Math.min(Math.max(own.disturbance[k] + correction[size + k], -largest[k]), largest[k]);
    estimated.forEach((i, e) => { own.parameters[i] = Math.min(Math.max(own.parameters[i] + correction[size + m + e], bounds[i][0]), bounds[i][1]); });
  }
  // Fills state, the one at the time when the next input acts, from the positions y.
  function estimate(y, state) {
    if (taken === 0) begin(y);
    else advance(waiting.shift(), y);
    taken++;
    state.set(x);
    for (const u of waiting) move(state, u, false);
  }
  // Errors from the target at which a robot with theta can rest, zero where an input holds the target. near: those of a
  // theta that differs little.
  function lean(target, theta, near) {
    const u = [...trim];
    let errors = near || floats(size);
    for (let left = near ? 1 : rules.newton; left > 0; left--) {
      const y = Float64Array.from(target);
      shifted(y, errors);
      const scaled = () => {
        const { v, E } = rates(y, u, inward(y), theta), rows = outward(y, E.map((row, i) => [...row, v[i]]));
        return rules.held.map((k) => rows[k].map((each) => each / limits[k]));
      };
      const gain = (rows) => rows.map((row) => row.slice(size, size + m));
      let rows = scaled();
      least(gain(rows), rows.map((row) => [row.at(-1)]), ROUNDING).forEach(([each], k) => { u[k] -= each; });
      rows = scaled();
      const by = rows.map((row) => [...range(pose).map((k) => row[k] * limits[k]), row.at(-1)]), acts = least(gain(rows), by, ROUNDING);
      const unheld = by.map((row, r) => row.map((each, c) => each - acts.reduce((sum, act, k) => sum + rows[r][size + k] * act[c], 0)));
      const wanted = unheld.map((row) => [range(pose).reduce((sum, k) => sum + (row[k] * errors[k]) / limits[k], -row[pose])]);
      errors = floats(size);
      least(unheld.map((row) => row.slice(0, pose)), wanted, rules.redundant ** 2).forEach(([each], k) => { errors[k] = each * limits[k]; });
    }
    return errors;
  }
  // Changes the state y for the policy: less the lean that the estimated parameters need at rest.
  function upright(y) {
    if (!own.estimated.some((i) => rules.leaning.includes(i))) return;
    apart = lean(target, own.parameters, apart);
    shifted(y, apart.map((each) => -each));
    confine(y);
  }
  // Changes u so that the policy's input acts. known: parameters and trim of the robot that the policy knows; the input
  // shifts by what the estimates change beside it at the target, in least squares in units of the state limits.
  function compensate(u, known) {
    const rows = own.estimated.length ? shift(known) : null;
    facts.inputs.forEach(({ limit, middle = 0 }, k) => {
      u[k] = Math.min(Math.max(u[k] - own.disturbance[k] - (rows ? rows[k] : 0), middle - limit), middle + limit);
    });
  }
  function shift({ theta, trim }) {
    const at = Float64Array.from(target);
    robot.dynamics(at, trim, theta, other);
    if (apart) shifted(at, apart);
    robot.affine_dynamics(at, own.parameters, a, B);
    const gain = facts.states.map(({ limit }, i) => range(m).map((k) => B[i * m + k] / limit));
    const changed = facts.states.map(({ limit }, i) => [(trim.reduce((sum, input, k) => sum + B[i * m + k] * input, a[i]) - other[i]) / limit]);
    return least(gain, changed, ROUNDING).map(([each]) => each);
  }
  function sent(u) {
    waiting.push(Float64Array.from(u));
  }
  return own;
}
const ROUNDING = 1e-14;

// Least squares X (k, c) of G X = R, (r, k) and (r, c). What G hardly changes stays near zero: directions below the root of
// `share` of the largest.
function least(G, R, share) {
  const k = G.length ? G[0].length : 0, range = Array.from({ length: k }, (_, i) => i), product = (i, M, j) => G.reduce((sum, row, r) => sum + row[i] * M[r][j], 0);
  const most = Math.max(0, ...range.map((i) => product(i, G, i))) || 1;
  const rows = range.map((i) => [...range.map((j) => product(i, G, j) + (i === j ? share * most : 0)), ...R[0].map((_, j) => product(i, R, j))]);
  for (const i of range) { // positive definite: pivots need no exchange
    rows[i] = rows[i].map((each) => each / rows[i][i]);
    rows.forEach((row, l) => { if (l !== i) rows[l] = row.map((each, j) => each - row[i] * rows[i][j]); });
  }
  return rows.map((row) => row.slice(k));
}
