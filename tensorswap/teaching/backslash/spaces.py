"""Spaces: what the values of a system are. A space says how its elements lie in plain arrays, and how to come back.

`embed` and `project` are transposes of each other, and `project` leaves an embedded element as it was; so a gradient
that is projected is the gradient among the elements of the space. `check_space` tests both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import ArgumentError, ShapeError

ROUNDING = 1e-6  # an element may miss its space by so much, relative to its size: single precision has rounding


class Space(ABC):
    """The elements may be anything: the four methods here are all that a system asks of them."""

    shape: tuple[int, ...]  # of the plain array that an element is embedded in

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many numbers tell an element."""

    @abstractmethod
    def embed(self, value: Any) -> Array:
        """The element as a plain array."""

    @abstractmethod
    def project(self, array: Array) -> Any:
        """The element nearest to a plain array."""

    @abstractmethod
    def basis(self, number: int) -> Any:
        """The elements of an orthonormal basis, in an order that follows the columns of a matrix."""

    def add(self, a: Any, b: Any) -> Any:
        return self.project(self.embed(a) + self.embed(b))

    def scale(self, factor: float, value: Any) -> Any:
        return self.project(factor * self.embed(value))

    def inner(self, a: Any, b: Any) -> float:
        return float(np.sum(self.embed(a) * self.embed(b)))

    def coordinates(self, value: Any) -> Array:
        """The element as a vector, in the orthonormal basis."""
        return np.array([self.inner(self.basis(k), value) for k in range(self.dimension)])

    def checked(self, name: str, value: Any) -> Any:
        """A value that a caller gives, as an element."""
        try:
            array = self.embed(value)
            fits = array.dtype.kind == "f" and array.shape == self.shape
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name} is no element of {self}: {error}", hint=f"pass one of {self}") from error
        if not fits:
            raise ShapeError(f"{name} has the shape {array.shape}, not {self.shape}", hint=f"pass one of {self}")
        if not self.holds(array):
            raise ArgumentError(f"{name} lies outside of {self}", hint="space.project(array) is the nearest element")
        return self.project(array)

    def holds(self, array: Array) -> bool:
        """Whether a plain array is an element, up to rounding."""
        distance = np.max(np.abs(self.embed(self.project(array)) - array), initial=0.0)
        return bool(distance <= ROUNDING * max(1.0, float(np.max(np.abs(array), initial=0.0))))


@dataclass(frozen=True)
class Plain(Space):
    """All arrays of a shape."""

    shape: tuple[int, ...]

    @property
    def dimension(self) -> int:
        return math.prod(self.shape)

    def embed(self, value: Any) -> Array:
        array = np.asarray(value)
        return array if array.dtype.kind == "f" else array.astype(np.float64)

    def project(self, array: Array) -> Array:
        return array

    def basis(self, number: int) -> Array:
        unit = np.zeros(self.dimension)
        unit[number] = 1
        return unit.reshape(self.shape, order="F")

    def add(self, a: Any, b: Any) -> Array:
        return np.asarray(a + b)

    def coordinates(self, value: Any) -> Array:
        return np.asarray(value).reshape(-1, order="F")

    def __str__(self) -> str:
        return f"arrays of the shape {self.shape}" if self.shape else "numbers"


@dataclass(frozen=True)
class Symmetric(Space):
    """Symmetric matrices, as square arrays: a gradient comes back symmetric, too."""

    size: int

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # read only, as all of a frozen space is
        return (self.size, self.size)

    @property
    def dimension(self) -> int:
        return self.size * (self.size + 1) // 2

    def embed(self, value: Any) -> Array:
        return Plain(self.shape).embed(value)

    def project(self, array: Array) -> Array:
        return (array + array.T) / 2

    def basis(self, number: int) -> Array:
        columns, rows = np.triu_indices(self.size)
        unit = np.zeros(self.shape)
        i, j = rows[number], columns[number]
        unit[i, j] = unit[j, i] = 1 if i == j else math.sqrt(0.5)
        return unit

    def __str__(self) -> str:
        return f"symmetric {self.size}x{self.size} matrices"


@dataclass(frozen=True)
class BlockDiagonal(Space):
    """Block-diagonal matrices, as tuples of their blocks: the zeros between the blocks are never stored."""

    blocks: tuple[tuple[int, int], ...]

    def __init__(self, blocks: Sequence[int | tuple[int, int]]) -> None:
        """A number stands for a square block."""
        shapes = tuple((b, b) if isinstance(b, int) else (int(b[0]), int(b[1])) for b in blocks)
        object.__setattr__(self, "blocks", shapes)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # read only, as all of a frozen space is
        return (sum(rows for rows, _ in self.blocks), sum(columns for _, columns in self.blocks))

    @property
    def dimension(self) -> int:
        return sum(rows * columns for rows, columns in self.blocks)

    def _places(self) -> list[tuple[slice, slice]]:
        places, row, column = [], 0, 0
        for rows, columns in self.blocks:
            places.append((slice(row, row + rows), slice(column, column + columns)))
            row, column = row + rows, column + columns
        return places

    def embed(self, value: Any) -> Array:
        parts = [np.asarray(block) for block in value]
        shapes = tuple(part.shape for part in parts)
        if shapes != self.blocks:
            raise ValueError(f"its blocks have the shapes {shapes}")
        kind = np.result_type(*parts)
        result = np.zeros(self.shape, kind if kind.kind == "f" else np.float64)
        for place, part in zip(self._places(), parts, strict=True):
            result[place] = part
        return result

    def project(self, array: Array) -> tuple[Array, ...]:
        return tuple(array[place].copy() for place in self._places())

    def basis(self, number: int) -> tuple[Array, ...]:
        parts = [np.zeros(shape) for shape in self.blocks]
        for part in parts:
            if number < part.size:
                part[np.unravel_index(number, part.shape, order="F")] = 1
                break
            number -= part.size
        return tuple(parts)

    def add(self, a: Any, b: Any) -> tuple[Array, ...]:
        return tuple(np.asarray(x) + np.asarray(y) for x, y in zip(a, b, strict=True))

    def coordinates(self, value: Any) -> Array:
        return np.concatenate([np.asarray(block).reshape(-1, order="F") for block in value])

    def __str__(self) -> str:
        return f"block-diagonal matrices with {len(self.blocks)} blocks"


def check_space(space: Space, random_seed: int = 0) -> None:
    """Refuses a space whose projection is not the transpose of its embedding, or moves its own elements."""
    random = np.random.default_rng(random_seed)
    array = random.standard_normal(space.shape)
    element = space.project(random.standard_normal(space.shape))
    again = space.project(space.embed(element))
    if not np.allclose(space.embed(again), space.embed(element)):
        raise ArgumentError(f"{space}: project moves an element that is embedded", hint="project(embed(x)) must be x")
    left, right = float(np.sum(space.embed(element) * array)), space.inner(element, space.project(array))
    if not math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9):
        raise ArgumentError(
            f"{space}: project is not the transpose of embed: {left:.6g} is not {right:.6g}",
            hint="<embed(x), a> must be inner(x, project(a)) for every array a",
        )
    vectors = np.array([space.coordinates(space.basis(k)) for k in range(space.dimension)])
    if not np.allclose(vectors, np.eye(space.dimension)):
        raise ArgumentError(f"{space}: the basis is not orthonormal", hint="inner(basis(i), basis(j)) is 1 or 0")
