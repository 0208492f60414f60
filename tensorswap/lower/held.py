"""What a function holds in registers: elements of a tensor in memory of its own, of which LLVM makes registers, as it
does where nobody else sees them. A tensor's own memory others may see, so each step would store and load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..kernel.ir import ONE, WORD, ZERO, For, Hold, Load, Memory, Statement, Store, Value, Variable, word
from .layout import Cut, Layout, Tensor


@dataclass(frozen=True)
class Held:
    """Elements of a tensor that lie side by side: all that its accesses mean, or those of a cut along an axis."""

    tensor: str
    memory: Memory
    elements: int
    place: Value = ZERO  # of the first one in the tensor's memory
    cut: tuple[int, Cut] | None = None
    at_once: tuple[int, int] | None = None  # lanes and vectors of copies; elsewhere they are written out

    @property
    def declared(self) -> Statement:
        return Hold(self.memory, self.elements)

    def loaded(self, whole: Memory) -> Statement:
        lane = Variable("lane", WORD)
        return self._each(lane, Store(self.memory, lane, Load(whole, self.place + lane)))

    def stored(self, whole: Memory) -> Statement:
        lane = Variable("lane", WORD)
        return self._each(lane, Store(whole, self.place + lane, Load(self.memory, lane)))

    def _each(self, lane: Variable, copied: Statement) -> Statement:
        few = self.at_once is None
        return For(lane, ZERO, word(self.elements), ONE, (copied,), at_once=self.at_once, few=few)


@contextmanager
def in_place(held: Sequence[Held], layout: Layout) -> Iterator[None]:
    """While accesses go to what is held."""
    before: dict[Tensor, Memory] = {one.tensor: layout.tensor(one.tensor) for one in held}
    cuts = layout.cuts
    layout.tensors |= {one.tensor: one.memory for one in held}
    within = {one.tensor: {**cuts.get(one.tensor, {}), one.cut[0]: one.cut[1]} for one in held if one.cut is not None}
    layout.cuts = {**cuts, **within}
    try:
        yield
    finally:
        layout.cuts = cuts
        layout.tensors |= before  # and those that were named meanwhile
