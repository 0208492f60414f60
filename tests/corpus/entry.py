"""One program of the corpus: its text, inputs, and the same function in JAX."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = dict[str, Any]  # arrays, and plain integers for statics, sizes and seeds
Reference = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Entry:
    """`reference` gives an array, or a dict by output name where the program has several outputs."""

    name: str
    text: str
    wrt: tuple[str, ...]
    inputs: Callable[[np.random.Generator], Inputs]
    reference: Reference
    second_order: bool


def example(
    text: str, *, wrt: str, inputs: Callable[[np.random.Generator], Inputs], second_order: bool = False
) -> Callable[[Reference], Entry]:
    """Turns a JAX function into an entry of the same name. `wrt` names inputs, separated by spaces."""

    def entry(reference: Reference) -> Entry:
        program = dedent(text).strip() + "\n"
        return Entry(reference.__name__, program, tuple(wrt.split()), inputs, reference, second_order)

    return entry


def normal(g: np.random.Generator, /, **shapes: int | tuple[int, ...]) -> Inputs:
    """Standard normal arrays of the shapes given; the shape () is a scalar."""
    return {name: np.asarray(g.standard_normal(shape)) for name, shape in shapes.items()}


def positive(g: np.random.Generator, /, **shapes: int | tuple[int, ...]) -> Inputs:
    """Arrays with elements in [0.5, 1.5)."""
    return {name: np.asarray(g.uniform(0.5, 1.5, shape)) for name, shape in shapes.items()}


class Lazy:
    """A module that is imported when it is first used, so that the corpus can be read without JAX."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


jnp = Lazy("jax.numpy")
lax = Lazy("jax.lax")
nn = Lazy("jax.nn")
special = Lazy("jax.scipy.special")
