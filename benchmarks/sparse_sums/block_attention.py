"""Block-sparse attention: blocks of queries look at a few blocks of keys each, which a list names."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
S[e,h,a,c] += scale * Q[of[e],h,a,d] * K[to[e],h,c,d]
size(top, 0) = size(Q, 0)
size(Z, 0) = size(Q, 0)
size(Y, 0) = size(Q, 0)
top[of[e],h,a] max= S[e,h,a,c]
P[e,h,a,c] = exp(S[e,h,a,c] - stop(top[of[e],h,a]))
Z[of[e],h,a] += P[e,h,a,c]
Y[of[e],h,a,d] += P[e,h,a,c] * V[to[e],h,c,d]
loss += Y[n,h,a,d] / Z[n,h,a] * G[n,h,a,d]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    """Each block looks at the first one, at itself and at some others, in order."""
    n, some, h, a, d = (sizes[name] for name in ("blocks", "looks", "heads", "places", "width"))
    seen = [
        np.unique([0, i, *generator.choice(n, size=some, replace=False)])[: some + 1] if n > some else np.arange(n)
        for i in range(n)
    ]
    return {
        **{name: normal(generator, dtype, n, h, a, d) for name in "QKVG"},
        "of": np.repeat(np.arange(n), [len(others) for others in seen]),
        "to": np.concatenate(seen),
        "scale": float(d**-0.5),
    }


def jax_value(jax: Any, Q: Any, K: Any, V: Any, G: Any, of: Any, to: Any, scale: float) -> Any:
    jnp = jax.numpy
    known = {"num_segments": len(Q), "indices_are_sorted": True}
    S = scale * jnp.einsum("ehad,ehcd->ehac", Q[of], K[to])
    top = jax.lax.stop_gradient(jax.ops.segment_max(S.max(axis=3), of, **known))
    P = jnp.exp(S - top[of][..., None])
    Z = jax.ops.segment_sum(P.sum(axis=3), of, **known)
    Y = jax.ops.segment_sum(jnp.einsum("ehac,ehcd->ehad", P, V[to]), of, **known)
    return (Y / Z[..., None] * G).sum()


def torch_value(torch: Any, Q: Any, K: Any, V: Any, G: Any, of: Any, to: Any, scale: float) -> Any:
    S = scale * Q[of] @ K[to].transpose(2, 3)
    place = of[:, None, None].expand(S.shape[:3])
    low = torch.full(Q.shape[:3], -torch.inf, dtype=Q.dtype)
    top = low.scatter_reduce(0, place, S.detach().amax(dim=3), "amax")
    P = torch.exp(S - top[of][..., None])
    Z = torch.zeros_like(low).index_add(0, of, P.sum(dim=3))
    Y = torch.zeros_like(Q).index_add(0, of, P @ V[to])
    return (Y / Z[..., None] * G).sum()


WORKLOAD = Workload(
    name="block_attention",
    title="block-sparse attention, 32 blocks of 32 places, 6 of them seen, 4 heads of 32",
    text=TEXT,
    wrt=("Q", "K", "V"),
    sizes={"blocks": 32, "looks": 5, "heads": 4, "places": 32, "width": 32},
    quick={"blocks": 4, "looks": 2, "heads": 2, "places": 3, "width": 2},
    make_arrays=make_arrays,
    jax_value=jax_value,
    torch_value=torch_value,
    terms=lambda sizes: sizes["blocks"] * sizes["heads"] * sizes["places"] * sizes["width"],
)
