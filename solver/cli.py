"""The program `solver`: a table of its commands. Each is a file in solver.commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from modelgen.commandline.program import Command, CommandLine
from modelgen.errors import ModelError
from solver.errors import DivergenceError, SolverError


@contextmanager
def _serial() -> Iterator[None]:
    """Torch on one thread; imported here, since help does not need Torch."""
    from solver.streams import serial_torch

    with serial_torch():
        yield


PROGRAM = CommandLine(
    "solver",
    about="solver trains a policy that is robust on the whole state domain of a built robot, and tests it.",
    commands={
        "train": Command(
            "solver.commands.train",
            "Train a policy, or continue an interrupted run.",
            "solver train pendulum --seed 1 --out runs/demo",
        ),
        "baseline": Command(
            "solver.commands.baseline",
            "Train SAC, DDPG or PPO of Stable-Baselines3 on the same robot.",
            "solver baseline pendulum --algorithm sac --randomize",
        ),
        "classical": Command(
            "solver.commands.classical",
            "Build a control engineer's controller of the same robot.",
            "solver classical pendulum --algorithm energy",
        ),
        "evaluate": Command(
            "solver.commands.evaluate",
            "Roll out a policy, also on another plant than the nominal one.",
            "solver evaluate runs/demo --plant harsh --set mass=1.3x",
        ),
        "limit": Command(
            "solver.commands.limit",
            "Look for the best return of any controller, by optimisation.",
            "solver limit runs/demo",
        ),
        "robustness": Command(
            "solver.commands.robustness",
            "Roll out policies over a range of one or two parameters.",
            "solver robustness runs/demo --parameter mass --from 0.5x --to 1.5x",
        ),
        "certify": Command(
            "solver.commands.certify",
            "Bound how often a policy fails, and look for its worst case.",
            "solver certify runs/demo --html certificate.html",
        ),
        "prove": Command(
            "solver.commands.prove",
            "Prove that the states around the target are brought to it.",
            "solver prove pendulum-rfvi --spread 0.05",
        ),
        "check": Command(
            "solver.commands.check",
            "Check a proof with other code.",
            "solver check pendulum.proof.json --all",
        ),
        "replay": Command(
            "solver.commands.replay",
            "Play the worst case that `solver certify` found.",
            "solver replay pendulum.counterexample.json",
        ),
        "plot": Command(
            "solver.commands.plot",
            "Draw value function, policy, rollouts and learning curve.",
            "solver plot runs/demo",
        ),
        "animate": Command(
            "solver.commands.animate",
            "Draw a rollout of several runs side by side, as a GIF.",
            "solver animate runs/demo --set mass=1.5x",
        ),
        "page": Command(
            "solver.commands.page",
            "Write a page in which one can push the robot, for any browser.",
            "solver page runs/demo --out page.html",
        ),
        "export": Command(
            "solver.commands.export",
            "Write a policy in C99, ONNX, JavaScript or as an FMU.",
            "solver export runs/demo --c firmware",
        ),
        "policies": Command(
            "solver.commands.policies",
            "List the trained policies that ship with the package.",
            "solver policies",
        ),
        "sweep": Command(
            "solver.commands.sweep",
            "Train robots x settings x seeds, on this machine or a cluster.",
            "solver sweep sweep.toml --cluster tcp://10.0.0.1:8786",
        ),
        "reproduce": Command(
            "solver.commands.reproduce",
            "Make a table or figure of the paper, with all trainings.",
            "solver reproduce table1 --budget small",
        ),
    },
    read_on="how-to/train.md",
    mistakes=(SolverError, ModelError),
    failures=(DivergenceError,),
    around=_serial,
)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
