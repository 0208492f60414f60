"""Pooling over windows, to a given size, and back."""

from __future__ import annotations

from ..table import Op

LAST = "the gradient is that of the last value in each place; PyTorch's goes to every value that met there"

ROWS = (
    Op(
        "max_pool1d",
        "F.max_pool1d(input, kernel_size, stride, padding, dilation, bool(ceil_mode))",
        (
            "input:2,3,9t kernel_size=3 stride=2 padding=1",
            "input:3,8u kernel_size=3 stride=3 padding=1 ceil_mode=1",
            "input:2,2,7u kernel_size=2",
            "input:1,1,10t kernel_size=3 stride=1 dilation=2 padding=1",
            "input:2,1,1u kernel_size=1",
            "input:0,2,5 kernel_size=2",
        ),
        speed="input:32,64,512 kernel_size=3 stride=2 padding=1",
    ),
    Op(
        "max_pool2d",
        "F.max_pool2d(input, (kernel_size, kernel_width), stride, padding, dilation, bool(ceil_mode))",
        (
            "input:2,2,5,6t kernel_size=3 stride=1 padding=1",
            "input:2,6,5u kernel_size=2 stride=2 ceil_mode=1 kernel_width=3",
            "input:2,2,4,6u kernel_size=2",
            "input:1,2,7,6t kernel_size=3 stride=2 padding=1",
            "input:1,1,7,8u kernel_size=2 stride=2 dilation=3 padding=1",
            "input:1,1,5,5t kernel_size=3 stride=4 padding=1 ceil_mode=1",
            "input:2,1,1,1u kernel_size=1",
            "input:0,2,4,4 kernel_size=2",
        ),
        thnn=("SpatialDilatedMaxPooling",),
        speed="input:32,32,56,56 kernel_size=3 stride=2 padding=1",
    ),
    Op(
        "max_pool3d",
        "F.max_pool3d(input, kernel_size, stride, padding, dilation, bool(ceil_mode))",
        (
            "input:1,2,4,3,5t kernel_size=2 stride=1",
            "input:2,4,5,3u kernel_size=2 padding=1 ceil_mode=1",
            "input:1,1,4,4,2u kernel_size=2",
            "input:1,1,5,3,4t kernel_size=2 stride=1 dilation=2",
            "input:1,1,3,3,3u kernel_size=3",
            "input:0,1,2,2,2 kernel_size=2",
        ),
        thnn=("VolumetricDilatedMaxPooling",),
        speed="input:8,16,16,28,28 kernel_size=2",
    ),
    Op(
        "max_pool2d_with_indices",
        "F.max_pool2d(input, (kernel_size, kernel_width), stride, padding, dilation, bool(ceil_mode), True)",
        (
            "input:2,2,5,6t kernel_size=3 stride=1 padding=1",
            "input:2,6,5u kernel_size=2 stride=2 ceil_mode=1 kernel_width=3",
            "input:1,1,7,8u kernel_size=2 stride=2 dilation=3 padding=1",
            "input:1,2,4,4u kernel_size=2",
            "input:1,3,1,1u kernel_size=1",
            "input:0,2,4,4 kernel_size=2",
        ),
        speed="input:32,32,56,56 kernel_size=2",
    ),
    Op(
        "avg_pool1d",
        "F.avg_pool1d(input, kernel_size, stride, padding, bool(ceil_mode), bool(count_include_pad))",
        (
            "input:2,2,8 kernel_size=3 stride=2 padding=1",
            "input:3,8 kernel_size=3 stride=2 padding=1 ceil_mode=1 count_include_pad=0",
            "input:2,2,8 kernel_size=3 stride=3 padding=1 ceil_mode=1",
            "input:2,6 kernel_size=2",
            "input:1,1,5 kernel_size=3 stride=1",
            "input:2,1,1 kernel_size=1",
            "input:0,2,5 kernel_size=2",
        ),
        speed="input:32,64,512 kernel_size=4",
    ),
    Op(
        "avg_pool2d",
        "F.avg_pool2d(input, (kernel_size, kernel_width), stride, padding, bool(ceil_mode), bool(count_include_pad), "
        "divisor_override or None)",
        (
            "input:2,2,5,6 kernel_size=3 stride=2 padding=1 ceil_mode=1",
            "input:2,5,6 kernel_size=2 stride=2 padding=1 ceil_mode=1 count_include_pad=0 kernel_width=3",
            "input:1,2,4,6 kernel_size=2",
            "input:1,1,5,6 kernel_size=3 stride=1 padding=1 count_include_pad=0",
            "input:1,1,5,6 kernel_size=3 stride=2 padding=1 divisor_override=2",
            "input:1,1,6,4 kernel_size=3 stride=3 ceil_mode=1",
            "input:2,1,1,1 kernel_size=1",
            "input:0,2,4,4 kernel_size=2",
        ),
        thnn=("SpatialAveragePooling",),
        speed="input:32,32,56,56 kernel_size=2",
    ),
    Op(
        "avg_pool3d",
        "F.avg_pool3d(input, kernel_size, stride, padding, bool(ceil_mode), bool(count_include_pad), "
        "divisor_override or None)",
        (
            "input:1,2,4,3,5 kernel_size=2 padding=1 ceil_mode=1",
            "input:2,3,4,5 kernel_size=3 stride=2 padding=1 ceil_mode=1 count_include_pad=0",
            "input:1,1,4,4,2 kernel_size=2",
            "input:1,1,3,3,4 kernel_size=2 stride=1 divisor_override=3",
            "input:1,1,3,3,3 kernel_size=3",
            "input:0,1,2,2,2 kernel_size=2",
        ),
        thnn=("VolumetricAveragePooling",),
        speed="input:8,16,16,28,28 kernel_size=2",
    ),
    Op(
        "lp_pool1d",
        "F.lp_pool1d(input, norm_type, kernel_size, stride, bool(ceil_mode))",
        (
            "input:2,2,7a norm_type=2.0 kernel_size=3 stride=2",
            "input:2,8+ norm_type=3.0 kernel_size=3 ceil_mode=1",
            "input:2,1,6+ norm_type=1.0 kernel_size=2",
            "input:1,1,5+ norm_type=2.5 kernel_size=2 stride=1",
            "input:1,2,1+ norm_type=2.0 kernel_size=1",
        ),
        speed="input:32,64,512+ norm_type=2.0 kernel_size=4",
    ),
    Op(
        "lp_pool2d",
        "F.lp_pool2d(input, norm_type, (kernel_size, kernel_width), stride, bool(ceil_mode))",
        (
            "input:2,2,4,6a norm_type=2.0 kernel_size=2",
            "input:2,5,6+ norm_type=3.0 kernel_size=2 kernel_width=3 ceil_mode=1",
            "input:1,1,5,5+ norm_type=2.5 kernel_size=3 stride=1",
            "input:1,1,4,5+ norm_type=1.0 kernel_size=2 stride=3",
            "input:1,2,1,1+ norm_type=2.0 kernel_size=1",
        ),
        speed="input:16,32,56,56+ norm_type=2.0 kernel_size=2",
    ),
    Op(
        "lp_pool3d",
        "F.lp_pool3d(input, norm_type, kernel_size, stride, bool(ceil_mode))",
        (
            "input:1,2,4,4,2a norm_type=2.0 kernel_size=2",
            "input:1,3,4,5+ norm_type=3.0 kernel_size=2 ceil_mode=1",
            "input:1,1,3,3,4+ norm_type=2.5 kernel_size=2 stride=1",
            "input:1,1,3,3,3+ norm_type=1.0 kernel_size=3",
            "input:1,2,1,1,1+ norm_type=2.0 kernel_size=1",
        ),
    ),
    Op(
        "feature_lp_pool",
        "R.feature_lp_pool(input, norm_type, kernel_size, stride)",
        (
            "input:2,7,2,3+ norm_type=2.0 kernel_size=3 stride=2",
            "input:1,6,3,1+ norm_type=3.0 kernel_size=2",
            "input:2,5,1,2+ norm_type=1.0 kernel_size=2 stride=1",
            "input:1,4,2,2+ norm_type=2.5 kernel_size=4",
            "input:2,1,2,2+ norm_type=2.0 kernel_size=1",
        ),
        thnn=("FeatureLPPooling",),
        note="PyTorch pools over the last axes only; this is its lp_pool1d with the channels moved there",
        speed="input:16,64,28,28+ norm_type=2.0 kernel_size=2",
    ),
    *(
        Op(
            f"global_avg_pool{axes}d",
            f"input.mean({tuple(range(-axes, 0))})",
            cases,
            speed=speed,
        )
        for axes, cases, speed in (
            (1, ("input:2,3,5", "input:4", "input:1,1", "input:0,3", "input:2,1,2,3"), "input:64,128,512"),
            (2, ("input:2,3,4,3", "input:3,2,5", "input:1,1", "input:0,2,3,3", "input:2,1,1"), "input:32,128,28,28"),
            (3, ("input:2,2,3,2,3", "input:2,2,3,2", "input:1,1,1", "input:0,2,2,2", "input:2,1,3,1"), ""),
        )
    ),
    *(
        Op(
            f"global_max_pool{axes}d",
            f"input.flatten({-axes}).max(-1).values",
            cases,
            speed=speed,
        )
        for axes, cases, speed in (
            (1, ("input:2,3,5t", "input:4u", "input:1,1u", "input:0,3", "input:2,1,2,3t"), "input:64,128,512"),
            (
                2,
                ("input:2,3,4,3t", "input:3,2,5u", "input:1,1u", "input:0,2,3,3", "input:2,1,1u"),
                "input:32,128,28,28",
            ),
            (3, ("input:2,2,3,2,3t", "input:2,2,3,2u", "input:1,1,1u", "input:0,2,2,2", "input:2,1,3,1t"), ""),
        )
    ),
    Op(
        "adaptive_avg_pool1d",
        "F.adaptive_avg_pool1d(input, output_size)",
        (
            "input:2,3,7 output_size=5",
            "input:2,10 output_size=4",
            "input:2,1,6 output_size=3",
            "input:1,1,3 output_size=7",
            "input:2,2,5 output_size=1",
            "input:0,2,5 output_size=2",
        ),
        speed="input:32,64,512 output_size=64",
    ),
    Op(
        "adaptive_avg_pool2d",
        "F.adaptive_avg_pool2d(input, (output_size, output_width))",
        (
            "input:2,2,7,5 output_size=5 output_width=3",
            "input:2,6,4 output_size=3 output_width=2",
            "input:1,1,3,2 output_size=4 output_width=5",
            "input:2,2,4,3 output_size=1",
            "input:2,1,5,5 output_size=2",
            "input:0,2,5,5 output_size=2",
        ),
        thnn=("SpatialAdaptiveAveragePooling",),
        speed="input:32,64,28,28 output_size=7",
    ),
    Op(
        "adaptive_avg_pool3d",
        "F.adaptive_avg_pool3d(input, (output_size, output_height, output_width))",
        (
            "input:1,2,5,4,3 output_size=3 output_height=2 output_width=2",
            "input:2,3,2,5 output_size=2 output_height=3 output_width=4",
            "input:1,1,4,4,4 output_size=2",
            "input:1,2,3,2,3 output_size=1",
            "input:0,1,3,3,3 output_size=2",
        ),
        thnn=("VolumetricAdaptiveAveragePooling",),
        speed="input:8,16,16,28,28 output_size=4 output_height=7 output_width=7",
    ),
    Op(
        "adaptive_max_pool1d",
        "F.adaptive_max_pool1d(input, output_size)",
        (
            "input:2,3,7t output_size=5",
            "input:2,10u output_size=4",
            "input:2,1,6u output_size=3",
            "input:1,1,3u output_size=7",
            "input:2,2,5t output_size=1",
            "input:0,2,5 output_size=2",
        ),
        speed="input:32,64,512 output_size=64",
    ),
    Op(
        "adaptive_max_pool2d",
        "F.adaptive_max_pool2d(input, (output_size, output_width))",
        (
            "input:2,2,7,5t output_size=5 output_width=3",
            "input:2,6,4u output_size=3 output_width=2",
            "input:1,1,3,2u output_size=4 output_width=5",
            "input:2,2,4,3t output_size=1",
            "input:2,1,5,5t output_size=2",
            "input:0,2,5,5 output_size=2",
        ),
        thnn=("SpatialAdaptiveMaxPooling",),
        speed="input:32,64,28,28 output_size=7",
    ),
    Op(
        "adaptive_max_pool3d",
        "F.adaptive_max_pool3d(input, (output_size, output_height, output_width))",
        (
            "input:1,2,5,4,3t output_size=3 output_height=2 output_width=2",
            "input:2,3,2,5u output_size=2 output_height=3 output_width=4",
            "input:1,1,4,4,4t output_size=2",
            "input:1,2,3,2,3u output_size=1",
            "input:0,1,3,3,3 output_size=2",
        ),
        thnn=("VolumetricAdaptiveMaxPooling",),
        speed="input:8,16,16,28,28 output_size=4 output_height=7 output_width=7",
    ),
    Op(
        "fractional_starts",
        "R.fractional_starts(samples, input_size, output_size, kernel_size)",
        (
            "samples:2,3p input_size=9 output_size=5 kernel_size=2",
            "samples:4p input_size=7 output_size=3 kernel_size=3",
            "samples:1p input_size=5 output_size=1 kernel_size=2",
            "samples:2,2p input_size=4 output_size=3 kernel_size=2",
            "samples:3p input_size=3 output_size=1 kernel_size=3",
        ),
        smooth=False,  # whole numbers
    ),
    Op(
        "fractional_max_pool2d",
        "F.fractional_max_pool2d(input, kernel_size, (output_size, output_width), _random_samples=_random_samples)",
        (
            "input:2,2,7,6u _random_samples:2,2,2p kernel_size=2 output_size=4 output_width=3",
            "input:1,2,6,8t _random_samples:1,2,2p kernel_size=3 output_size=3 output_width=4",
            "input:2,1,5,5u _random_samples:2,1,2p kernel_size=2 output_size=3",
            "input:1,1,4,4u _random_samples:1,1,2p kernel_size=2 output_size=1",
            "input:1,2,3,3t _random_samples:1,2,2p kernel_size=1 output_size=2",
        ),
        smooth=False,  # PyTorch has no second derivative of it
        fixed=("_random_samples",),
        thnn=("SpatialFractionalMaxPooling",),
        speed="input:16,32,28,28 _random_samples:16,32,2p kernel_size=2 output_size=14",
    ),
    Op(
        "fractional_max_pool3d",
        "F.fractional_max_pool3d(input, kernel_size, (output_size, output_height, output_width), "
        "_random_samples=_random_samples)",
        (
            "input:1,2,5,4,6u _random_samples:1,2,3p kernel_size=2 output_size=3 output_height=2 output_width=4",
            "input:2,1,4,4,4t _random_samples:2,1,3p kernel_size=2 output_size=2",
            "input:1,1,3,4,5u _random_samples:1,1,3p kernel_size=2 output_size=1",
            "input:1,2,3,3,3t _random_samples:1,2,3p kernel_size=1 output_size=2",
            "input:1,1,5,6,4u _random_samples:1,1,3p kernel_size=3 output_size=2 output_height=3 output_width=1",
        ),
        smooth=False,  # PyTorch has no second derivative of it
        fixed=("_random_samples",),
        thnn=("VolumetricFractionalMaxPooling",),
        speed="input:4,16,16,16,16 _random_samples:4,16,3p kernel_size=2 output_size=8",
    ),
    Op(
        "max_unpool1d",
        "R.max_unpool(input, indices, "
        "F.max_unpool1d(input, indices, kernel_size, stride, padding, (output_size,) if output_size else None), 1)",
        (
            "input:2,3 indices=[[0,3,4],[1,2,5]] kernel_size=2",
            "input:1,2,3 indices=[[[1,2,6],[0,3,4]]] kernel_size=2 output_size=7",
            "input:1,4 indices=[[0,2,3,5]] kernel_size=3 stride=1",
            "input:1,1,3 indices=[[[1,0,4]]] kernel_size=3 stride=2 padding=1",
            "input:1,1 indices=[[0]] kernel_size=1",
            "input:1,2,5 indices=[[[1,1,4,4,4],[0,2,1,2,0]]] kernel_size=3 stride=1",
            "input:2,9 indices:2,9i10 kernel_size=2 stride=1",
        ),
        note=LAST,
        speed="input:32,64,256 indices:32,64,256i512 kernel_size=2",
    ),
    Op(
        "max_unpool2d",
        "R.max_unpool(input, indices, F.max_unpool2d(input, indices, kernel_size, stride, padding, "
        "(output_size, output_width) if output_size else None), 2)",
        (
            "input:1,2,2,2 indices=[[[[0,3],[9,14]],[[5,2],[12,11]]]] kernel_size=2",
            "input:1,2,3 indices:1,2,3w28 kernel_size=2 output_size=4 output_width=7",
            "input:1,1,3,2 indices:1,1,3,2w15 kernel_size=3 stride=2 padding=1",
            "input:1,1,2,2 indices=[[[[0,1],[2,3]]]] kernel_size=2 output_size=5",
            "input:1,1,1,1 indices=[[[[0]]]] kernel_size=1",
            "input:2,2,3,4 indices:2,2,3,4i20 kernel_size=2 stride=1",
            "input:1,3,3 indices=[[[6,6,7],[6,6,7],[11,11,7]]] kernel_size=3 stride=1",
        ),
        thnn=("SpatialMaxUnpooling",),
        note=LAST,
        speed="input:32,32,28,28 indices:32,32,28,28i3136 kernel_size=2",
    ),
    Op(
        "max_unpool3d",
        "R.max_unpool(input, indices, F.max_unpool3d(input, indices, kernel_size, stride, padding, "
        "(output_size, output_height, output_width) if output_size else None), 3)",
        (
            "input:1,1,2,1,2 indices:1,1,2,1,2w32 kernel_size=2",
            "input:1,2,1,2 indices:1,2,1,2w60 kernel_size=2 output_size=5 output_height=3 output_width=4",
            "input:1,1,1,2,3 indices:1,1,1,2,3w45 kernel_size=3 stride=2",
            "input:1,1,2,2,2 indices:1,1,2,2,2w27 kernel_size=2 stride=1",
            "input:1,1,1,1,1 indices=[[[[[0]]]]] kernel_size=1",
            "input:1,2,2,3,3 indices:1,2,2,3,3i48 kernel_size=2 stride=1",
        ),
        thnn=("VolumetricMaxUnpooling",),
        note=LAST,
        speed="input:8,16,8,14,14 indices:8,16,8,14,14i12544 kernel_size=2",
    ),
)
