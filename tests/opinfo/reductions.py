"""Sums, means, extremes, norms, and running forms of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from .case import (
    Case,
    Tensor,
    Unexpressed,
    adapts,
    filled,
    given,
    last,
    masked,
    moved_back,
    rows,
    same_type,
    without_kept,
)

GUARDED = {  # where a mask leaves elements out, in the language
    "reduce_sum": "out[...] += input[...,j] if mask[...,j]",
    "reduce_mean": "total[...] += input[...,j] if mask[...,j]\n"
    "count[...] += 1.0 if mask[...,j]\n"
    "out[...] = total[...] / count[...]",
    "reduce_prod": filled("reduce_prod", "1"),
    "reduce_max": "out[...] max= input[...,j] if mask[...,j]",
    "reduce_min": "out[...] min= input[...,j] if mask[...,j]",
    "reduce_argmax": filled("reduce_argmax", "-inf"),
    "reduce_argmin": filled("reduce_argmin", "inf"),
    "logsumexp": filled("logsumexp", "-inf"),
    "var": "count[...] += 1.0 if mask[...,j]\n"
    "total[...] += input[...,j] if mask[...,j]\n"
    "mean[...] = total[...] / count[...]\n"
    "squares[...] += (input[...,j] - mean[...]) ** 2 if mask[...,j]\n"
    "out[...] = squares[...] / max(count[...] - correction, 0)",
}
GUARDED["std"] = GUARDED["var"].replace("out[...] = ", "out[...] = sqrt(") + ")"


def reduction(program: str, tied: str = "", whole: bool = True) -> Any:
    def adapter(
        input: Tensor,
        dim: Any = None,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Any = None,
    ) -> Case:
        same_type(input, dtype)
        if not whole and (dtype is not None or not input.is_floating_point()):
            raise Unexpressed("a result of another type")
        case = masked(program, GUARDED.get(program, ""), mask, input, lambda x: rows(x, dim))
        why = tied if tied and has_ties(rows(input, dim)) else ""
        return replace(case, arrange=without_kept(input, dim, keepdim), gradient=why)

    return adapter


def has_ties(flat: Tensor) -> bool:
    ordered = flat.detach().sort(-1).values
    return bool((ordered[..., 1:] == ordered[..., :-1]).any())


def position(program: str) -> Any:
    def adapter(input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Case:
        """PyTorch gives these positions in the type of the input."""
        arranged = without_kept(input, dim, keepdim)
        case = masked(program, GUARDED[program], mask, input, lambda x: rows(x, dim))
        return replace(case, arrange=lambda out: arranged(out.detach().long()))

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
        same_type(input, dtype)
        if not whole and not input.is_floating_point():
            raise Unexpressed("a result of another type")
        less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
        case = masked(program, GUARDED[program], mask, input, lambda x: rows(x, dim))
        return replace(case, options={"correction": less}, arrange=without_kept(input, dim, keepdim))

    return adapter


adapts("var")(spread("var"))
adapts("std")(spread("std"))
adapts("masked.var")(spread("var", whole=False))
adapts("masked.std")(spread("std", whole=False))


def norm_case(input: Tensor, p: Any, dim: Any, keepdim: bool, dtype: Any, mask: Tensor | None = None) -> Case:
    same_type(input, dtype)
    least = "inf" if p == -math.inf else "0"
    case = masked("vector_norm", filled("vector_norm(p)", least), mask, input, lambda x: rows(x, dim))
    return replace(
        case, options={"p": p}, arrange=without_kept(input, dim, keepdim), gradient=no_slope(rows(input, dim), p)
    )


def no_slope(flat: Tensor, p: float) -> str:
    """Why a norm has no gradient that both sides agree on."""
    if abs(p) == math.inf and has_ties(flat.abs()):
        return EVEN
    if p < 1 and p != 0 and bool((flat == 0).any()):
        return "the slope of a norm below 1 at 0 is infinite"
    return ""


@adapts("linalg.vector_norm")
def vector_norm(input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Case:
    return norm_case(input, ord, dim, keepdim, dtype)


@adapts("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Case:
    if p == "nuc":
        raise Unexpressed("singular values")
    return norm_case(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype)


@adapts("masked.norm")
def masked_norm(
    input: Tensor, ord: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Case:
    return norm_case(input, ord, dim, keepdim, dtype, mask)


COLUMNS = "column[...,j] += abs(input[...,i,j])\nout[...] {}= column[...,j]"  # norms of a matrix by its columns
ROWS = "row[...,i] += abs(input[...,i,j])\nout[...] {}= row[...,i]"
OF_MATRICES = {
    1: COLUMNS.format("max"),
    -1: COLUMNS.format("min"),
    math.inf: ROWS.format("max"),
    -math.inf: ROWS.format("min"),
}


@adapts("linalg.norm")
def linalg_norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Case:
    axes = input.ndim if dim is None else 1 if isinstance(dim, int) else len(dim)
    if ord is None or ord == "fro" or axes == 1:
        return norm_case(input, 2 if ord in (None, "fro") else ord, dim, keepdim, dtype)
    if ord not in OF_MATRICES:
        raise Unexpressed("singular values")
    if not input.numel():
        raise Unexpressed("a norm of nothing")
    same_type(input, dtype)
    dims = (0, 1) if dim is None else tuple(dim)
    text = OF_MATRICES[ord]
    why = EVEN if bool((input == 0).any()) else ""
    return Case(
        text, {"input": input.movedim(dims, (-2, -1))}, arrange=without_kept(input, dims, keepdim), gradient=why
    )


@adapts("nn.functional.normalize", "masked.normalize")
def normalize(
    input: Tensor, *ordered: Any, dim: int = 1, eps: float = 1e-12, mask: Any = None, p: Any = 2.0, ord: Any = None
) -> Case:
    names = iter(("p", "dim", "eps"))
    values = {"p": p if ord is None else ord, "dim": dim, "eps": eps} | dict(zip(names, ordered, strict=False))
    flat = last(input, values["dim"])
    fill = "inf" if values["p"] == -math.inf else "0"
    case = masked("normalize", filled("normalize(p, eps)", fill), mask, input, lambda x: last(x, values["dim"]))
    return replace(
        case,
        options={"p": values["p"], "eps": values["eps"]},
        arrange=moved_back(input, values["dim"]),
        gradient=no_slope(flat, values["p"]),
    )


def running(program: str) -> Any:
    def adapter(input: Tensor, dim: int) -> Case:
        return Case(program, {"input": last(input, dim)}, arrange=lambda out: (last(out[0], dim), last(out[1], dim)))

    return adapter


adapts("cummax")(running("cummax"))
adapts("cummin")(running("cummin"))


@adapts("diff")
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Case:
    shape = list(input.shape)
    shape[dim] = 1
    sides = [x.expand(shape) if isinstance(x, Tensor) and not x.ndim else x for x in (prepend, append)]
    parts = given(prepend=sides[0], input=input, append=sides[1])
    views = {name: last(part, dim) for name, part in parts.items()}
    if len(views) == 1 or not n:  # PyTorch puts nothing in front or behind if there is nothing to subtract
        views = {"input": views["input"]}
        return Case("diff", views, {"n": n}, arrange=moved_back(input, dim))
    first, *others = views
    text = "n: int\n"
    for number, other in enumerate(others):
        text += f"joined{number} = concat({first}, {other})\n"
        first = f"joined{number}"
    return Case(f"{text}out = diff({first}, n)\nreturn out", views, {"n": n}, arrange=moved_back(input, dim))


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
    counts = lengths if lengths is not None else offsets.diff(dim=-1)
    if axis or counts.ndim > 1:
        raise Unexpressed("segments along another axis")
    segment = torch.repeat_interleave(torch.arange(len(counts)), counts)
    flat = data.reshape(len(data), -1)[: len(segment)]
    start = "NaN" if initial is None and reduce == "mean" else initial
    if start == "NaN" and bool((counts == 0).any()):
        raise Unexpressed("NaN for a segment without rows")
    lines = f"segments: int\nsize(m) = segments\n{SEGMENTS[reduce]}\nreturn out"
    number = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    return Case(
        lines,
        {"input": flat, "segment": segment},
        {"segments": len(counts), "initial": number if initial is None else initial},
        arrange=lambda out: out.reshape(len(counts), -1),
    )


SEGMENTS = {  # of rows, from a number that each segment starts from
    "sum": "part = segment_sum(input, segment, segments)\nout[m,d] = initial + part[m,d]",
    "mean": "part = segment_sum(input, segment, segments)\n"
    "size(count, 0) = segments\ncount[segment[n]] += 1.0\n"
    "out[m,d] = (initial + part[m,d]) / max(count[m], 1)",
    "prod": "size(out, 0) = segments\nout[segment[n],d] *= input[n,d]\nout[m,d] *= initial",
    "max": "part = segment_max(input, segment, segments)\nout[m,d] = max(initial, part[m,d])",
    "min": "part = segment_min(input, segment, segments)\nout[m,d] = min(initial, part[m,d])",
}


@adapts("histc")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Case:
    return Case("histc", {"input": input.reshape(-1)}, {"bins": bins, "min_val": float(min), "max_val": float(max)})
