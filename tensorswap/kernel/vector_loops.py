"""Loops over elements, written in vectors with llvmlite: whole vectors first, then the elements that are left."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

from .. import assembly as llvm
from . import ir
from .functions import INSTRUCTIONS, made
from .lanes import EXTREMES, Conditions, Loop, linear
from .registers import registers
from .tile import NUMBER, stays_rolled

HALF = 32  # bytes of a vector where memory is waited for: twice as many lie across two lines of it
MUCH = 1  # operation for each number
SHORT = 16  # bytes of one that any machine has
SIDE_BY_SIDE = 4  # vectors of a round, if steps are short: a jump counts beside them, and additions wait for each other
MANY = 32  # registers, which have room for as many functions side by side
LANE = llvm.IntType(32)
KNOWN: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "sdiv": operator.floordiv,
    "min": min,
}


class Printer(Protocol):
    """What writes the function around the loop."""

    builder: Any
    function: Any
    module: Any
    fixed: dict[str, Any]
    memories: dict[str, Any]
    flags: tuple[str, ...]

    def value(self, node: ir.Value) -> Any: ...
    def operation(self, node: ir.Operation, codes: list[Any]) -> Any: ...
    def set(self, variable: ir.Variable, code: Any) -> None: ...


class VectorLoop:
    """Writes one loop. What is the same in all steps is computed before them."""

    def __init__(
        self, printer: Printer, loop: Loop, kind: Callable[[ir.Type], Any], exact: tuple[str, ...],
        long: bool, pairs: bool, base: Any,
    ) -> None:  # fmt: skip
        """`kind` gives LLVM's name of a type, `exact` the flags of what functions are made of. A step is `long` if it
        takes long beside its reads and writes; then two vectors may be better than one: `pairs`. Steps count from a
        `base`."""
        self.printer, self.loop, self.kind, self.exact, self.base = printer, loop, kind, exact, base
        self.pairs = pairs
        self.builder, self.long = printer.builder, long
        self.index = loop.node.variable.name
        whole = long or _computes_much(loop.node.body)
        self.lanes = (registers().bytes if whole else min(registers().bytes, HALF)) // loop.type.size
        rounds = loop.node.rounds
        while rounds is not None and self.lanes > max(len(rounds), 1):
            self.lanes //= 2
        self.changing = {self.index, *loop.own}
        self.steady: dict[int, Any] = {}  # by identity
        self.starts: dict[tuple[ir.Memory, Any], Any] = {}  # of what is read and written, for an index of 0
        self.read: dict[int, Any] = {}  # where loads begin, by identity
        self.forms: dict[int, Any] = {}  # of places, by identity
        self.own: dict[str, list[Any]] = {}
        self.made: dict[int, list[Any]] = {}
        self.varying: dict[int, bool] = {}

    def write(self, start: Any, stop: Any) -> Any:
        """All whole vectors from start on; gives where they end."""
        lanes, short = self.lanes, min(self.lanes, SHORT // self.loop.type.size)
        if self.is_one_round(start, stop):
            self.one_round(start, -(-(stop.constant - start.constant) // lanes), NUMBER(stop.constant - lanes))
            return stop
        begun = self.to_a_line(start, stop, lanes) if self.loop.again else start
        done = begun if self.at_once() == 1 else self.rounds(begun, stop, self.at_once(), lanes)
        done = self.to_the_end(start, done, stop, lanes) if self.loop.again else self.rounds(done, stop, 1, lanes)
        if short == lanes or not (self.long or isinstance(done, llvm.Constant)):
            return done
        return self.rounds(done, stop, 1, short)  # strips may have no more elements

    def is_one_round(self, start: Any, stop: Any) -> bool:
        """Whether a few vectors make sums of all that there is, the last of which goes back over elements that are
        added: it adds nothing for them."""
        if not self.loop.sums or not self.loop.alone or not all(isinstance(k, llvm.Constant) for k in (start, stop)):
            return False
        whole, left = divmod(stop.constant - start.constant, self.lanes)
        most = SIDE_BY_SIDE if registers().count >= MANY or not self.long else 2
        return bool(0 < whole < most and left > 0)

    def rounds(self, first: Any, stop: Any, vectors: int, lanes: int) -> Any:
        """As many rounds of so many vectors as there are; gives where they end."""
        builder, size = self.builder, NUMBER(vectors * lanes)
        whole = _folded(builder, "sdiv", _folded(builder, "sub", stop, first), size)
        if isinstance(whole, llvm.Constant) and whole.constant <= 0:
            return first
        past = _folded(builder, "add", first, _folded(builder, "mul", whole, size))
        self.some(first, past, vectors, lanes)
        if not isinstance(whole, llvm.Constant):  # there may be less than nothing
            past = builder.select(builder.icmp_signed(">", whole, NUMBER(0)), past, first)
        return past

    def to_a_line(self, start: Any, stop: Any, lanes: int) -> Any:
        """One vector from a place within a line of memory, if it is known to be one, so that the next ones begin with
        lines, and do not lie across two of them; gives where they begin."""
        if self.long or not all(isinstance(code, llvm.Constant) for code in (start, stop)):
            return start
        line = NUMBER(-(-start.constant // lanes) * lanes)
        if line.constant == start.constant or stop.constant - line.constant < lanes * self.at_once():
            return start
        self.some(start, line, 1, lanes)
        return line

    def to_the_end(self, start: Any, done: Any, stop: Any, lanes: int) -> Any:
        """What is left: as one round if it is known how much that is, or one vector after the other. The last vector
        goes back over elements that are done, if there are so many."""
        builder, last = self.builder, _folded(self.builder, "sub", stop, NUMBER(lanes))
        if all(isinstance(code, llvm.Constant) for code in (start, done, stop)):
            left = stop.constant - done.constant
            if last.constant < start.constant or not left:
                return done
            vectors = min(-(-left // lanes), self.at_once())
            self.some(done, stop, vectors, lanes, last if left % lanes else None)
            return stop
        enough = builder.icmp_signed(">=", last, start)
        self.some(builder.select(enough, done, stop), stop, 1, lanes, last)
        return builder.select(enough, stop, done)

    def at_once(self) -> int:
        """Vectors in each round. What takes long may keep a CPU busy one by one."""
        if self.long:
            return 2 if self.pairs else 1
        room = registers().count // 2 // max(len(self.loop.sums), 1)  # half is for what they are made of
        return min(SIDE_BY_SIDE, 1 << max(room.bit_length() - 1, 0))  # two are joined, and then those

    def some(self, first: Any, past: Any, vectors: int, lanes: int, last: Any = None) -> None:
        """So many vectors in each round, none of which begins behind the last place, if there is one."""
        self.lanes = lanes
        known = isinstance(first, llvm.Constant) and isinstance(past, llvm.Constant)
        if known and 0 < past.constant - first.constant <= vectors * lanes:
            self.one_round(first, vectors, last)
            return
        builder, names = self.builder, ("lanes", "vectors", "sums", "lanes_end")
        before, inside, behind, after = (self.printer.function.append_basic_block(name) for name in names)
        builder.cbranch(builder.icmp_signed("<", first, past), before, after)
        builder.position_at_end(before)
        begun = self.begun(vectors)
        begins = builder.block  # what is computed before the loop may have branches
        builder.branch(inside)
        builder.position_at_end(inside)
        place = builder.phi(NUMBER)
        phis = {name: [builder.phi(value.type) for value in values] for name, values in begun.items()}
        sums = {name: list(values) for name, values in phis.items()}
        self.round(place, vectors, last, sums)
        following = builder.add(place, NUMBER(vectors * self.lanes), flags=["nsw"])
        stays_rolled(builder.cbranch(builder.icmp_signed("<", following, past), inside, behind))
        for phi, early, later in [(place, first, following)] + [
            each for name in phis for each in zip(phis[name], begun[name], sums[name], strict=True)
        ]:
            phi.add_incoming(early, begins)
            phi.add_incoming(later, inside)
        builder.position_at_end(behind)
        for name, values in sums.items():
            self.finish(ir.Variable(name, self.loop.type), values)
        builder.branch(after)
        builder.position_at_end(after)

    def one_round(self, first: Any, vectors: int, last: Any) -> None:
        """The same, where it is known that one round is all."""
        sums = self.begun(vectors)
        self.round(first, vectors, last, sums)
        for name, values in sums.items():
            self.finish(ir.Variable(name, self.loop.type), values)

    def begun(self, vectors: int) -> dict[str, list[Any]]:
        """Computes what comes before the rounds; gives what sums begin with."""
        self.steady, self.starts, self.read = {}, {}, {}
        for statement in self.loop.node.body:
            self.prepare(statement)
        return {name: [self.nothing(name)] * vectors for name in self.loop.sums}

    def round(self, place: Any, vectors: int, last: Any, sums: dict[str, list[Any]]) -> None:
        builder = self.builder
        begin = [_folded(builder, "add", place, NUMBER(k * self.lanes)) if k else place for k in range(vectors)]
        self.places = begin if last is None else [_folded(builder, "min", k, last) for k in begin]
        self.done = [_less(place, early) for place, early in zip(begin, self.places, strict=True)] if sums else []
        self.own, self.made = {}, {}
        for statement in self.loop.node.body:
            self.statement(statement, sums)

    # -- before the loop

    def prepare(self, node: Any) -> None:
        """Computes what is the same in all steps, and where tensors begin."""
        match node:
            case ir.Store(memory=memory, offset=offset, value=value):
                self.start(memory, offset)
                self.prepare(value)
            case ir.Set(value=value):
                self.prepare(value)
            case ir.Value() if not self.varies(node):
                if id(node) not in self.steady:
                    self.steady[id(node)] = self.splat(self.printer.value(node))
            case ir.Load(memory=memory, offset=offset):
                self.read[id(node)] = self.allowed(self.start(memory, offset), self.loop.allowed[id(node)])
            case ir.Value():
                for part in ir.parts_of(node):
                    if isinstance(part, ir.Value):
                        self.prepare(part)

    def varies(self, node: ir.Value) -> bool:
        if id(node) not in self.varying:
            match node:
                case ir.Number():
                    found = False
                case ir.Variable(name=name):
                    found = name in self.changing or name in self.loop.sums
                case _:
                    found = any(self.varies(part) for part in ir.parts_of(node) if isinstance(part, ir.Value))
            self.varying[id(node)] = found
        return self.varying[id(node)]

    def start(self, memory: ir.Memory, offset: ir.Value) -> Any:
        if id(offset) not in self.forms:
            self.forms[id(offset)] = linear(offset)[0]
        form = self.forms[id(offset)]
        if (memory, form) not in self.starts:
            printer = self.printer
            outside = printer.fixed.get(self.index)
            printer.fixed[self.index] = self.base
            # where a loop begins further on, that place may lie before the tensor
            self.starts[memory, form] = self.builder.gep(printer.memories[memory.name], [printer.value(offset)])
            printer.fixed[self.index] = outside
        return self.starts[memory, form]

    def allowed(self, start: Any, when: Conditions) -> Any:
        """Where a vector is read: where the conditions do not allow that, at a place which is."""
        if not when:
            return start
        assert self.loop.sure is not None, "some access takes place in any case"
        instead = self.start(*self.loop.sure)
        for test, answer in when:
            code = self.printer.value(test)
            start = self.builder.select(code, *((start, instead) if answer else (instead, start)))
        return start

    def splat(self, code: Any) -> Any:
        """One number, or truth, in all lanes."""
        if self.lanes == 1:
            return code
        if isinstance(code, llvm.Constant):
            return llvm.Constant(llvm.VectorType(code.type, self.lanes), [code.constant] * self.lanes)
        return spread(self.builder, code, self.lanes)

    def nothing(self, name: str) -> Any:
        """What a sum begins with: the number to which nothing is added, or what it is already."""
        if self.loop.sums[name] in EXTREMES:
            return self.splat(self.printer.value(ir.Variable(name, self.loop.type)))
        return self.splat(llvm.Constant(self.kind(self.loop.type), -0.0))

    # -- in the loop: all vectors of a round side by side, so that none waits for another

    def statement(self, node: ir.Statement, sums: dict[str, list[Any]]) -> None:
        match node:
            case ir.Store(memory=memory, offset=offset, value=value):
                for code, place in zip(self.code(value), self.addresses(self.start(memory, offset)), strict=True):
                    self.builder.store(code, place, align=self.loop.type.size)
            case ir.Set(variable=variable, value=value) if variable.name in sums:
                self.own[variable.name] = olds = sums[variable.name]
                news = zip(self.code(value), olds, self.done, strict=True)
                sums[variable.name] = [self.without(done, new, old) for new, old, done in news]
            case ir.Set(variable=variable, value=value):
                self.own[variable.name] = self.code(value)
        self.made = {}  # what was computed of old values

    def without(self, done: int, new: Any, old: Any) -> Any:
        """A sum to which the first lanes of a vector, so many, add nothing."""
        if not done:
            return new
        lanes = [int(lane >= done) for lane in range(self.lanes)]
        return self.builder.select(llvm.Constant(llvm.VectorType(llvm.IntType(1), self.lanes), lanes), new, old)

    def addresses(self, start: Any) -> list[Any]:
        places = [self.builder.gep(start, [place]) for place in self.places]
        if self.lanes == 1:
            return places
        kind = llvm.VectorType(self.kind(self.loop.type), self.lanes).as_pointer()
        return [self.builder.bitcast(place, kind) for place in places]

    def code(self, node: ir.Value) -> list[Any]:
        if id(node) in self.steady:
            return [self.steady[id(node)]] * len(self.places)
        if id(node) not in self.made:
            self.made[id(node)] = self.computed(node)
        return self.made[id(node)]

    def computed(self, node: ir.Value) -> list[Any]:
        builder = self.builder
        match node:
            case ir.Number(value=value, type=kind):
                return [self.splat(llvm.Constant(self.kind(kind), value))] * len(self.places)
            case ir.Variable(name=name):
                return self.own[name]
            case ir.Load():
                places = self.addresses(self.read[id(node)])
                return [builder.load(place, align=self.loop.type.size) for place in places]
            case ir.Operation(operator="and" | "both", operands=operands):
                return self.each(lambda *codes: self.truth("and_", *codes), operands)
            case ir.Operation(operator="or" | "either", operands=operands):
                return self.each(lambda *codes: self.truth("or_", *codes), operands)
            case ir.Operation(operands=operands):
                return self.each(lambda *codes: self.printer.operation(node, list(codes)), operands)
            case ir.Choice(test=test, yes=yes, no=no):
                return self.each(self.chosen, (test, yes, no))
            case ir.Cast(value=operand, type=kind):
                return self.each(lambda code: self.cast(code, operand.type, kind), (operand,))
            case ir.Bits(value=operand, type=kind):
                return self.each(lambda code: builder.bitcast(code, self.like(code, kind)), (operand,))
            case ir.Call(function=name, arguments=arguments):
                return self.call(name, arguments)
        raise AssertionError(f"no vectors for {type(node).__name__}")

    def each(self, write: Callable[..., Any], values: tuple[ir.Value, ...]) -> list[Any]:
        """The same for every vector of a round."""
        return [write(*codes) for codes in zip(*map(self.code, values), strict=True)]

    def like(self, code: Any, kind: ir.Type) -> Any:
        """A type, for as many lanes as code has."""
        of = self.kind(kind)
        return llvm.VectorType(of, code.type.count) if isinstance(code.type, llvm.VectorType) else of

    def chosen(self, test: Any, yes: Any, no: Any) -> Any:
        if isinstance(yes.type, llvm.IntType) != isinstance(no.type, llvm.IntType):  # one of two truths for all lanes
            yes, no = (self.wide_truth(code) for code in (yes, no))
        if isinstance(test.type, llvm.VectorType) and not isinstance(yes.type, llvm.VectorType):
            yes, no = (self.wide_truth(code) for code in (yes, no))
        return self.builder.select(test, yes, no)

    def truth(self, operator: str, *codes: Any) -> Any:
        result, *rest = codes
        for other in rest:
            a, b = result, other
            if isinstance(a.type, llvm.VectorType) != isinstance(b.type, llvm.VectorType):
                a, b = self.wide_truth(a), self.wide_truth(b)
            result = getattr(self.builder, operator)(a, b)
        return result

    def wide_truth(self, code: Any) -> Any:
        if isinstance(code.type, llvm.VectorType) or self.lanes == 1:
            return code
        return spread(self.builder, code, self.lanes)

    def cast(self, code: Any, old: ir.Type, new: ir.Type) -> Any:
        builder, target = self.builder, self.like(code, new)
        if old == ir.TRUTH:
            return builder.uitofp(code, target) if new.real else builder.zext(code, target)
        if old.real and new.real:
            change = builder.fpext if new.size > old.size else builder.fptrunc
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

    def call(self, name: str, arguments: tuple[ir.Value, ...]) -> list[Any]:
        function = made(name, arguments[0].type)
        if function is None:
            return self.each(lambda *codes: self.instruction(INSTRUCTIONS[name][0], list(codes)), arguments)
        codes = [self.code(argument) for argument in arguments]
        printer = self.printer
        outside = self.steady, self.made, printer.flags
        self.steady, self.made = {}, {id(v): code for v, code in zip(function.arguments, codes, strict=True)}
        printer.flags = self.exact
        result = self.code(function.value)
        self.steady, self.made, printer.flags = outside
        return result

    def instruction(self, name: str, codes: list[Any]) -> Any:
        kind = codes[0].type
        element = kind.element if isinstance(kind, llvm.VectorType) else kind
        bits = 32 if element == llvm.FloatType() else 64
        lanes = f"v{kind.count}" if isinstance(kind, llvm.VectorType) else ""
        symbol, module = f"llvm.{name}.{lanes}f{bits}", self.printer.module
        found = module.globals.get(symbol)
        return self.builder.call(
            found or llvm.Function(module, llvm.FunctionType(kind, [kind] * len(codes)), symbol), codes
        )

    # -- behind it

    def finish(self, variable: ir.Variable, vectors: list[Any]) -> None:
        """One number of the vectors of a sum."""
        builder, made_by = self.builder, self.loop.sums[variable.name]

        def joined(a: Any, b: Any) -> Any:
            if made_by in EXTREMES:
                return self.instruction(INSTRUCTIONS[made_by][0], [a, b])
            return builder.fadd(a, b, flags=("reassoc",))

        while len(vectors) > 1:
            alone = vectors[len(vectors) // 2 * 2 :]
            vectors = [joined(a, b) for a, b in zip(vectors[::2], vectors[1::2], strict=False)] + alone
        (vector,) = vectors
        while isinstance(vector.type, llvm.VectorType) and vector.type.count > 1:
            half = vector.type.count // 2
            vector = joined(*(_shuffled(builder, vector, range(k, k + half)) for k in (0, half)))
        number = builder.extract_element(vector, LANE(0)) if isinstance(vector.type, llvm.VectorType) else vector
        old = self.printer.value(variable)
        self.printer.set(variable, joined(old, number) if made_by in EXTREMES else builder.fadd(old, number))


def _computes_much(body: ir.Body) -> bool:
    """Whether a step computes much for each number that it reads or writes."""
    nodes = list(ir.walk(body))
    moved = sum(isinstance(n, ir.Load | ir.Store) for n in nodes)
    made = sum(isinstance(n, ir.Call) or (isinstance(n, ir.Operation) and n.type.real) for n in nodes)
    return made >= MUCH * moved


def spread(builder: Any, code: Any, lanes: int) -> Any:
    first = builder.insert_element(llvm.Constant(llvm.VectorType(code.type, lanes), llvm.Undefined), code, LANE(0))
    return _shuffled(builder, first, [0] * lanes)


def _shuffled(builder: Any, vector: Any, lanes: Any) -> Any:
    places = list(lanes)
    unused = llvm.Constant(vector.type, llvm.Undefined)
    return builder.shuffle_vector(vector, unused, llvm.Constant(llvm.VectorType(LANE, len(places)), places))


def _less(place: Any, early: Any) -> int:
    """How many elements a vector goes back, which is known where there are sums."""
    return 0 if place is early else int(place.constant - early.constant)


def _folded(builder: Any, name: str, a: Any, b: Any) -> Any:
    """A sum, difference, product or quotient of numbers, or the least of them; both may be known."""
    if isinstance(a, llvm.Constant) and isinstance(b, llvm.Constant):
        return NUMBER(KNOWN[name](a.constant, b.constant))
    if name == "min":
        return builder.select(builder.icmp_signed("<", a, b), a, b)
    return getattr(builder, name)(a, b)
