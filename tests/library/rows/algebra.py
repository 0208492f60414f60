"""Distances, tensor factorisations, segments, graphs, sparse matrices, reductions."""

from __future__ import annotations

from ..table import Op

DISTANCE = (
    Op(
        "squared_distances",
        "R.squared_distances(x1, x2)",
        ("x1:4,3 x2:5,3", "x1:2,3,4 x2:2,2,4", "x1:1,1 x2:1,1", "x1:2,5 x2:7,5", "x1:0,3 x2:4,3", "x1:3,0 x2:2,0"),
        speed="x1:512,64 x2:512,64",
    ),
    Op(
        "cdist",
        "R.cdist(x1, x2)",
        (
            "x1:4,3 x2:5,3",
            "x1:2,3,4 x2:2,2,4",
            "x1:1,1 x2:3,1",
            "x1=[[1.0,2.0],[0.0,-1.0]] x2=[[1.0,2.0],[3.0,0.5],[0.0,-1.0]]",
            "x1:6,2 x2:1,2",
            "x1:0,3 x2:4,3",
        ),
        note="torch.cdist has no second derivative; the reference checks that it agrees with it up to the first",
        speed="x1:512,64 x2:512,64",
    ),
    Op(
        "cdist_l1",
        "R.cdist_l1(x1, x2)",
        (
            "x1:4,3 x2:5,3",
            "x1:2,3,4 x2:2,2,4",
            "x1:1,1 x2:3,1",
            "x1:3,2t x2:4,2t",
            "x1:6,2 x2:1,2",
            "x1:0,3 x2:4,3",
        ),
        note="torch.cdist(x1, x2, p=1) has no second derivative",
        speed="x1:512,64 x2:512,64",
    ),
    Op(
        "gaussian_kernel",
        "torch.exp(-gamma * R.squared_distances(x1, x2))",
        (
            "x1:4,3 x2:5,3 gamma=0.3",
            "x1:2,3,4 x2:2,2,4 gamma=0.1",
            "x1=[[1.0,2.0],[0.0,-1.0]] x2=[[1.0,2.0],[3.0,0.5],[0.0,-1.0]]",
            "x1:1,1 x2:3,1",
            "x1:6,2 x2:1,2 gamma=2.0",
            "x1:0,3 x2:4,3",
            "x1:3,2 x2:0,2",
        ),
        speed="x1:512,64 x2:512,64 gamma=0.01",
    ),
    Op(
        "laplace_kernel",
        "torch.exp(-gamma * R.cdist_l1(x1, x2))",
        (
            "x1:4,3 x2:5,3 gamma=0.3",
            "x1:2,3,4 x2:2,2,4 gamma=0.1",
            "x1:1,1 x2:3,1",
            "x1:3,2t x2:4,2t gamma=0.5",
            "x1:6,2 x2:1,2 gamma=2.0",
            "x1:0,3 x2:4,3",
        ),
        speed="x1:512,64 x2:512,64 gamma=0.01",
    ),
    Op(
        "matern32_kernel",
        "R.matern32_kernel(x1, x2, length_scale)",
        (
            "x1:4,3 x2:5,3 length_scale=1.5",
            "x1:2,3,4 x2:2,2,4",
            "x1:1,1 x2:3,1 length_scale=0.5",
            "x1=[[1.0,2.0],[0.0,-1.0]] x2=[[1.0,2.0],[3.0,0.5],[0.0,-1.0]]",
            "x1:6,2 x2:1,2 length_scale=2.0",
            "x1:0,3 x2:4,3",
        ),
        speed="x1:512,64 x2:512,64 length_scale=5.0",
    ),
    Op(
        "matern52_kernel",
        "R.matern52_kernel(x1, x2, length_scale)",
        (
            "x1:4,3 x2:5,3 length_scale=1.5",
            "x1:2,3,4 x2:2,2,4",
            "x1:1,1 x2:3,1 length_scale=0.5",
            "x1=[[1.0,2.0],[0.0,-1.0]] x2=[[1.0,2.0],[3.0,0.5],[0.0,-1.0]]",
            "x1:6,2 x2:1,2 length_scale=2.0",
            "x1:0,3 x2:4,3",
        ),
        speed="x1:512,64 x2:512,64 length_scale=5.0",
    ),
    Op(
        "polynomial_kernel",
        "(gamma * x1 @ x2.mT + coef0) ** degree",
        (
            "x1:4,3 x2:5,3 gamma=0.3",
            "x1:2,3,4 x2:2,2,4 degree=2 coef0=0.5",
            "x1:3,2 x2:2,2 degree=1",
            "x1:1,1 x2:3,1 degree=4 gamma=0.5 coef0=0.0",
            "x1:0,3 x2:4,3",
            "x1:2,3 x2:2,3 degree=0",
        ),
        speed="x1:512,64 x2:512,64 gamma=0.01",
    ),
    Op(
        "cosine_similarity_matrix",
        "R.cosine_similarity_matrix(x1, x2, eps)",
        (
            "x1:4,3 x2:5,3",
            "x1:2,3,4 x2:2,2,4 eps=0.001",
            "x1:3,2a x2:4,2a eps=100.0",
            "x1:1,1 x2:3,1",
            "x1:6,2 x2:1,2",
            "x1:0,3 x2:4,3",
            "x1=[[0.0,0.0],[3.0,4.0]] x2=[[1.0,2.0]]",
        ),
        note="the gradient of F.cosine_similarity leaves out that a length below eps counts as eps",
        speed="x1:512,64 x2:512,64",
    ),
)

FACTORIZATION = (
    Op(
        "mttkrp",
        "torch.einsum('ijk,jr,kr->ir', input, factor1, factor2)",
        (
            "input:3,4,5 factor1:4,2 factor2:5,2",
            "input:2,3,3 factor1:3,5 factor2:3,5",
            "input:1,1,1 factor1:1,1 factor2:1,1",
            "input:4,2,3 factor1:2,1 factor2:3,1",
            "input:0,2,3 factor1:2,2 factor2:3,2",
        ),
        speed="input:96,96,96 factor1:96,16 factor2:96,16",
    ),
    Op(
        "mttkrp_4way",
        "torch.einsum('ijkl,jr,kr,lr->ir', input, factor1, factor2, factor3)",
        (
            "input:3,2,4,2 factor1:2,3 factor2:4,3 factor3:2,3",
            "input:2,3,1,3 factor1:3,2 factor2:1,2 factor3:3,2",
            "input:1,1,1,1 factor1:1,1 factor2:1,1 factor3:1,1",
            "input:2,2,2,2 factor1:2,1 factor2:2,1 factor3:2,1",
            "input:0,2,3,2 factor1:2,2 factor2:3,2 factor3:2,2",
        ),
        speed="input:32,32,32,32 factor1:32,16 factor2:32,16 factor3:32,16",
    ),
    Op(
        "cp_reconstruct",
        "R.cp_reconstruct(factor0, factor1, factor2, weight)",
        (
            "factor0:3,2 factor1:4,2 factor2:5,2 weight:2",
            "factor0:2,3 factor1:3,3 factor2:4,3",
            "factor0:1,1 factor1:1,1 factor2:1,1 weight:1",
            "factor0:3,1 factor1:2,1 factor2:2,1",
            "factor0:0,2 factor1:3,2 factor2:2,2 weight:2",
        ),
        speed="factor0:96,16 factor1:96,16 factor2:96,16 weight:16",
    ),
    Op(
        "tucker_reconstruct",
        "torch.einsum('pqr,ip,jq,kr->ijk', core, factor0, factor1, factor2)",
        (
            "core:2,3,2 factor0:3,2 factor1:4,3 factor2:2,2",
            "core:3,2,1 factor0:2,3 factor1:2,2 factor2:4,1",
            "core:1,1,1 factor0:1,1 factor1:1,1 factor2:1,1",
            "core:1,2,2 factor0:4,1 factor1:1,2 factor2:3,2",
            "core:2,2,2 factor0:0,2 factor1:3,2 factor2:2,2",
        ),
        speed="core:16,16,16 factor0:96,16 factor1:96,16 factor2:96,16",
    ),
    Op(
        "tensor_train_reconstruct",
        "torch.einsum('ia,ajb,bk->ijk', core0, core1, core2)",
        (
            "core0:3,2 core1:2,4,3 core2:3,2",
            "core0:2,3 core1:3,2,2 core2:2,5",
            "core0:1,1 core1:1,1,1 core2:1,1",
            "core0:4,1 core1:1,3,2 core2:2,1",
            "core0:0,2 core1:2,3,2 core2:2,2",
        ),
        speed="core0:96,16 core1:16,96,16 core2:16,96",
    ),
    Op(
        "khatri_rao",
        "R.khatri_rao(input, other)",
        (
            "input:3,2 other:4,2",
            "input:2,5 other:3,5",
            "input:1,1 other:1,1",
            "input:4,1 other:2,1",
            "input:0,2 other:3,2",
        ),
        speed="input:256,32 other:256,32",
    ),
    Op(
        "kronecker",
        "torch.kron(input, other)",
        (
            "input:3,2 other:2,4",
            "input:2,3 other:3,3",
            "input:1,1 other:1,1",
            "input:1,4 other:3,1",
            "input:0,2 other:3,2",
        ),
        speed="input:32,32 other:48,48",
    ),
    Op(
        "trace",
        "torch.diagonal(input, dim1=-2, dim2=-1).sum(-1)",
        ("input:3,3", "input:2,4,4", "input:1,1", "input:2,1,2,2", "input:0,3,3", "input:2,0,0"),
        speed="input:64,256,256",
    ),
    Op(
        "gram",
        "input @ input.mT",
        ("input:3,4", "input:2,4,3", "input:1,1", "input:2,1,3,2", "input:0,2,3", "input:3,0"),
        speed="input:512,256",
    ),
)

SEGMENT = (
    Op(
        "segment_sum",
        "torch.zeros(segments, input.shape[1]).index_add(0, segment, input)",
        (
            "input:6,3 segment:6i4 segments=4",
            "input:5,2 segment=[2,0,2,2,4] segments=5",
            "input:3,1 segment:3i1 segments=1",
            "input:4,2 segment:4o3 segments=7",
            "input:0,3 segment:0i1 segments=2",
        ),
        speed="input:65536,64 segment:65536i1024 segments=1024",
    ),
    Op(
        "segment_mean",
        "R.segment_mean(input, segment, segments)",
        (
            "input:6,3 segment:6i4 segments=4",
            "input:5,2 segment=[2,0,2,2,4] segments=5",
            "input:3,1 segment:3i1 segments=1",
            "input:4,2 segment:4o3 segments=7",
            "input:0,3 segment:0i1 segments=2",
        ),
        speed="input:65536,64 segment:65536i1024 segments=1024",
    ),
    Op(
        "segment_max",
        "R.segment_max(input, segment, segments)",
        (
            "input:6,3 segment:6i4 segments=4",
            "input:8,2t segment=[2,0,2,2,4,2,0,0] segments=5",
            "input:3,1 segment:3i1 segments=1",
            "input:4,2 segment:4o3 segments=7",
            "input:0,3 segment:0i1 segments=2",
        ),
        note="scatter_reduce shares the gradient among equal values",
        speed="input:65536,64 segment:65536i1024 segments=1024",
    ),
    Op(
        "segment_min",
        "R.segment_min(input, segment, segments)",
        (
            "input:6,3 segment:6i4 segments=4",
            "input:8,2t segment=[2,0,2,2,4,2,0,0] segments=5",
            "input:3,1 segment:3i1 segments=1",
            "input:4,2 segment:4o3 segments=7",
            "input:0,3 segment:0i1 segments=2",
        ),
        note="scatter_reduce shares the gradient among equal values",
    ),
    Op(
        "segment_softmax",
        "R.segment_softmax(input, segment, segments)",
        (
            "input:6,3 segment:6i4 segments=4",
            "input:8,2n40 segment=[2,0,2,2,4,2,0,0] segments=5",
            "input:3,1 segment:3i1 segments=1",
            "input:4,2 segment:4o3 segments=7",
            "input:0,3 segment:0i1 segments=2",
        ),
        speed="input:65536,8 segment:65536i4096 segments=4096",
    ),
    Op(
        "gather",
        "torch.gather(input, -1, index)",
        (
            "input:3,5 index:3,4i5",
            "input:2,3,2 index:2,3,4i2",
            "input:4 index=[3,0,3,3]",
            "input:2,1 index:2,1i1",
            "input:0,3 index:0,2i3",
            "input:2,3 index:2,0i3",
        ),
        speed="input:1024,1024 index:1024,256i1024",
    ),
    Op(
        "index_select",
        "torch.index_select(input, -1, index)",
        (
            "input:3,5 index:4i5",
            "input:2,3,2 index=[1,0,1]",
            "input:4 index=[3,0,3,3]",
            "input:2,1 index:1i1",
            "input:0,3 index:2i3",
            "input:2,3 index:0i3",
        ),
        speed="input:1024,1024 index:512i1024",
    ),
    Op(
        "scatter_add",
        "torch.scatter_add(input, -1, index, src)",
        (
            "input:3,5 index:3,4i5 src:3,4",
            "input:2,3,2 index:2,3,4i2 src:2,3,4",
            "input:4 index=[3,0,3,3] src:4",
            "input:2,1 index:2,1i1 src:2,1",
            "input:0,3 index:0,2i3 src:0,2",
            "input:2,3 index:2,0i3 src:2,0",
        ),
        speed="input:1024,1024 index:1024,256i1024 src:1024,256",
    ),
    Op(
        "index_add",
        "torch.index_add(input, -1, index, source, alpha=alpha)",
        (
            "input:3,5 index:4i5 source:3,4 alpha=0.5",
            "input:2,3,2 index=[1,0,1] source:2,3,3",
            "input:4 index=[3,0,3,3] source:4 alpha=-2.0",
            "input:2,1 index:1i1 source:2,1",
            "input:0,3 index:2i3 source:0,2",
            "input:2,3 index:0i3 source:2,0",
        ),
        speed="input:1024,1024 index:512i1024 source:1024,512",
    ),
)

GRAPH = (
    Op(
        "neighbor_sum",
        "R.neighbor_sum(input, source, target, edge_weight)",
        (
            "input:4,3 source:6i4 target:6i4 edge_weight:6",
            "input:5,2 source=[0,0,1,3,3] target=[2,2,1,0,4]",
            "input:1,1 source=[0,0] target=[0,0] edge_weight:2",
            "input:3,2 source:0i3 target:0i3",
            "input:3,1 source:5i3 target:5i3",
        ),
        speed="input:4096,64 source:65536i4096 target:65536i4096 edge_weight:65536",
    ),
    Op(
        "neighbor_mean",
        "R.neighbor_mean(input, source, target)",
        (
            "input:4,3 source:6i4 target:6i4",
            "input:5,2 source=[0,0,1,3,3] target=[2,2,1,0,4]",
            "input:1,1 source=[0,0] target=[0,0]",
            "input:3,2 source:0i3 target:0i3",
            "input:3,1 source:5i3 target:5i3",
        ),
        speed="input:4096,64 source:65536i4096 target:65536i4096",
    ),
    Op(
        "neighbor_max",
        "R.segment_max(input[source], target, len(input))",
        (
            "input:4,3 source:6i4 target:6i4",
            "input:5,2t source=[0,4,1,3,3,0,2] target=[2,2,1,0,4,2,2]",
            "input:1,1 source=[0,0] target=[0,0]",
            "input:3,2 source:0i3 target:0i3",
            "input:3,1 source:5i3 target:5i3",
        ),
        speed="input:4096,64 source:65536i4096 target:65536i4096",
    ),
    Op(
        "graph_convolution",
        "R.graph_convolution(input, weight, source, target, bias, edge_weight)",
        (
            "input:4,3 weight:2,3 source:6i4 target:6i4 bias:2 edge_weight:6+",
            "input:5,2 weight:3,2 source=[0,0,1,3,3] target=[2,2,1,0,4]",
            "input:1,1 weight:1,1 source=[0,0] target=[0,0] bias:1",
            "input:3,2 weight:2,2 source:0i3 target:0i3",
            "input:4,1 weight:3,1 source:5i4 target:5i4 edge_weight:5p",
        ),
        speed="input:4096,64 weight:64,64 source:65536i4096 target:65536i4096 bias:64",
    ),
    Op(
        "graph_sage",
        "R.graph_sage(input, self_weight, neighbor_weight, source, target, bias)",
        (
            "input:4,3 self_weight:2,3 neighbor_weight:2,3 source:6i4 target:6i4 bias:2",
            "input:5,2 self_weight:3,2 neighbor_weight:3,2 source=[0,0,1,3,3] target=[2,2,1,0,4]",
            "input:1,1 self_weight:1,1 neighbor_weight:1,1 source=[0,0] target=[0,0] bias:1",
            "input:3,2 self_weight:2,2 neighbor_weight:2,2 source:0i3 target:0i3",
            "input:4,1 self_weight:3,1 neighbor_weight:3,1 source:5i4 target:5i4",
        ),
        speed="input:4096,64 self_weight:64,64 neighbor_weight:64,64 source:65536i4096 target:65536i4096 bias:64",
    ),
    Op(
        "graph_attention",
        "R.graph_attention(input, weight, attention_source, attention_target, source, target, bias, negative_slope)",
        (
            "input:4,3 weight:2,2,3 attention_source:2,2 attention_target:2,2 source:6i4 target:6i4 bias:2,2",
            "input:5,2 weight:1,3,2 attention_source:1,3 attention_target:1,3 source=[0,0,1,3,3] target=[2,2,1,0,2]",
            "input:1,1 weight:1,1,1 attention_source:1,1 attention_target:1,1 source=[0,0] target=[0,0] bias:1,1",
            "input:3,2 weight:2,1,2 attention_source:2,1 attention_target:2,1 source:0i3 target:0i3",
            "input:4,1 weight:3,2,1 attention_source:3,2 attention_target:3,2 source:5i4 target:5i4 negative_slope=0.5",
        ),
        speed="input:4096,64 weight:4,16,64 attention_source:4,16 attention_target:4,16 "
        "source:65536i4096 target:65536i4096 bias:4,16",
    ),
)

SPARSE = (
    Op(
        "sparse_mv",
        "R.sparse_matrix(row, column, value, rows, len(vector)) @ vector",
        (
            "row:6i4 column:6i3 value:6 vector:3 rows=4",
            "row=[2,0,2,2] column=[1,1,1,0] value:4 vector:2 rows=5",
            "row:3i1 column:3i1 value:3 vector:1 rows=1",
            "row:2i3 column:2i4 value:2 vector:4 rows=3",
            "row:0i1 column:0i1 value:0 vector:2 rows=2",
        ),
        note="torch.sparse has no second derivative",
        speed="row:1000000i10000 column:1000000i10000 value:1000000 vector:10000 rows=10000",
    ),
    Op(
        "sparse_mm",
        "R.sparse_matrix(row, column, value, rows, len(dense)) @ dense",
        (
            "row:6i4 column:6i3 value:6 dense:3,2 rows=4",
            "row=[2,0,2,2] column=[1,1,1,0] value:4 dense:2,3 rows=5",
            "row:3i1 column:3i1 value:3 dense:1,1 rows=1",
            "row:2i3 column:2i4 value:2 dense:4,1 rows=3",
            "row:0i1 column:0i1 value:0 dense:2,2 rows=2",
        ),
        note="torch.sparse has no second derivative",
        speed="row:65536i4096 column:65536i4096 value:65536 dense:4096,64 rows=4096",
    ),
    Op(
        "sampled_mm",
        "(input @ other.T)[row, column]",
        (
            "row:6i4 column:6i3 input:4,2 other:3,2",
            "row=[2,0,2,2] column=[1,1,1,0] input:3,3 other:2,3",
            "row:3i1 column:3i1 input:1,1 other:1,1",
            "row:2i3 column:2i4 input:3,5 other:4,5",
            "row:0i1 column:0i1 input:2,2 other:2,2",
        ),
        speed="row:65536i1024 column:65536i1024 input:1024,64 other:1024,64",
    ),
)

REDUCE = (
    Op(
        "reduce_sum",
        "input.sum(-1)",
        ("input:3,4", "input:2,3,2", "input:5", "input:2,1", "input:0,3", "input:2,0"),
        speed="input:4096,512",
    ),
    Op(
        "reduce_mean",
        "input.mean(-1)",
        ("input:3,4", "input:2,3,2", "input:5", "input:2,1", "input:0,3"),
        speed="input:4096,512",
    ),
    Op(
        "reduce_prod",
        "input.prod(-1)",
        (
            "input:3,4",
            "input=[[2.0,0.0,3.0],[0.0,0.0,5.0],[1.5,2.0,-1.0]]",
            "input:2,3,2",
            "input:5",
            "input:2,1",
            "input:0,3",
            "input:2,0",
        ),
        speed="input:65536,32",
    ),
    Op(
        "reduce_max",
        "input.max(-1).values",
        ("input:3,4", "input:2,3,6t", "input:5", "input:2,1", "input:0,3"),
        note="torch.amax shares the gradient among equal values, torch.max gives it to the first",
        speed="input:4096,512",
    ),
    Op(
        "reduce_min",
        "input.min(-1).values",
        ("input:3,4", "input:2,3,6t", "input:5", "input:2,1", "input:0,3"),
        note="torch.amin shares the gradient among equal values, torch.min gives it to the first",
        speed="input:4096,512",
    ),
    Op(
        "reduce_argmax",
        "input.argmax(-1)",
        ("input:3,4", "input:2,3,6t", "input:5", "input:2,1", "input:0,3"),
        smooth=False,  # a position has no derivative
    ),
    Op(
        "reduce_argmin",
        "input.argmin(-1)",
        ("input:3,4", "input:2,3,6t", "input:5", "input:2,1", "input:0,3"),
        smooth=False,  # a position has no derivative
    ),
    Op(
        "var",
        "input.var(-1, correction=correction)",
        ("input:3,4", "input:2,3,2 correction=0", "input:5", "input:2,1 correction=0", "input:0,3"),
        speed="input:4096,512",
    ),
    Op(
        "std",
        "input.std(-1, correction=correction)",
        (
            "input:3,4",
            "input:2,3,2 correction=0",
            "input:5",
            "input=[[0.1,0.1,0.1],[1.0,2.0,4.0]]",
            "input:2,1 correction=0",
            "input:0,3",
        ),
        speed="input:4096,512",
    ),
    Op(
        "vector_norm",
        "R.vector_norm(input, p)",
        (
            "input:3,4",
            "input:2,3,3 p=1.5",
            "input:4,3 p=1.0",
            "input:5 p=3.0",
            "input=[[0.0,0.0],[3.0,4.0]]",
            "input:2,1",
            "input:0,3",
        ),
        speed="input:4096,512",
    ),
    Op(
        "moments",
        "R.moments(input)",
        ("input:3,4", "input:2,2,5", "input:6", "input:2,3", "input:0,3"),
        speed="input:4096,512",
    ),
    Op(
        "standardize",
        "R.standardize(input)",
        ("input:5,3", "input:4,1", "input:6,2", "input=[[0.1,2.0],[0.1,3.0],[0.1,5.0]]", "input:3,0", "input:1,2"),
        speed="input:4096,256",
    ),
    Op(
        "histogram",
        "R.histogram(bin, bins, weight)",
        (
            "bin:8i5 weight:8 bins=5",
            "bin=[2,0,2,2,6] weight:5 bins=9",
            "bin:1i1 weight:1 bins=1",
            "bin:8i5 bins=5",
            "bin:0i1 weight:0 bins=3",
            "bin:4i3 bins=3",
        ),
        speed="bin:1000000i256 weight:1000000 bins=256",
    ),
)

ROWS = (*DISTANCE, *FACTORIZATION, *SEGMENT, *GRAPH, *SPARSE, *REDUCE)
