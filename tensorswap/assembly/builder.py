"""Builder: writes instructions at the end of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from .machine_types import (
    ArrayType,
    Constant,
    Converted,
    FunctionType,
    IntType,
    PointerType,
    Type,
    Value,
    VectorType,
    typed,
)
from .module_text import Block, Function, Jump, Module, Phi

BIT = IntType(1)
ORDERS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
EQUAL = {"==": "eq", "!=": "ne"}
UNORDERED = {**EQUAL, "uno": "no"}
RARE = (1, 99)  # how often a branch is taken, against the other


class _Swapped(Type):
    """What a compare and exchange gives: the old value, and whether it was exchanged."""

    def begin(self, of: Type) -> None:
        self.of = of
        self.text = f"{{{of.text}, i1}}"


def _operation(name: str) -> Callable[..., Value]:
    def write(self: Builder, a: Value, b: Value, flags: Sequence[str] = ()) -> Value:
        assert a.type is b.type, f"{name} of {a.typed} and {b.typed}"
        with_flags = " ".join((name, *flags))
        return self.made(a.type, f"{with_flags} {a.type.text} {a.name}, {b.name}")

    return write


def _conversion(name: str) -> Callable[[Builder, Value, Type], Value]:
    def write(self: Builder, value: Value, type: Type) -> Value:
        if value.type is type:
            return value
        made = Converted(type, self.function.next(), name)
        self.line(f"{made.name} = {name} {value.type.text} {value.name} to {type.text}")
        return made

    return write


class Builder:
    def __init__(self, block: Block) -> None:
        self.position_at_end(block)

    def position_at_end(self, block: Block) -> None:
        self.block = block
        self.function: Function = block.function
        self.line: Callable[[str | Phi | Jump], None] = block.instructions.append

    @property
    def module(self) -> Module:
        return self.function.module

    def made(self, type: Type, text: str) -> Value:
        """What an instruction gives."""
        function = self.function
        function.count += 1
        name = f"%v{function.count}"
        self.line(f"{name} = {text}")
        return Value(type, name)

    # -- arithmetic

    add, sub, mul = _operation("add"), _operation("sub"), _operation("mul")
    sdiv, udiv, srem, urem = _operation("sdiv"), _operation("udiv"), _operation("srem"), _operation("urem")
    and_, or_, xor = _operation("and"), _operation("or"), _operation("xor")
    shl, lshr = _operation("shl"), _operation("lshr")
    fadd, fsub, fmul = _operation("fadd"), _operation("fsub"), _operation("fmul")
    fdiv, frem = _operation("fdiv"), _operation("frem")

    bitcast, inttoptr, ptrtoint = _conversion("bitcast"), _conversion("inttoptr"), _conversion("ptrtoint")
    trunc, zext, sext = _conversion("trunc"), _conversion("zext"), _conversion("sext")
    fptrunc, fpext = _conversion("fptrunc"), _conversion("fpext")
    fptosi, fptoui = _conversion("fptosi"), _conversion("fptoui")
    sitofp, uitofp = _conversion("sitofp"), _conversion("uitofp")

    def neg(self, value: Value) -> Value:
        return self.sub(Constant(value.type, 0), value)

    def fneg(self, value: Value, flags: Sequence[str] = ()) -> Value:
        return self.made(value.type, f"{' '.join(('fneg', *flags))} {value.typed}")

    def not_(self, value: Value) -> Value:
        all_ones = [-1] * value.type.count if isinstance(value.type, VectorType) else -1
        return self.xor(value, Constant(value.type, all_ones))

    def icmp_signed(self, operator: str, a: Value, b: Value) -> Value:
        return self._compared("icmp", EQUAL.get(operator) or f"s{ORDERS[operator]}", a, b)

    def icmp_unsigned(self, operator: str, a: Value, b: Value) -> Value:
        return self._compared("icmp", EQUAL.get(operator) or f"u{ORDERS[operator]}", a, b)

    def fcmp_ordered(self, operator: str, a: Value, b: Value) -> Value:
        return self._compared("fcmp", f"o{EQUAL.get(operator) or ORDERS[operator]}", a, b)

    def fcmp_unordered(self, operator: str, a: Value, b: Value) -> Value:
        return self._compared("fcmp", f"u{UNORDERED.get(operator) or ORDERS[operator]}", a, b)

    def _compared(self, name: str, how: str, a: Value, b: Value) -> Value:
        assert a.type is b.type, f"{name} of {a.typed} and {b.typed}"
        truth = VectorType(BIT, a.type.count) if isinstance(a.type, VectorType) else BIT
        return self.made(truth, f"{name} {how} {a.type.text} {a.name}, {b.name}")

    def select(self, test: Value, yes: Value, no: Value) -> Value:
        assert yes.type is no.type, f"select of {yes.typed} and {no.typed}"
        return self.made(yes.type, f"select {test.typed}, {yes.typed}, {no.typed}")

    # -- vectors

    def extract_element(self, vector: Value, place: Value) -> Value:
        assert isinstance(vector.type, VectorType)
        return self.made(vector.type.element, f"extractelement {vector.typed}, {place.typed}")

    def insert_element(self, vector: Value, value: Value, place: Value) -> Value:
        return self.made(vector.type, f"insertelement {vector.typed}, {value.typed}, {place.typed}")

    def shuffle_vector(self, one: Value, other: Value, places: Constant) -> Value:
        assert isinstance(one.type, VectorType)
        type = VectorType(one.type.element, len(places.constant))
        return self.made(type, f"shufflevector {one.typed}, {other.typed}, {places.typed}")

    # -- memory

    def alloca(self, type: Type, count: Value | None = None) -> Value:
        some = "" if count is None else f", {count.typed}"
        return self.made(type.as_pointer(), f"alloca {type.text}{some}")

    def gep(self, start: Value, places: Sequence[Value], inbounds: bool = False) -> Value:
        """An address so many elements further on; with a second place, one in the array that stands there."""
        type = start.type
        assert isinstance(type, PointerType)
        if len(places) == 1 and isinstance(places[0], Constant) and places[0].constant == 0:
            return start
        sure = "inbounds " if inbounds else ""
        text = f"getelementptr {sure}{type.pointee.text}, {type.text} {start.name}, {typed(places)}"
        if len(places) > 1:
            assert isinstance(type.pointee, ArrayType)
            type = type.pointee.element.as_pointer()
        return self.made(type, text)

    def load(self, place: Value, align: int | None = None) -> Value:
        return self._loaded("load", place, "" if align is None else f", align {align}")

    def load_atomic(self, place: Value, ordering: str, align: int) -> Value:
        return self._loaded("load atomic", place, f" {ordering}, align {align}")

    def _loaded(self, how: str, place: Value, rest: str) -> Value:
        type = place.type
        assert isinstance(type, PointerType), f"load of {place.typed}"
        return self.made(type.pointee, f"{how} {type.pointee.text}, {type.text} {place.name}{rest}")

    def store(self, value: Value, place: Value, align: int | None = None) -> None:
        self._stored("store", value, place, "" if align is None else f", align {align}")

    def store_atomic(self, value: Value, place: Value, ordering: str, align: int) -> None:
        self._stored("store atomic", value, place, f" {ordering}, align {align}")

    def _stored(self, how: str, value: Value, place: Value, rest: str) -> None:
        assert place.type is value.type.as_pointer(), f"store of {value.typed} to {place.typed}"
        self.line(f"{how} {value.type.text} {value.name}, {place.type.text} {place.name}{rest}")

    def atomic_rmw(self, operation: str, place: Value, value: Value, ordering: str) -> Value:
        return self.made(value.type, f"atomicrmw {operation} {place.typed}, {value.typed} {ordering}")

    def cmpxchg(self, place: Value, old: Value, new: Value, success: str, failure: str) -> Value:
        text = f"cmpxchg {place.typed}, {old.typed}, {new.typed} {success} {failure}"
        return self.made(_Swapped(old.type), text)

    def extract_value(self, swapped: Value, place: int) -> Value:
        assert isinstance(swapped.type, _Swapped)
        return self.made(BIT if place else swapped.type.of, f"extractvalue {swapped.typed}, {place}")

    # -- control

    def call(self, function: Value, arguments: Sequence[Value]) -> Value:
        assert isinstance(function.type, PointerType)
        kind = function.type.pointee
        assert isinstance(kind, FunctionType)
        given = tuple(argument.type for argument in arguments)
        assert given == kind.parameters, f"{function.typed} is called with {typed(arguments)}"
        text = f"call {kind.result.text} {function.name}({typed(arguments)})"
        if kind.result.text != "void":
            return self.made(kind.result, text)
        self.line(text)
        return Value(kind.result, "")

    def hidden(self, value: Value) -> Value:
        """The value, of which LLVM does not know what it is: no instruction is written."""
        return self.made(value.type, f'call {value.type.text} asm "", "=r,0"({value.typed})')

    def phi(self, type: Type) -> Phi:
        made = Phi(type, self.function.next())
        self.line(made)
        return made

    def _jump(self, text: str) -> Jump:
        assert not self.block.ended, f"{self.block.name} has ended before {text}"
        made = Jump(self.function, text)
        self.line(made)
        self.block.ended = True
        return made

    def branch(self, target: Block) -> Jump:
        return self._jump(f"br label %{target.name}")

    def cbranch(self, test: Value, yes: Block, no: Block) -> Jump:
        return self._jump(f"br i1 {test.name}, label %{yes.name}, label %{no.name}")

    def ret_void(self) -> Jump:
        return self._jump("ret void")

    def ret(self, value: Value) -> Jump:
        return self._jump(f"ret {value.typed}")

    @contextmanager
    def if_then(self, test: Value, likely: bool = True) -> Iterator[None]:
        inside, after = (self.function.append_basic_block(name) for name in ("if", "endif"))
        jump = self.cbranch(test, inside, after)
        if not likely:
            weights = [Constant(IntType(32), weight) for weight in RARE]
            jump.set_metadata("prof", self.module.add_metadata(["branch_weights", *weights]))
        with self.going_on_at(inside, after):
            yield
        self.position_at_end(after)

    @contextmanager
    def if_else(self, test: Value) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        yes, no, after = (self.function.append_basic_block(name) for name in ("yes", "no", "endif"))
        self.cbranch(test, yes, no)
        yield self.going_on_at(yes, after), self.going_on_at(no, after)
        self.position_at_end(after)

    @contextmanager
    def going_on_at(self, block: Block, after: Block) -> Iterator[None]:
        """In a block, and then, unless that has ended otherwise, behind it."""
        self.position_at_end(block)
        yield
        if not self.block.ended:
            self.branch(after)

    @contextmanager
    def goto_entry_block(self) -> Iterator[None]:
        """Within it, instructions go to the begin of the function."""
        line = self.line
        self.line = self.function.variables.append
        yield
        self.line = line
