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
  context.strokeStyle = context.fillStyle = paint("ink");
  return { context, width, height };
}

// Round numbers from low to high, about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= raw), found = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12); k++) found.push(k * step);
  return found;
}
// One signal of every run over time, with axes; where the pointer is, time and values.
function plot({ canvas, values, pointer }, signal) {
  const { context, width, height } = sharp(canvas, 170), column = signal + 1, least = 1e-3 * signals[signal].limit;
  const rows = panes.flatMap((pane) => pane.history), all = rows.map((row) => row[column]);
  const low = all.reduce((a, b) => Math.min(a, b), -least), high = all.reduce((a, b) => Math.max(a, b), least);
  const first = rows.length ? panes[0].history[0][0] : 0, last = Math.max(panes[0].simulation.time, horizon);
  const left = 46, right = 10, above = 8, below = 20, seconds = (last - first) / (width - left - right);
  const at = (t, v) => [left + (t - first) / seconds, height - below - ((height - above - below) * (v - low)) / (high - low)];
  context.font = "11px system-ui"; context.lineWidth = 1;
  const line = (from, to, alpha) => {
    context.globalAlpha = alpha;
    context.beginPath(); context.moveTo(...from); context.lineTo(...to); context.stroke();
    context.globalAlpha = 1;
  };
  context.textAlign = "right";
  for (const v of ticks(low, high, 4)) {
    line(at(first, v), at(last, v), Math.abs(v) < 1e-12 ? 0.5 : 0.12);
    context.fillText(short(v), left - 5, at(first, v)[1] + 4);
  }
  context.textAlign = "center";
  ticks(first, last, 5).forEach((t, i, all) => {
    line(at(t, low), at(t, high), 0.12);
    context.fillText(i === all.length - 1 ? `${short(t)} s` : short(t), at(t, low)[0], height - 5);
  });
  context.lineWidth = 2;
  for (const pane of panes) {
    context.strokeStyle = pane.colour;
    context.setLineDash(pane.dash);
    context.beginPath();
    const wraps = facts.states[signal]?.continuous;
    pane.history.forEach((row, i) => {
      const jumps = i === 0 || (wraps && Math.abs(row[column] - pane.history[i - 1][column]) > Math.PI);
      context[jumps ? "moveTo" : "lineTo"](...at(row[0], row[column]));
    });
    context.stroke();
  }
  context.setLineDash([]);
  const time = pointer === null ? Infinity : Math.max(first + (pointer - left) * seconds, first);
  const read = panes.map(({ history }) => history.find((row) => row[0] >= time) ?? history.at(-1));
  if (read[0] && time <= last) {
    context.strokeStyle = paint("ink");
    line(at(read[0][0], low), at(read[0][0], high), 0.6);
  }
  const unit = signals[signal].unit === "1" ? "" : ` ${signals[signal].unit}`;
  values.textContent = read[0] ? `at ${read[0][0].toFixed(2)} s: ${read.map((row) => steady(row[column], signals[signal]) + unit).join(" · ")}` : "";
}

function worker(message, run, answer) {
  const text = $("engine").textContent + workerText, url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const made = new Worker(url);
  made.onmessage = ({ data }) => answer(data, made);
  made.postMessage({ ...message, run, conditions: { ...conditions, theta: [...conditions.theta], ...message.told } });
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
  const rows = panes.map((pane, i) => {
    const own = results[i].map((each) => each.result), mean = own.reduce((a, b) => a + b, 0) / own.length;
    const share = results[i].filter((each) => each.success).length / own.length;
    return [pane.run.label, `${(100 * share).toFixed(0)} %`, short(mean), short(Math.min(...own))];
  });
  histograms.length = 0;
  const figures = panes.map((pane, i) => {
    const bins = new Array(30).fill(0), canvas = element("canvas");
    for (const { result } of results[i]) bins[Math.min(29, Math.floor((30 * (result - low)) / (high - low)))]++;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Histogram of the returns of ${pane.run.label}`);
    histograms.push({ pane, canvas, bins, low, high });
    return element("figure", {}, element("figcaption", {}, named(pane), ": starts over their return"), canvas);
  });
  $("distribution").replaceChildren(table(["policy", "success", "mean return", "worst"], rows), element("div", { className: "panes" }, ...figures));
}
// The name of a policy beside its colour, the same everywhere.
function named({ run, name }) {
  const key = element("span", { className: "key" });
  key.style.background = `var(--${name})`;
  return element("b", {}, key, run.label);
}
function drawHistogram({ pane, canvas, bins, low, high }) {
  const { context, width, height } = sharp(canvas, 100), most = Math.max(...bins), floor = height - 18;
  context.fillStyle = pane.colour;
  bins.forEach((size, b) => { context.fillRect((b * width) / 30 + 1, floor - (size / most) * (floor - 4), width / 30 - 2, (size / most) * (floor - 4)); });
  context.fillStyle = context.strokeStyle = paint("soft");
  context.font = "11px system-ui"; context.textAlign = "center";
  for (const value of ticks(low, high, 5)) context.fillText(short(value), Math.min(Math.max(((value - low) / (high - low)) * width, 14), width - 14), height - 4);
}

// 256 colours of a map of the style, red, green and blue of each.
function palette(name) {
  const stops = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).split(/,\s*(?![^(]*\))/);
  const colours = stops.map((stop) => { probe.style.color = stop; return getComputedStyle(probe).color.match(/[\d.]+/g).map(Number); });
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (colours.length - 1), k = Math.min(Math.floor(at), colours.length - 2);
    return [0, 1, 2].map((c) => colours[k][c] + (at - k) * (colours[k + 1][c] - colours[k][c]));
  });
}
// V and the inputs of every run over two states; the other states are those of the present, or of the target.
let asked = 0;
function maps(present = false) {
  const [first, second] = axes, round = ++asked, x = present ? panes[0].simulation.x : panes[0].simulation.targetOf(conditions.theta);
  const quantities = [{ name: "V" }, facts.inputs[0]];
  const blank = panes.flatMap((pane) => quantities.map((quantity) => {
    const canvas = element("canvas"), words = `${quantity.name} of ${pane.run.label} over ${facts.states[first].name} and ${facts.states[second].name}`;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", words);
    const caption = element("figcaption", {}, `${quantity.name} of `, named(pane));
    return { pane, canvas, quantity, first, second, values: null, figure: element("figure", {}, caption, canvas) };
  }));
  heat.splice(0, heat.length, ...blank); // the axes at once, the colours of all when all are there
  $("heat").replaceChildren(...blank.map((each) => each.figure));
  const waiting = new Map(); // a rough map of all policies first, then a fine one
  const told = (observer) => conditions.finds && observer && { finds: false, knows: true, theta: [...observer.parameters] }; // what it knows now
  panes.forEach((pane) => worker({ job: "maps", first, second, x: [...x], told: told(pane.simulation.observer) }, pane.run, (data, made) => {
    if (data.last) made.terminate();
    for (const each of blank) if (each.pane === pane) each.found = { ...each.found, [data.size]: each.quantity.name === "V" ? data.V : data.U };
    waiting.set(data.size, (waiting.get(data.size) ?? panes.length) - 1);
    if (waiting.get(data.size) === 0 && round === asked) quantities.forEach((quantity) => fill(blank.filter((each) => each.quantity === quantity), data.size));
  }));
}
// Of one quantity, with the same range for every policy, so that colours compare.
function fill(all, size) {
  const values = all.map(({ found }) => found[size]), { lower, upper } = bounds(all[0].quantity), signed = lower < 0 && upper > 0;
  const low = Math.min(...values.map((each) => each.reduce((a, b) => Math.min(a, b)))), high = Math.max(...values.map((each) => each.reduce((a, b) => Math.max(a, b))));
  const range = upper === lower ? [low, Math.max(high, low + 1e-9)] : signed ? [-Math.max(-lower, upper), Math.max(-lower, upper)] : [lower, upper];
  all.forEach((each, i) => {
    Object.assign(each, { size, signed, values: values[i], low: range[0], high: range[1], small: null });
    each.figure.dataset.filled = `${each.first},${each.second}`;
  });
}
function bounds({ middle = 0, limit = 0 }) {
  return { lower: middle - limit, upper: middle + limit };
}
function coloured(map) {
  const { values, size, low, high, signed } = map, colours = palette(signed ? "signed" : "sequential");
  map.small = element("canvas", { width: size, height: size });
  const pixels = map.small.getContext("2d").createImageData(size, size);
  values.forEach((value, i) => {
    const share = Math.min(Math.max((value - low) / (high - low), 0), 1), at = 4 * ((size - 1 - Math.floor(i / size)) * size + (i % size));
    pixels.data.set([...colours[Math.round(255 * share)], 255], at);
  });
  map.small.getContext("2d").putImageData(pixels, 0, 0);
  map.bar = element("canvas", { width: 1, height: 256 });
  const bar = map.bar.getContext("2d").createImageData(1, 256);
  colours.forEach((colour, i) => bar.data.set([...colour, 255], 4 * (255 - i)));
  map.bar.getContext("2d").putImageData(bar, 0, 0);
}
// The map with its axes and its colour bar, and every present state of its policy.
function drawHeat(map) {
  const { pane, canvas, quantity, first, second, values, low, high } = map;
  const { context, width, height } = sharp(canvas, 250), left = 40, right = 58, above = 10, below = 36, w = width - left - right, h = height - above - below;
  if (values && !map.small) coloured(map);
  context.imageSmoothingQuality = "high";
  if (map.small) context.drawImage(map.small, 0.5, 0.5, map.size - 1, map.size - 1, left, above, w, h); // from middle to middle
  context.strokeStyle = context.fillStyle = paint("soft");
  context.lineWidth = 1; context.strokeRect(left, above, w, h);
  context.font = "11px system-ui";
  const { limit: across } = facts.states[first], { limit: up } = facts.states[second];
  context.textAlign = "center";
  for (const v of ticks(-across, across, w < 160 ? 3 : 5)) context.fillText(short(v), left + (w * (v / across + 1)) / 2, above + h + 14);
  context.fillText(withUnit(facts.states[first]), left + w / 2, height - 5);
  context.textAlign = "right";
  for (const v of ticks(-up, up, 5)) context.fillText(short(v), left - 5, above + (h * (1 - v / up)) / 2 + 4);
  context.save();
  context.translate(10, above + h / 2); context.rotate(-Math.PI / 2); context.textAlign = "center";
  context.fillText(withUnit(facts.states[second]), 0, 0);
  context.restore();
  if (!map.small) return;
  context.drawImage(map.bar, width - right + 10, above, 10, h);
  context.textAlign = "left";
  for (const v of ticks(low, high, 4)) context.fillText(short(v), width - right + 24, above + h * (1 - (v - low) / (high - low)) + 4);
  context.fillText(quantity.unit ?? "", width - right + 10, above + h + 14);
  const { x } = pane.simulation, dot = [left + (w * (x[first] / across + 1)) / 2, above + (h * (1 - x[second] / up)) / 2];
  context.beginPath(); context.arc(...dot, 5, 0, 7); context.fillStyle = pane.colour; context.fill();
  context.strokeStyle = "#fff"; context.lineWidth = 2; context.stroke();
}
