"""Generated source -> LLVM, by Numba's code generator but without its type inference.

The source is plain Python that Numba compiles too; but it is long, every part of it has an exact type already, and
inference takes most of Numba's time. So the few forms that generated source has are lowered here one by one: loops over
ranges, assignments, branches, arithmetic, and calls of the functions in `mathematics` and of register tiles.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target

from . import mathematics, tile

# Never nnan or ninf: NaN stays NaN. Never nsz beside reassoc: together they let LLVM factor x*0 + x*1 into x*1, which
# is inf where x is, and (y + x) - x into y.
FLAGS = ("reassoc", "contract", "arcp", "afn")
# A fused x*0 + x*2 would become x*(0+2) all the same.
FACTOR = tuple(flag for flag in FLAGS if flag != "contract")
TRUTH, WORD = llvm.IntType(1), llvm.IntType(64)
STOP_WORD = "tensorswap_stop"  # the name of a word in memory: not zero if the work of kernels is not wanted any more
FEW = 16  # steps of a loop that never looks at that word
UNSTOPPED = 2**16  # steps of a loop without loops in it between two looks at that word

ELEMENTS: dict[str, tuple[Any, Any]] = {
    "f4": (llvm.FloatType(), types.float32), "f8": (llvm.DoubleType(), types.float64),
    **{f"{kind}{size}": (llvm.IntType(8 * size), getattr(types, f"{word}{8 * size}"))
       for kind, word in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """A value and its type: an element's name, "b1" for truth, or "*f4" for a pointer."""

    code: Any
    type: str


class Lowerer:
    """Lowers one function of four pointers to words."""

    def __init__(self, name: str, library: Any, special: dict[str, Callable[..., None]]) -> None:
        self.context = cpu_target.target_context
        self.library = library
        self.name = name
        self.module = library.create_ir_module(name)
        self.special = special
        words = WORD.as_pointer()
        self.function = llvm.Function(self.module, llvm.FunctionType(llvm.VoidType(), [words] * 4), name)
        self.builder = llvm.IRBuilder(self.function.append_basic_block("entry"))
        self.variables: dict[str, tuple[Any, str]] = {}
        self.loops: list[Any] = []  # where `continue` goes
        self.stopping: list[bool] = []  # whether each loop around looks if its work is still wanted
        self.linked: set[str] = set()
        self.steps: dict[str, ast.FunctionDef] = {}  # functions that are called once each

    def lower(self, source: str) -> None:
        definitions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        self.steps = {definition.name: definition for definition in definitions[:-1]}
        self.define(definitions[-1], ["*i8"] * 4)
        self.library.add_ir_module(self.module)

    def define(self, definition: ast.FunctionDef, kinds: list[str]) -> None:
        """Fills the function at hand."""
        for argument, code, kind in zip(definition.args.args, self.function.args, kinds, strict=True):
            self.set(argument.arg, Value(code, kind))
        self.body(definition.body)
        self.builder.ret_void()

    def step(self, name: str, arguments: list[Value]) -> None:
        """Calls a function of the source. No two tensors of a statement share memory, and LLVM is told so."""
        outside = self.function, self.builder, self.variables, self.loops, self.stopping
        kind = llvm.FunctionType(llvm.VoidType(), [a.code.type for a in arguments])
        function = llvm.Function(self.module, kind, f"{self.name}_{name}")
        function.linkage = "internal"
        function.attributes.add("noinline")
        for argument, value in zip(function.args, arguments, strict=True):
            if value.type[0] == "*":
                argument.add_attribute("noalias")
        self.function, self.variables, self.loops, self.stopping = function, {}, [], []
        self.builder = llvm.IRBuilder(function.append_basic_block("entry"))
        self.define(self.steps[name], [a.type for a in arguments])
        self.function, self.builder, self.variables, self.loops, self.stopping = outside
        self.builder.call(function, [a.code for a in arguments])

    # -- statements

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                made = [self.value(value) for value in values]
                for target, value in zip(targets, made, strict=True):
                    self.assign(target, value)
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.value(value))
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=arguments), body=body):
                self.loop(name, [self.value(a).code for a in arguments], body)
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(self.truth(test), body, orelse)
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case ast.Continue():
                self.builder.branch(self.loops[-1])
                self.builder.position_at_end(self.function.append_basic_block("after"))
            case _:
                raise AssertionError(f"generated source never holds {ast.unparse(node)}")

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.set(target.id, value)
        else:
            assert isinstance(target, ast.Subscript)
            place, kind = self.place(target)
            assert kind == value.type, f"{kind} = {value.type} in {ast.unparse(target)}"
            self.builder.store(value.code, place)

    def set(self, name: str, value: Value) -> None:
        if name not in self.variables or self.variables[name][1] != value.type:  # a new variable of an old name
            self.variables[name] = (cgutils.alloca_once(self.builder, value.code.type), value.type)
        self.builder.store(value.code, self.variables[name][0])

    def loop(self, name: str, arguments: list[Any], body: list[ast.stmt]) -> None:
        zero, one = llvm.Constant(WORD, 0), llvm.Constant(WORD, 1)
        start, stop, step = (zero, arguments[0], one) if len(arguments) == 1 else (*arguments, one)[:3]
        if self.has_loops(body):
            stops = _may_be_more(FEW, start, stop, unknown=True)  # few steps are better written out
            self.counted(name, start, stop, step, lambda: self.body(body), stops)
        elif step is one and _may_be_more(UNSTOPPED, start, stop, unknown=not any(self.stopping)):
            self.in_pieces(name, start, stop, body)
        else:
            self.counted(name, start, stop, step, lambda: self.body(body), stops=False)

    def has_loops(self, body: list[ast.stmt]) -> bool:
        nodes = [node for statement in body for node in ast.walk(statement)]
        called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        return any(isinstance(node, ast.For) for node in nodes) or bool(called & self.steps.keys())

    def in_pieces(self, name: str, start: Any, stop: Any, body: list[ast.stmt]) -> None:
        builder, one, piece = self.builder, llvm.Constant(WORD, 1), llvm.Constant(WORD, UNSTOPPED)
        first = " first"  # no name of generated source

        def inner() -> None:
            low = builder.load(self.variables[first][0])
            left = builder.sub(stop, low)
            high = builder.add(low, builder.select(builder.icmp_signed("<", left, piece), left, piece))
            self.counted(name, low, high, one, lambda: self.body(body), stops=False)

        self.counted(first, start, stop, piece, inner, stops=True)

    def counted(self, name: str, start: Any, stop: Any, step: Any, body: Callable[[], None], stops: bool) -> None:
        """A loop. If it `stops`, it looks before each step whether its work is still wanted."""
        builder = self.builder
        down = isinstance(step, llvm.Constant) and step.constant < 0
        before = builder.block
        head, inside, following, after = (self.function.append_basic_block(w) for w in ("head", "body", "next", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        count = builder.phi(WORD)
        count.add_incoming(start, before)
        more = builder.icmp_signed(">" if down else "<", count, stop)
        if stops:
            unwanted = builder.load_atomic(self.stop_word(), "monotonic", 8)
            more = builder.and_(more, builder.icmp_signed("==", unwanted, llvm.Constant(WORD, 0)))
        builder.cbranch(more, inside, after)
        builder.position_at_end(inside)
        self.set(name, Value(count, "i8"))
        self.loops.append(following)
        self.stopping.append(stops)
        body()
        self.stopping.pop()
        self.loops.pop()
        builder.branch(following)
        builder.position_at_end(following)
        count.add_incoming(builder.add(count, step, flags=["nsw"]), following)
        builder.branch(head)
        builder.position_at_end(after)

    def stop_word(self) -> Any:
        if STOP_WORD not in self.module.globals:
            llvm.GlobalVariable(self.module, WORD, STOP_WORD)
        return self.module.globals[STOP_WORD]

    def branch(self, test: Any, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        builder = self.builder
        yes, no, after = (self.function.append_basic_block(word) for word in ("then", "else", "endif"))
        builder.cbranch(test, yes, no)
        for block, statements in ((yes, body), (no, orelse)):
            builder.position_at_end(block)
            self.body(statements)
            builder.branch(after)
        builder.position_at_end(after)

    # -- values

    def truth(self, node: ast.expr) -> Any:
        value = self.value(node)
        assert value.type == "b1", f"{ast.unparse(node)} is no truth"
        return value.code

    def value(self, node: ast.expr) -> Value:
        builder = self.builder
        match node:
            case ast.Constant(value=bool() as value):
                return Value(llvm.Constant(TRUTH, int(value)), "b1")
            case ast.Constant(value=int() as value):
                return Value(llvm.Constant(WORD, wrapped(value)), "i8")
            case ast.Constant(value=float() as value):
                return Value(llvm.Constant(llvm.DoubleType(), value), "f8")
            case ast.Name(id="inf"):
                return Value(llvm.Constant(llvm.DoubleType(), float("inf")), "f8")
            case ast.Name(id="GOLDEN"):
                return Value(llvm.Constant(WORD, int(mathematics.GOLDEN)), "u8")
            case ast.Name(id=name):
                place, kind = self.variables[name]
                return Value(builder.load(place), kind)
            case ast.Subscript():
                place, kind = self.place(node)
                return Value(builder.load(place), kind)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return Value(llvm.Constant(WORD, wrapped(-value)), "i8")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand)
                negate = builder.neg(inner.code) if inner.type[0] != "f" else builder.fneg(inner.code, flags=FLAGS)
                return Value(negate, inner.type)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Value(builder.not_(self.truth(operand)), "b1")
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(type(op), self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compare(type(op), self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=[first, *rest]):
                return Value(self.logic(isinstance(op, ast.And), first, rest), "b1")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.choice(self.truth(test), lambda: self.value(body), lambda: self.value(orelse))
            case ast.Call():
                result = self.call(node)
                assert result is not None
                return result
        raise AssertionError(f"generated source never holds {ast.unparse(node)}")

    def choice(self, test: Any, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        """Only the branch that is taken is evaluated."""
        builder = self.builder
        yes, no, after = (self.function.append_basic_block(word) for word in ("yes", "no", "chosen"))
        builder.cbranch(test, yes, no)
        builder.position_at_end(yes)
        a = then()
        end_a = builder.block
        builder.branch(after)
        builder.position_at_end(no)
        b = otherwise()
        end_b = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        assert a.type == b.type, f"a choice between {a.type} and {b.type}"
        result = builder.phi(a.code.type)
        result.add_incoming(a.code, end_a)
        result.add_incoming(b.code, end_b)
        return Value(result, a.type)

    def logic(self, conjunction: bool, first: ast.expr, rest: list[ast.expr]) -> Any:
        left = self.truth(first)
        if not rest:
            return left
        known = Value(llvm.Constant(TRUTH, int(not conjunction)), "b1")

        def more() -> Value:
            return Value(self.logic(conjunction, rest[0], rest[1:]), "b1")

        branches = (more, lambda: known) if conjunction else (lambda: known, more)
        return self.choice(left, *branches).code

    def place(self, node: ast.Subscript) -> tuple[Any, str]:
        base, index = self.value(node.value), self.value(node.slice)
        assert base.type[0] == "*"
        return self.builder.gep(base.code, [index.code], inbounds=True), base.type[1:]

    def arithmetic(self, op: type[ast.operator], a: Value, b: Value) -> Value:
        builder = self.builder
        assert a.type == b.type, f"{a.type} {op.__name__} {b.type}"
        if a.type[0] == "f":
            simple = {ast.Add: builder.fadd, ast.Sub: builder.fsub, ast.Mult: builder.fmul, ast.Div: builder.fdiv}
            if op in simple:
                numbers = op is ast.Mult and (_is_number(a.code) or _is_number(b.code))
                return Value(simple[op](a.code, b.code, flags=FACTOR if numbers else FLAGS), a.type)
            name = "quotient" if op is ast.FloorDiv else "remainder"
            return self.mathematics(f"{name}_{a.type}", [a, b])
        whole = {ast.Add: builder.add, ast.Sub: builder.sub, ast.Mult: builder.mul}
        if op in whole:
            return Value(whole[op](a.code, b.code), a.type)
        assert op in (ast.FloorDiv, ast.Mod), op.__name__
        if a.type[0] == "u":
            return Value((builder.udiv if op is ast.FloorDiv else builder.urem)(a.code, b.code), a.type)
        # towards minus infinity, as Python divides; the least number by -1 wraps around, where a machine would stop
        zero, one, minus = (llvm.Constant(a.code.type, k) for k in (0, 1, -1))
        turned = builder.icmp_signed("==", b.code, minus)
        if op is ast.Mod:
            b = Value(builder.select(turned, one, b.code), b.type)
        else:
            a = Value(builder.select(turned, builder.neg(a.code), a.code), a.type)
            b = Value(builder.select(turned, one, b.code), b.type)
        rest = builder.srem(a.code, b.code)
        unequal = builder.icmp_signed("<", builder.xor(rest, b.code), zero)
        off = builder.and_(builder.icmp_signed("!=", rest, zero), unequal)
        if op is ast.Mod:
            return Value(builder.select(off, builder.add(rest, b.code), rest), a.type)
        quotient = builder.sdiv(a.code, b.code)
        return Value(builder.sub(quotient, builder.zext(off, a.code.type)), a.type)

    def compare(self, op: type[ast.cmpop], a: Value, b: Value) -> Value:
        signs = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
        sign, builder = signs[op], self.builder
        if a.type != b.type and {a.type[0], b.type[0]} <= {"i", "u"}:  # a byte that holds a truth, against 0
            b = self.cast(b, a.type)
        assert a.type == b.type, f"{a.type} {sign} {b.type}"
        if a.type[0] == "f":
            test = builder.fcmp_unordered if op is ast.NotEq else builder.fcmp_ordered
        else:
            test = builder.icmp_signed if a.type[0] == "i" else builder.icmp_unsigned
        return Value(test(sign, a.code, b.code), "b1")

    def cast(self, value: Value, kind: str) -> Value:
        builder, old = self.builder, value.type
        if old == kind:
            return value
        if kind == "b1":
            return self.compare(ast.NotEq, value, self.cast(Value(llvm.Constant(WORD, 0), "i8"), old))
        target = ELEMENTS[kind][0]
        if isinstance(value.code, llvm.Constant) and old in ("i8", "f8"):
            number = value.code.constant
            return Value(llvm.Constant(target, float(number) if kind[0] == "f" else int(number)), kind)
        if old == "b1":
            whole = builder.zext(value.code, WORD)
            return self.cast(Value(whole, "i8"), kind) if kind != "i8" else Value(whole, "i8")
        if old[0] == "f" and kind[0] == "f":
            change = builder.fpext if kind == "f8" else builder.fptrunc
        elif old[0] == "f":
            change = builder.fptosi if kind[0] == "i" else builder.fptoui
        elif kind[0] == "f":
            change = builder.sitofp if old[0] == "i" else builder.uitofp
        elif int(kind[1]) > int(old[1]):
            change = builder.sext if old[0] == "i" else builder.zext
        elif int(kind[1]) < int(old[1]):
            change = builder.trunc
        else:
            return Value(value.code, kind)
        return Value(change(value.code, target), kind)

    # -- calls

    def call(self, node: ast.Call) -> Value | None:
        assert isinstance(node.func, ast.Name)
        name, builder = node.func.id, self.builder
        arguments = [self.value(argument) for argument in node.args]
        if name.startswith("to_"):
            return self.cast(arguments[0], name[3:])
        if name.startswith("pointer_"):
            kind = "u1" if name == "pointer_b1" else name[8:]
            return Value(builder.inttoptr(arguments[0].code, ELEMENTS[kind][0].as_pointer()), f"*{kind}")
        if name in ("min", "max"):
            result, *rest = arguments
            for other in rest:
                chosen = builder.icmp_signed("<" if name == "min" else ">", other.code, result.code)
                result = Value(builder.select(chosen, other.code, result.code), result.type)
            return result
        if name == "chosen":
            test, yes, no = (a.code for a in arguments)
            return Value(builder.select(test, yes, no), arguments[1].type)
        if name in ("both", "either"):
            join = builder.and_ if name == "both" else builder.or_
            return Value(join(arguments[0].code, arguments[1].code), "b1")
        if name == "abs":
            value = arguments[0].code
            return Value(
                builder.select(builder.icmp_signed("<", value, value.type(0)), builder.neg(value), value), "i8"
            )
        if name in self.steps:
            self.step(name, arguments)
            return None
        if name in self.special:
            self.special[name](builder, [a.code for a in arguments])
            return None
        if tile.NAME.fullmatch(name):
            tile.emitter(name)(builder, [a.code for a in arguments])
            return None
        return self.mathematics(name, arguments)

    def mathematics(self, name: str, arguments: list[Value]) -> Value:
        """A call of one of our functions: written in place, or compiled by Numba once for a process."""
        if name in mathematics.EMITTED:
            return Value(mathematics.EMITTED[name](self.builder, [a.code for a in arguments]), arguments[0].type)
        kinds = tuple(ELEMENTS[a.type][1] if a.type != "b1" else types.boolean for a in arguments)
        compiled = mathematics.compiled(name, kinds)
        if name not in self.linked:
            self.linked.add(name)
            self.library.add_linking_library(compiled.library)
        signature = compiled.signature
        _, code = self.context.call_internal_no_propagate(
            self.builder, compiled.fndesc, signature, [a.code for a in arguments]
        )
        result = next((k for k, (_, t) in ELEMENTS.items() if t == signature.return_type), "b1")
        return Value(code, result)


def wrapped(value: int) -> int:
    """A whole number as 64 bits hold it."""
    return (value + 2**63) % 2**64 - 2**63


def _may_be_more(count: int, start: Any, stop: Any, unknown: bool) -> bool:
    """Whether a loop has more steps than so many; `unknown` is the answer if nobody knows."""
    if isinstance(start, llvm.Constant) and isinstance(stop, llvm.Constant):
        return bool(stop.constant - start.constant > count)
    return unknown


def _is_number(code: Any) -> bool:
    """Whether a factor is a constant, or an index as a number, which an unrolled loop makes a constant."""
    return isinstance(code, llvm.Constant) or (isinstance(code, llvm.CastInstr) and code.opname in ("sitofp", "uitofp"))
