"""Numbers that a caller gives: whole or positive, finite, and told by their name if they are not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from . import ir
from .options import each_part


def real(name: str, value: Any) -> float:
    """A finite number, as a plain float."""
    if not isinstance(value, bool | np.bool_) and isinstance(value, int | float | np.integer | np.floating):
        try:
            if math.isfinite(number := float(value)):
                return number
        except OverflowError:  # a whole number beyond all floats
            pass
    raise ArgumentError(f"{name} is a finite number, not {shown(value)}")


def positive(name: str, value: Any, hint: str = "") -> float:
    try:
        number = real(name, value)
    except ArgumentError:
        number = 0.0
    if not number > 0:
        raise ArgumentError(f"{name} is a positive number, not {shown(value)}", hint=hint or f"{name}=0.001")
    return number


def whole(name: str, value: Any, least: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or (least is not None and value < least):
        of = "" if least is None else f" of {least} or more"
        hint = f"{name}={max(least or 0, 1)}" if name.isidentifier() else ""
        raise ArgumentError(f"{name} is a whole number{of}, not {shown(value)}", hint=hint)
    return int(value)


def truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} is True or False, not {shown(value)}", hint=f"{name}=True")
    return bool(value)


def counts(name: str, given: Any, loops: ir.Loops | None = None) -> dict[str, int]:
    """Whole numbers by name; those of the parts of a program's options."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ArgumentError(
            f"{name} is a dict of whole numbers by name, not {shown(given)}", hint=f'{name}={{"h": 128}}'
        )
    parts = given if loops is None else each_part(loops, given)
    return {key: whole(f"{name}[{key[:80]!r}]", value, 0) for key, value in parts.items()}


def shown(value: Any) -> str:
    """A value in a message; a hostile one must not make a hostile message."""
    try:
        return repr(value)[:80]
    except Exception:  # whatever a foreign __repr__ raises
        return f"an object of type {type(value).__name__[:80]}"
