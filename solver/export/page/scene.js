// Colours of the style, as this page shows them now; kept until light changes to dark.
const probe = element("i"), paints = new Map();
document.body.append(probe);
function paint(name) {
  if (!paints.has(name)) {
    probe.style.color = `var(--${name})`;
    paints.set(name, getComputedStyle(probe).color);
  }
  return paints.get(name);
}
// The camera holds what the joints reach from the target and from where every robot is.
const reached = new Map();
function reach(x) {
  const key = [...Array.from(x.slice(0, q), (value, i) => (turning[i] ? 0 : Math.round(20 * value))), conditions.theta, orbit.yaw, orbit.pitch].join();
  if (!reached.has(key)) {
    if (reached.size > 300) reached.clear();
    let box = [Infinity, -Infinity, Infinity, -Infinity];
    if (solid) {
      const points = spacePoints(x), most = Math.max(...solid.corners.map((p) => Math.hypot(...p)));
      const middle = seen([0, 1, 2].map((k) => points.reduce((sum, p) => sum + p[k] / points.length, 0)));
      box = [middle[0] - most, middle[0] + most, middle[1] - most, middle[1] + most];
    } else for (let k = 0; k < 64; k++) enclose(box, planePoints(posed(x, k)));
    reached.set(key, box);
  }
  return reached.get(key);
}
function enclose(box, points) {
  for (const [across, up] of points) {
    box[0] = Math.min(box[0], across); box[1] = Math.max(box[1], across);
    box[2] = Math.min(box[2], up); box[3] = Math.max(box[3], up);
  }
}
function frameView(atOnce) {
  const own = reach(facts.task.target), size = Math.max(own[1] - own[0], own[3] - own[2]), box = [...own];
  for (const { simulation } of panes) {
    const each = reach(simulation.x);
    enclose(box, [[each[0], each[2]], [each[1], each[3]]]);
  }
  const wanted = box.map((each, i) => each + (i % 2 ? 1 : -1) * (solid ? 0.3 : 0.1) * size);
  view = view && !atOnce ? view.map((each, i) => each + 0.1 * (wanted[i] - each)) : wanted;
  for (const { simulation } of panes) enclose(view, [...pointsAt(simulation.x), ...pointsAt(simulation.target)]); // before they are drawn
  return size;
}
// How a picture in metres lies on its canvas.
function placed(width, height) {
  const [left, right, bottom, top] = view;
  const scale = Math.min(width / (right - left), height / (top - bottom)) * 0.94;
  const x0 = width / 2 - (scale * (left + right)) / 2, y0 = height / 2 + (scale * (bottom + top)) / 2;
  return { scale, to: (p) => [x0 + scale * p[0], y0 - scale * p[1]], from: (p) => [(p[0] - x0) / scale, (y0 - p[1]) / scale] };
}

const references = (facts.task.references ?? []).map(({ name }) => runs.flatMap((run) => run.told?.context ?? []).find((each) => each.name === name)).filter(Boolean);
const panes = runs.map((run, index) => {
  const simulation = makeSimulation(robot, facts, rules, run);
  const canvas = element("canvas", { className: "scene", tabIndex: 0 }), status = element("div", { className: "status" }), finds = element("div", { className: "status finds" });
  const outcome = element("span", { className: "outcome" }), key = element("span", { className: "key" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${facts.name} under ${run.label}`);
  key.style.background = `var(--policy-${index + 1})`;
  $("panes").append(element("figure", {}, element("figcaption", {}, element("b", {}, key, run.label), outcome), canvas, status, finds));
  const pane = { run, simulation, canvas, status, finds, found: [], outcome, name: `policy-${index + 1}`, dash: dashes[index], history: [], grip: null };
  Object.defineProperty(pane, "colour", { get: () => paint(pane.name) });
  canvas.onpointerdown = (event) => grip(pane, event);
  canvas.onpointermove = (event) => moved(pane, event);
  canvas.onpointerup = canvas.onpointercancel = () => released(pane);
  return pane;
});
const panesShape = (() => { // how the pictures lie beside each other: a wide one has its own row on a phone
  const [left, right, bottom, top] = reach(facts.task.target), ratio = Math.min(Math.max((top - bottom) / (right - left), 0.55), 1.05);
  $("panes").classList.toggle("wide", ratio < 0.8 || panes.length === 1);
  return ratio;
})();

function pointer(pane, event) {
  const box = pane.canvas.getBoundingClientRect();
  return placed(box.width, box.height).from([event.clientX - box.left, event.clientY - box.top]);
}
// The nearest point is held; far from a body in space, the camera is.
function grip(pane, event) {
  const at = pointer(pane, event), points = pointsAt(pane.simulation.x);
  const distance = (p) => Math.hypot(p[0] - at[0], p[1] - at[1]);
  const index = points.reduce((best, p, i) => (distance(p) < distance(points[best]) ? i : best), 0);
  const { scale } = placed(pane.canvas.clientWidth, pane.canvas.clientHeight);
  const ghost = pointsAt(pane.simulation.target).map(distance), goal = ghost.indexOf(Math.min(...ghost));
  const held = references.length && (drag === "goal" || (scale * ghost[goal] < 30 && ghost[goal] < 0.5 * distance(points[index])));
  pane.canvas.setPointerCapture(event.pointerId);
  pane.grip = { index: held ? goal : index, goal: held, now: at, orbits: !held && Boolean(solid) && scale * distance(points[index]) > 40, from: [event.clientX, event.clientY] };
}
function moved(pane, event) {
  if (!pane.grip) return;
  if (pane.grip.orbits) {
    orbit.yaw -= (event.clientX - pane.grip.from[0]) / 150;
    orbit.pitch = Math.min(Math.max(orbit.pitch + (event.clientY - pane.grip.from[1]) / 150, -1.5), 1.5);
    pane.grip.from = [event.clientX, event.clientY];
    return;
  }
  pane.grip.now = pointer(pane, event);
  if (pane.grip.goal) moveGoal(pane);
  else if (drag === "place") place(pane.grip);
}
// The references, within what the policies are told, with which a point of the target is nearest to the pointer.
function moveGoal({ simulation, grip: { index, now } }) {
  const pointOf = (theta) => pointsAt(simulation.targetOf(theta))[index];
  for (let i = 0; i < 10; i++) {
    const here = pointOf(conditions.theta);
    const J = references.map(({ place, lower, upper }) => {
      const theta = [...conditions.theta], step = 1e-5 * (upper - lower);
      theta[place] += step;
      return pointOf(theta).map((each, k) => (each - here[k]) / step);
    });
    leastChange(J, [now[0] - here[0], now[1] - here[1]]).forEach((change, k) => {
      const { place, lower, upper } = references[k];
      conditions.theta[place] = Math.min(Math.max(conditions.theta[place] + change, lower), upper);
    });
  }
  refresh();
  writeAddress();
}
function place({ index, now }) {
  const y = Float64Array.from(start);
  const missing = (z) => { const at = pointsAt(z)[index]; return [now[0] - at[0], now[1] - at[1]]; };
  for (let i = 0, share = 1; i < 30; i++) { // a step that leads further away is tried again, half as long
    const wanted = missing(y), there = Float64Array.from(y);
    along(y, speedsFor(y, index, wanted)).forEach((dq, j) => { there[j] += share * dq; });
    for (const { coordinate } of rotations) normaliseRotation(there, coordinate);
    if (Math.hypot(...missing(there)) < Math.hypot(...wanted)) y.set(there);
    else share /= 2;
  }
  panes[0].simulation.confine(y);
  start = Array.from(y, (value, i) => (facts.states[i].kind === "velocity" ? 0 : value));
  reset();
  refresh();
}
// A push gives the point the speed of the arrow, an arrow's length in 0.2 s; every run gets the same change of speeds.
// A robot without speeds is moved by the arrow itself.
function released(pane) {
  if (pane.grip?.goal && families) maps();
  else if (pane.grip && !pane.grip.orbits && drag === "push") {
    const x = pane.simulation.x, { index, now } = pane.grip, at = pointsAt(x)[index], seconds = speeding ? 0.2 : 1;
    push(speedsFor(x, index, [(now[0] - at[0]) / seconds, (now[1] - at[1]) / seconds]));
  }
  pane.grip = null;
}
function push(speeds) {
  const made = { at: Math.round(panes[0].simulation.time * facts.task.control_rate), speeds: [...speeds], done: false };
  pushes.push(made);
  if (pushes.length > MOST_PUSHES) pushes.shift();
  give(made);
  writeAddress();
}
function give(made) {
  made.done = true;
  for (const { simulation } of panes) {
    made.speeds.forEach((change, j) => { simulation.x[pushedFrom + j] += change; });
    simulation.confine(simulation.x);
  }
}
// Back to the start. `again` gives the pushes of the address at their times once more.
function reset(again = false) {
  pushes = again ? pushes.map((each) => ({ ...each, done: false })) : [];
  for (const pane of panes) {
    const from = Float64Array.from(start);
    pane.simulation.confine(from);
    pane.simulation.reset(from, conditions);
    pane.history = [];
  }
  writeAddress();
  draw(true);
}
function advance() {
  const now = Math.round(panes[0].simulation.time * facts.task.control_rate);
  for (const each of pushes) if (!each.done && each.at <= now) give(each);
  for (const { simulation, history } of panes) {
    simulation.step(conditions);
    history.push([simulation.time, ...simulation.x, ...simulation.u, simulation.result]);
    if (history.length > 2 * steps) history.shift();
  }
}

// From the canvas's context: strokes and fills of the robot's body.
function strokePath(context, points, close = false) {
  context.beginPath();
  points.forEach((p, i) => context[i ? "lineTo" : "moveTo"](p[0], p[1]));
  if (close) context.closePath();
}
function arrow(context, from, angle, length, width = 3) {
  const end = [from[0] + length * Math.cos(angle), from[1] + length * Math.sin(angle)];
  context.lineWidth = width;
  strokePath(context, [from, end]);
  context.stroke();
  head(context, end, angle, Math.min(10, 4 + length / 4));
}
function head(context, [x, y], angle, size) {
  strokePath(context, [[1, 0], [-0.5, 0.7], [-0.5, -0.7]].map(([a, b]) => [x + size * (a * Math.cos(angle) - b * Math.sin(angle)), y + size * (a * Math.sin(angle) + b * Math.cos(angle))]), true);
  context.fill();
}
// What does not move: posts and rails as they are drawn, and hatched ground below every fixed joint.
function drawGround(context, to, thick) {
  const rest = pointsAt(facts.task.target).map(to);
  context.strokeStyle = context.fillStyle = paint("soft");
  context.lineCap = "round"; context.lineWidth = Math.max(2, thick / 3);
  for (const [a, b] of shape.still) { strokePath(context, [rest[a], rest[b]]); context.stroke(); }
  const ends = new Map(shape.still.flat().map((i) => [i, shape.still.flat().filter((each) => each === i).length]));
  const feet = shape.fixed.filter((i) => !ends.has(i)); // a joint on a post stands on the post's foot
  const posts = shape.still.filter(([a, b]) => Math.abs(rest[a][0] - rest[b][0]) < Math.abs(rest[a][1] - rest[b][1]));
  for (const [a, b] of posts) feet.push(rest[a][1] > rest[b][1] ? a : b);
  const beam = !feet.length && !shape.still.length && !solid && shape.sticks.find(([a, b]) => middleRests(a, b));
  const places = beam ? [[0, 1].map((k) => (rest[beam[0]][k] + rest[beam[1]][k]) / 2)] : feet.map((i) => rest[i]);
  for (const [x, y] of places) {
    const size = 1.1 * thick + 3, base = y + 1.3 * size;
    strokePath(context, [[x, y], [x - 0.8 * size, base], [x + 0.8 * size, base]], true);
    context.globalAlpha = 0.35; context.fill(); context.globalAlpha = 1;
    context.lineWidth = 1.5;
    strokePath(context, [[x - 1.6 * size, base], [x + 1.6 * size, base]]); context.stroke();
    for (let k = -3; k <= 3; k++) {
      strokePath(context, [[x + (0.45 * k + 0.2) * size, base], [x + (0.45 * k - 0.1) * size, base + 0.35 * size]]);
      context.lineWidth = 1; context.stroke();
    }
  }
}
function middleRests(a, b) {
  const middles = [0, 1, 2].map((k) => { const p = planePoints(posed(facts.task.target, k, true)); return [p[a][0] + p[b][0], p[a][1] + p[b][1]]; });
  return middles.every((each) => Math.hypot(each[0] - middles[0][0], each[1] - middles[0][1]) < 1e-9);
}
// The body at canvas points: plates, rods with thickness, joints. A ghost has outlines only.
function drawBody(context, points, thick, colour, ghost = false) {
  context.lineCap = context.lineJoin = "round";
  context.strokeStyle = context.fillStyle = colour;
  context.globalAlpha = ghost ? 0.22 : 1;
  for (const loop of shape.plates) {
    strokePath(context, loop.map((i) => points[i]), true);
    context.lineWidth = 2;
    if (!ghost) { context.globalAlpha = 0.75; context.fill(); context.globalAlpha = 1; }
    context.stroke();
  }
  const near = solid ? [...shape.sticks].sort((one, other) => depth(points, other) - depth(points, one)) : shape.sticks;
  for (const [a, b] of near) {
    strokePath(context, [points[a], points[b]]);
    context.lineWidth = !solid ? thick : rules.points ? thick * 0.6 : 3;
    context.stroke();
  }
  context.globalAlpha = 1;
  if (ghost) return;
  context.strokeStyle = paint("paper"); context.lineWidth = 2;
  for (const [a, b] of shape.spokes) { strokePath(context, [points[a], points[b]]); context.stroke(); }
  for (const i of shape.joints) {
    context.beginPath(); context.arc(points[i][0], points[i][1], thick * 0.32, 0, 7);
    context.fillStyle = paint("paper"); context.fill();
  }
}
const depth = (points, [a, b]) => points[a][2] + points[b][2];
// Where a body in space is above or below the target: a grid at the target's height and the way down to it.
function drawSpace(context, pane, to, size) {
  if (!solid?.along.length) return;
  const target = [0, 0, 0], place = [0, 0, 0], step = size / 2;
  for (const [j, axis] of solid.along) { target[axis] = pane.simulation.target[j]; place[axis] = pane.simulation.x[j]; }
  target[2] -= size / 2;
  context.strokeStyle = paint("line"); context.lineWidth = 1;
  for (let k = -4; k <= 4; k++)
    for (const flip of [false, true]) {
      const ends = [-4, 4].map((far) => to(seen([0, 1, 2].map((i) => target[i] + (i === 2 ? 0 : step * ((i === 0) !== flip ? k : far))))));
      strokePath(context, ends); context.stroke();
    }
  context.setLineDash([2, 3]);
  strokePath(context, [to(seen(place)), to(seen([place[0], place[1], target[2]]))]); context.strokeStyle = paint("soft"); context.stroke();
  context.setLineDash([]);
}
function drawTrace(context, pane, to) {
  const rows = pane.history.slice(-Math.round(1.5 * facts.task.control_rate)), step = Math.max(1, Math.round(rows.length / 60));
  context.strokeStyle = pane.colour; context.lineWidth = 2; context.lineCap = "butt";
  let before = null;
  for (let i = (rows.length - 1) % step; i < rows.length; i += step) {
    const now = to(pointsAt(Float64Array.from(rows[i].slice(1, 1 + n)))[tip]);
    if (before) { context.globalAlpha = 0.5 * (i / rows.length); strokePath(context, [before, now]); context.stroke(); }
    before = now;
  }
  context.globalAlpha = 1;
}
// Of a force in space that only pushes: the circle that a rotor sweeps.
function drawRotor(context, pane, { place: middle, normal }, to) {
  const side = cross(normal, Math.abs(normal[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0]), length = Math.hypot(...side), other = cross(normal, side);
  const radius = (0.4 / length) * Math.max(...solid.corners.map((p) => Math.hypot(...p)));
  const rim = Array.from({ length: 24 }, (_, k) => to(seen(middle.map((each, i) => each + radius * (Math.cos((k * Math.PI) / 12) * side[i] + Math.sin((k * Math.PI) / 12) * other[i])))));
  strokePath(context, rim, true);
  context.fillStyle = context.strokeStyle = pane.colour; context.lineWidth = 2;
  context.globalAlpha = 0.25; context.fill(); context.globalAlpha = 1; context.stroke();
  context.fillStyle = context.strokeStyle = paint("ink");
}
// Every input as an arrow: around its joint, or along its force; the longest is its limit.
const B = new Float64Array(n * m), drift = new Float64Array(n);
function drawInputs(context, pane, to, unit) {
  const { x, u } = pane.simulation;
  robot.affine_dynamics(x, conditions.theta, drift, B);
  context.strokeStyle = context.fillStyle = paint("ink");
  facts.inputs.forEach((input, i) => {
    const share = u[i] / (Math.abs(input.middle ?? 0) + input.limit), shows = acting(x, input, B);
    if (shows?.normal && solid && bounds(input).lower >= 0) drawRotor(context, pane, shows, to);
    if (!shows || Math.abs(share) < 0.02) return;
    if (shows.pivot) {
      const [cx, cy] = to(shows.pivot), radius = 0.55 * unit, turn = 2.6 * share * shows.sense, end = -(shows.from + turn);
      context.lineWidth = 3;
      context.beginPath(); context.arc(cx, cy, radius, -shows.from, end, turn > 0); context.stroke();
      head(context, [cx + radius * Math.cos(end), cy + radius * Math.sin(end)], end - (Math.PI / 2) * Math.sign(turn), 9);
      return;
    }
    const along = Math.atan2(-shows.direction[1], shows.direction[0]) + (share < 0 ? Math.PI : 0);
    arrow(context, to(shows.point), along, unit * Math.abs(share) * Math.min(1, Math.hypot(shows.direction[0], shows.direction[1])));
  });
}

function draw(atOnce = false) {
  for (const { simulation } of panes) simulation.know(conditions);
  const size = frameView(atOnce);
  for (const pane of panes) {
    const { simulation, canvas } = pane, most = innerWidth < 720 ? (0.46 * innerHeight) / ($("panes").classList.contains("wide") ? panes.length : 1) : 430;
    const { context, width, height } = sharp(canvas, Math.max(110, Math.min(most, (canvas.clientWidth || 300) * panesShape)));
    const { to, scale } = placed(width, height), thick = Math.min(Math.max(0.05 * size * scale, 4), 16), unit = Math.min(Math.max(0.25 * size * scale, 26), 80);
    drawSpace(context, pane, to, size);
    drawGround(context, to, thick);
    drawBody(context, pointsAt(simulation.target).map((p) => [...to(p), p[2]]), thick, paint("soft"), true);
    drawTrace(context, pane, to);
    drawBody(context, pointsAt(simulation.x).map((p) => [...to(p), p[2]]), thick, pane.colour);
    drawInputs(context, pane, to, unit);
    if (pane.grip && !pane.grip.orbits && !pane.grip.goal && drag === "push") {
      const from = to(pointsAt(simulation.x)[pane.grip.index]), end = to(pane.grip.now);
      context.strokeStyle = context.fillStyle = paint("bad");
      arrow(context, from, Math.atan2(end[1] - from[1], end[0] - from[0]), Math.hypot(end[0] - from[0], end[1] - from[1]));
    }
    const word = simulation.success() ? "at the target" : simulation.hit ? "met a limit" : "on its way";
    if (pane.outcome.textContent !== word) pane.outcome.textContent = word;
    pane.outcome.dataset.is = word;
    const inputs = facts.inputs.map((input, i) => `${input.name} ${steady(simulation.u[i], input)} ${input.unit}`).join(", ");
    const observer = conditions.finds ? simulation.observer : null;
    pane.found.forEach((show) => show(observer));
    pane.finds.textContent = observer?.estimated.length ? `finds ${observer.estimated.map((i) => `${facts.parameters[i].name} ${short(observer.parameters[i])} ${facts.parameters[i].unit}`).join(", ")}` : "";
    pane.status.textContent = `return ${steady(simulation.result, signals.at(-1))} · ${inputs}`;
  }
  $("clock").textContent = `${panes[0].simulation.time.toFixed(1)} s`;
  plots.forEach((each, i) => plot(each, shown[i]));
  heat.forEach(drawHeat);
  histograms.forEach(drawHistogram);
}
