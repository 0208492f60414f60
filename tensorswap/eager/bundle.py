"""Several results of one computation: each leaves its gradient, and a tensor behind them all goes back once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .make import derived
from .tensor import Pull, Tensor

Key = TypeVar("Key")


def bundle(
    results: Mapping[Key, Any], parents: tuple[Tensor, ...], back: Callable[[Mapping[Key, Any]], Sequence[Any]]
) -> dict[Key, Tensor]:
    """The results as tensors. `back` is given the gradients of those that have one."""
    if len(results) == 1:
        ((key, value),) = results.items()
        return {key: derived(value, parents, lambda g: back({key: g}))}
    seeds: dict[Key, Any] = {}

    def leave(key: Key) -> Pull:
        def pull(g: Any) -> tuple[float]:
            seeds[key] = g
            return (0.0,)

        return pull

    behind = derived(np.float64(0), parents, lambda g: back(seeds))
    return {key: derived(value, (behind,), leave(key)) for key, value in results.items()}
