"""Write the contest's robots with costs for its performance board into FOLDER: {pendubot,acrobot}_performance.py.

The board pays for little energy, torque, smoothness and velocity more than for a fast swing-up, so the angles weigh a
tenth of the gallery's and the torque five times as much. Everything else is the gallery's model file, word by word.
"""

import sys
from pathlib import Path

MODELS = Path(__file__).parents[2] / "models"
CHANGES = {
    "(pi * sin(shoulder / 2)) ** 2": "0.1 * (pi * sin(shoulder / 2)) ** 2",
    "(pi * sin(elbow / 2)) ** 2": "0.1 * (pi * sin(elbow / 2)) ** 2",
    "LogCos(0.02)": "LogCos(0.1)",
}


def performance_model(robot: str) -> str:
    """The text of the model file of `robot`: pendubot or acrobot."""
    text = (MODELS / f"realaigym_{robot}.py").read_text()
    for old, new in {f'"realaigym_{robot}"': f'"{robot}_performance"', **CHANGES}.items():
        if text.count(old) != 1:
            raise SystemExit(f"models/realaigym_{robot}.py: {old} is not there once; change CHANGES in {__file__}.")
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__))
    folder.mkdir(parents=True, exist_ok=True)
    for robot in ("pendubot", "acrobot"):
        (folder / f"{robot}_performance.py").write_text(performance_model(robot))
