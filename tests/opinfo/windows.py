"""Convolutions, pooling, padding, resampling."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

from .case import Case, Tensor, Unexpressed, adapts, each_number, given, same_kind


def convolution(axes: int) -> Any:
    def adapter(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Case:
        if padding == "valid":
            padding = 0
        if padding == "same":
            reach = [d * (k - 1) for d, k in zip(each_number(dilation, axes), weight.shape[2:], strict=True)]
            padding = [r // 2 for r in reach]
            odd = [side for r in reversed(reach) for side in (0, r % 2)]
            input = F.pad(input, odd)  # PyTorch, too, adds the odd one in front of its convolution
        tensors = given(input=input, weight=weight, bias=bias)
        options = options_of(axes, stride=stride, padding=padding, dilation=dilation)
        if groups > 1:
            return Case(f"grouped_conv{axes}d", tensors, options | {"groups": groups})
        return Case(f"conv{axes}d", tensors, options)

    return adapter


def options_of(axes: int, **options: Any) -> dict[str, Any]:
    """One number, or one for each axis, as our ops take them."""
    return {name: per_axis(value, axes) for name, value in options.items()}


def per_axis(value: Any, axes: int) -> int | tuple[int, ...]:
    numbers = each_number(value, axes)
    return numbers[0] if axes == 1 else tuple(numbers)


def transposed(axes: int) -> Any:
    def adapter(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Case:
        options = options_of(axes, stride=stride, padding=padding, output_padding=output_padding, dilation=dilation)
        tensors = given(input=input, weight=weight, bias=bias)
        if groups > 1:
            return Case(f"grouped_conv_transpose{axes}d", tensors, options | {"groups": groups})
        return Case(f"conv_transpose{axes}d", tensors, options)

    return adapter


def max_pool(axes: int) -> Any:
    def adapter(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Case:
        options = windows(axes, kernel_size, stride, padding, ceil_mode) | options_of(axes, dilation=dilation)
        return Case(f"max_pool{axes}d" + "_with_indices" * return_indices, {"input": input}, options)

    return adapter


def windows(axes: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool) -> dict[str, Any]:
    options = options_of(axes, kernel_size=kernel_size, padding=padding) | {"ceil_mode": int(ceil_mode)}
    left_out = stride is None or (not isinstance(stride, int) and len(stride) == 0)
    return options if left_out else options | options_of(axes, stride=stride)


def avg_pool(axes: int) -> Any:
    def adapter(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Case:
        if not input.is_floating_point():
            raise Unexpressed("a mean of whole numbers that is cut to a whole number")
        options = windows(axes, kernel_size, stride, padding, ceil_mode) | {"count_include_pad": int(count_include_pad)}
        if divisor_override is not None:
            options["divisor_override"] = divisor_override
        return Case(f"avg_pool{axes}d", {"input": input}, options)

    return adapter


def output_sizes(axes: int, wanted: Any, shape: Any) -> dict[str, Any]:
    numbers = [wanted] * axes if wanted is None or isinstance(wanted, int) else list(wanted)
    numbers = numbers * axes if len(numbers) == 1 else numbers
    sizes = tuple(int(s) if n is None else int(n) for n, s in zip(numbers, shape[-axes:], strict=True))
    return {"output_size": sizes if axes > 1 else sizes[0]}


def adaptive(kind: str, axes: int) -> Any:
    def adapter(input: Tensor, output_size: Any, return_indices: bool = False) -> Case:
        program = f"adaptive_{kind}_pool{axes}d" + "_with_indices" * return_indices
        return Case(program, {"input": input}, output_sizes(axes, output_size, input.shape))

    return adapter


def fractional(axes: int) -> Any:
    pool = (F.fractional_max_pool2d, F.fractional_max_pool3d)[axes - 2]

    def adapter(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Case:
        batch = input if input.ndim == axes + 2 else input[None]
        if output_size is None:
            ratios = [output_ratio] * axes if isinstance(output_ratio, float) else output_ratio
            output_size = [int(s * r) for s, r in zip(batch.shape[-axes:], ratios, strict=True)]
        samples = torch.rand(*batch.shape[:2], axes, dtype=input.dtype, generator=torch.Generator().manual_seed(1))
        return Case(
            f"fractional_max_pool{axes}d" + "_with_indices" * return_indices,
            {"input": batch, "_random_samples": samples},
            options_of(axes, kernel_size=kernel_size) | output_sizes(axes, output_size, input.shape),
            oracle=lambda: pool(
                batch, kernel_size, output_size, return_indices=return_indices, _random_samples=samples
            ),
        )

    return adapter


def unpool(axes: int) -> Any:
    def adapter(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Case:
        options = windows(axes, kernel_size, stride, padding, False)
        del options["ceil_mode"]
        if output_size is not None:
            options |= output_sizes(axes, output_size[-axes:], output_size)
        flat = indices.flatten(-axes).sort(-1).values
        met = bool((flat[..., 1:] == flat[..., :-1]).any())
        why = "PyTorch's gradient goes to all values that meet in a place, the derivative to the last" if met else ""
        return Case(f"max_unpool{axes}d", {"input": input, "indices": indices}, options, gradient=why)

    return adapter


for count in (1, 2, 3):
    adapts(f"nn.functional.conv{count}d")(convolution(count))
    adapts(f"nn.functional.conv_transpose{count}d")(transposed(count))
    adapts(f"nn.functional.max_pool{count}d")(max_pool(count))
    adapts(f"nn.functional.avg_pool{count}d")(avg_pool(count))
    adapts(f"nn.functional.adaptive_avg_pool{count}d")(adaptive("avg", count))
    adapts(f"nn.functional.adaptive_max_pool{count}d")(adaptive("max", count))
    adapts(f"nn.functional.max_unpool{count}d")(unpool(count))
adapts("nn.functional.fractional_max_pool2d")(fractional(2))
adapts("nn.functional.fractional_max_pool3d")(fractional(3))


@adapts("nn.functional.unfold")
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Case:
    options = options_of(2, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    return Case("unfold", {"input": input}, options)


FRAME = ("left", "right", "top", "bottom", "front", "back")
NAMES = {"constant": "constant", "reflect": "reflection", "replicate": "replication", "circular": "circular"}


@adapts("nn.functional.pad")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Case:
    widths = list(pad)
    if len(widths) > 6:
        raise Unexpressed("a frame along more than three axes")
    if not widths:
        raise Unexpressed("no frame at all")
    options: dict[str, Any] = dict(zip(FRAME, widths, strict=False))
    if mode == "constant" and value is not None:
        (options["value"],) = same_kind(input, value)
    return Case(f"{NAMES[mode]}_pad{len(widths) // 2}d", {"input": input}, options)


@adapts("constant_pad_nd")
def constant_pad_nd(input: Tensor, pad: Any, value: float = 0) -> Case:
    return globals()["pad"](input, pad, "constant", value)


MODES = {
    "nearest": "interpolate_nearest{}d",
    "nearest-exact": "interpolate_nearest{}d",
    "area": "interpolate_area{}d",
    "linear": "interpolate_linear",
    "bilinear": "interpolate_bilinear",
    "trilinear": "interpolate_trilinear",
    "bicubic": "interpolate_bicubic",
}


@adapts("nn.functional.interpolate")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Case:
    axes = input.ndim - 2
    if mode not in MODES:
        raise Unexpressed(f"the mode {mode}")
    if antialias:
        raise Unexpressed("smoothing against aliases")
    options: dict[str, Any] = {}
    if size is None:
        factors = [scale_factor] * axes if isinstance(scale_factor, int | float) else list(scale_factor)
        if any(f != int(f) for f in factors) and not recompute_scale_factor and mode != "area":
            raise Unexpressed("a scale factor that is no whole number")
        whole = all(f == int(f) for f in factors)
        size = [int(s * f) for s, f in zip(input.shape[2:], factors, strict=True)]
        options = options_of(axes, scale_factor=[int(f) for f in factors]) if whole else {}
    options = options or output_sizes(axes, size, input.shape)
    if mode == "nearest-exact":
        options["exact"] = 1
    if "linear" in mode or mode == "bicubic":
        options["align_corners"] = int(bool(align_corners))
    return Case(MODES[mode].format(axes), {"input": input}, options)


@adapts("nn.functional.upsample_nearest")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None, **rest: Any) -> Case:
    return interpolate(input, size, scale_factor, "nearest")


@adapts("nn.functional.upsample_bilinear")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None, **rest: Any) -> Case:
    return interpolate(input, size, scale_factor, "bilinear", True)


PADDINGS = ("zeros", "border", "reflection")


@adapts("nn.functional.grid_sample")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Case:
    if mode == "bicubic":
        raise Unexpressed("the mode bicubic")
    program = "grid_sample" + "3d" * (input.ndim == 5) + "_nearest" * (mode == "nearest")
    options = {"padding_mode": PADDINGS.index(padding_mode), "align_corners": int(bool(align_corners))}
    return Case(program, {"input": input, "grid": grid}, options)


@adapts("grid_sampler_2d")
def grid_sampler(input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Case:
    return grid_sample(input, grid, ("bilinear", "nearest", "bicubic")[mode], PADDINGS[padding], align_corners)
