"""References for activations, dropout and norms that PyTorch has no function for."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

Tensor = torch.Tensor

__all__ = ["alpha_dropout", "batch_moments", "batch_norm_train", "channel_dropout", "dropout", "maxout", "rrelu"]

ALL_BITS = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def rrelu(input: Tensor, noise: Tensor | None) -> Tensor:
    """With noise what PyTorch computes once it has drawn that noise; without, its evaluation mode."""
    return F.rrelu(input) if noise is None else torch.where(input > 0, input, input * noise)


def maxout(input: Tensor, pieces: int) -> Tensor:
    groups = input.reshape(*input.shape[:-1], input.shape[-1] // pieces, pieces)
    return groups.max(-1).values


def _mixed(bits: int) -> int:
    """The last step of splitmix64: each bit of the argument reaches each bit of the result."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & ALL_BITS
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & ALL_BITS
    return bits ^ bits >> 31


def uniform(*arguments: int) -> float:
    """The language's `uniform`: a state takes in one integer after another; its upper 53 bits are the number."""
    state = GOLDEN
    for argument in arguments:
        state = _mixed((state + GOLDEN & ALL_BITS) ^ _mixed(argument + GOLDEN & ALL_BITS))
    return (state >> 11) / 2**53


def _kept(seed: int, p: float, rows: int, columns: int) -> Tensor:
    """1 / (1 - p) at the positions that stay, 0 at those that go."""
    factors = [[1 / (1 - p) if uniform(seed, n, j) >= p else 0.0 for j in range(columns)] for n in range(rows)]
    return torch.tensor(factors).reshape(rows, columns)


def dropout(input: Tensor, seed: int, p: float) -> Tensor:
    return input * _kept(seed, p, input.shape[0], input.shape[1])


def channel_dropout(input: Tensor, seed: int, p: float) -> Tensor:
    kept = _kept(seed, p, input.shape[0], input.shape[1])
    return input * kept.reshape(*kept.shape, *[1] * (input.dim() - 2))


def alpha_dropout(input: Tensor, seed: int, p: float) -> Tensor:
    """What torch.nn.AlphaDropout says of its result: dropped elements are selu's limit, mean and variance stay."""
    limit = float(F.selu(torch.tensor(-1e9)))
    scale = ((1 - p) * (1 + p * limit**2)) ** -0.5 if p < 1 else 0.0
    kept = _kept(seed, p, input.shape[0], input.shape[1]) != 0
    return scale * (torch.where(kept, input, limit) - p * limit)


def batch_moments(input: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    axes = [axis for axis in range(input.dim()) if axis != 1]
    variance, mean = torch.var_mean(input, axes, correction=0)
    return input - mean.reshape(1, -1, *[1] * (input.dim() - 2)), mean, variance


def batch_norm_train(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """PyTorch changes the running averages in place: give it copies."""
    mean, variance = running_mean.clone(), running_var.clone()
    return F.batch_norm(input, mean, variance, weight, bias, True, momentum, eps), mean, variance
