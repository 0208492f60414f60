"""Layer norm followed by gelu: little arithmetic, much memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

from . import numpy_parts

TEXT = """
N = layer_norm(X, gain, bias)
Y[n,d] = gelu(N[n,d])
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, d = sizes["rows"], sizes["width"]
    return {
        "X": normal(generator, dtype, n, d),
        "gain": 1 + normal(generator, dtype, d, scale=0.1),
        "bias": normal(generator, dtype, d, scale=0.1),
        "Y.grad": normal(generator, dtype, n, d),
    }


def numpy_twin(X: Array, gain: Array, bias: Array, seed: Array) -> Results:
    N, normalised, scale = numpy_parts.layer_norm(X, gain, bias)
    Y, share = numpy_parts.gelu(N)
    N_grad = numpy_parts.gelu_backward(seed, N, share)
    X_grad, gain_grad, bias_grad = numpy_parts.layer_norm_backward(N_grad, normalised, scale, gain)
    return {"Y": Y, "X.grad": X_grad, "gain.grad": gain_grad, "bias.grad": bias_grad}


def jax_value(jax: Any, X: Any, gain: Any, bias: Any) -> Any:
    centred = X - X.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return jax.nn.gelu(centred * jax.lax.rsqrt(variance + 1e-5) * gain + bias, approximate=False)


def torch_value(torch: Any, X: Any, gain: Any, bias: Any) -> Any:
    functional = torch.nn.functional
    return functional.gelu(functional.layer_norm(X, gain.shape, gain, bias, 1e-5))


def cost(sizes: Sizes) -> Cost:
    """Five operations forward and eight backward for the norm; nine around the error function and its derivative."""
    points = sizes["rows"] * sizes["width"]
    return Cost(others=22 * points, calls={"erf": points, "exp": points})


WORKLOAD = Workload(
    name="layer_norm_gelu",
    title="layer norm + gelu, 2048 x 512",
    text=TEXT,
    output="Y",
    wrt=("X", "gain", "bias"),
    sizes={"rows": 2048, "width": 512},
    quick={"rows": 5, "width": 8},
    dtypes=("float32", "float64"),
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: sizes["rows"] + sizes["width"],
)
