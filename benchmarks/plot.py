"""Draws ratios as SVG on a logarithmic axis: a line for the range, a dot at the median, a tick at the goal."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

LEFT, WIDTH, ROW, TOP, BOTTOM = 150, 560, 26, 34, 44
INK, PALE, GOOD, BAD, ASKED = "#24292f", "#d0d7de", "#1a7f37", "#cf222e", "#0969da"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One line of the plot; `asked` is the goal."""

    name: str
    median: float
    least: float
    most: float
    asked: float | None = None

    @property
    def colour(self) -> str:
        """Return the colour, which says whether the goal is reached."""
        if self.asked is None:
            return INK
        return GOOD if self.median >= self.asked else BAD


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis over whole decades."""

    first: int
    last: int

    def x(self, value: float) -> float:
        """Return the position of a value, in pixels from the left edge."""
        return LEFT + WIDTH * (log10(value) - self.first) / (self.last - self.first)


def axis_for(values: Sequence[float]) -> Axis:
    """Return the axis of the decades that hold all values, and 1."""
    first, last = floor(log10(min(*values, 1.0))), ceil(log10(max(*values, 1.0)))
    return Axis(first, max(last, first + 1))


def draw(bars: Sequence[Bar], title: str) -> str:
    """Draw the plot; there must be at least one bar, and every value must be above zero."""
    axis = axis_for([value for bar in bars for value in (bar.least, bar.most, bar.asked or 1.0)])
    bottom = TOP + ROW * len(bars)
    parts = [_text(LEFT, 20, title, "start", weight="bold"), *_grid(axis, bottom)]
    for number, bar in enumerate(bars):
        parts += _bar(bar, axis, TOP + ROW * number + ROW / 2)
    parts.append(_text(LEFT, bottom + 36, "dot: median · line: least to most · blue: asked for", "start"))
    height, width = bottom + BOTTOM, LEFT + WIDTH + 90
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
    style = 'font-family="sans-serif" font-size="12" role="img">'
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head + style, f"<title>{escape(title)}</title>", background, *parts, "</svg>"]) + "\n"


def _grid(axis: Axis, bottom: float) -> list[str]:
    parts = []
    for decade in range(axis.first, axis.last + 1):
        x = axis.x(10.0**decade)
        parts.append(_line((x, TOP), (x, bottom), INK if decade == 0 else PALE, 1))
        parts.append(_text(x, bottom + 16, f"{10.0**decade:g}", "middle"))
    return parts


def _bar(bar: Bar, axis: Axis, y: float) -> list[str]:
    parts = [
        _text(LEFT - 10, y + 4, bar.name, "end"),
        _line((axis.x(bar.least), y), (axis.x(bar.most), y), bar.colour, 3),
        f'<circle cx="{axis.x(bar.median):.1f}" cy="{y:.1f}" r="5" fill="{bar.colour}"/>',
        _text(LEFT + WIDTH + 14, y + 4, f"{bar.median:.3g}", "start"),
    ]
    if bar.asked is not None:
        x = axis.x(bar.asked)
        parts.append(_line((x, y - 9), (x, y + 9), ASKED, 2))
    return parts


def _line(start: tuple[float, float], end: tuple[float, float], colour: str, width: int) -> str:
    place = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, anchor: str, weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {place} fill="{INK}">{escape(text)}</text>'
