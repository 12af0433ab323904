"""The `solver` command: train, baseline, evaluate, plot."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional, arg

from modelgen.errors import ModelError, suggestion
from solver.baseline_settings import BaselineSettings, baseline_settings
from solver.errors import DivergenceError, SolverError
from solver.plants import PlantName
from solver.settings import Settings, make_settings

USAGE, FAILED, INTERRUPTED = 2, 1, 130


@dataclass(frozen=True)
class Train:
    """Train a policy for a built robot, or go on with an interrupted run."""

    robot: Positional[str] = ""
    """Name of a robot built with `modelgen build`."""
    preset: str = "fast"
    """`fast` (minutes on two cores) or `paper` (the authors' settings); every setting below overrides it."""
    out: Path | None = None
    """Run folder; by default runs/ROBOT-ALGORITHM-PRESET-seedN."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    resume: Path | None = None
    """Go on with the run in this folder, with its own settings."""
    generated: str | None = None
    """Folder of artifacts; by default ./generated, then the one shipped with the package."""
    settings: OmitArgPrefixes[Settings] = field(default_factory=Settings)


@dataclass(frozen=True)
class Baseline:
    """Train SAC, DDPG or PPO from Stable-Baselines3 on a built robot, or go on with an interrupted baseline."""

    robot: Positional[str] = ""
    """Name of a robot built with `modelgen build`."""
    out: Path | None = None
    """Run folder; by default runs/ROBOT-ALGORITHM-START-seedN, with -randomized before the seed."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    resume: Path | None = None
    """Go on with the baseline in this folder, with its own settings."""
    generated: str | None = None
    """Folder of artifacts; by default ./generated, then the one shipped with the package."""
    settings: OmitArgPrefixes[BaselineSettings] = field(default_factory=BaselineSettings)


@dataclass(frozen=True)
class Evaluate:
    """Roll out a trained policy, on the nominal robot or one with changed parameters."""

    run: Positional[Path]
    """Run folder."""
    episodes: int = 100
    """Rollouts from the task's start distribution."""
    changes: Annotated[list[str], arg(name="set")] = field(default_factory=list)
    """Parameters of the plant, not of the policy: mass=1.3x, mass=+0.05 or mass=1.1; several may follow."""
    plant: PlantName = "nominal"
    """`nominal` is the model, `harsh` the model behind the drive and sensors of a small laboratory robot, `mujoco`
    another engine."""
    harsh: list[str] = field(default_factory=list)
    """What makes the harsh plant harsh: delay, saturation, backlash, stiction, encoder, noise, each perhaps with a
    multiple, noise=2x; by default all of them."""
    seed: int | None = None
    """Seed of the starts and of the harsh plant's noise; by default the one used in training."""
    json: bool = False
    """Print JSON instead of a table."""
    generated: str | None = None
    """Folder of artifacts when it has moved."""


@dataclass(frozen=True)
class Plot:
    """Draw the value function and policy, rollouts and the learning curve into the run folder."""

    run: Positional[Path]
    """Run folder."""
    joint: str | None = None
    """Coordinate on the horizontal axis of the maps; by default the first continuous one."""
    changes: Annotated[list[str], arg(name="set")] = field(default_factory=list)
    """Changed parameters of the plant in the rollouts, as in `solver evaluate`."""
    generated: str | None = None
    """Folder of artifacts when it has moved."""


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code: 0, 2 for a user's mistake, 1 for a run that diverged."""
    words = sys.argv[1:] if argv is None else argv
    commands: dict[str, tuple[type, Callable[[Any], None]]] = {
        "train": (Train, _train),
        "baseline": (Baseline, _baseline),
        "evaluate": (Evaluate, _evaluate),
        "plot": (Plot, _plot),
    }
    if not words or words[0] not in commands:
        asked = words[:1] in (["-h"], ["--help"])
        if words and not asked:
            print(f"error: unknown command '{words[0]}'.{suggestion(words[0], commands)}", file=sys.stderr)
        print(
            "usage: solver {train,baseline,evaluate,plot} ...    `solver COMMAND --help` explains each", file=sys.stderr
        )
        return 0 if asked else USAGE
    kind, run = commands[words[0]]
    parse = partial(tyro.cli, kind, prog=f"solver {words[0]}", args=words[1:], config=(FlagCreatePairsOff,))
    try:
        if words.count("--set") > 1:
            raise SolverError(
                "--set stands twice; write every change behind one, for example --set mass=1.3x length=1.1"
            )
        options = parse()
        if isinstance(options, Train) and options.robot:
            options = parse(default=_with_preset(options))
        if isinstance(options, Baseline) and options.robot:
            options = parse(default=Baseline(settings=baseline_settings(options.settings.algorithm)))
        run(options)
    except (SolverError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except DivergenceError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _with_preset(options: Train) -> Train:
    """The preset's settings for the robot, as the default that the command line then changes."""
    from modelgen.artifact import find, read

    metadata = read(find(options.robot, options.generated)).metadata
    return Train(settings=make_settings(options.preset, metadata))


def _train(options: Train) -> None:
    from solver.progress import progress
    from solver.run_folder import CHECKPOINT, load_checkpoint, load_run, remove_run
    from solver.training import resume, start

    if options.resume is not None:
        if options != Train(resume=options.resume):
            raise SolverError("a resumed run keeps its own robot and settings; give --resume DIR and nothing else")
        folder, settings = options.resume, load_run(options.resume).settings
        done = load_checkpoint(folder)["iteration"]
    elif options.robot:
        s = settings = options.settings
        name = f"{options.robot}-{s.algorithm}-{options.preset}-seed{s.seed}"
        folder, done = options.out or Path("runs") / name, 0
        if options.overwrite and (folder / CHECKPOINT).exists():
            remove_run(folder)
    else:
        raise SolverError("name a robot to train, for example `solver train pendulum`, or a run with --resume DIR")
    with progress(done, settings.iterations) as report:
        try:
            if options.resume is not None:
                resume(folder, report)
            else:
                start(options.robot, options.preset, settings, folder, options.generated, report)
        except KeyboardInterrupt:
            print(f"\ninterrupted; go on with: solver train --resume {folder}", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
    print(f"trained {folder}    next: solver evaluate {folder}    solver plot {folder}")


def _baseline(options: Baseline) -> None:
    from solver.baselines import load_baseline, resume, start
    from solver.progress import progress
    from solver.run_folder import CHECKPOINT, load_checkpoint, remove_run

    if options.resume is not None:
        if options != Baseline(resume=options.resume):
            raise SolverError("a resumed baseline keeps its own robot and settings; give --resume DIR and nothing else")
        folder, settings = options.resume, load_baseline(options.resume).settings
        done = load_checkpoint(folder, keys=("steps",))["steps"]
    elif options.robot:
        s = settings = options.settings
        name = f"{options.robot}-{s.algorithm}-{s.start}{'-randomized' if s.randomize else ''}-seed{s.seed}"
        folder, done = options.out or Path("runs") / name, 0
        if options.overwrite and (folder / CHECKPOINT).exists():
            remove_run(folder)
    else:
        raise SolverError("name a robot, for example `solver baseline pendulum`, or a baseline with --resume DIR")
    with progress(done, settings.steps, "action") as report:
        try:
            if options.resume is not None:
                resume(folder, report)
            else:
                start(options.robot, settings, folder, options.generated, report)
        except KeyboardInterrupt:
            print(f"\ninterrupted; go on with: solver baseline --resume {folder}", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
    print(f"trained {folder}    next: solver evaluate {folder}")


def _evaluate(options: Evaluate) -> None:
    from solver.evaluation import changed_parameters, rollouts, sample_starts, summary
    from solver.plants import make_plant
    from solver.policy import load_controller
    from solver.training import EVALUATION_SEED

    if options.episodes < 1:
        raise SolverError(f"--episodes is {options.episodes}; give at least 1")
    game, act, label = load_controller(options.run, options.generated)
    theta = changed_parameters(game, options.changes)
    seed = EVALUATION_SEED if options.seed is None else options.seed
    plant = make_plant(options.plant, game, theta, options.harsh, seed)
    result = summary(rollouts(game, act, sample_starts(game, options.episodes, seed), plant))
    if options.json:
        parameters = dict(zip(game.robot.parameter_names, theta.tolist(), strict=True))
        about: dict[str, Any] = {
            "run": str(options.run),
            "robot": game.robot.name,
            "label": label,
            "plant": options.plant,
        }
        about |= {"harsh": options.harsh, "episodes": options.episodes, "seed": seed, "parameters": parameters}
        print(json.dumps(about | result, indent=2))
        return
    plant_name = "" if options.plant == "nominal" else f"{' '.join([options.plant, *options.harsh])}, "
    print(
        f"{label}, {plant_name}{' '.join(options.changes) or 'nominal'}, {options.episodes} rollouts:  "
        f"return {result['return_mean']:.2f} +- {result['return_spread']:.2f}  (state {result['state_reward']:.2f}, "
        f"action {result['action_reward']:.2f}, worst {result['return_worst']:.2f})   "
        f"success {100 * result['success_rate']:.0f} %"
    )


def _plot(options: Plot) -> None:
    from solver.plots import plot_run

    for path in plot_run(options.run, options.joint, options.changes, options.generated):
        print(path)
