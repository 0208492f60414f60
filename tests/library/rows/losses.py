"""Losses. `three` makes the rows of a loss with its reductions: the name itself (mean), `_sum` and `_none`."""

from __future__ import annotations

from dataclasses import replace

from ..table import Op


def three(row: Op) -> tuple[Op, ...]:
    """The oracle says REDUCTION where PyTorch takes it."""
    kinds = {"": "'mean'", "_sum": "'sum'", "_none": "'none'"}
    return tuple(
        replace(
            row,
            name=row.name + suffix,
            oracle=row.oracle.replace("REDUCTION", word),
            thnn=row.thnn if not suffix else (),
            speed=row.speed if not suffix else "",
        )
        for suffix, word in kinds.items()
    )


PAIRS = (
    "input:3,4 target:3,4",
    "input:2,3,2 target:2,3,2",
    "input:5 target:5",
    "input: target:",
    "input:1,1 target:1,1",
    "input:0,3 target:0,3",
)
MILLIONS = "input:4096,2048 target:4096,2048"

NUMBERS = (
    *three(
        Op(
            "l1_loss",
            "F.l1_loss(R.solid(input), R.solid(target), reduction=REDUCTION)",
            (*PAIRS, "input:3,4t target:3,4t"),  # where both are the same the slope is 0
            thnn=("AbsCriterion",),
            speed=MILLIONS,
        )
    ),
    *three(
        Op("mse_loss", "F.mse_loss(input, target, reduction=REDUCTION)", PAIRS, thnn=("MSECriterion",), speed=MILLIONS)
    ),
    *three(
        Op(
            "smooth_l1_loss",
            "F.smooth_l1_loss(R.solid(input), R.solid(target), reduction=REDUCTION, beta=beta)",
            (
                "input:3,4n2 target:3,4",
                "input:3,4 target:3,4 beta=0.5",
                *PAIRS[2:],
                "input:7n3 target:7 beta=2.5",
                "input:3,4 target:3,4 beta=0.0",
                "input=[0.5,1.5,-2.0,3.0] target=[0.5,0.5,-1.0,0.0]",  # just on the joint
            ),
            thnn=("SmoothL1Criterion",),
            speed=MILLIONS,
        )
    ),
    *three(
        Op(
            "huber_loss",
            "F.huber_loss(input, target, reduction=REDUCTION, delta=delta)",
            (
                "input:3,4n2 target:3,4",
                "input:3,4 target:3,4 delta=0.5",
                *PAIRS[2:],
                "input:7n3 target:7 delta=2.5",
                "input=[0.5,1.5,-2.0,3.0] target=[0.5,0.5,-1.0,0.0]",
            ),
            speed=MILLIONS,
        )
    ),
    *three(
        Op(
            "log_cosh_loss",
            "R.log_cosh_loss(input, target, REDUCTION)",
            (*PAIRS, "input:6n40 target:6", "input=[0.5,0.25] target=[0.5,0.25]"),
            note="PyTorch has no such function",
            speed=MILLIONS,
        )
    ),
    *three(
        Op(
            "quantile_loss",
            "R.quantile_loss(input, target, quantile, REDUCTION)",
            (
                "input:3,4 target:3,4 quantile=0.9",
                *PAIRS,
                "input:5 target:5 quantile=0.0",
                "input:5 target:5 quantile=1.0",
            ),
            note="PyTorch has no such function",
            speed=MILLIONS,
        )
    ),
)

PROBABILITIES = (
    *three(
        Op(
            "binary_cross_entropy",
            "F.binary_cross_entropy(input, target, weight, reduction=REDUCTION)",
            (
                "input:3,4p target:3,4p weight:3,4",
                "input:3,4p target:3,4b",
                "input:2,3,2p target:2,3,2p",
                "input:p target:p",
                "input:1,1p target:1,1b weight:1,1+",
                "input:0,3p target:0,3p",
                "input:5p target:5p weight=[0.0,1.0,2.0,0.5,0.0]",
            ),
            fixed=("weight",),
            thnn=("BCECriterion",),
            note="between 0 and 1: at the ends the slope is that of the clamped logarithm, PyTorch's is (x - t) * 1e12",
            speed="input:1024,1024p target:1024,1024b",
        )
    ),
    *three(
        Op(
            "binary_cross_entropy_with_logits",
            "F.binary_cross_entropy_with_logits(input, target, weight, reduction=REDUCTION, pos_weight=pos_weight)",
            (
                "input:3,4 target:3,4p weight:3,4 pos_weight:4+",
                "input:3,4n3 target:3,4b",
                "input:2,3,2 target:2,3,2p pos_weight:2+",
                "input:4 target:4p weight:4+",
                "input:1,1 target:1,1b weight:1,1+ pos_weight:1+",
                "input:0,3 target:0,3p",
                "input:3,3n200 target:3,3b",
            ),
            fixed=("weight", "pos_weight"),
            speed="input:1024,1024 target:1024,1024b",
        )
    ),
    *three(
        Op(
            "kl_div",
            "F.kl_div(input, target, reduction=REDUCTION, log_target=bool(log_target))",
            (
                "input:3,4 target:3,4d",
                "input:3,4 target:3,4 log_target=1",
                "input:2,2,3 target:2,2,3d",
                "input:4 target:4d",
                "input: target:p",
                "input:1,1 target:1,1p",
                "input:0,3 target:0,3p",
            ),
            speed="input:1024,1024 target:1024,1024d",
        )
    ),
    Op(
        "kl_div_batchmean",
        "F.kl_div(input, target, reduction='batchmean', log_target=bool(log_target))",
        (
            "input:3,4 target:3,4d",
            "input:3,4 target:3,4 log_target=1",
            "input:2,2,3 target:2,2,3d",
            "input:4 target:4d",
            "input:1,1 target:1,1p",
        ),
    ),
    *three(
        Op(
            "poisson_nll_loss",
            "F.poisson_nll_loss(input, target, bool(log_input), bool(full), eps=eps, reduction=REDUCTION)",
            (
                "input:3,4 target:3,4+ full=1",
                "input:3,4+ target:3,4+ log_input=0",
                "input:2,3,2 target:2,3,2+",
                "input: target:+",
                "input:1,1+ target:1,1+ log_input=0 full=1 eps=0.1",
                "input:0,3 target:0,3+",
                "input:6 target=[0.5,1.0,2.0,3.0,7.0,1.0] full=1",
            ),
            speed="input:1024,1024 target:1024,1024+",
        )
    ),
    *three(
        Op(
            "gaussian_nll_loss",
            "F.gaussian_nll_loss(input, target, var, full=bool(full), eps=eps, reduction=REDUCTION)",
            (
                "input:3,4 target:3,4 var:3,4+",
                "input:3,4 target:3,4 var:3,4+ full=1 eps=0.5",
                "input:2,3,2 target:2,3,2 var:2,3,2+",
                "input:1 target:1 var:1+",
                "input:0,3 target:0,3 var:0,3+",
                "input:4 target:4 var=[0.0,0.1,0.25,2.0] eps=0.2",
            ),
            speed="input:1024,1024 target:1024,1024 var:1024,1024+",
        )
    ),
)

CLASSES = (
    *three(
        Op(
            "nll_loss",
            "F.nll_loss(input.flatten(0, -2), target.flatten(), weight, ignore_index=ignore_index, reduction=REDUCTION)"
            ".reshape(target.shape if REDUCTION == 'none' else ())",
            (
                "input:5,3 target=[2,0,-100,1,2] weight:3+",
                "input:4,6 target:4i6",
                "input:2,3,4 target:2,3i4 weight:4 ignore_index=1",
                "input:1,1 target:1i1",
                "input:3,4 target:3i4 ignore_index=2 weight:4+",
                "input:0,3 target:0i3",
                "input:2,3 target=[-100,-100]",
            ),
            fixed=("weight",),
            thnn=("ClassNLLCriterion",),
            note="any leading axes: PyTorch has the classes on axis 1",
            speed="input:4096,1000 target:4096i1000",
        )
    ),
    *three(
        Op(
            "nll_loss2d",
            "F.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=REDUCTION)",
            (
                "input:2,3,2,3 target:2,2,3i3 weight:3+ ignore_index=1",
                "input:1,4,3,2 target:1,3,2i4",
                "input:2,2,1,2 target=[[[1,-100]],[[0,1]]]",
                "input:1,1,1,1 target:1,1,1i1 weight:1+",
                "input:0,3,2,2 target:0,2,2i3",
                "input:3,5,1,1 target:3,1,1i5 weight:5",
            ),
            fixed=("weight",),
            thnn=("SpatialClassNLLCriterion",),
            speed="input:4,21,128,128 target:4,128,128i21",
        )
    ),
    *three(
        Op(
            "cross_entropy",
            "F.cross_entropy(input.flatten(0, -2), target.flatten(), weight, label_smoothing=label_smoothing,"
            " ignore_index=ignore_index, reduction=REDUCTION).reshape(target.shape if REDUCTION == 'none' else ())",
            (
                "input:5,3 target=[2,0,-100,1,2] weight:3+ label_smoothing=0.1",
                "input:4,6 target:4i6",
                "input:4,6 target:4i6 label_smoothing=0.25",
                "input:2,3,4 target:2,3i4 weight:4+ ignore_index=1",
                "input:1,1 target:1i1",
                "input:0,3 target:0i3",
                "input:2,3 target=[-100,-100]",
                "input:3,4n100 target:3i4 label_smoothing=1.0",
            ),
            fixed=("weight",),
            note="any leading axes: PyTorch has the classes on axis 1",
            speed="input:1024,4096 target:1024i4096",
        )
    ),
    *three(
        Op(
            "cross_entropy2d",
            "F.cross_entropy(input, target, weight, ignore_index=ignore_index, reduction=REDUCTION)",
            (
                "input:2,3,2,3 target:2,2,3i3 weight:3+ ignore_index=1",
                "input:1,4,3,2 target:1,3,2i4",
                "input:2,2,1,2 target=[[[1,-100]],[[0,1]]]",
                "input:1,1,1,1 target:1,1,1i1 weight:1+",
                "input:0,3,2,2 target:0,2,2i3",
                "input:3,5,1,1n50 target:3,1,1i5",
            ),
            fixed=("weight",),
            speed="input:4,21,128,128 target:4,128,128i21",
        )
    ),
    *three(
        Op(
            "cross_entropy_probabilities",
            "F.cross_entropy(input.flatten(0, -2), target.flatten(0, -2), weight, reduction=REDUCTION,"
            " label_smoothing=label_smoothing).reshape(target.shape[:-1] if REDUCTION == 'none' else ())",
            (
                "input:3,4 target:3,4d weight:4+ label_smoothing=0.1",
                "input:2,5 target:2,5d",
                "input:2,3,4 target:2,3,4d",
                "input:1,1 target:1,1d",
                "input:0,3 target:0,3d",
                "input:3,4n100 target:3,4d label_smoothing=1.0",
            ),
            note="any leading axes: PyTorch has the classes on axis 1",
            speed="input:1024,1024 target:1024,1024d",
        )
    ),
    *three(
        Op(
            "sigmoid_focal_loss",
            "R.sigmoid_focal_loss(input, target, alpha, gamma, REDUCTION)",
            (
                "input:3,4 target:3,4b",
                "input:3,4n3 target:3,4p alpha=0.6 gamma=1.5",
                "input:2,3,2 target:2,3,2b alpha=-1.0",
                "input:5 target:5b gamma=0.0",
                "input: target:b gamma=1.0",
                "input:0,3 target:0,3b",
            ),
            note="PyTorch has no such function (torchvision has)",
            speed="input:1024,1024 target:1024,1024b",
        )
    ),
    *three(
        Op(
            "softmax_focal_loss",
            "R.softmax_focal_loss(input, target, alpha, gamma, REDUCTION)",
            (
                "input:4,3 target:4i3 alpha:3+",
                "input:3,5n3 target:3i5 gamma=1.5",
                "input:2,3,4 target:2,3i4 gamma=3.0",
                "input:3,2 target:3i2 gamma=0.0",
                "input:1,2 target:1i2",
                "input:0,3 target:0i3",
            ),
            fixed=("alpha",),
            note="PyTorch has no such function",
            speed="input:4096,256 target:4096i256",
        )
    ),
    *three(
        Op(
            "dice_loss",
            "R.dice_loss(input, target, smooth, REDUCTION)",
            (
                "input:3,5p target:3,5b",
                "input:2,3,4p target:2,3,4p smooth=0.1",
                "input:1,6p target:1,6b smooth=0.0",
                "input:2,1p target:2,1b",
                "input:4,3b target:4,3b",
                "input:2,3 target:2,3p smooth=5.0",
            ),
            note="PyTorch has no such function",
            speed="input:64,16384p target:64,16384b",
        )
    ),
)

MARGINS = (
    *three(
        Op(
            "hinge_loss",
            "R.hinge_loss(input, target, margin, REDUCTION)",
            (
                "input:3,4 target:3,4s",
                "input:3,4 target:3,4s margin=0.3",
                "input:2,3,2 target:2,3,2s",
                "input: target:s",
                "input:0,3 target:0,3s",
                "input:6n3 target:6 margin=2.0",
            ),
            note="PyTorch has no such function",
            speed="input:2048,1024 target:2048,1024s",
        )
    ),
    *three(
        Op(
            "soft_margin_loss",
            "F.soft_margin_loss(input, target, reduction=REDUCTION)",
            (
                "input:3,4 target:3,4s",
                "input:2,3,2 target:2,3,2s",
                "input: target:s",
                "input:1,1 target:1,1s",
                "input:0,3 target:0,3s",
                "input:5n8 target:5",
            ),
            fixed=("target",),
            thnn=("SoftMarginCriterion",),
            speed="input:1024,1024 target:1024,1024s",
        )
    ),
    *three(
        Op(
            "hinge_embedding_loss",
            "F.hinge_embedding_loss(input, target, margin, reduction=REDUCTION)",
            (
                "input:3,4 target:3,4s",
                "input:3,4+ target:3,4s margin=0.7",
                "input:2,3,2 target:2,3,2s",
                "input: target:s",
                "input:0,3 target:0,3s",
                "input:4 target=[1.0,-1.0,0.0,0.5] margin=2.0",
                "input=[1.0,1.0,0.5] target=[1.0,-1.0,-1.0]",  # just at the margin
            ),
            speed="input:2048,1024 target:2048,1024s",
        )
    ),
    *three(
        Op(
            "margin_ranking_loss",
            "F.margin_ranking_loss(input1, input2, target, margin, reduction=REDUCTION)",
            (
                "input1:3,4 input2:3,4 target:3,4s",
                "input1:6 input2:6 target:6s margin=0.5",
                "input1:2,3,2 input2:2,3,2 target:2,3,2s",
                "input1: input2: target:s margin=2.0",
                "input1:0,3 input2:0,3 target:0,3s",
                "input1=[1.0,2.0] input2=[1.0,2.5] target=[1.0,-1.0]",  # equal inputs
            ),
            speed="input1:1024,1024 input2:1024,1024 target:1024,1024s",
        )
    ),
    *three(
        Op(
            "multi_margin_loss",
            "F.multi_margin_loss(input.flatten(0, -2), target.flatten(), p, margin, weight, reduction=REDUCTION)"
            ".reshape(target.shape if REDUCTION == 'none' else ())",
            (
                "input:4,3 target:4i3 weight:3+ p=2 margin=0.8",
                "input:5,4 target:5i4",
                "input:2,3,4 target:2,3i4 p=2",
                "input:1,1 target:1i1",
                "input:3,2n3 target:3i2 weight:2+",
                "input:3,6 target:3i6 margin=0.0",
            ),
            smooth=False,  # PyTorch has no second derivative of it
            fixed=("weight",),
            thnn=("MultiMarginCriterion",),
            note="any leading axes: PyTorch has one",
            speed="input:1024,1000 target:1024i1000",
        )
    ),
    *three(
        Op(
            "multilabel_margin_loss",
            "F.multilabel_margin_loss(input.flatten(0, -2), F.pad(target, (0, input.shape[-1] - target.shape[-1]),"
            " value=-1).flatten(0, -2), reduction=REDUCTION).reshape(target.shape[:-1] if REDUCTION == 'none' else ())",
            (
                "input:3,4 target=[[3,0,-1,1],[2,-1,-1,-1],[-1,0,1,2]]",
                "input:2,5 target=[[4,1,1,2,0],[0,3,-1,0,-1]]",
                "input:2,2,3 target=[[[0,-1,2],[1,2,-1]],[[2,1,0],[-1,-1,-1]]]",
                "input:1,1 target=[[0]]",
                "input:1,3n3 target=[[2,-1,0]]",
                "input:2,6 target=[[5,1],[3,-1]]",
                "input:3,2 target=[[0,1],[1,-1],[0,0]]",
            ),
            smooth=False,  # PyTorch has no second derivative of it
            thnn=("MultiLabelMarginCriterion",),
            note="any leading axes, and a list of labels that is as long as it needs to be",
            speed="input:512,200 target:512,8i200",
        )
    ),
    *three(
        Op(
            "multilabel_soft_margin_loss",
            "F.multilabel_soft_margin_loss(input, target, weight, reduction=REDUCTION)",
            (
                "input:3,4 target:3,4b weight:4+",
                "input:2,5n3 target:2,5p",
                "input:2,2,3 target:2,2,3b",
                "input:1,1 target:1,1b",
                "input:0,3 target:0,3b",
                "input:4 target:4b weight:4",
            ),
            speed="input:4096,256 target:4096,256b",
        )
    ),
)

VECTORS = (
    Op(
        "cosine_similarity",
        "F.cosine_similarity(x1, x2, dim=-1, eps=eps)",
        (
            "x1:3,4 x2:3,4",
            "x1:2,2,3 x2:2,2,3 eps=0.5",
            "x1:5 x2:5",
            "x1:2,1 x2:2,1",
            "x1:0,3 x2:0,3",
            "x1=[[0.0,0.0],[0.1,0.0]] x2=[[1.0,2.0],[3.0,4.0]] eps=0.25",
        ),
        speed="x1:8192,128 x2:8192,128",
    ),
    Op(
        "pairwise_distance",
        "F.pairwise_distance(R.solid(x1), R.solid(x2), p, eps)",
        (
            "x1:3,4 x2:3,4",
            "x1:3,4 x2:3,4 p=3 eps=0.1",
            "x1:3,4 x2:3,4 p=1",
            "x1:2,2,3 x2:2,2,3",
            "x1:5 x2:5",
            "x1:0,3 x2:0,3",
            "x1=[[0.5,1.0],[2.0,3.0]] x2=[[0.5,1.0],[2.0,3.0]] eps=0.0",  # no distance, no slope
            "x1:3,4 x2:3,4 p=2.5",
            "x1:3,4 x2:3,4 p=inf",
            "x1:2,3 x2:2,3 p=0.5 eps=0.0",
        ),
        speed="x1:8192,128 x2:8192,128",
    ),
    *three(
        Op(
            "cosine_embedding_loss",
            "F.cosine_embedding_loss(input1, input2, target, margin, reduction=REDUCTION)",
            (
                "input1:4,3 input2:4,3 target=[1.0,-1.0,1.0,-1.0]",
                "input1:6,2 input2:6,2 target:6s margin=0.4",
                "input1:3 input2:3 target:s",
                "input1:2,1 input2:2,1 target:2s margin=-0.5",
                "input1:0,3 input2:0,3 target:0s",
                "input1=[[0.0,0.0],[1.0,1.0]] input2=[[1.0,2.0],[1.0,1.0]] target=[1.0,-1.0]",
            ),
            speed="input1:8192,128 input2:8192,128 target:8192s",
        )
    ),
    *three(
        Op(
            "triplet_margin_loss",
            "F.triplet_margin_loss(R.solid(anchor), R.solid(positive), R.solid(negative), margin, p, eps, bool(swap),"
            " reduction=REDUCTION)",
            (
                "anchor:4,3 positive:4,3 negative:4,3",
                "anchor:4,3 positive:4,3 negative:4,3 swap=1 margin=2.0",
                "anchor:3,2 positive:3,2 negative:3,2 p=3 eps=0.01",
                "anchor:3 positive:3 negative:3 p=1",
                "anchor:2,1 positive:2,1 negative:2,1 margin=0.1",
                "anchor:0,3 positive:0,3 negative:0,3",
                "anchor:3,2n4 positive:3,2 negative:3,2 p=1 swap=1",
                "anchor:3,2n4 positive:3,2 negative:3,2 p=inf swap=1",
                "anchor:3,2n4 positive:3,2 negative:3,2 p=2.5",
            ),
            speed="anchor:4096,128 positive:4096,128 negative:4096,128",
        )
    ),
)

SEQUENCES = (
    *three(
        Op(
            "ctc_loss",
            "R.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, REDUCTION)",
            (
                "log_probs:5,2,3 targets=[[1,2],[1,1]] input_lengths=[5,4] target_lengths=[2,2]",
                "log_probs:4,3,3 targets=[[0,1],[1,0],[0,0]] input_lengths=[4,3,2] target_lengths=[2,1,0] blank=2",
                "log_probs:3,2,4 targets=[[1,2,3],[3,3,1]] input_lengths=[3,3] target_lengths=[3,1]",
                "log_probs:2,2,3 targets=[[1,1],[2,1]] input_lengths=[2,2] target_lengths=[2,2] zero_infinity=1",
                "log_probs:1,1,2 targets=[[1]] input_lengths=[1] target_lengths=[1]",
                "log_probs:4,1,2 targets=[[0,0,1]] input_lengths=[4] target_lengths=[2] blank=1",
            ),
            note="PyTorch's gradient holds only behind a log_softmax; its value is compared in the reference",
            speed="log_probs:100,16,32 targets:16,20i1:32 input_lengths:16i90:101 target_lengths:16i10:21",
        )
    ),
)

ROWS = (*NUMBERS, *PROBABILITIES, *CLASSES, *MARGINS, *VECTORS, *SEQUENCES)
