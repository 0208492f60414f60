"""A call's options -> static integers: `stride=2` and `stride=(2, 1)` are `stride_h` and `stride_w`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from . import ir


def each_part(loops: ir.Loops, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with the parts of an option in its place. A part that is given by its own name is that number."""
    if not any(name in arguments for name in loops.options):
        return arguments
    found: dict[str, Any] = {}
    for name, parts in loops.options.items():
        if name in arguments:
            found |= zip(parts, _numbers(name, parts, arguments[name]), strict=True)
    return {**found, **{name: value for name, value in arguments.items() if name not in loops.options}}


def _numbers(name: str, parts: tuple[str, ...], value: Any) -> list[Any]:
    if not isinstance(value, tuple | list) and not (isinstance(value, np.ndarray) and value.ndim):
        return [value] * len(parts)
    if len(value) != len(parts):
        raise ArgumentError(
            f"{name} is one number, or one for each of {', '.join(parts)}, not {len(value)}",
            hint=f"pass {name}=1 or {name}=({', '.join('1' for _ in parts)})",
        )
    return list(value)
