"""The problems of GradBench as texts, with its inputs and outputs, and a twin of each in JAX, PyTorch and C."""

from __future__ import annotations

from harness.workload import Workload

from . import ba, det, gmm, ht, kmeans, llsq, lse, lstm, ode, particle, saddle

ALL: tuple[Workload, ...] = (
    *gmm.WORKLOADS,
    *lstm.WORKLOADS,
    *ht.WORKLOADS,
    *ba.WORKLOADS,
    *kmeans.WORKLOADS,
    *ode.WORKLOADS,
    *lse.WORKLOADS,
    *llsq.WORKLOADS,
    *det.WORKLOADS,
    *particle.WORKLOADS,
    *saddle.WORKLOADS,
)
