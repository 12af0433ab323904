// One robot in closed loop, a control period at a time: as solver.problem.integrator and solver.plants.outcome.
// conditions: { theta, delay (control periods), noise and stiction (multiples of the usual), seed, knows (whether a policy
// that can be told parameters is told those of theta, or else the nominal ones), finds (whether the policy gets the state
// from an observer of encoders instead, which also estimates what theta changes; a policy that can be told it is told that) }.
function makeSimulation(robot, facts, rules, run) {
  const n = facts.states.length, m = facts.inputs.length, q = rules.position.length, { nominal } = run;
  const { policy, value, cost: costOf, tell, known: ofPolicy } = makePolicy(robot, facts, run);
  const period = 1 / facts.task.control_rate;
  const floats = (size) => new Float64Array(size);
  const x = floats(n), u = floats(m), given = floats(m), seen = floats(n), level = floats(n), wrapped = floats(n), cost = floats(1);
  const k = [floats(n), floats(n), floats(n), floats(n)], at = [x, floats(n), floats(n), floats(n)];
  const acting = floats(m), friction = floats(m), a = floats(n), atTarget = floats(n), B = floats(n * m), dq = floats(n);
  const wanted = floats(m), turns = facts.states.map((state) => state.continuous), limits = facts.states.map((state) => state.limit);
  const target = [...facts.task.target];
  const judged = facts.states.map((state) => !facts.task.free.includes(state.name));
  robot.affine_dynamics(target, nominal, atTarget, B);
  const rotations = facts.rotations || [], turning = facts.states.map(() => false);
  for (const each of rotations) turning.fill(true, each.coordinate, each.coordinate + 4);
  // Of every error of a state: the index of its state; -1 - index of the quaternion, three times, for a rotation.
  const plain = facts.states.flatMap((_, i) => (!turning[i] ? [i] : rotations.some(({ coordinate }) => coordinate === i) ? [-1 - i, -1 - i, -1 - i] : []));
  const angleOf = ({ coordinate }, y) => {
    const [w, ...v] = between(target, y, coordinate);
    return 2 * Math.atan2(Math.hypot(...v), Math.abs(w));
  };
  const turned = (angle) => angle - 2 * Math.PI * Math.floor((angle + Math.PI) / (2 * Math.PI));
  const all = { x, u, seen, value, policy, period, time: 0, result: 0, good: 0, hit: false, reset, step, success, confine, know, target, targetOf, followed };
  const observer = run.observer && makeObserver(robot, facts, rules, run.observer, confine, target), references = facts.task.references || [];
  all.observer = observer;
  const trim = facts.inputs.map((input) => input.trim);
  let waiting = [], random = Math.random, known = "", observes = "", priced = nominal, rests, leans = {};

  function confine(y) {
    for (let i = 0; i < n; i++)
      if (!turning[i]) y[i] = turns[i] ? turned(y[i]) : Math.min(Math.max(y[i], -limits[i]), limits[i]);
    for (const rotation of rotations) {
      normaliseRotation(y, rotation.coordinate);
      const [w, ...v] = between(target, y, rotation.coordinate), most = rotation.limit / 2;
      if (Math.abs(w) >= Math.cos(most) || most >= Math.PI / 2) continue;
      const share = Math.sin(most) / Math.hypot(...v), near = [Math.sign(w || 1) * Math.cos(most), ...v.map((each) => share * each)];
      y.set(quaternionProduct(target.slice(rotation.coordinate, rotation.coordinate + 4), near), rotation.coordinate);
    }
  }
  // What the policy is told, and the parameters that the state cost has: only what it can be told differs from the nominal.
  function know({ theta, knows, finds }) {
    const now = `${Boolean(knows)} ${Boolean(finds)} ${theta}`;
    if (!tell || now === known) return;
    known = now;
    tellOf(theta);
    rests = ofPolicy(); // the cost is measured from the trim of the robot, and not of its estimate
    tellOf(theta, (name) => (knows && !finds) || refers(name));
    priced = [...nominal];
    for (const { place } of run.told.context) priced[place] = theta[place];
    target.splice(0, n, ...targetOf(theta, followed({ knows, finds })));
    robot.affine_dynamics(target, nominal, atTarget, B);
  }
  // What target and starts follow besides references: states of first order that hold the robot which the policy knows.
  function followed({ knows, finds }) {
    return knows || finds ? facts.task.followed.filter(({ name }) => run.told?.context.some((each) => each.name === name)) : [];
  }
  // The target of the references, and of what is followed.
  function targetOf(theta, follows = []) {
    const moved = [...facts.task.target];
    for (const { name, target: along } of [...references, ...follows]) {
      const place = facts.parameters.findIndex((parameter) => parameter.name === name), change = theta[place] - nominal[place];
      along.forEach((each, s) => { moved[s] += each * change; });
    }
    return moved;
  }
  // The lean of a robot with theta: it changes with the sliders and the target only.
  function leanOf(theta) {
    const now = `${theta} ${target}`;
    if (leans.of !== now) leans = { of: now, apart: observer.lean(target, theta) };
    return leans.apart;
  }
  function refers(name) {
    return references.some((reference) => reference.name === name);
  }
  // The observer's estimate of the state, to `seen`, from its positions: it begins anew when there is another to make.
  function observe(conditions) {
    const { counts } = run.observer, first = prepare(conditions);
    first.forEach((value, i) => { if (!observer.estimated.includes(i)) observer.parameters[i] = value; });
    observer.estimate(encoded(counts), seen);
    observer.upright(seen);
    if (tell) tellOf(observer.parameters);
  }
  // Tells the policy those of theta that it can be told and that are chosen.
  function tellOf(theta, chosen = () => true) {
    tell(Object.fromEntries(run.told.context.filter(({ name }) => chosen(name)).map(({ name, place }) => [name, theta[place]])));
  }
  // Whole counts of the positions in `seen`: of a rotation, of the entries of its vector.
  function encoded(counts) {
    const y = seen.slice(0, q), rounded = (value, k) => counts[k] * Math.round(value / counts[k]);
    plain.slice(0, counts.length).forEach((i, k) => { if (i >= 0) y[i] = rounded(seen[i], k); });
    for (const { coordinate } of rotations) {
      const [w, ...v] = seen.slice(coordinate, coordinate + 4), long = Math.hypot(...v), first = plain.indexOf(-1 - coordinate);
      const share = (w < 0 ? -1 : 1) * (long > 1e-6 ? (2 * Math.atan2(long, Math.abs(w))) / long : 2);
      y.set(turnBy(v.map((each, a) => rounded(share * each, first + a))), coordinate);
    }
    return y;
  }
  function prepare({ theta, delay, noise }) {
    const isTold = (i) => run.told?.context.some(({ place }) => place === i);
    const estimated = run.observer.observable.filter((i) => isTold(i) || theta[i] !== nominal[i]);
    const first = nominal.map((value, i) => (tell && refers(facts.parameters[i].name) ? theta[i] : value));
    const now = `${delay} ${noise} ${estimated}`;
    if (now !== observes) observer.reset({ delay, noise: run.observer.counts.map((_, k) => noise * rules.noise[k]), estimated, theta: first });
    observes = now;
    return first;
  }
  function reset(start, conditions) {
    know(conditions);
    observes = "";
    if (observer && conditions.finds) prepare(conditions);
    x.set(start);
    u.set(trim);
    waiting = [];
    random = normals(conditions.seed);
    Object.assign(all, { time: 0, result: 0, good: 0, hit: false });
    judge(conditions.theta);
  }
  function stateCost(y) {
    wrapped.set(y);
    for (const i of rules.unwrapped) wrapped[i] = turned(wrapped[i]);
    robot.state_cost(wrapped, priced, cost, dq);
    return cost[0];
  }
  // Near the target and at rest, away from all limits: counted in states, one a control period. Where no input holds a robot
  // with theta at the target, near the pose in which it can rest.
  function judge(theta) {
    let near = true, stopped = false;
    for (let i = 0; i < n; i++) stopped ||= !turns[i] && !turning[i] && Math.abs(x[i]) >= limits[i];
    for (const rotation of rotations) stopped ||= rotation.limit < Math.PI && angleOf(rotation, x) >= rotation.limit - 1e-3;
    level.set(x);
    if (rules.leaning.length) observer.shifted(level, leanOf(theta).map((each) => -each));
    robot.affine_dynamics(level, nominal, a, B);
    for (const rotation of rotations) {
      if (judged[rotation.coordinate]) near &&= angleOf(rotation, level) <= rules.position[rotation.coordinate];
      for (let i = rotation.speed; i < rotation.speed + 3; i++)
        if (judged[i]) near &&= Math.abs(level[i] - target[i]) <= rules.rate[i - q];
    }
    for (let i = 0, v = q; i < q; i++, v++) {
      if (turning[i]) {
        i += 3;
        v += 2;
        continue;
      }
      let away = Math.abs(level[i] - target[i]);
      if (turns[i]) away = Math.min(away, Math.abs(2 * Math.PI - away));
      if (judged[i]) near &&= away <= rules.position[i];
      if (judged[v] && !rules.uneven) near &&= Math.abs(a[i] - atTarget[i]) <= rules.rate[v - q];
    }
    if (rules.uneven) // speeds that are not the rates of coordinates
      rules.rate.forEach((most, v) => { if (judged[q + v]) near &&= Math.abs(level[q + v] - target[q + v]) <= most; });
    all.hit ||= stopped && all.time > 0;
    all.good = near && !stopped ? all.good + 1 : 0;
  }
  function success() {
    return all.good >= rules.settled;
  }
  // Adds to the acting input what brings each driven joint to rest within h seconds, limited: plants.harsh.stiction.
  function stick(theta, level, h) {
    const { rates, sweeps, breakaway, coulomb, resting } = rules.stiction;
    robot.affine_dynamics(x, theta, a, B);
    friction.fill(0);
    for (let i = 0; i < m; i++) {
      wanted[i] = x[rates[i]] / h + a[rates[i]];
      for (let j = 0; j < m; j++) wanted[i] += B[rates[i] * m + j] * given[j];
    }
    for (let sweep = 0; sweep < sweeps; sweep++)
      for (let i = 0; i < m; i++) {
        const row = rates[i], own = B[row * m + i], most = breakaway[i] * level;
        let rest = wanted[i];
        for (let j = 0; j < m; j++) if (j !== i) rest += B[row * m + j] * friction[j];
        const needed = own === 0 ? 0 : -rest / own, sticks = Math.abs(x[row]) < resting[i] && Math.abs(needed) <= most;
        friction[i] = sticks ? needed : Math.min(Math.max(needed, -coulomb * most), coulomb * most);
      }
    for (let j = 0; j < m; j++) acting[j] += friction[j];
  }
  // One Runge-Kutta step of the state of h seconds; returns the mean of the state cost over it.
  function integrate(theta, h) {
    robot.dynamics(x, acting, theta, k[0]);
    for (let s = 1; s < 4; s++) {
      const share = s === 3 ? h : h / 2;
      for (let i = 0; i < n; i++) at[s][i] = x[i] + share * k[s - 1][i];
      robot.dynamics(at[s], acting, theta, k[s]);
    }
    const mean = (stateCost(x) + stateCost(at[3]) + 2 * (stateCost(at[1]) + stateCost(at[2]))) / 6;
    for (let i = 0; i < n; i++) x[i] += (h / 6) * (k[0][i] + k[3][i] + 2 * (k[1][i] + k[2][i]));
    confine(x);
    return mean;
  }
  function step(conditions) {
    know(conditions);
    seen.set(x);
    if (conditions.noise > 0) {
      const noisy = rules.noise.map((each) => conditions.noise * each * random());
      plain.forEach((i, k) => { if (i >= 0) seen[i] += noisy[k]; });
      for (const { coordinate: i } of rotations) {
        const first = plain.indexOf(-1 - i);
        seen.set(quaternionProduct(seen.slice(i, i + 4), turnBy(noisy.slice(first, first + 3))), i);
      }
      for (let i = 0; i < n; i++) if (turns[i]) seen[i] = turned(seen[i]);
    }
    const finds = observer && conditions.finds;
    if (finds) observe(conditions);
    else observes = "";
    let paid = policy(seen, u);
    if (finds) {
      observer.compensate(u, ofPolicy());
      observer.sent(u);
      paid = costOf(u, rests);
    }
    all.result -= paid * period;
    waiting.push(Float64Array.from(u));
    while (waiting.length <= conditions.delay) waiting.unshift(finds ? trim : ofPolicy().trim);
    while (waiting.length > conditions.delay + 1) waiting.shift();
    given.set(waiting.shift());
    const sticky = rules.stiction && conditions.stiction > 0;
    const [usual, changed] = rules.steps, least = conditions.theta.every((each, i) => each === nominal[i]) ? usual : changed;
    const count = sticky ? Math.max(rules.stiction.steps, least) : least, h = period / count;
    let mean = 0;
    for (let i = 0; i < count; i++) {
      acting.set(given);
      if (sticky) stick(conditions.theta, conditions.stiction, h);
      mean += integrate(conditions.theta, h);
    }
    all.result -= mean * h;
    all.time += period;
    judge(conditions.theta);
  }
  return all;
}

// Numbers of a standard normal distribution, the same for the same seed.
function normals(seed) {
  let word = seed >>> 0;
  const uniform = () => {
    word = (word + 0x6d2b79f5) | 0;
    let mixed = Math.imul(word ^ (word >>> 15), 1 | word);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

// The unit quaternion of a rotation vector.
function turnBy(vector) {
  const angle = Math.hypot(...vector);
  return [Math.cos(angle / 2), ...vector.map((each) => each * (angle > 1e-6 ? Math.sin(angle / 2) / angle : 0.5))];
}

// The start number `index` of the task's own distribution: as solver.problem.sample_starts. theta: parameters, with
// which the references and what it follows move it.
function drawnStart(facts, index, theta, follows = []) {
  const random = normals(1000 + index), { start_mean: mean, start_deviation: deviation, references } = facts.task;
  const start = mean.map((each, i) => each + deviation[i] * random());
  for (const { coordinate: i } of facts.rotations) {
    const draw = [random(), random(), random(), random()], vector = draw.slice(1).map((each) => deviation[i] * each);
    start.splice(i, 4, ...(deviation[i] >= rules.uniform ? draw : quaternionProduct(mean.slice(i, i + 4), turnBy(vector))));
    normaliseRotation(start, i);
  }
  for (const { name, start: along } of [...references, ...follows]) {
    const place = facts.parameters.findIndex((parameter) => parameter.name === name), change = theta[place] - facts.parameters[place].value;
    along.forEach((each, s) => { start[s] += each * change; });
  }
  return start;
}
