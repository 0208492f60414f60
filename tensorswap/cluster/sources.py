"""Sources: arrays of a caller, read part by part where the parts are used: memory, mapped files, Zarr, Dask, xarray."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, ShapeError
from ..language import ir
from ..lazy import cached_property
from ..run.arguments import as_array, check_dtype
from ..training.mapped import Mapped, mapped, private


class Source(Protocol):
    """An array that can be read in parts, wherever it is sent."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def travels(self) -> bool:
        """Whether a part is sent from here, rather than read by whoever uses it."""

    def read(self, cuts: tuple[tuple[int, int], ...]) -> Array:
        """A part, in memory."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """An array of this process. What is `kept` stays on workers between calls, and is known again by its content."""

    array: Array
    kept: bool = True
    travels: bool = True

    @cached_property
    def digest(self) -> str:
        """Of all of it: the array must not change while this is used."""
        return digest_of(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def read(self, cuts: tuple[tuple[int, int], ...]) -> Array:
        return self.array[tuple(slice(*cut) for cut in cuts)]


def digest_of(array: Array) -> str:
    found = hashlib.sha1(repr((array.dtype.str, array.shape)).encode(), usedforsecurity=False)
    found.update(np.asarray(array, order="C").reshape(-1).view(np.uint8).data)
    return found.hexdigest()


@dataclass(frozen=True)
class InFile:
    """An array in a file that every machine sees under the same name."""

    name: str
    path: str
    offset: int
    shape: tuple[int, ...]
    stored: str
    travels: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.stored).newbyteorder("=")

    def read(self, cuts: tuple[tuple[int, int], ...]) -> Array:
        shorter = [axis for axis, cut in enumerate(cuts) if cut != (0, self.shape[axis])]
        axis = shorter[0] if shorter else 0
        return self.take(np.arange(*cuts[axis]), axis, cuts)

    def take(self, rows: Array, axis: int, cuts: tuple[tuple[int, int], ...]) -> Array:
        """Rows along an axis, and parts of the others."""
        file = Mapped(self.name, self.path, self.offset, self.shape, np.dtype(self.stored))
        try:
            part = file.take(rows, axis)
        finally:
            file.close()
        rest = tuple(slice(*cut) if k != axis else slice(None) for k, cut in enumerate(cuts))
        return np.asarray(part[rest], self.dtype, order="C")


@dataclass(frozen=True, eq=False)
class InChunks:
    """A Zarr array, or whatever else gives a part when it is asked for one and says its shape and type."""

    array: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    travels: bool = False

    def read(self, cuts: tuple[tuple[int, int], ...]) -> Array:
        part = np.asarray(self.array[tuple(slice(*cut) for cut in cuts)])
        return np.asarray(part, self.dtype, order="C")


@dataclass(frozen=True, eq=False)
class InGraph:
    """A Dask array: its parts are computed where Dask has their chunks."""

    array: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    travels: bool = True

    def part(self, cuts: tuple[tuple[int, int], ...]) -> Any:
        """The part, not computed yet."""
        return self.array[tuple(slice(*cut) for cut in cuts)]

    def read(self, cuts: tuple[tuple[int, int], ...]) -> Array:
        return np.asarray(self.part(cuts).compute(), self.dtype, order="C")


def source(loops: ir.Loops, name: str, value: Any) -> Source:
    """An argument as a source."""
    if _module(value) == "xarray" and hasattr(value, "dims"):
        if not hasattr(value, "data"):
            raise ArgumentError(
                f"{name} is an xarray {type(value).__name__}", hint=f'pass one of its arrays: data["{name}"]'
            )
        value = _in_order(loops, name, value)
        stored = getattr(value, "variable", value)
        if value.chunks is None and not getattr(stored, "_in_memory", True):  # in a file that was not read yet
            check_dtype(name, value.dtype)
            return InChunks(value, tuple(map(int, value.shape)), value.dtype.newbyteorder("="))
        value = value.data
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if _module(value) == "dask":
        if not isinstance(shape, tuple):  # a delayed value has every attribute that is asked for
            hint = "make an array of it: dask.array.from_delayed(value, shape, dtype)"
            raise ArgumentError(f"{name} is no array of Dask's, but a {type(value).__name__}", hint=hint)
        if dtype is None or any(math.isnan(extent) for extent in shape):
            raise ShapeError(f"{name} is a Dask array of unknown shape", hint=f"{name}.compute_chunk_sizes()")
        check_dtype(name, dtype)
        return InGraph(value, tuple(map(int, shape)), dtype.newbyteorder("="))
    if _module(value) == "zarr" and isinstance(dtype, np.dtype) and shape:
        check_dtype(name, dtype)
        return InChunks(value, tuple(map(int, shape)), dtype.newbyteorder("="))
    file = mapped(name, value) if isinstance(value, np.ndarray) and value.ndim else None
    if file is not None:
        check_dtype(name, file.dtype)
        found = InFile(name, str(file.path), file.offset, tuple(file.shape), file.dtype.str)
        file.close()
        return found
    return InMemory(as_array(name, private(name, value)))


def _module(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _in_order(loops: ir.Loops, name: str, value: Any) -> Any:
    """An xarray array, with its dimensions in the order in which the program reads them."""
    for access in loops.accesses:
        if access.tensor == name:
            places = [ir.bare(place) for place in access.indices]
            if None not in places and set(places) == set(value.dims):
                return value.transpose(*places)
    accesses = [access for access in loops.accesses if access.tensor == name]
    if accesses and len(accesses[0].indices) != len(value.dims):
        wanted = ", ".join(str(ir.bare(place) or "?") for place in accesses[0].indices)
        raise ArgumentError(
            f"{name} has the dimensions {', '.join(map(str, value.dims))}; the program reads {wanted}",
            hint="rename them, or pass the bare array: array.data",
        )
    named = [str(d) for d in value.dims if d in loops.indices]
    if accesses and named:
        raise ArgumentError(
            f"{name} has the dimensions {', '.join(map(str, value.dims))}, which are not those that the program reads",
            hint="give all of them the names of indices, or pass the bare array: array.data",
        )
    return value
