"""One array in another memory layout: the values stay, strides, alignment and flags change."""

from __future__ import annotations

import random

import numpy as np

LAYOUTS = ("c", "fortran", "strided", "negative", "offset", "read-only", "unaligned", "broadcast")


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values in this layout; where an array cannot have it, as it is."""
    if layout == "fortran" and array.ndim:  # numpy would give it an axis
        return np.asfortranarray(array)
    if layout == "strided" and array.ndim:
        wide = np.zeros([2 * extent + 1 for extent in array.shape], array.dtype)
        view = wide[tuple(slice(1, 2 * extent + 1, 2) for extent in array.shape)]
        view[...] = array
        return view
    if layout == "negative" and array.ndim:
        every = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[every])[every]
    if layout == "offset" and array.ndim:
        wide = np.zeros([extent + 3 for extent in array.shape], array.dtype)
        view = wide[tuple(slice(2, 2 + extent) for extent in array.shape)]
        view[...] = array
        return view
    if layout == "read-only":
        copy = np.array(array)  # a number of numpy has no flags to set
        copy.flags.writeable = False
        return copy
    if layout == "unaligned" and array.dtype.itemsize > 1:
        room = np.zeros(array.nbytes + array.dtype.itemsize, np.uint8)
        view = room[1 : 1 + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        return view
    if layout == "broadcast" and array.ndim and array.shape[0] > 1:
        return np.broadcast_to(array[:1], array.shape)  # a zero stride: every row is the first
    return array


def dressed(array: np.ndarray, random_: random.Random) -> np.ndarray:
    return laid_out(array, random_.choice(LAYOUTS) if random_.random() < 0.6 else "c")
