"""First values of parameters: arrays as they are, or drawn as a word says, with the spread that the program needs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, DtypeError, ShapeError, SwapError
from ..language import ir
from ..language.given_numbers import shown, whole
from ..language.hints import closest
from ..language.sizes import bare_uses
from ..run.arguments import BYTES
from .mapped import private

AXES = 32
WORDS = ("he", "xavier", "normal", "uniform", "zeros", "ones")


def flattened(params: Any, prefix: str = "") -> dict[str, Any]:
    """A nested dict as one: the W of "first" is first_W."""
    if not isinstance(params, Mapping):
        raise ArgumentError("params is a dict of arrays by name", hint='{"W": np.zeros((3, 4)), "b": "zeros"}')
    found: dict[str, Any] = {}
    for name, value in params.items():
        if not isinstance(name, str):
            raise ArgumentError(f"params has the name {shown(name)}", hint="names are texts")
        parts = flattened(value, f"{prefix}{name}_") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
        twice = next((own for own in parts if own in found), None)
        if twice is not None:
            raise ArgumentError(f"params gives {twice} twice", hint="the W of {'a': {'W': ...}} is a_W")
        found |= parts
    return found


def index_sizes(loops: ir.Loops, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]) -> dict[str, int]:
    """The size of every index that stands bare on a tensor of known shape."""
    found = {name: size for name, size in sizes.items() if name in loops.indices}
    for use in bare_uses(loops):
        shape = shapes.get(use.tensor)
        if shape is not None and use.axis < len(shape):
            size = found.setdefault(use.index, shape[use.axis])
            fitting = len(shape) == loops.ranks.get(use.tensor, len(shape))
            if use.index in sizes and fitting and size != shape[use.axis]:
                raise ShapeError(
                    f"sizes says that {use.index} is {size}, axis {use.axis} of {use.tensor} has {shape[use.axis]}",
                    hint=f"leave {use.index} out of sizes: the arrays tell it",
                )
    return found


def drawn(
    loops: ir.Loops, params: Mapping[str, Any], known: Mapping[str, int], seed: int, dtype: np.dtype[Any]
) -> dict[str, Array]:
    """Arrays for all parameters. Each has a random stream of its own, so that a new one changes no other."""
    made: dict[str, Array] = {}
    for name, value in params.items():
        word, shape = value if isinstance(value, tuple) and is_word(value) else (value, None)
        if not isinstance(word, str):
            made[name] = own_array(name, value).astype(dtype)
            continue
        if word not in WORDS:
            raise ArgumentError(
                f"the parameter {name} starts as {word[:80]!r}, which is no known way",
                hint=closest(word, WORDS, "use an array, or one of"),
            )
        shape = _shape(loops, name, known) if shape is None else _given_shape(name, shape)
        generator = np.random.default_rng([zlib.crc32(name.encode()), seed & (2**64 - 1)])
        rank = loops.ranks.get(name, len(shape))
        if rank != len(shape):
            raise ShapeError(f"the parameter {name} has {len(shape)} axes, the program reads {rank}")
        if math.prod(shape) * dtype.itemsize >= BYTES:
            raise ShapeError(f"the parameter {name} would have the shape {shape}, more than any memory holds")
        made[name] = _filled(word, shape, fans(loops, name, shape), generator).astype(dtype)
    return made


def is_word(value: Any) -> bool:
    """Whether a parameter is given by a word for how it starts, perhaps with a shape."""
    return isinstance(value, str) or (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str))


def own_array(name: str, value: Any) -> Array:
    """The caller's array, as a copy that may change."""
    try:
        array = np.array(private(name, value), order="C")
    except SwapError:
        raise
    except Exception as error:  # whatever numpy or a foreign type raises
        raise DtypeError(
            f"the parameter {name} cannot be read as an array: {str(error)[:200]}", hint="pass an array of numbers"
        ) from error
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"the parameter {name} has dtype {array.dtype}", hint="parameters are float32 or float64")
    return array


def _given_shape(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple | list) or len(shape) > AXES:
        raise ShapeError(f"the shape of {name} is {shown(shape)}", hint=f'give it as {name}=("he", (64, 32))')
    return tuple(whole(f"axis {k} of {name}", n, 0) for k, n in enumerate(shape))


def _filled(word: str, shape: tuple[int, ...], fan: tuple[int, int], generator: np.random.Generator) -> Array:
    if word in ("zeros", "ones"):
        return np.full(shape, float(word == "ones"))
    if word == "uniform":
        return generator.uniform(-1, 1, shape) / math.sqrt(max(fan[0], 1))
    spread = {"he": 2 / max(fan[0], 1), "xavier": 2 / max(sum(fan), 1), "normal": 0.02**2}[word]
    return np.asarray(generator.standard_normal(shape) * math.sqrt(spread))


def _pattern(loops: ir.Loops, name: str) -> tuple[ir.Access, ir.Statement | None] | None:
    """How a tensor is first read, or stands in its header, with plain indices."""
    accesses: list[tuple[ir.Access, ir.Statement | None]] = [(a, s) for s in loops.statements for a in s.reads]
    accesses += [(a, None) for a in loops.header_accesses]
    return next(
        ((a, s) for a, s in accesses if a.tensor == name and all(isinstance(e, ir.Index) for e in a.indices)), None
    )


def _shape(loops: ir.Loops, name: str, known: Mapping[str, int]) -> tuple[int, ...]:
    own = next(((a, None) for a in loops.header_accesses if a.tensor == name), None)
    found = own or _pattern(loops, name)
    if found is None:
        raise ArgumentError(
            f"the shape of {name} cannot be read off the program", hint=f'give it: {name}=("he", (64, 32))'
        )
    names = [ir.bare(e) or "" for e in found[0].indices]
    missing = [i for i in names if i not in known]
    if missing:
        raise ArgumentError(
            f"the size of index {missing[0]} of {name} is not known",
            hint=f'give it, sizes={{"{missing[0]}": 128}}, or the shape, {name}=("he", (...))',
        )
    return tuple(known[i] for i in names)


def fans(loops: ir.Loops, name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """How many values go into an element that the tensor makes, and how many elements each value goes into."""
    access, statement = _pattern(loops, name) or (None, None)
    if access is None or statement is None:
        return math.prod(shape[1:]), shape[0] if shape else 1
    kept = ir.index_names(statement.target)
    into = [n for e, n in zip(access.indices, shape, strict=True) if ir.bare(e) not in kept]
    out = [n for e, n in zip(access.indices, shape, strict=True) if ir.bare(e) in kept]
    return math.prod(into), math.prod(out)
