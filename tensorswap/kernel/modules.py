"""Which module of LLVM a function goes to: modules are what cores compile side by side, and each costs time of its own.

Functions of several kernels share modules, if LLVM has as much to do for them. Those that do the same are written once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from .. import assembly as llvm
from .effort import Effort, mark

# Instructions of a module that is long enough: what it costs beside them is a tenth of their time or less.
UNIT = {
    Effort.COMMON: 600, Effort.DOTS: 300, Effort.VECTORS: 500,
    Effort.LOOPS: 200, Effort.PROMPT: 600, Effort.PLACES: 1200, Effort.ONCE: 1200,
}  # fmt: skip
# A quotient or a root by an estimate that is refined: of zeros, infinities and the smallest numbers it is NaN.
EXACT_QUOTIENTS = '"reciprocal-estimates"="none"'
FIRST = 60  # of the first with loops, and twice as many of the second: a core that waits for work costs more
MORE = 1500  # that it may have above, of functions that should be near each other


@dataclass(frozen=True)
class Target:
    """What modules are for: a machine, and a way to optimise."""

    triple: str
    layout: str
    way: str


class Function(llvm.Function):
    """A function whose text is made once, when it is written to its end."""

    @cached_property
    def text(self) -> str:
        return str(super().__str__())

    @property
    def meaning(self) -> str:
        """All but its name."""
        return self.text[self.text.index("(") :]

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class Unit:
    """A module: how many instructions it has room for, and how many functions are begun and not ended."""

    effort: Effort
    module: Any
    room: int
    begun: int = 0


class Modules:
    """Those of kernels that are compiled together."""

    def __init__(
        self,
        name: str,
        target: Target,
        take: Callable[[str, str], None],
        linked: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    ) -> None:
        """`take` takes a module as soon as it is full: the name that its object will have, and its text. `linked` has
        functions that are in memory already, by their meaning: symbol and object."""
        self.name = name
        self.target = target
        self.take = take
        self.linked = linked
        self.open: dict[str, Unit] = {}  # by the names of objects
        self.last: dict[Effort, Unit] = {}
        self.taken = 0
        self.loops = 0  # modules with loops
        self.functions: dict[tuple[Effort, str], Function] = {}  # by their meaning
        self.common: dict[str, tuple[str, str]] = {}  # the like of `linked`, written here
        self.needed: dict[str, None] = {}  # objects in memory that are called
        self.count = 0

    def next(self) -> str:
        """The name of a kernel, or of a function that is not the step of one."""
        self.count += 1
        return f"{self.name}_{self.count}"

    def begin(self, effort: Effort, kind: Any, name: str, near: Any = None) -> Function:
        """A new function, in a module with room for it, or, if that is not much too long, in the one of a function that
        it should be near."""
        unit = self.last.get(effort)
        if near is not None and self.open[near.name].room > -MORE:
            unit = self.open[near.name]
        elif unit is not None and unit.room < 0:
            unit = None
        if unit is None:
            module = llvm.Module(f"{self.name}.{self.taken + len(self.open)}")
            module.triple, module.data_layout = self.target.triple, self.target.layout
            mark(module, effort)
            unit = self.last[effort] = self.open[module.name] = Unit(effort, module, self._next_room(effort))
        unit.begun += 1
        function = Function(unit.module, kind, name)
        function.attributes.add(EXACT_QUOTIENTS)
        return function

    def _next_room(self, effort: Effort) -> int:
        if effort is not Effort.LOOPS:
            return UNIT[effort]
        self.loops += 1
        return min(UNIT[effort], FIRST * self.loops)

    def end(self, function: Function) -> Function:
        """A function that is written to its end, or an earlier one that does the same: layers and heads have many."""
        name = function.module.name
        unit = self.open[name]
        unit.begun -= 1
        same = self.functions.setdefault((unit.effort, function.meaning), function)
        if same is function:
            unit.room -= sum(len(block.instructions) for block in function.blocks)
        else:
            del function.module.globals[function.symbol]
        if unit.room < 0 and not unit.begun:
            self._give(name)
        return same

    def finish(self) -> None:
        """Nothing more will be written. What takes longest begins first, so that cores end together."""
        for name in sorted(self.open, key=lambda name: self.open[name].room / UNIT[self.open[name].effort]):
            self._give(name)

    def _give(self, name: str) -> None:
        unit = self.open.pop(name)
        self.taken += 1
        if any(function.blocks for function in unit.module.functions):
            self.take(name, str(unit.module))

    def shared(self, meaning: str, write: Callable[[str], Function]) -> str:
        """The symbol of a function that kernels have in common, which `write` writes under a name."""
        known = hashlib.sha256(f"{self.target} {meaning}".encode()).hexdigest()
        if known in self.linked:
            symbol, name = self.linked[known]
            self.needed[name] = None
            return symbol
        if known not in self.common:
            function = self.end(write(self.next()))
            self.common[known] = function.symbol, function.module.name
        return self.common[known][0]
