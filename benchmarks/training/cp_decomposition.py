"""CP decomposition of a tensor with three axes, entry by entry, with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numpy_parts import one_hot
from .twin import Arrays, Case, Sizes, Twin

AXES = {"A": "row", "B": "column", "C": "tube"}


def make_data(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    shape = (sizes["rows"], sizes["columns"], sizes["tubes"])
    factors = [generator.standard_normal((count, 3)) for count in shape]
    chosen = generator.permutation(np.prod(shape))[: sizes["examples"]]
    chosen[0] = np.prod(shape) - 1  # so that the data tells the shape
    places = np.unravel_index(chosen, shape)
    entry = np.prod([f[place] for f, place in zip(factors, places, strict=True)], axis=0).sum(axis=1)
    return {**dict(zip(AXES.values(), places, strict=True)), "entry": entry.astype(dtype)}


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    A, B, C = (p[name][batch[axis]] for name, axis in AXES.items())
    error = (A * B * C).sum(axis=1) - batch["entry"]
    seed = (error * (2 / len(error)))[:, None]
    changes = {"A": seed * B * C, "B": seed * A * C, "C": seed * A * B}
    return np.square(error).mean(), {
        name: one_hot(batch[axis], len(p[name]), A.dtype).T @ changes[name] for name, axis in AXES.items()
    }


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    A, B, C = (p[name][batch[axis]] for name, axis in AXES.items())
    return (((A * B * C).sum(axis=1) - batch["entry"]) ** 2).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    return jax_loss(None, p, batch)  # the same text serves both


TWIN = Twin(
    name="cp_decomposition",
    title="CP decomposition of 40 x 40 x 40, rank 8, batch 256",
    case=Case({"rank": 8}, {"examples": 16384, "rows": 40, "columns": 40, "tubes": 40}, batch=256),
    small=Case({"rank": 3}, {"examples": 60, "rows": 6, "columns": 5, "tubes": 4}, batch=12),
    examples=("row", "column", "tube", "entry"),
    make_data=make_data,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
    lr=0.01,
)
