"""Expressions of the language -> values of the kernel IR, every part of an exact type."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernel import ir as kernel
from ..kernel.functions.whole import GOLDEN, POWER_BITS
from ..kernel.ir import TRUTH, U8, WORD, Load, Value, cast, compare, type_of, word
from ..language import ir
from ..language.affine import affine, is_constant
from ..language.build import asked_inside, is_integer
from ..language.functions import IN_VECTORS
from ..language.interval import interval
from ..language.ir import Expr
from ..language.types import BOOL, INT, number, promote
from .layout import Layout

SHORT = 2**52  # whole numbers below it are real numbers too, and so are the steps between their quotients
POWERS: dict[float, str] = {
    2: "square", 3: "cube", 4: "fourth", 0.5: "root", 1.5: "three_halves", 2.5: "five_halves", -0.5: "inverse_root",
    -1.5: "inverse_three_halves", -2.5: "inverse_five_halves",
}  # fmt: skip


class Expressions:
    """Writes the expressions of one kernel."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.types = layout.types
        self.held: dict[Expr, tuple[Value, np.dtype[Any]]] = {}  # what a local variable already holds

    def dtype(self, node: Expr) -> np.dtype[Any]:
        """The type that an expression is computed in."""
        kind = self.types.of(node)
        return INT if kind.dtype.kind in "iu" else self.layout.settled(kind)

    def best(self, loops: ir.Loops, target: str) -> np.dtype[Any]:
        """The type of the best value that an argmax= or argmin= has seen, over all statements that fill the target."""
        kinds = (number(self.types.of(s.value)) for s in loops.statements if s.target.tensor == target)
        return self.layout.settled(promote(*kinds))

    # -- integers

    def integer(self, node: Expr) -> Value:
        """An index expression."""
        node = self.layout.known(node)
        if is_constant(node) and not any(isinstance(n, ir.Size | ir.AxisSize) for n in ir.walk(node)):
            return word(self.layout.sizes.value(node))
        form = affine(node)
        if form is not None and isinstance(node, ir.Binary):
            node = form.expression()
        match node:
            case ir.Number(value=value):
                return word(int(value))
            case ir.Index(name=name):
                return self.layout.index(name)
            case ir.Size(index=index):
                return self.layout.size(index)
            case ir.AxisSize(tensor=tensor, axis=axis):
                return self.layout.extent(tensor, axis)
            case ir.Unary(operator="-", operand=operand):
                return -self.integer(operand)
            case ir.Binary(operator="//" | "%" as operator, left=left, right=right):
                return self.divided(operator, left, self.integer(left), self.integer(right))
            case ir.Binary(operator=operator, left=left, right=right):
                return kernel.arithmetic(operator, self.integer(left), self.integer(right))
            case ir.Call(function="abs", arguments=(argument,)):
                return kernel.Call("abs", (self.integer(argument),), WORD)
            case ir.Call(function=function, arguments=arguments):
                return kernel.extreme(function, [self.integer(a) for a in arguments])
            case ir.Access():
                return cast(Load(self.layout.tensor(node.tensor), self.offset(node)), WORD)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                return kernel.Choice(self.truth(condition), self.integer(then), self.integer(otherwise), lazy=True)
        raise AssertionError(f"no integer for {type(node).__name__}")

    def divided(self, operator: str, dividend: Expr, a: Value, b: Value) -> Value:
        """A division of whole numbers: it takes long, unless it is known by what, or that the dividend is short."""
        known = self.layout.known(dividend)
        counts = {name: self.layout.count(name) for name in ir.index_names(known)}
        between = interval(known, counts) if kernel.constant(b) is None and is_integer(known) else None
        if between is None or any(abs(self.layout.sizes.value(end)) >= SHORT for end in between):
            return kernel.arithmetic(operator, a, b)
        quotient = kernel.Call("short_quotient", (a, b), WORD)
        return quotient if operator == "//" else a - b * quotient

    def offset(self, access: ir.Access) -> Value:
        """The position of an element in memory: a sum of indices times constants where the places are affine."""
        terms: dict[kernel.Variable, int] = {}
        constant, others = 0, []
        cuts = self.layout.cuts.get(access.tensor, {})
        for axis, (place, stride) in enumerate(zip(access.indices, self.layout.strides(access.tensor), strict=True)):
            if axis in cuts:
                terms[cuts[axis].low] = terms.get(cuts[axis].low, 0) - stride
            form = affine(self.layout.known(place))
            coefficients = {} if form is None else form.terms
            if form is None or not all(_is_whole(c) for c in coefficients.values()):
                others.append(self.integer(place) * stride)
                continue
            for index, coefficient in coefficients.items():
                assert isinstance(coefficient, ir.Number)
                variable = self.layout.index(index)
                terms[variable] = terms.get(variable, 0) + int(coefficient.value) * stride
            if _is_whole(form.constant):
                assert isinstance(form.constant, ir.Number)
                constant += int(form.constant.value) * stride
            else:
                others.append(self.integer(form.constant) * stride)
        above = [variable * factor for variable, factor in terms.items() if factor > 0]
        result = kernel.total([*above, *others, word(constant)])
        for variable, factor in terms.items():
            result = result - variable * -factor if factor < 0 else result
        return result

    def element(self, access: ir.Access) -> Load:
        """What lies in memory at an access."""
        return Load(self.layout.tensor(access.tensor), self.offset(access))

    # -- truth

    def truth(self, node: Expr) -> Value:
        match node:
            case ir.Compare(operator=operator, left=left, right=right):
                dtype = self.layout.settled(promote(number(self.types.of(left)), number(self.types.of(right))))
                dtype = INT if dtype.kind in "iu" else dtype
                return compare(operator, self.value(left, dtype), self.value(right, dtype))
            case ir.Logic(operator=operator, left=left, right=right):
                if self.harmless(right):
                    operator = "both" if operator == "and" else "either"
                return kernel.joined(operator, [self.truth(left), self.truth(right)])
            case ir.Unary(operator="not", operand=operand):
                return kernel.negation(self.truth(operand))
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                return kernel.Choice(self.truth(condition), self.truth(then), self.truth(otherwise), lazy=True)
        dtype = self.dtype(node)
        return self.value(node, BOOL) if dtype == BOOL else compare("!=", self.value(node, dtype), 0)

    def inside(self, node: Expr) -> list[Value]:
        """The conditions under which evaluating `node` stays in bounds: none if nothing can fail."""
        parts: list[Value] = []
        if isinstance(node, ir.Conditional):
            parts += self.inside(node.condition)
            branches = [kernel.joined("and", self.inside(branch)) for branch in (node.then, node.otherwise)]
            if any(branch is not kernel.TRUE for branch in branches):
                parts.append(kernel.Choice(self.truth(node.condition), branches[0], branches[1], lazy=True))
        elif isinstance(node, ir.Logic):
            parts += self.inside(node.left)
            right = self.inside(node.right)
            if right:
                left = self.truth(node.left)
                keep = kernel.negation(left) if node.operator == "and" else left
                parts.append(kernel.joined("or", [keep, kernel.joined("and", right)]))
        else:
            parts += [part for inner in ir.children(node) for part in self.inside(inner)]
        if isinstance(node, ir.Access):
            for axis, place in enumerate(node.indices):
                shape = self.layout.sizes.shapes[node.tensor]
                if not isinstance(place, ir.Index) or not self.stays_inside(place, shape[axis]):
                    at = self.integer(place)
                    extent = self.layout.extent(node.tensor, axis)
                    parts.append(kernel.joined("and", [compare("<=", kernel.ZERO, at), compare("<", at, extent)]))
        return parts

    def inside_statement(self, statement: ir.Statement) -> list[Value]:
        return [part for node in asked_inside(statement) for part in self.inside(node)]

    def harmless(self, node: Expr) -> bool:
        """Whether a value may be computed where it is not needed: accesses are in bounds, and nothing takes long."""
        return all(self.is_harmless(part) for part in ir.walk(node))

    def is_harmless(self, node: Expr) -> bool:
        match node:
            case ir.Access(tensor=tensor, indices=indices):
                return all(map(self.stays_inside, indices, self.layout.sizes.shapes[tensor]))
            case ir.Binary(operator="**", right=right) | ir.Call(function="pow", arguments=(_, right)):
                return self.power(right, self.own(node)) not in ("pow", "whole_power")
            case ir.Call(function=function):
                return function in IN_VECTORS
            case ir.Binary(operator="//" | "%"):
                return False
        return True

    def stays_inside(self, place: Expr, extent: int) -> bool:
        if isinstance(place, ir.Index):
            return place.name in self.layout.joined or self.layout.count(place.name) <= extent
        return isinstance(place, ir.Number) and 0 <= place.value < extent

    # -- values

    def value(self, node: Expr, wanted: np.dtype[Any]) -> Value:
        """The expression as a number of the wanted type."""
        if node in self.held:
            return cast(self.held[node][0], type_of(wanted))
        match node:
            case ir.Number(value=value):
                return _number(value, wanted)
            case ir.Index() | ir.Static() | ir.Size() | ir.AxisSize():
                return cast(self.integer(node), type_of(wanted))
            case ir.Compare() | ir.Logic() | ir.Unary(operator="not"):
                return cast(self.truth(node), type_of(wanted))
            case ir.Access():
                loaded: Value = self.element(node)
                if self.layout.stored(node.tensor) == BOOL:  # a byte in memory
                    loaded = compare("!=", loaded, 0)
                return cast(loaded, type_of(wanted))
        return cast(self.computed(node, self.own(node)), type_of(wanted))

    def own(self, node: Expr) -> np.dtype[Any]:
        """The type in which a value stands before anything asks for another one."""
        if isinstance(node, ir.Access):
            return self.layout.stored(node.tensor)
        dtype = self.dtype(node)
        return INT if dtype == BOOL else dtype

    def branch(self, node: ir.Conditional, holds: bool) -> Expr:
        """The branch of a condition that is decided; all of it, where the branch alone would have another type."""
        chosen = node.then if holds else node.otherwise
        return chosen if self.types.of(chosen) == self.types.of(node) else node

    def power(self, exponent: Expr, dtype: np.dtype[Any]) -> str:
        """The function that takes a power: products, if the exponent is a whole number; roots, if it is a half."""
        known, kind = self.layout.known(exponent), self.own(exponent)
        fixed = isinstance(known, ir.Number) and float(known.value).is_integer()
        if isinstance(known, ir.Number) and known.value in POWERS:
            return POWERS[known.value]
        if isinstance(known, ir.Number) and fixed:
            known = ir.Number(int(known.value))
        if dtype.kind != "f" or not (fixed or kind.kind == "i" or (kind.kind == "u" and kind.itemsize < 8)):
            return "pow"
        counts = {name: self.layout.count(name) for name in ir.index_names(known)}
        between = interval(known, counts) if is_integer(known) else None
        if between is None:
            return "whole_power"
        low, high = (self.layout.sizes.value(end) for end in between)
        bits = max(abs(low), abs(high), 1).bit_length()
        if bits > POWER_BITS:
            return "pow" if fixed else "whole_power"
        return f"{'signed_' if low < 0 else ''}power_{bits}"

    def computed(self, node: Expr, dtype: np.dtype[Any]) -> Value:
        def value(part: Expr) -> Value:
            return self.value(part, dtype)

        def call(function: str, *arguments: Value) -> Value:
            return kernel.Call(function, arguments, type_of(dtype))

        match node:
            case ir.Unary(operand=operand):
                return -value(operand)
            case ir.Binary(operator="**", left=left, right=right) | ir.Call(function="pow", arguments=(left, right)):
                power = self.power(right, dtype)
                if power in POWERS.values():
                    return call(power, value(left))
                return call(power, value(left), value(right) if power == "pow" else self.value(right, INT))
            case ir.Binary(operator="//" | "%" as operator, left=left, right=right) if type_of(dtype) == WORD:
                return self.divided(operator, left, value(left), value(right))
            case ir.Binary(operator=operator, left=left, right=right):
                return kernel.Operation(operator, (value(left), value(right)), type_of(dtype))
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                lazy = not (dtype.kind == "f" and self.harmless(then) and self.harmless(otherwise))
                return kernel.Choice(self.truth(condition), value(then), value(otherwise), lazy)
            case ir.Call(function="uniform" | "normal" as function, arguments=arguments):
                state: Value = kernel.Number(GOLDEN, U8)
                for argument in arguments:
                    state = kernel.Call("mixed", (state, self.value(argument, INT)), U8)
                return cast(kernel.Call(function, (state,), kernel.F8), type_of(dtype))
            case ir.Call(function="stop", arguments=(argument,)):
                return value(argument)
            case ir.Call(function="min" | "max" as function, arguments=(first, *rest)):
                result = value(first)
                for argument in rest:
                    result = call(f"{function}imum", result, value(argument))
                return result
            case ir.Call(function="relu", arguments=(argument,)):
                return call("maximum", value(argument), _number(0, dtype))
            case ir.Call(function=function, arguments=arguments):
                return call(function, *map(value, arguments))
        raise AssertionError(f"no value for {type(node).__name__}")


def _number(value: float, dtype: np.dtype[Any]) -> Value:
    """A number of the program as a constant of a type."""
    made = type_of(dtype)
    if made == TRUTH:
        return kernel.Number(int(value != 0), TRUTH)
    return kernel.Number(float(value) if made.real else kernel.wrapped(int(value), made), made)


def _is_whole(node: Expr) -> bool:
    return isinstance(node, ir.Number) and isinstance(node.value, int)
