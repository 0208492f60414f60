"""The table of peers: what is compared, and with which interpreter each one runs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One library, or one way to use it."""

    name: str
    label: str
    runner: str  # the module in harness.runners that works with it
    library: str  # what must be importable
    default: bool = True  # whether it takes part without being named

    @property
    def interpreter(self) -> str:
        """This interpreter, unless a variable such as TENSORSWAP_BENCH_TORCH_PYTHON names another."""
        return os.environ.get(f"TENSORSWAP_BENCH_{self.library.upper()}_PYTHON", sys.executable)


OURS = "tensorswap"
REFERENCE = "numpy"

PEERS = {
    peer.name: peer
    for peer in (
        Peer("tensorswap", "tensorswap", "tensorswap_program", "tensorswap"),
        Peer("interpreter", "tensorswap, interpreted", "tensorswap_program", "tensorswap", default=False),
        Peer("numpy", "numpy", "numpy_twin", "numpy"),
        Peer("einsum", "numpy einsum", "contraction", "numpy"),
        Peer("opt_einsum", "opt_einsum", "contraction", "opt_einsum"),
        Peer("jax", "jax.jit", "jax_jit", "jax"),
        Peer("torch", "torch", "torch_autograd", "torch"),
        Peer("torch_compile", "torch.compile", "torch_autograd", "torch"),
        Peer("c", "plain C", "c_twin", "c", default=False),
    )
}
