"""Write the contest's robots for its boards into FOLDER: {pendubot,acrobot}_{performance,board}.py.

`performance`: that board pays for little energy, torque, smoothness and velocity more than for a fast swing-up, so the
angles weigh a tenth of the gallery's and the torque five times as much. Everything else is the gallery's model file.

`board`: the parameters are those that the criterion `model` of the robustness board changes, or what they come to. They
are the first moments and the inertias of both links about their own joints, and the friction of the joint without a
motor. A mass of the lower link is a moment and an inertia of the upper one, so those have wider bounds.
"""

import re
import sys
from pathlib import Path

MODELS = Path(__file__).parents[2] / "models"
FREE = {"pendubot": "elbow", "acrobot": "shoulder"}  # the joint without a motor
PERFORMANCE = {
    "(pi * sin(shoulder / 2)) ** 2": "0.1 * (pi * sin(shoulder / 2)) ** 2",
    "(pi * sin(elbow / 2)) ** 2": "0.1 * (pi * sin(elbow / 2)) ** 2",
    "LogCos(0.02)": "LogCos(0.1)",
}
MASSES, LENGTH = (0.5234602302310271, 0.6255677234174437), 0.2  # kg of the links, m of the upper one
PARAMETERS = """\
upper_moment = robot.parameter("upper_moment", 0.10469, "kg m", tolerance=0.3, meaning="mass by centre")
upper_inertia = robot.parameter("upper_inertia", 0.0318872, "kg m^2", tolerance=0.25, meaning="about the shoulder")
lower_moment = robot.parameter("lower_moment", 0.1599533, "kg m", tolerance=0.25, meaning="mass times centre")
lower_inertia = robot.parameter("lower_inertia", 0.0508698, "kg m^2", tolerance=0.25, meaning="about the elbow")
damping = robot.parameter("damping", 0, "N m s", bounds=(-0.1, 0.1), meaning="friction of the {free}")
upper_mass, upper_length, lower_mass = {upper}, {length}, {lower}
upper_centre, lower_centre = upper_moment / upper_mass, lower_moment / lower_mass
robot.apply({free}, -damping * {free}.rate)  # theirs may be negative
"""
ABOUT_CENTRE = {
    "robot.body(upper_mass, upper_inertia,": "robot.body(upper_mass, upper_inertia - upper_mass * upper_centre**2,",
    "    lower_inertia,": "    lower_inertia - lower_mass * lower_centre**2,",
}


def replaced(robot: str, kind: str, changes: dict[str, str]) -> str:
    """The text of the model file of `robot`, pendubot or acrobot, with changes and another name."""
    text = (MODELS / f"realaigym_{robot}.py").read_text()
    for old, new in {f'"realaigym_{robot}"': f'"{robot}_{kind}"', **changes}.items():
        if text.count(old) != 1:
            raise SystemExit(f"models/realaigym_{robot}.py: {old} is not there once; change it in {__file__}.")
        text = text.replace(old, new)
    return text


def board_model(robot: str) -> str:
    """The text of the model file with the board's parameters."""
    text = replaced(robot, "board", ABOUT_CENTRE)
    own = PARAMETERS.format(free=FREE[robot], upper=MASSES[0], length=LENGTH, lower=MASSES[1])
    return re.sub(r"upper_mass = robot\.parameter.*?(?=torque = )", own + "\n", text, count=1, flags=re.DOTALL)


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__))
    folder.mkdir(parents=True, exist_ok=True)
    for robot in FREE:
        (folder / f"{robot}_performance.py").write_text(replaced(robot, "performance", PERFORMANCE))
        (folder / f"{robot}_board.py").write_text(board_model(robot))
