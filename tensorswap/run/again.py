"""Again: a call like the one before it, checked and run in compiled code, with little Python around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..arrays import Array
from ..room import SMALL
from .direct_words import LARGEST
from .frame import Check, Frame
from .objects import object_layout
from .ready import Ready

WORD = np.dtype(np.int64)
NUMBERS = (float, int, bool)
LARGE = float(np.finfo(np.float32).max)

Way = Callable[..., Any]  # from what a user passes to what he gets


class Again:
    """Takes arrays of the types, shapes and strides of an earlier call, with integers in the range shown to be safe,
    and plain numbers where that call had them."""

    def __init__(self, known: Ready, given: Mapping[str, Any], ranges: Mapping[str, tuple[int, int]]) -> None:
        self.known = known
        self.names = tuple(name for name, _ in known.inputs)
        self.fixed = {name: value for name, value in given.items() if name not in self.names}  # static integers, sizes
        self.count = len(self.names) + len(self.fixed)
        kinds = [(k, dtype, type(given[name])) for k, (name, dtype) in enumerate(known.inputs)]
        self.numbers = [(k, dtype, kind) for k, dtype, kind in kinds if kind in NUMBERS]
        self.updated = [(made.old, made.dtype) for made in known.made if made.old is not None]
        numbers = {k for k, _, _ in self.numbers}
        arrays = [np.zeros((), d) if k in numbers else given[name] for k, (name, d) in enumerate(known.inputs)]
        odd = [k for k, (_, dtype) in enumerate(known.inputs) if not _is_plain(arrays[k], dtype)]
        self.converted = [(k, arrays[k].dtype, arrays[k].shape, known.inputs[k][1]) for k in odd]
        for k, _, _, dtype in self.converted:
            arrays[k] = np.array(arrays[k], dtype, order="C")
        between = [ranges.get(name) for name in self.names]
        words = [b if a.dtype == WORD else None for a, b in zip(arrays, between, strict=True)]
        self.between = [(k, *b) for k, b in enumerate(between) if b is not None and words[k] is None]
        self.checks = [Check(a.dtype, a.shape, a.strides, b) for a, b in zip(arrays, words, strict=True)]
        self.frame = self.new_frame()
        self.direct: Way | None = None  # once it was asked for

    def new_frame(self) -> Frame:
        """One that nobody else runs at the same time."""
        known = self.known
        return Frame(known.table, known.words, known.links, known.memory_slot + 1, known.work, self.checks)

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Array] | None:
        """The outputs, or None for a call of another kind."""
        arrays = self.taken(arguments)
        if arrays is None:
            return None
        for k, dtype in self.updated:  # these are copied before the check
            if type(arrays[k]) is not np.ndarray or arrays[k].dtype != dtype:
                return None
        for array in arrays:  # the runner tells the same, but only after memory was taken for the results
            if type(array) is not np.ndarray:
                return None
        return self.known.complete(arrays, self.frame)

    def taken(self, arguments: Mapping[str, Any]) -> list[Any] | None:
        """What the runner looks at next; None for a call of another kind."""
        if type(arguments) is not dict or len(arguments) != self.count:
            return None
        for name, value in self.fixed.items():
            found = arguments.get(name)
            if type(found) is not int or found != value:
                return None
        try:
            arrays = [arguments[name] for name in self.names]
        except KeyError:
            return None
        for k, dtype, kind in self.numbers:
            number = arrays[k]
            if type(number) is not kind or (kind is int and not -LARGEST <= number <= LARGEST):
                return None
            if kind is float and not -LARGE <= number <= LARGE:
                with np.errstate(over="ignore"):  # a number too large for the type of the others is infinite
                    arrays[k] = np.array(number, dtype)
            else:
                arrays[k] = np.array(number, dtype)
        for k, dtype, shape, wanted in self.converted:
            array = arrays[k]
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
            arrays[k] = np.array(array, wanted, order="C")
        for k, low, high in self.between:
            array = arrays[k]
            if type(array) is not np.ndarray or array.dtype.kind not in "iu":
                return None
            if array.size and (array.min() < low or array.max() > high):
                return None
        return arrays


def can_be_made(known: Ready, given: Mapping[str, Any], ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether calls like this one need nothing but kernels: arrays, of which those may be copied that are too small to
    ask for room, and numbers."""
    names = {name for name, _ in known.inputs}
    return (
        object_layout() is not None
        and bool(known.rows)
        and all(name in names or type(value) is int for name, value in given.items())
        and all(
            type(value := given.get(name)) in NUMBERS
            or _is_plain(value, dtype)
            or (type(value) is np.ndarray and not known.limited and value.size * dtype.itemsize < SMALL)
            for name, dtype in known.inputs
        )
        and all(type(given[name]) is np.ndarray for name in ranges)
    )


def _is_plain(value: Any, dtype: np.dtype[Any]) -> bool:
    return type(value) is np.ndarray and value.dtype == dtype and value.flags.c_contiguous
