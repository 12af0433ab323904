const $ = (id) => document.getElementById(id);
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]]; // of policies, as their colours in the style
const n = facts.states.length, m = facts.inputs.length, q = rules.position.length, horizon = Math.max(...runs.map((run) => run.horizon)), steps = Math.round(horizon * facts.task.control_rate);
const signals = [...facts.states, ...facts.inputs, { name: "return", unit: "1", limit: 10 }], heat = [], histograms = [];
// Units with raised exponents: m^2 as m².
for (const each of [...facts.states, ...facts.inputs, ...facts.parameters])
  each.unit = each.unit.replace(/\^(-?\d+)/g, (_, power) => [...power].map((digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)]).join(""));
// What plots and maps show: all but the entries of quaternions. First the coordinate that the task moves most.
const rotations = facts.rotations ?? [], inRotation = (i) => rotations.some(({ coordinate }) => i >= coordinate && i < coordinate + 4);
const charted = facts.states.map((_, i) => i).filter((i) => !inRotation(i)), coordinates = charted.filter((i) => i < q);
const away = (i) => Math.abs(facts.task.start_mean[i] - facts.task.target[i]) / facts.states[i].limit;
const main = coordinates.length ? coordinates.reduce((best, i) => (away(i) > away(best) ? i : best)) : q;
const rate = facts.states.findIndex(({ name }) => name === `${facts.states[main].name}_rate`), mainRate = rate < 0 ? charted.find((i) => i !== main) : rate;
// The start of the page: the middle of the task's own, or where that is the target, a drawn one.
const usualStart = facts.task.start_mean.every((value, i) => value === facts.task.target[i]) ? drawnStart(facts, 3, nominal) : [...facts.task.start_mean];

// The experiment. pushes: { at (control periods since the start), speeds (nv), done }, in their order.
const conditions = { theta: [...nominal], delay: 0, noise: 0, stiction: 0, seed: 1, knows: true, finds: false };
const families = runs.some((run) => run.told); // policies that can be told parameters
// What the policies know of the parameters: words for the reader, and for the address.
const nearest = ({ name, value }) => runs.flatMap((run) => run.told?.context ?? []).filter((each) => each.name === name)
  .reduce((near, { lower, upper }) => Math.min(Math.max(near, lower), upper), value); // that a policy can be told
const knowledge = [["nominal", facts.parameters.every((each) => nearest(each) === each.value) ? "the nominal values" : "those nearest to the nominal values"], ...(families ? [["these", "these values"]] : []), ...(runs[0].observer ? [["found", "what an observer finds"]] : [])];
const knows = () => (conditions.finds ? "found" : conditions.knows && families ? "these" : "nominal");
function know(word) {
  const known = knowledge.some(([each]) => each === word) ? word : families ? "these" : "nominal";
  Object.assign(conditions, { knows: known === "these", finds: known === "found" });
}
let start = [...usualStart], pushes = [], speed, drag, axes, shown; // speed to shown: by readAddress
let view, paused = matchMedia("(prefers-reduced-motion: reduce)").matches, behind = 0, before = 0;
const MOST_PUSHES = 100; // that the address holds

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}
function short(value) { // three digits
  const rounded = Number(Number(value).toPrecision(3));
  return rounded && Math.abs(rounded) < 1e-3 ? rounded.toExponential() : String(rounded);
}
// Three digits of the largest value that a signal can have: what changes keeps its places.
function steady(value, { limit = 1, middle = 0 }) {
  const text = value.toFixed(Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(middle) + limit)), 0), 6));
  return Number(text) === 0 ? text.replace("-", "") : text;
}
const withUnit = ({ name, unit }) => (unit === "1" ? name : `${name} (${unit})`);

// The experiment in the page's address. What does not fit the robot is ignored.
function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const numbers = (key, count) => {
    const found = words.has(key) ? words.get(key).split(",").map(Number) : [];
    return found.length === count && found.every(Number.isFinite) ? found : null;
  };
  const places = (key, count, below) => numbers(key, count)?.every((i) => Number.isInteger(i) && i >= 0 && i < below);
  conditions.theta = numbers("theta", nominal.length) ?? [...nominal];
  start = numbers("start", n) ?? [...usualStart];
  conditions.delay = Math.min(Math.max(Math.round((numbers("delay", 1) ?? [0])[0]), 0), 20);
  know(words.get("knows"));
  for (const key of ["noise", "stiction"]) conditions[key] = Math.max((numbers(key, 1) ?? [0])[0], 0);
  speed = numbers("speed", 1)?.[0] > 0 ? numbers("speed", 1)[0] : 1;
  drag = ["place", ...(references.length ? ["goal"] : [])].find((each) => each === words.get("drag")) ?? "push";
  axes = places("map", 2, n) && new Set(numbers("map", 2)).size === 2 && numbers("map", 2).every((i) => charted.includes(i)) ? numbers("map", 2) : [main, mainRate];
  shown = places("plots", 3, signals.length) ? numbers("plots", 3) : [main, n, signals.length - 1];
  pushes = [];
  for (const text of (words.get("push") ?? "").split(";").slice(0, MOST_PUSHES)) {
    const [at, ...speeds] = text.split(",").map(Number);
    if (speeds.length === nv && [at, ...speeds].every(Number.isFinite) && at >= 0) pushes.push({ at: Math.round(at), speeds, done: false });
  }
}
function writeAddress() {
  const { theta, delay, noise, stiction } = conditions;
  let text = `theta=${theta}&start=${start}&delay=${delay}&noise=${noise}&stiction=${stiction}&speed=${speed}&drag=${drag}&map=${axes}&plots=${shown}`;
  text += `&knows=${knows()}`;
  if (pushes.length) text += `&push=${pushes.map(({ at, speeds }) => [at, ...speeds]).join(";")}`;
  history.replaceState(null, "", `#${text}`);
  const parameters = facts.parameters.map((each, i) => `${each.name} ${short(theta[i])} ${each.unit}`).join(", ");
  const harsh = `delay of ${delay} control periods, sensor noise ${short(noise)} and stiction ${short(stiction)} times the usual`;
  const pushed = pushes.length ? `; ${pushes.length} ${pushes.length === 1 ? "push" : "pushes"}` : "";
  const told = `; the policies know ${new Map(knowledge).get(knows())}`;
  $("now").textContent = `Simulated with ${parameters}${told}; ${harsh}${pushed}.`;
}
