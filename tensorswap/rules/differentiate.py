"""Derivatives of one scalar expression: by each access in it (for the adjoint), and along a direction (the tangent)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

from ..language import ir
from ..language.build import ONE, ZERO, add, divide, is_zero, multiply, negate, opposite, subtract
from ..language.ir import Binary, Call, Conditional, Expr, Number, Unary
from . import scalar


@dataclass(frozen=True)
class Over:
    """A factor that divides."""

    divisor: Expr


Factor = Expr | Over


@dataclass(frozen=True)
class Contribution:
    """One access's part in the adjoint: the factors around the seed, a sign, and the branches that lead to it."""

    access: ir.Access
    before: tuple[Factor, ...]
    after: tuple[Factor, ...]
    negative: bool
    conditions: tuple[Expr, ...]

    def value(self, seed: Expr, known: Callable[[Expr], Expr] = lambda e: e) -> Expr:
        """The product, with the seed in the place that the access had: the swap. `known` looks held values up."""
        factors = (*self.before, seed, *self.after)
        return product(tuple(Over(known(f.divisor)) if isinstance(f, Over) else known(f) for f in factors))


def product(factors: tuple[Factor, ...]) -> Expr:
    result: Expr = ONE
    for factor in factors:
        result = divide(result, factor.divisor) if isinstance(factor, Over) else multiply(result, factor)
    return result


def contributions(node: Expr, active: Set[str]) -> Iterator[Contribution]:
    """The part of every access of an active tensor, in the order of the text."""
    for found in _push(node, active, (), (), False, ()):
        if not any(isinstance(factor, Number) and factor.value == 0 for factor in (*found.before, *found.after)):
            yield found


def _touches(node: Expr, active: Set[str]) -> bool:
    return any(isinstance(n, ir.Access) and n.tensor in active for n in ir.walk(node))


def _chain(node: Expr) -> list[Expr]:
    """The factors of a product `a * b * c`."""
    if isinstance(node, Binary) and node.operator == "*":
        return [*_chain(node.left), *_chain(node.right)]
    return [node]


def _push(
    node: Expr,
    active: Set[str],
    before: tuple[Factor, ...],
    after: tuple[Factor, ...],
    negative: bool,
    conditions: tuple[Expr, ...],
) -> Iterator[Contribution]:
    if not _touches(node, active):
        return
    match node:
        case ir.Access():
            if node.tensor in active:
                yield Contribution(node, before, after, negative, conditions)
        case Unary(operator="-", operand=operand):
            yield from _push(operand, active, before, after, not negative, conditions)
        case Binary(operator="+" | "-" as operator, left=left, right=right):
            yield from _push(left, active, before, after, negative, conditions)
            yield from _push(right, active, before, after, negative != (operator == "-"), conditions)
        case Binary(operator="*"):
            factors = _chain(node)
            for k, factor in enumerate(factors):
                ahead, behind = (*before, *factors[:k]), (*factors[k + 1 :], *after)
                yield from _push(factor, active, ahead, behind, negative, conditions)
        case Binary(operator="/", left=left, right=right):
            yield from _push(left, active, before, (Over(right), *after), negative, conditions)
            yield from _push(right, active, before, (node, Over(right), *after), not negative, conditions)
        case Binary(operator="%", left=left, right=right):
            yield from _push(left, active, before, after, negative, conditions)
            quotient = Call("floor", (divide(left, right),))
            yield from _push(right, active, before, (quotient, *after), not negative, conditions)
        case Binary(operator="**", left=left, right=right):
            yield from _push(left, active, before, (_power_rule(left, right), *after), negative, conditions)
            if _touches(right, active):
                rule = scalar.derivative(Call("pow", (left, right)), 1)
                rule = ir.transform(rule, lambda n: node if n == Call("pow", (left, right)) else n)
                yield from _push(right, active, before, (rule, *after), negative, conditions)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            yield from _push(then, active, before, after, negative, (*conditions, condition))
            yield from _push(otherwise, active, before, after, negative, (*conditions, opposite(condition)))
        case Call(function=function, arguments=arguments):
            branched = scalar.branches(node)
            if branched is not None:
                yield from _push(branched, active, before, after, negative, conditions)
            elif not scalar.is_flat(function):
                for position, argument in enumerate(arguments):
                    if _touches(argument, active):
                        rule = scalar.derivative(node, position)
                        yield from _push(argument, active, before, (rule, *after), negative, conditions)
        case Binary(operator="//") | ir.Compare() | ir.Logic() | Unary(operator="not"):
            return  # constant between its jumps
        case _:
            raise AssertionError(f"no rule for {type(node).__name__}")


def _power_rule(base: Expr, exponent: Expr) -> Expr:
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


def tangent(node: Expr, dots: Mapping[str, str]) -> Expr | None:
    """The derivative along `dots`, which names the tangent of each active tensor; None where it is zero."""
    if not _touches(node, dots.keys()):
        return None
    match node:
        case ir.Access():
            return ir.Access(dots[node.tensor], node.indices) if node.tensor in dots else None
        case Unary(operator="-", operand=operand):
            part = tangent(operand, dots)
            return None if part is None else negate(part)
        case Binary(operator="+", left=left, right=right):
            return _sum(tangent(left, dots), tangent(right, dots))
        case Binary(operator="-", left=left, right=right):
            return _difference(tangent(left, dots), tangent(right, dots))
        case Binary(operator="*"):
            factors = _chain(node)
            total: Expr | None = None
            for k, factor in enumerate(factors):
                part = tangent(factor, dots)
                if part is not None:
                    total = _sum(total, product((*factors[:k], part, *factors[k + 1 :])))
            return total
        case Binary(operator="/", left=left, right=right):
            above, below = tangent(left, dots), tangent(right, dots)
            first = None if above is None else divide(above, right)
            second = None if below is None else divide(multiply(node, below), right)
            return _difference(first, second)
        case Binary(operator="%", left=left, right=right):
            step = tangent(right, dots)
            second = None if step is None else multiply(Call("floor", (divide(left, right),)), step)
            return _difference(tangent(left, dots), second)
        case Binary(operator="**", left=left, right=right):
            base, exponent = tangent(left, dots), tangent(right, dots)
            first = None if base is None else multiply(_power_rule(left, right), base)
            second = None
            if exponent is not None:
                rule = scalar.derivative(Call("pow", (left, right)), 1)
                rule = ir.transform(rule, lambda n: node if n == Call("pow", (left, right)) else n)
                second = multiply(rule, exponent)
            return _sum(first, second)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            a, b = tangent(then, dots), tangent(otherwise, dots)
            if a is None and b is None:
                return None
            return Conditional(condition, a or ZERO, b or ZERO)
        case Call(function=function, arguments=arguments):
            branched = scalar.branches(node)
            if branched is not None:
                return tangent(branched, dots)
            if scalar.is_flat(function):
                return None
            total = None
            for position, argument in enumerate(arguments):
                part = tangent(argument, dots)
                if part is not None:
                    total = _sum(total, multiply(scalar.derivative(node, position), part))
            return total
        case Binary(operator="//") | ir.Compare() | ir.Logic() | Unary(operator="not"):
            return None  # constant between its jumps
    raise AssertionError(f"no rule for {type(node).__name__}")


def _sum(a: Expr | None, b: Expr | None) -> Expr | None:
    parts = [p for p in (a, b) if p is not None and not is_zero(p)]
    return add(*parts) if len(parts) == 2 else parts[0] if parts else None


def _difference(a: Expr | None, b: Expr | None) -> Expr | None:
    if b is None or is_zero(b):
        return a
    return negate(b) if a is None or is_zero(a) else subtract(a, b)


__all__ = ["Contribution", "contributions", "product", "tangent"]
