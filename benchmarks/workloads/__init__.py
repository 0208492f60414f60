"""What is measured. One file for each operation; the order here is that of the table. Models stand behind them."""

from __future__ import annotations

import gradbench
import models
import sparse_sums
from harness.workload import Row, Workload

from . import (
    attention,
    causal_attention,
    conv2d,
    cross_entropy,
    depthwise_conv,
    embedding,
    gaussian_mixture,
    gpt_block,
    heat_equation,
    layer_norm_gelu,
    lstm,
    matmul,
    matrix_chains,
    mlp_step,
    mttkrp,
    pairwise_kernel,
    sizes,
    tensor_network,
)

ALL: tuple[Workload, ...] = (
    mlp_step.WORKLOAD,
    *attention.WORKLOADS[:1],
    causal_attention.WORKLOAD,
    *attention.WORKLOADS[1:],
    *conv2d.WORKLOADS,
    depthwise_conv.WORKLOAD,
    lstm.WORKLOAD,
    *pairwise_kernel.WORKLOADS,
    mttkrp.WORKLOAD,
    layer_norm_gelu.WORKLOAD,
    cross_entropy.WORKLOAD,
    embedding.WORKLOAD,
    matrix_chains.WORKLOAD,
    heat_equation.WORKLOAD,
    tensor_network.WORKLOAD,
    gaussian_mixture.WORKLOAD,
    gpt_block.WORKLOAD,
    *matmul.WORKLOADS,
    *models.ALL,
)
SUITES = {
    "": ALL,
    "gradbench": gradbench.ALL,
    "sizes": sizes.ALL,
    "sparse": sparse_sums.ALL,
}  # the first is what is measured by default
BY_NAME = {workload.name: workload for suite in SUITES.values() for workload in suite}
SMALLEST = Row(BY_NAME["matmul_64"], "float32", quick=True)


def rows(quick: bool, suite: str = "") -> list[Row]:
    """Every workload at every type that it is measured in."""
    return [Row(workload, dtype, quick) for workload in SUITES[suite] for dtype in workload.dtypes]


def row(name: str, dtype: str, quick: bool) -> Row:
    return Row(BY_NAME[name], dtype, quick)
