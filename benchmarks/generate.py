"""Seconds, operations and memory from a model to compiled kernels: chains of links, an arm, the shipped robots.

    python benchmarks/generate.py
    python benchmarks/generate.py --robots chain2 chain4 chain6 chain8 chain10 chain12
    python benchmarks/generate.py --robots panda leg --verify

Every robot is built in a process and a folder of its own, so nothing is cached. Its functions are then called
once each in double precision, which compiles them; with --verify the artifact is proven too. chainN is a planar chain
of N uniform rods with a motor in every joint; its parameters are the masses of the rods. panda and leg are imported
from URDF: the Franka Panda with its fingers held, and a leg of the quadruped Solo, both as the package
example-robot-data ships them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from machine import peak_rss_mb

from modelgen.derivation.model_file import SHIPPED, load
from modelgen.statement.robot import Robot

CHAIN = "chain"
#: URDF files of example-robot-data by robot; links and joints whose names begin so are taken out; joints that are held.
IMPORTED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "panda": ("panda_description/urdf/panda.urdf", (), ("panda_finger_joint1", "panda_finger_joint2")),
    "leg": ("solo_description/robots/solo12.urdf", ("FR_", "HL_", "HR_"), ()),
}
FUNCTIONS = ("affine_dynamics", "dynamics", "jacobians", "hamiltonian_gradient", "state_cost")


def names() -> list[str]:
    """All robots that can be measured."""
    shipped = sorted(path.stem for path in SHIPPED.glob("*.py") if not path.stem.startswith("_"))
    return [*(f"{CHAIN}{links}" for links in range(1, 13)), "arm7", *(IMPORTED if _urdfs() else ()), *shipped]


def _urdfs() -> Path | None:
    """The robots of example-robot-data, which the package `pin` brings along."""
    found = importlib.util.find_spec("pinocchio")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parents[4] / "share" / "example-robot-data" / "robots"
    return folder if folder.is_dir() else None


def chain(links: int) -> Robot:
    """A planar chain of rods, all angles zero when it stands upright."""
    from modelgen import LogCos

    robot = Robot(f"{CHAIN}{links}", f"Planar chain of {links} rods")
    below, joints = None, []
    for number in range(1, links + 1):
        joint = robot.revolute(f"joint{number}", continuous=True, rate_limit=10)
        mass = robot.parameter(f"mass{number}", 1.0, "kg", tolerance=0.5)
        length = 0.5
        below = robot.link(
            f"link{number}",
            joint,
            on=below,
            at=(0, 0, length if number > 1 else 0),
            mass=mass,
            centre=(0, 0, length / 2),
            inertia=mass * length**2 / 12,
        )
        robot.apply(joint, robot.input(f"torque{number}", 5.0, "N m"))
        joints.append(joint)
    robot.task(
        state_cost=sum(joint.rate**2 for joint in joints),
        action_cost=LogCos([0.1] * links),
        start={},
        horizon=5,
        weight_at_horizon=0.65,
        control_rate=125,
    )
    return robot


def stated(name: str) -> Robot:
    """The robot of a name."""
    if name in IMPORTED:
        return _imported(name)
    if name.startswith(CHAIN):
        return chain(int(name.removeprefix(CHAIN)))
    return load(str(SHIPPED / "large" / "arm7.py") if name == "arm7" else str(SHIPPED / f"{name}.py"))


def _imported(name: str) -> Robot:
    from modelgen.importers.urdf import model_file

    file, others, held = IMPORTED[name]
    folder = _urdfs()
    assert folder is not None
    with tempfile.TemporaryDirectory() as target:
        tree = ElementTree.parse(folder / file)
        for element in list(tree.getroot()):
            if others and element.get("name", "").startswith(others):
                tree.getroot().remove(element)
        tree.write(Path(target) / "robot.urdf")
        path = Path(target) / f"{name}.py"
        path.write_text(model_file(Path(target) / "robot.urdf", name, held), encoding="utf-8")
        return load(str(path))


def measured(name: str, proven: bool) -> dict[str, Any]:
    """One robot, in this process."""
    import numpy as np

    import modelgen
    from modelgen.builder import build_artifact

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        robot = stated(name)
        processor = time.process_time()
        report = build_artifact(robot, folder)
        processor, built = time.process_time() - processor, time.perf_counter() - start
        kernels = modelgen.load(name, directory=folder, parallel=False)
        n, m = len(kernels.state_names), len(kernels.input_names)
        x, u = np.zeros((1, n)), np.zeros((1, m))
        arguments = {"dynamics": (x, u), "hamiltonian_gradient": (x, u, x)}
        compiled = {}
        for function in FUNCTIONS:
            begun = time.perf_counter()
            getattr(kernels, function)(*arguments.get(function, (x,)))
            compiled[function] = round(time.perf_counter() - begun, 3)
        stages = {"model": round(built - sum(report.seconds.values()), 3), **report.seconds}
        if proven:
            stages["verify"] = _verified(robot, folder)
        total = time.perf_counter() - start
    return {
        "robot": name,
        "links": len(robot.links) or len(robot.joints),
        "seconds_total": round(total, 3),
        "seconds_by_stage": stages,
        "processor_seconds_of_the_build": round(processor, 3),
        "operations": report.operations,
        "source_bytes": report.source_bytes,
        "compile_seconds": round(sum(compiled.values()), 3),
        "compile_seconds_by_function": compiled,
        "peak_rss_mb": round(peak_rss_mb(), 1),
    }


def _verified(robot: Robot, folder: str) -> float:
    """Seconds for the checks of `modelgen verify`, all of which must pass."""
    import modelgen
    from modelgen.derivation.derive import equations_of_motion
    from modelgen.verification import verify

    begun = time.perf_counter()
    checks = verify(robot, equations_of_motion(robot), modelgen.load, Path(folder))
    failed = [check for check in checks if not check.passed]
    if failed:
        raise SystemExit(f"{robot.name} is not proven: {failed}")
    return round(time.perf_counter() - begun, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robots", nargs="+", default=names(), choices=names(), metavar="ROBOT")
    parser.add_argument("--verify", action="store_true", help="prove every artifact, too")
    parser.add_argument("--one", choices=names(), help=argparse.SUPPRESS)  # what each robot's own process is given
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.verify)))
        return
    results = []
    for name in options.robots:
        command = [sys.executable, __file__, "--one", name, *(["--verify"] if options.verify else [])]
        result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(f"{name}: {result['seconds_total']} s", file=sys.stderr, flush=True)
        results.append(result)
    print(json.dumps({"results": results}, indent=1))


if __name__ == "__main__":
    main()
