// One slider; `set` marks [lower, upper] on the track, with the word for it, and `mark` the nominal value.
function slider(parent, { name, unit, meaning, low, high, step = "any", mark, set, word, get, change }) {
  const id = `slider-${parent.id}-${parent.children.length}`, output = element("output");
  const input = element("input", { type: "range", id, min: low, max: high, step });
  const box = element("div", { className: "slider" }), track = element("div", { className: "track" });
  box.append(element("label", { htmlFor: id, title: meaning }, withUnit({ name, unit }), output));
  box.append(element("div", { className: "range" }, track, input));
  const at = (value) => `${(100 * (value - low)) / (high - low)}%`;
  if (set) {
    const marked = element("div", { className: "set" }), line = element("div", { className: "nominal" });
    marked.style.left = at(set[0]);
    marked.style.right = `${100 - parseFloat(at(set[1]))}%`;
    line.style.left = at(mark);
    track.append(marked, line);
    box.append(element("small", {}, `nominal ${short(mark)}, ${set[0] < set[1] ? `${word} ${short(set[0])} to ${short(set[1])}` : "fixed"}`));
  }
  const show = () => {
    input.value = get();
    output.textContent = short(get());
    const outside = set && (get() < set[0] - 1e-12 || get() > set[1] + 1e-12);
    box.classList.toggle("outside", Boolean(outside));
    input.setAttribute("aria-valuetext", `${short(get())} ${unit}${outside ? ", outside of this range" : ""}`);
  };
  input.oninput = () => { change(Number(input.value)); show(); writeAddress(); };
  input.onchange = () => { if (families) maps(); }; // V of a family depends on what it is told
  parent.append(box);
  show();
  return show;
}

function table(head, rows) {
  const line = (kind, cells) => element("tr", {}, ...cells.map((cell) => element(kind, {}, String(cell))));
  return element("div", { className: "scroll" }, element("table", {}, line("th", head), ...rows.map((row) => line("td", row))));
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
const plots = ["State", "Input", "Return"].map((word, place) => {
  const select = element("select"), canvas = element("canvas"), values = element("div", { className: "status" });
  const made = { canvas, select, values, pointer: null };
  signals.forEach((each, i) => select.append(element("option", { value: i }, withUnit(each))));
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${word} of every run over time; the values stand below`);
  canvas.onpointermove = (event) => { made.pointer = event.clientX - canvas.getBoundingClientRect().left; };
  canvas.onpointerleave = () => { made.pointer = null; };
  select.onchange = () => { shown[place] = Number(select.value); writeAddress(); };
  $("plots").append(element("figure", {}, element("label", {}, `${word} `, select), canvas, values));
  return made;
});
// Of every training: what it was, and of a robust one its admissible sets.
function trainings() {
  const sets = (training) => Object.entries(training.adversaries || {});
  const rows = [["algorithm", (run) => run.algorithm], ["preset", (run) => run.preset], ["iterations", (run) => run.iteration],
    ["states in an iteration", (run) => run.training.states], ["networks", (run) => `${run.training.members}, each of ${run.training.layers} layers of ${run.training.width}`],
    ["reaction time (control periods)", (run) => run.training.reaction_periods], ["seed", (run) => run.training.seed],
    ["admissible set of the adversary", (run) => sets(run.training).map(([name, size]) => `${name} ${size}`).join(", ") || "no adversary"],
    ["is told", (run) => run.told?.context.map(({ name, lower, upper, unit }) => `${name} ${short(lower)} to ${short(upper)} ${unit}`).join(", ") ?? "nothing"],
    ["began from", (run) => run.training.warm_from || "nothing"], ["artifact", (run) => run.artifact], ["model", (run) => run.model]];
  return table(["training", ...runs.map((run) => run.label)], rows.map(([word, read]) => [word, ...runs.map(read)]));
}
const shows = [];
function refresh() {
  shows.forEach((show) => show());
  $("speed").value = [...$("speed").options].some((each) => Number(each.value) === speed) ? speed : "";
  $("drag").value = drag;
  $("knows").value = knows();
  [$("across").value, $("up").value] = axes;
  plots.forEach(({ select }, i) => { select.value = shown[i]; });
}
function pause(stop = !paused) {
  paused = stop;
  $("pause").textContent = paused ? "Continue" : "Pause";
}

readAddress();
$("title").textContent = facts.name;
$("about").textContent = facts.description;
facts.parameters.forEach((parameter, i) => {
  const { value, lower, upper } = parameter, wide = Math.max(upper - value, value - lower, 0.3 * Math.abs(value));
  const told = runs.flatMap((run) => run.told?.context ?? []).find(({ place }) => place === i);
  const set = told ? [told.lower, told.upper] : [lower, upper], word = told ? "trained for" : "bounds";
  const low = value > 0 ? Math.max(value - 2.5 * wide, 0.05 * value) : value - 2.5 * wide;
  shows.push(slider($("parameters"), { ...parameter, low, high: value + 2.5 * wide, mark: value, set, word,
    get: () => conditions.theta[i], change: (to) => { conditions.theta[i] = to; } }));
  const track = $("parameters").lastChild.querySelector(".track");
  for (const pane of panes) { // what its observer finds
    const mark = element("div", { className: "found" });
    mark.style.background = `var(--${pane.name})`;
    track.append(mark);
    pane.found.push((observer) => {
      mark.hidden = !observer?.estimated.includes(i);
      if (!mark.hidden) mark.style.left = `${Math.min(Math.max((100 * (observer.parameters[i] - low)) / (value + 2.5 * wide - low), 0), 100)}%`;
    });
  }
});
shows.push(slider($("harsh"), { name: "delay", unit: "control periods", meaning: "from the policy to the drive", low: 0, high: 10, step: 1,
  get: () => conditions.delay, change: (to) => { conditions.delay = to; } }));
if (rules.noise.some((each) => each > 0)) shows.push(slider($("harsh"), { name: "sensor noise", unit: "× usual", meaning: "white, at the control rate", low: 0, high: 10,
  get: () => conditions.noise, change: (to) => { conditions.noise = to; } }));
if (rules.stiction) shows.push(slider($("harsh"), { name: "stiction", unit: "× usual", meaning: "dry friction of the driven joints", low: 0, high: 10,
  get: () => conditions.stiction, change: (to) => { conditions.stiction = to; } }));
facts.states.forEach((state, i) => {
  if (inRotation(i)) return;
  shows.push(slider($("start"), { ...state, low: -state.limit, high: state.limit, get: () => start[i], change: (to) => { start[i] = to; reset(); } }));
  for (const id of ["across", "up"]) $(id).append(element("option", { value: i }, withUnit(state)));
});
for (const { name, coordinate, limit } of rotations) // as a turn about an axis, three sliders for four entries
  ["x", "y", "z"].forEach((axis, k) => {
    const turn = () => {
      const [w, ...v] = start.slice(coordinate, coordinate + 4), length = Math.hypot(...v), angle = 2 * Math.atan2(length, Math.abs(w));
      return v.map((each) => (length < 1e-9 ? 0 : (Math.sign(w || 1) * angle * each) / length));
    };
    shows.push(slider($("start"), { name: `${name} about ${axis}`, unit: "rad", meaning: "of the start", low: -limit, high: limit, get: () => turn()[k], change: (to) => {
      const wanted = turn();
      wanted[k] = to;
      const angle = Math.hypot(...wanted), share = angle < 1e-9 ? 0 : Math.sin(angle / 2) / angle;
      start.splice(coordinate, 4, Math.cos(angle / 2), ...wanted.map((each) => share * each));
      reset();
    } }));
  });
$("facts").append(
  table(["parameter", "unit", "nominal", "bounds", "meaning"], facts.parameters.map((p) => [p.name, p.unit, short(p.value), `${short(p.lower)} to ${short(p.upper)}`, p.meaning])),
  element("p", {}, `Control rate ${facts.task.control_rate} Hz, Runge-Kutta steps in a period: ${facts.task.integration_steps}, horizon ${facts.task.horizon} s.`),
  trainings());
$("pause").onclick = () => pause();
$("reset").onclick = () => reset();
$("step").onclick = () => { pause(true); advance(); draw(); };
$("speed").onchange = () => { speed = Number($("speed").value); writeAddress(); };
if (references.length) $("drag").append(element("option", { value: "goal" }, "moves the target"));
$("drag").onchange = () => { drag = $("drag").value; writeAddress(); };
for (const [value, words] of knowledge) $("knows").append(element("option", { value }, words));
$("knowing").hidden = knowledge.length < 2;
$("knows").onchange = () => { know($("knows").value); writeAddress(); if (families) maps(); };
// The story: every step is an experiment, and says what there is to see.
const target = [...facts.task.target], kilograms = facts.parameters.findLastIndex(({ unit, value }) => unit === "kg" && value > 0);
const context = runs.flatMap((run) => run.told?.context ?? []), toldMass = context.find(({ place }) => facts.parameters[place].unit === "kg");
const heavy = (toldMass ?? (kilograms < 0 ? context[0] : null))?.place ?? Math.max(kilograms, 0), several = runs.length > 1 ? "The policies know" : "The policy knows";
const story = [{ name: "Push it", words: "It stands at its target and was pushed. Drag the robot to push it yourself, or press ← and →.", begin() {
  start = [...target];
  const speeds = new Array(nv).fill(0);
  speeds[Math.min(solid ? 0 : main, nv - 1)] = 0.3 * facts.states[pushedFrom + Math.min(solid ? 0 : main, nv - 1)].limit;
  pushes = [{ at: Math.round(0.5 * facts.task.control_rate), speeds, done: false }];
} }];
if (facts.parameters.length) {
  const { name, value, unit, meaning } = facts.parameters[heavy], own = context.filter(({ place }) => place === heavy);
  const heavier = Math.min(1.5 * value, ...own.map(({ upper }) => upper)), other = heavier > value ? heavier : Math.max(...own.map(({ lower }) => lower));
  const begin = () => { start = [...usualStart]; pushes = []; conditions.theta[heavy] = other; };
  story.push({ name: unit === "kg" ? `Make it ${other > value ? "heavier" : "lighter"}` : "Make it different", begin,
    words: `The ${name} (${meaning || "a parameter"}) is ${short(other)} ${unit} now. ${several} ${short(nearest(facts.parameters[heavy]))} ${unit}. Which one still arrives?` });
  const begins = (known) => () => { begin(); know(known); };
  if (runs.every((run) => run.observer?.observable.includes(heavy))) story.push({ name: "Now let it find out", begin: begins("found"),
    words: `The same ${name}, seen by encoders of the positions only. An observer estimates the speeds and the ${name}: see the marks below its slider. ${own.length ? "A policy that can be told it is told the estimate." : "The input shifts by what that changes at the target."}` });
  else if (own.length) story.push({ name: "Now tell it", begin: begins("these"), words: `The same ${name}. A policy that can be told it knows ${short(other)} ${unit} now.` });
}
story.forEach(({ name, words, begin }, i) => {
  const button = element("button", { type: "button" }, element("b", {}, String(i + 1)), name);
  button.onclick = () => {
    Object.assign(conditions, { theta: [...nominal], delay: 0, noise: 0, stiction: 0, knows: false, finds: false });
    begin();
    for (const each of $("story").children) each.setAttribute("aria-pressed", String(each === button));
    $("told").textContent = words;
    refresh();
    reset(true);
    if (families) maps();
    pause(false);
  };
  $("story").append(button);
});
$("nominal").onclick = () => { conditions.theta = [...nominal]; refresh(); writeAddress(); };
$("many").onclick = manyStarts;
$("maps").onclick = () => maps(true);
["across", "up"].forEach((id, place) => {
  $(id).onchange = () => {
    const before = axes[place];
    axes[place] = Number($(id).value);
    if (axes[0] === axes[1]) axes[1 - place] = before; // two axes are two states
    refresh();
    maps();
    writeAddress();
  };
});
addEventListener("hashchange", () => { readAddress(); refresh(); reset(true); maps(); }); // of a link that is pasted
for (const media of ["print", "(prefers-color-scheme: dark)"]) matchMedia(media).addEventListener("change", () => { // paper is light
  paints.clear();
  for (const each of heat) each.small = null;
  draw();
});
addEventListener("keydown", (event) => {
  const own = /INPUT|SELECT/.test(event.target.tagName) || (event.key === " " && /BUTTON|SUMMARY/.test(event.target.tagName));
  if (own || event.ctrlKey || event.metaKey || event.altKey) return;
  const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key], joint = event.shiftKey ? nv - 1 : 0;
  if (event.key === " ") pause();
  else if (event.key === "r") reset();
  else if (event.key === "s") $("step").click();
  else if (sign) push(Array.from({ length: nv }, (_, j) => (j === joint ? 0.1 * sign * facts.states[pushedFrom + j].limit : 0)));
  else return;
  event.preventDefault();
});
pause(paused);
refresh();
reset(true);
maps();
requestAnimationFrame((now) => { before = now; frame(now); });
