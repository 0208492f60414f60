"""Kernel IR -> LLVM, by llvmlite: a function for each kernel and each of its steps, in one module or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import binding

from .. import assembly as llvm
from . import ir
from .common import Common, common
from .effort import Effort, Judged, effort_for_common, is_short, is_work_alone, judged
from .functions import INSTRUCTIONS, LIBRARY, Made, made
from .functions import REAL as FUNCTIONS
from .laid import Laid
from .lanes import linear
from .modules import Function, Modules, Target
from .names import STOP_WORD
from .registers import registers
from .tile import FORMS, Block, becomes_vectors, in_pairs, stays_rolled, written_out
from .turned import Turned
from .vector_loops import VectorLoop

# Never nnan or ninf: NaN stays NaN. Never nsz beside reassoc: together they let LLVM factor x*0 + x*1 into x*1, which
# is inf where x is, and (y + x) - x into y.
FLAGS = ("reassoc", "contract", "arcp", "afn")
# A fused x*0 + x*2 would become x*(0+2) all the same.
FACTOR = tuple(flag for flag in FLAGS if flag != "contract")
# In another order, factors overflow that did not, and a power of a negative number loses its NaN: x**a * x**b.
PRODUCT = tuple(flag for flag in FLAGS if flag != "reassoc")
EXACT = ("contract",)  # in functions: a product and a sum may become one operation; all else stays as written
# Left to itself, LLVM uses half of a register of 64 bytes. Where memory is waited for, that is as good; where there is
# much to compute for each number, it is not.
WIDE = '"prefer-vector-width"="512"'
LONG = FUNCTIONS.keys() - {"sign", "root", "inverse_root"}
SCALAR = 3  # elements that are too few for a vector
ASIDE = 12  # assignments of a loop of which two vectors run side by side, at most
FEW = 16  # steps of a loop that never looks at that word
OUT = 4  # steps that are written out, of a recurrence that stays in registers
UNSTOPPED = 2**16  # steps of a loop without loops in it between two looks at that word

NUMBER, BIT = llvm.IntType(64), llvm.IntType(1)
REAL = {ir.F4: llvm.FloatType(), ir.F8: llvm.DoubleType()}
SIMPLE = {"+": "add", "-": "sub", "*": "mul"}
WHOLE = {**SIMPLE, "&": "and_", "|": "or_", "^": "xor", "<<": "shl", ">>": "lshr"}

Launcher = Callable[[Any, ir.Statement, list[Any]], None]


def type_of(type: ir.Type) -> Any:
    return REAL[type] if type.real else BIT if type == ir.TRUTH else llvm.IntType(8 * type.size)


def entry(kernel: ir.Kernel) -> tuple[list[ir.Memory], ir.Body]:
    """A kernel as the function that runs some of its parts: kernel(start, size, thread, context). What
    a part has to itself lies where others that the same thread runs have it."""
    parameters = [ir.Memory(name, ir.WORD) for name in ("start", "size", "thread", "context")]
    start, size, thread, context = parameters
    scratch = ir.Variable("scratch", ir.WORD)
    first: list[ir.Statement] = [ir.Set(ir.PARTS, ir.Load(context, ir.ZERO)), ir.Set(scratch, ir.Load(context, ir.ONE))]
    each: list[ir.Statement] = []
    for position, item in enumerate(kernel.words, 2):
        value, place = ir.Load(context, ir.word(position)), item.place
        if isinstance(place, ir.Variable):
            first.append(ir.Set(place, value))
        elif item.role is ir.Role.TENSOR:
            first.append(ir.Point(place, value))
        elif item.role is ir.Role.LOCAL:
            first.append(ir.Point(place, value + ir.Load(thread, ir.ZERO) * scratch))
        else:
            assert item.bytes is not None, "a copy knows its size"
            assert item.own is not None, "and the tensor of the first part"
            later = value + (ir.PART - 1) * item.bytes
            each.append(ir.Point(place, ir.Choice(ir.Operation(">", (ir.PART, ir.ZERO), ir.TRUTH), later, item.own)))
    past = ir.Load(start, ir.ZERO) + ir.Load(size, ir.ZERO)
    return parameters, (*first, ir.For(ir.PART, ir.Load(start, ir.ZERO), past, ir.ONE, (*each, *kernel.body)))


def write(parameters: list[ir.Memory], body: ir.Body, launch: Launcher, modules: Modules) -> str:
    """A function of memories, and the functions that it calls. Gives its symbol."""
    kind = llvm.FunctionType(llvm.VoidType(), [type_of(memory.type).as_pointer() for memory in parameters])
    found = judged(body)
    function = modules.begin(found.effort, kind, modules.next())
    printer = Printer(function, launch, modules, body, found=found)
    for memory, code in zip(parameters, function.args, strict=True):
        printer.memories[memory.name] = code
    printer.body(body)
    printer.builder.ret_void()
    return str(modules.end(function).symbol)


def texts(parameters: list[ir.Memory], body: ir.Body, launch: Launcher, target: Target) -> list[str]:
    """The modules of one function, with all that it calls, to look at."""
    found: list[str] = []
    modules = Modules("kernel", target, lambda name, text: found.append(text))
    write(parameters, body, launch, modules)
    modules.finish()
    return found


def _common_function(call: Common, launch: Launcher, modules: Modules, name: str) -> Function:
    function = modules.begin(effort_for_common(call.statement), _type_of_call(call), name)
    printer = Printer(function, launch, modules, (call.statement,), call.variables)
    for memory, code in zip(call.memories, function.args, strict=False):
        printer.memories[memory.name] = code
    for variable, code in zip(call.variables, function.args[len(call.memories) :], strict=True):
        printer.set(variable, code)
    printer.statement(call.statement)
    printer.builder.ret_void()
    return function


def _type_of_call(call: Common) -> Any:
    pointers = [type_of(memory.type).as_pointer() for memory in call.memories]
    return llvm.FunctionType(llvm.VoidType(), [*pointers, *(type_of(variable.type) for variable in call.variables)])


class Printer:
    """Writes the body of one function."""

    def __init__(
        self, function: Any, launch: Launcher, modules: Modules, body: ir.Body,
        given: Sequence[ir.Variable] = (), found: Judged | None = None,
    ) -> None:  # fmt: skip
        self.function = function
        self.module = function.module
        self.launch = launch
        self.modules = modules
        self.effort = modules.open[self.module.name].effort
        self.builder = llvm.Builder(function.append_basic_block("entry"))
        self.sets = Counter(n.variable.name for n in ir.statements(body) if isinstance(n, ir.Set))
        self.sets.update(variable.name for variable in given)
        self.fixed: dict[str, Any] = {}  # variables that are set once, and those of loops: no memory is needed for them
        self.variables: dict[str, Any] = {}
        self.types: dict[str, ir.Type] = {}
        self.memories: dict[str, Any] = {}
        self.flags: tuple[str, ...] = FLAGS
        self.in_lanes = {} if found is None else found.loops  # those that are written in vectors
        self.known: dict[int, Any] | None = None  # values of a function that is written in place, by identity
        self.loops: list[tuple[Any, Any]] = []  # where a skip goes, and where a leave
        self.stopping: list[bool] = []  # whether each loop around looks if its work is still wanted

    # -- statements

    def body(self, statements: ir.Body) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ir.Statement) -> None:
        builder = self.builder
        match node:
            case ir.Set(variable=variable, value=value):
                self.set(variable, self.value(value))
            case ir.Store(memory=memory, offset=offset, value=value):
                code = self.value(value)
                builder.store(code, self.place(memory, offset))
            case ir.For() if self.effort is Effort.ONCE and is_work_alone(node):
                self.function_of((node,), *ir.free((node,)), self.modules.next(), apart=False)
            case ir.For():
                self.loop(node)
            case ir.While():
                self.repeat(node)
            case ir.If(test=test, then=then, otherwise=otherwise):
                self.branch(self.value(test), then, otherwise)
            case ir.Skip() | ir.Leave():
                following, end = self.loops[-1]
                builder.branch(following if isinstance(node, ir.Skip) else end)
                builder.position_at_end(self.function.append_basic_block("after"))
            case ir.Choose(memory=memory, test=test, yes=yes, no=no):
                chosen = builder.select(self.value(test), self.memories[yes.name], self.memories[no.name])
                self.memories[memory.name] = chosen
            case ir.Point(memory=memory, address=address):
                kind = type_of(memory.type).as_pointer()
                self.memories[memory.name] = builder.inttoptr(self.value(address), kind)
            case ir.Hold(memory=memory, elements=elements):
                with builder.goto_entry_block():
                    held = builder.alloca(llvm.ArrayType(type_of(memory.type), elements))
                    self.memories[memory.name] = builder.gep(held, [NUMBER(0), NUMBER(0)])
            case ir.Step():
                self.step(node)
            case ir.TileCall() | ir.Copy():
                call = None if self.effort in (Effort.COMMON, Effort.DOTS) else common(node)
                if call is not None:
                    self.call_common(call)
                elif isinstance(node, ir.TileCall):
                    self.tile(node)
                elif isinstance(node, ir.Turn):
                    self.turn(node)
                elif isinstance(node, ir.Lay):
                    self.lay(node)
            case ir.Launch(kernel=kernel, parts=parts, context=context, threads=threads):
                self.launch(builder, node, [self.value(v) for v in (kernel, parts, context, threads)])
            case ir.Serve():
                self.launch(builder, node, [])
            case _:
                raise AssertionError(f"no code for {type(node).__name__}")

    def set(self, variable: ir.Variable, code: Any) -> None:
        name = variable.name
        if self.sets[name] == 1:
            self.fixed[name] = code
            return
        if self.types.get(name) != variable.type:  # a new variable, perhaps of an old name
            with self.builder.goto_entry_block():
                self.variables[name] = self.builder.alloca(code.type)
            self.types[name] = variable.type
        self.builder.store(code, self.variables[name])

    def step(self, node: ir.Step) -> None:
        """No two tensors of a step share memory, and LLVM is told so."""
        self.function_of(node.body, *node.free, f"{self.function.symbol}_step{node.number}", apart=True)

    def function_of(
        self, body: ir.Body, variables: list[ir.Variable], memories: list[ir.Memory], name: str, apart: bool
    ) -> None:
        """Writes a function, and its call. Its memories are `apart` if no two share numbers."""
        values = [self.value(variable) for variable in variables]
        arguments = [code for code in values if not isinstance(code, llvm.Constant)]
        arguments += [self.memories[memory.name] for memory in memories]
        kind = llvm.FunctionType(llvm.VoidType(), [a.type for a in arguments])
        found = judged(body, apart)
        effort = found.effort
        near = self.module if effort is self.effort is Effort.LOOPS and is_short(body) else None
        function = self.modules.begin(effort, kind, name, near)
        function.attributes.add("noinline")
        inner = Printer(function, self.launch, self.modules, body, variables, found)
        given = iter(function.args)
        for variable, code in zip(variables, values, strict=True):
            inner.set(variable, code if isinstance(code, llvm.Constant) else next(given))
        for memory, code in zip(memories, given, strict=True):
            if apart:
                code.add_attribute("noalias")
            inner.memories[memory.name] = code
        inner.body(body)
        inner.builder.ret_void()
        self.builder.call(self.seen(self.modules.end(function)), arguments)

    def call_common(self, call: Common) -> None:
        builder = self.builder
        write = partial(_common_function, call, self.launch, self.modules)
        symbol = self.modules.shared(f"{registers()} {call.name}", write)
        function = self.module.globals.get(symbol) or llvm.Function(self.module, _type_of_call(call), symbol)
        starts = [builder.gep(self.memories[memory.name], [self.value(at)]) for memory, at in call.places]
        builder.call(function, [*starts, *(self.value(value) for value in call.values)])

    def seen(self, function: Any) -> Any:
        """A function as this module sees it."""
        if function.module is self.module:
            return function
        return self.module.globals.get(function.symbol) or llvm.Function(self.module, function.of, function.symbol)

    def tile(self, node: ir.TileCall) -> None:
        kind = node.tile
        loops = [tuple(self.value(part) for part in loop) for loop in node.loops]
        a, b, y = (self.block(panel) for panel in (node.a, node.b, node.y))
        FORMS[kind.form](
            self.builder, kind.type.size, kind.rows, kind.places, kind.lanes, kind.columns,
            kind.form == "lane" and registers().by_lane, a, b, y, loops, self.value(node.scale), self.value(node.add),
        )  # fmt: skip

    def turn(self, node: ir.Turn) -> None:
        numbers = (node.to, node.across, node.at, node.apart, node.steps)
        to, across, at, apart, steps = (self.value(v) for v in numbers)
        target, source = (self.memories[memory.name] for memory in (node.target, node.source))
        turned = Turned(self.builder, node.target.type.size, registers().bytes, node.lanes, steps)
        turned.write(target, to, across, source, at, apart, lambda: self.statement(node.loops))

    def lay(self, node: ir.Lay) -> None:
        to, far, at, apart, steps = (self.value(v) for v in (node.to, node.far, node.at, node.apart, node.steps))
        target, source = (self.memories[memory.name] for memory in (node.target, node.source))
        laid = Laid(self.builder, node.target.type.size, registers().bytes, node.lanes)
        laid.write(target, to, far, source, at, apart, steps, node.panels)

    def block(self, panel: ir.Panel) -> Block:
        return Block(self.memories[panel.memory.name], *(self.value(v) for v in (panel.at, panel.row, panel.column)))

    # -- loops

    def loop(self, node: ir.For) -> None:
        if node.few:
            self.write_out(node)
            return
        start, stop, step = (self.value(v) for v in (node.first, node.past, node.step))
        variable = node.variable
        inside = [n for n in ir.statements(node.body) if isinstance(n, ir.LONG) and not _is_few(n)]
        if node.at_once is not None:
            back = self.counted(variable, start, stop, step, lambda: self.body(node.body), stops=False)
            becomes_vectors(back, *node.at_once)
        elif node.plain:
            self.in_pieces(node, start, stop)
        elif inside:
            stops = _may_be_more(FEW, start, stop, unknown=True)  # few steps are better written out
            back = self.counted(variable, start, stop, step, lambda: self.body(node.body), stops)
            if any(not isinstance(n, ir.For) or _is_long(n) for n in inside):
                stays_rolled(back)
        elif node.step is ir.ONE and _may_be_more(UNSTOPPED, start, stop, unknown=not any(self.stopping)):
            self.in_pieces(node, start, stop)
        elif id(node) in self.in_lanes:
            self.in_vectors(node, start, stop)
        else:
            back = self.counted(variable, start, stop, step, lambda: self.body(node.body), stops=False)
            stores = any(isinstance(n, ir.Store) for n in ir.statements(node.body))
            if _pairs(node.body, start, stop):
                in_pairs(back)
            elif stores and _may_be_more(SCALAR, start, stop, unknown=False):
                stays_rolled(back)  # written out, it would never become vectors

    def write_out(self, node: ir.For) -> None:
        """Round after round: what stands around is the innermost loop, and may become vectors."""
        name = node.variable.name
        assert not self.sets[name], "a loop's own variable is not set"
        outside = self.fixed.get(name)
        for number in node.rounds or ():
            self.fixed[name] = NUMBER(number)
            self.body(node.body)
        self.fixed[name] = outside

    def in_pieces(self, node: ir.For, start: Any, stop: Any) -> None:
        builder, way = self.builder, -1 if node.down else 1
        first, piece = ir.Variable("first of a piece", ir.WORD), NUMBER(way * UNSTOPPED)

        def inner() -> None:
            low = self.value(first)
            left = builder.sub(stop, low)
            ends = builder.icmp_signed(">" if node.down else "<", left, piece)
            high = builder.add(low, builder.select(ends, left, piece))
            if id(node) in self.in_lanes:
                self.in_vectors(node, low, high, whole=False)
                return
            back = self.counted(node.variable, low, high, NUMBER(way), lambda: self.body(node.body), stops=False)
            if any(isinstance(n, ir.For) and n.at_once for n in ir.statements(node.body)):
                written_out(back, OUT)
            elif _pairs(node.body, start, stop):
                in_pairs(back)

        self.counted(first, start, stop, piece, inner, stops=True)

    def in_vectors(self, node: ir.For, start: Any, stop: Any, whole: bool = True) -> None:
        """Steps count from 0 where it is known how many there are, but not where they begin. A piece that is not the
        `whole` loop has as many as there are between its ends."""
        loop, base = self.in_lanes[id(node)], NUMBER(0)
        (terms, count), _ = linear(node.past - node.first)
        counts = whole and not terms and not isinstance(start, llvm.Constant)
        if counts:
            base, start, stop = start, NUMBER(0), NUMBER(count)
        long, pairs = bool(loop.called & LONG), _pairs(node.body, start, stop)
        done = VectorLoop(self, loop, type_of, EXACT, long, pairs, base).write(start, stop)
        if _may_be_more(0, done, stop, unknown=True):
            if counts:
                done, stop = self.builder.add(base, done), self.builder.add(base, stop)
            stays_rolled(self.counted(node.variable, done, stop, NUMBER(1), lambda: self.body(node.body), stops=False))

    def counted(
        self, variable: ir.Variable, start: Any, stop: Any, step: Any, body: Callable[[], None], stops: bool
    ) -> Any:
        """A loop. If it `stops`, it looks before each step whether its work is still wanted. Gives its jump back."""
        builder = self.builder
        down = isinstance(step, llvm.Constant) and step.constant < 0
        before = builder.block
        head, inside, following, after = (self.function.append_basic_block(w) for w in ("head", "body", "next", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        count = builder.phi(NUMBER)
        count.add_incoming(start, before)
        more = builder.icmp_signed(">" if down else "<", count, stop)
        if stops:
            more = builder.and_(more, self.is_wanted())
        builder.cbranch(more, inside, after)
        builder.position_at_end(inside)
        self.loops.append((following, after))
        self.stopping.append(stops)
        if self.sets[variable.name]:
            self.set(variable, count)
            body()
        else:
            outside = self.fixed.get(variable.name)  # of a loop around this one
            self.fixed[variable.name] = count
            body()
            self.fixed[variable.name] = outside
        self.stopping.pop()
        self.loops.pop()
        builder.branch(following)
        builder.position_at_end(following)
        count.add_incoming(builder.add(count, step, flags=["nsw"]), following)
        back = builder.branch(head)
        builder.position_at_end(after)
        return back

    def repeat(self, node: ir.While) -> None:
        builder = self.builder
        head, inside, after = (self.function.append_basic_block(text) for text in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        more = self.value(node.test)
        if node.stops:
            more = builder.and_(more, self.is_wanted())
        builder.cbranch(more, inside, after)
        builder.position_at_end(inside)
        self.body(node.body)
        builder.branch(head)
        builder.position_at_end(after)

    def is_wanted(self) -> Any:
        """Whether nobody has asked kernels to stop."""
        if STOP_WORD not in self.module.globals:
            llvm.GlobalVariable(self.module, NUMBER, STOP_WORD)
        asked = self.builder.load_atomic(self.module.globals[STOP_WORD], "monotonic", 8)
        return self.builder.icmp_signed("==", asked, NUMBER(0))

    def branch(self, test: Any, then: ir.Body, otherwise: ir.Body) -> None:
        builder = self.builder
        yes, no, after = (self.function.append_basic_block(text) for text in ("then", "else", "endif"))
        builder.cbranch(test, yes, no)
        for block, statements in ((yes, then), (no, otherwise)):
            builder.position_at_end(block)
            self.body(statements)
            builder.branch(after)
        builder.position_at_end(after)

    # -- values

    def value(self, node: ir.Value) -> Any:
        if self.known is None or isinstance(node, ir.Number):
            return self.computed(node)
        if id(node) not in self.known:  # what stands there several times is computed once
            self.known[id(node)] = self.computed(node)
        return self.known[id(node)]

    def computed(self, node: ir.Value) -> Any:
        builder = self.builder
        match node:
            case ir.Number(value=value, type=kind):
                return llvm.Constant(type_of(kind), value)
            case ir.Variable(name=name):
                return self.fixed.get(name) or builder.load(self.variables[name])
            case ir.Load(memory=memory, offset=offset):
                return builder.load(self.place(memory, offset))
            case ir.Operation(operator="and" | "or" as operator, operands=(left, right)):
                return self.logic(operator, left, right)
            case ir.Operation(operands=operands):
                return self.operation(node, [self.value(v) for v in operands])
            case ir.Choice(test=test, yes=yes, no=no, lazy=True):
                return self.lazily(self.value(test), yes, no)
            case ir.Choice(test=test, yes=yes, no=no):
                return builder.select(self.value(test), self.value(yes), self.value(no))
            case ir.Cast(value=value, type=kind):
                return self.cast(self.value(value), value.type, kind)
            case ir.Bits(value=value, type=kind):
                return builder.bitcast(self.value(value), type_of(kind))
            case ir.Entry(table=table, index=index):
                place = builder.gep(self.table(table), [NUMBER(0), self.value(index)], inbounds=True)
                return builder.load(place)
            case ir.Call(function=name, arguments=arguments, type=kind):
                return self.call(name, arguments, kind)
        raise AssertionError(f"no code for {type(node).__name__}")

    def place(self, memory: ir.Memory, offset: ir.Value) -> Any:
        return self.builder.gep(self.memories[memory.name], [self.value(offset)], inbounds=True)

    def lazily(self, test: Any, yes: ir.Value, no: ir.Value) -> Any:
        """Only the branch that is taken is evaluated."""
        builder = self.builder
        blocks = [self.function.append_basic_block(text) for text in ("yes", "no", "chosen")]
        builder.cbranch(test, *blocks[:2])
        made = []
        for block, value in zip(blocks, (yes, no), strict=False):
            builder.position_at_end(block)
            made.append((self.value(value), builder.block))
            builder.branch(blocks[2])
        builder.position_at_end(blocks[2])
        result = builder.phi(made[0][0].type)
        for code, block in made:
            result.add_incoming(code, block)
        return result

    def logic(self, operator: str, left: ir.Value, right: ir.Value) -> Any:
        branches = (right, ir.FALSE) if operator == "and" else (ir.TRUE, right)
        return self.lazily(self.value(left), *branches)

    def operation(self, node: ir.Operation, codes: list[Any]) -> Any:
        builder, operator, kind = self.builder, node.operator, node.operands[0].type
        match operator:
            case "neg":
                return builder.fneg(codes[0], flags=self.flags) if kind.real else builder.neg(codes[0])
            case "not":
                return builder.not_(codes[0])
            case "both":
                return builder.and_(*codes)
            case "either":
                return builder.or_(*codes)
            case "<" | "<=" | ">" | ">=" | "==" | "!=":
                return self.compare(operator, kind, *codes)
            case "min" | "max":
                result, *rest = codes
                for other in rest:
                    chosen = builder.icmp_signed("<" if operator == "min" else ">", other, result)
                    result = builder.select(chosen, other, result)
                return result
        if kind.real:
            return self.real(node, *codes)
        if operator in WHOLE:
            return getattr(builder, WHOLE[operator])(*codes)
        return self.divided(operator, kind, *codes)

    def real(self, node: ir.Operation, a: Any, b: Any) -> Any:
        operator = node.operator
        if operator in ("//", "%"):
            return self.call("quotient" if operator == "//" else "remainder", node.operands, node.type)
        numbers = operator == "*" and (_is_number(a) or _is_number(b)) and self.flags is FLAGS
        flags = () if node.apart else FACTOR if numbers else self.flags
        if operator in ("*", "/") and flags is FLAGS:
            flags = PRODUCT
        write = self.builder.fdiv if operator == "/" else getattr(self.builder, f"f{SIMPLE[operator]}")
        return write(a, b, flags=flags)

    def divided(self, operator: str, kind: ir.Type, a: Any, b: Any) -> Any:
        """Towards minus infinity, as in Python; the least number by -1 wraps around, where a machine would stop."""
        builder = self.builder
        if kind.kind == "u":
            return (builder.udiv if operator == "//" else builder.urem)(a, b)
        zero, one, minus = (llvm.Constant(a.type, k) for k in (0, 1, -1))
        turned = builder.icmp_signed("==", b, minus)
        if operator == "//":
            a = builder.select(turned, builder.neg(a), a)
        b = builder.select(turned, one, b)
        rest = builder.srem(a, b)
        unequal = builder.icmp_signed("<", builder.xor(rest, b), zero)
        off = builder.and_(builder.icmp_signed("!=", rest, zero), unequal)
        if operator == "%":
            return builder.select(off, builder.add(rest, b), rest)
        return builder.sub(builder.sdiv(a, b), builder.zext(off, a.type))

    def compare(self, operator: str, kind: ir.Type, a: Any, b: Any) -> Any:
        builder = self.builder
        if kind.real:
            test = builder.fcmp_unordered if operator == "!=" else builder.fcmp_ordered
        else:
            test = builder.icmp_signed if kind.kind == "i" else builder.icmp_unsigned
        return test(operator, a, b)

    def cast(self, code: Any, old: ir.Type, new: ir.Type) -> Any:
        builder, target = self.builder, type_of(new)
        if new == ir.TRUTH:
            return self.compare("!=", old, code, llvm.Constant(code.type, 0))
        if old == ir.TRUTH:
            return builder.uitofp(code, target) if new.real else builder.zext(code, target)
        if old.real and new.real:
            change = builder.fpext if new == ir.F8 else builder.fptrunc
        elif old.real:
            change = builder.fptosi if new.kind == "i" else builder.fptoui
        elif new.real:
            change = builder.sitofp if old.kind == "i" else builder.uitofp
        elif new.size > old.size:
            change = builder.sext if old.kind == "i" else builder.zext
        elif new.size < old.size:
            change = builder.trunc
        else:
            return code
        return change(code, target)

    # -- functions

    def call(self, name: str, arguments: tuple[ir.Value, ...], kind: ir.Type) -> Any:
        first = arguments[0].type
        own = made(name, first)
        if own is not None:
            if name in LONG and registers().bytes == 64:
                set.add(self.function.attributes, WIDE)  # llvmlite's own `add` knows no words with values
            return self.written(own, [self.value(a) for a in arguments])
        codes = [self.value(a) for a in arguments]
        if name in ("maximum", "minimum"):
            return self.extreme(name, first, *codes)
        if name in INSTRUCTIONS:
            return self.intrinsic(INSTRUCTIONS[name][0], codes)
        assert name in LIBRARY, f"no function {name}"
        if name == "fmod":
            return self.builder.frem(*codes)
        if name == "pow":
            return self.intrinsic("pow", codes)
        symbol = name if kind == ir.F8 else f"{name}f"
        of = llvm.FunctionType(type_of(kind), [c.type for c in codes])
        function = self.module.globals.get(symbol) or llvm.Function(self.module, of, symbol)
        return self.builder.call(function, codes)

    def written(self, function: Made, codes: list[Any]) -> Any:
        """A function that is made, at the place of its call; one with statements by itself, and called."""
        if function.body:
            return self.builder.call(self.separate(function, codes), codes)
        outside = self.known, self.flags
        self.known = {id(v): code for v, code in zip(function.arguments, codes, strict=True)}
        self.flags = EXACT
        result = self.value(function.value)
        self.known, self.flags = outside
        return result

    def separate(self, made: Made, codes: list[Any]) -> Any:
        name = f"{self.module.name}_{made.name}"
        found = self.module.globals.get(name)
        if found is not None:
            return found
        kind = llvm.FunctionType(type_of(made.value.type), [c.type for c in codes])
        function = llvm.Function(self.module, kind, name)
        function.linkage = "internal"
        inner = Printer(function, self.launch, self.modules, made.body, made.arguments)
        for variable, code in zip(made.arguments, function.args, strict=True):
            inner.set(variable, code)
        inner.body(made.body)
        inner.builder.ret(inner.value(made.value))
        return function

    def intrinsic(self, name: str, codes: list[Any]) -> Any:
        """One of LLVM's own functions, of numbers of one type."""
        kind = codes[0].type
        of = llvm.FunctionType(kind, [kind] * len(codes))
        return self.builder.call(self.module.declare_intrinsic(f"llvm.{name}", [kind], of), codes)

    def extreme(self, name: str, kind: ir.Type, a: Any, b: Any) -> Any:
        """The larger or smaller of two numbers; NaN if one of them is."""
        builder, order = self.builder, ">" if name == "maximum" else "<"
        if not kind.real:
            return builder.select(self.compare(order, kind, a, b), a, b)
        if binding.llvm_version_info[0] >= 20:  # before, not all machines knew it, and no loop over it was vectorised
            return self.intrinsic(name, [a, b])
        return builder.select(builder.or_(builder.fcmp_ordered(order, a, b), builder.fcmp_unordered("uno", a, a)), a, b)

    def table(self, table: ir.Table) -> Any:
        found = self.module.globals.get(table.name)
        if found is None:
            kind = llvm.ArrayType(llvm.DoubleType(), len(table.numbers))
            found = llvm.GlobalVariable(self.module, kind, table.name)
            found.linkage, found.global_constant = "internal", True
            found.initializer = llvm.Constant(kind, list(table.numbers))
        return found


def _is_few(node: ir.Statement) -> bool:
    return isinstance(node, ir.For) and node.few


def _pairs(body: ir.Body, start: Any, stop: Any) -> bool:
    """Whether two vectors of a loop's steps are better than one: they wait for a function of many instructions, their
    values have room in registers, and few or no steps are left over."""
    if registers().count < 32:
        return False
    if sum(isinstance(n, ir.Set | ir.Store) for n in ir.statements(body)) > ASIDE:
        return False
    if not any(isinstance(node, ir.Call) and node.function in LONG for node in ir.walk(body)):
        return False
    if not isinstance(start, llvm.Constant) or not isinstance(stop, llvm.Constant):
        return True
    count, both = abs(stop.constant - start.constant), 2 * registers().bytes // 4
    return bool(count >= 8 * both or count % both == 0)


def _is_long(loop: ir.For) -> bool:
    first, past = ir.constant(loop.first), ir.constant(loop.past)
    return first is None or past is None or abs(past - first) > FEW


def _may_be_more(count: int, start: Any, stop: Any, unknown: bool) -> bool:
    """Whether a loop has more steps than so many; `unknown` is the answer if nobody knows."""
    if isinstance(start, llvm.Constant) and isinstance(stop, llvm.Constant):
        return bool(abs(stop.constant - start.constant) > count)  # upwards or downwards
    return unknown


def _is_number(code: Any) -> bool:
    """Whether a factor is a constant, or an index as a number, which an unrolled loop makes a constant."""
    return isinstance(code, llvm.Constant) or (
        isinstance(code, llvm.Converted) and code.operation in ("sitofp", "uitofp")
    )
