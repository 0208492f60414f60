"""Expressions -> Numba source that is generic in the types of arrays; an access that may leave its tensor is checked.

A strong value is left to Numba's promotion, which is numpy's. A number, an index or a scalar input may be weak: it is
converted to the type that the file works out for the expression around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import LimitError
from ..language import ir
from ..language.build import is_integer, opposite
from ..language.ir import Expr
from ..language.paths import Path
from ..language.render import AND, ATOM, BINDING, COMPARE, CONDITIONAL, NOT, OR, POWER, SIGN, SUM
from ..language.render import access as show_access
from ..language.render import expression as show
from .kinds import WHOLE, Formula, KindFormulas, is_whole
from .lines import Lines
from .names import Names
from .once import Unshown
from .proof import Proof, is_affine
from .scalar import NUMPY

DEEPEST = 30  # parentheses within parentheses, before a part gets a variable
BOTH_CONVERTED = frozenset({"pow", "atan2", "hypot"})


@dataclass(frozen=True)
class Code:
    """Source, how tightly it binds, and the kind of the type that it has: None for truth values and literals."""

    text: str
    binding: int = ATOM
    formula: Formula | None = None
    depth: int = 0

    def at(self, least: int) -> str:
        """The source in a place that needs a binding of at least `least`."""
        return self.text if self.binding >= least else f"({self.text})"


@dataclass(frozen=True)
class Fault:
    """What a kernel may find: an access out of bounds on an axis, or what one of these stands for."""

    text: str
    axis: int
    tensor: str = ""


ZERO_DIVISION, WRITTEN_TWICE = -1, -2


@dataclass(frozen=True)
class Range:
    """An access that every point evaluates at an affine place: in bounds if the box of its indices is."""

    access: ir.Access
    axis: int
    indices: tuple[str, ...]


class Kernel:
    """One function of an exported file: its parameters in order, and what it asks of the code around it."""

    def __init__(
        self,
        loops: ir.Loops,
        names: Names,
        kinds: KindFormulas,
        proof: Proof,
        unshown: Unshown,
        body: tuple[ir.Item, ...],
    ) -> None:
        self.loops = loops
        self.names = names
        self.kinds = kinds
        self.proof = proof
        self.unshown = unshown
        self.lines = Lines()
        statements = ir.Loops(body=body).statements
        self.written = tuple(dict.fromkeys(s.target.tensor for s in statements))
        self.read = tuple(dict.fromkeys(a.tensor for s in statements for a in s.reads if a.tensor not in self.written))
        self.best = tuple(dict.fromkeys(s.target.tensor for s in statements if s.operator.startswith("arg")))
        self.masked = tuple(name for name in self.written if name in unshown.tensors)
        self.sizes: dict[str, None] = {}
        self.extents: dict[tuple[str, int], None] = {}
        self.statics: dict[str, None] = {}
        self.types: dict[str, str] = {}  # the text of a kind -> the parameter that is its type
        self.faults: dict[Fault, int] = {}
        self.ranges: dict[Range, None] = {}
        self.functions: set[str] = set()

    def size(self, index: str) -> str:
        self.sizes[index] = None
        return self.names.size(index)

    def static(self, name: str) -> str:
        self.statics[name] = None
        return self.names.static(name)

    def extent(self, tensor: str, axis: int) -> str:
        axis = axis + self.loops.ranks[tensor] if axis < 0 and tensor in self.loops.ranks else axis
        if tensor in self.written or tensor in self.read:
            return f"{self.names.array(tensor)}.shape[{axis}]"
        self.extents[tensor, axis] = None
        return self.names.extent(tensor, axis)

    def type(self, formula: Formula) -> str:
        """The type that numbers of a kind are computed in."""
        if formula.known is not None and formula.known.dtype.kind != "f":
            return "np.int64"
        return self.types.setdefault(formula.text, f"f{len(self.types)}")

    def fault(self, fault: Fault) -> int:
        return self.faults.setdefault(fault, len(self.faults) + 1)

    def use(self, function: str) -> str:
        self.functions.add(function)
        return function


class Expressions:
    """The expressions of one statement. `path` holds the conditions under which a part is evaluated."""

    def __init__(self, kernel: Kernel, statement: ir.Statement, indices: frozenset[str], guarded: bool) -> None:
        self.kernel = kernel
        self.lines = kernel.lines
        self.kinds = kernel.kinds
        self.statement = statement
        self.indices = indices  # all that a point has, those of blocks too
        self.guarded = guarded
        self.before: dict[str, str] = {}  # tensors that are read as they were before the statement

    # -- whole numbers

    def integer(self, node: Expr, path: Path) -> Code:
        """An index expression."""
        match node:
            case ir.Number(value=value):
                return Code(repr(value), SIGN if value < 0 else ATOM, WHOLE)
            case ir.Index(name=name):
                return Code(self.kernel.names.index(name), ATOM, WHOLE)
            case ir.Static(name=name):
                return Code(self.kernel.static(name), ATOM, WHOLE)
            case ir.Size(index=index):
                return Code(self.kernel.size(index), ATOM, WHOLE)
            case ir.AxisSize(tensor=tensor, axis=axis):
                return Code(self.kernel.extent(tensor, axis), ATOM, WHOLE)
            case ir.Unary(operator="-", operand=operand):
                return self.joined(f"-{self.integer(operand, path).at(POWER)}", SIGN, WHOLE)
            case ir.Binary(operator=operator, left=left, right=right):
                first, second = self.integer(left, path), self.integer(right, path)
                if operator in ("//", "%"):
                    second = self.divisor(node, second, "")
                return self.operation(operator, first, second, WHOLE)
            case ir.Call(function="min" | "max" | "abs" as function, arguments=arguments):
                return self.called(function, *(self.integer(a, path) for a in arguments), formula=WHOLE)
        return self.value(node, path)

    def divisor(self, node: ir.Binary, divisor: Code, whole: str) -> Code:
        """A divisor that is not zero; `whole` tests whether it is a whole number, where that is not known."""
        if isinstance(node.right, ir.Number) and node.right.value != 0:
            return divisor
        known = self.lines.find((node.right, whole))
        if known is not None:
            return Code(known, ATOM, divisor.formula)
        name = self.variable(divisor)
        number = self.kernel.fault(Fault(show(node), ZERO_DIVISION))
        with self.lines.block(f"if {name.text} == 0{whole}:"):
            self.lines.add(f"return {number}, 0")
        self.lines.keep((node.right, whole), name.text)
        return name

    def place(self, access: ir.Access, axis: int, path: Path) -> str:
        """The position of an access on an axis, checked where nothing shows that it is in bounds."""
        key = (access.tensor, axis, access.indices[axis])
        known = self.lines.find(key)
        if known is not None:
            return known
        code = self.integer(access.indices[axis], path)
        if not self.is_open(access, axis, path):
            return code.text
        name = self.variable(code, "p").text
        number = self.kernel.fault(Fault(show_access(access), axis, access.tensor))
        with self.lines.block(f"if {name} < 0 or {name} >= {self.kernel.extent(access.tensor, axis)}:"):
            self.lines.add(f"return {number}, {name}")
        self.lines.keep(key, name)
        return name

    def is_open(self, access: ir.Access, axis: int, path: Path) -> bool:
        """Whether only the point itself can show that an access is in bounds."""
        if self.kernel.proof.inside(access, axis, path, self.indices):
            return False
        if path or self.guarded or not is_affine(access.indices[axis]):
            return True
        order = tuple(name for name in self.kernel.loops.indices if name in self.indices)
        self.kernel.ranges[Range(access, axis, order)] = None
        return False

    def access(self, node: ir.Access, path: Path) -> str:
        name = self.kernel.names.array(node.tensor)
        name = self.before.get(node.tensor, name) if node is not self.statement.target else name
        if not node.indices:
            return f"{name}[()]" if node.tensor in self.kernel.written else name
        return f"{name}[{', '.join(self.place(node, axis, path) for axis in range(len(node.indices)))}]"

    # -- conditions

    def truth(self, node: Expr, path: Path) -> Code:
        match node:
            case ir.Compare(operator=operator, left=left, right=right):
                kind = self.kinds.promote(self.kinds.number(left), self.kinds.number(right))
                first, second = self.converted(left, kind, path), self.converted(right, kind, path)
                text = f"{first.at(SUM)} {operator} {second.at(SUM)}"
                return self.joined(text, COMPARE, None, first, second)
            case ir.Logic():
                return self.logic(node, path)
            case ir.Unary(operator="not", operand=operand):
                part = self.truth(operand, path)
                return self.joined(f"not {part.at(NOT)}", NOT, None, part)
        part = self.value(node, path)
        return self.joined(f"{part.at(SUM)} != 0", COMPARE, None, part)

    def logic(self, node: ir.Logic, path: Path) -> Code:
        """The right side is evaluated only where it matters."""
        both = node.operator == "and"
        first = self.truth(node.left, path)
        with self.lines.aside() as lines:
            second = self.truth(node.right, (*path, node.left if both else opposite(node.left)))
        if not lines:
            level = AND if both else OR
            text = f"{first.at(level)} {node.operator} {second.at(level + 1)}"
            return self.joined(text, level, None, first, second)
        name = self.variable(first, fresh=True)
        self.lines.add_block(f"if {name.text}:" if both else f"if not {name.text}:", lines)
        with self.lines.inner():
            self.lines.add(f"{name.text} = {second.text}")
        return name

    # -- values

    def value(self, node: Expr, path: Path) -> Code:
        match node:
            case ir.Number(value=value) if not isinstance(value, int):
                return Code(repr(value), SIGN if value < 0 else ATOM)
            case ir.Number() | ir.Index() | ir.Static() | ir.Size() | ir.AxisSize():
                return self.integer(node, path)
            case ir.Access():
                return Code(self.access(node, path), ATOM, self.kinds.of(node))
            case ir.Compare() | ir.Logic() | ir.Unary(operator="not"):
                return self.truth(node, path)
        kind = self.kinds.of(node)
        match node:
            case ir.Unary(operand=operand):
                part = self.converted(operand, kind, path)
                return self.joined(f"-{part.at(POWER)}", SIGN, kind, part)
            case ir.Binary():
                return self.binary(node, kind, path)
            case ir.Conditional():
                return self.conditional(node, kind, path)
            case ir.Call():
                return self.call(node, kind, path)
        raise AssertionError(f"no value for {type(node).__name__}")

    def converted(self, node: Expr, kind: Formula, path: Path) -> Code:
        """A part of an expression of a kind: what may be weak takes its type, the rest is left to promotion."""
        part = self.value(node, path)
        if part.formula == kind or not self.kinds.weak(node):
            return part
        return self.called(self.kernel.type(kind), part, formula=kind)

    def binary(self, node: ir.Binary, kind: Formula, path: Path) -> Code:
        operator = node.operator
        if operator == "**" and not is_whole(node.right):
            return self.call(ir.Call("pow", (node.left, node.right)), kind, path)
        first = self.converted(node.left, kind, path)
        if operator == "**":
            return self.joined(f"{first.at(ATOM)} ** {node.right.value}", POWER, kind, first)  # type: ignore[union-attr]
        second = self.converted(node.right, kind, path)
        if operator in ("//", "%"):
            certain = is_integer(node.left) and is_integer(node.right)
            second = self.divisor(node, second, "" if certain else f" and {self.kernel.type(kind)}(0.5) == 0")
        return self.operation(operator, first, second, kind)

    def conditional(self, node: ir.Conditional, kind: Formula, path: Path) -> Code:
        """Only the branch taken is evaluated."""
        condition = self.truth(node.condition, path)
        with self.lines.aside() as first:
            then = self.converted(node.then, kind, (*path, node.condition))
        with self.lines.aside() as second:
            otherwise = self.converted(node.otherwise, kind, (*path, opposite(node.condition)))
        if not first and not second:
            text = f"{then.at(OR)} if {condition.at(OR)} else {otherwise.text}"
            return self.joined(text, CONDITIONAL, kind, then, condition, otherwise)
        name = self.lines.fresh("v")
        for header, lines, part in ((f"if {condition.text}:", first, then), ("else:", second, otherwise)):
            self.lines.add_block(header, lines)
            with self.lines.inner():
                self.lines.add(f"{name} = {part.text}")
        return Code(name, ATOM, kind)

    def call(self, node: ir.Call, kind: Formula, path: Path) -> Code:
        function, arguments = node.function, node.arguments
        if function in ("uniform", "normal"):
            return self.random(function, arguments, path)
        if function == "stop":
            return self.value(arguments[0], path)
        if function in ("min", "max", "relu"):
            name = self.kernel.use("smaller" if function == "min" else "larger")
            first, *rest = (*arguments, ir.Number(0)) if function == "relu" else arguments
            result = self.converted(first, kind, path)
            for argument in rest:
                result = self.called(name, result, self.converted(argument, kind, path), formula=kind)
            return result
        if function in BOTH_CONVERTED:
            convert = self.kernel.type(kind)
            parts = [self.called(convert, self.value(a, path)) for a in arguments]
            return self.called(NUMPY[function], *parts, formula=kind)
        part = self.converted(arguments[0], kind, path)
        if function in NUMPY:
            return self.called(NUMPY[function], part, formula=kind)
        name = self.kernel.use("nearest" if function == "round" else function)
        return self.called(name, part, Code(self.kernel.type(kind)), formula=kind)

    def random(self, function: str, arguments: tuple[Expr, ...], path: Path) -> Code:
        state = Code("GOLDEN")
        for argument in arguments:
            state = self.called(self.kernel.use("mixed"), state, self.integer(argument, path))
        return self.called(self.kernel.use(function), state)

    # -- source

    def operation(self, operator: str, first: Code, second: Code, formula: Formula) -> Code:
        level = BINDING[operator]
        return self.joined(f"{first.at(level)} {operator} {second.at(level + 1)}", level, formula, first, second)

    def called(self, function: str, *parts: Code, formula: Formula | None = None) -> Code:
        return self.joined(f"{function}({', '.join(part.text for part in parts)})", ATOM, formula, *parts)

    def joined(self, text: str, binding: int, formula: Formula | None, *parts: Code) -> Code:
        """Source made of parts, in a variable if parentheses would nest too deep for Python."""
        code = Code(text, binding, formula, max((part.depth for part in parts), default=0) + 1)
        return self.variable(code) if code.depth > DEEPEST else code

    def variable(self, code: Code, letter: str = "v", fresh: bool = False) -> Code:
        """A variable that holds a value; one that is changed later must be `fresh`."""
        if code.text.isidentifier() and not fresh:
            return code
        name = self.lines.fresh(letter)
        self.lines.add(f"{name} = {code.text}")
        if self.lines.indent > 90:
            raise LimitError(
                "the program nests too deep to be exported", hint="compute a part in a statement of its own"
            )
        return Code(name, ATOM, code.formula)


__all__ = ["WRITTEN_TWICE", "Code", "Expressions", "Fault", "Kernel", "Range"]
