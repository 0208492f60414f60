"""Layout: how the axes of a result lie in memory, as numpy's iterator chooses it, and results that are views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from .subscripts import Labels, Subscripts

Strides = Mapping[str, int]


def memory_order(order: str, labels: Subscripts, strides: Sequence[Strides]) -> tuple[int, ...]:
    """The axes of the result from the outermost to the innermost, for numpy's `order`: C, F or K."""
    axes = tuple(range(len(labels.output)))
    if order == "K":
        return _as_operands_lie(labels, strides)
    return axes[::-1] if order == "F" else axes


def _as_operands_lie(labels: Subscripts, strides: Sequence[Strides]) -> tuple[int, ...]:
    """Axes are sorted by the strides of the operands that have both of two; where operands disagree, the order of the
    result stands. Summed axes take part, for others may lie beyond them."""
    summed = sorted({label for term in labels.terms for label in term}.difference(labels.output))
    inner_first: list[str] = []
    for label in reversed((*labels.output, *summed)):
        place = len(inner_first)
        for position in reversed(range(len(inner_first))):
            inside = _lies_inside(label, inner_first[position], strides)
            if inside is False:
                break
            if inside:
                place = position
        inner_first.insert(place, label)
    return tuple(labels.output.index(label) for label in reversed(inner_first) if label in labels.output)


def strides_by_label(term: Labels, shape: tuple[int, ...], strides: tuple[int, ...]) -> Strides:
    """How far apart the elements of an operand lie along each label; 0 where there is but one."""
    found: dict[str, int] = {}
    for label, size, stride in zip(term, shape, strides, strict=True):
        found[label] = found.get(label, 0) + (stride if size != 1 else 0)
    return found


def _lies_inside(one: str, other: str, operands: Sequence[Strides]) -> bool | None:
    """Whether the first of two axes has the smaller steps, or None if no operand has both."""
    both = [(abs(s[one]), abs(s[other])) for s in operands if s.get(one) and s.get(other)]
    return all(first < second for first, second in both) if both else None


def diagonal_view(array: NDArray[Any], term: Labels, output: Labels) -> NDArray[Any]:
    """One operand whose labels all stand in the output: no sum is taken, so the result is a view of it, as in numpy."""
    view, labels = array, list(term)
    for label in output:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            view = view.diagonal(0, first, second)
            labels = [one for k, one in enumerate(labels) if k not in (first, second)] + [label]
    view = view.transpose([labels.index(label) for label in output])
    if view.flags.writeable != array.flags.writeable:  # a diagonal is not, until one asks
        view.flags.writeable = array.flags.writeable
    return view
