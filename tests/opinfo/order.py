"""Elements in another order, parts of matrices, gathers and scatters."""

from __future__ import annotations

from typing import Any

import torch

from .case import Case, Tensor, Unexpressed, adapts, last, moved_back, same_kind


@adapts("nn.functional.pixel_shuffle")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Case:
    return Case("pixel_shuffle", {"input": input}, {"upscale_factor": upscale_factor})


@adapts("nn.functional.pixel_unshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Case:
    return Case("pixel_unshuffle", {"input": input}, {"downscale_factor": downscale_factor})


@adapts("nn.functional.channel_shuffle")
def channel_shuffle(input: Tensor, groups: int) -> Case:
    if input.ndim < 3:
        raise Unexpressed("channels without an image")
    image = input.flatten(2)[..., None] if input.ndim != 4 else input
    return Case("channel_shuffle", {"input": image}, {"groups": groups}, arrange=lambda out: out.reshape(image.shape))


@adapts("roll")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Case:
    steps = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [] if dims is None else [dims] if isinstance(dims, int) else list(dims)
    if not axes and len(steps) == 1:
        return Case("roll", {"input": input.reshape(-1)}, {"shifts": steps[0]}, arrange=lambda out: out.reshape(-1))
    if len(axes) != 1:
        raise Unexpressed("several axes at once")
    return Case("roll", {"input": last(input, axes[0])}, {"shifts": steps[0]}, arrange=moved_back(input, axes[0]))


def flipped(input: Tensor, dims: Any) -> Case:
    axes = [dims] if isinstance(dims, int) else list(dims)
    if len(axes) != 1:
        raise Unexpressed("several axes at once")
    return Case("flip", {"input": last(input, axes[0])}, arrange=moved_back(input, axes[0]))


@adapts("flip")
def flip(input: Tensor, dims: Any) -> Case:
    return flipped(input, dims)


@adapts("fliplr")
def fliplr(input: Tensor) -> Case:
    return flipped(input, 1)


@adapts("flipud")
def flipud(input: Tensor) -> Case:
    return flipped(input, 0)


@adapts("rot90")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Case:
    turns = [f"turned{turn + 1} = rot90(turned{turn})" for turn in range(k % 4)]
    text = "\n".join(["turned0[...,i,j] = input[...,i,j]", *turns, f"return turned{k % 4}"])
    return Case(text, {"input": input.movedim(dims, (-2, -1))}, arrange=lambda out: out.movedim(dims, (-2, -1)))


def triangle(program: str) -> Any:
    def adapter(input: Tensor, diagonal: int = 0) -> Case:
        return Case(program, {"input": input}, {"diagonal": diagonal})

    return adapter


adapts("tril")(triangle("tril"))
adapts("triu")(triangle("triu"))


def cut(x: Tensor, index: Tensor) -> Tensor:
    """PyTorch takes an index that is shorter along the other axes; ours has the same."""
    return x[tuple(slice(0, n) for n in index.shape[:-1])]


@adapts("gather")
def gather(input: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Case:
    if input.ndim == 0 or index.ndim == 0:
        raise Unexpressed("numbers instead of rows")
    at = last(index, dim)
    return Case("gather", {"input": cut(last(input, dim), at), "index": at}, arrange=moved_back(index, dim))


@adapts("take_along_dim")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Case:
    if dim is None:
        return Case("gather", {"input": input.reshape(-1), "index": indices.reshape(-1)})
    x, at = last(input, dim), last(indices, dim)
    batch = torch.broadcast_shapes(x.shape[:-1], at.shape[:-1])
    return Case(
        "gather",
        {"input": x.expand(*batch, x.shape[-1]), "index": at.expand(*batch, at.shape[-1])},
        arrange=moved_back(indices, dim),
    )


@adapts("index_select")
def index_select(input: Tensor, dim: int, index: Tensor) -> Case:
    if input.ndim == 0:
        return Case(
            "index_select", {"input": input.reshape(1), "index": index.reshape(1)}, arrange=lambda o: o.reshape(1)
        )
    return Case("index_select", {"input": last(input, dim), "index": index.reshape(-1)}, arrange=moved_back(input, dim))


@adapts("scatter_add")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Case:
    if input.ndim == 0 or index.ndim == 0:
        raise Unexpressed("numbers instead of rows")
    x, at, values = last(input, dim), last(index, dim), last(src, dim)
    if at.shape[:-1] != x.shape[:-1]:
        raise Unexpressed("an index that is shorter along the other axes")
    return Case(
        "scatter_add",
        {"input": x, "index": at, "src": cut(values, at)[..., : at.shape[-1]]},
        arrange=moved_back(input, dim),
    )


@adapts("index_add")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Case:
    if input.ndim == 0:
        raise Unexpressed("numbers instead of rows")
    return Case(
        "index_add",
        {"input": last(input, dim), "index": index.reshape(-1), "source": last(source, dim)},
        {"alpha": same_kind(input, alpha)[0]},
        arrange=moved_back(input, dim),
    )
