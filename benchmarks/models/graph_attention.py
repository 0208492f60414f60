"""A graph attention layer: each node takes from its neighbours by a softmax over its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
Z[n,h,o] += X[n,d] * W[h,o,d]
p[n,h] += Z[n,h,o] * a[h,o]
q[n,h] += Z[n,h,o] * b[h,o]
s[e,h] = p[source[e],h] + q[node[e],h]
l[e,h] = s[e,h] if s[e,h] > 0 else 0.2 * s[e,h]
size(top, 0) = size(n)
size(total, 0) = size(n)
top[node[e],h] max= l[e,h]
x[e,h] = exp(l[e,h] - stop(top[node[e],h]))
total[node[e],h] += x[e,h]
Y[node[e],h,o] += x[e,h] / total[node[e],h] * Z[source[e],h,o]
loss += (Y[n,h,o] - target[n,h,o]) ** 2
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    """Edges are in the order of the nodes that they lead to; each node has an edge from itself."""
    n, e, d, h, o = (sizes[name] for name in ("nodes", "edges", "width", "heads", "out"))
    source = np.concatenate([np.arange(n), generator.integers(n, size=e - n)])
    node = np.concatenate([np.arange(n), generator.integers(n, size=e - n)])
    order = np.argsort(node, kind="stable")
    return {
        "X": normal(generator, dtype, n, d),
        "W": normal(generator, dtype, h, o, d, scale=d**-0.5),
        "a": normal(generator, dtype, h, o, scale=o**-0.5),
        "b": normal(generator, dtype, h, o, scale=o**-0.5),
        "source": source[order],
        "node": node[order],
        "target": normal(generator, dtype, n, h, o),
    }


def jax_value(jax: Any, X: Any, W: Any, a: Any, b: Any, source: Any, node: Any, target: Any) -> Any:
    jnp = jax.numpy
    known = {"num_segments": len(X), "indices_are_sorted": True}
    Z = jnp.einsum("nd,hod->nho", X, W)
    s = jax.nn.leaky_relu((Z * a).sum(axis=2)[source] + (Z * b).sum(axis=2)[node], 0.2)
    top = jax.lax.stop_gradient(jax.ops.segment_max(s, node, **known))
    x = jnp.exp(s - top[node])
    total = jax.ops.segment_sum(x, node, **known)
    Y = jax.ops.segment_sum((x / total[node])[:, :, None] * Z[source], node, **known)
    return ((Y - target) ** 2).sum()


def torch_value(torch: Any, X: Any, W: Any, a: Any, b: Any, source: Any, node: Any, target: Any) -> Any:
    Z = torch.einsum("nd,hod->nho", X, W)
    s = torch.nn.functional.leaky_relu((Z * a).sum(dim=2)[source] + (Z * b).sum(dim=2)[node], 0.2)
    none = torch.zeros(len(X), s.shape[1], dtype=X.dtype)
    top = (none - torch.inf).scatter_reduce(0, node[:, None].expand(s.shape), s.detach(), "amax")
    x = torch.exp(s - top[node])
    total = none.index_add(0, node, x)
    Y = torch.zeros_like(Z).index_add(0, node, (x / total[node])[:, :, None] * Z[source])
    return ((Y - target) ** 2).sum()


WORKLOAD = Workload(
    name="graph_attention",
    title="graph attention, 2000 nodes, 20,000 edges, 4 heads",
    kind="model",
    text=TEXT,
    wrt=("X", "W", "a", "b"),
    sizes={"nodes": 2000, "edges": 20_000, "width": 32, "heads": 4, "out": 8},
    quick={"nodes": 5, "edges": 12, "width": 3, "heads": 2, "out": 4},
    make_arrays=make_arrays,
    jax_value=jax_value,
    torch_value=torch_value,
    terms=lambda sizes: sizes["edges"] * sizes["heads"] * sizes["out"],
)
