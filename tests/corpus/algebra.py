"""Products of tensors, decompositions, kernels and likelihoods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .entry import example, jnp, nn, normal, positive


@example(
    """
    C[i,j] += A[i,k] * B[k,j]
    """,
    wrt="A B",
    inputs=lambda g: normal(g, A=(3, 4), B=(4, 2)),
    second_order=True,
)
def matrix_product(x: Mapping[str, Any]) -> Any:
    return x["A"] @ x["B"]


@example(
    """
    Y[i,m] += A[i,j] * B[j,k] * C[k,l] * D[l,m]
    """,
    wrt="A B C D",
    inputs=lambda g: normal(g, A=(2, 3), B=(3, 1), C=(1, 4), D=(4, 5)),
    second_order=True,
)
def matrix_chain(x: Mapping[str, Any]) -> Any:
    return jnp.linalg.multi_dot([x["A"], x["B"], x["C"], x["D"]])


@example(
    """
    size(k) = 4
    size(i) = size(A, 0)
    P[0,i,j] += 1   if i == j
    for k:
        P[k+1,i,j] += P[k,i,m] * A[m,j]
    Y[i,j] = P[size(k),i,j]
    """,
    wrt="A",
    inputs=lambda g: normal(g, A=(3, 3)),
    second_order=True,
)
def matrix_power(x: Mapping[str, Any]) -> Any:
    return jnp.linalg.matrix_power(x["A"], 4)


@example(
    """
    y[n] += u[n,i] * A[i,j] * v[n,j]
    """,
    wrt="u A v",
    inputs=lambda g: normal(g, u=(3, 2), A=(2, 4), v=(3, 4)),
    second_order=True,
)
def bilinear_form(x: Mapping[str, Any]) -> Any:
    return jnp.einsum("ni,ij,nj->n", x["u"], x["A"], x["v"])


@example(
    """
    # the leading indices may be any number, here two
    H[...,i] += W[i,j] * X[...,j]
    N[...]   += H[...,i] ** 2
    Y[...,i]  = H[...,i] / sqrt(N[...] + 1)
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=(2, 3, 4), W=(5, 4)),
    second_order=True,
)
def batched_projection(x: Mapping[str, Any]) -> Any:
    hidden = x["X"] @ x["W"].T
    return hidden / jnp.sqrt(jnp.sum(hidden**2, axis=-1, keepdims=True) + 1)


@example(
    """
    # all that `...` stands for is summed at once
    total += X[...] ** 2 * s
    """,
    wrt="X s",
    inputs=lambda g: normal(g, X=(2, 1, 3), s=()),
)
def batched_total(x: Mapping[str, Any]) -> Any:
    return jnp.sum(x["X"] ** 2) * x["s"]


@example(
    """
    R[i,j,k] += A[i,r] * B[j,r] * C[k,r]
    loss     += (T[i,j,k] - R[i,j,k]) ** 2
    """,
    wrt="A B C T",
    inputs=lambda g: normal(g, T=(2, 3, 4), A=(2, 5), B=(3, 5), C=(4, 5)),
    second_order=True,
)
def cp_reconstruction_loss(x: Mapping[str, Any]) -> Any:
    return jnp.sum((x["T"] - jnp.einsum("ir,jr,kr->ijk", x["A"], x["B"], x["C"])) ** 2)


@example(
    """
    Y[i,j,k] += G[p,q,r] * A[i,p] * B[j,q] * C[k,r]
    """,
    wrt="G A B C",
    inputs=lambda g: normal(g, G=(2, 1, 3), A=(3, 2), B=(4, 1), C=(2, 3)),
    second_order=True,
)
def tucker(x: Mapping[str, Any]) -> Any:
    return jnp.einsum("pqr,ip,jq,kr->ijk", x["G"], x["A"], x["B"], x["C"])


@example(
    """
    M[i,r] += T[i,j,k] * B[j,r] * C[k,r]
    """,
    wrt="T B C",
    inputs=lambda g: normal(g, T=(3, 4, 2), B=(4, 5), C=(2, 5)),
    second_order=True,
)
def mttkrp(x: Mapping[str, Any]) -> Any:
    return jnp.einsum("ijk,jr,kr->ir", x["T"], x["B"], x["C"])


@example(
    """
    D[i,j] += (X[i,d] - Y[j,d]) ** 2
    K[i,j]  = exp(-D[i,j] / (2 * width ** 2))
    """,
    wrt="X Y width",
    inputs=lambda g: {**normal(g, X=(3, 2), Y=(4, 2)), **positive(g, width=())},
    second_order=True,
)
def gaussian_kernel(x: Mapping[str, Any]) -> Any:
    squared = jnp.sum((x["X"][:, None] - x["Y"]) ** 2, axis=-1)
    return jnp.exp(-squared / (2 * x["width"] ** 2))


@example(
    """
    # the diagonal stays zero: there the root has no derivative
    S[i,j] += (X[i,d] - X[j,d]) ** 2
    D[i,j]  = sqrt(S[i,j])   if i != j
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(5, 3)),
    second_order=True,
)
def pairwise_distances(x: Mapping[str, Any]) -> Any:
    squared = jnp.sum((x["X"][:, None] - x["X"]) ** 2, axis=-1)
    apart = ~jnp.eye(5, dtype=bool)
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1)), 0)


@example(
    """
    def gaussian_mixture(X[n,d], mean[k,d], spread[k,d], weight[k]) -> likelihood:
        Q[n,k] += ((X[n,d] - mean[k,d]) / exp(spread[k,d])) ** 2
        Q[n,k] += 2 * spread[k,d] + log(2 * 3.141592653589793)
        W       = log_softmax(weight)
        L[n,k]  = W[k] - Q[n,k] / 2
        M[n] max= L[n,k]
        Z[n]   += exp(L[n,k] - stop(M[n]))
        likelihood += stop(M[n]) + log(Z[n])
    """,
    wrt="X mean spread weight",
    inputs=lambda g: normal(g, X=(5, 2), mean=(3, 2), spread=(3, 2), weight=3),
    second_order=True,
)
def gaussian_mixture(x: Mapping[str, Any]) -> Any:
    standard = (x["X"][:, None] - x["mean"]) / jnp.exp(x["spread"])
    density = -0.5 * jnp.sum(standard**2 + 2 * x["spread"] + jnp.log(2 * jnp.pi), axis=-1)
    return jnp.sum(nn.logsumexp(nn.log_softmax(x["weight"]) + density, axis=1))


@example(
    """
    # the power at each frequency; indices are numbers too
    size(f) = size(t) // 2 + 1
    re[f] += x[t] * cos(2 * 3.141592653589793 * f * t / size(t))
    im[f] -= x[t] * sin(2 * 3.141592653589793 * f * t / size(t))
    power[f] = re[f] ** 2 + im[f] ** 2
    """,
    wrt="x",
    inputs=lambda g: normal(g, x=9),
    second_order=True,
)
def power_spectrum(x: Mapping[str, Any]) -> Any:
    return jnp.abs(jnp.fft.rfft(x["x"])) ** 2


@example(
    """
    # a prediction from neighbours, weighted by their nearness
    D[q,n] += (Q[q,d] - X[n,d]) ** 2 * scale[d]
    W[q,n]  = exp(-D[q,n])
    Z[q]   += W[q,n]
    Y[q]   += W[q,n] * v[n] / Z[q]
    """,
    wrt="Q X v scale",
    inputs=lambda g: {**normal(g, Q=(3, 2), X=(5, 2), v=5), **positive(g, scale=2)},
    second_order=True,
)
def kernel_regression(x: Mapping[str, Any]) -> Any:
    distance = jnp.sum((x["Q"][:, None] - x["X"]) ** 2 * x["scale"], axis=-1)
    return nn.softmax(-distance) @ x["v"]
