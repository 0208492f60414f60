"""Models of research as their papers write them, each with its twin in JAX. The order here is that of the table."""

from __future__ import annotations

from harness.workload import Workload

from . import (
    gaussian_process,
    graph_attention,
    hidden_markov,
    kalman_filter,
    lattice_boltzmann,
    mixture_of_experts,
    n_body,
    physics_informed,
    quantum_circuit,
    random_field,
    selective_scan,
    sinkhorn,
    smith_waterman,
    unet_block,
    variational_autoencoder,
    vision_transformer,
    volume_rendering,
)

ALL: tuple[Workload, ...] = (
    selective_scan.WORKLOAD,
    mixture_of_experts.WORKLOAD,
    *random_field.WORKLOADS,
    hidden_markov.WORKLOAD,
    smith_waterman.WORKLOAD,
    n_body.WORKLOAD,
    lattice_boltzmann.WORKLOAD,
    kalman_filter.WORKLOAD,
    gaussian_process.WORKLOAD,
    volume_rendering.WORKLOAD,
    graph_attention.WORKLOAD,
    sinkhorn.WORKLOAD,
    quantum_circuit.WORKLOAD,
    unet_block.WORKLOAD,
    vision_transformer.WORKLOAD,
    variational_autoencoder.WORKLOAD,
    physics_informed.WORKLOAD,
)
