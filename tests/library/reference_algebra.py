"""Distances, factorisations, segments, graphs and reductions, said with PyTorch's functions."""

from __future__ import annotations

import torch

Tensor = torch.Tensor


def squared_distances(x1: Tensor, x2: Tensor) -> Tensor:
    return ((x1[..., :, None, :] - x2[..., None, :, :]) ** 2).sum(-1)


def _magnitude(x: Tensor) -> Tensor:
    """The absolute value. The second derivative of `abs` is a tensor that numpy cannot read."""
    return torch.where(x > 0, x, torch.where(x < 0, -x, 0 * x))


def vector_norm(x: Tensor, p: float) -> Tensor:
    out = _magnitude(x).sum(-1) if p == 1 else torch.linalg.vector_norm(x, p, -1)
    torch.testing.assert_close(out, torch.linalg.vector_norm(x, p, -1))
    return out


def cdist_l1(x1: Tensor, x2: Tensor) -> Tensor:
    out = _magnitude(x1[..., :, None, :] - x2[..., None, :, :]).sum(-1)
    torch.testing.assert_close(out, torch.cdist(x1, x2, 1.0))
    return out


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """torch.cdist has no second derivative."""
    out = _distances(x1[..., :, None, :] - x2[..., None, :, :], p)
    plain = torch.cdist(x1, x2, p, compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(out, plain)
    if out.numel() and out.requires_grad:
        weight = torch.linspace(-1, 1, out.numel()).reshape(out.shape)
        torch.testing.assert_close(
            torch.autograd.grad((out * weight).sum(), (x1, x2), retain_graph=True),
            torch.autograd.grad((plain * weight).sum(), (x1, x2)),
        )
    return out


def _distances(difference: Tensor, p: float) -> Tensor:
    """The p-norms along the last axis; no slope at 0."""
    size = _magnitude(difference)
    if p == float("inf"):
        return size.amax(-1)
    if p == 0:
        return (size != 0).sum(-1).to(size.dtype)
    apart = size != 0
    total = torch.where(apart, torch.where(apart, size, 1.0) ** p, 0.0).sum(-1)
    return torch.where(total != 0, torch.where(total != 0, total, 1.0) ** (1 / p), 0.0)


def pdist(x: Tensor, p: float) -> Tensor:
    """The upper half of all distances, row by row."""
    i, j = torch.triu_indices(x.shape[-2], x.shape[-2], 1)
    out = _distances(x[..., i, :] - x[..., j, :], p)
    if x.ndim == 2:
        torch.testing.assert_close(out, torch.nn.functional.pdist(x, p))
    return out


def matern32_kernel(x1: Tensor, x2: Tensor, length_scale: float) -> Tensor:
    r = 3**0.5 * cdist(x1, x2) / length_scale
    return (1 + r) * torch.exp(-r)


def matern52_kernel(x1: Tensor, x2: Tensor, length_scale: float) -> Tensor:
    r = 5**0.5 * cdist(x1, x2) / length_scale
    return (1 + r + r**2 / 3) * torch.exp(-r)


def cosine_similarity_matrix(x1: Tensor, x2: Tensor, eps: float) -> Tensor:
    lengths = [vector_norm(x, 2.0).clamp(min=eps)[..., None] for x in (x1, x2)]
    out = (x1 / lengths[0]) @ (x2 / lengths[1]).mT
    pairs = x1[..., :, None, :], x2[..., None, :, :]
    torch.testing.assert_close(out, torch.nn.functional.cosine_similarity(*pairs, -1, eps))
    return out


def cp_reconstruct(factor0: Tensor, factor1: Tensor, factor2: Tensor, weight: Tensor | None) -> Tensor:
    first = factor0 if weight is None else factor0 * weight
    return torch.einsum("ir,jr,kr->ijk", first, factor1, factor2)


def khatri_rao(input: Tensor, other: Tensor) -> Tensor:
    return (input[:, None, :] * other[None, :, :]).reshape(-1, input.shape[1])


def _rows_of(input: Tensor, segment: Tensor, segments: int) -> list[Tensor]:
    """The rows of each segment."""
    return [input[segment == m] for m in range(segments)]


def segment_mean(input: Tensor, segment: Tensor, segments: int) -> Tensor:
    means = [
        rows.mean(0) if len(rows) else input.new_zeros(input.shape[1]) for rows in _rows_of(input, segment, segments)
    ]
    return torch.stack(means)


def segment_max(input: Tensor, segment: Tensor, segments: int) -> Tensor:
    """`max` along an axis sends the gradient to the first of equal ones, as scatter_reduce does not."""
    empty = input.new_full(input.shape[1:], -torch.inf)
    return torch.stack([rows.max(0).values if len(rows) else empty for rows in _rows_of(input, segment, segments)])


def segment_min(input: Tensor, segment: Tensor, segments: int) -> Tensor:
    return -segment_max(-input, segment, segments)


def segment_softmax(input: Tensor, segment: Tensor, segments: int) -> Tensor:
    out = torch.zeros_like(input)
    for m in range(segments):
        out = out.index_put((torch.where(segment == m)[0],), torch.softmax(input[segment == m], 0))
    return out


def _adjacency(source: Tensor, target: Tensor, nodes: int, edge_weight: Tensor | None = None) -> Tensor:
    """The dense matrix whose element (t, s) is the weight of the edges from s to t."""
    weight = torch.ones(len(source)) if edge_weight is None else edge_weight
    return torch.zeros(nodes, nodes).index_put((target, source), weight, accumulate=True)


def neighbor_sum(input: Tensor, source: Tensor, target: Tensor, edge_weight: Tensor | None) -> Tensor:
    return _adjacency(source, target, len(input), edge_weight) @ input


def neighbor_mean(input: Tensor, source: Tensor, target: Tensor) -> Tensor:
    matrix = _adjacency(source, target, len(input))
    return matrix @ input / matrix.sum(1, keepdim=True).clamp(min=1)


def graph_convolution(
    input: Tensor, weight: Tensor, source: Tensor, target: Tensor, bias: Tensor | None, edge_weight: Tensor | None
) -> Tensor:
    matrix = _adjacency(source, target, len(input), edge_weight) + torch.eye(len(input))
    scale = matrix.sum(1) ** -0.5
    return torch.nn.functional.linear(scale[:, None] * matrix * scale @ input, weight, bias)


def graph_sage(
    input: Tensor, self_weight: Tensor, neighbor_weight: Tensor, source: Tensor, target: Tensor, bias: Tensor | None
) -> Tensor:
    out = input @ self_weight.T + neighbor_mean(input, source, target) @ neighbor_weight.T
    return out if bias is None else out + bias


def graph_attention(
    input: Tensor,
    weight: Tensor,
    attention_source: Tensor,
    attention_target: Tensor,
    source: Tensor,
    target: Tensor,
    bias: Tensor | None,
    negative_slope: float,
) -> Tensor:
    z = torch.einsum("nk,hok->nho", input, weight)
    score = (z[source] * attention_source).sum(-1) + (z[target] * attention_target).sum(-1)
    score = torch.nn.functional.leaky_relu(score, negative_slope)
    attention = segment_softmax(score, target, len(input))
    out = torch.zeros_like(z).index_add(0, target, attention[..., None] * z[source])
    return out if bias is None else out + bias


def sparse_matrix(row: Tensor, column: Tensor, value: Tensor, rows: int, columns: int) -> Tensor:
    """The dense matrix: torch.sparse has no second derivative."""
    return torch.zeros(rows, columns).index_put((row, column), value, accumulate=True)


def moments(input: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    centered = input - input.mean(-1, keepdim=True)
    variance = (centered**2).mean(-1)
    skewness = (centered**3).mean(-1) / variance**1.5
    return input.mean(-1), variance, skewness, (centered**4).mean(-1) / variance**2 - 3


def standardize(input: Tensor) -> Tensor:
    shifted = input - input[:1].detach()  # a constant column is then exactly 0
    centered = shifted - shifted.mean(0)
    variance = (centered**2).mean(0)
    return centered / torch.where(variance > 0, torch.where(variance > 0, variance, 1.0).sqrt(), 1.0)


def histogram(bin: Tensor, bins: int, weight: Tensor | None) -> Tensor:
    """torch.bincount has no derivative by the weights."""
    counts = torch.bincount(bin, weight, minlength=bins)
    if weight is None:
        return counts
    out = torch.zeros(bins).index_add(0, bin, weight)
    torch.testing.assert_close(out, counts, check_dtype=False)  # an empty one gives integers
    return out
