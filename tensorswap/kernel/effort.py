"""How much LLVM does for a function: most of its time goes into code that would run as fast without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from . import ir
from .common import common
from .lanes import Loop, fitting, jumps, loops_of

NEAR = 60  # parts of a step of a recurrence that takes little longer than its call


class Effort(Enum):
    """How much LLVM does for a module; its mark. Functions call those of modules that stand before theirs."""

    COMMON = "tensorswap.common"  # little, for functions in vectors that other kernels will call too
    DOTS = "tensorswap.dots"  # all that it can, for those that add up along vectors: else it copies registers in them
    VECTORS = "tensorswap.vectors"  # little, for loops over elements that are written in vectors
    LOOPS = "tensorswap.loops"  # all that it can, for loops over elements
    PROMPT = "tensorswap.prompt"  # little, for calls, and for threads that wait for work: they should answer at once
    PLACES = "tensorswap.places"  # little, for loops that compute places and call functions, which take far longer
    ONCE = "tensorswap.once"  # what runs once for many others: it compiles as fast as it can


def mark(module: Any, effort: Effort) -> None:
    """Tells the effort of a module, which its text will show."""
    module.add_named_metadata(effort.value)


def effort_of(text: str) -> Effort:
    """Of the text of a module, by its mark."""
    return next((effort for effort in Effort if f"!{effort.value} = " in text), Effort.LOOPS)


def effort_for_common(node: ir.TileCall | ir.Copy) -> Effort:
    """What LLVM has to do for a function that kernels share."""
    return Effort.DOTS if isinstance(node, ir.TileCall) and node.tile.form == "dot" else Effort.COMMON


@dataclass(frozen=True)
class Judged:
    """What LLVM has to do for a function, and its loops that are written in vectors, by their identity."""

    effort: Effort
    loops: Mapping[int, Loop] = field(default_factory=dict)


def judged(body: ir.Body, apart: bool = False) -> Judged:
    """Of a function, no two memories of which share numbers if they are `apart`. Loops over elements that stand beside
    steps become functions."""
    statements = list(ir.statements(body))
    if any(isinstance(n, ir.Serve) for n in statements):
        return Judged(Effort.PROMPT)
    if any(isinstance(n, ir.Step) for n in statements):
        return Judged(Effort.LOOPS if any(isinstance(n, ir.For) and n.often for n in statements) else Effort.ONCE)
    if not any(_is_work(n) for n in statements):
        return Judged(Effort.PLACES)
    if not apart and len({n.name for n in ir.walk(body) if isinstance(n, ir.Memory)}) > 1:
        return Judged(Effort.LOOPS)
    if any(isinstance(n, ir.While | ir.Hold) or _adds_along_vectors(n) for n in statements):
        return Judged(Effort.LOOPS)
    found = fitting(body)
    all_fit = all(id(loop) in found or jumps(loop) for loop in loops_of(body))
    return Judged(Effort.VECTORS, found) if all_fit else Judged(Effort.LOOPS)


def _adds_along_vectors(node: ir.Statement) -> bool:
    return isinstance(node, ir.TileCall) and node.tile.form == "dot" and common(node) is None


def is_work_alone(node: ir.For) -> bool:
    """Whether a loop is over elements, and leaves nothing behind that code after it could name."""
    inside = list(ir.statements(node.body))
    leaves = any(isinstance(n, ir.Set | ir.Choose | ir.Point | ir.Hold | ir.Step) for n in inside)
    return not leaves and any(_is_work(n) for n in inside)


def is_short(body: ir.Body) -> bool:
    return sum(1 for _ in ir.walk(body)) < NEAR


def _is_work(node: ir.Statement) -> bool:
    match node:
        case ir.Set(variable=ir.Variable(type=type)):
            return type.real
        case ir.TileCall() | ir.Copy():
            return common(node) is None
        case _:
            return isinstance(node, ir.Store | ir.While)
