"""Text of kernels: what the printers of Python and C have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from . import ir
from .functions import Made, made

ATOM = 12  # binds tighter than any operator


class Text(ABC):
    """The text of values, and how tightly the outermost operator binds. `known` has names for values that were computed
    before, by identity."""

    def __init__(self, known: dict[int, str] | None = None) -> None:
        self.known = known or {}

    def of(self, node: ir.Value) -> tuple[str, int]:
        if id(node) in self.known:
            return self.known[id(node)], ATOM
        match node:
            case ir.Variable(name=name):
                return name, ATOM
            case ir.Load(memory=memory, offset=offset):
                return f"{memory.name}[{self.alone(offset)}]", ATOM
            case ir.Entry(table=table, index=index):
                return f"{table.name}[{self.alone(index)}]", ATOM
        return self.computed(node)

    @abstractmethod
    def computed(self, node: ir.Value) -> tuple[str, int]:
        """The text of a value that the languages write in different ways."""

    def alone(self, node: ir.Value) -> str:
        return self.of(node)[0]

    def within(self, node: ir.Value, level: int) -> str:
        """The text where an operator of some level stands beside it."""
        text, own = self.of(node)
        return text if own >= level else f"({text})"

    def call(self, function: str, *arguments: ir.Value) -> str:
        return f"{function}({', '.join(self.alone(a) for a in arguments)})"


@dataclass(frozen=True)
class Definitions:
    """How a language defines what kernels need beside their own functions."""

    function: Callable[[Made], str]
    table: Callable[[ir.Table], str]
    tile: Callable[[ir.Tile], str]
    fused: str = ""  # the product with a sum, where the language does not have it

    def of(self, kernels: Iterable[ir.Kernel]) -> Iterator[str]:
        """Those that others call first."""
        done: set[str] = set()
        for kernel in kernels:
            yield from self.needed(kernel.body, done)

    def needed(self, nodes: object, done: set[str]) -> Iterator[str]:
        for node in ir.walk(nodes):
            match node:
                case ir.Call(function=name, arguments=arguments) if (
                    found := made(name, arguments[0].type)
                ) is not None:
                    yield from self.once(found, done)
                case ir.Operation(operator="//" | "%" as operator, type=kind) if kind.real:
                    divided = made("quotient" if operator == "//" else "remainder", kind)
                    assert divided is not None, "real numbers can be divided"
                    yield from self.once(divided, done)
                case ir.Call(function="fma") if self.fused and "fma" not in done:
                    done.add("fma")
                    yield self.fused
                case ir.Entry(table=table) if table.name not in done:
                    done.add(table.name)
                    yield self.table(table)
                case ir.TileCall(tile=tile) if tile.name not in done:
                    done.add(tile.name)
                    yield self.tile(tile)

    def once(self, found: Made, done: set[str]) -> Iterator[str]:
        if found.name not in done:
            done.add(found.name)
            yield from self.needed((found.body, found.value), done)
            yield self.function(found)


def shared_parts(value: ir.Value) -> list[ir.Value]:
    """The parts of a value that stand in it more than once, inner ones first."""
    uses: dict[int, int] = {}
    order: list[ir.Value] = []

    def visit(node: ir.Value) -> None:
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for part in ir.parts_of(node):
                if isinstance(part, ir.Value):
                    visit(part)
            order.append(node)

    visit(value)
    return [node for node in order if uses[id(node)] > 1 and not isinstance(node, ir.Number | ir.Variable)]
