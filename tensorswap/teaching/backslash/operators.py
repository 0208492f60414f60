"""Linear operators: the entries of a system. Each maps the elements of one space to those of another, and back.

vec(X) stacks the columns of X, so the matrix of X -> B X A' is the Kronecker product of A and B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import LimitError, ShapeError
from ...lazy import cached_property
from .spaces import Plain, Space

MATRIX_ENTRIES = 2**24  # of a matrix that `matrix` makes


class Operator(ABC):
    """A linear map. `cost` counts the multiplications and additions of one application, in either direction."""

    domain: Space
    range: Space
    label: str
    cost: int

    @abstractmethod
    def apply(self, x: Any) -> Any:
        """The image of an element of the domain."""

    @abstractmethod
    def adjoint(self, y: Any) -> Any:
        """The transpose, applied to an element of the range: <apply(x), y> is <x, adjoint(y)>."""

    @property
    def matrix_cost(self) -> int:
        """Operations that its matrix takes: an application to every direction of the smaller side."""
        return min(self.shape) * self.cost

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.range.dimension, self.domain.dimension

    @property
    def T(self) -> Operator:  # noqa: N802  # as numpy spells it
        return Transposed(self)

    def matrix(self) -> Array:
        """The matrix, column by column: for small operators."""
        rows, columns = self.shape
        if rows * columns > MATRIX_ENTRIES:
            raise LimitError(
                f"{self.label} would be a matrix of {rows:,}x{columns:,}; at most {MATRIX_ENTRIES:,} entries are made",
                hint="use apply and adjoint",
            )
        result = np.zeros((rows, columns))
        for column in range(columns):
            result[:, column] = self.range.coordinates(self.apply(self.domain.basis(column)))
        return result

    def __matmul__(self, other: Operator) -> Operator:
        return compose(self, other)

    def __add__(self, other: Operator) -> Operator:
        return add(self, other)

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.label}: {self.shape[0]}x{self.shape[1]}>"


class Identity(Operator):
    cost = 0

    def __init__(self, space: Space) -> None:
        self.domain = self.range = space
        self.label = "I"

    def apply(self, x: Any) -> Any:
        return x

    def adjoint(self, y: Any) -> Any:
        return y


class Zero(Operator):
    cost = 0

    def __init__(self, domain: Space, range: Space) -> None:
        self.domain, self.range = domain, range
        self.label = "0"

    def apply(self, x: Any) -> Any:
        return self.range.project(np.zeros(self.range.shape))

    def adjoint(self, y: Any) -> Any:
        return self.domain.project(np.zeros(self.domain.shape))


class Scale(Operator):
    """X -> c X, in any space."""

    matrix_cost = 0  # a diagonal

    def __init__(self, factor: float, space: Space, label: str = "") -> None:
        self.factor = factor
        self.domain = self.range = space
        self.label, self.cost = label or f"{factor:g}", space.dimension

    def apply(self, x: Any) -> Any:
        return self.domain.scale(self.factor, x)

    def adjoint(self, y: Any) -> Any:
        return self.domain.scale(self.factor, y)


def _matrix(what: str, value: Any) -> Array:
    array = np.asarray(value)
    if array.ndim != 2:
        raise ShapeError(f"{what} is by a matrix, not by an array with {array.ndim} axes", hint="pass two axes")
    return array


class Left(Operator):
    """X -> B X; X has `columns` columns, or is a vector if that is None."""

    matrix_cost = 0  # copies of the factor

    def __init__(self, factor: Any, columns: int | None = None, label: str = "") -> None:
        self.factor = _matrix("a multiplication from the left", factor)
        rest = () if columns is None else (columns,)
        self.domain, self.range = Plain((self.factor.shape[1], *rest)), Plain((self.factor.shape[0], *rest))
        self.label, self.cost = label or "L", 2 * self.factor.size * (1 if columns is None else columns)

    def apply(self, x: Any) -> Array:
        return np.asarray(self.factor @ x)

    def adjoint(self, y: Any) -> Array:
        return np.asarray(self.factor.T @ y)


class Right(Operator):
    """X -> X A; X has `rows` rows."""

    matrix_cost = 0  # copies of the factor

    def __init__(self, factor: Any, rows: int, label: str = "") -> None:
        self.factor = _matrix("a multiplication from the right", factor)
        self.domain, self.range = Plain((rows, self.factor.shape[0])), Plain((rows, self.factor.shape[1]))
        self.label, self.cost = label or "R", 2 * self.factor.size * rows

    def apply(self, x: Any) -> Array:
        return np.asarray(x @ self.factor)

    def adjoint(self, y: Any) -> Array:
        return np.asarray(y @ self.factor.T)


class Hadamard(Operator):
    """X -> M * X, element by element; M is of any shape."""

    matrix_cost = 0  # a diagonal

    def __init__(self, factor: Any, label: str = "") -> None:
        self.factor = np.asarray(factor)
        self.domain = self.range = Plain(self.factor.shape)
        self.label, self.cost = label or "H", self.factor.size

    def apply(self, x: Any) -> Array:
        return np.asarray(self.factor * x)

    def adjoint(self, y: Any) -> Array:
        return self.apply(y)


class Kronecker(Operator):
    """X -> B X A', whose matrix is the Kronecker product of A and B."""

    def __init__(self, a: Any, b: Any, label: str = "") -> None:
        self.a, self.b = _matrix("a Kronecker product", a), _matrix("a Kronecker product", b)
        self.domain = Plain((self.b.shape[1], self.a.shape[1]))
        self.range = Plain((self.b.shape[0], self.a.shape[0]))
        self.label = label or "A(x)B"
        (m, n), (rows, columns) = self.domain.shape, self.range.shape
        self.cost = 2 * min(rows * n * (m + columns), m * columns * (n + rows))

    def apply(self, x: Any) -> Array:
        return np.asarray(np.linalg.multi_dot([self.b, x, self.a.T]))

    def adjoint(self, y: Any) -> Array:
        return np.asarray(np.linalg.multi_dot([self.b.T, y, self.a]))


class Trace(Operator):
    """X -> trace(G' X), the inner product with G; G is of any shape."""

    matrix_cost = 0  # a row

    def __init__(self, factor: Any, label: str = "") -> None:
        self.factor = np.asarray(factor)
        self.domain, self.range = Plain(self.factor.shape), Plain(())
        self.label, self.cost = label or "<G,.>", 2 * self.factor.size

    def apply(self, x: Any) -> Array:
        return np.asarray(np.sum(self.factor * x))

    def adjoint(self, y: Any) -> Array:
        return np.asarray(self.factor * y)


class Transposed(Operator):
    def __init__(self, inner: Operator) -> None:
        self.inner = inner
        self.domain, self.range = inner.range, inner.domain
        self.label = f"({inner.label})'"

    def apply(self, x: Any) -> Any:
        return self.inner.adjoint(x)

    def adjoint(self, y: Any) -> Any:
        return self.inner.apply(y)

    @cached_property
    def cost(self) -> int:
        return self.inner.cost

    @property
    def matrix_cost(self) -> int:
        return self.inner.matrix_cost

    @property
    def T(self) -> Operator:  # noqa: N802  # as numpy spells it
        return self.inner


class Sum(Operator):
    def __init__(self, parts: Sequence[Operator]) -> None:
        self.parts = tuple(parts)
        self.domain, self.range = self.parts[0].domain, self.parts[0].range
        for part in self.parts:
            _check_fit("a sum", part.domain, self.domain)
            _check_fit("a sum", part.range, self.range)
        self.label = " + ".join(part.label for part in self.parts)

    def apply(self, x: Any) -> Any:
        result = self.parts[0].apply(x)
        for part in self.parts[1:]:
            result = self.range.add(result, part.apply(x))
        return result

    def adjoint(self, y: Any) -> Any:
        result = self.parts[0].adjoint(y)
        for part in self.parts[1:]:
            result = self.domain.add(result, part.adjoint(y))
        return result

    @cached_property
    def cost(self) -> int:
        return sum(part.cost for part in self.parts) + (len(self.parts) - 1) * self.range.dimension


class Composition(Operator):
    """The first of the parts is applied last, as in a product of matrices."""

    def __init__(self, parts: Sequence[Operator]) -> None:
        self.parts = tuple(parts)
        for left, right in zip(self.parts, self.parts[1:], strict=False):
            _check_fit("a composition", left.domain, right.range)
        self.domain, self.range = self.parts[-1].domain, self.parts[0].range
        self.label = " ".join(f"({p.label})" if isinstance(p, Sum) else p.label for p in self.parts)

    def apply(self, x: Any) -> Any:
        for part in reversed(self.parts):
            x = part.apply(x)
        return x

    def adjoint(self, y: Any) -> Any:
        for part in self.parts:
            y = part.adjoint(y)
        return y

    @cached_property
    def cost(self) -> int:
        return sum(part.cost for part in self.parts)


class Restricted(Operator):
    """An operator on plain arrays as one between spaces in them: embedded before, projected behind."""

    def __init__(self, inner: Operator, domain: Space, range: Space) -> None:
        if (inner.domain.shape, inner.range.shape) != (domain.shape, range.shape):
            raise ShapeError(
                f"{inner.label} maps arrays of the shape {inner.domain.shape} to {inner.range.shape}, not "
                f"{domain.shape} to {range.shape}",
                hint="give spaces of the same shapes",
            )
        self.inner, self.domain, self.range = inner, domain, range
        self.label = inner.label

    def apply(self, x: Any) -> Any:
        return self.range.project(self.inner.apply(self.domain.embed(x)))

    def adjoint(self, y: Any) -> Any:
        return self.domain.project(self.inner.adjoint(self.range.embed(y)))

    @cached_property
    def cost(self) -> int:
        return self.inner.cost


def _check_fit(what: str, a: Space, b: Space) -> None:
    if a != b:
        raise ShapeError(f"{what} of operators does not fit: {a} and {b}", hint="the spaces must be the same")


def compose(left: Operator, right: Operator) -> Operator:
    """left after right; identities and zeros vanish."""
    if isinstance(left, Zero) or isinstance(right, Zero):
        return Zero(right.domain, left.range)
    if isinstance(left, Identity):
        return right
    if isinstance(right, Identity):
        return left
    parts = [p for side in (left, right) for p in (side.parts if isinstance(side, Composition) else (side,))]
    return Composition(parts)


def add(left: Operator, right: Operator) -> Operator:
    if isinstance(left, Zero):
        return right
    if isinstance(right, Zero):
        return left
    return Sum([p for side in (left, right) for p in (side.parts if isinstance(side, Sum) else (side,))])
