"""Layers: boxes and arrows between them -> places. Arrows go down; boxes of one layer stand side by side.

The layer of a box is the longest way to it. An arrow over several layers bends at points of its own in those between.
Layers are put in order so that few arrows cross, and boxes are moved to the middle of what they are joined to.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

GAP, BEND = 26.0, 18.0  # between boxes, and the width that a bend takes
SWEEPS, MOVES = 8, 12

Joint = str | tuple[str, str, int]  # a box, or where an arrow passes a layer


@dataclass(frozen=True)
class Placed:
    """The middle of each box and its layer; the middles of the bends of each arrow; and the width of it all."""

    middles: dict[str, float]
    layers: dict[str, int]
    bends: dict[tuple[str, str], list[float]]
    width: float
    depth: int


def place(widths: Mapping[str, float], arrows: Sequence[tuple[str, str]]) -> Placed:
    """`arrows` hold no circle. The last places are kept: most changes of a program move nothing."""
    return _placed(tuple(widths.items()), tuple(arrows))


@lru_cache(maxsize=16)
def _placed(boxes: tuple[tuple[str, float], ...], arrows: tuple[tuple[str, str], ...]) -> Placed:
    widths = dict(boxes)
    layers = _layers(list(widths), arrows)
    rows: list[list[Joint]] = [[] for _ in range(max(layers.values(), default=0) + 1)]
    for name in widths:
        rows[layers[name]].append(name)
    above: dict[Joint, list[Joint]] = {}
    below: dict[Joint, list[Joint]] = {}
    for source, target in arrows:
        way: list[Joint] = [source]
        for layer in range(layers[source] + 1, layers[target]):
            rows[layer].append(bend := (source, target, layer))
            way.append(bend)
        way.append(target)
        for one, other in itertools.pairwise(way):
            below.setdefault(one, []).append(other)
            above.setdefault(other, []).append(one)
    rows = _ordered(rows, above, below)
    wide = {joint: widths[joint] if isinstance(joint, str) else BEND for row in rows for joint in row}
    middles = _spread(rows, wide, above, below)
    left = min((middles[joint] - wide[joint] / 2 for joint in middles), default=0)
    right = max((middles[joint] + wide[joint] / 2 for joint in middles), default=0)
    bends = {
        (source, target): [middles[source, target, layer] - left for layer in range(layers[source] + 1, layers[target])]
        for source, target in arrows
    }
    return Placed(
        {joint: middle - left for joint, middle in middles.items() if isinstance(joint, str)},
        layers, bends, right - left, len(rows),
    )  # fmt: skip


def _layers(names: Sequence[str], arrows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The longest way to each box; one that nothing leads to stands just above what it leads to."""
    found = dict.fromkeys(names, 0)
    for _ in names:
        changed = False
        for source, target in arrows:
            if found[target] <= found[source]:
                found[target], changed = found[source] + 1, True
        if not changed:
            break
    targets = {target for _, target in arrows}
    for name in names:
        leads = [found[target] for source, target in arrows if source == name]
        if name not in targets and leads:
            found[name] = min(leads) - 1
    return found


def _ordered(
    rows: list[list[Joint]], above: Mapping[Joint, list[Joint]], below: Mapping[Joint, list[Joint]]
) -> list[list[Joint]]:
    """Each layer by the middle of its neighbours, down and up again; the best of all tries."""
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        rows = [list(row) for row in rows]
        down = sweep % 2 == 0
        order = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for layer in order:
            fixed = {joint: k for k, joint in enumerate(rows[layer - 1 if down else layer + 1])}
            joined = above if down else below
            middle = {joint: _mean([fixed[n] for n in joined.get(joint, ())]) for joint in rows[layer]}
            places = {joint: k if middle[joint] is None else middle[joint] for k, joint in enumerate(rows[layer])}
            rows[layer].sort(key=lambda joint: places[joint] or 0.0)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: list[list[Joint]], below: Mapping[Joint, list[Joint]]) -> int:
    count = 0
    for row, following in itertools.pairwise(rows):
        position = {joint: k for k, joint in enumerate(following)}
        ends = [(k, position[other]) for k, joint in enumerate(row) for other in below.get(joint, ())]
        count += sum(a < c and b > d for a, b in ends for c, d in ends)
    return count


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _spread(
    rows: list[list[Joint]],
    wide: Mapping[Joint, float],
    above: Mapping[Joint, list[Joint]],
    below: Mapping[Joint, list[Joint]],
) -> dict[Joint, float]:
    """Middles near those of the neighbours, no two boxes of a layer nearer than GAP."""
    middles: dict[Joint, float] = {}
    for row in rows:
        total = sum(wide[joint] for joint in row) + GAP * (len(row) - 1)
        left = -total / 2
        for joint in row:
            middles[joint] = left + wide[joint] / 2
            left += wide[joint] + GAP
    for move in range(MOVES):
        for row in rows if move % 2 == 0 else reversed(rows):
            wanted = []
            for joint in row:
                middle = _mean([middles[n] for n in (*above.get(joint, ()), *below.get(joint, ()))])
                wanted.append(middles[joint] if middle is None else middle)
            middles |= zip(row, _apart(wanted, [wide[joint] for joint in row]), strict=True)
    return middles


def _apart(wanted: Sequence[float], wide: Sequence[float]) -> list[float]:
    """The middles nearest to those wanted, in order and apart: neighbours that would meet move as one group."""
    offsets = [0.0]
    for one, other in itertools.pairwise(wide):
        offsets.append(offsets[-1] + (one + other) / 2 + GAP)
    groups: list[tuple[float, int]] = []  # the mean of what is wanted, without offsets, and how many share it
    for middle, offset in zip(wanted, offsets, strict=False):
        mean, count = middle - offset, 1
        while groups and groups[-1][0] > mean:
            other, more = groups.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        groups.append((mean, count))
    starts = [mean for mean, count in groups for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]
