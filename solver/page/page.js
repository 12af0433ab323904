const $ = (id) => document.getElementById(id);
const colours = ["#1f77b4", "#d95f02", "#2ca02c", "#9467bd"];
const n = facts.states.length, q = rules.position.length, steps = Math.round(facts.task.horizon * facts.task.control_rate);
const conditions = { theta: [...nominal], delay: 0, noise: 0, stiction: 0, seed: 1 };
const signals = [...facts.states, ...facts.inputs, { name: "return", unit: "1", limit: 1 }], heat = [], histograms = [];
let view = [...rules.view], start = [...facts.task.start_mean], paused = false, speed = 1, behind = 0, before = 0;

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}
const short = (value) => String(Number(Number(value).toPrecision(4)));

// The experiment in the page's address.
function readAddress() {
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    const numbers = text.split(",").map(Number);
    if (!numbers.every(Number.isFinite)) continue;
    if (key === "theta" && numbers.length === nominal.length) conditions.theta = numbers;
    if (key === "start" && numbers.length === n) start = numbers;
    if (key === "delay") conditions.delay = Math.min(Math.max(Math.round(numbers[0]), 0), 20);
    if (key === "noise" || key === "stiction") conditions[key] = Math.max(numbers[0], 0);
    if (key === "speed" && numbers[0] > 0) speed = numbers[0];
  }
}
function writeAddress() {
  const { theta, delay, noise, stiction } = conditions;
  const text = `theta=${theta}&start=${start}&delay=${delay}&noise=${noise}&stiction=${stiction}&speed=${speed}`;
  history.replaceState(null, "", `#${text}`);
  const parameters = facts.parameters.map((each, i) => `${each.name} ${short(theta[i])} ${each.unit}`).join(", ");
  const harsh = `delay of ${delay} control periods, sensor noise ${short(noise)} and stiction ${short(stiction)} times the usual`;
  $("now").textContent = `Simulated with ${parameters}; ${harsh}.`;
}

// One slider; `set` marks [lower, upper] on the track and `mark` the nominal value.
function slider(parent, { name, unit, meaning, low, high, step = "any", mark, set, get, change }) {
  const id = `slider-${parent.id}-${parent.children.length}`, output = element("output");
  const input = element("input", { type: "range", id, min: low, max: high, step });
  const box = element("div", { className: "slider" }), track = element("div", { className: "track" });
  box.append(element("label", { htmlFor: id, title: meaning }, `${name}${unit === "1" ? "" : ` (${unit})`}`, output));
  box.append(element("div", { className: "range" }, track, input));
  const at = (value) => `${(100 * (value - low)) / (high - low)}%`;
  if (set) {
    const admissible = element("div", { className: "set" }), line = element("div", { className: "nominal" });
    admissible.style.left = at(set[0]);
    admissible.style.right = `${100 - parseFloat(at(set[1]))}%`;
    line.style.left = at(mark);
    track.append(admissible, line);
    box.append(element("small", {}, `nominal ${short(mark)}, admissible ${short(set[0])} to ${short(set[1])}`));
  }
  const show = () => {
    input.value = get();
    output.textContent = short(get());
    const outside = set && (get() < set[0] - 1e-12 || get() > set[1] + 1e-12);
    box.classList.toggle("outside", Boolean(outside));
    input.setAttribute("aria-valuetext", `${short(get())} ${unit}${outside ? ", outside of the admissible set" : ""}`);
  };
  input.oninput = () => { change(Number(input.value)); show(); writeAddress(); };
  parent.append(box);
  show();
  return show;
}

// A canvas as wide as its place, in its own pixels; the context's unit is a CSS pixel.
function sharp(canvas, height) {
  const width = canvas.clientWidth || 300, ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.strokeStyle = context.fillStyle = getComputedStyle(document.body).color;
  return { context, width, height };
}

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
  $("panes").append(element("figure", {}, canvas, element("figcaption", {}, run.label), status));
  const pane = { run, simulation, canvas, status, colour: colours[index], history: [], grip: null };
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
  if (!pane.grip || $("drag").value !== "place") return;
  const y = Float64Array.from(start);
  const { index, now } = pane.grip;
  const away = (z) => { const at = pointsAt(z)[index]; return [now[0] - at[0], now[1] - at[1]]; };
  for (let i = 0, share = 1; i < 30; i++) { // a step that leads further away is tried again, half as long
    const wanted = away(y), moved = Float64Array.from(y);
    coordinateChange(y, index, wanted).forEach((dq, j) => { moved[j] += share * dq; });
    if (Math.hypot(...away(moved)) < Math.hypot(...wanted)) y.set(moved);
    else share /= 2;
  }
  pane.simulation.confine(y);
  start = Array.from(y, (value, i) => (i < q ? value : 0));
  reset();
  refresh();
}
// A push gives the point the speed of the arrow, an arrow's length in 0.2 s; every run gets the same change of speeds.
function released(pane) {
  if (pane.grip && $("drag").value === "push") {
    const x = pane.simulation.x, at = pointsAt(x)[pane.grip.index];
    push(coordinateChange(x, pane.grip.index, [(pane.grip.now[0] - at[0]) / 0.2, (pane.grip.now[1] - at[1]) / 0.2]));
  }
  pane.grip = null;
}
function push(speeds) {
  for (const { simulation } of panes) {
    speeds.forEach((speed, j) => { simulation.x[q + j] += speed; });
    simulation.confine(simulation.x);
  }
}
function reset() {
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
    context.globalAlpha = 0.25;
    context.beginPath(); context.moveTo(0, ground); context.lineTo(width, ground); context.stroke();
    context.globalAlpha = 1;
    context.lineCap = "round"; context.lineWidth = 4; context.strokeStyle = pane.colour;
    for (const [from, end] of robot.SEGMENTS) {
      context.beginPath(); context.moveTo(...points[from]); context.lineTo(...points[end]); context.stroke();
    }
    for (const point of points) { context.beginPath(); context.arc(...point, 3, 0, 7); context.fill(); }
    if (pane.grip && $("drag").value === "push") {
      context.lineWidth = 2; context.strokeStyle = "#d00";
      context.beginPath(); context.moveTo(...points[pane.grip.index]); context.lineTo(...to(pane.grip.now)); context.stroke();
    }
    const { simulation } = pane, word = simulation.success() ? "at the target" : simulation.hit ? "met a limit" : "on its way";
    const inputs = facts.inputs.map((input, i) => `${input.name} ${simulation.u[i].toFixed(2)} ${input.unit}`).join(", ");
    pane.status.textContent = `return ${simulation.result.toFixed(2)} · ${word} · ${inputs}`;
  }
  $("clock").textContent = `${panes[0].simulation.time.toFixed(1)} s`;
  for (const { canvas, select } of plots) plot(canvas, Number(select.value));
  heat.forEach(drawHeat);
  histograms.forEach(drawHistogram);
}
function plot(canvas, signal) {
  const { context, width, height } = sharp(canvas, 160), column = signal + 1, least = 1e-3 * signals[signal].limit;
  canvas.setAttribute("aria-label", `${signals[signal].name} of every run over time`);
  const rows = panes.flatMap((pane) => pane.history), values = rows.map((row) => row[column]);
  const low = values.reduce((a, b) => Math.min(a, b), -least), high = values.reduce((a, b) => Math.max(a, b), least);
  const first = rows.length ? panes[0].history[0][0] : 0, last = Math.max(panes[0].simulation.time, facts.task.horizon);
  const at = (t, v) => [52 + ((width - 60) * (t - first)) / (last - first), height - 20 - ((height - 30) * (v - low)) / (high - low)];
  context.font = "11px system-ui"; context.textAlign = "right";
  for (const v of [low, high]) context.fillText(short(v), 48, at(first, v)[1] + 4);
  context.fillText(`${last.toFixed(1)} s`, width - 8, height - 5);
  context.globalAlpha = 0.3; context.beginPath(); context.moveTo(...at(first, 0)); context.lineTo(...at(last, 0)); context.stroke();
  context.globalAlpha = 1; context.lineWidth = 1.5;
  for (const pane of panes) {
    context.strokeStyle = pane.colour;
    context.beginPath();
    const wraps = facts.states[column - 1]?.continuous;
    pane.history.forEach((row, i) => {
      const jumps = i === 0 || (wraps && Math.abs(row[column] - pane.history[i - 1][column]) > Math.PI);
      context[jumps ? "moveTo" : "lineTo"](...at(row[0], row[column]));
    });
    context.stroke();
  }
}

function worker(message, run, answer) {
  const text = $("engine").textContent + workerText, url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const made = new Worker(url);
  made.onmessage = ({ data }) => answer(data, made);
  made.postMessage({ ...message, run, conditions: { ...conditions, theta: [...conditions.theta] } });
}
// In as many workers as the machine has cores, one a run at least.
function manyStarts() {
  const count = 100, parts = Math.max(1, Math.floor((navigator.hardwareConcurrency || 1) / panes.length));
  const results = panes.map(() => []);
  let done = 0;
  $("many").disabled = true;
  panes.forEach((pane, i) => {
    for (let part = 0; part < parts; part++) {
      const first = Math.floor((part * count) / parts), last = Math.floor(((part + 1) * count) / parts);
      let left = last - first;
      worker({ job: "starts", first, last }, pane.run, (data, made) => {
        results[i].push(data);
        $("progress").value = ++done / (count * panes.length);
        if (--left === 0) made.terminate();
        if (done === count * panes.length) { $("many").disabled = false; distribution(results); }
      });
    }
  });
}
function distribution(results) {
  const returns = results.flat().map((each) => each.result), low = Math.min(...returns), high = Math.max(...returns, low + 1e-9);
  histograms.length = 0;
  $("distribution").replaceChildren(...panes.map((pane, i) => {
    const own = results[i].map((each) => each.result), mean = own.reduce((a, b) => a + b, 0) / own.length;
    const share = results[i].filter((each) => each.success).length / own.length;
    const text = `${pane.run.label}: success ${(100 * share).toFixed(0)} %, return ${mean.toFixed(2)} on average, ${Math.min(...own).toFixed(2)} at worst`;
    const canvas = element("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Histogram of returns. ${text}`);
    const bins = new Array(30).fill(0);
    for (const value of own) bins[Math.min(29, Math.floor((30 * (value - low)) / (high - low)))]++;
    histograms.push({ canvas, bins, colour: pane.colour });
    return element("figure", {}, element("figcaption", {}, `${text} (axis ${short(low)} to ${short(high)})`), canvas);
  }));
}
function drawHistogram({ canvas, bins, colour }) {
  const { context, width, height } = sharp(canvas, 80), most = Math.max(...bins);
  context.fillStyle = colour;
  bins.forEach((size, b) => { context.fillRect((b * width) / 30 + 1, height - (size / most) * (height - 4), width / 30 - 2, height); });
}
function maps() {
  const first = Number($("across").value), second = Number($("up").value), size = 41;
  if (first === second) return;
  heat.length = 0;
  $("heat").replaceChildren();
  for (const pane of panes) {
    const figures = ["V", facts.inputs[0].name].map(() => element("figure"));
    $("heat").append(...figures);
    worker({ job: "maps", size, first, second, x: [...pane.simulation.x] }, pane.run, (data, made) => {
      made.terminate();
      figures.forEach((figure, i) => heatMap(figure, pane, i ? facts.inputs[0] : { name: "V" }, i ? data.U : data.V, first, second));
    });
  }
}
function heatMap(figure, pane, { name, unit = "" }, values, first, second) {
  const size = Math.sqrt(values.length), small = element("canvas", { width: size, height: size });
  const pixels = small.getContext("2d").createImageData(size, size);
  const low = Math.min(...values), high = Math.max(...values, low + 1e-9), canvas = element("canvas");
  values.forEach((value, i) => {
    const share = (value - low) / (high - low), at = 4 * ((size - 1 - Math.floor(i / size)) * size + (i % size));
    pixels.data.set([255 * share, 90 + 120 * share, 200 - 170 * share, 255], at);
  });
  small.getContext("2d").putImageData(pixels, 0, 0);
  const axis = (i) => `${facts.states[i].name} (±${short(facts.states[i].limit)} ${facts.states[i].unit})`;
  const caption = `${name} of ${pane.run.label}, ${short(low)} (blue) to ${short(high)} ${unit} (yellow); ${axis(first)} across, ${axis(second)} up`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", caption);
  figure.append(canvas, element("figcaption", {}, caption));
  heat.push({ pane, canvas, small, first, second });
}
// The map, and the present state on it.
function drawHeat({ pane, canvas, small, first, second }) {
  const { context, width, height } = sharp(canvas, 220), { x } = pane.simulation;
  context.drawImage(small, 0, 0, width, height);
  const at = (i, length) => (length * (x[i] / facts.states[i].limit + 1)) / 2;
  context.fillStyle = "#fff"; context.strokeStyle = "#000";
  context.beginPath(); context.arc(at(first, width), height - at(second, height), 5, 0, 7); context.fill(); context.stroke();
}

function table(head, rows) {
  const line = (kind, cells) => element("tr", {}, ...cells.map((cell) => element(kind, {}, String(cell))));
  return element("table", {}, line("th", head), ...rows.map((row) => line("td", row)));
}
function frame(now) {
  const period = panes[0].simulation.period;
  if (!paused) behind = Math.min(behind + ((now - before) / 1000) * speed, 0.1);
  before = now;
  const deadline = performance.now() + 40;
  while (!paused && behind >= period && performance.now() < deadline) { advance(); behind -= period; }
  draw();
  requestAnimationFrame(frame);
}
// State, input and return over time; each shows any signal.
const plots = [["State", 0], ["Input", n], ["Return", signals.length - 1]].map(([word, chosen]) => {
  const select = element("select"), canvas = element("canvas");
  signals.forEach(({ name, unit }, i) => select.append(element("option", { value: i, selected: i === chosen }, unit === "1" ? name : `${name} (${unit})`)));
  canvas.setAttribute("role", "img");
  $("plots").append(element("figure", {}, element("label", {}, `${word} `, select), canvas));
  return { canvas, select };
});
const shows = [];
const refresh = () => shows.forEach((show) => show());
function pause(stop = !paused) {
  paused = stop;
  $("pause").textContent = paused ? "Continue" : "Pause";
}

readAddress();
$("title").textContent = `${facts.name}: ${runs.length} ${runs.length === 1 ? "policy" : "policies"} to push`;
$("about").textContent = facts.description;
facts.parameters.forEach((parameter, i) => {
  const { value, lower, upper } = parameter, wide = Math.max(upper - value, value - lower, 0.3 * Math.abs(value));
  const low = value > 0 ? Math.max(value - 2.5 * wide, 0.05 * value) : value - 2.5 * wide;
  shows.push(slider($("parameters"), { ...parameter, low, high: value + 2.5 * wide, mark: value, set: [lower, upper],
    get: () => conditions.theta[i], change: (to) => { conditions.theta[i] = to; } }));
});
shows.push(slider($("harsh"), { name: "delay", unit: "control periods", meaning: "from the policy to the drive", low: 0, high: 10, step: 1,
  get: () => conditions.delay, change: (to) => { conditions.delay = to; } }));
if (rules.noise.some((each) => each > 0)) shows.push(slider($("harsh"), { name: "sensor noise", unit: "× usual", meaning: "white, at the control rate", low: 0, high: 10,
  get: () => conditions.noise, change: (to) => { conditions.noise = to; } }));
if (rules.stiction) shows.push(slider($("harsh"), { name: "stiction", unit: "× usual", meaning: "dry friction of the driven joints", low: 0, high: 10,
  get: () => conditions.stiction, change: (to) => { conditions.stiction = to; } }));
facts.states.forEach((state, i) => {
  shows.push(slider($("start"), { ...state, low: -state.limit, high: state.limit, get: () => start[i], change: (to) => { start[i] = to; reset(); } }));
  for (const id of ["across", "up"]) $(id).append(element("option", { value: i }, `${state.name} (${state.unit})`));
});
$("up").value = n > q ? q : 1;
$("facts").append(
  table(["parameter", "unit", "nominal", "admissible", "meaning"], facts.parameters.map((p) => [p.name, p.unit, short(p.value), `${short(p.lower)} to ${short(p.upper)}`, p.meaning])),
  element("p", {}, `${facts.task.control_rate} Hz control, ${facts.task.integration_steps} Runge-Kutta steps in a period, horizon ${facts.task.horizon} s.`),
  table(["run", "iterations", "seed", "artifact"], runs.map((run) => [run.label, run.iteration, run.seed, run.artifact])));
$("speed").value = speed;
$("pause").onclick = () => pause();
$("reset").onclick = reset;
$("step").onclick = () => { pause(true); advance(); draw(); };
$("speed").onchange = () => { speed = Number($("speed").value); writeAddress(); };
$("nominal").onclick = () => { conditions.theta = [...nominal]; refresh(); writeAddress(); };
$("many").onclick = manyStarts;
$("maps").onclick = maps;
matchMedia("print").addEventListener("change", draw); // in the colours of paper
addEventListener("keydown", (event) => {
  if (/INPUT|SELECT|BUTTON/.test(event.target.tagName) || event.ctrlKey || event.metaKey) return;
  const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === " ") pause();
  else if (event.key === "r") reset();
  else if (event.key === "s") $("step").click();
  else if (sign) push(facts.states.slice(0, q).map((_, j) => (j === 0 ? 0.1 * sign * facts.states[q].limit : 0)));
  else return;
  event.preventDefault();
});
reset();
maps();
requestAnimationFrame((now) => { before = now; frame(now); });
