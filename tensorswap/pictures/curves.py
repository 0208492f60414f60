"""Curves: series of numbers -> a plot as SVG, such as the loss of a training over its steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

WIDE, HIGH = 560.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 18.0, 30.0, 44.0
MOST = 300  # parts of a long curve; each is drawn by its least and its greatest value
QUIET, GRID, PAPER = "#57606a", "#d0d7de", "#ffffff"
FAINT, BLUE, RED = "#9db7d5", "#1f4e8c", "#c0392b"
LOGARITHMIC = 20.0  # the greatest over the least value, from which on an axis of powers shows more


@dataclass(frozen=True)
class Curve:
    """A line through points, with its name for the legend. Values that are no finite numbers leave gaps."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    colour: str = BLUE
    width: float = 1.8
    dots: bool = False


def loss_curves(losses: Sequence[float], validated: Sequence[tuple[float, float]] = ()) -> list[Curve]:
    """The loss of each step, its running mean where there are many, and what validation gave."""
    steps = [float(k) for k in range(1, len(losses) + 1)]
    curves = [Curve("loss of a step", steps, losses, FAINT, 0.9)]
    span = max(len(losses) // 50, 1)
    if span > 1:
        curves.append(Curve(f"mean of {span} steps", steps[span - 1 :], _means(losses, span)))
    else:
        curves = [Curve("loss of a step", steps, losses, dots=len(losses) < 40)]
    if validated:
        xs, ys = zip(*validated, strict=True)
        curves.append(Curve("validation", xs, ys, RED, dots=True))
    return curves


def _means(values: Sequence[float], span: int) -> list[float]:
    return [sum(values[k : k + span]) / span for k in range(len(values) - span + 1)]


def curves_svg(curves: Sequence[Curve], across: str = "", up: str = "", title: str = "") -> str:
    """`across` and `up` name the axes. The upward axis is one of powers where values are positive and far apart."""
    return _Plotted(curves, across, up, title).text()


class _Plotted:
    def __init__(self, curves: Sequence[Curve], across: str, up: str, title: str) -> None:
        self.curves, self.across, self.up, self.title = curves, across, up, title
        points = [point for curve in curves for point in zip(curve.xs, curve.ys, strict=True) if _finite(point)]
        xs, ys = [x for x, _ in points] or [0.0, 1.0], [y for _, y in points] or [0.0, 1.0]
        self.powers = min(ys) > 0 and max(ys) > LOGARITHMIC * min(ys)
        self.low_x, self.high_x = _widened(min(xs), max(xs), 0.0)
        self.low_y, self.high_y = _widened(self.scaled(min(ys)), self.scaled(max(ys)), 0.04)

    def scaled(self, y: float) -> float:
        return math.log10(y) if self.powers else y

    def x(self, value: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (value - self.low_x) / (self.high_x - self.low_x)

    def y(self, value: float) -> float:
        return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * (self.scaled(value) - self.low_y) / (self.high_y - self.low_y)

    def text(self) -> str:
        told = self.title or f"{self.up or 'values'} over {self.across or 'positions'}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="curves" role="img" aria-label={quoteattr(told)} '
            f'width="{WIDE:g}" height="{HIGH:g}" viewBox="0 0 {WIDE:g} {HIGH:g}" '
            'font-family="system-ui, sans-serif" font-size="11">'
        )
        paper = f'<rect class="paper" width="100%" height="100%" fill="{PAPER}"/>'
        lines = (line for curve in self.curves for line in self.line(curve))
        return "\n".join([head, paper, *self.grid(), *lines, *self.legend(), "</svg>", ""])

    def grid(self) -> Iterator[str]:
        for value in _ticks(self.low_x, self.high_x):
            yield f'<path class="grid" d="M{self.x(value):.1f} {TOP:g} V{HIGH - BOTTOM:g}" stroke="{GRID}"/>'
            yield _text(self.x(value), HIGH - BOTTOM + 16, _number(value))
        for value in self.heights():
            yield f'<path class="grid" d="M{LEFT:g} {self.y(value):.1f} H{WIDE - RIGHT:g}" stroke="{GRID}"/>'
            yield _text(LEFT - 8, self.y(value) + 4, _number(value), "end")
        yield _text((LEFT + WIDE - RIGHT) / 2, HIGH - 8, self.across)
        yield _text(LEFT - 52, TOP - 14, self.up, "start")

    def heights(self) -> list[float]:
        if not self.powers:
            return _ticks(self.low_y, self.high_y)
        first, last = math.ceil(self.low_y - 1e-9), math.floor(self.high_y + 1e-9)
        every = max(1, (last - first) // 5)
        found = [10.0**power for power in range(first, last + 1, every)]
        if len(found) > 2:
            return found
        marks = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
        return [mark for mark in marks if self.low_y <= math.log10(mark) <= self.high_y]

    def line(self, curve: Curve) -> Iterator[str]:
        """A path with a gap where a value is no finite number."""
        path, pen = [], "M"
        for x, y in _thinned(curve):
            if not _finite((x, y)) or (self.powers and y <= 0):
                pen = "M"
                continue
            path.append(f"{pen}{self.x(x):.1f} {self.y(y):.1f}")
            pen = "L"
            if curve.dots:
                yield f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="2.4" fill="{curve.colour}"/>'
        if path:
            yield (
                f'<path class="curve" d="{" ".join(path)}" fill="none" stroke="{curve.colour}" '
                f'stroke-width="{curve.width:g}" stroke-linejoin="round"><title>{escape(curve.name)}</title></path>'
            )

    def legend(self) -> Iterator[str]:
        """From the right end of the first line to the left."""
        x = WIDE - RIGHT
        for curve in reversed(self.curves):
            yield _text(x, TOP - 14, curve.name, "end")
            x -= 6.2 * len(curve.name) + 8
            yield f'<path d="M{x - 14:.1f} {TOP - 18:g} H{x:.1f}" stroke="{curve.colour}" stroke-width="2"/>'
            x -= 32


def _finite(point: tuple[float, float]) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1])


def _widened(low: float, high: float, share: float) -> tuple[float, float]:
    if high <= low:
        return low - 0.5, high + 0.5
    return low - share * (high - low), high + share * (high - low)


def _thinned(curve: Curve) -> Iterable[tuple[float, float]]:
    """All points of a short curve; of a long one the least and greatest of each part, in their order."""
    points = list(zip(curve.xs, curve.ys, strict=True))
    if len(points) <= 2 * MOST:
        return points
    kept: list[tuple[float, float]] = []
    for k in range(MOST):
        group = points[k * len(points) // MOST : (k + 1) * len(points) // MOST]
        whole = [point for point in group if _finite(point)]
        if len(whole) < len(group):
            kept.append((group[0][0], math.nan))
        if whole:
            kept += sorted({min(whole, key=lambda p: p[1]), max(whole, key=lambda p: p[1])})
    return kept


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers between two."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.8)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{QUIET}">{escape(text)}</text>'


def _number(value: float) -> str:
    if value == 0 or abs(value) < 1e-15:
        return "0"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.0e}"
