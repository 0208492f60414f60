"""Verify: what must hold of every kernel, whoever made it. Tests run it over all kernels that are compiled in them."""

from __future__ import annotations

from typing import Any

from . import ir
from .functions import INSTRUCTIONS, LIBRARY, made

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
TRUTHS = frozenset({"and", "or", "both", "either", "not"})
WHOLE = frozenset({"min", "max", "&", "|", "^", "<<", ">>"})
ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "neg"})
ARGUMENTS = {"neg": 1, "not": 1}


def verify(kernel: ir.Kernel) -> None:
    """Every use of a name comes after what makes it, and every part has the type that its place asks for."""
    variables = {ir.PART.name: ir.WORD, ir.PARTS.name: ir.WORD}
    memories: dict[str, ir.Type] = {}
    for word in kernel.words:
        known: dict[str, ir.Type] = memories if isinstance(word.place, ir.Memory) else variables
        need(word.place.name not in known, f"{word.place.name} stands in the context twice")
        known[word.place.name] = word.place.type
    _Verifier(variables, memories).body(kernel.body)


def need(holds: bool, otherwise: str) -> None:
    assert holds, otherwise


def _takes_long(body: ir.Body) -> bool:
    """Whether something in a body is a function, a tile, or a loop of who knows how many rounds."""
    inside = [node for node in ir.statements(body) if isinstance(node, ir.LONG)]
    return any(not isinstance(n, ir.For) or ir.constant(n.past) is None or ir.constant(n.first) is None for n in inside)


class _Verifier:
    """What is known at some place of a kernel."""

    def __init__(self, variables: dict[str, ir.Type], memories: dict[str, ir.Type], loops: int = 0) -> None:
        self.variables = variables
        self.memories = memories
        self.loops = loops  # around the place

    def body(self, statements: ir.Body) -> None:
        for statement in statements:
            self.statement(statement)

    def inner(self, statements: ir.Body, *variables: ir.Variable, loop: bool = False) -> None:
        """What is made inside a loop or a branch may not be used behind it, unless it was there before."""
        known = {**self.variables, **{v.name: v.type for v in variables}}
        _Verifier(known, dict(self.memories), self.loops + loop).body(statements)

    def statement(self, node: ir.Statement) -> None:
        match node:
            case ir.Set(variable=variable, value=value):
                self.value(value, variable.type)
                self.variables[variable.name] = variable.type
            case ir.Store(memory=memory, offset=offset, value=value):
                self.memory(memory)
                self.value(offset, ir.WORD)
                self.value(value, memory.type)
            case ir.For(variable=variable, first=first, past=past, step=step, body=body, plain=plain):
                need(
                    not node.few or node.rounds is not None, f"how often the loop over {variable.name} runs is unknown"
                )
                need(not plain or ir.constant(step) in (1, -1), f"the plain loop over {variable.name} leaps")
                need(not plain or not _takes_long(body), f"the plain loop over {variable.name} has more in it")
                for bound in (first, past, step):
                    self.value(bound, ir.WORD)
                need(not ir.is_zero(step), f"the loop over {variable.name} never ends")
                self.inner(body, variable, loop=True)
            case ir.While(test=test, body=body):
                self.value(test, ir.TRUTH)
                self.inner(body, loop=True)
            case ir.If(test=test, then=then, otherwise=otherwise):
                self.value(test, ir.TRUTH)
                self.inner(then)
                self.inner(otherwise)
            case ir.Skip() | ir.Leave():
                need(self.loops > 0, f"a {type(node).__name__.lower()} stands in no loop")
            case ir.Choose(memory=memory, test=test, yes=yes, no=no):
                self.value(test, ir.TRUTH)
                for one in (yes, no):
                    self.memory(one)
                    need(one.type == memory.type, f"{memory.name} is chosen among memories of other types")
                self.memories[memory.name] = memory.type
            case ir.Hold(memory=memory, elements=elements):
                need(elements > 0, f"{memory.name} holds nothing")
                self.memories[memory.name] = memory.type
            case ir.Step(body=body):
                _Verifier(dict(self.variables), dict(self.memories)).body(body)
            case ir.TileCall():
                self.tile(node)
            case ir.Turn(target=target, source=source, lanes=lanes):
                need(target.type == source.type and target.type.real, f"{source.type} is turned into {target.type}")
                need(lanes > 0, "a turned copy has no lanes")
                for memory in (target, source):
                    self.memory(memory)
                for number in (node.to, node.across, node.at, node.apart, node.steps):
                    self.value(number, ir.WORD)
            case ir.Lay(target=target, source=source, panels=panels, lanes=lanes):
                need(target.type == source.type and target.type.real, f"{source.type} is laid as {target.type}")
                need(lanes > 0 and panels > 0, "a laid copy has no lanes, or no panels")
                for memory in (target, source):
                    self.memory(memory)
                for number in (node.to, node.far, node.at, node.apart, node.steps):
                    self.value(number, ir.WORD)
            case _:
                raise AssertionError(f"a kernel has no {type(node).__name__}")

    def tile(self, node: ir.TileCall) -> None:
        for panel in (node.a, node.b, node.y):
            self.memory(panel.memory)
            need(panel.memory.type == node.tile.type, f"{node.tile.name} reads {panel.memory.type}")
            for place in (panel.at, panel.row, panel.column):
                self.value(place, ir.WORD)
        need(len(node.loops) == ir.LOOPS, f"{node.tile.name} has {len(node.loops)} loops")
        for loop in node.loops:
            for part in loop:
                self.value(part, ir.WORD)
        self.value(node.scale, node.tile.type)
        self.value(node.add, ir.TRUTH)

    def memory(self, memory: ir.Memory) -> None:
        need(self.memories.get(memory.name) == memory.type, f"{memory.name} of {memory.type} is not known here")

    def value(self, node: Any, wanted: ir.Type) -> None:
        need(node.type == wanted, f"{type(node).__name__} of {node.type} stands where {wanted} is wanted")
        match node:
            case ir.Number(value=value, type=kind):
                need(isinstance(value, float if kind.real else int), f"{value!r} is no {kind}")
                need(kind.real or ir.wrapped(int(value), kind) == value or kind == ir.TRUTH, f"{value} is no {kind}")
            case ir.Variable(name=name, type=kind):
                need(self.variables.get(name) == kind, f"{name} of {kind} is not known here")
            case ir.Load(memory=memory, offset=offset):
                self.memory(memory)
                self.value(offset, ir.WORD)
            case ir.Operation():
                self.operation(node)
            case ir.Choice(test=test, yes=yes, no=no):
                self.value(test, ir.TRUTH)
                self.value(yes, wanted)
                self.value(no, wanted)
            case ir.Cast(value=value):
                self.value(value, value.type)
            case ir.Bits(value=value, type=kind):
                need(value.type.size == kind.size, f"{value.type} has other bits than {kind}")
                self.value(value, value.type)
            case ir.Call(function=name, arguments=arguments):
                exists = made(name, arguments[0].type) is not None or name in INSTRUCTIONS or name in LIBRARY
                need(exists, f"there is no function {name} of {arguments[0].type}")
                for argument in arguments:
                    self.value(argument, argument.type)
            case _:
                raise AssertionError(f"a kernel has no value {type(node).__name__}")

    def operation(self, node: ir.Operation) -> None:
        operator, operands = node.operator, node.operands
        kind = operands[0].type
        expected = ARGUMENTS.get(operator, len(operands) if operator in ("min", "max") else 2)
        need(len(operands) == expected, f"{operator} has {len(operands)} operands")
        for operand in operands:
            self.value(operand, kind)
        if operator in TRUTHS:
            need(kind == node.type == ir.TRUTH, f"{operator} joins truths, not {kind}")
        elif operator in COMPARISONS:
            need(node.type == ir.TRUTH, f"{operator} gives a truth, not {node.type}")
        elif operator in WHOLE:
            need(kind.whole and node.type == kind, f"{operator} is of whole numbers, not of {kind}")
        else:
            need(operator in ARITHMETIC, f"there is no operator {operator}")
            need(kind == node.type and kind != ir.TRUTH, f"{operator} of {kind} gives {node.type}")
            need(operator != "/" or kind.real, "whole numbers have no quotient but //")
