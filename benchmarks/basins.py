"""Proven share of the basin of every shipped policy, as JSON: python benchmarks/basins.py --seconds 20 [NAME ...].

A row has the share of the basin's volume for the nominal robot and for parameters that differ by up to 5 %, the largest
errors of each set, and the processor time. A policy without a proof has the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from solver.errors import SolverError
from solver.proof.basin import prove_basin
from solver.runs import shipped


def row(name: str, seconds: float) -> dict[str, Any]:
    """The results of one policy."""
    start = time.process_time()
    try:
        proof = prove_basin(name, seconds=seconds).to_json()
    except SolverError as error:
        return {"policy": name, "reason": str(error)}
    return {"policy": name, "seconds": time.process_time() - start} | proof


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="shipped policies; all by default")
    parser.add_argument("--seconds", type=float, default=20.0, help="processor time for one set")
    parser.add_argument(
        "--out",
        type=Path,
        help="file that gets each row as it comes, and whose rows are kept; by default standard output",
    )
    options = parser.parse_args()
    names = options.names or shipped.names()
    rows = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    for name in names:
        if name in {known["policy"] for known in rows}:
            continue
        rows.append(row(name, options.seconds))
        print(f"{name}: {rows[-1].get('reason') or 'done'}", file=sys.stderr)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=2) + "\n")
    if not options.out:
        print(json.dumps(rows, indent=2))
