"""Roofline: kernels by their operations and bytes -> how near each can come to what a machine gives, as SVG.

Along the bottom, operations for each byte that moves; upwards, operations a second. The roof is what the machine gives:
left of its edge memory is too slow for more, right of it arithmetic is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

WIDE, HIGH = 560.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 18.0, 34.0, 44.0
NEAR = 14.0  # points that share a label
INK, QUIET, GRID, ROOF, DOT, PAPER = "#24292f", "#57606a", "#d0d7de", "#1a7f37", "#8250df", "#ffffff"


@dataclass(frozen=True)
class Point:
    """A kernel: what it computes and moves, and how long it took, if that is known."""

    name: str
    operations: float
    bytes: float
    seconds: float | None = None

    @property
    def intensity(self) -> float:
        return self.operations / self.bytes


def roofline_svg(points: Sequence[Point], operations: float, bytes: float) -> str:
    """`operations` and `bytes` are what the machine gives in a second."""
    return _Plot(points, operations, bytes).text()


class _Plot:
    def __init__(self, points: Sequence[Point], operations: float, bytes: float) -> None:
        self.points, self.peak, self.stream = points, operations, bytes
        edge = operations / bytes
        places = [edge, *(point.intensity for point in points)]
        self.low_x = math.floor(math.log10(min(places)) - 0.5)
        self.high_x = math.ceil(math.log10(max(places)) + 0.5)
        heights = [self.roof(point.intensity) for point in points]
        heights += [point.operations / point.seconds for point in points if point.seconds]
        self.high_y = math.ceil(math.log10(operations) + 0.1)
        self.low_y = min(self.high_y - 2, math.floor(math.log10(min([*heights, operations]))))

    def roof(self, intensity: float) -> float:
        return min(self.peak, self.stream * intensity)

    def x(self, value: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (math.log10(value) - self.low_x) / (self.high_x - self.low_x)

    def y(self, value: float) -> float:
        return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * (math.log10(value) - self.low_y) / (self.high_y - self.low_y)

    def text(self) -> str:
        told = f"Roofline of {len(self.points)} kernels"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="roofline" role="img" aria-label={quoteattr(told)} '
            f'width="{WIDE:g}" height="{HIGH:g}" viewBox="0 0 {WIDE:g} {HIGH:g}" '
            'font-family="system-ui, sans-serif" font-size="11">'
        )
        paper = f'<rect class="paper" width="100%" height="100%" fill="{PAPER}"/>'
        return "\n".join([head, paper, *self.grid(), *self.line(), *self.dots(), "</svg>", ""])

    def grid(self) -> Iterator[str]:
        for power in range(self.low_x, self.high_x + 1):
            x = self.x(10.0**power)
            yield f'<path class="grid" d="M{x:.1f} {TOP:g} V{HIGH - BOTTOM:g}" stroke="{GRID}"/>'
            yield _text(x, HIGH - BOTTOM + 16, _number(10.0**power))
        for power in range(self.low_y, self.high_y + 1):
            y = self.y(10.0**power)
            yield f'<path class="grid" d="M{LEFT:g} {y:.1f} H{WIDE - RIGHT:g}" stroke="{GRID}"/>'
            yield _text(LEFT - 8, y + 4, f"{_number(10.0 ** (power - 9))} G", "end")
        yield _text((LEFT + WIDE - RIGHT) / 2, HIGH - 8, "operations for each byte")
        yield _text(LEFT - 52, TOP - 18, "operations a second", "start")

    def line(self) -> Iterator[str]:
        start, end, edge = 10.0**self.low_x, 10.0**self.high_x, self.peak / self.stream
        least = 10.0**self.low_y / self.stream  # the roof enters the picture from below
        places = [max(start, least), edge, end]
        path = " L".join(f"{self.x(place):.1f} {self.y(self.roof(place)):.1f}" for place in places)
        yield f'<path class="roof" d="M{path}" fill="none" stroke="{ROOF}" stroke-width="2"/>'
        yield _text(WIDE - RIGHT - 4, self.y(self.peak) - 6, f"{self.peak / 1e9:.3g} G operations", "end", "roof-label")

    def dots(self) -> Iterator[str]:
        for number, point in enumerate(self.points, 1):
            x, roof = self.x(point.intensity), self.y(self.roof(point.intensity))
            told = f"{point.name}: {point.operations:.3g} operations, {point.bytes:.3g} bytes"
            yield f'<g class="kernel" data-kernel="{number}"><title>{escape(told)}</title>'
            drop = f"M{x:.1f} {roof:.1f} V{HIGH - BOTTOM:g}"
            yield f'<path class="drop" d="{drop}" stroke="{DOT}" stroke-dasharray="2 3"/>'
            yield f'<circle class="dot" cx="{x:.1f}" cy="{roof:.1f}" r="5" fill="{DOT}"/>'
            if point.seconds:
                reached = self.y(point.operations / point.seconds)
                yield f'<circle class="reached" cx="{x:.1f}" cy="{reached:.1f}" r="4" fill="none" stroke="{DOT}"/>'
            yield "</g>"
        yield from self.labels()

    def labels(self) -> Iterator[str]:
        """The names, together where points are side by side."""
        groups: list[list[Point]] = []
        for point in sorted(self.points, key=lambda point: point.intensity):
            if groups and self.x(point.intensity) - self.x(groups[-1][0].intensity) < NEAR:
                groups[-1].append(point)
            else:
                groups.append([point])
        for group in groups:
            x, y = self.x(group[0].intensity), self.y(self.roof(group[0].intensity))
            yield _text(x, y - 10, ", ".join(point.name for point in group), "middle", "dot-label")


def _text(x: float, y: float, text: str, anchor: str = "middle", kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{QUIET}">{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:g}" if 1e-3 <= value < 1e5 else f"{value:.0e}"
