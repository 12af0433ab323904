"""One control period of boxes of states anywhere, with the input held, for the robots of a slice.

The end of N boxes with the input u is

    x+ = x + T F + T^2/2 F' F + T^3/6 (F' F)' F + T^4/24 R,   F = a(x, theta) + B(x, theta) u,

by Taylor models of second order (`solver.proof.quadratic`), R enclosed over all states of the period. Parameters may be
any of their slice, other ones in every period.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelgen.program.differentiate import forward
from modelgen.program.graph import Graph, Node
from solver.errors import SolverError
from solver.proof.affine import Linear, Mask, Numbers, rounding, upward
from solver.proof.held_loop import inputs_of
from solver.proof.outside import HeldPolicy
from solver.proof.quadratic import Quadratic, evaluate

ORDER = 3  # of Taylor's formula
INFLATIONS = 4  # of the enclosure of the motion in a period
GROWTH = 1.1  # of a guess of it, which is then shown

#: Images of some boxes (K,), by number, and whether (K,) they are known. A box has an image for each way of the policy.
Images = tuple[Numbers, Linear, Mask]


class Step:
    """One control period of boxes, for the robots of a slice (`solver.proof`).

    input_error: largest error (SI units) of the input that the robot's controller computes.
    """

    def __init__(self, policy: HeldPolicy, robots: Sequence[tuple[float, float]], input_error: float) -> None:
        loop = policy.loop
        if len(loop.trim) != 1:
            raise SolverError(f"{loop.robot.name} has {len(loop.trim)} inputs; --reach proves robots of one input")
        loop.require_without("abs", "minimum", "maximum", found="Taylor's formula knows no kinks, as of Abs and Max")
        self.loop, self.policy, self.input_error = loop, policy, input_error
        middle, half = np.array(robots).T
        self.robot, self.spread = middle * loop.nominal, half * (1 + 1e-9) * np.abs(loop.nominal)
        self.n, graph = len(loop.target), Graph()
        self.graph, x, theta = graph, inputs_of(graph, self.n, "x"), inputs_of(graph, len(robots), "p")
        u, program = graph.input("u0"), loop.robot.program
        self.inputs = [*x, u, *theta]
        known = dict(zip(program.arguments["x"].entries, x, strict=True))
        known |= dict(zip(program.arguments["theta"].entries, theta, strict=True))
        outputs = {output.name: output.entries for output in program.function("affine_dynamics").outputs}
        a, B = (graph.absorb(program.graph, outputs[name], known) for name in ("a", "B"))
        self.flow = [graph.add(a[i], graph.mul(B[i], u)) for i in range(self.n)]
        powers = [x, self.flow]
        for _ in range(ORDER):
            slopes = [forward(graph, powers[-1], place) for place in x]
            terms = [[graph.mul(slopes[j][i], self.flow[j]) for j in range(self.n)] for i in range(self.n)]
            powers.append([graph.sum(row) for row in terms])
        factor, self.end = 1.0, list(x)  # x+ without its remainder
        for k in range(1, ORDER + 1):
            factor *= loop.step / k
            self.end = [graph.add(self.end[i], graph.mul(graph.constant(factor), powers[k][i])) for i in range(self.n)]
        factor *= loop.step / (ORDER + 1)
        self.remainder = [graph.mul(graph.constant(factor), value) for value in powers[ORDER + 1]]

    @np.errstate(all="ignore")  # nothing is known of a wide box, and what is not finite is not shown
    def __call__(self, x: Linear) -> list[Images]:
        """The boxes after a period, for each way of the policy."""
        return [(at, *self._moved(x.rows(at), u)) for at, u in self.policy.ways(x)]

    def _moved(self, x: Linear, u: Linear) -> tuple[Linear, Mask]:
        """x after a period with u held, and whether (N,) that is known. Parameters with a spread have a symbol each."""
        d, varied = len(x.slopes), np.flatnonzero(self.spread)
        symbols, count = d + len(varied), len(x.middle)
        none = np.zeros((len(varied), count, 1))
        of_x = Quadratic.of(Linear(x.middle, np.concatenate([x.slopes, none.repeat(self.n, 2)]), x.rest))
        of_u = Quadratic.of(Linear(u.middle, np.concatenate([u.slopes, none]), u.rest + self.input_error))
        width = {int(k): {d + j: np.full(count, self.spread[k])} for j, k in enumerate(varied)}
        theta = [
            Quadratic.box(np.full(count, value), width.get(k, {}), rounding(np.abs(value)), symbols)
            for k, value in enumerate(self.robot)
        ]

        def over(roots: list[Node], state: Quadratic) -> Quadratic:
            known = [*(state[[k]] for k in range(self.n)), of_u, *theta]
            return evaluate(self.graph, roots, dict(zip(self.inputs, known, strict=True)), count, symbols)

        both, n = over([*self.flow, *self.end], of_x), self.n
        flow, end, way = both[:n], both[n:], np.zeros_like(x.middle)
        for _ in range(INFLATIONS):
            speed = np.abs(flow.middle) + flow.bend
            way = np.fmax(way, GROWTH * self.loop.step * speed)  # a guess of the largest motion in the period
            during = Quadratic(of_x.terms, of_x.rest + way)
            both = over([*self.flow, *self.remainder], during)
            flow, beyond = both[:n], both[n:]
            speed = upward(np.abs(flow.middle) + flow.bend, len(flow.terms))
            inside: Mask = np.all(self.loop.step * speed <= way, 1)
            if inside.all():
                break
        lengths = [i for i, state in enumerate(self.loop.robot.metadata.states) if not state.continuous]
        e = upward(np.abs(during.middle - self.loop.target) + during.bend, len(during.terms))
        found = (end + beyond).linear
        image = Linear(found.middle, found.slopes[:d], found.rest + np.abs(found.slopes[d:]).sum(0))
        limited: Mask = np.all(e[:, lengths] <= self.loop.bound[lengths], 1)
        return image, inside & limited & np.isfinite(image.bend).all(1)
