"""Operands: where a task finds what it reads. One is a description; its elements are fetched where they are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array
from .sources import InFile, Source

Cuts = tuple[tuple[int, int], ...]  # the range of each axis


@dataclass(frozen=True)
class Plain:
    """A number of Python's, which never widens what it meets."""

    value: bool | int | float


@dataclass(frozen=True)
class Given:
    """A part of an argument that a call will bring: of an array, or a number of a type of Python's."""

    name: str
    cuts: Cuts
    dtype: np.dtype[Any]
    plain: type | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return _shape(self.cuts)

    def part(self, axis: int, start: int, stop: int) -> Given:
        return replace(self, cuts=_cut(self.cuts, axis, start, stop))


@dataclass(frozen=True)
class Held:
    """A part of an array that a caller gave."""

    source: Source
    cuts: Cuts

    @property
    def shape(self) -> tuple[int, ...]:
        return _shape(self.cuts)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def part(self, axis: int, start: int, stop: int) -> Held:
        return replace(self, cuts=_cut(self.cuts, axis, start, stop))


@dataclass(frozen=True)
class Made:
    """A part of what a task gives under a name."""

    task: str
    name: str
    cuts: Cuts
    dtype: np.dtype[Any]
    all: bool = True
    number: bool = False  # to be passed on as a number of Python's

    @property
    def shape(self) -> tuple[int, ...]:
        return _shape(self.cuts)

    def part(self, axis: int, start: int, stop: int) -> Made:
        return replace(self, cuts=_cut(self.cuts, axis, start, stop), all=False)


@dataclass(frozen=True)
class Joined:
    """Operands one after the other along an axis."""

    parts: tuple[Operand, ...]
    axis: int

    @property
    def shape(self) -> tuple[int, ...]:
        first = _array(self.parts[0]).shape
        length = sum(_array(part).shape[self.axis] for part in self.parts)
        return (*first[: self.axis], length, *first[self.axis + 1 :])

    @property
    def dtype(self) -> np.dtype[Any]:
        return _array(self.parts[0]).dtype

    def part(self, axis: int, start: int, stop: int) -> Operand:
        if axis != self.axis:
            return Joined(tuple(_array(part).part(axis, start, stop) for part in self.parts), self.axis)
        found: list[Operand] = []
        at = 0
        for each in map(_array, self.parts):
            length = each.shape[axis]
            low, high = max(start - at, 0), min(stop - at, length)
            if low < high or (not found and stop <= start):
                found.append(each if (low, high) == (0, length) else each.part(axis, low, max(low, high)))
            at += length
        return found[0] if len(found) == 1 else Joined(tuple(found), axis)


@dataclass(frozen=True, eq=False)
class Taken:
    """Some rows of an operand along an axis: the examples of a batch."""

    table: Held | Made
    rows: Array
    axis: int

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self.table.shape
        return (*shape[: self.axis], len(self.rows), *shape[self.axis + 1 :])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.table.dtype

    def part(self, axis: int, start: int, stop: int) -> Taken:
        if axis == self.axis:
            return replace(self, rows=self.rows[start:stop])
        return replace(self, table=self.table.part(axis, start, stop))


InArray = Given | Held | Made | Joined | Taken
Operand = Plain | InArray


def _array(operand: Operand) -> InArray:
    assert not isinstance(operand, Plain), "a number has no axes"
    return operand


def _shape(cuts: Cuts) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in cuts)


def _cut(cuts: Cuts, axis: int, start: int, stop: int) -> Cuts:
    first = cuts[axis][0]
    return (*cuts[:axis], (first + start, first + stop), *cuts[axis + 1 :])


def whole(shape: tuple[int, ...]) -> Cuts:
    return tuple((0, extent) for extent in shape)


def size(operand: Operand) -> int:
    """Bytes."""
    return 8 if isinstance(operand, Plain) else math.prod(operand.shape) * operand.dtype.itemsize


def leaves(operand: Operand) -> Iterator[Plain | Given | Held | Made]:
    """The operands that one is joined of."""
    if isinstance(operand, Joined):
        for part in operand.parts:
            yield from leaves(part)
    elif isinstance(operand, Taken):
        yield operand.table
    else:
        yield operand


def filled(operand: Operand, given: Mapping[str, Operand]) -> Operand:
    """The operand, with what a call brings."""
    if isinstance(operand, Joined):
        return Joined(tuple(filled(part, given) for part in operand.parts), operand.axis)
    if not isinstance(operand, Given):
        return operand
    found = given[operand.name]
    for axis, (start, stop) in enumerate(operand.cuts):
        if (start, stop) != (0, _array(found).shape[axis]):
            found = _array(found).part(axis, start, stop)
    return found


def renamed(operand: Operand, keys: Mapping[str, str]) -> Operand:
    """The operand, with other names for some tasks."""
    if isinstance(operand, Joined):
        return Joined(tuple(renamed(part, keys) for part in operand.parts), operand.axis)
    if isinstance(operand, Taken):
        table = renamed(operand.table, keys)
        assert isinstance(table, Held | Made)
        return replace(operand, table=table)
    return replace(operand, task=keys.get(operand.task, operand.task)) if isinstance(operand, Made) else operand


class Room:
    """Memory for rows that are taken: those of a task stand where those of the task before it stood."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def taken(self, name: str, operand: Taken, table: Array) -> Array:
        found = self.arrays.get(name)
        if found is None or (found.shape, found.dtype) != (operand.shape, table.dtype):
            found = self.arrays[name] = np.empty(operand.shape, table.dtype)
        rows = operand.rows
        if len(rows) and not 0 <= rows.min() <= rows.max() < table.shape[operand.axis]:
            raise IndexError(f"rows from {rows.min()} to {rows.max()} of {table.shape[operand.axis]}")
        np.take(
            _bytes(table, operand.axis), rows, axis=1, out=_bytes(found, operand.axis),
            mode="clip",  # other modes take memory of their own meanwhile
        )  # fmt: skip
        return found


def _bytes(array: Array, axis: int) -> Array:
    """Rows as bytes: what came over a network may lie anywhere in memory, and numpy would copy all of it first."""
    before, width = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1 :]) * array.itemsize
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(before, array.shape[axis], width)


def fetched(operand: Operand, result: Callable[[str], Any]) -> Any:
    """The elements. `result` gives what a task has made."""
    match operand:
        case Plain(value=value):
            return value
        case Held(source=source, cuts=cuts):
            return source.read(cuts)
        case Made(task=task, name=name, cuts=cuts, number=number):
            array: Array = result(task)[name]
            if number:
                return array.item()
            return array if operand.all else array[tuple(slice(*cut) for cut in cuts)]
        case Taken(table=Held(source=InFile() as file, cuts=cuts), rows=rows, axis=axis):
            return file.take(rows + cuts[axis][0], axis, cuts)
        case Taken(table=table, rows=rows, axis=axis):
            return np.take(fetched(table, result), rows, axis=axis)
        case Given(name=name):
            raise AssertionError(f"{name} was not filled in")
    return np.concatenate([fetched(part, result) for part in operand.parts], axis=operand.axis)
