"""The motion of a robot without a policy, under constant or sinusoidal inputs, and its animation."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from modelgen.arrays import Array, on_sphere, runge_kutta_step
from modelgen.commandline import number
from modelgen.errors import ModelError
from modelgen.files import replacing
from modelgen.loader import CompiledRobot
from modelgen.style.gif import FRAMES, moving_axes, pictures, save_gif
from modelgen.tangent import Tangent

LEAN = 0.1  # distance of every coordinate from the target, as a share of its limit; the default start
SIZE, DPI = 4.0, 80  # larger side in inches, dots per inch


@dataclass(frozen=True)
class Signal:
    """An input over time: constant, or amplitude * sin(2 pi frequency t)."""

    amplitude: float
    frequency: float = 0.0  # Hz

    def __call__(self, time: float) -> float:
        return self.amplitude * math.sin(2 * math.pi * self.frequency * time) if self.frequency else self.amplitude


def signal(name: str, text: str) -> Signal:
    """The signal `2` (a constant) or `2@0.5` (amplitude and frequency in Hz). Raises ModelError for other text."""
    amplitude, at, frequency = text.partition("@")
    size, hertz = number("--input", name, amplitude), 0.0
    with suppress(ModelError):  # of a text that is no number; the message below shows the whole
        hertz = number("--input", name, frequency)
    if at and hertz <= 0.0:
        raise ModelError(f"--input {name}={text} has no frequency above zero. Write --input {name}={amplitude}@0.5.")
    return Signal(size, hertz)


def leaning(robot: CompiledRobot) -> Array:
    """The target with every coordinate changed by a share of its limit, (n,); a rotation about all axes."""
    tangent = Tangent(robot.metadata)
    away = np.where(np.arange(tangent.size) < robot.metadata.pose, LEAN * tangent.limits, 0.0)
    return tangent.moved(np.array(robot.metadata.task.target), away)


def rollout(robot: CompiledRobot, start: Array, inputs: Mapping[str, Signal], seconds: float) -> Array:
    """States (frames, n) at nominal parameters, by the classical Runge-Kutta method.

    Its steps are at most those of the simulation rate, and those that `modelgen build` found to be short enough.

    Quaternions are scaled to length one, also those of the start.
    robot: of a backend that takes NumPy arrays. Raises ModelError if the motion does not stay finite.
    """
    task = robot.metadata.task
    steps = math.ceil(max(task.simulation_rate, task.control_rate * task.integration_steps) / FRAMES)
    step = 1 / FRAMES / steps
    signals = [inputs.get(name, Signal(0.0)) for name in robot.input_names]

    def rate(x: Array, time: float) -> Array:
        xdot: Array = robot.dynamics(x, np.array([[signal(time) for signal in signals]]))
        return xdot

    x, quaternions = start[None].copy(), [rotation.quaternion for rotation in robot.metadata.rotations]
    on_sphere(x, quaternions)
    states = [x[0]]
    with np.errstate(all="ignore"):
        for count in range(round(seconds * FRAMES) * steps):
            time = count * step
            x = runge_kutta_step(rate, x, time, step)
            on_sphere(x, quaternions)
            if not np.isfinite(x).all():
                raise ModelError(
                    f"`{robot.name}` exceeds the range of floating-point numbers after {time:.2f} s. Choose another "
                    "--start, smaller inputs or fewer --seconds. Or the model is unstable: check the signs of forces."
                )
            if (count + 1) % steps == 0:
                states.append(x[0])
    return np.array(states)


def animate(robot: CompiledRobot, states: Array, path: Path) -> None:
    """Write the states as a GIF or MP4. The picture shows the domain; everything outside is cut off.

    Raises ModelError for another suffix, and if the file cannot be written.
    """
    if path.suffix not in (".gif", ".mp4"):
        raise ModelError(f"{path} is neither .gif nor .mp4. Write {path.with_suffix('.gif')}, for example.")
    if path.suffix == ".mp4" and not shutil.which("ffmpeg"):
        raise ModelError(f".mp4 files need ffmpeg, which is not installed. Write {path.with_suffix('.gif')}.")
    segments = robot.drawing.segments(states)
    if not segments.shape[1]:
        raise ModelError(
            f"`{robot.name}` has nothing to draw: its model file has energies but no bodies. Add lines, "
            "robot.draw(line=[(x, height), (x, height)]), and build it again."
        )
    left, right, bottom, top = robot.drawing.view
    scale = SIZE / max(right - left, top - bottom)
    figure = Figure((max(1.0, scale * (right - left)), max(1.0, scale * (top - bottom))), DPI)
    axes = moving_axes(figure, (0, 0, 1, 1), robot.drawing.view)
    clock = axes.text(0.02, 0.98, "", transform=axes.transAxes, va="top", family="monospace")
    frames = pictures(figure, clock, [(axes, segments)])
    save = save_gif if path.suffix == ".gif" else _save_mp4
    save(frames, path)


def _save_mp4(frames: Sequence[Image.Image], path: Path) -> None:
    """Pass the pixels to ffmpeg. H.264 needs an even number of them along each side."""
    width, height = frames[0].size
    options = f"-f rawvideo -pix_fmt gray -s {width}x{height} -r {FRAMES} -i - -vf pad=ceil(iw/2)*2:ceil(ih/2)*2"
    with replacing(path) as temporary:
        command = ["ffmpeg", "-y", "-loglevel", "error", *options.split(), "-pix_fmt", "yuv420p", str(temporary)]
        result = subprocess.run(command, input=b"".join(frame.tobytes() for frame in frames), capture_output=True)
        if result.returncode:
            raise ModelError(f"ffmpeg cannot write {path}: {result.stderr.decode(errors='replace').strip()}")
