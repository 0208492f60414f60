"""Functions on whole numbers and on both kinds: powers, quotients, signs, and the random numbers of splitmix64."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from .. import ir
from ..ir import F8, U8, WORD, Body, Type, Value, Variable
from . import elementary, trigonometry
from .real import Real, Word, select

Parts = tuple[tuple[Variable, ...], Value] | tuple[tuple[Variable, ...], Value, Body]

POWER_BITS = 10  # of the largest exponent for which products are as good as the library's power
GOLDEN = 0x9E3779B97F4A7C15


def _power(type: Type) -> Parts | None:
    """By squaring: an exponent has at most 63 bits."""
    if not type.whole:
        return None
    base, exponent, result = (Variable(name, type) for name in ("a", "b", "result"))
    odd = ir.compare("!=", ir.Operation("&", (exponent, ir.Number(1, type)), type), 0)
    step: Body = (
        ir.If(odd, (ir.Set(result, result * base),)),
        ir.Set(base, base * base),
        ir.Set(exponent, ir.Operation(">>", (exponent, ir.Number(1, type)), type)),
    )
    loop = ir.While(ir.compare(">", exponent, 0), step)
    return (base, exponent), result, (ir.Set(result, ir.Number(1, type)), loop)


def _power_of_bits(type: Type, bits: int, signed: bool) -> Parts | None:
    """A real number to a whole exponent of so many bits: a product of squares, without a branch. A base of less than 64
    bits is widened, so that the roundings of all products are none of its own; a negative exponent turns the base over,
    since the power may be too large where its inverse is not too small."""
    if not type.real:
        return None
    x, n = Variable("x", type), Variable("n", WORD)
    square, count = _turned(x, n) if signed else (ir.cast(x, F8), n)
    result: Value = ir.number(1, F8)
    for bit in range(bits):
        square = square * square if bit else square
        taken = ir.compare("!=", ir.Operation("&", (count, ir.Number(1 << bit, WORD)), WORD), 0)
        result = ir.Choice(taken, result * square if bit else square, result)
    return (x, n), ir.cast(result, type)


def _turned(x: Value, n: Value) -> tuple[Value, Value]:
    """The base and the exponent, or their inverses where the exponent is negative."""
    below, base = ir.compare("<", n, 0), ir.cast(x, F8)
    return ir.Choice(below, ir.number(1, F8) / base, base), ir.Choice(below, -n, n)


def _whole_power(type: Type) -> Parts | None:
    """As above, for any exponent. Roundings add up: those of large exponents are the library's."""
    if not type.real:
        return None
    x, n = Variable("x", type), Variable("n", WORD)
    base, result = (Variable(name, F8) for name in ("base", "result"))
    left = Variable("left", WORD)
    turned, count = _turned(x, n)
    large = ir.joined("either", [ir.compare("<", n, 1 - (1 << POWER_BITS)), ir.compare(">", n, (1 << POWER_BITS) - 1)])
    odd = ir.compare("!=", ir.Operation("&", (left, ir.ONE), WORD), 0)
    step: Body = (
        ir.If(odd, (ir.Set(result, result * base),)),
        ir.Set(base, base * base),
        ir.Set(left, ir.Operation(">>", (left, ir.ONE), WORD)),
    )
    first = (
        ir.Set(base, turned),
        ir.Set(left, ir.Choice(large, ir.ZERO, count)),
        ir.Set(result, ir.number(1, F8)),
        ir.While(ir.compare(">", left, 0), step),
    )
    library = ir.Call("pow", (x, ir.cast(n, type)), type)
    return (x, n), ir.Choice(large, library, ir.cast(result, type), lazy=True), first


def _square(type: Type) -> Parts:
    x = Variable("x", type)
    return (x,), x * x


def _cube(type: Type) -> Parts:
    x = Variable("x", type)
    return (x,), x * x * x


def _fourth(type: Type) -> Parts:
    x = Variable("x", type)
    square = x * x
    return (x,), square * square


def _absolute(type: Type) -> Parts | None:
    x = Variable("x", type)
    return ((x,), ir.Choice(ir.compare("<", x, 0), -x, x)) if type.whole else None


def _sign(type: Type) -> Parts | None:
    x = Variable("x", type)
    one, minus, zero = (ir.Number(k, type) for k in (1, -1, 0))
    below = ir.Choice(ir.compare("<", x, 0), minus, zero)
    return ((x,), ir.Choice(ir.compare(">", x, 0), one, below)) if type.whole else None


def _same(type: Type) -> Parts | None:
    """Whole numbers are whole already."""
    x = Variable("x", type)
    return ((x,), x) if type.whole else None


def _divided(type: Type) -> tuple[tuple[Variable, ...], Real, Real]:
    """What is left when real numbers are divided towards minus infinity, and the quotient, both as numpy has them."""
    a, b = Variable("a", type), Variable("b", type)
    x, y = Real(a), Real(b)
    rest = Real(ir.Call("fmod", (a, b), type))
    quotient = (x - rest) / y
    other = ir.joined("both", [ir.compare("!=", rest.value, 0.0), _differ(rest < 0.0, y < 0.0)])
    rest, quotient = select(other, rest + y, rest), select(other, quotient - 1.0, quotient)
    zero = x.constant(0.0)
    near = quotient.call("floor")
    near = select((quotient - near) > 0.5, near + 1.0, near)
    near = select(quotient.equals(0.0), zero.signed(x / y), near)
    return (a, b), select(rest.equals(0.0), zero.signed(y), rest), select(y.equals(0.0), x / y, near)


def _differ(one: Value, other: Value) -> Value:
    return ir.Operation("!=", (one, other), ir.TRUTH)


def _quotient(type: Type) -> Parts | None:
    if not type.real:
        return None
    arguments, _, quotient = _divided(type)
    return arguments, quotient.value


def _remainder(type: Type) -> Parts | None:
    if not type.real:
        return None
    arguments, rest, _ = _divided(type)
    return arguments, rest.value


def _short_quotient(type: Type) -> Parts:
    """Of whole numbers, of which the first is less than 2**52 away from zero, by a division of real numbers: it runs in
    vectors, and no such quotient is so near to the next whole number that it is rounded to it."""
    a, b = Variable("a", WORD), Variable("b", WORD)
    quotient = Real(ir.Cast(a, F8)) / Real(ir.Cast(b, F8))
    return (a, b), ir.Cast(quotient.call("floor").value, WORD)


def mix(x: Word) -> Word:
    """The finaliser of splitmix64: every bit of the argument reaches every bit of the result."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


def _mixed(type: Type) -> Parts:
    state, argument = Variable("state", U8), Variable("argument", WORD)
    bits = mix(Word(ir.Cast(argument, U8)) + GOLDEN)
    return (state, argument), mix((Word(state) + GOLDEN) ^ bits).value


def unit(bits: Word) -> Real:
    """A number between 0 and 1, without 1."""
    return Real(ir.Cast((bits >> 11).value, F8)) * 2.0**-53


def _uniform(type: Type) -> Parts:
    """What single precision would round to 1 is a little less."""
    bits = Variable("bits", U8)
    value, most = unit(Word(bits)).value, ir.number(1 - 2.0**-24, F8)
    return (bits,), ir.Choice(ir.compare("<", value, most), value, most)


def _normal(type: Type) -> Parts:
    bits = Variable("bits", U8)
    first, second = unit(Word(bits)), unit(mix(Word(bits) + GOLDEN))
    length = (elementary.log(first.constant(1.0) - first) * -2.0).call("sqrt")
    return (bits,), (length * trigonometry.cos(second * (2.0 * math.pi))).value


MAKERS: dict[str, Callable[[Type], Parts | None]] = {
    "pow": _power, "square": _square, "cube": _cube, "fourth": _fourth, "abs": _absolute, "sign": _sign,
    "floor": _same, "ceil": _same, "round": _same,
    **{f"{sign}power_{bits}": partial(_power_of_bits, bits=bits, signed=sign != "")
       for sign in ("", "signed_") for bits in range(1, POWER_BITS + 1)},
    "whole_power": _whole_power, "quotient": _quotient, "remainder": _remainder,
    "short_quotient": _short_quotient,
    "mixed": _mixed, "uniform": _uniform, "normal": _normal,
}  # fmt: skip
