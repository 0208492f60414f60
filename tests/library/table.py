"""A row of the table, and what the text of a case means.

A case is one line: `input:2,3,7,6 weight:4,3,3,2 bias:4 stride=2 eps=0.1`. `name:shape` is an array, `name=number` an
option; `name:` alone is a scalar (0-d). A letter behind the shape says what is in the array:

    (none)  normal numbers                          p   between 0.05 and 0.95
    a       away from 0: 0.25 or more, both signs   s   -1 or 1
    +       positive, 0.25 or more                  b   0 or 1, as floats
    u       all different (no ties)                 t   few values (ties)
    h       not whole, not half: nowhere near n/2   d   each row (last axis) sums to 1
    i4      integers from 0 to 3                    i-2:4  integers from -2 to 3
    w4      integers from 0 to 3, all different     o4  the same, in ascending order, repeats allowed
    n3      3 times normal numbers (any number)     c   positive and ascending along the last axis

`name=[1,0,2]` gives an array of integers as it is, `name=[[0.5,1.0]]` one of floats.
"""

from __future__ import annotations

import ast
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Op:
    """An op of the library, PyTorch's way to say it, and the cases to compare them in.

    The oracle is an expression over the case's inputs and options (those left out have their default, an optional
    tensor None), `torch`, `F`, and the functions of reference.py as `R`. Several outputs are a tuple, in their order.
    """

    name: str
    oracle: str
    cases: tuple[str, ...]
    smooth: bool = True  # whether second derivatives are compared too
    fixed: tuple[str, ...] = ()  # floating-point inputs that have no gradient in PyTorch
    thnn: tuple[str, ...] = ()  # the files of the C library that it stands for
    note: str = ""  # why the oracle is another than the PyTorch function of that name
    speed: str = ""  # a case of a size that users have, for the benchmark


def options_of(case: str) -> dict[str, Any]:
    """The numbers of a case."""
    found = {}
    for word in case.split():
        name, equals, value = word.partition("=")
        if equals and ":" not in name and not value.startswith("["):
            found[name] = float(value) if value.endswith("inf") else ast.literal_eval(value)
    return found


def arrays_of(op: str, case: str) -> dict[str, Array]:
    """The arrays of a case, the same each time. Each case has a seed of its own, so that a new one changes no other."""
    generator = np.random.default_rng(zlib.crc32(f"{op} {case}".encode()))
    found = {}
    for word in case.split():
        name, colon, rest = word.partition(":")
        if "=" in name:
            name, _, value = word.partition("=")
            if value.startswith("["):
                found[name] = np.array(ast.literal_eval(value))
        elif colon:
            found[name] = _filled(generator, rest)
    return found


def _filled(generator: np.random.Generator, text: str) -> Array:
    match = re.fullmatch(r"([\d,]*)([a-z+]?)(-?[\d.]*)(?::(\d+))?", text)
    assert match, f"{text!r} is no shape"
    shape = tuple(int(n) for n in match[1].split(",") if n)
    kind, number, end = match[2], match[3], match[4]
    normal = np.round(generator.standard_normal(shape) * 256) / 256
    uniform = generator.random(shape)
    if kind in ("i", "w", "o"):
        low, high = (int(number), int(end)) if end else (0, int(number))
        if kind == "w":
            return np.asarray(low + generator.permutation(high - low)[: normal.size].reshape(shape))
        drawn = generator.integers(low, high, shape)
        return np.sort(drawn, axis=-1) if kind == "o" else np.asarray(drawn)
    values: dict[str, Any] = {
        "": normal,
        "n": float(number or 1) * normal,
        "a": np.copysign(np.abs(normal) + 0.25, normal),
        "+": np.abs(normal) + 0.25,
        "p": np.round(0.05 + 0.9 * uniform, 4),
        "s": np.where(uniform < 0.5, -1.0, 1.0),
        "b": np.where(uniform < 0.5, 0.0, 1.0),
        "u": generator.permutation(normal.size).reshape(shape) / 16 - normal.size / 32,
        "t": np.round(2 * normal) / 2,
        "h": np.round(4 * normal) / 2 + 0.25 + 0.1 * (uniform - 0.5),
        "c": np.cumsum(np.abs(normal) + 0.25, axis=-1) if shape else normal,
    }
    if kind == "d":
        positive = np.abs(normal) + 0.25
        return np.asarray(positive / positive.sum(-1, keepdims=True))
    return np.asarray(values[kind], dtype=np.float64)
