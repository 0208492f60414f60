"""What pooling, resampling and their building blocks compute, in PyTorch's operations."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

Tensor = torch.Tensor

__all__ = [
    "axis_taps",
    "cubic_weights",
    "feature_lp_pool",
    "fractional_starts",
    "grid_positions",
    "interpolate",
    "linear_weights",
    "max_unpool",
    "nearest_taps",
]


def feature_lp_pool(x: Tensor, norm_type: float, kernel_size: int, stride: int) -> Tensor:
    """lp_pool1d along the channels: they become the last axis, and go back."""
    moved = x.movedim(1, -1)
    pooled = F.lp_pool1d(moved.flatten(0, -2)[:, None], norm_type, kernel_size, stride)
    return pooled.reshape(*moved.shape[:-1], pooled.shape[-1]).movedim(-1, 1)


def fractional_starts(samples: Tensor, input_size: int, output_size: int, kernel_size: int) -> Tensor:
    """int() where the loops count."""
    alpha = (input_size - kernel_size) / max(output_size - 1, 1)
    i = torch.arange(output_size)
    starts = ((i + samples[..., None]) * alpha).floor() - (samples[..., None] * alpha).floor()
    return torch.where(i == output_size - 1, input_size - kernel_size, starts.detach().long())


def max_unpool(values: Tensor, indices: Tensor, unpooled: Tensor, axes: int) -> Tensor:
    """What PyTorch unpooled, with the gradient for the last value in each place; PyTorch's own goes to all of them."""
    flat, places = values.flatten(-axes), indices.flatten(-axes)
    position = torch.arange(flat.shape[-1]).expand(places.shape)
    shape = unpooled.flatten(-axes).shape
    last = torch.full(shape, -1).scatter_reduce(-1, places, position, "amax").gather(-1, places) == position
    alone = torch.where(last, flat, 0)
    out = torch.zeros(shape, dtype=values.dtype).scatter_add(-1, places, alone).reshape_as(unpooled)
    assert torch.equal(out, unpooled)
    return out


def interpolate(
    x: Tensor, size: int | tuple[int, ...], factor: int | tuple[int, ...], mode: str, align: bool | None = None
) -> Tensor:
    """By a size, or if that is 0 by a factor."""
    given = size if isinstance(size, int) else size[0]
    chosen = {"size": size} if given else {"scale_factor": factor}
    return F.interpolate(x, mode=mode, align_corners=align, **chosen)


def nearest_taps(input_size: int, output_size: int, exact: int) -> Tensor:
    mode = "nearest-exact" if exact else "nearest"
    return F.interpolate(torch.arange(input_size)[None, None].double(), output_size, mode=mode)[0, 0].long()


def axis_taps(input_size: int, output_size: int, taps: int, align_corners: int) -> tuple[Tensor, Tensor]:
    """Positions as PyTorch computes them, in floating point; the rest in units of 1 / unit."""
    j = torch.arange(output_size, dtype=torch.float64)
    if align_corners:
        unit = max(output_size - 1, 1)
        position = j * (input_size - 1) / unit
    else:
        unit = 2 * output_size
        position = (j + 0.5) * input_size / output_size - 0.5
    position = (position * unit).round() / unit  # whole units, so that floor meets no rounding error
    before = (position + 1e-9).floor()
    source = before[:, None] + torch.arange(taps) + 1 - taps // 2
    return source.clamp(0, input_size - 1).long(), ((position - before) * unit).round().long()


def linear_weights(rest: Tensor, align_corners: int) -> Tensor:
    part = rest / max(len(rest) - 1 if align_corners else 2 * len(rest), 1)
    return torch.stack([1 - part, part], -1)


def cubic_weights(rest: Tensor, align_corners: int) -> Tensor:
    """Keys' curve with a = -0.75, as its two polynomials."""
    part = rest / max(len(rest) - 1 if align_corners else 2 * len(rest), 1)
    a = -0.75

    def near(d: Tensor) -> Tensor:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1

    def far(d: Tensor) -> Tensor:
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a

    return torch.stack([far(part + 1), near(part), near(1 - part), far(2 - part)], -1)


def grid_positions(grid: Tensor, extent: int, padding_mode: int, align_corners: int) -> Tensor:
    """What PyTorch's sampler does to a coordinate: it samples a ramp, whose values are its positions."""
    x = (grid + 1) / 2 * (extent - 1) if align_corners else ((grid + 1) * extent - 1) / 2
    if padding_mode == 0:
        return x
    ramp = torch.arange(extent, dtype=grid.dtype)[None, None, None, :]
    points = torch.stack([grid.reshape(-1), torch.zeros_like(grid).reshape(-1)], -1)[None, None]
    mode = "border" if padding_mode == 1 else "reflection"
    return F.grid_sample(ramp, points, "bilinear", mode, bool(align_corners)).reshape(grid.shape)
