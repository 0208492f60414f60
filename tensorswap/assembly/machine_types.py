"""Types, of which there is one object each, so that `is` compares them; and values, each with a text that names it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Self


class Type:
    """What all have: their text, and the type of pointers to them."""

    made: ClassVar[dict[Hashable, Any]] = {}
    text: str
    pointer: PointerType | None

    def __new__(cls, *parts: Any) -> Self:
        key = (cls, *(tuple(part) if isinstance(part, list) else part for part in parts))
        found: Self | None = Type.made.get(key)
        if found is None:
            found = super().__new__(cls)
            found.pointer = None
            found.begin(*key[1:])
            Type.made[key] = found
        return found

    def begin(self, *parts: Any) -> None:
        """What a new one consists of."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    def __call__(self, value: Any) -> Constant:
        return Constant(self, value)

    def as_pointer(self) -> PointerType:
        if self.pointer is None:
            self.pointer = PointerType(self)
        return self.pointer

    def constant(self, value: Any) -> str:
        """The text of a constant."""
        raise TypeError(f"no constants of type {self}")

    @property
    def suffix(self) -> str:
        """Of the names of functions that LLVM has for several types."""
        raise TypeError(f"no functions of type {self}")


class VoidType(Type):
    def begin(self) -> None:
        self.text = "void"


class IntType(Type):
    width: int

    def begin(self, width: int) -> None:
        self.width = width
        self.text = f"i{width}"

    def constant(self, value: Any) -> str:
        if self.width == 1:
            return "true" if value else "false"
        return str(int(value))

    @property
    def suffix(self) -> str:
        return self.text


class FloatType(Type):
    def begin(self) -> None:
        self.text = "float"

    def constant(self, value: Any) -> str:
        return _bits(ctypes.c_float(value).value)

    @property
    def suffix(self) -> str:
        return "f32"


class DoubleType(Type):
    def begin(self) -> None:
        self.text = "double"

    def constant(self, value: Any) -> str:
        return _bits(float(value))

    @property
    def suffix(self) -> str:
        return "f64"


def _bits(value: float) -> str:
    """LLVM takes numbers of either precision as the bits of a double."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"


class PointerType(Type):
    pointee: Type

    def begin(self, pointee: Type) -> None:
        self.pointee = pointee
        self.text = f"{pointee.text}*"


class _Several(Type):
    """So many elements of one type."""

    element: Type
    count: int
    brackets: ClassVar[tuple[str, str]]

    def begin(self, element: Type, count: int) -> None:
        self.element = element
        self.count = count
        first, last = self.brackets
        self.text = f"{first}{count} x {element.text}{last}"

    def constant(self, value: Sequence[Any]) -> str:
        first, last = self.brackets
        of = self.element
        if all(one is value[0] for one in value):
            each = [f"{of.text} {of.constant(value[0])}"] * len(value)
        else:
            each = [f"{of.text} {of.constant(one)}" for one in value]
        return f"{first}{', '.join(each)}{last}"


class VectorType(_Several):
    brackets = "<", ">"

    @property
    def suffix(self) -> str:
        return f"v{self.count}{self.element.suffix}"


class ArrayType(_Several):
    brackets = "[", "]"


class FunctionType(Type):
    result: Type
    parameters: tuple[Type, ...]

    def begin(self, result: Type, parameters: tuple[Type, ...]) -> None:
        self.result = result
        self.parameters = parameters
        self.text = f"{result.text} ({', '.join(each.text for each in parameters)})"


class Value:
    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str) -> None:
        self.type = type
        self.name = name

    @property
    def typed(self) -> str:
        return f"{self.type.text} {self.name}"


class _Undefined:
    """Stands for a value that may be any."""


Undefined = _Undefined()


class Constant(Value):
    """A number, or several; None is all zeros."""

    __slots__ = ("constant",)

    def __init__(self, type: Type, value: Any) -> None:
        self.constant = value
        if value is None:
            text = "zeroinitializer"
        else:
            text = "undef" if value is Undefined else type.constant(value)
        super().__init__(type, text)


class Converted(Value):
    """A value in another type, and by which operation."""

    __slots__ = ("operation",)

    def __init__(self, type: Type, name: str, operation: str) -> None:
        super().__init__(type, name)
        self.operation = operation


def typed(values: Sequence[Value]) -> str:
    return ", ".join([f"{value.type.text} {value.name}" for value in values])
