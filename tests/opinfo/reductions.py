"""Sums, means, extremes, norms, and running forms of them."""

from __future__ import annotations

import math
from typing import Any

import torch

from .case import Case, Tensor, Unexpressed, adapts, last, moved_back, rows, same_type, without_kept


def reduction(program: str, tied: str = "", whole: bool = True) -> Any:
    def adapter(
        input: Tensor,
        dim: Any = None,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Any = None,
    ) -> Case:
        if mask is not None:
            raise Unexpressed("a mask")
        same_type(input, dtype)
        if not whole and (dtype is not None or not input.is_floating_point()):
            raise Unexpressed("a result of another type")
        arranged = without_kept(input, dim, keepdim)
        flat = rows(input, dim)
        return Case(program, {"input": flat}, arrange=arranged, gradient=tied if tied and has_ties(flat) else "")

    return adapter


def has_ties(flat: Tensor) -> bool:
    ordered = flat.detach().sort(-1).values
    return bool((ordered[..., 1:] == ordered[..., :-1]).any())


def position(program: str) -> Any:
    def adapter(input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Case:
        """PyTorch gives these positions in the type of the input."""
        if mask is not None:
            raise Unexpressed("a mask")
        arranged = without_kept(input, dim, keepdim)
        return Case(program, {"input": rows(input, dim)}, arrange=lambda out: arranged(out.detach().long()))

    return adapter


adapts("masked.argmax")(position("reduce_argmax"))
adapts("masked.argmin")(position("reduce_argmin"))
EVEN = "PyTorch shares the gradient among equal values, the loops give it to the first"
adapts("sum", "masked.sum")(reduction("reduce_sum"))
adapts("mean", "masked.mean")(reduction("reduce_mean"))
adapts("prod", "masked.prod")(reduction("reduce_prod"))
adapts("amax", "masked.amax")(reduction("reduce_max", EVEN))
adapts("amin", "masked.amin")(reduction("reduce_min", EVEN))
adapts("argmax")(reduction("reduce_argmax"))
adapts("argmin")(reduction("reduce_argmin"))
adapts("logsumexp")(reduction("logsumexp"))
adapts("masked.logsumexp")(reduction("logsumexp", whole=False))


def extreme(program: str, position: str) -> Any:
    def adapter(input: Tensor, dim: Any = None, keepdim: bool = False) -> Case:
        if isinstance(dim, Tensor):
            X, Z = torch.broadcast_tensors(input, dim)
            word = "max" if "max" in program else "min"
            tie = EVEN if bool((X == Z).any()) else ""
            return Case(f"Y[...] = {word}(X[...], Z[...])", {"X": X, "Z": Z}, gradient=tie)
        if dim is None:
            flat = rows(input)
            return Case(program, {"input": flat}, gradient=EVEN if has_ties(flat) else "")
        arranged = without_kept(input, dim, keepdim)
        return Case(
            f"best = {program}(X)\nplace = {position}(X)\nreturn best, place",
            {"X": rows(input, dim)},
            arrange=lambda out: (arranged(out[0]), arranged(out[1])),
        )

    return adapter


adapts("max")(extreme("reduce_max", "reduce_argmax"))
adapts("min")(extreme("reduce_min", "reduce_argmin"))


def spread(program: str, whole: bool = True) -> Any:
    def adapter(
        input: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        correction: float | None = None,
        dtype: Any = None,
        mask: Any = None,
    ) -> Case:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if mask is not None:
            raise Unexpressed("a mask")
        same_type(input, dtype)
        if not whole and not input.is_floating_point():
            raise Unexpressed("a result of another type")
        less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
        if less != int(less):
            raise Unexpressed("a correction that is no whole number")
        return Case(
            program, {"input": rows(input, dim)}, {"correction": int(less)}, arrange=without_kept(input, dim, keepdim)
        )

    return adapter


adapts("var")(spread("var"))
adapts("std")(spread("std"))
adapts("masked.var")(spread("var", whole=False))
adapts("masked.std")(spread("std", whole=False))


def norm_case(input: Tensor, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Case:
    same_type(input, dtype)
    if not isinstance(p, int | float) or not 0 < p < math.inf:
        raise Unexpressed(f"the norm of p = {p}")
    if p < 1 and bool((input == 0).any()):
        why = "the slope of a norm below 1 at 0 is infinite"
        return Case(
            "vector_norm", {"input": rows(input, dim)}, {"p": p}, without_kept(input, dim, keepdim), gradient=why
        )
    return Case("vector_norm", {"input": rows(input, dim)}, {"p": p}, arrange=without_kept(input, dim, keepdim))


@adapts("linalg.vector_norm")
def vector_norm(input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Case:
    return norm_case(input, ord, dim, keepdim, dtype)


@adapts("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Case:
    if p == "nuc":
        raise Unexpressed("the nuclear norm")
    return norm_case(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype)


@adapts("masked.norm")
def masked_norm(
    input: Tensor, ord: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Case:
    if mask is not None:
        raise Unexpressed("a mask")
    return norm_case(input, ord, dim, keepdim, dtype)


@adapts("linalg.norm")
def linalg_norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Case:
    axes = input.ndim if dim is None else 1 if isinstance(dim, int) else len(dim)
    if ord is not None and axes != 1 and ord != "fro":
        raise Unexpressed("norms of matrices")
    return norm_case(input, 2 if ord in (None, "fro") else ord, dim, keepdim, dtype)


@adapts("nn.functional.normalize", "masked.normalize")
def normalize(
    input: Tensor, *ordered: Any, dim: int = 1, eps: float = 1e-12, mask: Any = None, p: Any = 2.0, ord: Any = None
) -> Case:
    if mask is not None:
        raise Unexpressed("a mask")
    names = iter(("p", "dim", "eps"))
    values = {"p": p if ord is None else ord, "dim": dim, "eps": eps} | dict(zip(names, ordered, strict=False))
    power = values["p"]
    if not isinstance(power, int | float) or not 0 < power < math.inf:
        raise Unexpressed(f"the norm of p = {power}")
    return Case(
        "normalize",
        {"input": last(input, values["dim"])},
        {"p": power, "eps": values["eps"]},
        arrange=moved_back(input, values["dim"]),
    )


def running(program: str) -> Any:
    def adapter(input: Tensor, dim: int) -> Case:
        return Case(program, {"input": last(input, dim)}, arrange=lambda out: (last(out[0], dim), last(out[1], dim)))

    return adapter


adapts("cummax")(running("cummax"))
adapts("cummin")(running("cummin"))


@adapts("diff")
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Case:
    if n != 1:
        raise Unexpressed("differences of differences")
    parts = [part for part in (prepend, input, append) if part is not None]
    if not all(isinstance(part, Tensor) and part.ndim == input.ndim for part in parts):
        raise Unexpressed("a number in front of or behind the rows")
    return Case("diff", {"input": last(torch.cat(parts, dim), dim)}, arrange=moved_back(input, dim))


@adapts("bincount")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Case:
    bins = max(int(input.max()) + 1 if input.numel() else 0, minlength)
    tensors = {"bin": input} | ({} if weights is None else {"weight": weights})
    kind = torch.float64 if weights is None else weights.dtype  # ours keeps it; weights left out count as floats
    return Case("histogram", tensors, {"bins": bins}, arrange=lambda out: out.to(kind))


@adapts("_segment_reduce")
def segment_reduce(
    data: Tensor,
    reduce: str,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Case:
    if initial is not None:
        raise Unexpressed("a value to start from")
    counts = lengths if lengths is not None else offsets.diff(dim=-1)
    if axis or counts.ndim > 1:
        raise Unexpressed("segments along another axis")
    if reduce == "prod":
        raise Unexpressed("products of segments")
    if reduce == "mean" and bool((counts == 0).any()):
        raise Unexpressed("NaN for a segment without rows")
    segment = torch.repeat_interleave(torch.arange(len(counts)), counts)
    flat = data.reshape(len(data), -1)
    return Case(
        f"segment_{reduce}",
        {"input": flat, "segment": segment},
        {"segments": len(counts)},
        arrange=lambda out: out.reshape(len(counts), -1),
    )
