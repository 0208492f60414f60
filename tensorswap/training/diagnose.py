"""Diagnose: where the first number that is none appeared in a training step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NumberError
from ..program import Program


def first_nan(program: Program, arguments: Mapping[str, Any]) -> str:
    """The element, the statement and the operation where NaN or infinity first appears, in words."""
    try:
        program._for_call(arguments)._looked_at(arguments, nan=True, bounds=False)
    except NumberError as error:
        return error.faults[0].message
    return "the interpreter finds all values finite: the step lies at the edge of what the type can hold"
