"""The tables of docs/results/realaigym.md, from what the scorer of their boards writes and from the published rows.

    python examples/realaigym/scores.py

writes them anew. Beside the page lie `realaigym/published.json`, robot -> board -> {policy: score}, and
`realaigym/scores/POLICY.json`, the scorer's own output for a policy of ours: `robot`, and one object for each of its
boards `perf`, `global` and `robust`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "results" / "realaigym.md"
BEGIN, END = "<!-- made by examples/realaigym/scores.py -->", "<!-- end -->"
Row = tuple[float, str, dict[str, float], str]  # score, policy, parts, how it was found
BOARDS = {"global": "Global", "perf": "Performance", "robust": "Robustness"}
PARTS = {
    "perf": ("swingup_time", "energy", "tau_cost", "tau_smoothness", "velocity_cost"),
    "robust": ("model", "measurement_noise", "u_noise", "u_responsiveness", "delay", "perturbation"),
    "global": (),
}


def tables(folder: Path) -> str:
    """Markdown: one table for each board and robot, best row first, ours in bold."""
    published = json.loads((folder / "published.json").read_text(encoding="utf-8"))
    scored = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("scores/*.json"))}
    found = []
    for board, title in BOARDS.items():
        for robot, boards in published.items():
            rows: list[Row] = [(score, policy, {}, "published") for policy, score in boards[board].items()]
            rows += [
                ours(name, board, result[board])
                for name, result in scored.items()
                if result["robot"] == robot and board in result
            ]
            found.append("\n".join([f"### {title}, {robot}", "", *table(PARTS[board], rows)]))
    return "\n\n".join(found)


def ours(name: str, board: str, result: dict[str, Any]) -> Row:
    """A row of ours; `name`: of the file."""
    if board == "global":
        how = f"{len(result['runs'])} draws, standard deviation {result['score_std']:.3f}"
        return result["score_mean"], f"**{name}**", {}, how
    parts = {part: float(result[part]) for part in PARTS[board]}
    how = "1 simulation"
    if board == "robust":
        share = "all" if result["full"] else "a part"
        how = f"{share}: {result['n_levels']} levels, {result['noise_reps']} and {result['pert_reps']} draws"
    return result["score"], f"**{name}**", parts, how


def table(parts: tuple[str, ...], rows: list[Row]) -> list[str]:
    """The lines of a table."""
    heads = ["policy", "score", *(part.replace("_", " ") for part in parts), "how"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (1 + len(parts)) + "---|"]
    for score, policy, values, how in sorted(rows, key=lambda row: -row[0]):
        cells = [policy, f"{score:.3f}", *(f"{values[part]:.3g}" if part in values else "" for part in parts), how]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def page(text: str) -> str:
    """The page's text with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{tables(PAGE.with_suffix(''))}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
