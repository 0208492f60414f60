"""States: what the shards of a program hold of each tensor when it is cut along an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..language import ir
from ..language.sizes import Sizes
from ..language.types import Types


@dataclass(frozen=True)
class Whole:
    """All of it, the same for every shard."""


@dataclass(frozen=True)
class Cut:
    """The part of its own positions, along one axis; and `more` places that it has from others."""

    axis: int
    more: int = 0


@dataclass(frozen=True)
class Partial:
    """A reduction over its own points, which the operator joins with those of the other shards."""

    operator: str  # += *= max= min= argmax= argmin=


State = Whole | Cut | Partial
WHOLE = Whole()


@dataclass(frozen=True)
class Stage:
    """What runs between two meetings of the shards: a program that runs once, then one that runs for every shard."""

    once: tuple[ir.Item, ...] = ()
    from_once: tuple[str, ...] = ()  # what others need of it
    shard: tuple[ir.Item, ...] = ()
    from_shards: tuple[str, ...] = ()


@dataclass(frozen=True)
class Division:
    """A program cut along an index: its statements with numbers for sizes, sorted into stages.

    `best` names the values that stand at the positions of an argmax= or argmin= over the index. `also_once` are partial
    tensors that statements without the index contribute to as well, once.
    """

    index: str
    sizes: Sizes
    types: Types
    states: Mapping[str, State]
    stages: tuple[Stage, ...]
    outputs: Mapping[str, str]  # the tensor that holds each output
    statements: Mapping[str, tuple[ir.Statement, ...]]  # those that write each tensor
    best: Mapping[str, str] = field(default_factory=dict)
    also_once: frozenset[str] = frozenset()

    @property
    def extent(self) -> int:
        return self.sizes.index[self.index]

    @property
    def cut_outputs(self) -> dict[str, int]:
        """The outputs that are put together of parts, each with its axis."""
        found = {name: self.states[tensor] for name, tensor in self.outputs.items() if tensor in self.states}
        return {name: state.axis for name, state in found.items() if isinstance(state, Cut)}
