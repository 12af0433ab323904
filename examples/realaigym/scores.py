"""The tables of docs/results/realaigym.md, from what the scorer of their boards writes and from the published rows.

    python examples/realaigym/scores.py

writes them anew. Beside the page lie `realaigym/published.json`, robot -> board -> {policy: score}, and
`realaigym/scores/POLICY.json`, the scorer's own output for a policy of ours: `robot`, and one object for each of its
boards `perf`, `global` and `robust`. Files that differ in `seedK` alone are trainings of one kind: a row is their mean.
`POLICY-seedK.json` is the policy on the state that the simulator gives, and `POLICY-seedK-measured.json` the same
policy behind the observer. `realaigym/hardware.json`, if it is there, has what others reached on the real robots.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "results" / "realaigym.md"
BEGIN, END = "<!-- made by examples/realaigym/scores.py -->", "<!-- end -->"
Row = tuple[float, str, str]  # score, policy, how it was found
Seeds = dict[int, dict[str, Any]]  # seed of the training -> what the scorer wrote
BOARDS = {"global": "Global", "perf": "Performance", "robust": "Robustness"}


def tables(folder: Path) -> str:
    """Markdown: policies on all boards, then a table for each board and robot, best row first, ours in bold."""
    published = json.loads((folder / "published.json").read_text(encoding="utf-8"))
    scored: dict[str, Seeds] = {}
    for path in sorted(folder.glob("scores/*.json")):
        before, seed, after = re.split(r"-seed(\d+)", path.stem)
        scored.setdefault(before + after, {})[int(seed)] = json.loads(path.read_text(encoding="utf-8"))
    found = []
    for robot, boards in published.items():
        if rows_of_all := on_all_boards(robot, scored):
            best = [f"{max(boards[board].values()):.3f}" for board in BOARDS]
            rows_of_all.insert(0, ["best row of each board", *best, "published"])
            heads = ["policy", *(title.lower() for title in BOARDS.values()), "seeds"]
            lines = ["| " + " | ".join(cells) + " |" for cells in (heads, *rows_of_all)]
            lines.insert(1, "|---|" + "---:|" * len(BOARDS) + "---|")
            found.append("\n".join([f"### One policy on all boards, {robot}", "", *lines]))
    for board, title in BOARDS.items():
        for robot, boards in published.items():
            rows: list[Row] = [(score, policy, "published") for policy, score in boards[board].items()]
            for name, seeds in scored.items():
                results = {k: each[board] for k, each in seeds.items() if each["robot"] == robot and board in each}
                rows += [ours(name, board, results)] if results else []
            found.append("\n".join([f"### {title}, {robot}", "", *table(rows)]))
    return "\n\n".join([*found, *hardware(folder / "hardware.json")])


def hardware(path: Path) -> list[str]:
    """Markdown: the published scores on the real robots, best sum first; none without the file."""
    if not path.is_file():
        return []
    boards = {robot: rows for robot, rows in json.loads(path.read_text(encoding="utf-8")).items() if robot != "source"}
    averages = {policy: [rows[policy]["average"] for rows in boards.values()] for policy in next(iter(boards.values()))}
    lines = ["| policy, average of its runs | " + " | ".join(boards) + " |", "|---|" + "---:|" * len(boards)]
    for policy, row in sorted(averages.items(), key=lambda item: -sum(item[1])):
        lines.append(f"| {policy} | " + " | ".join(f"{score:.3f}" for score in row) + " |")
    return ["\n".join(["### Real robots, published", "", *lines])]


def on_all_boards(robot: str, scored: dict[str, Seeds]) -> list[list[str]]:
    """The cells of the trainings that were scored on every board: the mean, and the least training's in parentheses."""
    rows = []
    for name, seeds in scored.items():
        behind = scored.get(f"{name}-measured", {})
        for title, parts in ((f"**{name}**", (seeds, seeds, behind)), (f"**{name}**, observer always", (behind,) * 3)):
            wanted = list(zip(BOARDS, parts, strict=True))
            trained = [k for k in sorted(seeds) if all(board in each.get(k, {}) for board, each in wanted)]
            if trained and seeds[trained[0]]["robot"] == robot:
                results = [[score_of(board, each[k][board]) for k in trained] for board, each in wanted]
                cells = [f"{mean(scores):.3f} ({min(scores):.3f})" for scores in results]
                rows.append([title, *cells, ", ".join(map(str, trained))])
    return rows


def score_of(board: str, result: dict[str, Any]) -> float:
    """The score in what the scorer wrote for this board."""
    return float(result["score_mean" if board == "global" else "score"])


def ours(name: str, board: str, results: Seeds) -> Row:
    """A row of ours; `name`: of the files without the seed. Draws and levels are those of the first seed's file."""
    scores = {seed: score_of(board, each) for seed, each in results.items()}
    first = next(iter(results.values()))
    how = ", ".join(f"{scores[k]:.3f}" for k in sorted(scores))
    if board == "global":
        how += f"; {len(first['runs'])} draws"
    if board == "robust":
        how += f"; model {mean(float(each['model']) for each in results.values()):.3f}"
        how += "" if first["full"] else f", {first['n_levels']} levels"
    return mean(scores.values()), f"**{name}**", how


def table(rows: list[Row]) -> list[str]:
    """The lines of a table."""
    lines = [f"| {policy} | {score:.3f} | {how} |" for score, policy, how in sorted(rows, key=lambda row: -row[0])]
    return ["| policy | score | published, or each seed |", "|---|---:|---|", *lines]


def page(text: str) -> str:
    """The page's text with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{tables(PAGE.with_suffix(''))}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
