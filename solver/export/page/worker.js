// Of a worker: some of the starts of one run, or its maps of V and u over two states.
onmessage = ({ data }) => {
  const { run, conditions, job } = data;
  const simulation = makeSimulation(robot, facts, rules, run);
  if (job === "starts") {
    const steps = Math.round(run.horizon * facts.task.control_rate);
    for (let index = data.first; index < data.last; index++) {
      const start = Float64Array.from(drawnStart(facts, index, conditions.theta, simulation.followed(conditions)));
      simulation.confine(start);
      simulation.reset(start, { ...conditions, seed: index });
      for (let i = 0; i < steps; i++) simulation.step(conditions);
      postMessage({ result: simulation.result, success: simulation.success() });
    }
    return;
  }
  simulation.know(conditions);
  const { first, second, x } = data, point = Float64Array.from(x), gradient = new Float64Array(x.length), u = new Float64Array(facts.inputs.length);
  for (const size of [15, 49]) {
    const V = new Float32Array(size * size), U = new Float32Array(size * size);
    const place = (state, i) => facts.states[state].limit * ((2 * i) / (size - 1) - 1);
    for (let row = 0; row < size; row++)
      for (let column = 0; column < size; column++) {
        point[first] = place(first, column);
        point[second] = place(second, row);
        V[row * size + column] = simulation.value(point, gradient);
        simulation.policy(point, u);
        U[row * size + column] = u[0];
      }
    postMessage({ V, U, size, last: size === 49 });
  }
};
