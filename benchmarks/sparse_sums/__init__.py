"""Sparse and ragged sums: guards that bound an index by values, and places that are read from an array.

The twin in numpy is scipy's, where it has one."""

from __future__ import annotations

from harness.workload import Workload
from models import graph_attention

from . import block_attention, csr, ragged_attention, segments

ALL: tuple[Workload, ...] = (
    *csr.WORKLOADS,
    segments.WORKLOAD,
    ragged_attention.WORKLOAD,
    block_attention.WORKLOAD,
    graph_attention.WORKLOAD,
)
