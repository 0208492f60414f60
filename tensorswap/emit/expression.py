"""Expressions -> Numba source, every part of an exact type: nothing is left to promotion rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..language import ir
from ..language.affine import affine, is_constant
from ..language.build import conjuncts
from ..language.functions import IN_VECTORS
from ..language.ir import Expr
from ..language.types import BOOL, INT, Types, number, promote
from .layout import Layout

TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")
CAST = {np.dtype(name): name for name in TYPES}
POWERS = {2: "square", 3: "cube", 4: "fourth"}


class Expressions:
    """Writes the expressions of one kernel."""

    def __init__(self, layout: Layout, types: Types, default: np.dtype[Any]) -> None:
        self.layout = layout
        self.types = types
        self.default = default
        self.held: dict[Expr, tuple[str, np.dtype[Any]]] = {}  # what a local variable already holds

    def dtype(self, node: Expr) -> np.dtype[Any]:
        """The type that an expression is computed in: weak floats take the program's own."""
        kind = self.types.of(node)
        if kind.weak and kind.dtype.kind == "f":
            return self.default
        return INT if kind.dtype.kind in "iu" else kind.dtype

    def stored(self, tensor: str) -> np.dtype[Any]:
        """The type that a tensor's elements are stored in."""
        kind = self.types.tensors[tensor]
        return self.default if kind.weak and kind.dtype.kind == "f" else kind.dtype

    def best(self, loops: ir.Loops, target: str) -> np.dtype[Any]:
        """The type of the best value that an argmax= or argmin= has seen, over all statements that fill the target."""
        kind = promote(*(number(self.types.of(s.value)) for s in loops.statements if s.target.tensor == target))
        return self.default if kind.weak and kind.dtype.kind == "f" else kind.dtype

    # -- integers

    def integer(self, node: Expr) -> str:
        """An index expression."""
        node = self.layout.known(node)
        if is_constant(node) and not any(isinstance(n, ir.Size | ir.AxisSize) for n in ir.walk(node)):
            return str(self.layout.sizes.value(node))
        form = affine(node)
        if form is not None and isinstance(node, ir.Binary):
            node = form.expression()
        match node:
            case ir.Number(value=value):
                return str(value)
            case ir.Index(name=name):
                return self.layout.index(name)
            case ir.Size(index=index):
                return self.layout.size(index)
            case ir.AxisSize(tensor=tensor, axis=axis):
                return self.layout.extent(tensor, axis)
            case ir.Unary(operator="-", operand=operand):
                return f"(-{self.integer(operand)})"
            case ir.Binary(operator=operator, left=left, right=right):
                return f"({self.integer(left)} {operator} {self.integer(right)})"
            case ir.Call(function=function, arguments=arguments):
                name = {"min": "min", "max": "max", "abs": "abs"}[function]
                return f"{name}({', '.join(self.integer(a) for a in arguments)})"
            case ir.Access():
                return f"to_i8({self.layout.tensor(node.tensor)}[{self.offset(node)}])"
        raise AssertionError(f"no integer for {type(node).__name__}")

    def offset(self, access: ir.Access) -> str:
        """The position of an element in memory: a sum of indices times constants where the places are affine."""
        terms: dict[str, int] = {}
        constant, others = 0, []
        cuts = self.layout.cuts.get(access.tensor, {})
        for axis, (place, stride) in enumerate(zip(access.indices, self.layout.strides(access.tensor), strict=True)):
            if axis in cuts:
                terms[cuts[axis].low] = terms.get(cuts[axis].low, 0) - stride
            form = affine(self.layout.known(place))
            coefficients = {} if form is None else form.terms
            if form is None or not all(_is_whole(c) for c in coefficients.values()):
                others.append(_times(self.integer(place), stride))
                continue
            for index, coefficient in coefficients.items():
                assert isinstance(coefficient, ir.Number)
                name = self.layout.index(index)
                terms[name] = terms.get(name, 0) + int(coefficient.value) * stride
            if _is_whole(form.constant):
                assert isinstance(form.constant, ir.Number)
                constant += int(form.constant.value) * stride
            else:
                others.append(_times(self.integer(form.constant), stride))
        parts = [_times(name, factor) for name, factor in terms.items() if factor] + others
        return " + ".join(parts + ([str(constant)] if constant or not parts else []))

    # -- truth

    def truth(self, node: Expr) -> str:
        match node:
            case ir.Compare(operator=operator, left=left, right=right):
                kind = promote(number(self.types.of(left)), number(self.types.of(right)))
                dtype = self.default if kind.weak and kind.dtype.kind == "f" else kind.dtype
                dtype = INT if dtype.kind in "iu" else dtype
                return f"({self.value(left, dtype)} {operator} {self.value(right, dtype)})"
            case ir.Logic(operator=operator, left=left, right=right):
                if self.harmless(right):
                    return f"{'both' if operator == 'and' else 'either'}({self.truth(left)}, {self.truth(right)})"
                return f"({self.truth(left)} {operator} {self.truth(right)})"
            case ir.Unary(operator="not", operand=operand):
                return f"(not {self.truth(operand)})"
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                return f"({self.truth(then)} if {self.truth(condition)} else {self.truth(otherwise)})"
        dtype = self.dtype(node)
        return f"({self.value(node, dtype)} != {self.cast('0', dtype)})" if dtype != BOOL else self.value(node, BOOL)

    def inside(self, node: Expr) -> str | None:
        """The condition under which evaluating `node` stays in bounds; None if nothing can fail."""
        parts: list[str | None] = []
        if isinstance(node, ir.Conditional):
            parts.append(self.inside(node.condition))
            then, otherwise = self.inside(node.then), self.inside(node.otherwise)
            if then or otherwise:
                parts.append(f"({then or 'True'} if {self.truth(node.condition)} else {otherwise or 'True'})")
        elif isinstance(node, ir.Logic):
            parts.append(self.inside(node.left))
            right = self.inside(node.right)
            if right:
                keep = f"(not {self.truth(node.left)})" if node.operator == "and" else self.truth(node.left)
                parts.append(f"({keep} or {right})")
        else:
            parts += [self.inside(part) for part in ir.children(node)]
        if isinstance(node, ir.Access):
            for axis, place in enumerate(node.indices):
                if not isinstance(place, ir.Index):
                    text = self.integer(place)
                    parts.append(f"(0 <= {text} and {text} < {self.layout.extent(node.tensor, axis)})")
        known = [part for part in parts if part]
        return " and ".join(known) if known else None

    def inside_statement(self, statement: ir.Statement) -> str:
        nodes = (statement.target, *conjuncts(statement.guard), statement.value)
        parts = [text for node in nodes if (text := self.inside(node))]
        return " and ".join(parts) or "True"

    def harmless(self, node: Expr) -> bool:
        """Whether a value may be computed where it is not needed: accesses are in bounds, and nothing takes long."""
        for part in ir.walk(node):
            if isinstance(part, ir.Access):
                shape = self.layout.sizes.shapes[part.tensor]
                for place, extent in zip(part.indices, shape, strict=True):
                    bare = isinstance(place, ir.Index) and (
                        self.layout.sizes.index[place.name] <= extent or place.name in self.layout.joined
                    )
                    if not bare and not (isinstance(place, ir.Number) and 0 <= place.value < extent):
                        return False
            elif (isinstance(part, ir.Call) and part.function not in IN_VECTORS) or (
                isinstance(part, ir.Binary)
                and (part.operator in ("//", "%") or (part.operator == "**" and self.whole_power(part.right) is None))
            ):
                return False
        return True

    # -- values

    def cast(self, text: str, dtype: np.dtype[Any]) -> str:
        return f"to_{CAST[dtype]}({text})"

    def value(self, node: Expr, wanted: np.dtype[Any]) -> str:
        """The expression as a number of the wanted type."""
        if node in self.held:
            text, dtype = self.held[node]
            return text if dtype == wanted else self.cast(text, wanted)
        match node:
            case ir.Number(value=value):
                text = "inf" if value == float("inf") else "-inf" if value == float("-inf") else repr(value)
                return self.cast(text, wanted)
            case ir.Index() | ir.Static() | ir.Size() | ir.AxisSize():
                return self.cast(self.integer(node), wanted)
            case ir.Compare() | ir.Logic() | ir.Unary(operator="not"):
                return self.cast(self.truth(node), wanted)
            case ir.Access():
                text = f"{self.layout.tensor(node.tensor)}[{self.offset(node)}]"
                stored = self.stored(node.tensor)
                if stored == BOOL:  # a byte in memory
                    text = f"({text} != 0)"
                return text if stored == wanted else self.cast(text, wanted)
        own = self._own(node)
        text = self._computed(node, own)
        return text if own == wanted else self.cast(text, wanted)

    def own(self, node: Expr) -> np.dtype[Any]:
        """The type in which a value stands before anything asks for another one."""
        return self.stored(node.tensor) if isinstance(node, ir.Access) else self._own(node)

    def _own(self, node: Expr) -> np.dtype[Any]:
        dtype = self.dtype(node)
        return INT if dtype == BOOL else dtype

    def whole_power(self, exponent: Expr) -> int | None:
        """An exponent that is a product of a few factors."""
        known = self.layout.known(exponent)
        if isinstance(known, ir.Number) and known.value in POWERS and isinstance(known.value, int):
            return known.value
        return None

    def _computed(self, node: Expr, dtype: np.dtype[Any]) -> str:
        match node:
            case ir.Unary(operand=operand):
                return f"(-{self.value(operand, dtype)})"
            case ir.Binary(operator="**", left=left, right=right) if (power := self.whole_power(right)) is not None:
                return f"{POWERS[power]}({self.value(left, dtype)})"
            case ir.Binary(operator="**", left=left, right=right):
                return f"pow_{CAST[dtype]}({self.value(left, dtype)}, {self.value(right, dtype)})"
            case ir.Binary(operator=operator, left=left, right=right):
                return f"({self.value(left, dtype)} {operator} {self.value(right, dtype)})"
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                if dtype.kind == "f" and self.harmless(then) and self.harmless(otherwise):
                    parts = self.truth(condition), self.value(then, dtype), self.value(otherwise, dtype)
                    return f"chosen({', '.join(parts)})"
                return f"({self.value(then, dtype)} if {self.truth(condition)} else {self.value(otherwise, dtype)})"
            case ir.Call(function="uniform" | "normal" as function, arguments=arguments):
                state = "GOLDEN"
                for argument in arguments:
                    state = f"mixed({state}, {self.value(argument, INT)})"
                return self.cast(f"{function}({state})", dtype)
            case ir.Call(function="stop", arguments=(argument,)):
                return self.value(argument, dtype)
            case ir.Call(function="min" | "max" as function, arguments=(first, *rest)):
                text = self.value(first, dtype)
                for argument in rest:
                    text = f"{function}imum({text}, {self.value(argument, dtype)})"
                return text
            case ir.Call(function="relu", arguments=(argument,)):
                return f"maximum({self.value(argument, dtype)}, {self.cast('0', dtype)})"
            case ir.Call(function=function, arguments=arguments):
                return f"{function}_{CAST[dtype]}({', '.join(self.value(a, dtype) for a in arguments)})"
        raise AssertionError(f"no value for {type(node).__name__}")


def joined(function: str, parts: list[str]) -> str:
    """The `max` or `min` of the parts, which is the part itself if there is one."""
    return parts[0] if len(parts) == 1 else f"{function}({', '.join(parts)})"


def _is_whole(node: Expr) -> bool:
    return isinstance(node, ir.Number) and isinstance(node.value, int)


def _times(text: str, factor: int) -> str:
    return text if factor == 1 else f"{text} * {factor}" if factor >= 0 else f"{text} * ({factor})"


__all__ = ["CAST", "Expressions", "joined"]
