"""einsum: numpy's whole string syntax as an index-loop statement, so that it differentiates like any program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .errors import ArgumentError, ShapeError
from .program import Program, program
from .run.arguments import as_array

BATCH_LABEL = "b"  # ellipsis axes are named b0, b1, ...: labels are single letters, so none can collide


def einsum(subscripts: str, *operands: Any) -> Any:
    """numpy's einsum: repeated labels, implicit output, ellipsis with broadcasting."""
    if not isinstance(subscripts, str):
        raise ArgumentError(
            f"the subscripts are a text, not {type(subscripts).__name__}", hint='einsum("ij,jk->ik", A, B)'
        )
    arrays = [as_array(f"operand {k}", operand) for k, operand in enumerate(operands)]
    built = einsum_program(subscripts, tuple(a.shape for a in arrays))
    return built({f"A{k}": array for k, array in enumerate(arrays)})


@lru_cache(maxsize=1024)
def einsum_program(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> Program:
    """The program of an einsum over A0, A1, ...: its adjoint and tangent are einsums too."""
    terms, output = _split(subscripts, len(shapes))
    extra = [_ellipsis_rank(k, term, shape) for k, (term, shape) in enumerate(zip(terms, shapes, strict=True))]
    batch = max((e for e in extra if e is not None), default=0)
    full = _batch_extents(terms, shapes, extra, batch)
    factors = []
    for k, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        factors.append(_access(f"A{k}", term, batch, extra[k], shape, full))
    if output is None:
        letters = "".join(terms).replace("...", "")
        output = ("..." if batch or any("..." in t for t in terms) else "") + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1)
        )
    if batch and "..." not in output:
        raise ArgumentError(f"the output of {subscripts[:200]!r} lacks `...`", hint=f"write `->...{output}`")
    _check_output(subscripts, output, terms)
    target = _access("result", output, batch, batch, (), full)
    return program(f"{target} += {' * '.join(factors)}")


def _split(subscripts: str, count: int) -> tuple[list[str], str | None]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        bare = term.replace("...", "", 1)
        bad = next((c for c in bare if not (c.isascii() and c.isalpha())), None)
        if bad is not None:
            raise ArgumentError(
                f"{bad!r} is not an index label in {subscripts[:200]!r}",
                hint="labels are letters; `...` stands once in a term, `->` once before the output",
            )
    if len(terms) != count:
        raise ArgumentError(
            f"{subscripts[:200]!r} names {len(terms)} operands, but {count} are given",
            hint="one term for each operand, with commas between them",
        )
    return terms, right if arrow else None


def _ellipsis_rank(k: int, term: str, shape: tuple[int, ...]) -> int | None:
    """How many axes the ellipsis of a term stands for, or None if it has none."""
    letters = len(term.replace("...", ""))
    if "..." not in term:
        if letters != len(shape):
            raise ShapeError(
                f"operand {k} has {len(shape)} axes, but its term {term!r} names {letters}",
                hint=f"pass an array with {letters} axes",
            )
        return None
    if letters > len(shape):
        raise ShapeError(f"operand {k} has {len(shape)} axes, fewer than its term {term!r} names")
    return len(shape) - letters


def _batch_extents(
    terms: Sequence[str], shapes: Sequence[tuple[int, ...]], extra: Sequence[int | None], batch: int
) -> list[int]:
    """The broadcast extents of the ellipsis axes."""
    found = []
    for term, shape, count in zip(terms, shapes, extra, strict=True):
        if count:
            start = term.index("...")
            found.append(shape[start : start + count])
    try:
        return list(np.broadcast_shapes((1,) * batch if not found else (), *found))
    except ValueError:
        raise ShapeError(
            f"the ellipsis axes {' and '.join(map(str, found))} do not broadcast",
            hint="axes under `...` are equal or 1",
        ) from None


def _access(name: str, term: str, batch: int, count: int | None, shape: tuple[int, ...], full: Sequence[int]) -> str:
    places = []
    position = 0
    for piece in _pieces(term):
        if piece != "...":
            places.append(piece)
            position += 1
            continue
        assert count is not None
        for k in range(batch - count, batch):
            broadcast = bool(shape) and shape[position] == 1 and full[k] != 1
            places.append("0" if broadcast else f"{BATCH_LABEL}{k}")
            position += 1
    return f"{name}[{','.join(places)}]" if places else name


def _pieces(term: str) -> list[str]:
    before, dots, after = term.partition("...")
    return [*before, *([dots] if dots else []), *after]


def _check_output(subscripts: str, output: str, terms: Sequence[str]) -> None:
    letters = output.replace("...", "")
    known = set("".join(terms).replace("...", ""))
    double = next((c for c in letters if letters.count(c) > 1), None)
    if double:
        raise ArgumentError(
            f"label {double} stands twice in the output of {subscripts[:200]!r}",
            hint="each output axis has a label of its own",
        )
    unknown = next((c for c in letters if c not in known), None)
    if unknown:
        raise ArgumentError(
            f"label {unknown} of the output stands in no term of {subscripts[:200]!r}",
            hint=f"the labels are {', '.join(sorted(known))}",
        )
