"""Shortcut: an einsum like the last one with the same text goes straight to its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .recipe import Recipe

TEXTS = 1024  # with a shortcut

Way = Callable[..., Any]

_known: dict[str, tuple[Recipe, tuple[str, ...], Way]] = {}  # by texts


def taken(operands: tuple[Any, ...]) -> Any:
    """The result, or None if the operands are not of the kind of the last ones."""
    found = _known.get(operands[0]) if operands and type(operands[0]) is str else None
    if found is None or len(operands) != len(found[1]) + 1:
        return None
    result = found[2](dict(zip(found[1], operands[1:])))  # noqa: B905  there are as many
    return result if result is None or result.ndim else result[()]


def remember(text: Any, made: Recipe) -> None:
    """Takes the next calls of a text, if what the program gives is the result as it is."""
    if type(text) is not str or (text in _known and _known[text][0] is made):
        return
    plain = made.dtype.name in ("float32", "float64") and made.back is None and not (made.casts or made.is_view)
    way = made.program.direct_or_nothing() if plain else None
    if way is not None:
        if len(_known) >= TEXTS:
            _known.clear()
        _known[text] = made, made.names, way
