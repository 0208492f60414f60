"""Functions that kernels have in common: a register tile or a copy into panels, with what differs from call to call as
its arguments. Each is compiled once, whoever calls it."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from . import ir

NEXT = 0, 1  # how far apart numbers are that are the same, or side by side
SMALL = 16  # steps of a loop that runs faster if their number is known
SHORT = 48  # steps of a sum, or of a copy, that take no longer than a call


@dataclass(frozen=True)
class Common:
    """A call of such a function. Its statement is in terms of parameters, and its name says all about it."""

    name: str
    statement: ir.TileCall | ir.Copy
    memories: tuple[ir.Memory, ...]  # parameters, and where the memory of each begins
    places: tuple[tuple[ir.Memory, ir.Value], ...]
    variables: tuple[ir.Variable, ...]  # parameters, and their values
    values: tuple[ir.Value, ...]


class Parameters:
    """The values that a function takes, and the constants that it is made for."""

    def __init__(self) -> None:
        self.variables: list[ir.Variable] = []
        self.values: list[ir.Value] = []
        self.words: list[str] = []

    def take(self, value: ir.Value, kept: Container[float] | None = None) -> ir.Value:
        """The value itself if it is a constant, one of those that are `kept` if there are some; or a parameter."""
        if isinstance(value, ir.Number) and (kept is None or value.value in kept):
            self.words.append(str(value.value))
            return value
        self.words.append("?")
        self.values.append(value)
        self.variables.append(ir.Variable(f"value{len(self.values)}", value.type))
        return self.variables[-1]

    def common(self, name: str, node: ir.TileCall | ir.Copy, at: dict[ir.Memory, tuple[ir.Memory, ir.Value]]) -> Common:
        words = " ".join((name, *self.words))
        return Common(words, node, tuple(at), tuple(at.values()), tuple(self.variables), tuple(self.values))


def common(node: ir.TileCall | ir.Copy) -> Common | None:
    """The call that a statement comes to; None if it is too short for one."""
    match node:
        case ir.TileCall():
            return _tile(node)
        case ir.Turn():
            return _turn(node)
        case ir.Lay():
            return _lay(node)
    raise AssertionError(f"no function for {type(node).__name__}")


def _tile(node: ir.TileCall) -> Common | None:
    """Strides that are known stay so, where CPUs would take longer to find each number: those of rows, and of loops in
    loops. A loop alone goes on by its strides, known or not, and what a tile makes it writes once."""
    if _are_few(count for count, _, _ in node.loops):
        return None
    given = Parameters()
    at: dict[ir.Memory, tuple[ir.Memory, ir.Value]] = {}

    def panel(name: str, old: ir.Panel) -> ir.Panel:
        memory = ir.Memory(name, old.memory.type)
        at[memory] = old.memory, old.at
        return ir.Panel(memory, ir.ZERO, given.take(old.row, () if name == "y" else None), given.take(old.column))

    a, b, y = panel("a", node.a), panel("b", node.b), panel("y", node.y)
    short = any(ir.constant(count) in range(2, SMALL) for count, _, _ in node.loops)
    near = None if short else NEXT
    loops = tuple(
        (given.take(count, range(SMALL)), given.take(of_a, near), given.take(of_b, near))
        for count, of_a, of_b in node.loops
    )
    scale, add = given.take(node.scale, ()), given.take(node.add, None if short else ())
    name = " ".join((node.tile.name, *(str(memory.type) for memory in at)))
    return given.common(name, ir.TileCall(node.tile, a, b, y, loops, scale, add), at)


def _turn(node: ir.Turn) -> Common | None:
    if _are_few([node.steps]):
        return None
    given = Parameters()
    target, source = ir.Memory("target", node.target.type), ir.Memory("source", node.source.type)
    across = given.take(node.across, (node.lanes,))
    apart, steps = given.take(node.apart, ()), given.take(node.steps, ())
    general = ir.Turn(target, ir.ZERO, across, source, ir.ZERO, apart, steps, node.lanes)
    at = {target: (node.target, node.to), source: (node.source, node.at)}
    return given.common(f"turn_{target.type}_{source.type}_{node.lanes}", general, at)


def _lay(node: ir.Lay) -> Common | None:
    if _are_few([node.steps]):
        return None
    given = Parameters()
    target, source = ir.Memory("target", node.target.type), ir.Memory("source", node.source.type)
    far, apart, steps = (given.take(value, ()) for value in (node.far, node.apart, node.steps))
    general = ir.Lay(target, ir.ZERO, far, source, ir.ZERO, apart, steps, node.panels, node.lanes)
    at = {target: (node.target, node.to), source: (node.source, node.at)}
    return given.common(f"lay_{target.type}_{source.type}_{node.panels}_{node.lanes}", general, at)


def _are_few(counts: Iterable[ir.Value]) -> bool:
    steps = 1
    for count in counts:
        known = ir.constant(count)
        if known is None:
            return False
        steps *= known
    return steps < SHORT
