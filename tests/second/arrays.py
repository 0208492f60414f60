"""What a written program has so far: arrays, and texts that read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    extent: int
    index: str | None = None  # the index that usually stands there


@dataclass
class Array:
    name: str
    axes: tuple[Axis, ...]
    family: str = "float"
    written: bool = False
    bound: int = 0  # of positions: all are below
    batch: bool = False
    positive: bool = False


Leaf = tuple[str, frozenset[str]]  # a text and the indices in it
