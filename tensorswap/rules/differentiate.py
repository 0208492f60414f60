"""Derivatives of one scalar expression: by each access in it (for the adjoint), and along a direction (the tangent).

Both read one calculus: `parts` tells by what a change of each operand is multiplied on its way to the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from ..language import ir
from ..language.build import ONE, ZERO, add, divide, factors, is_zero, multiply, negate, opposite, subtract
from ..language.ir import Binary, Call, Conditional, Expr, Number, Unary
from . import scalar


@dataclass(frozen=True)
class Over:
    """A factor that divides."""

    divisor: Expr


Factor = Expr | Over


@dataclass(frozen=True)
class Part:
    """An operand of a node, and what a change of it does to the node: the gate's pattern, factors, sign and condition.

    A product keeps its order: `before` and `after` stand around the operand. The rule of a function has no place in the
    text; it is written behind the seed of an adjoint, and before the change of a tangent.
    """

    operand: Expr
    gate: str
    before: tuple[Factor, ...] = ()
    rule: tuple[Factor, ...] = ()
    after: tuple[Factor, ...] = ()
    negative: bool = False
    condition: Expr | None = None


def parts(node: Expr, active: Set[str]) -> Iterator[Part]:
    """The operands that a node depends on smoothly, of those that hold an active tensor, in the order of the text."""
    return (part for part in _parts(node, active) if _touches(part.operand, active))


def _parts(node: Expr, active: Set[str]) -> Iterator[Part]:
    match node:
        case Unary(operator="-", operand=operand):
            yield Part(operand, "minus negates", negative=True)
        case Binary(operator="+", left=left, right=right):
            yield Part(left, "add distributes")
            yield Part(right, "add distributes")
        case Binary(operator="-", left=left, right=right):
            yield Part(left, "add distributes")
            yield Part(right, "subtract negates", negative=True)
        case Binary(operator="*"):
            chain = tuple(factors(node))
            for k, factor in enumerate(chain):
                yield Part(factor, "multiply swaps", before=chain[:k], after=chain[k + 1 :])
        case Binary(operator="/", left=left, right=right):
            yield Part(left, "divide scales", after=(Over(right),))
            yield Part(right, "divide chains", rule=(node,), after=(Over(right),), negative=True)
        case Binary(operator="%", left=left, right=right):
            yield Part(left, "remainder distributes")
            yield Part(right, "remainder chains", rule=(Call("floor", (divide(left, right),)),), negative=True)
        case Binary(operator="**", left=left, right=right):
            yield Part(left, "power chains", rule=(_by_base(left, right),))
            if _touches(right, active):
                call = Call("pow", (left, right))
                yield Part(right, "power chains", rule=(ir.exchange(scalar.derivative(call, 1), call, node),))
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            yield Part(then, "branch routes", condition=condition)
            yield Part(otherwise, "branch routes", condition=opposite(condition))
        case Call(function=function) if (branched := scalar.branches(node)) is not None:
            yield from (replace(part, gate=f"{function} routes") for part in _parts(branched, active))
        case Call(function=function, arguments=arguments) if not scalar.is_flat(function):
            for position, argument in enumerate(arguments):
                if _touches(argument, active):
                    yield Part(argument, f"{function} chains", rule=(scalar.derivative(node, position),))
        case Call() | Binary(operator="//") | ir.Compare() | ir.Logic() | Unary(operator="not"):
            return  # constant between its jumps
        case _:
            assert not ir.children(node), f"no rule for {type(node).__name__}"


def _touches(node: Expr, active: Set[str]) -> bool:
    return any(isinstance(n, ir.Access) and n.tensor in active for n in ir.walk(node))


def _by_base(base: Expr, exponent: Expr) -> Expr:
    """d(a ** b)/da; whole exponents stay plain products and powers."""
    if isinstance(exponent, Number):
        if exponent.value == 2:
            return multiply(Number(2), base)
        if exponent.value == 1:
            return ONE
        if exponent.value == 0:
            return ZERO
        return multiply(exponent, Binary("**", base, Number(exponent.value - 1)))
    return scalar.derivative(Call("pow", (base, exponent)), 0)


def product(factors: tuple[Factor, ...]) -> Expr:
    result: Expr = ONE
    for factor in factors:
        result = divide(result, factor.divisor) if isinstance(factor, Over) else multiply(result, factor)
    return result


@dataclass(frozen=True)
class Contribution:
    """One access's part in the adjoint: the factors around the seed, a sign, and the branches and gates that lead to
    it."""

    access: ir.Access
    before: tuple[Factor, ...] = ()
    after: tuple[Factor, ...] = ()
    negative: bool = False
    conditions: tuple[Expr, ...] = ()
    gates: tuple[str, ...] = ()

    def value(self, seed: Expr, known: Callable[[Expr], Expr] = lambda e: e) -> Expr:
        """The product, with the seed in the place that the access had: the swap. `known` looks held values up."""
        factors = (*self.before, seed, *self.after)
        return product(tuple(Over(known(f.divisor)) if isinstance(f, Over) else known(f) for f in factors))

    def through(self, part: Part) -> Contribution:
        """The same access, seen from the node that its path is a part of."""
        return Contribution(
            self.access,
            (*part.before, *self.before),
            (*self.after, *part.rule, *part.after),
            self.negative != part.negative,
            self.conditions if part.condition is None else (part.condition, *self.conditions),
            (part.gate, *self.gates),
        )


def contributions(node: Expr, active: Set[str]) -> Iterator[Contribution]:
    """The part of every access of an active tensor, in the order of the text."""
    for found in _contributions(node, active):
        if not any(isinstance(factor, Number) and factor.value == 0 for factor in (*found.before, *found.after)):
            yield found


def _contributions(node: Expr, active: Set[str]) -> Iterator[Contribution]:
    if isinstance(node, ir.Access):
        if node.tensor in active:
            yield Contribution(node)
        return
    for part in parts(node, active):
        yield from (found.through(part) for found in _contributions(part.operand, active))


def tangent(node: Expr, dots: Mapping[str, str]) -> Expr | None:
    """The derivative along `dots`, which names the tangent of each active tensor; None where it is zero."""
    if isinstance(node, ir.Access):
        return ir.Access(dots[node.tensor], node.indices) if node.tensor in dots else None
    node = (scalar.branches(node) if isinstance(node, Call) else None) or node
    if isinstance(node, Conditional):
        a, b = tangent(node.then, dots), tangent(node.otherwise, dots)
        return None if a is None and b is None else Conditional(node.condition, a or ZERO, b or ZERO)
    total: Expr | None = None
    for part in parts(node, dots.keys()):
        change = tangent(part.operand, dots)
        if change is not None:
            moved = product((*part.before, *part.rule, change, *part.after))
            total = _difference(total, moved) if part.negative else _sum(total, moved)
    return total


def _sum(a: Expr | None, b: Expr | None) -> Expr | None:
    parts = [p for p in (a, b) if p is not None and not is_zero(p)]
    return add(*parts) if len(parts) == 2 else parts[0] if parts else None


def _difference(a: Expr | None, b: Expr | None) -> Expr | None:
    if b is None or is_zero(b):
        return a
    return negate(b) if a is None or is_zero(a) else subtract(a, b)
