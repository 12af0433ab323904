// How a picture in metres lies on its canvas.
function placed(width, height) {
  const [left, right, bottom, top] = view;
  const scale = Math.min(width / (right - left), height / (top - bottom));
  const x0 = width / 2 - (scale * (left + right)) / 2, y0 = height / 2 + (scale * (bottom + top)) / 2;
  return { to: (p) => [x0 + scale * p[0], y0 - scale * p[1]], from: (p) => [(p[0] - x0) / scale, (y0 - p[1]) / scale] };
}
// The picture grows with a robot that a slider makes larger, until the next reset.
function widen(points) {
  for (const [across, up] of points) {
    view[0] = Math.min(view[0], across); view[1] = Math.max(view[1], across);
    view[2] = Math.min(view[2], up); view[3] = Math.max(view[3], up);
  }
}
function pointsAt(x) {
  const flat = new Float64Array(rules.points * 2);
  robot.points(x, conditions.theta, flat);
  return Array.from({ length: rules.points }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}

const panes = runs.map((run, index) => {
  const simulation = makeSimulation(robot, facts, nominal, rules, run);
  const canvas = element("canvas", { className: "scene", tabIndex: 0 }), status = element("div", { className: "status" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${facts.name} under ${run.label}`);
  const key = element("span", { className: "key" });
  key.style.background = colours[index];
  $("panes").append(element("figure", {}, canvas, element("figcaption", {}, key, run.label), status));
  const pane = { run, simulation, canvas, status, colour: colours[index], dash: dashes[index], history: [], grip: null };
  canvas.onpointerdown = (event) => grip(pane, event);
  canvas.onpointermove = (event) => { if (pane.grip) pane.grip.now = pointer(pane, event); moved(pane); };
  canvas.onpointerup = canvas.onpointercancel = () => released(pane);
  return pane;
});

function pointer(pane, event) {
  const box = pane.canvas.getBoundingClientRect();
  return placed(box.width, box.height).from([event.clientX - box.left, event.clientY - box.top]);
}
function grip(pane, event) {
  const at = pointer(pane, event), points = pointsAt(pane.simulation.x);
  const distance = (p) => Math.hypot(p[0] - at[0], p[1] - at[1]);
  const index = points.reduce((best, p, i) => (distance(p) < distance(points[best]) ? i : best), 0);
  pane.canvas.setPointerCapture(event.pointerId);
  pane.grip = { index, now: at };
}
// The change of the coordinates, of least length, that moves a drawn point by `wanted` (m).
function coordinateChange(x, index, wanted) {
  const step = 1e-6, J = [], y = Float64Array.from(x), here = pointsAt(x)[index];
  for (let j = 0; j < q; j++) {
    y[j] += step;
    const there = pointsAt(y)[index];
    J.push([(there[0] - here[0]) / step, (there[1] - here[1]) / step]);
    y[j] = x[j];
  }
  let a = 0, b = 0, d = 0;
  for (const [across, up] of J) { a += across * across; b += across * up; d += up * up; }
  const damping = 1e-3 * (a + d) + 1e-12;
  a += damping; d += damping;
  const det = a * d - b * b, f = (d * wanted[0] - b * wanted[1]) / det, g = (a * wanted[1] - b * wanted[0]) / det;
  return J.map(([across, up]) => across * f + up * g);
}
function moved(pane) {
  if (!pane.grip || drag !== "place") return;
  const y = Float64Array.from(start);
  const { index, now } = pane.grip;
  const missing = (z) => { const at = pointsAt(z)[index]; return [now[0] - at[0], now[1] - at[1]]; };
  for (let i = 0, share = 1; i < 30; i++) { // a step that leads further away is tried again, half as long
    const wanted = missing(y), moved = Float64Array.from(y);
    coordinateChange(y, index, wanted).forEach((dq, j) => { moved[j] += share * dq; });
    if (Math.hypot(...missing(moved)) < Math.hypot(...wanted)) y.set(moved);
    else share /= 2;
  }
  pane.simulation.confine(y);
  start = Array.from(y, (value, i) => (i < q ? value : 0));
  reset();
  refresh();
}
// A push gives the point the speed of the arrow, an arrow's length in 0.2 s; every run gets the same change of speeds.
function released(pane) {
  if (pane.grip && drag === "push") {
    const x = pane.simulation.x, at = pointsAt(x)[pane.grip.index];
    push(coordinateChange(x, pane.grip.index, [(pane.grip.now[0] - at[0]) / 0.2, (pane.grip.now[1] - at[1]) / 0.2]));
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
    made.speeds.forEach((change, j) => { simulation.x[q + j] += change; });
    simulation.confine(simulation.x);
  }
}
// Back to the start. `again` gives the pushes of the address at their times once more.
function reset(again = false) {
  pushes = again ? pushes.map((each) => ({ ...each, done: false })) : [];
  view = [...rules.view];
  for (const pane of panes) {
    const from = Float64Array.from(start);
    pane.simulation.confine(from);
    pane.simulation.reset(from, conditions);
    pane.history = [];
  }
  writeAddress();
  draw();
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

function draw() {
  for (const pane of panes) widen(pointsAt(pane.simulation.x));
  for (const pane of panes) {
    const [left, right, bottom, top] = view;
    const height = Math.min(380, Math.max(140, ((pane.canvas.clientWidth || 300) * (top - bottom)) / (right - left)));
    const { context, width } = sharp(pane.canvas, height), { to } = placed(width, height);
    const points = pointsAt(pane.simulation.x).map(to), ground = to([0, 0])[1];
    context.globalAlpha = 0.25; context.lineWidth = 1;
    context.beginPath(); context.moveTo(0, ground); context.lineTo(width, ground); context.stroke();
    context.globalAlpha = 1;
    context.lineCap = "round"; context.lineWidth = 4; context.strokeStyle = pane.colour;
    for (const [from, end] of robot.SEGMENTS) {
      context.beginPath(); context.moveTo(...points[from]); context.lineTo(...points[end]); context.stroke();
    }
    for (const point of points) { context.beginPath(); context.arc(...point, 3, 0, 7); context.fill(); }
    if (pane.grip && drag === "push") {
      context.lineWidth = 2; context.strokeStyle = "#d00";
      context.beginPath(); context.moveTo(...points[pane.grip.index]); context.lineTo(...to(pane.grip.now)); context.stroke();
    }
    const { simulation } = pane, word = simulation.success() ? "at the target" : simulation.hit ? "met a limit" : "on its way";
    const inputs = facts.inputs.map((input, i) => `${input.name} ${simulation.u[i].toFixed(2)} ${input.unit}`).join(", ");
    pane.status.textContent = `return ${simulation.result.toFixed(2)} · ${word} · ${inputs}`;
  }
  $("clock").textContent = `${panes[0].simulation.time.toFixed(1)} s`;
  plots.forEach((each, i) => plot(each, shown[i]));
  heat.forEach(drawHeat);
  histograms.forEach(drawHistogram);
}
