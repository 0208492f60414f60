"""Kernel IR -> Python source that Numba compiles: what `p.source` shows, and what keys of the kernel cache are made of.

Tensors are flat arrays. What each part of a kernel has to itself comes as an array with a row for each part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from . import ir
from .functions import Made, made
from .text import ATOM, Definitions, Text, shared_parts

NUMPY = {
    ir.F4: "np.float32", ir.F8: "np.float64", ir.TRUTH: "np.bool_",
    **{ir.Type(kind, size): f"np.{name}{8 * size}"
       for kind, name in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
}  # fmt: skip
FUNCTIONS = {
    "fabs": "abs", "abs": "abs", "sqrt": "math.sqrt", "floor": "np.floor", "ceil": "np.ceil", "round": "np.rint",
    "rint": "np.rint", "maximum": "np.maximum", "minimum": "np.minimum", "fma": "fma", "tan": "math.tan",
    "asin": "np.arcsin", "acos": "np.arccos", "atan": "math.atan", "sinh": "math.sinh", "cosh": "math.cosh",
    "atan2": "math.atan2", "hypot": "math.hypot", "pow": "np.power", "fmod": "np.fmod",
}  # fmt: skip
SIGNS = {"and": "and", "or": "or", "both": "&", "either": "|"}


def name_of(word: ir.Word) -> str:
    """What a kernel's function calls the argument for a word of its context."""
    return {ir.Role.LOCAL: f"{word.place.name}_parts", ir.Role.COPY: f"{word.place.name}_copies"}.get(
        word.role, word.place.name
    )


def kernel(made: ir.Kernel, number: int = 0) -> str:
    """The functions of a kernel, the one to call last: it takes the number of parts and all words of the context."""
    steps = [node for node in ir.statements(made.body) if isinstance(node, ir.Step)]
    lines = [line for step in steps for line in (*_step(step, number), "", "")]
    names = ", ".join(["parts", *(name_of(word) for word in made.words)])
    types = ", ".join(f"{w.place.name} {NUMPY[w.place.type][3:]}" for w in made.words if isinstance(w.place, ir.Memory))
    lines += ["@in_parts", f"def kernel{number}({names}):", f"    # {types}", "    for part in prange(parts):"]
    for word in made.words:
        place = word.place.name
        if word.role is ir.Role.LOCAL:
            lines.append(f"        {place} = {name_of(word)}[part]")
        elif word.role is ir.Role.COPY:
            assert word.own is not None, "a copy knows the first part's own"
            lines.append(f"        {place} = {name_of(word)}[part - 1] if part > 0 else {word.own.name}")
    lines += _indented(_body(made.body, number), "        ")
    return "\n".join(lines) + "\n"


def _step(step: ir.Step, number: int) -> Iterator[str]:
    yield "@compiled"
    yield f"def {_call(step, number)}:"
    yield f"    # {step.comment}"
    yield from _indented(_body(step.body, number), "    ")


def _call(step: ir.Step, number: int) -> str:
    variables, memories = step.free
    names = [variable.name for variable in variables] + [memory.name for memory in memories]
    return f"step{number}_{step.number}({', '.join(names)})"


def _indented(lines: Iterable[str], indent: str) -> Iterator[str]:
    for line in lines:
        yield indent + line


def _body(body: ir.Body, number: int) -> Iterator[str]:
    for statement in body:
        yield from _statement(statement, number)


def _statement(node: ir.Statement, number: int) -> Iterator[str]:
    match node:
        case ir.Set(variable=variable, value=value):
            yield f"{variable.name} = {text_of(value)}"
        case ir.Store(memory=memory, offset=offset, value=value):
            yield f"{memory.name}[{text_of(offset)}] = {text_of(value)}"
        case ir.For(variable=variable, first=first, past=past, step=step, body=body):
            bounds = [first, past] if isinstance(step, ir.Number) and step.value == 1 else [first, past, step]
            bounds = bounds[1:] if len(bounds) == 2 and ir.is_zero(first) else bounds
            yield f"for {variable.name} in range({', '.join(text_of(bound) for bound in bounds)}):"
            yield from _indented(_body(body, number), "    ")
        case ir.While(test=test, body=body):
            yield f"while {text_of(test)}:"
            yield from _indented(_body(body, number), "    ")
        case ir.If(test=test, then=then, otherwise=otherwise):
            yield f"if {text_of(test)}:"
            yield from _indented(_body(then, number), "    ")
            if otherwise:
                yield "else:"
                yield from _indented(_body(otherwise, number), "    ")
        case ir.Skip():
            yield "continue"
        case ir.Leave():
            yield "break"
        case ir.Choose(memory=memory, test=test, yes=yes, no=no):
            yield f"{memory.name} = {yes.name} if {text_of(test)} else {no.name}"
        case ir.Hold(memory=memory, elements=elements):
            yield f"{memory.name} = np.empty({elements}, {NUMPY[memory.type]})"
        case ir.Step():
            yield _call(node, number)
        case ir.TileCall(tile=tile, a=a, b=b, y=y, loops=loops, scale=scale, add=add):
            panels = [part for p in (a, b, y) for part in (p.memory.name, *map(text_of, (p.at, p.row, p.column)))]
            numbers = [text_of(part) for loop in loops for part in loop]
            yield f"{tile.name}({', '.join([*panels, *numbers, text_of(scale), text_of(add)])})"
        case ir.Copy():
            yield from _statement(node.loops, number)
        case _:
            raise AssertionError(f"Python has no {type(node).__name__}")


# -- values


# How tightly each operator binds its operands.
LEVELS = {
    "or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4, "either": 5, "|": 5, "^": 6,
    "both": 7, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "neg": 11,
}  # fmt: skip
CHOICE, COMPARISON = 0, 4


def text_of(value: ir.Value, known: dict[int, str] | None = None) -> str:
    """`known` has names for values that were computed before."""
    return _Text(known).of(value)[0]


class _Text(Text):
    def computed(self, node: ir.Value) -> tuple[str, int]:
        match node:
            case ir.Number(value=value, type=kind):
                text = _number(value, kind)
                return text, LEVELS["neg"] if text.startswith("-") else ATOM
            case ir.Operation():
                return self.operation(node)
            case ir.Choice(test=test, yes=yes, no=no, lazy=True):
                return f"{self.within(yes, 1)} if {self.within(test, 1)} else {self.within(no, 1)}", CHOICE
            case ir.Choice(test=test, yes=yes, no=no):
                return self.call("select", test, yes, no), ATOM
            case ir.Cast(value=value, type=kind):
                if kind == ir.TRUTH:
                    return f"{self.within(value, COMPARISON + 1)} != 0", COMPARISON
                return self.call(NUMPY[kind], value), ATOM
            case ir.Bits(value=value, type=kind):
                return f"{self.call(NUMPY[value.type], value)}.view({NUMPY[kind]})", ATOM
            case ir.Call(function=name, arguments=arguments, type=kind):
                found = made(name, arguments[0].type)
                text = self.call(FUNCTIONS[name] if found is None else found.name, *arguments)
                return f"np.float32({text})" if kind == ir.F4 and found is None else text, ATOM
        raise AssertionError(f"Python has no {type(node).__name__}")

    def operation(self, node: ir.Operation) -> tuple[str, int]:
        operator, operands, level = node.operator, node.operands, LEVELS.get(node.operator, ATOM)
        if operator in ("min", "max"):
            text = self.call(operator, *operands)
        elif operator in ("//", "%") and node.type.real:
            text, level = self.call(f"{'quotient' if operator == '//' else 'remainder'}_{node.type}", *operands), ATOM
        elif operator in ("neg", "not"):
            text = f"{'-' if operator == 'neg' else 'not '}{self.within(operands[0], level)}"
        else:  # no two comparisons stand side by side: Python would take them for a chain
            left, right = self.within(operands[0], level + (level == COMPARISON)), self.within(operands[1], level + 1)
            text = f"{left} {SIGNS.get(operator, operator)} {right}"
        if node.type.whole and node.type.size < 8:  # Numba computes with at least 64 bits
            return f"{NUMPY[node.type]}({text})", ATOM
        return text, level


def _number(value: float, kind: ir.Type) -> str:
    if kind == ir.TRUTH:
        return str(bool(value))
    text = repr(value)
    if isinstance(value, float) and not math.isfinite(value):
        text = "np.nan" if value != value else "-np.inf" if value < 0 else "np.inf"
    return text if kind in (ir.WORD, ir.F8) else f"{NUMPY[kind]}({text})"


# -- functions that kernels call


def function(made: Made) -> str:
    """A function of numbers; what it needs several times has a name."""
    lines = ["@exact", f"def {made.name}({', '.join(a.name for a in made.arguments)}):"]
    lines += _indented(_body(made.body, 0), "    ")
    known: dict[int, str] = {}
    for node in shared_parts(made.value):
        name = f"t{len(known)}"
        lines.append(f"    {name} = {text_of(node, known)}")
        known[id(node)] = name
    return "\n".join([*lines, f"    return {text_of(made.value, known)}"]) + "\n"


def tile_text(tile: ir.Tile) -> str:
    """A tile as plain loops: the same sums, one element at a time."""
    depth = ir.LOOPS
    loops = ", ".join(f"count{k}, a_step{k}, b_step{k}" for k in range(depth))
    panels = ", ".join(f"{name}, {name}_at, {name}_row, {name}_column" for name in "aby")
    head = f"def {tile.name}({panels}, {loops}, scale, add):"
    lines = ["@compiled", head, f"    for row in range({tile.rows}):", f"        for column in range({tile.columns}):"]
    lines.append(f"            total = {NUMPY[tile.type]}(0)")
    indent = "            "
    for k in range(depth):
        lines.append(f"{indent}for k{k} in range(count{k}):")
        indent += "    "
    windows = ["column * a_column"] if tile.form == "dot" else []
    in_a = " + ".join(("row * a_row", *windows, *(f"k{k} * a_step{k}" for k in range(depth))))
    in_b = " + ".join(("column * b_column", *(f"k{k} * b_step{k}" for k in range(depth))))
    lines.append(f"{indent}total = total + a[a_at + {in_a}] * b[b_at + {in_b}]")
    lines += [
        "            at = y_at + row * y_row + column * y_column",
        "            y[at] = y[at] + scale * total if add else scale * total",
    ]
    return "\n".join(lines) + "\n"


FUSED = """@intrinsic
def fma(typing_context, a, b, c):
    # a * b + c, rounded once
    def write(context, builder, signature, values):
        return builder.fma(*values)

    return a(a, a, a), write
"""


HEAD = """import math

import numpy as np
from numba import njit, prange
from numba.extending import intrinsic

# NaN and infinity keep their meaning; sums may be taken in any order.
compiled = njit(fastmath={"reassoc", "contract", "arcp", "afn"}, error_model="numpy")
exact = njit(fastmath={"contract"}, error_model="numpy")
in_parts = njit(parallel=True, fastmath={"reassoc", "contract", "arcp", "afn"}, error_model="numpy")


@exact
def select(test, yes, no):
    # both are evaluated
    return yes if test else no
"""


def _table(table: ir.Table) -> str:
    return f"{table.name} = np.array({list(table.numbers)!r})\n"


DEFINITIONS = Definitions(function, _table, tile_text, FUSED)
