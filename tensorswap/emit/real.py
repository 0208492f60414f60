"""Numbers of a function under construction: arithmetic on them emits LLVM instructions, straight into the caller.

A function made of them has no branch and no call, so that LLVM's loop vectoriser takes any loop around it, and there
is nothing to compile but the kernel that uses it. Python numbers beside a `Real` or a `Word` become constants of its
type. A comparison gives a bare LLVM value, which `select` takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm

FLAGS = ("contract",)  # a product and a sum may become one operation; all else stays as written
INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True, eq=False)
class Word:
    """An integer of 32 or 64 bits."""

    builder: Any
    value: Any

    def _emit(self, operation: str, other: Word | int) -> Word:
        right = other.value if isinstance(other, Word) else llvm.Constant(self.value.type, other)
        return Word(self.builder, getattr(self.builder, operation)(self.value, right))

    def __add__(self, other: Word | int) -> Word:
        return self._emit("add", other)

    def __sub__(self, other: Word | int) -> Word:
        return self._emit("sub", other)

    def __and__(self, other: Word | int) -> Word:
        return self._emit("and_", other)

    def __or__(self, other: Word | int) -> Word:
        return self._emit("or_", other)

    def __xor__(self, other: Word | int) -> Word:
        return self._emit("xor", other)

    def __lshift__(self, count: int) -> Word:
        return self._emit("shl", count)

    def __rshift__(self, count: int) -> Word:
        """Zeros come in from the left."""
        return self._emit("lshr", count)

    def odd(self) -> Any:
        return self.builder.trunc(self.value, llvm.IntType(1))

    def wide(self) -> Word:
        return Word(self.builder, self.builder.zext(self.value, llvm.IntType(64)))

    def narrow(self) -> Word:
        return Word(self.builder, self.builder.trunc(self.value, llvm.IntType(32)))

    def real(self) -> Real:
        """The number with these bits."""
        kind = llvm.FloatType() if self.value.type.width == 32 else llvm.DoubleType()
        return Real(self.builder, self.builder.bitcast(self.value, kind))


@dataclass(frozen=True, eq=False)
class Real:
    """A float32 or float64."""

    builder: Any
    value: Any

    @property
    def size(self) -> int:
        """In bytes: 4 or 8."""
        return 4 if isinstance(self.value.type, llvm.FloatType) else 8

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
        if isinstance(number, Real):
            return number
        return Real(self.builder, llvm.Constant(self.value.type, float(number)))

    def _emit(self, operation: str, other: Real | float) -> Real:
        right = self.constant(other).value
        return Real(self.builder, getattr(self.builder, operation)(self.value, right, flags=FLAGS))

    def __add__(self, other: Real | float) -> Real:
        return self._emit("fadd", other)

    def __sub__(self, other: Real | float) -> Real:
        return self._emit("fsub", other)

    def __mul__(self, other: Real | float) -> Real:
        return self._emit("fmul", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._emit("fdiv", other)

    def __neg__(self) -> Real:
        return Real(self.builder, self.builder.fneg(self.value))

    def __abs__(self) -> Real:
        return self.call("fabs")

    def _compare(self, operation: str, other: Real | float) -> Any:
        return self.builder.fcmp_ordered(operation, self.value, self.constant(other).value)

    def __lt__(self, other: Real | float) -> Any:
        return self._compare("<", other)

    def __gt__(self, other: Real | float) -> Any:
        return self._compare(">", other)

    def equals(self, other: Real | float) -> Any:
        return self._compare("==", other)

    def call(self, name: str, *others: Real) -> Real:
        """One of LLVM's own functions, which is an instruction, of numbers of one type."""
        kind = self.value.type
        of = llvm.FunctionType(kind, [kind] * (1 + len(others)))
        function = self.builder.module.declare_intrinsic(f"llvm.{name}", [kind], of)
        return Real(self.builder, self.builder.call(function, [self.value, *(other.value for other in others)]))

    def times(self, other: Real) -> tuple[Real, Real]:
        """The product, and what it lacks of the exact one."""
        product = Real(self.builder, self.builder.fmul(self.value, other.value))  # no flags: it may not be merged
        return product, self.call("fma", other, -product)

    def plus(self, other: Real) -> tuple[Real, Real]:
        """The sum, and what it lacks of the exact one."""
        total = self + other
        part = total - self
        return total, (self - (total - part)) + (other - part)

    def bits(self) -> Word:
        return Word(self.builder, self.builder.bitcast(self.value, llvm.IntType(8 * self.size)))

    def double(self) -> Real:
        return Real(self.builder, self.builder.fpext(self.value, llvm.DoubleType()))

    def single(self) -> Real:
        return Real(self.builder, self.builder.fptrunc(self.value, llvm.FloatType()))

    def signed(self, other: Real) -> Real:
        """This number, which has no sign, with the sign of another."""
        return (self.bits() | (other.bits() & (1 << (8 * self.size - 1)))).real()


def select(condition: Any, yes: Real | float, no: Real) -> Real:
    return Real(no.builder, no.builder.select(condition, no.constant(yes).value, no.value))


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """The lowest power first; added up in pairs, so that many of the operations can run at the same time."""
    terms = [x.constant(number) for number in coefficients]
    while len(terms) > 1:
        pairs = [low + high * x for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
        x = x * x
    return terms[0]


def table(builder: Any, name: str, numbers: Sequence[float]) -> Any:
    """A constant array of float64 in the module under construction."""
    found = builder.module.globals.get(name)
    if found is None:
        kind = llvm.ArrayType(llvm.DoubleType(), len(numbers))
        found = llvm.GlobalVariable(builder.module, kind, name)
        found.linkage, found.global_constant = "internal", True
        found.initializer = llvm.Constant(kind, list(numbers))
    return found


def entry(array: Any, index: Word) -> Real:
    place = index.builder.gep(array, [llvm.Constant(llvm.IntType(64), 0), index.value], inbounds=True)
    return Real(index.builder, index.builder.load(place))
