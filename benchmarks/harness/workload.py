"""What a benchmark is made of: one computation, written once for every library, with its sizes and its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cost import Cost

Array = NDArray[Any]
Sizes = Mapping[str, int]
Arrays = dict[str, Any]  # inputs by name: arrays, and plain numbers that every library takes as constants
Results = dict[str, Array]  # the output by its name, and each gradient as `W.grad`


@dataclass(frozen=True)
class CTwin:
    """A function in C: it takes the inputs in their order, then the results in theirs, then sizes.

    Arrays are pointers to doubles or to integers of 64 bits, numbers are doubles, sizes are integers of 64 bits.
    """

    source: Path
    function: str
    shapes: Callable[[Arrays], Mapping[str, tuple[int, ...]]]  # of the results, by name
    sizes: Callable[[Arrays], Sequence[int]]
    inputs: tuple[str, ...] = ()  # those that it takes, if not all


@dataclass(frozen=True)
class Workload:
    """One computation, forward and backward.

    Without `wrt` it is forward only. If `output` is "loss", the gradient is that of a scalar. Otherwise the array
    `<output>.grad` is among the inputs, and the backward pass starts from it. With `update`, the step that is timed
    ends with the new parameters instead of the gradients. With `outputs` there are several results, or derivatives that
    are no gradient of one number: twins give all of them by name, and `derive` makes the program that is timed out of
    that of the text.

    A library comes into its function as the first argument, so that a worker imports its own and no other.
    """

    name: str
    title: str
    text: str
    sizes: Sizes
    quick: Sizes
    make_arrays: Callable[[Sizes, np.dtype[Any], np.random.Generator], Arrays]
    jax_value: Callable[..., Any]  # jax, inputs by name: the value
    terms: Callable[[Sizes], int]  # of the longest sum that a result goes through
    numpy_twin: Callable[..., Results] | None = None  # inputs by name, and `seed` if any: value and gradients
    torch_value: Callable[..., Any] | None = None  # torch, inputs by name: the value
    cost: Callable[[Sizes], Cost] | None = None  # of the best known order
    c: CTwin | None = None
    kind: str = "operation"  # or "model", "problem": each kind has a table of its own
    output: str = "loss"
    outputs: tuple[str, ...] = ()
    derive: Callable[[Any], Any] | None = None
    wrt: tuple[str, ...] = ()
    update: str = ""  # statements that replace each parameter in `wrt`
    rate: float = 0.0  # of the update: W - rate * W.grad
    einsum: str = ""  # for a single contraction of the arrays in `operands`
    operands: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32",)

    @property
    def reference(self) -> str:
        """The peer whose results in float64 are those that all are held against."""
        return "numpy" if self.numpy_twin else "jax"

    @property
    def seed(self) -> str:
        """The input from which the backward pass starts; empty for a scalar loss and for forward only."""
        return f"{self.output}.grad" if self.wrt and self.output != "loss" else ""

    @property
    def results(self) -> tuple[str, ...]:
        """The names of what one timed call gives."""
        return self.outputs or (self.output, *(name if self.update else f"{name}.grad" for name in self.wrt))


@dataclass(frozen=True)
class Row:
    """One line of the table: a workload at one type and one set of sizes."""

    workload: Workload
    dtype: str
    quick: bool

    @property
    def name(self) -> str:
        return self.workload.name if self.dtype == self.workload.dtypes[0] else f"{self.workload.name}_{self.dtype}"

    @property
    def title(self) -> str:
        return self.workload.title if self.dtype == self.workload.dtypes[0] else f"{self.workload.title}, {self.dtype}"

    @property
    def sizes(self) -> Sizes:
        return self.workload.quick if self.quick else self.workload.sizes

    def arrays(self) -> Arrays:
        """The same inputs in every process."""
        generator = np.random.default_rng(20240607)
        return self.workload.make_arrays(self.sizes, np.dtype(self.dtype), generator)

    @property
    def instructions(self) -> float | None:
        return self.workload.cost(self.sizes).instructions(self.dtype) if self.workload.cost else None

    @property
    def key(self) -> tuple[str, str, bool]:
        """What tells a worker which row is meant."""
        return (self.workload.name, self.dtype, self.quick)


def normal(generator: np.random.Generator, dtype: np.dtype[Any], *shape: int, scale: float = 1.0) -> Array:
    return (scale * generator.standard_normal(shape)).astype(dtype)
