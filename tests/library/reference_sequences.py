"""Attention, recurrent layers, scans and dynamic programming, said with PyTorch's functions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)
from torch.nn.attention import SDPBackend, sdpa_kernel

Tensor = torch.Tensor
FEW = 1000  # paths that are summed up one by one


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    grouped: bool = False,
    scale: float | None = None,
) -> Tensor:
    """The faster ways that PyTorch has have no second derivative."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped, scale=scale
        )


def hidden_where(hidden: Tensor) -> Tensor:
    """The mask that hides keys from queries."""
    return torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)


def padded_attention(q: Tensor, k: Tensor, v: Tensor, length: Tensor) -> Tensor:
    hidden = torch.arange(k.shape[2]) >= length[:, None]
    return attention(q, k, v, hidden_where(hidden)[:, None, None, :])


def sliding_window_attention(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    place = torch.arange(q.shape[2])
    back = place[:, None] - place
    return attention(q, k, v, hidden_where((back < 0) | (back >= window)))


def alibi_attention(q: Tensor, k: Tensor, v: Tensor, slope: Tensor) -> Tensor:
    back = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
    return attention(q, k, v, hidden_where(back < 0) - slope[:, None, None] * back)


def multi_head_attention(
    query: Tensor, key: Tensor, value: Tensor, in_weight: Tensor, out_weight: Tensor,
    in_bias: Tensor | None, out_bias: Tensor | None, heads: int,
) -> Tensor:  # fmt: skip
    swapped = (x.transpose(0, 1) for x in (query, key, value))
    width = query.shape[-1]
    weights = (in_weight, in_bias, None, None, False, 0.0, out_weight, out_bias)
    return F.multi_head_attention_forward(*swapped, width, heads, *weights, need_weights=True)[0].transpose(0, 1)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, eps: float) -> Tensor:
    """The quadratic form: every query with every key that it may see."""
    scores = ((F.elu(q) + 1) @ (F.elu(k) + 1).mT).tril()
    return scores @ v / (scores.sum(-1, keepdim=True) + eps)


def rope(x: Tensor, base: float, offset: int) -> Tensor:
    """A pair is a complex number, and a rotation a product."""
    length, width = x.shape[-2:]
    angle = torch.outer(offset + torch.arange(length), base ** (-torch.arange(0, width, 2) / width))
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def rope_half(x: Tensor, base: float, offset: int) -> Tensor:
    interleaved = rope(x.unflatten(-1, (2, -1)).mT.flatten(-2), base, offset)
    return interleaved.unflatten(-1, (-1, 2)).mT.flatten(-2)


def sinusoidal_position_encoding(x: Tensor, base: float, offset: int) -> Tensor:
    length, width = x.shape[-2:]
    angle = torch.outer(offset + torch.arange(length), base ** (-torch.arange(0, width, 2) / width))
    return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[:, :width]


def recurrent(
    kind: str, x: Tensor, weights: list[Tensor], biases: list[Tensor | None], states: list[Tensor | None],
    both_ways: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """torch.lstm, gru, rnn_tanh or rnn_relu; weights and biases in pairs, one for each layer and direction."""
    pairs = len(weights) // 2
    width = weights[1].shape[1]
    params: list[Tensor] = []
    for k in range(pairs):
        given = zip(weights[2 * k : 2 * k + 2], biases[2 * k : 2 * k + 2], strict=True)
        params += [weights[2 * k], weights[2 * k + 1]]
        params += [torch.zeros(weight.shape[0]) if bias is None else bias for weight, bias in given]
    states = [torch.zeros(pairs, x.shape[1], width) if state is None else state for state in states]
    start = tuple(states) if kind == "lstm" else states[0]
    layers = 1 if both_ways else pairs
    result: tuple[Tensor, ...] = getattr(torch, kind)(x, start, params, True, layers, 0.0, True, both_ways, False)
    return result


def single(
    kind: str, x: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None, bias_hh: Tensor | None,
    *states: Tensor | None, reverse: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """One layer in one direction."""
    stacked = [None if state is None else state[None] for state in states]
    x = x.flip(0) if reverse else x
    out, *last = recurrent(kind, x, [weight_ih, weight_hh], [bias_ih, bias_hh], stacked)
    return (out.flip(0) if reverse else out, *(state[0] for state in last))


def stacked(
    kind: str, x: Tensor, weight_ih_0: Tensor, weight_ih: Tensor, weight_hh: Tensor,
    bias_ih: Tensor | None, bias_hh: Tensor | None, *states: Tensor | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Layers on top of each other."""
    layers = range(weight_hh.shape[0])
    weights = [w for layer in layers for w in (weight_ih[layer - 1] if layer else weight_ih_0, weight_hh[layer])]
    biases = [None if bias is None else bias[layer] for layer in layers for bias in (bias_ih, bias_hh)]
    return recurrent(kind, x, weights, biases, list(states))


def cell(
    kind: str, x: Tensor, states: list[Tensor], weight_ih: Tensor, weight_hh: Tensor,
    bias_ih: Tensor | None, bias_hh: Tensor | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """torch.lstm_cell, gru_cell, rnn_tanh_cell or rnn_relu_cell, with or without a batch axis."""
    alone = x.ndim == 1
    x, *states = (y[None] if alone else y for y in (x, *states))
    weights = ((weight_ih, bias_ih), (weight_hh, bias_hh))
    biases = (torch.zeros(weight.shape[0]) if bias is None else bias for weight, bias in weights)
    start = tuple(states) if kind == "lstm_cell" else states[0]
    result = getattr(torch, kind)(x, start, weight_ih, weight_hh, *biases)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(y[0] if alone else y for y in results)


def lstm_gates(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    enter, keep, candidate, show = gates.chunk(4, -1)
    cell = keep.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
    return show.sigmoid() * cell.tanh(), cell


def gru_gates(enter: Tensor, recur: Tensor, state: Tensor) -> Tensor:
    reset, keep, _ = (enter + recur).sigmoid().chunk(3, -1)
    candidate = torch.tanh(enter.chunk(3, -1)[2] + reset * recur.chunk(3, -1)[2])
    return (1 - keep) * candidate + keep * state


def linear_recurrence(a: Tensor, b: Tensor, h_0: Tensor | None) -> Tensor:
    state = torch.zeros_like(a[..., 0, :]) if h_0 is None else h_0
    states = []
    for t in range(a.shape[-2]):
        state = a[..., t, :] * state + b[..., t, :]
        states.append(state)
    return torch.stack(states, -2)


def selective_scan(x: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None) -> Tensor:
    decay = torch.exp(delta[..., None] * A)
    entry = (delta * x)[..., None] * B[:, :, None, :]
    states = linear_recurrence(decay.flatten(2), entry.flatten(2), None).unflatten(2, A.shape)
    out = (states * C[:, :, None, :]).sum(-1)
    return out if D is None else out + D * x


def crf_score(
    emissions: Tensor, labels: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None
) -> Tensor:
    out = emissions.gather(2, labels[..., None])[..., 0].sum(0)
    out = out + transitions[labels[:-1], labels[1:]].sum(0)
    out = out if start is None else out + start[labels[0]]
    return out if end is None else out + end[labels[-1]]


def _path_scores(emissions: Tensor, *parameters: Tensor | None) -> tuple[Tensor, Tensor]:
    """Every label path and its score in every batch."""
    steps, batch, labels = emissions.shape
    paths = torch.tensor(list(product(range(labels), repeat=steps)))
    return paths, torch.stack([crf_score(emissions, p[:, None].expand(-1, batch), *parameters) for p in paths])


def crf_forward(emissions: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None) -> Tensor:
    """One path after the other where there are few; paths of probability 0 do not take part."""
    steps, batch, labels = emissions.shape
    if labels**steps <= FEW:
        scores = _path_scores(emissions, transitions, start, end)[1]
        columns = [scores[:, b] for b in range(batch)]
        sums = [torch.logsumexp(column[column > -torch.inf], 0) for column in columns]
        return torch.stack(sums) if sums else scores.sum(0)
    out = emissions[0] if start is None else emissions[0] + start
    for step in emissions[1:]:
        out = torch.logsumexp(out[..., None] + transitions, 1) + step
    return torch.logsumexp(out if end is None else out + end, 1)


def crf_log_likelihood(emissions: Tensor, labels: Tensor, *parameters: Tensor) -> Tensor:
    return crf_score(emissions, labels, *parameters) - crf_forward(emissions, *parameters)


def hmm_forward(observations: Tensor, start: Tensor, transitions: Tensor, emissions: Tensor) -> Tensor:
    return crf_forward(emissions.mT[observations], transitions, start, None)


def viterbi(emissions: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None) -> tuple[Tensor, Tensor]:
    """The best of all paths; where they are many, step by step."""
    steps, _, labels = emissions.shape
    if labels**steps <= FEW:
        paths, scores = _path_scores(emissions, transitions, start, end)
        best = scores.max(0)
        return best.values, paths[best.indices].mT
    out = emissions[0] if start is None else emissions[0] + start
    origins = []
    for step in emissions[1:]:
        best = (out[..., None] + transitions).max(1)
        origins.append(best.indices)
        out = best.values + step
    last = (out if end is None else out + end).max(1)
    path = [last.indices]
    for origin in reversed(origins):
        path.insert(0, origin.gather(1, path[0][:, None])[:, 0])
    return last.values, torch.stack(path)


def _walks(rows: int, columns: int) -> Iterator[list[tuple[int, int]]]:
    """All walks from (0, 0) to (rows, columns) by steps down, right, or both."""
    if not rows and not columns:
        yield [(0, 0)]
    for down, right in ((1, 1), (1, 0), (0, 1)):
        if rows >= down and columns >= right:
            for walk in _walks(rows - down, columns - right):
                yield [*walk, (rows, columns)]


def soft_dtw(distances: Tensor, gamma: float) -> Tensor:
    n, m = distances.shape[-2:]
    costs = [sum(distances[..., i, j] for i, j in walk) for walk in _walks(n - 1, m - 1)]
    return -gamma * torch.logsumexp(-torch.stack(costs) / gamma, 0)


def needleman_wunsch(scores: Tensor, gap: float, gamma: float) -> Tensor:
    totals = []
    for walk in _walks(*scores.shape[-2:]):
        total = torch.zeros(scores.shape[:-2])
        for (i, j), (up, left) in zip(walk[1:], walk, strict=False):
            total = total + (scores[..., up, left] if i > up and j > left else gap)
        totals.append(total)
    return gamma * torch.logsumexp(torch.stack(totals) / gamma, 0)
