"""Losses that PyTorch has no function for, or whose gradient there is another; in plain PyTorch operations."""

from __future__ import annotations

from itertools import groupby, product

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

Tensor = torch.Tensor

__all__ = [
    "ctc_loss",
    "dice_loss",
    "hinge_loss",
    "log_cosh_loss",
    "quantile_loss",
    "sigmoid_focal_loss",
    "softmax_focal_loss",
    "solid",
]


def solid(x: Tensor) -> Tensor:
    """x itself; its second derivative has memory, while the one of abs is a lazy zero that cannot be stored."""
    return x + 0 * x * x


def reduced(out: Tensor, reduction: str) -> Tensor:
    return out.mean() if reduction == "mean" else out.sum() if reduction == "sum" else out


def hinge_loss(x: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    return reduced((margin - target * x).clamp_min(0), reduction)


def log_cosh_loss(x: Tensor, target: Tensor, reduction: str) -> Tensor:
    return reduced((x - target).cosh().log(), reduction)


def quantile_loss(x: Tensor, target: Tensor, quantile: float, reduction: str) -> Tensor:
    return reduced(quantile * (target - x).relu() + (1 - quantile) * (x - target).relu(), reduction)


def sigmoid_focal_loss(x: Tensor, target: Tensor, alpha: float, gamma: float, reduction: str) -> Tensor:
    p = x.sigmoid()
    right = p * target + (1 - p) * (1 - target)
    balance = alpha * target + (1 - alpha) * (1 - target) if alpha >= 0 else 1.0
    entropy = F.binary_cross_entropy_with_logits(x, target, reduction="none")
    return reduced(balance * (1 - right) ** gamma * entropy, reduction)


def softmax_focal_loss(x: Tensor, target: Tensor, alpha: Tensor | None, gamma: float, reduction: str) -> Tensor:
    entropy = F.cross_entropy(x.flatten(0, -2), target.flatten(), reduction="none").reshape(target.shape)
    balance = 1.0 if alpha is None else alpha[target]
    return reduced(balance * (1 - (-entropy).exp()) ** gamma * entropy, reduction)


def dice_loss(x: Tensor, target: Tensor, smooth: float, reduction: str) -> Tensor:
    out = [
        1 - (2 * (a * b).sum() + smooth) / (a.sum() + b.sum() + smooth)
        for a, b in zip(x.flatten(0, -2), target.flatten(0, -2), strict=True)
    ]
    return reduced(torch.stack(out).reshape(x.shape[:-1]), reduction)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, frames: Tensor, lengths: Tensor, blank: int, zero_infinity: int, reduction: str
) -> Tensor:
    """By the definition: every sequence of classes is written out, and those that mean the target are added up."""
    out = []
    for n, (count, length) in enumerate(zip(frames.tolist(), lengths.tolist(), strict=True)):
        wanted = targets[n, :length].tolist()
        ways = [
            log_probs[range(count), n, list(way)].sum()
            for way in product(range(log_probs.shape[2]), repeat=count)
            if [c for c, _ in groupby(way) if c != blank] == wanted
        ]
        infinite = torch.tensor(0.0 if zero_infinity else torch.inf)
        out.append(-torch.stack(ways).logsumexp(0) if ways else infinite)
    torch_out = F.ctc_loss(
        log_probs, targets, frames, lengths, blank=blank, reduction="none", zero_infinity=bool(zero_infinity)
    )
    torch.testing.assert_close(torch.stack(out), torch_out)  # the value is PyTorch's: only its gradient is another
    if reduction == "mean":
        return (torch.stack(out) / lengths.clamp_min(1)).mean()
    return reduced(torch.stack(out), reduction)
