"""The Python side of one direction: arguments, sizes, types, and the calls of kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ..errors import ArgumentError, ShapeError
from ..language import ir
from ..language.build import ONE, add, is_integer
from ..language.functions import RANDOM
from ..language.interval import interval
from ..language.ir import Expr
from ..language.render import BINDING, SIGN, binding
from ..language.render import access as show_access
from ..language.render import expression as show
from ..language.sizes import SizeRules, bare_uses, bare_written, infer
from ..rules.activity import integer_uses
from .expression import Kernel, Range
from .kinds import KindFormulas
from .loop import write_items
from .names import Names, quoted
from .once import unshown
from .proof import Proof

TRIED = 100  # a program with more indices is not asked what follows from a size given for one of them

SMALL = 2**15  # products of such numbers and sizes stay far below 64 bits


class Direction:
    """One function of an exported file, `forward` or `adjoint`, and what it needs."""

    def __init__(self, name: str, loops: ir.Loops, names: Names) -> None:
        seen = unshown(loops)
        self.name = name
        self.loops = loops
        self.names = names
        self.rules, self.needed, self.optional = size_rules(loops)
        self.kinds = KindFormulas(loops, names)
        self.kind_lines = self.kinds.lines()
        self.named = len(self.kinds.named)
        proof = Proof(loops, self.rules)
        self.kernels = []
        for item in loops.body:
            kernel = Kernel(loops, names, self.kinds, proof, seen, (item,))
            write_items(kernel, (item,))
            self.kernels.append(kernel)
        self.batched = batched_tensors(loops)
        self.sizing = Sizing(self)

    # -- parts of the file

    def signature(self) -> str:
        """What a call takes, as a constant of the file."""
        loops = self.loops
        arguments = loops.header.arguments if loops.header else ()
        defaults = {a.name: a.default for a in arguments if isinstance(a, ir.Argument) and a.default is not None}
        known = [name for name in loops.known if name not in (*loops.inputs, *loops.indices)]
        fields = {
            "inputs": loops.inputs,
            "defaults": defaults,
            "statics": {name: loops.static_defaults.get(name) for name in loops.static_names},
            "needed": self.needed,
            "sizes": self.optional,
            "known": tuple(name for name in known if loops.known[name] is not None),
            "ignored": tuple(name for name in known if loops.known[name] is None),
        }
        lines = [f"    {name}={value!a}," for name, value in fields.items()]
        return "\n".join([f"{self.name.upper()} = Signature(", *lines, ")"])

    def kinds_function(self) -> str:
        lines = [*self.kind_lines, *self.kinds.naming(self.named)]
        return "\n".join(
            [
                f"def {self.name}_kinds(k):",
                '    """The kind of each tensor, from those of the inputs. A block may read what it writes later."""',
                "    while True:",
                "        before = dict(k)",
                *(f"        {line}" for line in lines),
                "        if k == before:",
                "            return k",
            ]
        )

    def sizes_function(self) -> str:
        return "\n".join(
            [
                f"def {self.name}_sizes(given):",
                f'    """The arrays and sizes of a call of {self.name}; refuses what does not fit together."""',
                *(f"    {line}" for line in self.sizing.lines),
                f"    return {self.sizing.results()}",
            ]
        )

    def function(self, kernel_names: list[str], check: str, description: str) -> str:
        loops, names = self.loops, self.names
        lines = ["values = merged(mapping, arrays)", *([check] if check else [])]
        lines.append(f"given = Arguments({self.name.upper()}, values)")
        found = self.sizing.results()
        lines.append(f"{found} = {self.name}_sizes(given)" if found else f"{self.name}_sizes(given)")
        lines.append("real = given.real")
        kinds = ", ".join(f"{names.array(name)}=given.kind({name!a})" for name in loops.inputs)
        lines.append(f"k = {self.name}_kinds(Kinds({kinds}))")
        lines += self.whole_checks()
        changed = {*loops.updated, *loops.outputs}
        for name in loops.inputs:
            array = names.array(name)
            if name in changed:
                lines.append(f'{array} = updated({array}, k["{array}"], real)')
            else:
                lines.append(f"{array} = held({array})")
        made = set(loops.inputs)
        for kernel, kernel_name in zip(self.kernels, kernel_names, strict=True):
            lines += self.allocations(kernel, made)
            lines.append(self.call(kernel, kernel_name))
        lines.append(f"return {self.returned()}")
        return "\n".join(
            [
                f"def {self.name}(mapping=None, /, **arrays):",
                f'    """{quoted(description)}"""',
                *(f"    {line}" for line in lines),
            ]
        )

    def whole_checks(self) -> list[str]:
        """What stands in brackets or among random arguments holds whole numbers: inputs are checked as they come."""
        found: dict[str, None] = {}
        for statement in self.loops.statements:
            for node in statement.nodes:
                parts = node.indices if isinstance(node, ir.Access) else ()
                if isinstance(node, ir.Call) and node.function in RANDOM:
                    parts = node.arguments
                for part in parts:
                    for leaf in whole_leaves(part):
                        found[f"check_whole({show(leaf)!a}, {self.kinds.of(leaf).text})"] = None
        return list(found)

    def allocations(self, kernel: Kernel, made: set[str]) -> list[str]:
        lines = []
        operators = {s.target.tensor: s.operator for s in reversed(self.loops.statements)}
        for tensor in (*kernel.written, *kernel.read):
            if tensor in made:
                continue
            made.add(tensor)
            array, shape = self.names.array(tensor), self.sizing.shape(tensor)
            operator = operators[tensor]
            lines.append(f'{array} = started({shape}, {operator!a}, k["{array}"], real)')
            if operator.startswith("arg"):
                best = self.kinds.best(tensor).text
                lines.append(f"{self.names.best(tensor)} = np.zeros({shape}, computed({best}, real))")
            if tensor in kernel.masked:
                lines.append(f"{self.names.mask(tensor)} = np.zeros({shape}, np.bool_)")
        return lines

    def call(self, kernel: Kernel, name: str) -> str:
        arguments = [self.names.array(tensor) for tensor in kernel.written]
        for tensor in kernel.read:
            scalar = self.loops.ranks[tensor] == 0
            arguments.append(self.names.array(tensor) + ("[()]" if scalar else ""))
        arguments += [self.names.best(tensor) for tensor in kernel.best]
        arguments += [self.names.mask(tensor) for tensor in kernel.masked]
        arguments += [self.names.size(index) for index in kernel.sizes]
        arguments += [self.sizing.axis(tensor, axis) for tensor, axis in kernel.extents]
        arguments += [self.names.static(static) for static in kernel.statics]
        arguments += [f"computed({text}, real)" for text in kernel.types]
        called = f"{name}({', '.join(arguments)})"
        if not kernel.faults:
            return called
        faults = []
        for fault in kernel.faults:
            extent = f"{self.names.array(fault.tensor)}.shape[{fault.axis}]" if fault.tensor else "0"
            faults.append(f"({fault.text!a}, {fault.axis}, {extent})")
        return f"check_found({called}, {', '.join(faults)})"

    def returned(self) -> str:
        results = {}
        for tensor in self.loops.outputs:
            array = self.names.array(tensor)
            leading = ", leading" if tensor in self.batched else ""
            results[tensor] = f'finished({array}, k["{array}"], real{leading})'
        if len(results) == 1:
            return next(iter(results.values()))
        return "{" + ", ".join(f"{name!a}: {text}" for name, text in results.items()) + "}"


def parameters(kernel: Kernel) -> list[str]:
    names = kernel.names
    return [
        *(names.array(tensor) for tensor in (*kernel.written, *kernel.read)),
        *(names.best(tensor) for tensor in kernel.best),
        *(names.mask(tensor) for tensor in kernel.masked),
        *(names.size(index) for index in kernel.sizes),
        *(names.extent(tensor, axis) for tensor, axis in kernel.extents),
        *(names.static(static) for static in kernel.statics),
        *kernel.types.values(),
    ]


def size_rules(loops: ir.Loops) -> tuple[SizeRules, tuple[str, ...], tuple[str, ...]]:
    """Formulas for the sizes, the indices whose size must be given at the call, and those for which it may be.

    Where the accesses decide a size, giving another one may change how the sizes of the rest are found.
    """
    missing = infer(loops).missing
    given = frozenset({*missing, ir.BATCH})
    rules = infer(loops, given)
    stated = {d.subject.index for d in loops.sizes if isinstance(d.subject, ir.Size)}
    stated |= {use.index for use in bare_uses(loops) if use.tensor in loops.inputs}
    optional = []
    for name in loops.indices:
        if name in given:
            continue
        if name in stated:
            optional.append(name)
        if name in stated or len(loops.indices) > TRIED:
            continue
        other = infer(loops, given | {name})
        same = all(other.index.get(i) == formula for i, formula in rules.index.items() if i != name)
        if same and other.axis == rules.axis:
            optional.append(name)
    return rules, missing, tuple(optional)


def batched_tensors(loops: ir.Loops) -> dict[str, ir.Access]:
    """Tensors with `...`, and how they are accessed."""
    accesses = [*loops.header_accesses, *(a for s in loops.statements for a in (s.target, *s.reads))]
    accesses += [a for a in loops.known.values() if a is not None]
    return {a.tensor: a for a in accesses if a.batched}


def whole_leaves(node: Expr) -> list[Expr]:
    """The parts of an index expression that must hold whole numbers and may not."""
    match node:
        case ir.Unary(operator="-") | ir.Binary() | ir.Call(function="min" | "max" | "abs"):
            return [leaf for part in ir.children(node) for leaf in whole_leaves(part)]
    return [] if is_integer(node) else [node]


def may_wrap(node: Expr) -> bool:
    """Whether index arithmetic holds a number that a caller chooses, a large one, or a product of what is no number."""
    return any(
        isinstance(n, ir.Static)
        or (isinstance(n, ir.Number) and abs(n.value) > SMALL)
        or (isinstance(n, ir.Binary) and n.operator == "*" and not isinstance(n.left, ir.Number))
        for n in ir.walk(node)
    )


def magnitude(node: Expr) -> Expr:
    """A formula that nothing met while computing a node exceeds, whatever its sign."""
    match node:
        case ir.Index(name=name):
            return ir.Size(name)
        case ir.Number(value=value):
            return ir.Number(abs(value))
        case ir.Static():
            return ir.Call("abs", (node,))
        case ir.Binary(operator="*", left=left, right=right):
            return ir.Binary("*", add(magnitude(left), ONE), add(magnitude(right), ONE))
    parts = [magnitude(part) for part in ir.children(node)]
    return reduce(add, parts) if parts else node


class Sizing:
    """Lines that find every size of a call, each after those that it needs, and check that they agree."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.loops = direction.loops
        self.names = direction.names
        self.rules = direction.rules
        self.inputs = frozenset(self.loops.inputs)
        self.lines: list[str] = []
        self.done: dict[str, None] = {}
        self.active: list[str] = []
        self.arrays()
        self.statics()
        for name in self.loops.indices:
            self.index(name)
        self.shapes()
        for kernel in direction.kernels:
            for tensor, axis in kernel.extents:
                self.axis(tensor, axis)
        self.agreement()
        self.declarations()
        self.magnitudes()
        self.ranges()

    def results(self) -> str:
        """What the function gives, and its caller unpacks."""
        names = [self.names.array(name) for name in self.loops.inputs]
        names += [self.names.static(name) for name in self.loops.static_names]
        names += [*self.done, *(["leading"] if self.direction.batched else [])]
        return f"{names[0]}," if len(names) == 1 else ", ".join(names)

    # -- what is given

    def arrays(self) -> None:
        integers = integer_uses(self.loops)
        batched = self.direction.batched
        if batched:
            beside = {
                n: len(a.indices) - 1 for n, a in batched.items() if n not in self.loops.written or n in self.inputs
            }
            if not beside:
                raise ShapeError(
                    "no input shows how many indices `...` stands for",
                    hint="read an input with `...`, or write the indices out",
                )
            self.lines.append(f"leading = given.leading({beside!a})")
        patterns = {a.tensor: a for s in reversed(self.loops.statements) for a in reversed(s.reads)}
        patterns |= {a.tensor: a for a in self.loops.header_accesses}
        for name in self.loops.inputs:
            rank = None if name in batched else self.loops.ranks.get(name)
            text = show_access(patterns[name]) if name in patterns else name
            integer = ", integer=True" if name in integers else ""
            array = f"given.array({name!a}, {text!a}, {rank}{integer})"
            if name in batched:
                array = f"flattened({array}, leading)"
            self.lines.append(f"{self.names.array(name)} = {array}")

    def statics(self) -> None:
        for name in self.loops.static_names:
            self.lines.append(f"{self.names.static(name)} = given.statics[{name!a}]")

    # -- formulas

    def index(self, name: str) -> str:
        result = self.names.size(name)
        if name == ir.BATCH:
            self.define(result, lambda: "math.prod(leading)", "`...`")
        elif name in self.direction.needed:
            self.define(result, lambda: f"given.sizes[{name!a}]", name)
        else:
            chosen = (
                f"given.sizes[{name!a}] if {name!a} in given.sizes else " if name in self.direction.optional else ""
            )
            self.define(result, lambda: chosen + self.formula(self.rules.index[name]), f"index {name}")
        return result

    def axis(self, tensor: str, axis: int) -> str:
        if tensor in self.inputs:
            if tensor in self.loops.ranks:
                return f"{self.names.array(tensor)}.shape[{axis}]"
            result = self.names.extent(tensor, axis)
            self.define(
                result, lambda: f"axis({tensor!a}, {self.names.array(tensor)}, {axis})", f"{tensor}'s axis {axis}"
            )
            return result
        axis = axis + self.loops.ranks[tensor] if axis < 0 else axis
        if (tensor, axis) not in self.rules.axis:
            raise ShapeError(
                f"the size of {tensor}'s axis {axis} cannot be found",
                hint=f"declare it: `size({tensor}, {axis}) = ...`",
            )
        formula = self.rules.axis[tensor, axis]
        if isinstance(formula, ir.Size):
            return self.index(formula.index)
        result = self.names.extent(tensor, axis)
        self.define(result, lambda: self.formula(formula), f"{tensor}'s axis {axis}")
        return result

    def define(self, name: str, formula: Callable[[], str], what: str) -> None:
        if name in self.done:
            return
        if name in self.active:
            raise ShapeError(f"the size of {what} depends on itself", hint="declare it: `size(...) = ...`")
        self.active.append(name)
        self.lines.append(f"{name} = {formula()}")
        self.active.pop()
        self.done[name] = None

    def formula(self, node: Expr, least: int = 0) -> str:
        """An index-free integer expression, in Python."""
        bound = binding(node)
        text = self._formula(node, bound)
        return f"({text})" if bound < least else text

    def _formula(self, node: Expr, bound: int) -> str:
        match node:
            case ir.Number(value=value) if isinstance(value, int):
                return repr(value)
            case ir.Static(name=name):
                return self.names.static(name)
            case ir.Size(index=index):
                return self.index(index)
            case ir.AxisSize(tensor=tensor, axis=axis):
                self.refuse_leading(node)
                return self.axis(tensor, axis)
            case ir.Unary(operator="-", operand=operand):
                return f"-{self.formula(operand, SIGN + 1)}"
            case ir.Binary(operator="//" | "%" as operator, left=left, right=right) if not isinstance(right, ir.Number):
                function = "quotient" if operator == "//" else "remainder"
                return f"{function}({self.formula(left)}, {self.formula(right)}, {show(node)!a})"
            case ir.Binary(operator="+" | "-" | "*" | "//" | "%" as operator, left=left, right=right) if not (
                operator in ("//", "%") and right == ir.Number(0)
            ):
                level = BINDING[operator]
                return f"{self.formula(left, level)} {operator} {self.formula(right, level + 1)}"
            case ir.Call(function="min" | "max" | "abs" as function, arguments=arguments):
                return f"{function}({', '.join(self.formula(a) for a in arguments)})"
        raise ShapeError(f"`{show(node)}` cannot stand in a size", node.span)

    def refuse_leading(self, node: ir.AxisSize) -> None:
        """The first axis of a tensor with `...` is another one in each call."""
        access = self.direction.batched.get(node.tensor)
        if access is not None and node.axis % len(access.indices) == 0:
            raise ArgumentError(
                f"{show(node)} is one of the axes that `...` stands for, which an exported file takes as one",
                node.span,
                "write the indices out, or `size(...)` for the product of these axes",
            )

    # -- checks

    def shape(self, tensor: str) -> str:
        axes = [self.axis(tensor, axis) for axis in range(self.loops.ranks[tensor])]
        return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"

    def shapes(self) -> None:
        for name in self.loops.indices:
            if name != ir.BATCH:
                self.lines.append(f"check_size({name!a}, {self.names.size(name)})")
        for tensor in self.loops.written:
            if tensor not in self.inputs:
                shape = self.shape(tensor)
                self.lines.append(f"check_shape({tensor!a}, {shape})")

    def agreement(self) -> None:
        written = bare_written(self.loops)
        uses: dict[str, dict[str, None]] = {}
        for use in bare_uses(self.loops):
            strict = use.tensor in self.inputs or (use.tensor, use.axis) in written
            if strict and use.index != ir.BATCH:
                text = self.axis(use.tensor, use.axis)
                if text != self.names.size(use.index):
                    found = uses.setdefault(use.index, {})
                    found[f"({use.tensor!a}, {use.axis}, {text})"] = None
        for index, found in uses.items():
            self.lines.append(f"check_agreement({index!a}, {self.names.size(index)}, {', '.join(found)})")

    def declarations(self) -> None:
        for declaration in self.loops.sizes:
            subject = declaration.subject
            actual = self.formula(subject)
            wanted = self.formula(declaration.value)
            if actual == wanted or (isinstance(subject, ir.AxisSize) and subject.tensor not in self.inputs):
                continue
            check = f"check_declared({show(subject)!a}, {actual}, {wanted})"
            if declaration.inferred and isinstance(subject, ir.Size):
                self.lines.append(f"if {subject.index!a} not in given.sizes:")
                check = f"    {check}"
            self.lines.append(check)

    def magnitudes(self) -> None:
        """Kernels compute positions in 64 bits: refuses numbers with which these might wrap around."""
        found: dict[str, None] = {}
        for statement in self.loops.statements:
            for node in statement.nodes:
                if isinstance(node, ir.AxisSize):
                    self.refuse_leading(node)
                places = node.indices if isinstance(node, ir.Access) else ()
                sides = (node.left, node.right) if isinstance(node, ir.Compare) else ()
                for part in (*places, *sides):
                    if is_integer(part) and may_wrap(part):
                        found[f"check_magnitude({show(part)!a}, {self.formula(magnitude(part))})"] = None
        self.lines += found

    def ranges(self) -> None:
        for kernel in self.direction.kernels:
            for found in kernel.ranges:
                line = self.range(found)
                if line not in self.lines:
                    self.lines.append(line)

    def range(self, found: Range) -> str:
        access, place = found.access, found.access.indices[found.axis]
        bounds = interval(place, {name: ir.Size(name) for name in self.loops.indices})
        assert bounds is not None, "an affine place has bounds"
        low, high = (self.formula(bound) for bound in bounds)
        extent = self.axis(access.tensor, found.axis)
        sizes = "".join(f", {self.names.size(name)}" for name in found.indices)
        return f"check_range({show_access(access)!a}, {found.axis}, {low}, {high}, {extent}{sizes})"
