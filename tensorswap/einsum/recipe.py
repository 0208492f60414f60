"""Recipe: all that a call of einsum can know before it sees numbers; made once for each text, types and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, DtypeError, ShapeError
from ..program import Program, program
from .layout import memory_order, strides_by_label
from .subscripts import LETTERS, Subscripts, parse_subscripts

Array = NDArray[Any]
Shape = tuple[int, ...]
Kind = tuple[Shape, tuple[int, ...], np.dtype[Any]]  # shape, strides and type of an operand

INSTEAD: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float16): np.dtype(np.float32),  # stored, not computed with
    np.dtype(np.uint64): np.dtype(np.int64),  # sums and products wrap around alike, whatever the first bit means
}


@dataclass(eq=False)
class Recipe:
    """How to compute an einsum of operands of one kind. `dtype` is that of the result, `computed` that of the kernels,
    or None where only numpy has the type; `axes` are the axes of the result as they lie in memory."""

    subscripts: Subscripts
    shapes: tuple[Shape, ...]
    dtype: np.dtype[Any]
    computed: np.dtype[Any] | None
    casts: bool
    axes: tuple[int, ...]

    @cached_property
    def program(self) -> Program:
        return statement(self.subscripts, self.shapes, self.axes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"A{k}" for k in range(len(self.shapes)))

    @cached_property
    def back(self) -> tuple[int, ...] | None:
        """From the axes in memory to those of the result, if they differ."""
        inverse = tuple(sorted(range(len(self.axes)), key=self.axes.__getitem__))
        return None if inverse == self.axes == tuple(range(len(inverse))) else inverse

    @cached_property
    def is_view(self) -> bool:
        """Nothing is summed or multiplied."""
        return len(self.shapes) == 1 and set(self.subscripts.terms[0]) == set(self.subscripts.output)

    @cached_property
    def for_numpy(self) -> str:
        """The subscripts in letters that numpy takes."""
        letters = dict(zip(_all_labels(self.subscripts), LETTERS, strict=False))
        try:
            *terms, output = ("".join(letters[c] for c in t) for t in (*self.subscripts.terms, self.subscripts.output))
        except KeyError:
            raise ArgumentError(f"{self.dtype} is numpy's to compute, which takes {len(LETTERS)} labels") from None
        return f"{','.join(terms)}->{output}"

    def operands(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """The program's arguments, all of one type: numpy casts before it multiplies, so that a product of whole
        numbers does not wrap around where the result is floating point."""
        if self.casts:
            arrays = [a.astype(self.dtype, copy=False).astype(self.computed, copy=False) for a in arrays]
        return dict(zip(self.names, arrays))  # noqa: B905  as many as there are names; the check takes as long as the rest

    def run(self, arguments: Mapping[str, Array]) -> Array:
        result: Array = self.program(arguments)
        if result.dtype != self.dtype:
            result = result.astype(self.dtype)
        return result if self.back is None else result.transpose(self.back)

    def in_memory(self, seed: Any) -> Array:
        """A gradient of the result, as the program has its axes and its type."""
        array = np.asarray(seed, self.computed)
        return array if self.back is None else array.transpose(self.axes)


@lru_cache(maxsize=1024)
def recipe(
    text: str,
    dtype: np.dtype[Any] | None,
    order: str,
    casting: Any,
    out: tuple[np.dtype[Any], Any] | None,
    *kinds: Kind,
) -> Recipe:
    """The recipe for operands of some kinds; `out` is the type of an array for the result, and how it may be cast."""
    shapes = tuple(shape for shape, _, _ in kinds)
    labels = parse_subscripts(text, shapes)
    extents(labels, shapes)
    strides = [strides_by_label(term, kind[0], kind[1]) for term, kind in zip(labels.terms, kinds, strict=True)]
    found = _result_type(kinds, out) if dtype is None else dtype
    axes = memory_order(order, labels, strides)
    made = Recipe(labels, shapes, found, _computed(found), any(kind[2] != found for kind in kinds), axes)
    made.casts |= made.computed != found
    if made.is_view and out is None:
        return made
    if found.kind not in "biufcO":
        raise DtypeError(f"einsum does not compute with {found}", hint="use numbers or truth values")
    for k, (_, _, given) in enumerate(kinds):
        if not np.can_cast(given, found, casting):
            raise _no_cast(f"operand {k}", given, found, casting)
    if out is not None and out[1] is not None and not np.can_cast(found, out[0], out[1]):
        raise _no_cast("the result", found, out[0], out[1])
    return made


def _no_cast(what: str, given: np.dtype[Any], wanted: np.dtype[Any], casting: str) -> DtypeError:
    return DtypeError(
        f"{what} is {given}, which casting={casting!r} does not allow to become {wanted}",
        hint="give dtype= that all can become, or allow more: casting='same_kind' or 'unsafe'",
    )


def _result_type(kinds: Sequence[Kind], out: tuple[np.dtype[Any], Any] | None) -> np.dtype[Any]:
    given = [dtype for _, _, dtype in kinds]
    if out is not None and out[1] is not None:
        given.append(out[0])
    try:
        return np.result_type(*given).newbyteorder("=")
    except TypeError as error:
        names = ", ".join(str(dtype) for dtype in given)
        raise DtypeError(f"the operands have types that do not go together: {names}", hint="use numbers") from error


def _computed(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The type of the kernels; complex and longer numbers and objects have none."""
    if dtype in INSTEAD:
        return INSTEAD[dtype]
    return dtype if dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize <= 8) else None


def extents(labels: Subscripts, shapes: Sequence[Shape]) -> dict[str, int]:
    """The size of each label: all that have it agree, or have 1 and are repeated."""
    found: dict[str, tuple[int, int]] = {}
    for k, (term, shape) in enumerate(zip(labels.terms, shapes, strict=True)):
        own: dict[str, int] = {}
        for label, size in zip(term, shape, strict=True):
            if own.setdefault(label, size) != size:
                raise _disagree(label, (own[label], k), (size, k))
            if label not in found or found[label][0] == 1:
                found[label] = size, k
            elif size not in (1, found[label][0]):
                raise _disagree(label, found[label], (size, k))
    return {label: size for label, (size, _) in found.items()}


def _disagree(label: str, one: tuple[int, int], other: tuple[int, int]) -> ShapeError:
    if label.startswith("..."):
        return ShapeError(
            f"the axes under `...` do not broadcast: one has size {one[0]} on operand {one[1]}, {other[0]} on operand "
            f"{other[1]}",
            hint="counted from the right, they are equal or 1",
        )
    return ShapeError(
        f"index {label!r} has size {one[0]} on operand {one[1]}, {other[0]} on operand {other[1]}",
        hint="one label is one size" + (" or 1" if one[1] != other[1] else ""),
    )


def _all_labels(labels: Subscripts) -> list[str]:
    return list(dict.fromkeys(label for term in labels.terms for label in term))


def statement(labels: Subscripts, shapes: Sequence[Shape], axes: Sequence[int]) -> Program:
    """The program of an einsum over A0, A1, ...: its adjoint and tangent are einsums too."""
    sizes = extents(labels, shapes)
    names = {label: f"i{k}" for k, label in enumerate(_all_labels(labels))}
    factors = []
    for k, (term, shape) in enumerate(zip(labels.terms, shapes, strict=True)):
        axes_of = zip(term, shape, strict=True)
        factors.append(_access(f"A{k}", ["0" if size == 1 != sizes[c] else names[c] for c, size in axes_of]))
    target = _access("result", [names[labels.output[k]] for k in axes])
    return program(f"{target} += {' * '.join(factors)}")


def _access(name: str, places: Sequence[str]) -> str:
    return f"{name}[{','.join(places)}]" if places else name


def einsum_program(subscripts: str, shapes: Sequence[Shape]) -> Program:
    """The program of an einsum over A0, A1, ... of some shapes."""
    labels = parse_subscripts(subscripts, shapes)
    return statement(labels, shapes, range(len(labels.output)))
