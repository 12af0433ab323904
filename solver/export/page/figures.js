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
  const first = rows.length ? panes[0].history[0][0] : 0, last = Math.max(panes[0].simulation.time, facts.task.horizon);
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
  context.lineWidth = 1.5;
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
    context.strokeStyle = getComputedStyle(document.body).color;
    line(at(read[0][0], low), at(read[0][0], high), 0.6);
  }
  const unit = signals[signal].unit === "1" ? "" : ` ${signals[signal].unit}`;
  values.textContent = read[0] ? `at ${read[0][0].toFixed(2)} s: ${read.map((row) => short(row[column]) + unit).join(" · ")}` : "";
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
  const [first, second] = axes, size = 41;
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

