"""Numbers of a function under construction: arithmetic on them makes values of the kernel IR.

A function made of them has no branch and no call, so that a loop around it can run in vectors. Python numbers beside a
`Real` or a `Word` become constants of its type. A comparison gives a bare truth, which `select` takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import ir
from ..ir import F4, F8, Type, Value

INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True, eq=False)
class Word:
    """A whole number of 32 or 64 bits."""

    value: Value

    def _made(self, operator: str, other: Word | int) -> Word:
        kind = self.value.type
        right = other.value if isinstance(other, Word) else ir.Number(ir.wrapped(other, kind), kind)
        return Word(ir.Operation(operator, (self.value, right), kind))

    def __add__(self, other: Word | int) -> Word:
        return self._made("+", other)

    def __sub__(self, other: Word | int) -> Word:
        return self._made("-", other)

    def __mul__(self, other: Word | int) -> Word:
        return self._made("*", other)

    def __and__(self, other: Word | int) -> Word:
        return self._made("&", other)

    def __or__(self, other: Word | int) -> Word:
        return self._made("|", other)

    def __xor__(self, other: Word | int) -> Word:
        return self._made("^", other)

    def __lshift__(self, count: int) -> Word:
        return self._made("<<", count)

    def __rshift__(self, count: int) -> Word:
        """Zeros come in from the left."""
        return self._made(">>", count)

    def odd(self) -> Value:
        return ir.compare("!=", (self & 1).value, 0)

    def wide(self) -> Word:
        return Word(ir.Cast(self.value, ir.U8))

    def narrow(self) -> Word:
        return Word(ir.Cast(self.value, ir.U4))

    def real(self) -> Real:
        """The number with these bits."""
        return Real(ir.Bits(self.value, F4 if self.value.type.size == 4 else F8))


@dataclass(frozen=True, eq=False)
class Real:
    """A float32 or float64."""

    value: Value

    @property
    def size(self) -> int:
        """In bytes: 4 or 8."""
        return self.value.type.size

    @property
    def digits(self) -> int:
        """Bits behind the leading one."""
        return 23 if self.size == 4 else 52

    @property
    def bias(self) -> int:
        """What the exponent of 1 is stored as."""
        return 127 if self.size == 4 else 1023

    @property
    def one(self) -> int:
        """The bits of 1."""
        return self.bias << self.digits

    @property
    def magic(self) -> float:
        """Added to a number that is not large, it leaves the nearest whole number in the low bits."""
        return 1.5 * 2.0**self.digits

    def constant(self, number: Real | float) -> Real:
        return number if isinstance(number, Real) else Real(ir.number(number, self.value.type))

    def _made(self, operator: str, other: Real | float, apart: bool = False) -> Real:
        operands = (self.value, self.constant(other).value)
        return Real(ir.Operation(operator, operands, self.value.type, apart))

    def __add__(self, other: Real | float) -> Real:
        return self._made("+", other)

    def __sub__(self, other: Real | float) -> Real:
        return self._made("-", other)

    def __mul__(self, other: Real | float) -> Real:
        return self._made("*", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._made("/", other)

    def __neg__(self) -> Real:
        return Real(ir.Operation("neg", (self.value,), self.value.type))

    def __abs__(self) -> Real:
        return self.call("fabs")

    def _compare(self, operator: str, other: Real | float) -> Value:
        return ir.compare(operator, self.value, self.constant(other).value)

    def __lt__(self, other: Real | float) -> Value:
        return self._compare("<", other)

    def __gt__(self, other: Real | float) -> Value:
        return self._compare(">", other)

    def equals(self, other: Real | float) -> Value:
        return self._compare("==", other)

    def call(self, name: str, *others: Real) -> Real:
        """One of the functions that are instructions."""
        return Real(ir.Call(name, (self.value, *(other.value for other in others)), self.value.type))

    def times(self, other: Real) -> tuple[Real, Real]:
        """The product, and what it lacks of the exact one."""
        product = self._made("*", other, apart=True)
        return product, self.call("fma", other, -product)

    def plus(self, other: Real) -> tuple[Real, Real]:
        """The sum, and what it lacks of the exact one."""
        total = self + other
        part = total - self
        return total, (self - (total - part)) + (other - part)

    def bits(self) -> Word:
        return Word(ir.Bits(self.value, Type("u", self.size)))

    def double(self) -> Real:
        return Real(ir.Cast(self.value, F8))

    def single(self) -> Real:
        return Real(ir.Cast(self.value, F4))

    def signed(self, other: Real) -> Real:
        """This number, which has no sign, with the sign of another."""
        return (self.bits() | (other.bits() & (1 << (8 * self.size - 1)))).real()


def select(condition: Value, yes: Real | float, no: Real) -> Real:
    return Real(ir.Choice(condition, no.constant(yes).value, no.value))


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """The lowest power first; added up in pairs, so that many of the operations can run at the same time."""
    terms = [x.constant(number) for number in coefficients]
    while len(terms) > 1:
        pairs = [low + high * x for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
        x = x * x
    return terms[0]


def entry(table: ir.Table, index: Word) -> Real:
    return Real(ir.Entry(table, index.value))
