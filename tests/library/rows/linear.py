"""Linear maps and tables of vectors."""

from __future__ import annotations

from ..table import Op

BAGS = str(list(range(0, 16384, 64))).replace(" ", "")  # 256 bags of 64 entries

ROWS = (
    Op(
        "linear",
        "F.linear(input, weight, bias)",
        (
            "input:3,4 weight:5,4 bias:5",
            "input:2,3,4 weight:5,4",
            "input:4 weight:1,4 bias:1",
            "input:1,1 weight:2,1 bias:2",
            "input:0,3 weight:2,3 bias:2",
        ),
        speed="input:512,512 weight:512,512 bias:512",
    ),
    Op(
        "bilinear",
        "F.bilinear(input1, input2, weight, bias)",
        (
            "input1:3,4 input2:3,2 weight:5,4,2 bias:5",
            "input1:2,3,2 input2:2,3,4 weight:3,2,4",
            "input1:3 input2:2 weight:2,3,2 bias:2",
            "input1:1,1 input2:1,1 weight:1,1,1 bias:1",
            "input1:0,2 input2:0,3 weight:2,2,3 bias:2",
        ),
        speed="input1:128,64 input2:128,64 weight:64,64,64 bias:64",
    ),
    Op(
        "outer",
        "torch.outer(input, vec2)",
        ("input:3 vec2:4", "input:5 vec2:2", "input:1 vec2:1", "input:1 vec2:3", "input:0 vec2:2"),
        speed="input:2048 vec2:2048",
    ),
    Op(
        "matmul",
        "torch.matmul(input, other)",
        (
            "input:2,3,4 other:2,4,2",
            "input:3,2 other:2,5",
            "input:1,1 other:1,1",
            "input:2,2,1,3 other:2,2,3,2",
            "input:2,0 other:0,3",
            "input:0,2,3 other:0,3,2",
        ),
        speed="input:16,256,256 other:16,256,256",
    ),
    Op(
        "bmm",
        "torch.bmm(input, mat2)",
        (
            "input:2,3,4 mat2:2,4,2",
            "input:3,1,5 mat2:3,5,2",
            "input:1,1,1 mat2:1,1,1",
            "input:0,2,3 mat2:0,3,2",
            "input:2,2,0 mat2:2,0,3",
        ),
        speed="input:64,128,128 mat2:64,128,128",
    ),
    Op(
        "addmm",
        "torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha)",
        (
            "input:3,2 mat1:3,4 mat2:4,2 beta=0.5 alpha=-2.0",
            "input:2,5 mat1:2,3 mat2:3,5",
            "input:1,1 mat1:1,1 mat2:1,1 alpha=3.0",
            "input:4,2 mat1:4,1 mat2:1,2 beta=0.0",
            "input:0,2 mat1:0,3 mat2:3,2 beta=2.0",
        ),
        speed="input:512,512 mat1:512,512 mat2:512,512",
    ),
    Op(
        "baddbmm",
        "torch.baddbmm(input, batch1, batch2, beta=beta, alpha=alpha)",
        (
            "input:2,3,2 batch1:2,3,4 batch2:2,4,2 beta=0.5 alpha=-2.0",
            "input:3,2,4 batch1:3,2,2 batch2:3,2,4",
            "input:1,1,1 batch1:1,1,1 batch2:1,1,1 alpha=3.0",
            "input:2,1,3 batch1:2,1,2 batch2:2,2,3 beta=0.0",
            "input:0,2,2 batch1:0,2,3 batch2:0,3,2 beta=2.0",
        ),
        speed="input:64,128,128 batch1:64,128,128 batch2:64,128,128",
    ),
    Op(
        "embedding",
        "F.embedding(input, weight, None if padding_idx < 0 else padding_idx)",
        (
            "input=[[0,2,2],[4,0,1]] weight:5,3 padding_idx=2",
            "input:6i4 weight:4,2",
            "input:2,3,2i3 weight:3,1 padding_idx=0",
            "input:i4 weight:4,3",
            "input:1i1 weight:1,1",
            "input:0i3 weight:3,2",
        ),
        thnn=("LookupTable",),
        note="torch counts a negative padding_idx from the end; here it is none",
        speed="input:128,128i8192 weight:8192,128",
    ),
    Op(
        "one_hot",
        "F.one_hot(input, num_classes)",
        (
            "input:2,3i4 num_classes=4",
            "input=[2,0,2] num_classes=5",
            "input:i3 num_classes=3",
            "input:1i1 num_classes=1",
            "input:0i3 num_classes=3",
        ),
        smooth=False,  # whole numbers have no derivative
        speed="input:4096i256 num_classes=256",
    ),
    Op(
        "bag_ids",
        "torch.searchsorted(offsets, torch.arange(length), right=True) - 1",
        (
            "offsets=[0,2,2,5] length=7",
            "offsets=[0,0,3,3] length=3",
            "offsets=[0] length=4",
            "offsets=[0] length=0",
            "offsets=[0,1,2] length=3",
        ),
        smooth=False,  # whole numbers have no derivative
        note="torch keeps it inside embedding_bag",
    ),
    Op(
        "embedding_bag_sum",
        "F.embedding_bag(input, weight, offsets, mode='sum', per_sample_weights=per_sample_weights,"
        " padding_idx=None if padding_idx < 0 else padding_idx)",
        (
            "input=[1,3,1,0,4,4] weight:5,3 offsets=[0,2,2,5] per_sample_weights:6",
            "input:7i4 weight:4,2 offsets=[0,3] padding_idx=1",
            "input:1i1 weight:1,1 offsets=[0] per_sample_weights:1",
            "input=[2,2,2] weight:3,2 offsets=[0,0,1,3] per_sample_weights:3 padding_idx=0",
            "input=[0,1,0] weight:2,3 offsets=[0,1,2] padding_idx=0 per_sample_weights:3",
            "input:5i3 weight:3,4 offsets=[0]",
        ),
        smooth=False,  # torch has no second derivative of embedding_bag
        thnn=("LookupTable",),
        speed=f"input:16384i4096 weight:4096,128 offsets={BAGS} per_sample_weights:16384",
    ),
    Op(
        "embedding_bag",
        "F.embedding_bag(input, weight, offsets, mode='mean', padding_idx=None if padding_idx < 0 else padding_idx)",
        (
            "input=[1,3,1,0,4,4] weight:5,3 offsets=[0,2,2,5]",
            "input:7i4 weight:4,2 offsets=[0,3] padding_idx=1",
            "input:1i1 weight:1,1 offsets=[0]",
            "input=[2,2,2] weight:3,2 offsets=[0,0,1,3]",
            "input=[0,1,0,0] weight:2,3 offsets=[0,1,2] padding_idx=0",
        ),
        smooth=False,  # torch has no second derivative of embedding_bag
        speed=f"input:16384i4096 weight:4096,128 offsets={BAGS}",
    ),
    Op(
        "embedding_bag_max",
        "F.embedding_bag(input, weight, offsets, mode='max', padding_idx=None if padding_idx < 0 else padding_idx)",
        (
            "input=[1,3,1,0,4,4] weight:5,3 offsets=[0,2,2,5]",
            "input:7i4 weight:4,2t offsets=[0,3] padding_idx=1",
            "input:1i1 weight:1,1 offsets=[0]",
            "input=[2,1,2] weight:3,2 offsets=[0,0,1,3]",
            "input=[0,1,0,0] weight:2,3 offsets=[0,1,2] padding_idx=0",
        ),
        smooth=False,  # torch has no second derivative of embedding_bag
        speed=f"input:16384i4096 weight:4096,128 offsets={BAGS}",
    ),
    Op(
        "sparse_linear",
        "F.linear(torch.zeros(rows, weight.shape[1]).index_put((row, col), values, accumulate=True), weight, bias)",
        (
            "row=[0,2,2,0,3] col=[1,0,3,1,2] values:5 weight:3,4 rows=4 bias:3",
            "row:6i3 col:6i5 values:6 weight:2,5 rows=3",
            "row=[0] col=[0] values:1 weight:1,1 rows=1 bias:1",
            "row=[3,3] col=[1,1] values:2 weight:2,2 rows=5 bias:2",
            "row:0i2 col:0i2 values:0 weight:2,2 rows=2 bias:2",
        ),
        thnn=("SparseLinear",),
        note="the dense product: torch's own sparse one has no second derivative",
        speed="row:16384o256 col:16384i4096 values:16384 weight:128,4096 rows=256 bias:128",
    ),
    Op(
        "index_linear",
        "F.embedding_bag(keys, weight, offsets, mode='sum', per_sample_weights=values) + (0 if bias is None else bias)",
        (
            "keys=[1,3,1,0,4,4] values:6 offsets=[0,2,2,5] weight:5,3 bias:3",
            "keys:7i4 values:7 offsets=[0,3] weight:4,2",
            "keys:1i1 values:1 offsets=[0] weight:1,1 bias:1",
            "keys=[2,2,2] values:3 offsets=[0,0,1,3] weight:3,2 bias:2",
            "keys:4i3 values:4 offsets=[0,1,2,3] weight:3,5 bias:5",
        ),
        smooth=False,  # torch has no second derivative of embedding_bag
        thnn=("IndexLinear",),
        note="without the running maximum by which IndexLinear may scale its inputs",
        speed=f"keys:16384i4096 values:16384 offsets={BAGS} weight:4096,128 bias:128",
    ),
)
