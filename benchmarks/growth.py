"""Operations of the Hamiltonian gradient against the number of links of a planar chain, compared with the naive route.

    python benchmarks/growth.py
    python benchmarks/growth.py --figure docs/pictures/growth.png

The naive route is what a computer algebra system does when it is asked: closed-form energies, Lagrange's equations,
the mass matrix solved symbolically, the Hamiltonian differentiated with respect to state, input and parameters. Its
operations are counted as they stand and after a search for common subexpressions (SymPy's cse), for as many links as
it finishes within --seconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import sympy
from generate import chain

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.lowering import mechanism
from modelgen.program.differentiate import program


def naive(links: int) -> tuple[int, int]:
    """Operations of the same gradient differentiated in closed form, as it stands and with common subexpressions."""
    q, v, u, costate_q, costate_v = (sympy.symbols(f"{name}:{links}", real=True) for name in ("q", "v", "u", "l", "p"))
    masses = sympy.symbols(f"m:{links}", positive=True)
    length, gravity = sympy.Rational(1, 2), sympy.Float(9.81)
    kinetic, potential = sympy.S.Zero, sympy.S.Zero
    angles = [sum(q[: k + 1]) for k in range(links)]
    for k in range(links):
        x = sum((length * sympy.sin(angles[j]) for j in range(k)), length / 2 * sympy.sin(angles[k]))
        z = sum((length * sympy.cos(angles[j]) for j in range(k)), length / 2 * sympy.cos(angles[k]))
        vx, vz = (sum(part.diff(angle) * rate for angle, rate in zip(q, v, strict=True)) for part in (x, z))
        spin = sum(v[: k + 1])
        kinetic += masses[k] * (vx**2 + vz**2) / 2 + masses[k] * length**2 / 12 * spin**2 / 2
        potential += masses[k] * gravity * z
    mass = sympy.hessian(kinetic, v)
    momenta = sympy.Matrix([kinetic.diff(rate) for rate in v])
    force = sympy.Matrix([(kinetic - potential).diff(angle) for angle in q]) + sympy.Matrix(u)
    force -= momenta.jacobian(q) * sympy.Matrix(v)
    acceleration = mass.LUsolve(force)
    hamiltonian = sum(a * b for a, b in zip(costate_q, v, strict=True))
    hamiltonian += sum(a * b for a, b in zip(costate_v, acceleration, strict=True))
    gradient = [hamiltonian.diff(symbol) for symbol in (*q, *v, *u, *masses)]
    definitions, reduced = sympy.cse(gradient)
    shared = [*(value for _, value in definitions), *reduced]
    return sum(each.count_ops() for each in gradient), sum(each.count_ops() for each in shared)


def measured(largest: int, seconds: float) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    finished = True
    for links in range(1, largest + 1):
        emitted = program(mechanism(equations_of_motion(chain(links)))).operations["hamiltonian_gradient"]
        row: dict[str, Any] = {"links": links, "modelgen": emitted, "naive": None, "naive_cse": None}
        if finished:
            command = [sys.executable, __file__, "--naive", str(links)]
            try:
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=seconds)
                row["naive"], row["naive_cse"] = json.loads(done.stdout)
            except subprocess.TimeoutExpired:
                finished = False
        results.append(row)
    return results


def draw(results: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for key, label, style in (
        ("naive", "closed form, differentiated", "s--"),
        ("naive_cse", "the same after a search for common subexpressions", "^--"),
        ("modelgen", "modelgen", "o-"),
    ):
        rows = [row for row in results if row[key]]
        axes.loglog([row["links"] for row in rows], [row[key] for row in rows], style, label=label)
    last = results[-1]
    links = [row["links"] for row in results]
    axes.loglog(
        links, [last["modelgen"] * (n / last["links"]) ** 2 for n in links], ":", color="grey", label="quadratic"
    )
    axes.set(xlabel="links of a planar chain", ylabel="operations of the Hamiltonian gradient")
    axes.set_xticks(links, map(str, links))
    axes.minorticks_off()
    figure.legend(loc="outside upper center", fontsize="small", ncols=2)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--links", type=int, default=10, help="of the longest chain")
    parser.add_argument("--seconds", type=float, default=120, help="for the naive route, a chain")
    parser.add_argument("--figure", type=Path, help="where to draw it")
    parser.add_argument("--naive", type=int, help=argparse.SUPPRESS)  # what each chain's own process is given
    options = parser.parse_args()
    if options.naive:
        print(json.dumps([int(count) for count in naive(options.naive)]))
        return
    results = measured(options.links, options.seconds)
    if options.figure:
        draw(results, options.figure)
    print(json.dumps({"results": results}, indent=1))


if __name__ == "__main__":
    main()
