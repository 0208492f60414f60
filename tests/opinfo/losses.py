"""Losses, in the three reductions."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

from .case import Case, Tensor, Unexpressed, adapts, given

REDUCED = {"mean": "", "sum": "_sum", "none": "_none"}


def named(loss: str, reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    if reduction not in REDUCED:
        raise Unexpressed(f"the reduction {reduction}")
    return loss + REDUCED[reduction]


def pair(loss: str, option: str = "", default: float = 1.0) -> Any:
    """Losses of two tensors of one shape, with at most one number."""

    def adapter(
        input: Tensor,
        target: Tensor,
        *ordered: Any,
        reduction: str = "mean",
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        **options: float,
    ) -> Case:
        if weight is not None:
            raise Unexpressed("weights of the elements")
        if ordered:
            raise Unexpressed("numbers without names")
        x, y = torch.broadcast_tensors(input, target)
        chosen = {option: options.pop(option, default)} if option else {}
        assert not options, options
        return Case(named(loss, reduction, size_average, reduce), {"input": x, "target": y}, chosen)

    return adapter


adapts("nn.functional.l1_loss")(pair("l1_loss"))
adapts("nn.functional.mse_loss")(pair("mse_loss"))
adapts("nn.functional.smooth_l1_loss")(pair("smooth_l1_loss", "beta"))
adapts("nn.functional.huber_loss")(pair("huber_loss", "delta"))
adapts("nn.functional.hinge_embedding_loss")(pair("hinge_embedding_loss", "margin"))


@adapts("nn.functional.soft_margin_loss")
def soft_margin(input: Tensor, target: Tensor, reduction: str = "mean") -> Case:
    """PyTorch has no gradient for the target, and refuses to be asked for it."""
    x, y = torch.broadcast_tensors(input, target.detach())
    return Case(
        named("soft_margin_loss", reduction),
        {"input": x, "target": y},
        oracle=lambda: F.soft_margin_loss(input, target.detach(), reduction=reduction),
    )


@adapts("nn.functional.margin_ranking_loss")
def margin_ranking(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean") -> Case:
    a, b, y = torch.broadcast_tensors(input1, input2, target)
    return Case(named("margin_ranking_loss", reduction), {"input1": a, "input2": b, "target": y}, {"margin": margin})


@adapts("nn.functional.multi_margin_loss")
def multi_margin(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Case:
    constant = None if weight is None else weight.detach()
    return Case(
        named("multi_margin_loss", reduction),
        given(input=input, target=target, weight=constant),
        {"p": p, "margin": margin},
        oracle=lambda: F.multi_margin_loss(input, target, p, margin, constant, reduction=reduction),
    )


@adapts("nn.functional.multilabel_margin_loss")
def multilabel_margin(input: Tensor, target: Tensor, reduction: str = "mean") -> Case:
    return Case(named("multilabel_margin_loss", reduction), {"input": input, "target": target})


@adapts("nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Case:
    if weight is not None and weight.ndim != 1:
        raise Unexpressed("weights of the elements")
    return Case(named("multilabel_soft_margin_loss", reduction), given(input=input, target=target, weight=weight))


def classes(loss: str) -> Any:
    def adapter(
        input: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> Case:
        axis = 1 if input.ndim > 1 else 0
        moved = input.movedim(axis, -1)
        options = {"label_smoothing": label_smoothing} if loss == "cross_entropy" else {}
        if target.is_floating_point():
            tensors = given(input=moved, target=target.movedim(axis, -1), weight=weight)
            return Case(named("cross_entropy_probabilities", reduction), tensors, options)
        tensors = given(input=moved, target=target, weight=None if weight is None else weight.detach())
        options |= {"ignore_index": ignore_index}

        def oracle() -> Tensor:
            """PyTorch has no gradient for the weights, and refuses to be asked for it."""
            call = getattr(F, loss)
            chosen = {"ignore_index": ignore_index, "reduction": reduction, **options}
            return call(input, target, tensors.get("weight"), **chosen)

        fixed = () if weight is None else (weight,)
        return Case(named(loss, reduction), tensors, options, oracle=oracle, fixed=fixed)

    return adapter


adapts("nn.functional.nll_loss")(classes("nll_loss"))
adapts("nn.functional.cross_entropy")(classes("cross_entropy"))


@adapts("nn.functional.binary_cross_entropy")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Case:
    constant = None if weight is None else weight.detach()
    tensors = given(input=input, target=target, weight=None if constant is None else constant.expand(input.shape))
    return Case(
        named("binary_cross_entropy", reduction),
        tensors,
        oracle=lambda: F.binary_cross_entropy(input, target, constant, reduction=reduction),
    )


@adapts("nn.functional.binary_cross_entropy_with_logits")
def with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Case:
    if pos_weight is not None and pos_weight.ndim > 1:
        raise Unexpressed("weights of the elements")

    def rows(x: Tensor) -> Tensor:
        return x.reshape(1) if x.ndim == 0 else x

    constant, factor = (None if x is None else x.detach() for x in (weight, pos_weight))
    tensors = given(
        input=rows(input),
        target=rows(target),
        weight=None if constant is None else rows(constant.expand(input.shape)),
        pos_weight=None if factor is None else factor.expand(rows(input).shape[-1]),
    )
    return Case(
        named("binary_cross_entropy_with_logits", reduction),
        tensors,
        arrange=rows if reduction == "none" else lambda out: out,
        oracle=lambda: F.binary_cross_entropy_with_logits(
            input, target, constant, reduction=reduction, pos_weight=factor
        ),
    )


@adapts("nn.functional.kl_div")
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Case:
    x, y = torch.broadcast_tensors(input, target)
    if reduction == "batchmean":
        if x.shape != input.shape:
            raise Unexpressed("a mean over fewer rows than there are")
        return Case("kl_div_batchmean", {"input": x, "target": y}, {"log_target": int(log_target)})
    return Case(named("kl_div", reduction), {"input": x, "target": y}, {"log_target": int(log_target)})


@adapts("nn.functional.poisson_nll_loss")
def poisson_nll(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Case:
    options = {"log_input": int(log_input), "full": int(full), "eps": eps}
    return Case(named("poisson_nll_loss", reduction), {"input": input, "target": target}, options)


@adapts("nn.functional.gaussian_nll_loss")
def gaussian_nll(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Case:
    if not isinstance(var, Tensor):
        var = torch.full(input.shape, var, dtype=input.dtype)
    if var.ndim == input.ndim - 1:
        var = var[..., None]
    x, y, v = torch.broadcast_tensors(input, target, var)
    if x.shape != input.shape and reduction == "mean":
        raise Unexpressed("a mean over fewer elements than there are")
    options = {"full": int(full), "eps": eps}
    return Case(named("gaussian_nll_loss", reduction), {"input": x, "target": y, "var": v}, options)


@adapts("nn.functional.cosine_embedding_loss")
def cosine_embedding(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"
) -> Case:
    tensors = {"input1": input1, "input2": input2, "target": target}
    return Case(named("cosine_embedding_loss", reduction), tensors, {"margin": margin})


@adapts("nn.functional.triplet_margin_loss", "nn.functional.triplet_margin_with_distance_loss")
def triplet_margin(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    distance_function: Any = None,
) -> Case:
    if distance_function is not None:
        raise Unexpressed("a distance of one's own")
    tensors = {"anchor": anchor, "positive": positive, "negative": negative}
    options = {"margin": margin, "p": float(p), "eps": eps, "swap": int(swap)}
    return Case(named("triplet_margin_loss", reduction), tensors, options)


@adapts("nn.functional.ctc_loss")
def ctc(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Case:
    if targets.ndim != 2 or log_probs.ndim != 3:
        raise Unexpressed("targets in one row")
    normal = log_probs.log_softmax(-1)  # PyTorch's gradient is right for logarithms of probabilities only
    tensors = {
        "log_probs": normal,
        "targets": targets,
        "input_lengths": torch.as_tensor(input_lengths),
        "target_lengths": torch.as_tensor(target_lengths),
    }
    return Case(
        named("ctc_loss", reduction),
        tensors,
        {"blank": blank, "zero_infinity": int(zero_infinity)},
        oracle=lambda: F.ctc_loss(normal, targets, input_lengths, target_lengths, blank, reduction, zero_infinity),
        second="the direction does not go through log_softmax",
    )
