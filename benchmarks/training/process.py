"""The parent's side of a worker of this folder."""

from __future__ import annotations

from harness.peers import Peer
from harness.process import Worker

PEERS = {
    peer.name: peer
    for peer in (
        Peer("tensorswap", "ts.fit", "run_tensorswap", "tensorswap"),
        Peer("numpy", "numpy", "run_numpy", "numpy"),
        Peer("jax", "JAX, each step", "run_jax", "jax"),
        Peer("jax_scan", "JAX, scan", "run_jax_scan", "jax"),
        Peer("torch", "PyTorch", "run_torch", "torch"),
    )
}
OURS, REFERENCE = "tensorswap", "numpy"


class TrainingWorker(Worker):
    """As in the other benchmarks, save for what runs in it."""

    module = "training.worker"
