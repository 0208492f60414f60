"""The rules of `language.types` as text: formulas over the kinds of tensors, which a file works out at the call."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from ..language import ir
from ..language.functions import KEEP_INTEGERS
from ..language.ir import Expr
from ..language.types import TRUTH, WEAK_FLOAT, WEAK_INT, Kind, floating, is_derivative, number, promote
from .names import Names

DEEPEST = 12  # calls within calls, before a formula gets a name: Python reads only so many parentheses


@dataclass(frozen=True)
class Formula:
    """The kind of an expression: `known` where the program alone tells it. `truth`: it may be one of truth values."""

    text: str
    known: Kind | None = None
    truth: bool = False
    depth: int = 0


CONSTANTS = {
    WEAK_INT: Formula("WEAK_INT", WEAK_INT),
    WEAK_FLOAT: Formula("WEAK_FLOAT", WEAK_FLOAT),
    TRUTH: Formula("TRUTH", TRUTH, truth=True),
}
WHOLE, LITERAL, TRUE = CONSTANTS[WEAK_INT], CONSTANTS[WEAK_FLOAT], CONSTANTS[TRUTH]


class KindFormulas:
    """Formulas for the expressions of one program, and what is known of them without a call."""

    def __init__(self, loops: ir.Loops, names: Names) -> None:
        self.loops = loops
        self.names = names
        self.named: dict[str, str] = {}  # the text of a formula that was given a name, and the name
        self.found: dict[int, tuple[Expr, Formula]] = {}  # by identity: to hash a deep expression takes long
        self.weak_tensors: Set[str] = self._weak_tensors()

    def of(self, node: Expr) -> Formula:
        if id(node) not in self.found:
            self.found[id(node)] = node, self._of(node)
        return self.found[id(node)][1]

    def _of(self, node: Expr) -> Formula:
        match node:
            case ir.Number(value=value):
                return WHOLE if isinstance(value, int) else LITERAL
            case ir.Index() | ir.Static() | ir.Size() | ir.AxisSize():
                return WHOLE
            case ir.Access(tensor=tensor):
                return Formula(f'k["{self.names.array(tensor)}"]', truth=True)
            case ir.Unary(operator="not") | ir.Compare() | ir.Logic() | ir.Inside():
                return TRUE
            case ir.Unary(operand=operand):
                return self.promote(self.number(operand))
            case ir.Binary(operator=operator, left=left, right=right):
                kind = self.promote(self.number(left), self.number(right))
                return self.floating(kind) if operator == "/" or (operator == "**" and not is_whole(right)) else kind
            case ir.Conditional(then=then, otherwise=otherwise):
                return self.promote(self.of(then), self.of(otherwise))
            case ir.Call(function="uniform" | "normal"):
                return LITERAL
            case ir.Call(function=function, arguments=arguments):
                kind = self.promote(*(self.number(a) for a in arguments))
                return kind if function in KEEP_INTEGERS else self.floating(kind)
        raise AssertionError(f"no type for {type(node).__name__}")

    def number(self, node: Expr) -> Formula:
        part = self.of(node)
        if part.known is not None:
            return CONSTANTS[number(part.known)]
        return Formula(f"number({part.text})", depth=part.depth + 1) if part.truth else part

    def promote(self, *parts: Formula) -> Formula:
        known = [part.known for part in parts if part.known is not None]
        if len(known) == len(parts) and (kind := promote(*known)) in CONSTANTS:
            return CONSTANTS[kind]
        texts = dict.fromkeys(part.text for part in parts)
        if len(texts) == 1 and parts[0].text.startswith(("promote(", "floating(")):
            return parts[0]
        depth = max(part.depth for part in parts) + 1
        return self.short(Formula(f"promote({', '.join(texts)})", None, any(part.truth for part in parts), depth))

    def floating(self, part: Formula) -> Formula:
        if part.known is not None:
            return CONSTANTS[floating(part.known)]
        if part.text.startswith("floating("):
            return part
        return Formula(f"floating({part.text})", depth=part.depth + 1)

    def short(self, formula: Formula) -> Formula:
        """The formula, or a name for it where it has become too deep."""
        if formula.depth <= DEEPEST:
            return formula
        name = self.named.setdefault(formula.text, f"t{len(self.named)}")
        return Formula(f'k["{name}"]', None, formula.truth)

    def best(self, tensor: str) -> Formula:
        """The kind of the values that an argmax= or argmin= compares, over all statements that fill its target."""
        return self.promote(*(self.number(s.value) for s in self.loops.statements if s.target.tensor == tensor))

    def lines(self) -> list[str]:
        """Lines that fill in the kinds of the tensors written."""
        result = []
        for statement in self.loops.statements:
            before = len(self.named)
            kind = self.of(statement.value)
            result += self.naming(before)
            name, tensor = self.names.array(statement.target.tensor), statement.target.tensor
            derivative = ", derivative=True" if is_derivative(tensor) else ""
            result.append(f'k.fill("{name}", accumulated("{statement.operator}", {kind.text}){derivative})')
        return result

    def naming(self, first: int) -> list[str]:
        """Lines for the formulas that were given a name, from the first of these."""
        return [f'k["{name}"] = {text}' for text, name in list(self.named.items())[first:]]

    # -- what may be weak

    def weak(self, node: Expr) -> bool:
        """Whether a value may be a plain number, which takes the type of what it meets."""
        match node:
            case ir.Access(tensor=tensor):
                return tensor in self.weak_tensors
            case ir.Unary(operator="not") | ir.Compare() | ir.Logic() | ir.Inside():
                return True
            case ir.Call(function="uniform" | "normal"):
                return True
            case ir.Conditional(then=then, otherwise=otherwise):
                return self.weak(then) and self.weak(otherwise)
        return all(self.weak(part) for part in ir.children(node))

    def _weak_tensors(self) -> frozenset[str]:
        """Scalar inputs, and what is computed of plain numbers alone."""
        arrays = {name for name in self.loops.inputs if self.loops.ranks.get(name, 0) > 0}
        found = {*self.loops.inputs, *self.loops.written} - arrays
        while True:
            before = len(found)
            self.weak_tensors = found
            for statement in self.loops.statements:
                if statement.operator.startswith("arg") or not self.weak(statement.value):
                    found.discard(statement.target.tensor)
            if len(found) == before:
                return frozenset(found)


def is_whole(node: Expr) -> bool:
    """A whole number that is not negative."""
    return isinstance(node, ir.Number) and isinstance(node.value, int) and node.value >= 0
