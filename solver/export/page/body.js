// What there is to see of the robot: its points in the picture, its shapes, what stands still, where the inputs act.
const speeding = facts.states.some((state) => state.kind === "velocity");
// A push changes nv states from pushedFrom on: the speeds, or the coordinates where the inputs command the speeds.
const pushedFrom = speeding ? q : 0, nv = speeding ? facts.states.filter((state) => state.kind === "velocity").length : q;
const orbit = { yaw: -0.5, pitch: 0.35 }; // of the camera about a body in space (rad)
const solid = bodyInSpace();

function planePoints(x) {
  const flat = new Float64Array(rules.points * 2);
  if (rules.points) robot.points(x, conditions.theta, flat);
  return Array.from({ length: rules.points }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}
// Across, up and depth of every point (m), as the camera sees them.
function pointsAt(x) {
  return solid ? spacePoints(x).map(seen) : planePoints(x);
}
function seen([x, y, z]) {
  const { yaw, pitch } = orbit, c = Math.cos(yaw), s = Math.sin(yaw), away = -s * x + c * y;
  return [c * x + s * y, Math.cos(pitch) * z + Math.sin(pitch) * away, Math.cos(pitch) * away - Math.sin(pitch) * z];
}
// A robot that is one rigid body in space: the points in its frame, from the artifact's cabinet projection of y by
// DEPTH (modelgen.statement.drawing), in two attitudes. Null for a robot with joints, which its plane shows.
function bodyInSpace() {
  const DEPTH = 0.35, rotation = facts.rotations?.[0], size = 1 + DEPTH ** 2;
  if (facts.rotations?.length !== 1) return null;
  const at = rotation.coordinate, rest = new Float64Array(n);
  rest[at] = 1;
  if (!rules.points) return { at, along: [], ...equivalentBox(rest, rotation.speed) };
  const quarter = Float64Array.from(rest);
  quarter[at] = quarter[at + 3] = Math.SQRT1_2;
  const first = planePoints(rest), second = planePoints(quarter), along = [];
  const corners = first.map(([across, up], i) => {
    const y = (DEPTH * across - second[i][0]) / size;
    return [across - DEPTH * y, y, up - DEPTH * y];
  });
  for (let j = 0; j < q; j++) { // the axis along which a displacement moves all points
    if (j >= at && j < at + 4) continue;
    const moved = Float64Array.from(rest);
    moved[j] = 1;
    const there = planePoints(moved), shift = [there[0][0] - first[0][0], there[0][1] - first[0][1]];
    const axis = [[1, 0], [DEPTH, DEPTH], [0, 1]].findIndex((each) => Math.hypot(each[0] - shift[0], each[1] - shift[1]) < 1e-9);
    if (axis < 0) return null;
    along.push([j, axis]);
  }
  const made = { at, along, corners, segments: robot.SEGMENTS }, other = Float64Array.from(rest, (value, i) => value + 0.1 * ((i % 3) + 1));
  normaliseRotation(other, at);
  const right = spacePoints(other, made).every(([x, y, z], i) => Math.hypot(x + DEPTH * y - planePoints(other)[i][0], z + DEPTH * y - planePoints(other)[i][1]) < 1e-9);
  return right ? made : null;
}
// A box with the moments of inertia of a body that has nothing drawn; its longest side is 1 m.
function equivalentBox(x, speed) {
  const B = new Float64Array(n * m), a = new Float64Array(n);
  robot.affine_dynamics(x, nominal, a, B);
  const inertia = [0, 1, 2].map((i) => 1 / Math.max(1e-9, ...facts.inputs.map((_, k) => Math.abs(B[(speed + i) * m + k]))));
  const total = inertia.reduce((sum, each) => sum + each, 0);
  const sides = inertia.map((each) => Math.sqrt(Math.max(total - 2 * each, 0.05 * total))), longest = Math.max(...sides);
  const corners = Array.from({ length: 8 }, (_, i) => sides.map((side, k) => ((i >> k) & 1 ? 0.5 : -0.5) * (side / longest)));
  const segments = corners.flatMap((_, i) => [1, 2, 4].filter((bit) => !(i & bit)).map((bit) => [i, i | bit]));
  return { corners, segments };
}
function spacePoints(x, body = solid) {
  const R = rotationMatrix(x, body.at), place = [0, 0, 0];
  for (const [j, axis] of body.along) place[axis] = x[j];
  return body.corners.map((p) => place.map((each, i) => each + R[3 * i] * p[0] + R[3 * i + 1] * p[1] + R[3 * i + 2] * p[2]));
}

// The rates of the coordinates at given speeds.
function along(x, speeds) {
  if (!speeding) return Float64Array.from(speeds);
  const moving = Float64Array.from(x), rates = new Float64Array(n);
  for (let j = 0; j < nv; j++) moving[q + j] = speeds[j];
  robot.dynamics(moving, facts.inputs.map((input) => input.trim), conditions.theta, rates);
  return rates.slice(0, q);
}
// How fast a point moves in the picture for every unit of speed: nv pairs.
function slopes(x, index) {
  const step = 1e-6, here = pointsAt(x)[index];
  return Array.from({ length: nv }, (_, j) => {
    const rates = along(x, Array.from({ length: nv }, (_, k) => (k === j ? 1 : 0))), y = Float64Array.from(x);
    for (let i = 0; i < q; i++) y[i] += step * rates[i];
    const there = pointsAt(y)[index];
    return [(there[0] - here[0]) / step, (there[1] - here[1]) / step];
  });
}
// The speeds, of least length, with which a drawn point moves as `wanted` (m/s).
function speedsFor(x, index, wanted) {
  return leastChange(slopes(x, index), wanted);
}
function leastChange(J, wanted) {
  let a = 0, b = 0, d = 0;
  for (const [across, up] of J) { a += across * across; b += across * up; d += up * up; }
  const damping = 1e-3 * (a + d) + 1e-12;
  a += damping; d += damping;
  const det = a * d - b * b, f = (d * wanted[0] - b * wanted[1]) / det, g = (a * wanted[1] - b * wanted[0]) / det;
  return J.map(([across, up]) => across * f + up * g);
}

// Poses that the joints can take, for the camera and to tell what stands still.
const turning = facts.states.slice(0, q).map((state) => state.unit === "rad");
function posed(x, k, moving = false) {
  const y = Float64Array.from(x), share = (i) => 2 * ((0.5 + k * [0.618034, 0.754878, 0.819173, 0.856675][i % 4]) % 1) - 1;
  for (let i = 0; i < q; i++) if (turning[i] || moving) y[i] = share(i) * facts.states[i].limit;
  return y;
}
const shape = solid ? { sticks: solid.segments, plates: [], spokes: [], still: [], fixed: [], joints: [] } : shapesOf();
function shapesOf() {
  const at = facts.task.target, poses = Array.from({ length: 6 }, (_, k) => planePoints(posed(at, k, true)));
  const fixed = poses[0].map((p, i) => poses.every((pose) => Math.hypot(pose[i][0] - p[0], pose[i][1] - p[1]) < 1e-9));
  const touches = (i) => robot.SEGMENTS.filter((pair) => pair.includes(i)), plates = [], used = new Set();
  for (const pair of robot.SEGMENTS) { // a closed loop that nothing else touches is a plate
    if (used.has(pair)) continue;
    const loop = [pair[0]], own = [];
    for (let next = pair, end = pair[0]; next && !own.includes(next); next = touches(end).find((each) => !own.includes(each))) {
      if (touches(end).length !== 2) break;
      own.push(next);
      end = next[0] === end ? next[1] : next[0];
      loop.push(end);
    }
    if (own.length > 2 && loop.at(-1) === loop[0]) { plates.push(loop); own.forEach((each) => used.add(each)); }
  }
  const lines = robot.SEGMENTS.filter((pair) => !used.has(pair)), still = lines.filter(([a, b]) => fixed[a] && fixed[b]);
  const spokes = lines.filter((pair) => plates.some((loop) => pair.every((i) => within(poses[0][i], loop.map((each) => poses[0][each])))));
  const sticks = lines.filter((pair) => !still.includes(pair) && !spokes.includes(pair)), ends = sticks.flat();
  const pivots = fixed.map((each, i) => i).filter((i) => fixed[i] && ends.includes(i));
  const cart = (i) => plates.some((loop) => poses.every((pose) => within(pose[i], loop.map((each) => pose[each])))); // sits on a plate
  const joints = [...new Set(ends)].filter((i) => ends.filter((each) => each === i).length > 1 || fixed[i] || cart(i));
  return { sticks, plates, spokes, still, fixed: pivots, joints };
}
// Whether a point lies in the circle about a plate.
function within([x, y], loop) {
  const [across, up] = [0, 1].map((k) => loop.slice(1).reduce((sum, p) => sum + p[k], 0) / (loop.length - 1));
  const radius = Math.max(...loop.map((p) => Math.hypot(p[0] - across, p[1] - up)));
  return Math.hypot(x - across, y - up) <= 1.001 * radius;
}
// The point that moves most, whose trace is drawn.
const tip = (() => {
  const poses = Array.from({ length: 12 }, (_, k) => pointsAt(posed(facts.task.target, k)));
  const spread = poses[0].map((p, i) => poses.reduce((sum, pose) => sum + Math.hypot(pose[i][0] - p[0], pose[i][1] - p[1]), 0));
  const ends = [...(shape.sticks.length ? shape.sticks : robot.SEGMENTS).flat()];
  return ends.reduce((best, i) => (spread[i] > spread[best] + 1e-9 ? i : best), ends[0]);
})();

// Where an input shows: { pivot, from, sense } of a torque on a joint, or { point, direction } of a force, in the plane
// of the picture. What acts along several coordinates shows at the point that it moves most.
function acting(x, input, B) {
  const j = facts.states.slice(0, q).findIndex((state) => state.name === input.coordinate);
  if (j >= 0 && !solid) {
    const y = Float64Array.from(x), step = 1e-5, here = pointsAt(x);
    y[j] += step;
    const moved = pointsAt(y).map((p, i) => [(p[0] - here[i][0]) / step, (p[1] - here[i][1]) / step]);
    const moves = moved.map(([across, up]) => Math.hypot(across, up) > 1e-6);
    const first = moves.indexOf(true);
    if (first < 0) return null;
    if (!turning[j]) {
      const plate = shape.plates.find((loop) => loop.includes(first)), middle = plate?.slice(1).map((i) => here[i]) ?? [here[first]];
      return { point: [0, 1].map((k) => middle.reduce((sum, p) => sum + p[k], 0) / middle.length), direction: moved[first] };
    }
    const stick = shape.sticks.find(([a, b]) => moves[a] !== moves[b]);
    let end = stick ? (moves[stick[0]] ? stick[0] : stick[1]) : first, pivot;
    if (stick) pivot = here[stick[0] === end ? stick[1] : stick[0]];
    else { // a wheel or a beam about its middle: the point at rest, from the speeds of two points
      const other = moved.findLastIndex((_, i) => moves[i] && i !== end), d = [here[other][0] - here[end][0], here[other][1] - here[end][1]];
      const rate = (d[0] * (moved[other][1] - moved[end][1]) - d[1] * (moved[other][0] - moved[end][0])) / Math.max(d[0] ** 2 + d[1] ** 2, 1e-12);
      if (Math.abs(rate) < 1e-6) return null;
      pivot = [here[end][0] - moved[end][1] / rate, here[end][1] + moved[end][0] / rate];
    }
    const r = [here[end][0] - pivot[0], here[end][1] - pivot[1]];
    return { pivot, from: Math.atan2(r[1], r[0]), sense: Math.sign(r[0] * moved[end][1] - r[1] * moved[end][0]) };
  }
  const k = facts.inputs.indexOf(input), column = Array.from({ length: nv }, (_, i) => B[(pushedFrom + i) * m + k]), step = 1e-5;
  const y = Float64Array.from(x), rates = along(x, column), size = Math.max(...column.map(Math.abs), 1e-9);
  for (let i = 0; i < q; i++) y[i] += (step / size) * rates[i];
  const of = solid ? spacePoints : planePoints, here = of(x), there = of(y);
  const shift = here.map((p, i) => p.map((each, axis) => there[i][axis] - each)), length = shift.map((each) => Math.hypot(...each));
  const most = length.indexOf(Math.max(...length));
  const direction = shift[most].map((each) => each / (length[most] || 1));
  return { point: solid ? seen(here[most]) : here[most], direction: solid ? seen(direction) : direction, normal: direction, place: here[most] };
}
