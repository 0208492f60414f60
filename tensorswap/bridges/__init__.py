"""Bridges: programs as operators of other frameworks, which keep the rest of a model.

derived       the programs that a framework asks for (derivatives, batches), by a text that names them
pytorch       ts.torch: operators of torch.library
jax_arrays    ts.jax: a primitive with rules for every transformation

Neither framework is imported before its bridge is asked for.
"""

from __future__ import annotations

from typing import Any

from ..errors import PackageError

PACKAGES = {"torch": "PyTorch", "jax": "JAX"}


def __getattr__(name: str) -> Any:
    """`torch` or `jax`."""
    if name not in PACKAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name == "torch":
            from .pytorch.torch_bridge import torch_bridge

            return torch_bridge
        from .jax_arrays.jax_program import jax_bridge

        return jax_bridge
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("torch", "jax", "jaxlib"):
            raise
        raise PackageError(
            f"ts.{name} needs {PACKAGES[name]}, which cannot be imported here: {error}",
            hint=f'pip install "tensorswap[{name}]"',
        ) from error
