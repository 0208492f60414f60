"""Kernel IR -> C: a function for each kernel and each of its steps, for any compiler that knows GNU's vectors.

    cc -O3 -march=native -fopenmp model.c -lm

`kernelN(part, parts, ...)` is one part of a kernel; what a part has to itself comes as the address of its own memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

from . import ir
from .functions import INSTRUCTIONS, Made, made
from .text import ATOM, Definitions, Text, shared_parts

TYPES = {
    ir.F4: "float", ir.F8: "double", ir.TRUTH: "int",
    **{ir.Type(kind, size): f"{name}{8 * size}_t"
       for kind, name in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
}  # fmt: skip
SIGNS = {"and": "&&", "or": "||", "both": "&", "either": "|"}
# How tightly each operator binds its operands, in C.
LEVELS = {
    "or": 1, "and": 2, "either": 3, "|": 3, "^": 4, "both": 5, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7,
    ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "neg": 11, "not": 11,
}  # fmt: skip
CHOICE, UNARY = 0, 11

HEAD = """#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Whole numbers wrap around, and divide towards minus infinity. */
#pragma GCC optimize("wrapv")

static inline int64_t least_of(int64_t a, int64_t b) { return b < a ? b : a; }
static inline int64_t most_of(int64_t a, int64_t b) { return b > a ? b : a; }
static inline int64_t quotient(int64_t a, int64_t b) {
    if (b == -1) return -a;
    int64_t q = a / b;
    return q - (a % b != 0 && ((a % b < 0) != (b < 0)));
}
static inline int64_t remainder_of(int64_t a, int64_t b) {
    if (b == -1) return 0;
    int64_t r = a % b;
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
static inline uint32_t bits_f4(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
static inline uint64_t bits_f8(double x) { uint64_t y; memcpy(&y, &x, 8); return y; }
static inline float real_u4(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
static inline double real_u8(uint64_t x) { double y; memcpy(&y, &x, 8); return y; }
/* NaN if one of them is. */
#define EXTREMES(type, name) \\
    static inline type maximum_##name(type a, type b) { return a > b || a != a ? a : b; } \\
    static inline type minimum_##name(type a, type b) { return a < b || a != a ? a : b; }
EXTREMES(float, f4)
EXTREMES(double, f8)
EXTREMES(int64_t, i8)
"""


def parameters(kernel: ir.Kernel) -> list[str]:
    """Those of a kernel's function, part and parts aside."""
    return [_declared(word.place) for word in kernel.words if word.role is not ir.Role.OWN]


def arguments(kernel: ir.Kernel) -> list[ir.Word]:
    """What each of them is."""
    return [word for word in kernel.words if word.role is not ir.Role.OWN]


def kernel(made: ir.Kernel, number: int) -> str:
    steps = [node for node in ir.statements(made.body) if isinstance(node, ir.Step)]
    lines = [line for step in steps for line in (*_step(step, number), "")]
    names = ", ".join(["int64_t part", "int64_t parts", *parameters(made)])
    lines += [f"static void kernel{number}({names}) {{"]
    known = {"part": ir.WORD, "parts": ir.WORD}
    known |= {word.place.name: word.place.type for word in made.words if isinstance(word.place, ir.Variable)}
    lines += _indented(_Body(number, known).body(made.body))
    return "\n".join([*lines, "}"]) + "\n"


def _declared(place: ir.Variable | ir.Memory, restrict: str = "") -> str:
    star = f" *{restrict}" if isinstance(place, ir.Memory) else " "
    return f"{TYPES[place.type]}{star}{place.name}"


def _step(step: ir.Step, number: int) -> Iterator[str]:
    variables, memories = step.free
    names = [_declared(v) for v in variables] + [_declared(m, "restrict ") for m in memories]
    yield f"/* {step.comment} */"
    yield f"static void step{number}_{step.number}({', '.join(names)}) {{"
    yield from _indented(_Body(number, {v.name: v.type for v in variables}).body(step.body))
    yield "}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.startswith("#") else "    " + line


class _Body:
    """Statements of one function; `known` are the variables that are declared where they stand."""

    def __init__(self, number: int, known: dict[str, ir.Type], count: Iterator[int] | None = None) -> None:
        self.number = number
        self.known = known
        self.count = itertools.count() if count is None else count

    def body(self, statements: ir.Body) -> Iterator[str]:
        for statement in statements:
            yield from self.statement(statement)

    def block(self, head: str, statements: ir.Body, *variables: ir.Variable) -> Iterator[str]:
        yield f"{head} {{"
        known = {**self.known, **{v.name: v.type for v in variables}}
        yield from _indented(_Body(self.number, known, self.count).body(statements))
        yield "}"

    def statement(self, node: ir.Statement) -> Iterator[str]:
        match node:
            case ir.Set(variable=variable, value=value):
                new = self.known.get(variable.name) != variable.type
                self.known[variable.name] = variable.type
                yield f"{TYPES[variable.type] + ' ' if new else ''}{variable.name} = {text_of(value)};"
            case ir.Store(memory=memory, offset=offset, value=value):
                yield f"{memory.name}[{text_of(offset)}] = {text_of(value)};"
            case ir.For():
                yield from self.loop(node)
            case ir.While(test=test, body=body):
                yield from self.block(f"while ({text_of(test)})", body)
            case ir.If(test=test, then=then, otherwise=otherwise):
                yield from self.block(f"if ({text_of(test)})", then)
                if otherwise:
                    yield from self.block("else", otherwise)
            case ir.Skip():
                yield "continue;"
            case ir.Leave():
                yield "break;"
            case ir.Choose(memory=memory, test=test, yes=yes, no=no):
                yield f"{_declared(memory)} = {_Text().within(test, 1)} ? {yes.name} : {no.name};"
            case ir.Hold(memory=memory, elements=elements):
                yield f"{TYPES[memory.type]} {memory.name}[{elements}];"
            case ir.Step(number=step, body=body):
                variables, memories = ir.free(body)
                names = [v.name for v in variables] + [m.name for m in memories]
                yield f"step{self.number}_{step}({', '.join(names)});"
            case ir.TileCall(tile=tile, a=a, b=b, y=y, loops=loops, scale=scale, add=add):
                panels = [part for p in (a, b, y) for part in (p.memory.name, *map(text_of, (p.at, p.row, p.column)))]
                numbers = [text_of(part) for loop in loops for part in loop]
                yield f"{tile.name}({', '.join([*panels, *numbers, text_of(scale), text_of(add)])});"
            case ir.Copy():
                yield from self.statement(node.loops)
            case _:
                raise AssertionError(f"C has no {type(node).__name__}")

    def loop(self, node: ir.For) -> Iterator[str]:
        name, end = node.variable.name, text_of(node.past)
        if not isinstance(node.past, ir.Number | ir.Variable):  # computed once, as in the IR
            past = f"end{next(self.count)}"
            yield f"const int64_t {past} = {end};"
            end = past
        step = "--" if ir.constant(node.step) == -1 else f" += {text_of(node.step)}"
        first = f"int64_t {name} = {text_of(node.first)}"
        head = f"for ({first}; {name} {'>' if node.down else '<'} {end}; {name}{step})"
        match node.body:
            case (ir.Set(variable=best, value=ir.Call(function="maximum" | "minimum" as way, arguments=(old, new))),):
                if isinstance(old, ir.Variable) and old.name == best.name and best.type.real:
                    yield from self.extreme(head, best, way, new)
                    return
        sums = _sums(node)
        if sums:
            yield f"#pragma omp simd reduction({sums})"
        yield from self.block(head, node.body, node.variable)

    def extreme(self, head: str, best: ir.Variable, way: str, new: ir.Value) -> Iterator[str]:
        """The largest or smallest of many numbers, in vectors; whether one of them is NaN is seen apart."""
        wrong, kind, sign = f"nan{next(self.count)}", TYPES[best.type], ">" if way == "maximum" else "<"
        yield f"int {wrong} = {best.name} != {best.name};"
        yield f"#pragma omp simd reduction({way[:3]}:{best.name}) reduction(|:{wrong})"
        yield f"{head} {{"
        yield f"    {kind} value = {text_of(new)};"
        yield f"    {wrong} |= value != value;"
        yield f"    {best.name} = value {sign} {best.name} ? value : {best.name};"
        yield "}"
        yield f"if ({wrong}) {best.name} = NAN;"


def _sums(node: ir.For) -> str:
    """What an innermost loop adds up in a variable: it may do so in any order."""
    if any(isinstance(inner, ir.If | ir.LONG) for inner in ir.statements(node.body)):
        return ""
    made: set[str] = set()  # anew at each point
    for statement in node.body:
        match statement:
            case ir.Set(variable=total, value=ir.Operation(operator="+" | "-" | "*" as operator, operands=(left, _))):
                own = isinstance(left, ir.Variable) and left.name == total.name
                if own and total.name not in made and total.type.real:
                    return f"{'*' if operator == '*' else '+'}:{total.name}"
        if isinstance(statement, ir.Set):
            made.add(statement.variable.name)
    return ""


# -- values


def text_of(value: ir.Value, known: dict[int, str] | None = None) -> str:
    """`known` has names for values that were computed before."""
    return _Text(known).of(value)[0]


class _Text(Text):
    def computed(self, node: ir.Value) -> tuple[str, int]:
        match node:
            case ir.Number(value=value, type=kind):
                return _number(value, kind), UNARY
            case ir.Operation():
                return self.operation(node)
            case ir.Choice(test=test, yes=yes, no=no):
                return f"{self.within(test, 1)} ? {self.within(yes, 1)} : {self.within(no, 1)}", CHOICE
            case ir.Cast(value=value, type=kind):
                if kind == ir.TRUTH:
                    return f"{self.within(value, 7)} != 0", 6
                return f"({TYPES[kind]}){self.within(value, UNARY)}", UNARY
            case ir.Bits(value=value, type=kind):
                return f"{'real' if kind.real else 'bits'}_{value.type}({self.alone(value)})", ATOM
            case ir.Call(function=name, arguments=arguments, type=kind):
                return self.call(_called(name, arguments[0].type, kind), *arguments), ATOM
        raise AssertionError(f"C has no {type(node).__name__}")

    def operation(self, node: ir.Operation) -> tuple[str, int]:
        operator, operands, level = node.operator, node.operands, LEVELS.get(node.operator, ATOM)
        if operator in ("min", "max"):
            text = self.alone(operands[0])
            for other in operands[1:]:
                text = f"{'least' if operator == 'min' else 'most'}_of({text}, {self.alone(other)})"
            return text, ATOM
        if operator in ("//", "%"):
            name = "quotient" if operator == "//" else "remainder"
            whole = {"quotient": "quotient", "remainder": "remainder_of"}[name]
            return self.call(f"{name}_{node.type}" if node.type.real else whole, *operands), ATOM
        if operator in ("neg", "not"):
            return f"{'-' if operator == 'neg' else '!'}{self.within(operands[0], ATOM)}", level
        sign = SIGNS.get(operator, operator)
        if level < LEVELS["+"]:  # compilers warn of what few people know by heart
            same = isinstance(operands[0], ir.Operation) and operands[0].operator == operator and sign in ("&&", "||")
            return f"{self.within(operands[0], 0 if same else UNARY)} {sign} {self.within(operands[1], UNARY)}", level
        return f"{self.within(operands[0], level)} {sign} {self.within(operands[1], level + 1)}", level


def _called(name: str, kind: ir.Type, result: ir.Type) -> str:
    found = made(name, kind)
    if found is not None:
        return found.name
    if name in ("maximum", "minimum"):
        return f"{name}_{kind}"
    function = INSTRUCTIONS[name][1] if name in INSTRUCTIONS else name
    return function if result == ir.F8 else f"{function}f"


def _number(value: float, kind: ir.Type) -> str:
    if kind.real:
        text = repr(float(value))
        if not math.isfinite(value):
            text = "NAN" if value != value else "-INFINITY" if value < 0 else "INFINITY"
        return text if kind == ir.F8 else f"(float){text}"
    if kind.kind == "u" and kind.size >= 4:
        return f"UINT{8 * kind.size}_C({value})"
    if value == -(2**63):
        return "INT64_MIN"
    return str(int(value)) if abs(value) < 2**31 else f"INT64_C({value})"


# -- functions that kernels call


def function(made: Made) -> str:
    """A function of numbers; what it needs several times has a name."""
    head = ", ".join(_declared(a) for a in made.arguments)
    lines = [f"static inline {TYPES[made.value.type]} {made.name}({head}) {{"]
    lines += _indented(_Body(0, {a.name: a.type for a in made.arguments}).body(made.body))
    known: dict[int, str] = {}
    for node in shared_parts(made.value):
        name = f"t{len(known)}"
        lines.append(f"    {TYPES[node.type]} {name} = {text_of(node, known)};")
        known[id(node)] = name
    return "\n".join([*lines, f"    return {text_of(made.value, known)};", "}"]) + "\n"


# -- tiles


def tile_text(tile: ir.Tile) -> str:
    element, depth, lanes = TYPES[tile.type], ir.LOOPS, tile.of_whole_vectors().lanes
    panels = ", ".join(f"{element} *{n}, int64_t {n}_at, int64_t {n}_row, int64_t {n}_column" for n in "aby")
    loops = ", ".join(f"int64_t count{k}, int64_t a_step{k}, int64_t b_step{k}" for k in range(depth))
    width = f"vector_size({lanes * tile.type.size}), " if lanes > 1 else ""
    lines = [
        f"typedef {element} {tile.name}_vector __attribute__(({width}aligned({tile.type.size}), may_alias));",
        f"static inline void {tile.name}({panels}, {loops}, {element} scale, int add) {{",
    ]
    body = _dot(tile, depth) if tile.form == "dot" else _outer(tile, depth)
    return "\n".join([*lines, *_indented(body), "}"]) + "\n"


def _nest(depth: int, inner: list[str]) -> Iterator[str]:
    """Loops over the steps of a sum, with pointers that move along."""
    for k in range(depth):
        yield f"{'    ' * k}for (int64_t k{k} = 0; k{k} < count{k}; k{k}++) {{"
    for line in inner:
        yield "    " * depth + line
    for k in reversed(range(depth)):
        yield "    " * k + "}"


def _moved(name: str, depth: int) -> str:
    return f"{name} + {name}_at + " + " + ".join(f"k{k} * {name}_step{k}" for k in range(depth))


def _outer(tile: ir.Tile, depth: int) -> Iterator[str]:
    vector, element = f"{tile.name}_vector", TYPES[tile.type]
    vectors = tile.of_whole_vectors().places
    places = [(row, v) for row in range(tile.rows) for v in vectors]
    for row, v in places:
        yield f"{vector} s{row}_{v} = {_zero(tile)};"
    inner = [f"const {element} *p = {_moved('a', depth)}, *q = {_moved('b', depth)};"]
    inner += [f"{vector} b{v} = *(const {vector} *)(q + {v});" for v in vectors]
    inner += [f"s{row}_{v} += p[{row} * a_row] * b{v};" for row, v in places]
    yield from _nest(depth, inner)
    for row, v in places:  # all are read before one is written: they may share elements
        yield f"s{row}_{v} *= scale;"
        yield f"if (add) s{row}_{v} += *({vector} *)(y + y_at + {row} * y_row + {v});"
    for row, v in places:
        yield f"*({vector} *)(y + y_at + {row} * y_row + {v}) = s{row}_{v};"


def _dot(tile: ir.Tile, depth: int) -> Iterator[str]:
    vector, element, size = f"{tile.name}_vector", TYPES[tile.type], tile.lanes
    places = [(row, column) for row in range(tile.rows) for column in tile.places]
    for row, column in places:
        yield f"{vector} s{row}_{column} = {_zero(tile)};"
        yield f"{element} t{row}_{column} = 0;"
    inner = [f"const {element} *p = {_moved('a', depth - 1)}, *q = {_moved('b', depth - 1)};", "int64_t k = 0;"]
    inner.append(f"for (; k + {size} <= count{depth - 1}; k += {size}) {{")
    for r, c in places:
        inner.append(f"    {vector} a{r}_{c} = *(const {vector} *)(p + {r} * a_row + {c} * a_column + k);")
    inner += [f"    {vector} b{c} = *(const {vector} *)(q + {c} * b_column + k);" for c in tile.places]
    inner += [f"    s{r}_{c} += a{r}_{c} * b{c};" for r, c in places]
    inner += ["}", f"for (; k < count{depth - 1}; k++) {{"]
    inner += [f"    t{r}_{c} += p[{r} * a_row + {c} * a_column + k] * q[{c} * b_column + k];" for r, c in places]
    inner.append("}")
    yield from _nest(depth - 1, inner)
    for row, column in places:
        lanes = " + ".join(f"s{row}_{column}[{k}]" for k in range(size)) if size > 1 else f"s{row}_{column}"
        yield f"t{row}_{column} = scale * (t{row}_{column} + ({lanes}));"
        place = f"y[y_at + {row} * y_row + {column} * y_column]"
        yield f"{place} = add ? {place} + t{row}_{column} : t{row}_{column};"


def _zero(tile: ir.Tile) -> str:
    return "{0}" if tile.of_whole_vectors().lanes > 1 else "0"


def _table(table: ir.Table) -> str:
    return f"static const double {table.name}[] = {{{', '.join(map(repr, table.numbers))}}};\n"


DEFINITIONS = Definitions(function, _table, tile_text)
