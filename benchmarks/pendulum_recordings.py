"""Recordings of RealAIGym's real pendulum for `modelgen identify`, without the parts in which a hand pushes it.

    git clone https://github.com/dfki-ric-underactuated-lab/torque_limited_simple_pendulum D      # at ed17ea2, BSD-3
    python benchmarks/pendulum_recordings.py D --write logs

The measured torque is the motor's alone. After some swing-ups a hand pushes the pendulum, to show that it comes back:
those recordings end before. Left out are the recordings in which a hand moves it all the time (gravity compensation) or
nearly so (1 N m), and that of another weight (1 kg).
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

#: Folder of the recording, and the seconds before a hand pushes.
RECORDINGS = {
    "ddp": math.inf,
    "direct_collocation": 3.5,
    "energy_shaping": 7.0,
    "ilqr": 10.0,
    "pd/system_identification": math.inf,
    "sac": 10.0,
}


def main() -> None:
    """Write time, position and torque of each recording."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("repository", type=Path)
    parser.add_argument("--write", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    options.write.mkdir(parents=True, exist_ok=True)
    for name, seconds in RECORDINGS.items():
        file = options.repository / "results" / f"control_method_{name}" / "data_measured.csv"
        rows = np.genfromtxt(file, delimiter=",", names=True)
        rows = rows[rows["time"] <= seconds]
        kept = np.column_stack([rows[column] for column in ("time", "position", "torque")])
        file = options.write / f"{Path(name).name}.csv"
        np.savetxt(file, kept, "%.9g", ",", header="time,position,torque", comments="")
        print(f"{file}: {len(kept)} samples, {kept[-1, 0]:.1f} s")


if __name__ == "__main__":
    main()
