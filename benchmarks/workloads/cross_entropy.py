"""Softmax cross-entropy over many classes, on integer labels; gradient by the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

from . import numpy_parts

TEXT = """
L = log_softmax(S)
loss -= L[n,label[n]] / size(n)
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, c = sizes["batch"], sizes["classes"]
    return {"S": normal(generator, dtype, n, c), "label": generator.integers(c, size=n)}


def numpy_twin(S: Array, label: Array) -> Results:
    loss, S_grad = numpy_parts.cross_entropy(S, label)
    return {"loss": loss, "S.grad": S_grad}


def jax_value(jax: Any, S: Any, label: Any) -> Any:
    chosen = jax.numpy.take_along_axis(S, label[:, None], axis=1)[:, 0]
    return (jax.scipy.special.logsumexp(S, axis=1) - chosen).mean()


def torch_value(torch: Any, S: Any, label: Any) -> Any:
    return torch.nn.functional.cross_entropy(S, label)


def cost(sizes: Sizes) -> Cost:
    """The largest, a difference and a sum forward; a product backward."""
    points = sizes["batch"] * sizes["classes"]
    return Cost(others=4 * points, calls={"exp": points})


WORKLOAD = Workload(
    name="cross_entropy",
    title="softmax cross-entropy, 10,000 classes, batch 128",
    text=TEXT,
    wrt=("S",),
    sizes={"batch": 128, "classes": 10_000},
    quick={"batch": 5, "classes": 12},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: sizes["batch"] + sizes["classes"],
)
