"""Subscripts: numpy's two ways to write an einsum -> the labels of each axis of each operand and of the result."""

from __future__ import annotations

import operator
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, DtypeError, ShapeError

LETTERS = string.ascii_uppercase + string.ascii_lowercase  # what numpy's whole numbers stand for, in their order
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Subscripts:
    """A label for each axis. Axes of an ellipsis count from the right: `...0` is the last of them."""

    terms: tuple[Labels, ...]
    output: Labels


def text_and_operands(given: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """`einsum("ij,jk->ik", A, B)` as it is; `einsum(A, [0, 1], B, [1, 2], [0, 2])` with its lists as a text."""
    if not given:
        raise ArgumentError("einsum needs subscripts and operands", hint='einsum("ij,jk->ik", A, B)')
    first = given[0]
    if isinstance(first, str):
        return first, given[1:]
    if isinstance(first, bytes):
        return first.decode("ascii", "replace"), given[1:]
    if len(given) < 2:
        raise DtypeError(f"the subscripts are a text, not {type(first).__name__}", hint='einsum("ij,jk->ik", A, B)')
    pairs = len(given) // 2 * 2
    text = ",".join(_letters(labels) for labels in given[1:pairs:2])
    return text if pairs == len(given) else f"{text}->{_letters(given[-1])}", given[:pairs:2]


def _letters(labels: Any) -> str:
    hint = 'a list of whole numbers and `...` stands behind each operand; or write einsum("ij,jk->ik", A, B)'
    if not isinstance(labels, Iterable) or isinstance(labels, str | bytes):
        raise DtypeError(f"the subscripts are a text or lists, not {type(labels).__name__}", hint=hint)
    found = []
    for label in labels:
        try:
            found.append("..." if label is Ellipsis else LETTERS[_number(operator.index(label))])
        except TypeError as error:
            raise DtypeError(f"{type(label).__name__} is no label of an axis", hint=hint) from error
    return "".join(found)


def _number(label: int) -> int:
    if not 0 <= label < len(LETTERS):
        raise ArgumentError(
            f"the label {label} is not in 0..{len(LETTERS) - 1}",
            hint="a text may hold any letter: einsum('αβ,βγ->αγ', A, B)",
        )
    return label


def parse_subscripts(text: str, shapes: Sequence[tuple[int, ...]]) -> Subscripts:
    """The labels of operands of some shapes."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        bad = next((c for c in term.replace("...", "", 1) if not c.isalpha()), None)
        if bad is not None:
            raise ArgumentError(
                f"{bad!r} is not a label in {text[:200]!r}",
                hint="labels are letters; `...` stands once in a term, `->` once before the output",
            )
    if len(terms) != len(shapes):
        raise ArgumentError(
            f"{text[:200]!r} names {len(terms)} operands, but {len(shapes)} are given",
            hint="one term for each operand, with commas between them",
        )
    extra = [_ellipsis_rank(k, term, shape) for k, (term, shape) in enumerate(zip(terms, shapes, strict=True))]
    batch = max(extra)
    labels = tuple(_labels(term, count) for term, count in zip(terms, extra, strict=True))
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        right = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    elif batch and "..." not in right:
        raise ArgumentError(f"the output of {text[:200]!r} lacks `...`", hint=f"write `->...{right[:200]}`")
    output = _labels(right, batch)
    _check_output(text, output, labels)
    return Subscripts(labels, output)


def _ellipsis_rank(k: int, term: str, shape: tuple[int, ...]) -> int:
    """How many axes the ellipsis of a term stands for."""
    letters = len(term.replace("...", ""))
    if "..." not in term and letters != len(shape):
        raise ShapeError(
            f"operand {k} has {len(shape)} axes, but its term {term[:80]!r} names {letters}",
            hint=f"pass an array with {letters} axes, or write `...` for axes without a label",
        )
    if letters > len(shape):
        raise ShapeError(
            f"operand {k} has {len(shape)} axes, fewer than its term {term[:80]!r} names",
            hint=f"pass an array with {letters} axes or more",
        )
    return len(shape) - letters


def _labels(term: str, count: int) -> Labels:
    before, dots, after = term.partition("...")
    return (*before, *(f"...{k}" for k in reversed(range(count if dots else 0))), *after)


def _check_output(text: str, output: Labels, terms: Sequence[Labels]) -> None:
    known = {label for labels in terms for label in labels}
    double = next((label for label in output if output.count(label) > 1), None)
    if double:
        raise ArgumentError(
            f"label {double!r} stands twice in the output of {text[:200]!r}",
            hint="each output axis has a label of its own",
        )
    unknown = next((label for label in output if label not in known), None)
    if unknown:
        raise ArgumentError(
            f"label {unknown!r} of the output stands in no term of {text[:200]!r}",
            hint=f"the labels are {', '.join(sorted(known))[:200] or 'none'}",
        )
