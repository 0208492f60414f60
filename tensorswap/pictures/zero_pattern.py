"""Zero pattern: an array of one or two axes -> a picture of where it is not zero, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ShapeError

CELLS = 128  # along an axis; a longer one is drawn in parts
SIDE, LEAST, MOST = 320.0, 2.5, 18.0  # of the picture, and of a cell
MARGIN = 26.0
QUIET, LINE, PAPER, FULL = "#57606a", "#d0d7de", "#ffffff", (31, 78, 140)


def sparsity_svg(array: Any, name: str = "") -> str:
    """Rows go down, columns to the right. Where one cell stands for several elements, it is the darker the more of
    them are not zero. NaN is not zero."""
    given = np.asarray(array)
    if given.dtype.kind not in "biufc":
        raise DtypeError(f"a sparsity pattern is of numbers, not of {given.dtype}", hint="pass an array of numbers")
    if given.ndim not in (1, 2) or not given.size:
        raise ShapeError(
            f"a sparsity pattern is of one or two axes with elements, not of shape {given.shape}",
            hint="choose two axes: array[0], or array.reshape(rows, -1)",
        )
    pattern = np.atleast_2d(given != 0)
    return _drawn(pattern, name)


def _drawn(pattern: npt.NDArray[np.bool_], name: str) -> str:
    rows, columns = pattern.shape
    shares = _shares(_shares(pattern.astype(float), 0), 1)
    side = min(max(SIDE / max(shares.shape), LEAST), MOST)
    high, wide = side * shares.shape[0], side * shares.shape[1]
    count = int(pattern.sum())
    told = f"{name + ': ' if name else ''}{rows} x {columns}, {count:,} not zero ({count / pattern.size:.1%})"
    width, height = max(wide, 6.2 * len(told)) + 2, high + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sparsity" role="img" aria-label={quoteattr(told)} '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="11">'
    )
    paper = f'<rect class="paper" width="100%" height="100%" fill="{PAPER}"/>'
    frame = f'<rect x="1" y="1" width="{wide:.1f}" height="{high:.1f}" fill="none" stroke="{LINE}"/>'
    words = f'<text x="1" y="{high + 18:.1f}" fill="{QUIET}">{_escaped(told)}</text>'
    return "\n".join([head, paper, *_cells(shares, side), frame, words, "</svg>", ""])


def _shares(values: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    """The means of parts along an axis that is too long to draw."""
    size = values.shape[axis]
    if size <= CELLS:
        return values
    starts = np.arange(CELLS) * size // CELLS
    counts = np.diff([*starts, size])
    summed = np.add.reduceat(values, starts, axis=axis)
    return np.asarray(summed / (counts[:, None] if axis == 0 else counts))


def _cells(shares: npt.NDArray[np.float64], side: float) -> Iterator[str]:
    """Cells of one shade that lie side by side are one rectangle."""
    levels = np.ceil(shares * 8).astype(int)
    for row, line in enumerate(levels):
        edges = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
        for start, end in pairwise(edges):
            level = int(line[start])
            if level:
                yield (
                    f'<rect x="{1 + side * start:.1f}" y="{1 + side * row:.1f}" width="{side * (end - start):.1f}" '
                    f'height="{side:.1f}" fill="{_shade(level / 8)}"/>'
                )


def _shade(share: float) -> str:
    light = 0.25 + 0.75 * share
    return "#" + "".join(f"{round(255 + (part - 255) * light):02x}" for part in FULL)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
