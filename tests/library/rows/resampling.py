"""Padding, interpolation, sampling, and elements in another order."""

from __future__ import annotations

from ..table import Op

EXACT = "PyTorch multiplies by a rounded scale, the loops divide whole numbers: sizes where that differs are left out"
MODES = '("zeros", "border", "reflection")[padding_mode]'

FRAMES = (
    "(left, right)",
    "(left, right, top, bottom)",
    "(left, right, top, bottom, front, back)",
)

LARGE = (
    "input:32,64,512 left=3 right=3",
    "input:32,16,56,56 left=2 right=2 top=2 bottom=2",
    "input:4,8,16,28,28 left=1 right=1 top=1 bottom=1 front=1 back=1",
)

ROWS = (
    *(
        Op(f"constant_pad{axes}d", f"F.pad(input, {FRAMES[axes - 1]}, 'constant', value)", cases, speed=LARGE[axes - 1])
        for axes, cases in (
            (
                1,
                (
                    "input:2,3,4 left=2 right=1 value=1.5",
                    "input:5 left=-1 right=2",
                    "input:2,4 left=-1 right=-2",
                    "input:1,1 left=0 right=3 value=-2.0",
                    "input:0,3 left=1 right=1",
                ),
            ),
            (
                2,
                (
                    "input:2,3,4 left=2 right=1 top=0 bottom=3 value=1.5",
                    "input:2,1,4,3 left=-1 right=2 top=1 bottom=-1",
                    "input:2,2 left=1 right=1 top=1 bottom=1",
                    "input:1,1,1 left=0 right=2 top=3 bottom=0 value=-2.0",
                    "input:0,3,2 left=1 right=1 top=0 bottom=0",
                ),
            ),
            (
                3,
                (
                    "input:2,2,3,2 left=1 right=0 top=2 bottom=1 front=0 back=2 value=1.5",
                    "input:1,3,2,4 left=-1 right=1 top=1 bottom=0 front=-1 back=-1",
                    "input:2,2,2 left=1 right=1 top=1 bottom=1 front=1 back=1",
                    "input:1,1,1,1,1 left=0 right=1 top=0 bottom=1 front=1 back=0 value=-2.0",
                    "input:0,2,2,1 left=1 right=0 top=0 bottom=0 front=0 back=1",
                ),
            ),
        )
    ),
    *(
        Op(
            f"{name}_pad{axes}d",
            f"F.pad(input, {FRAMES[axes - 1]}, '{mode}')",
            tuple(f"{case} {frame}" for case, frame in zip(cases, frames, strict=True)),
            thnn=tuple(f for kind, f in files if kind == axes),
            speed=LARGE[axes - 1],
        )
        for name, mode, files in (
            ("reflection", "reflect", ((1, "TemporalReflectionPadding"), (2, "SpatialReflectionPadding"))),
            (
                "replication",
                "replicate",
                (
                    (1, "TemporalReplicationPadding"),
                    (2, "SpatialReplicationPadding"),
                    (3, "VolumetricReplicationPadding"),
                ),
            ),
            ("circular", "circular", ()),
        )
        for axes, cases, frames in (
            (
                1,
                (
                    "input:2,3,5",
                    "input:1,2,4",
                    "input:2,1,3",
                    "input:1,1,2",
                    "input:2,1,1",
                    "input:1,2,7",
                    "input:2,1,7",
                    "input:1,1,6",
                ),
                (
                    "left=3 right=2",
                    "left=0 right=3",
                    "left=2 right=2",
                    "left=1 right=0",
                    "left=0 right=0",
                    "left=-2 right=3",
                    "left=4 right=-3",
                    "left=-1 right=-3",
                ),
            ),
            (
                2,
                (
                    "input:1,2,4,3",
                    "input:2,1,3,5",
                    "input:1,1,2,4",
                    "input:1,2,3,3",
                    "input:1,1,1,2",
                    "input:1,1,5,4",
                ),
                (
                    "left=2 right=1 top=3 bottom=1",
                    "left=0 right=4 top=2 bottom=0",
                    "left=1 right=3 top=1 bottom=1",
                    "left=2 right=2 top=2 bottom=2",
                    "left=1 right=0 top=0 bottom=0",
                    "left=2 right=-1 top=-2 bottom=1",
                ),
            ),
            (
                3,
                (
                    "input:1,1,3,2,4",
                    "input:1,2,2,3,2",
                    "input:1,1,2,2,2",
                    "input:1,1,1,3,2",
                    "input:1,1,2,1,1",
                    "input:1,1,4,3,4",
                ),
                (
                    "left=3 right=1 top=1 bottom=0 front=2 back=1",
                    "left=1 right=0 top=0 bottom=2 front=1 back=1",
                    "left=1 right=1 top=1 bottom=1 front=1 back=1",
                    "left=0 right=1 top=2 bottom=0 front=0 back=0",
                    "left=0 right=0 top=0 bottom=0 front=1 back=0",
                    "left=-1 right=2 top=1 bottom=-1 front=-1 back=-1",
                ),
            ),
        )
    ),
    Op(
        "nearest_taps",
        "R.nearest_taps(input_size, output_size, exact)",
        (
            "input_size=4 output_size=7",
            "input_size=7 output_size=3",
            "input_size=5 output_size=5",
            "input_size=1 output_size=4",
            "input_size=6 output_size=1",
            "input_size=4 output_size=7 exact=1",
            "input_size=7 output_size=3 exact=1",
        ),
        smooth=False,  # whole numbers
    ),
    Op(
        "axis_taps",
        "R.axis_taps(input_size, output_size, taps, align_corners)",
        (
            "input_size=4 output_size=7 taps=4",
            "input_size=5 output_size=3 taps=2 align_corners=1",
            "input_size=3 output_size=6 taps=2",
            "input_size=3 output_size=1 taps=4 align_corners=1",
            "input_size=1 output_size=4 taps=2",
            "input_size=6 output_size=6 taps=4",
        ),
        smooth=False,  # whole numbers
    ),
    *(
        Op(
            f"{kind}_weights",
            f"R.{kind}_weights(rest, align_corners)",
            ("rest:5p", "rest:3p align_corners=1", "rest:1p", "rest:1p align_corners=1", "rest:4p"),
        )
        for kind in ("linear", "cubic")
    ),
    Op(
        "interpolate_nearest1d",
        "R.interpolate(input, output_size, scale_factor, 'nearest-exact' if exact else 'nearest')",
        (
            "input:2,2,4 output_size=7",
            "input:1,2,7 output_size=3",
            "input:1,1,3 output_size=6",
            "input:2,1,1 output_size=3",
            "input:1,2,5 output_size=1",
            "input:1,2,4 output_size=7 exact=1",
            "input:1,2,4 scale_factor=3",
        ),
        thnn=("TemporalUpSamplingNearest",),
        note=EXACT,
        speed="input:32,64,256 output_size=512",
    ),
    Op(
        "interpolate_nearest2d",
        "R.interpolate(input, output_size, scale_factor, 'nearest-exact' if exact else 'nearest')",
        (
            "input:2,2,3,4 output_size=5 output_width=7",
            "input:1,1,5,4 output_size=3 output_width=8",
            "input:1,2,2,3 output_size=4 output_width=6",
            "input:2,1,1,1 output_size=3",
            "input:1,1,4,5 output_size=1",
            "input:1,2,5,4 output_size=(3,8)",
            "input:1,1,4,5 output_size=(7,3) exact=1",
            "input:1,1,2,3 scale_factor=(2,3)",
        ),
        thnn=("SpatialUpSamplingNearest",),
        note=EXACT,
        speed="input:16,32,28,28 output_size=56",
    ),
    Op(
        "interpolate_nearest3d",
        "R.interpolate(input, output_size, scale_factor, 'nearest-exact' if exact else 'nearest')",
        (
            "input:1,2,2,3,2 output_size=3 output_height=4 output_width=5",
            "input:1,1,3,2,4 output_size=2 output_height=5 output_width=3",
            "input:1,1,2,2,2 output_size=4",
            "input:2,1,1,1,1 output_size=2",
            "input:1,1,3,2,3 output_size=1",
            "input:1,1,2,3,4 output_size=(3,2,5) exact=1",
            "input:1,1,2,1,2 scale_factor=(1,2,3)",
        ),
        thnn=("VolumetricUpSamplingNearest",),
        note=EXACT,
        speed="input:4,16,8,14,14 output_size=16 output_height=28 output_width=28",
    ),
    Op(
        "interpolate_linear",
        "R.interpolate(input, output_size, scale_factor, 'linear', bool(align_corners))",
        (
            "input:2,2,4 output_size=7",
            "input:1,2,5 output_size=3 align_corners=1",
            "input:1,2,3 output_size=8 align_corners=1",
            "input:1,1,7 output_size=3",
            "input:2,1,1 output_size=3",
            "input:1,2,4 output_size=1 align_corners=1",
            "input:1,2,4 scale_factor=2",
        ),
        thnn=("TemporalUpSamplingLinear",),
        speed="input:32,64,256 output_size=512",
    ),
    Op(
        "interpolate_bilinear",
        "R.interpolate(input, output_size, scale_factor, 'bilinear', bool(align_corners))",
        (
            "input:2,2,3,4 output_size=5 output_width=7",
            "input:1,2,4,3 output_size=3 output_width=5 align_corners=1",
            "input:1,1,5,6 output_size=2 output_width=4",
            "input:1,2,2,2 output_size=4",
            "input:2,1,1,1 output_size=2 output_width=3",
            "input:1,1,3,4 output_size=1 align_corners=1",
            "input:1,1,3,2 scale_factor=(2,3) align_corners=1",
        ),
        thnn=("SpatialUpSamplingBilinear",),
        speed="input:16,32,28,28 output_size=56",
    ),
    Op(
        "interpolate_trilinear",
        "R.interpolate(input, output_size, scale_factor, 'trilinear', bool(align_corners))",
        (
            "input:1,2,2,3,2 output_size=3 output_height=4 output_width=5",
            "input:1,1,3,2,4 output_size=2 output_height=3 output_width=3 align_corners=1",
            "input:1,1,2,2,2 output_size=3",
            "input:2,1,1,1,1 output_size=2",
            "input:1,1,3,2,3 output_size=1 align_corners=1",
            "input:1,1,3,2,4 output_size=(2,3,5)",
            "input:1,1,2,1,2 scale_factor=(1,2,3)",
        ),
        thnn=("VolumetricUpSamplingTrilinear",),
        speed="input:4,16,8,14,14 output_size=16 output_height=28 output_width=28",
    ),
    Op(
        "interpolate_bicubic",
        "R.interpolate(input, output_size, scale_factor, 'bicubic', bool(align_corners))",
        (
            "input:2,2,3,4 output_size=5 output_width=7",
            "input:1,2,5,4 output_size=3 output_width=6 align_corners=1",
            "input:1,1,6,5 output_size=2 output_width=3",
            "input:2,1,1,2 output_size=3",
            "input:1,1,3,4 output_size=1 align_corners=1",
            "input:1,1,3,2 scale_factor=(2,3)",
        ),
        speed="input:16,32,28,28 output_size=56",
    ),
    Op(
        "interpolate_area1d",
        "R.interpolate(input, output_size, scale_factor, 'area')",
        (
            "input:2,2,7 output_size=3",
            "input:1,2,4 output_size=6",
            "input:1,1,6 output_size=3",
            "input:2,1,1 output_size=2",
            "input:1,2,5 output_size=1",
            "input:1,2,3 scale_factor=2",
        ),
        speed="input:32,64,512 output_size=128",
    ),
    Op(
        "interpolate_area2d",
        "R.interpolate(input, output_size, scale_factor, 'area')",
        (
            "input:2,2,5,4 output_size=3 output_width=2",
            "input:1,1,3,2 output_size=2 output_width=5",
            "input:1,2,4,4 output_size=2",
            "input:2,1,1,1 output_size=2",
            "input:1,1,3,5 output_size=1",
            "input:1,1,3,2 scale_factor=(2,1)",
        ),
        speed="input:16,32,56,56 output_size=28",
    ),
    Op(
        "interpolate_area3d",
        "R.interpolate(input, output_size, scale_factor, 'area')",
        (
            "input:1,2,3,4,2 output_size=2 output_height=3 output_width=3",
            "input:1,1,4,2,5 output_size=2 output_height=1 output_width=3",
            "input:1,1,4,4,4 output_size=2",
            "input:2,1,1,1,1 output_size=2",
            "input:1,1,3,2,3 output_size=1",
            "input:1,1,2,1,2 scale_factor=2",
        ),
    ),
    Op(
        "grid_positions",
        "R.grid_positions(grid, extent, padding_mode, align_corners)",
        (
            "grid:3,4n1.5 extent=4 padding_mode=2",
            "grid:8n1.5 extent=3 padding_mode=1 align_corners=1",
            "grid:2,3 extent=5",
            "grid:9n2 extent=4 padding_mode=2 align_corners=1",
            "grid:6 extent=5 padding_mode=1",
            "grid:4 extent=1 padding_mode=2 align_corners=1",
        ),
        smooth=False,  # PyTorch has no second derivative of grid_sample
    ),
    Op(
        "grid_sample",
        f"F.grid_sample(input, grid, 'bilinear', {MODES}, bool(align_corners))",
        (
            "input:2,2,4,5 grid:2,3,3,2",
            "input:1,2,3,4 grid:1,4,3,2n1.5 padding_mode=2",
            "input:1,1,3,4 grid:1,4,2,2n1.5 padding_mode=1 align_corners=1",
            "input:1,2,5,3 grid:1,3,3,2 align_corners=1",
            "input:1,1,4,3 grid=[[[[-1.0,-1.0],[1.0,1.0]],[[0.0,0.0],[-3.0,0.5]]]] align_corners=1",
            "input:1,1,4,3 grid:1,3,3,2n1.5 padding_mode=2 align_corners=1",
            "input:2,1,1,1 grid:2,2,2,2 padding_mode=1",
        ),
        smooth=False,  # PyTorch has no second derivative of it
        speed="input:16,16,28,28 grid:16,28,28,2n0.5",
    ),
    Op(
        "grid_sample_nearest",
        f"F.grid_sample(input, grid, 'nearest', {MODES}, bool(align_corners))",
        (
            "input:2,2,4,5 grid:2,3,3,2",
            "input:1,2,3,4 grid:1,4,3,2n1.5 padding_mode=2",
            "input:1,1,3,4 grid:1,4,2,2n1.5 padding_mode=1 align_corners=1",
            "input:1,2,5,3 grid:1,3,3,2 align_corners=1",
            "input:1,1,4,3 grid:1,3,3,2n1.5 padding_mode=2 align_corners=1",
            "input:2,1,1,1 grid:2,2,2,2 padding_mode=1",
        ),
        smooth=False,  # PyTorch has no second derivative of it
        speed="input:16,16,28,28 grid:16,28,28,2n0.5",
    ),
    Op(
        "grid_sample3d_nearest",
        f"F.grid_sample(input, grid, 'nearest', {MODES}, bool(align_corners))",
        (
            "input:2,2,3,4,5 grid:2,2,3,3,3",
            "input:1,2,2,3,4 grid:1,2,4,3,3n1.5 padding_mode=2",
            "input:1,1,3,2,4 grid:1,3,2,2,3n1.5 padding_mode=1 align_corners=1",
            "input:1,2,5,3,2 grid:1,1,3,3,3 align_corners=1",
            "input:2,1,1,1,1 grid:2,2,1,2,3 padding_mode=1",
        ),
        smooth=False,  # PyTorch has no second derivative of it
    ),
    Op(
        "grid_sample3d",
        f"F.grid_sample(input, grid, 'bilinear', {MODES}, bool(align_corners))",
        (
            "input:2,2,3,4,5 grid:2,2,3,3,3",
            "input:1,2,2,3,4 grid:1,2,4,3,3n1.5 padding_mode=2",
            "input:1,1,3,2,4 grid:1,3,2,2,3n1.5 padding_mode=1 align_corners=1",
            "input:1,2,5,3,2 grid:1,1,3,3,3 align_corners=1",
            "input:2,1,1,1,1 grid:2,2,1,2,3 padding_mode=1",
        ),
        smooth=False,  # PyTorch has no second derivative of it
    ),
    Op(
        "affine_grid",
        "F.affine_grid(theta, (theta.shape[0], 1, *output_size), bool(align_corners))",
        (
            "theta:2,2,3 output_size=3 output_width=4",
            "theta:1,2,3 output_size=4 output_width=2 align_corners=1",
            "theta:3,2,3 output_size=2",
            "theta:1,2,3 output_size=1 align_corners=1",
            "theta:1,2,3 output_size=1 output_width=5",
            "theta:1,2,3 output_size=(2,3)",
        ),
        speed="theta:32,2,3 output_size=112",
    ),
    Op(
        "affine_grid3d",
        "F.affine_grid(theta, (theta.shape[0], 1, *output_size), bool(align_corners))",
        (
            "theta:1,3,4 output_size=2 output_height=3 output_width=4",
            "theta:2,3,4 output_size=3 output_height=2 output_width=2 align_corners=1",
            "theta:1,3,4 output_size=2",
            "theta:1,3,4 output_size=1 align_corners=1",
            "theta:1,3,4 output_size=1 output_height=3 output_width=1",
        ),
    ),
    Op(
        "pixel_shuffle",
        "F.pixel_shuffle(input, upscale_factor)",
        (
            "input:2,8,2,3 upscale_factor=2",
            "input:9,2,1 upscale_factor=3",
            "input:1,4,3,3 upscale_factor=2",
            "input:2,3,2,2 upscale_factor=1",
            "input:2,1,4,1,2 upscale_factor=2",
        ),
        speed="input:16,64,28,28 upscale_factor=2",
    ),
    Op(
        "pixel_unshuffle",
        "F.pixel_unshuffle(input, downscale_factor)",
        (
            "input:2,2,4,6 downscale_factor=2",
            "input:1,6,3 downscale_factor=3",
            "input:1,1,2,2 downscale_factor=2",
            "input:2,3,2,2 downscale_factor=1",
            "input:1,2,1,4,2 downscale_factor=2",
        ),
        speed="input:16,16,56,56 downscale_factor=2",
    ),
    Op(
        "channel_shuffle",
        "F.channel_shuffle(input, groups)",
        (
            "input:2,6,2,3 groups=2",
            "input:1,6,1,2 groups=3",
            "input:1,4,2,2 groups=4",
            "input:2,3,2,1 groups=1",
            "input:1,8,1,1 groups=2",
            "input:0,6,2,1 groups=3",
        ),
        speed="input:16,64,28,28 groups=4",
    ),
    Op(
        "concat",
        "torch.cat([input, other], -1)",
        (
            "input:2,3 other:2,4",
            "input:2,1,3 other:2,1,1",
            "input:3 other:2",
            "input:2,0 other:2,3",
            "input:0,2 other:0,1",
        ),
    ),
    Op(
        "roll",
        "torch.roll(input, shifts, -1)",
        (
            "input:2,3,5 shifts=2",
            "input:4 shifts=-1",
            "input:2,3 shifts=7",
            "input:2,1 shifts=1",
            "input:0,3 shifts=1",
            "input:2,0 shifts=3",
        ),
        speed="input:64,64,256 shifts=3",
    ),
    Op(
        "flip",
        "torch.flip(input, (-1,))",
        ("input:2,3,4", "input:5", "input:2,1", "input:0,3", "input:1,2,1,3"),
        speed="input:64,64,256",
    ),
    Op(
        "rot90",
        "torch.rot90(input, 1, (-2, -1))",
        ("input:2,3,4", "input:3,2", "input:1,5", "input:1,1", "input:0,2,3"),
        speed="input:32,16,56,56",
    ),
    Op(
        "tril",
        "torch.tril(input, diagonal)",
        (
            "input:2,3,4",
            "input:4,3 diagonal=1",
            "input:3,3 diagonal=-1",
            "input:1,1 diagonal=-2",
            "input:0,2,2",
        ),
        speed="input:16,256,256",
    ),
    Op(
        "triu",
        "torch.triu(input, diagonal)",
        (
            "input:2,3,4",
            "input:4,3 diagonal=1",
            "input:3,3 diagonal=-1",
            "input:1,1 diagonal=2",
            "input:0,2,2",
        ),
        speed="input:16,256,256",
    ),
)
