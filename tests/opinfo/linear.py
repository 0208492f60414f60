"""Products of vectors and matrices, tables, attention, distances."""

from __future__ import annotations

from typing import Any

import torch

from .case import Case, Tensor, Unexpressed, adapts, given, last, same_kind


@adapts("nn.functional.linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Case:
    if weight.ndim == 1:
        return Case(
            "linear",
            given(input=input, weight=weight[None], bias=None if bias is None else bias.reshape(1)),
            arrange=lambda out: out[..., None],
        )
    return Case("linear", given(input=input, weight=weight, bias=bias))


@adapts("nn.functional.bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Case:
    return Case("bilinear", given(input1=input1, input2=input2, weight=weight, bias=bias))


@adapts("outer")
def outer(input: Tensor, vec2: Tensor) -> Case:
    return Case("outer", {"input": input, "vec2": vec2})


def product(left: Tensor, right: Tensor) -> Case:
    a = left[None] if left.ndim == 1 else left
    b = right[:, None] if right.ndim == 1 else right
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])
    shape = (*batch, a.shape[-2], b.shape[-1])
    return Case("matmul", {"input": a, "other": b}, arrange=lambda out: out.reshape(shape))


@adapts("matmul", "mm", "mv", "dot", "vdot")
def matmul(input: Tensor, other: Tensor) -> Case:
    return product(input, other)


@adapts("__rmatmul__")
def right_matmul(input: Tensor, other: Tensor) -> Case:
    return product(other, input)


@adapts("inner")
def inner(input: Tensor, other: Tensor) -> Case:
    if not input.ndim or not other.ndim:
        raise Unexpressed("a product with a number")
    flat = other.reshape(-1, other.shape[-1]) if other.numel() else other.reshape(0, other.shape[-1])
    return Case(
        "linear", {"input": input, "weight": flat}, arrange=lambda out: out.reshape(*input.shape[:-1], len(flat))
    )


@adapts("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Case:
    return Case("bmm", {"input": input, "mat2": mat2})


@adapts("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, beta: float = 1, alpha: float = 1) -> Case:
    whole = input.expand(mat1.shape[0], mat2.shape[1])
    return Case(
        "addmm",
        {"input": whole, "mat1": mat1, "mat2": mat2},
        dict(zip(("beta", "alpha"), same_kind(input, beta, alpha), strict=True)),
    )


@adapts("baddbmm")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, beta: float = 1, alpha: float = 1) -> Case:
    whole = input.expand(batch1.shape[0], batch1.shape[1], batch2.shape[2])
    if beta == 0 and not input.isfinite().all():
        raise Unexpressed("an inf that beta = 0 leaves out: 0 * inf is nan, and the derivative by beta needs the input")
    return Case(
        "baddbmm",
        {"input": whole, "batch1": batch1, "batch2": batch2},
        dict(zip(("beta", "alpha"), same_kind(input, beta, alpha), strict=True)),
    )


@adapts("kron")
def kron(input: Tensor, other: Tensor) -> Case:
    if input.ndim != 2 or other.ndim != 2:
        raise Unexpressed("products of tensors that are no matrices")
    return Case("kronecker", {"input": input, "other": other})


@adapts("trace")
def trace(input: Tensor) -> Case:
    side = min(input.shape)
    return Case("trace", {"input": input[:side, :side]})


@adapts("linalg.vecdot")
def vecdot(x: Tensor, y: Tensor, dim: int = -1) -> Case:
    a, b = torch.broadcast_tensors(x, y)
    return Case("s[...] += A[...,k] * B[...,k]", {"A": last(a, dim), "B": last(b, dim)})


@adapts("cdist")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Case:
    batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    tensors = {"x1": x1.expand(*batch, *x1.shape[-2:]), "x2": x2.expand(*batch, *x2.shape[-2:])}
    return Case("cdist", tensors, {"p": float(p)})


@adapts("nn.functional.pdist")
def pdist(input: Tensor, p: float = 2.0) -> Case:
    return Case("pdist", {"input": input}, {"p": float(p)})


@adapts("nn.functional.pairwise_distance")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Case:
    a, b = torch.broadcast_tensors(x1, x2)
    return Case(
        "pairwise_distance",
        {"x1": a, "x2": b},
        {"p": float(p), "eps": eps},
        arrange=(lambda out: out[..., 0]) if keepdim else (lambda out: out),
    )


@adapts("nn.functional.cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Case:
    a, b = torch.broadcast_tensors(x1, x2)
    return Case("cosine_similarity", {"x1": last(a, dim), "x2": last(b, dim)}, {"eps": eps})


@adapts("nn.functional.embedding")
def embedding(
    weight: Tensor,
    input: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Case:
    if max_norm is not None:
        raise Unexpressed("rows that are shortened on the way")
    if scale_grad_by_freq:
        raise Unexpressed("a gradient that is divided by counts")
    rows = {} if padding_idx is None else {"padding_idx": padding_idx % len(weight)}
    return Case("embedding", {"input": input, "weight": weight}, rows)


@adapts("nn.functional.embedding_bag")
def embedding_bag(
    weight: Tensor,
    input: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Case:
    if max_norm is not None:
        raise Unexpressed("rows that are shortened on the way")
    if scale_grad_by_freq:
        raise Unexpressed("a gradient that is divided by counts")
    if input.ndim == 2:
        offsets = torch.arange(0, input.numel(), max(input.shape[1], 1))
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif include_last_offset:
        assert offsets is not None
        offsets = offsets[:-1]
    program = {"mean": "embedding_bag", "sum": "embedding_bag_sum", "max": "embedding_bag_max"}[mode]
    options = {} if padding_idx is None else {"padding_idx": padding_idx % len(weight)}
    tensors = given(input=input, weight=weight, offsets=offsets, per_sample_weights=per_sample_weights)
    return Case(program, tensors, options)


@adapts("nn.functional.one_hot")
def one_hot(input: Tensor, num_classes: int = -1) -> Case:
    return Case("one_hot", {"input": input}, {"num_classes": num_classes if num_classes >= 0 else int(input.max()) + 1})


@adapts("nn.functional.scaled_dot_product_attention")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Case:
    if dropout_p:
        raise Unexpressed("PyTorch's own random numbers")
    heads = query.shape[-3] // key.shape[-3] if enable_gqa else 1
    key, value = (x.repeat_interleave(heads, -3) if heads > 1 else x for x in (key, value))
    leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (x.expand(*leading, *x.shape[-2:]) for x in (query, key, value))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros(attn_mask.shape, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
    whole = None if attn_mask is None else attn_mask.expand(*leading, query.shape[-2], key.shape[-2])
    tensors = given(query=query, key=key, value=value, attn_mask=whole)
    return Case("scaled_dot_product_attention", tensors, {"is_causal": int(is_causal), "scale": scale or 0.0})


@adapts("nn.functional.multi_head_attention_forward")
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    **rest: Any,
) -> Case:
    if dropout_p and training:
        raise Unexpressed("PyTorch's own random numbers")
    if bias_k is not None or add_zero_attn:
        raise Unexpressed("further keys and values")
    if use_separate_proj_weight or in_proj_weight is None:
        raise Unexpressed("weights of their own for queries, keys and values")
    if attn_mask is not None or rest.get("is_causal"):
        raise Unexpressed("a mask")

    def first(x: Tensor) -> Tensor:
        return x[None] if x.ndim == 2 else x.transpose(0, 1)

    return Case(
        "multi_head_attention",
        given(
            query=first(query),
            key=first(key),
            value=first(value),
            in_proj_weight=in_proj_weight,
            in_proj_bias=in_proj_bias,
            out_proj_weight=out_proj_weight,
            out_proj_bias=out_proj_bias,
        ),
        {"num_heads": num_heads},
        arrange=lambda out: first(out[0]),
    )
