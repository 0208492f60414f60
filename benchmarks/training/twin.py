"""A twin: the training of one model as people write it in numpy, JAX and PyTorch, for equal parameters and batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Any]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """One size of a training: what the model is told, what the data is made of, and how many examples make a step."""

    settings: Sizes
    data: Sizes
    batch: int


@dataclass(frozen=True)
class Twin:
    """One model. A library comes into its function as the first argument, so that a worker imports no other.

    A batch holds the settings and the arrays of the data, those in `examples` with the rows of the step only.
    """

    name: str  # as in kernels/models
    title: str
    case: Case
    small: Case  # for tests
    examples: tuple[str, ...]
    make_data: Callable[[Sizes, np.dtype[Any], np.random.Generator], Arrays]
    numpy_gradient: Callable[[Arrays, Arrays], tuple[Any, Arrays]]  # parameters, batch: the loss, and all gradients
    jax_loss: Callable[[Any, Arrays, Arrays], Any]
    torch_loss: Callable[[Any, Arrays, Arrays], Any]
    optimizer: str = "adam"
    lr: float = 1e-3

    def data(self, case: Case, dtype: Any) -> Arrays:
        """The same data in every process."""
        return self.make_data(case.data, np.dtype(dtype), np.random.default_rng(20240607))

    def batch(self, settings: Sizes, data: Mapping[str, Any], rows: Any) -> Arrays:
        """What one step sees, of arrays of any library."""
        return {**settings, **{name: array[rows] if name in self.examples else array for name, array in data.items()}}
