"""Where Python and numpy keep what compiled code needs to know of a list and of the arrays in it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

Array = np.ndarray[Any, Any]


Thing = TypeVar("Thing")


def for_ever(thing: Thing) -> Thing:
    """Something that machine code uses for as long as the process lives, also while Python comes to its end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


@dataclass(frozen=True)
class ObjectLayout:
    """Bytes from the start of an object."""

    type: int  # of any object
    items: int  # of a list
    data: int  # of an array, like all that follow
    axes: int
    shape: int
    strides: int
    dtype: int


@cache
def object_layout() -> ObjectLayout | None:
    """The usual layout, if samples show that it holds here."""
    head = object.__basicsize__  # the count of references and the type
    layout = ObjectLayout(head - 8, head + 8, head, head + 8, head + 16, head + 24, head + 40)
    arrays: list[Array] = [np.empty(3), np.empty((5, 4, 2), np.float32)[:, 1:, ::-1], np.zeros((), np.int8)]
    items: list[object] = [arrays, 1, None]
    if np.ndarray.__basicsize__ < layout.dtype + 8 or list.__basicsize__ < layout.items + 8:
        return None
    if any(_word(id(a) + layout.type) != id(np.ndarray) for a in arrays):
        return None
    if ctypes.cast(_word(id(items) + layout.items), ctypes.POINTER(ctypes.c_size_t))[:3] != [id(x) for x in items]:
        return None
    return layout if all(_is_as_expected(a, layout) for a in arrays) else None


def _is_as_expected(array: Array, layout: ObjectLayout) -> bool:
    start = id(array)
    if _word(start + layout.data) != array.ctypes.data or _word(start + layout.dtype) != id(array.dtype):
        return False
    if ctypes.c_int.from_address(start + layout.axes).value != array.ndim:
        return False
    return not array.ndim or all(
        ctypes.cast(_word(start + place), ctypes.POINTER(ctypes.c_ssize_t))[: array.ndim] == list(numbers)
        for place, numbers in ((layout.shape, array.shape), (layout.strides, array.strides))
    )


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value
