"""The style of all pages and figures: `style.css`, the only place of their colours, and what Python reads from it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

CSS = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
_VARIABLE = re.compile(r"--([a-z0-9-]+): ([^;]+);")
_HEX = re.compile(r"light-dark\((#[0-9a-f]{6}), #[0-9a-f]{6}\)")  # of two colours, the one on paper
_LIGHT = {name: _HEX.sub(r"\1", value) for name, value in _VARIABLE.findall(CSS)}
POLICIES = tuple(_LIGHT[f"policy-{number}"] for number in range(1, 7))
#: Of a figure on a page: the colour in Matplotlib's text of it -> the one that follows light and dark.
_FOLLOWS = {_LIGHT[name]: f"var(--{name})" for name in _LIGHT if re.fullmatch(r"#[0-9a-f]{6}", _LIGHT[name])}


def colour(name: str) -> str:
    """The colour `name` of the style on white paper, as #rrggbb."""
    return _LIGHT[name]


def colour_map(name: str) -> Colormap:
    """One of the maps `sequential`, `signed` (about zero, of inputs) and `difference` (about zero)."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, _LIGHT[name].split(", "))


def document(title: str, body: Iterable[str], extra: str = "") -> str:
    """HTML file that loads nothing from elsewhere. body: parts of HTML below the title; extra: more CSS."""
    head = (
        f'<meta charset="utf-8"/>\n<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{escape(title)}</title>\n<style>\n{CSS}{extra}</style>"
    )
    parts = [f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>', f"<h1>{escape(title)}</h1>"]
    return "\n".join([*parts, *(part for part in body if part), "</body>\n</html>\n"])


def table(rows: Iterable[Iterable[str]], head: Iterable[str] = ()) -> str:
    """Table of HTML cells, which scrolls where it is wider than the page. Without a head, each row begins with one."""
    titles = [f"<th>{title}</th>" for title in head]
    lines = [f"<tr>{''.join(titles)}</tr>"] if titles else []
    for first, *others in rows:
        kind = "td" if titles else "th"
        lines.append(f"<tr><{kind}>{first}</{kind}>{''.join(f'<td>{cell}</td>' for cell in others)}</tr>")
    return "\n".join(['<div class="scroll"><table>', *lines, "</table></div>"])


def unit(text: str) -> str:
    """HTML of a unit such as `kg m^2`, with raised exponents."""
    return re.sub(r"\^(-?\d+)", r"<sup>\1</sup>", escape(text))


WIDEST, LOWEST, HIGHEST = 4.6, 2.2, 3.6  # inches of a panel: its words can be read on a phone


def figure(drawn: Figure, words: str) -> str:
    """Figure of Matplotlib as a part of a page: a panel for each axes, side by side where there is room, in the type
    and the light or dark colours of the page. Its title is the caption. words: what it shows."""
    caption = f"<figcaption>{escape(drawn.get_suptitle())}</figcaption>" if drawn.get_suptitle() else ""
    drawn.suptitle("")
    panels = "".join(_svg(each, words) for each in _alone(drawn))
    return f'<figure role="img" aria-label="{escape(words)}">{caption}{panels}</figure>'


def _alone(drawn: Figure) -> Iterator[Figure]:
    """The figure with each of its axes that show something alone, at the size of a panel."""
    every, width, height = drawn.axes, *drawn.get_size_inches()
    for axes in every:
        place = axes.get_subplotspec()
        assert place is not None
        rows, columns = place.get_gridspec().get_geometry()
        beside = [each for each in every if each is axes or each.get_shared_x_axes().joined(each, axes)]
        axes.set_xlabel(axes.get_xlabel() or beside[-1].get_xlabel())
        axes.tick_params(labelbottom=True)
        drawn.set_size_inches(min(width / columns, WIDEST), min(max(height / rows, LOWEST), HIGHEST))
        for each in drawn.axes:
            drawn.delaxes(each)
        axes.set_subplotspec(drawn.add_gridspec(1, 1)[0])
        axes.patch.set_alpha(0.0)
        drawn.add_axes(axes)
        if axes.axison:
            yield drawn


def _svg(drawn: Figure, words: str) -> str:
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": words}):
        drawn.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = re.sub(r"<metadata>.*?</metadata>|\sxmlns(:xlink)?=\"[^\"]*\"", "", text.getvalue(), flags=re.DOTALL)
    svg = svg[svg.index("<svg") :].replace("xlink:href", "href")
    for light, follows in _FOLLOWS.items():
        svg = svg.replace(light, follows)
    svg = svg.replace("#000000", "var(--ink)").replace("#ffffff", "var(--paper)").replace("#b0b0b0", "var(--line)")
    return re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", svg)
