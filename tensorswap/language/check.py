"""What a program must satisfy before it has a meaning. All faults are collected, then raised together."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Fault, LimitError, ProgramError, Span
from . import hints, ir, limits
from .build import WHOLE
from .functions import INDEX_FUNCTIONS
from .name_kinds import flat_items
from .render import access as show_access
from .render import expression as show


def check(loops: ir.Loops) -> None:
    """Raises a ProgramError with every fault of the program."""
    if len(loops.statements) > limits.STATEMENTS:
        raise LimitError(
            f"the program has {len(loops.statements):,} statements; at most {limits.STATEMENTS:,} are taken"
        )
    parts = sum(len(statement.nodes) for statement in loops.statements)
    if parts > limits.PARTS:
        raise LimitError(
            f"the program has {parts:,} numbers, names and operators; at most {limits.PARTS:,} are taken",
            hint="write long expressions as several statements: each is differentiated once",
        )
    faults = [fault for rule in RULES for fault in rule(loops)]
    if faults:
        faults.sort(key=lambda f: f.span.start if f.span else -1)
        raise ProgramError(faults)


def one_kind_of_name(loops: ir.Loops) -> Iterator[Fault]:
    """Indices and tensors are two kinds of names."""
    measured = {n.index for s in loops.statements for n in s.nodes if isinstance(n, ir.Size)}
    indices = set(loops.indices) - (measured - _standing(loops))  # size(X) of a tensor has a message of its own
    tensors: dict[str, Span | None] = {}
    for access in loops.accesses:
        tensors.setdefault(access.tensor, access.span)
    for name, span in tensors.items():
        if name in indices:
            yield Fault(
                f"{name} is used both as an index and as a tensor",
                span,
                "one name is one or the other: rename one of the two",
            )
        if name in loops.static_names:
            yield Fault(f"{name} is used both as a static integer and as a tensor", span, "rename one of the two")


def _standing(loops: ir.Loops) -> set[str]:
    """The names that stand as an index somewhere, and not only in a `size(...)`."""
    blocks = {b.index for _, around in loops.located for b in around}
    named = {i for s in loops.statements for i in s.indices} | {n.name for n in loops.ranges}
    return blocks | named | {i for a in loops.header_accesses for i in ir.index_names(a)}


def one_rank(loops: ir.Loops) -> Iterator[Fault]:
    """Every access of a tensor has the same number of indices, `...` or not."""
    seen: dict[str, ir.Access] = {a.tensor: a for a in loops.header_accesses}
    for node in loops.accesses[len(loops.header_accesses) :]:
        first = seen.setdefault(node.tensor, node)
        if len(first.indices) != len(node.indices):
            yield Fault(
                f"{show_access(node)} has {_count(len(node.indices), 'index', 'indices')}, but "
                f"{show_access(first)} has {len(first.indices)}",
                node.span,
                f"write {show_access(node)} among the arguments as well"
                if first in loops.header_accesses and not first.indices
                else f"give {node.tensor} the same number of indices everywhere"
                + ("" if node.indices and first.indices else "; only a plain `=` takes tensors without"),
            )
        elif first.batched != node.batched:
            yield Fault(
                f"{node.tensor} has `...` in one place and not in another",
                node.span,
                f"write {show_access(first)} or {show_access(node)} everywhere",
            )


FEWER = "arrays have no more: let one axis have the values of several"


def few_axes(loops: ir.Loops) -> Iterator[Fault]:
    """No tensor has more axes than an array can have."""
    large = {a.tensor: a for a in loops.accesses if len(a.indices) > limits.AXES}
    for name, access in large.items():
        yield Fault(f"{name} has {len(access.indices)} axes; at most {limits.AXES} are possible", access.span, FEWER)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def batch_marker(loops: ir.Loops) -> Iterator[Fault]:
    """`...` stands first in a bracket, alone."""
    for access in loops.accesses[len(loops.header_accesses) :]:
        for position, place in enumerate(access.indices):
            if _names_batch(place) and (position or not isinstance(place, ir.Index)):
                yield Fault("`...` stands for leading indices", place.span, "write it first: `X[...,i]`")


def _names_batch(place: ir.Expr) -> bool:
    """Whether `...` stands in an index expression itself, not in the bracket of an array that it gathers through."""
    if isinstance(place, ir.Access):
        return False
    return ir.bare(place) == ir.BATCH or any(_names_batch(part) for part in ir.children(place))


def whole_assignment(loops: ir.Loops) -> Iterator[Fault]:
    """`=` writes each element once, so every index must stand in the target."""
    for statement, blocks in loops.located:
        if statement.operator != "=":
            continue
        target = ir.index_names(statement.target)
        steps = {b.index for b in blocks} if statement.target.tensor in loops.updated else set()
        right = [i for i in statement.indices if i not in target and i not in steps]
        if right:
            names = " and ".join(right)
            span = next(
                (
                    n.span
                    for n in (*ir.walk(statement.value), *statement.nodes)
                    if isinstance(n, ir.Index) and n.name in right
                ),
                statement.span,
            )
            verb = "stands" if len(right) == 1 else "stand"
            yield Fault(
                f"index {names} {verb} on the right of `=` but not in the target",
                span,
                f"write `+=` to sum over {names}, or add {names} to {show_access(statement.target)}",
            )
        missing = [b.index for b in blocks if b.index not in target]
        if missing and not right and statement.target.tensor not in loops.updated:
            name, tensor = missing[-1], statement.target.tensor
            inner = ",".join((name, *(show(e, tight=True) for e in statement.target.indices)))
            yield Fault(
                f"every step of `for {name}` would write {show_access(statement.target)} again",
                statement.span,
                f"give each step its own element: `{tensor}[{inner}] = ...`",
            )


def one_operator(loops: ir.Loops) -> Iterator[Fault]:
    """Several statements may accumulate into one tensor with the same operator."""
    first: dict[str, ir.Statement] = {}
    for statement in loops.statements:
        earlier = first.setdefault(statement.target.tensor, statement)
        if ir.reduction(earlier.operator) != ir.reduction(statement.operator):
            if statement.target.tensor in loops.updated and statement.operator == "=":
                continue
            yield Fault(
                f"{statement.target.tensor} is written with `{statement.operator}` here and with "
                f"`{earlier.operator}` before",
                statement.span,
                "one tensor has one operator: write "
                + (
                    "`+=` in both (a sum starts from 0)"
                    if {earlier.operator, statement.operator} <= {"=", "+=", "-="}
                    else "the second result under another name"
                ),
            )


def complete_before_read(loops: ir.Loops) -> Iterator[Fault]:
    """Writing after reading is an error, save in `for` blocks and updates."""
    read: dict[str, tuple[ir.Block, ...]] = {}
    for statement, blocks in loops.located:
        target = statement.target.tensor
        own = any(a.tensor == target for a in statement.reads)
        for access in statement.reads:
            read.setdefault(access.tensor, blocks)
        if target in loops.updated:
            if statement.operator != "=":
                yield Fault(
                    f"{target} is an argument, and `{statement.operator}` would start from nothing and ignore it",
                    statement.span,
                    f"write {_update(statement)} to update it",
                )
            continue
        together = any(b is around for b in blocks for around in read.get(target, ()))
        if target in read and not together:
            if own and statement.operator != "=":
                yield Fault(
                    f"{target} is read by the statement that accumulates into it",
                    statement.span,
                    f"give the result a name of its own, or write `{show_access(statement.target)} = ...` to "
                    "update an input",
                )
            else:
                yield Fault(
                    f"{target} is written after it was read",
                    statement.span,
                    "write all of it before the first statement that reads it, or use another name",
                )


def _update(statement: ir.Statement) -> str:
    """The statement that updates its target, instead of accumulating from nothing."""
    target, operator = statement.target, statement.operator[:-1]
    value = statement.value
    if operator.startswith("arg") or not ir.index_names(target).issuperset(statement.indices):
        return f"the sum under a name of its own, then `{show_access(target)} = ...`"
    new = ir.Call(operator, (target, value)) if operator in ("max", "min") else ir.Binary(operator, target, value)
    return f"`{show_access(target)} = {show(new)}`"


def guard_atoms(loops: ir.Loops) -> Iterator[Fault]:
    """`inside` speaks of a whole statement, so it stands in a guard."""
    for node in (n for s in loops.statements for root in (s.target, s.value) for n in ir.walk(root)):
        if isinstance(node, ir.Inside):
            yield Fault(
                "`inside` stands outside of a guard",
                node.span,
                "write it behind the statement, without `else`: `Y[i] = X[i+1] if inside`",
            )


def index_expressions(loops: ir.Loops) -> Iterator[Fault]:
    """Inside brackets stand integers: + - * // % min max abs, indices, gathers."""
    for place in (place for access in loops.accesses[len(loops.header_accesses) :] for place in access.indices):
        yield from _index_faults(place)
    for declaration in loops.sizes:
        yield from _index_faults(declaration.value)
        for node in ir.walk(declaration.value):
            if isinstance(node, ir.Index | ir.Access):
                name = node.name if isinstance(node, ir.Index) else node.tensor
                yield Fault(
                    f"{name} has no place in a size",
                    node.span,
                    f"write `size({name})` for the range of an index; a static integer is declared `{name}: int`",
                )


def _index_faults(node: ir.Expr) -> Iterator[Fault]:
    match node:
        case ir.Number(value=value) if not isinstance(value, int):
            yield Fault(
                f"{value} is not a whole number",
                node.span,
                "indices and sizes are whole numbers: write `i//2` for half of i",
            )
        case ir.Binary(operator="/"):
            yield Fault("`/` does not give a whole number", node.span, "write `//`")
        case ir.Binary(operator="**"):
            yield Fault("`**` cannot stand in an index or a size", node.span, "write the product: `i*i`")
        case ir.Call(function=function) if function not in INDEX_FUNCTIONS:
            yield Fault(
                f"`{function}` cannot stand inside brackets",
                node.span,
                "an index is made of + - * // % min max abs and integer arrays",
            )
        case ir.Conditional():
            yield Fault(
                "a conditional cannot stand inside brackets",
                node.span,
                "put it around the access: `X[i-1] if i > 0 else X[0]`",
            )
            return
        case ir.Compare() | ir.Logic() | ir.Unary(operator="not") | ir.Inside():
            yield Fault(
                "a condition cannot stand inside brackets",
                node.span,
                "write it behind the statement: `Y[i] = X[i] if i < 3`",
            )
            return
    if not isinstance(node, ir.Access):  # a gather's own indices are checked where it is met
        for part in ir.children(node):
            yield from _index_faults(part)


def header_names(loops: ir.Loops) -> Iterator[Fault]:
    """A definition reads its arguments and what it wrote, writes its outputs, and names its indices once."""
    if not loops.header:
        return
    arguments = [*(a.name for a in loops.header.arguments), *loops.options]
    for name in dict.fromkeys(a for a in arguments if arguments.count(a) > 1):
        yield Fault(f"the argument {name} stands twice", loops.header.span, "give one another name")
    for position, argument in enumerate(loops.header.arguments):
        if isinstance(argument, ir.StaticDeclaration) and isinstance(argument.default, str):
            before = [a.name for a in loops.header.arguments[:position] if isinstance(a, ir.StaticDeclaration)]
            if argument.default not in before:
                yield Fault(
                    f"the default of {argument.name} is {argument.default}, which is no static integer before it",
                    argument.span,
                    hints.closest(argument.default, before) or f"write `{argument.name}: int = 1`",
                )
    for access in loops.header_accesses:
        for place in access.indices:
            if not isinstance(place, ir.Index):
                yield Fault(
                    f"{show_access(access)} in a header has plain indices only",
                    access.span,
                    f"write `{access.tensor}[i,j]`",
                )
    for output in loops.header.outputs:
        if output.tensor not in loops.written and output.tensor not in arguments:
            yield Fault(
                f"the output {output.tensor} is never written",
                output.span,
                hints.closest(output.tensor, loops.written) or f"add a statement `{show_access(output)} = ...`",
            )
    known = {*(a.name for a in loops.header.arguments), *loops.written}
    for statement in loops.statements:
        for access in statement.reads:
            if access.tensor in loops.options:
                parts = ", ".join(loops.options[access.tensor])
                yield Fault(f"{access.tensor} has a number for each axis", access.span, f"name one: {parts}")
            elif access.tensor not in known:
                hint = hints.closest(access.tensor, sorted(known))
                yield Fault(
                    f"{access.tensor} is neither an argument nor written",
                    access.span,
                    hint or f"add {show_access(access)} to the arguments of {loops.header.name}",
                )
                known.add(access.tensor)


def declared_names(loops: ir.Loops) -> Iterator[Fault]:
    """`X[i,j]: array` declares an input with plain indices, once; `i: index` an index."""
    seen: set[str] = set()
    for access in loops.arrays:
        if access.tensor in loops.written:
            yield Fault(
                f"{access.tensor} is declared as an array that is given, but the program writes it",
                access.span,
                f"remove the line, or declare an axis: `size({access.tensor}, 0) = ...`",
            )
        if access.tensor in seen:
            yield Fault(f"{access.tensor} is declared twice", access.span, "remove one of the lines")
        seen.add(access.tensor)
        if not all(isinstance(place, ir.Index) for place in access.indices):
            yield Fault(
                f"{show_access(access)} in a declaration has plain indices only",
                access.span,
                f"write `{access.tensor}[i,j]: array`",
            )
    for node in loops.ranges:
        if node.name in loops.static_names:
            yield Fault(f"{node.name} is a static integer, not an index", node.span, "remove one of the two lines")


def named_outputs(loops: ir.Loops) -> Iterator[Fault]:
    for name in loops.returns or ():
        if name not in loops.written:
            hint = hints.closest(name, loops.written)
            yield Fault(f"the output {name} is never written", None, hint or f"add a statement `{name} = ...`")
    if not loops.body:
        yield Fault("the program has no statement", None, "write `Y[i] = X[i]`")
    elif not loops.header and not loops.outputs:
        yield Fault(
            "the program has no output: every tensor it writes is read again",
            None,
            f"name the outputs in a last line: `return {loops.written[-1]}`",
        )


def blocks_nest(loops: ir.Loops) -> Iterator[Fault]:
    for _, blocks in loops.located:
        names = [b.index for b in blocks]
        if len(set(names)) < len(names):
            yield Fault(
                f"`for {names[-1]}` stands inside itself", blocks[-1].span, "use another index for the inner block"
            )
    for block in flat_items(loops.body):
        if isinstance(block, ir.Block) and block.index in loops.static_names:
            yield Fault(
                f"{block.index} is a static integer, not an index", block.span, "use another name for the block"
            )


def axes_exist(loops: ir.Loops) -> Iterator[Fault]:
    """`size(X, 1)` asks for an axis that X has."""
    nodes = [n for d in loops.sizes for n in (d.subject, *ir.walk(d.value))]
    nodes += [n for s in loops.statements for n in s.nodes]
    for node in nodes:
        if isinstance(node, ir.AxisSize) and node.tensor in loops.ranks:
            rank = loops.ranks[node.tensor]
            if not -rank <= node.axis < rank:
                yield Fault(
                    f"{node.tensor} has {_count(rank, 'axis', 'axes')}; {show(node)} asks for another",
                    node.span,
                    f"axes count from 0: the last one is `size({node.tensor}, {rank - 1})`"
                    if rank
                    else f"{node.tensor} is a scalar: write 1",
                )
        if isinstance(node, ir.AxisSize) and node.tensor in loops.indices:
            yield Fault(f"{node.tensor} is an index, which has no axes", node.span, f"write `size({node.tensor})`")
        if isinstance(node, ir.Size) and node.index in loops.ranks:
            yield Fault(
                f"{node.index} is a tensor; size() asks for one of its axes",
                node.span,
                f"write `size({node.index}, 0)`",
            )


def sizes_of_inputs(loops: ir.Loops) -> Iterator[Fault]:
    for declaration in loops.sizes:
        subject = declaration.subject
        if subject == ir.Size(ir.BATCH):
            yield Fault("the size of `...` comes from the arrays", declaration.span, "remove the line")
        if isinstance(subject, ir.AxisSize) and subject.tensor not in {*loops.written, *loops.inputs}:
            yield Fault(
                f"{show(subject)} is declared, but nothing writes {subject.tensor}",
                declaration.span,
                hints.closest(subject.tensor, loops.written) or "remove the line",
            )


def numbers_fit(loops: ir.Loops) -> Iterator[Fault]:
    """Whole numbers that the text computes fit 64 bits: 2**64 would be 0, even in a product with floating point."""
    roots = [root for s in loops.statements for root in (s.target, s.value, s.guard) if root is not None]
    for root in (*roots, *(d.value for d in loops.sizes)):
        found: list[ir.Expr] = []
        _constant(root, found)
        for node in found:
            text = show(node)
            shown = text if len(text) <= 80 else f"{text[:80]}..."
            yield Fault(
                f"`{shown}` does not fit a 64-bit integer",
                node.span,
                "write a number in it with a point, such as 2.0, for floating point",
            )


def _constant(node: ir.Expr, found: list[ir.Expr]) -> int | None:
    """The value of an expression of whole numbers alone; those beyond 64 bits are added to `found`."""
    parts = [_constant(part, found) for part in ir.children(node)]
    value: int | None = None
    match node, parts:
        case ir.Number(value=int() as number), _:
            value = number
        case ir.Unary(operator="-"), [int() as a]:
            value = -a
        case ir.Binary(operator=operator), [int() as a, int() as b]:
            if operator in ("+", "-", "*") or (operator in ("//", "%") and b != 0):
                value = WHOLE[operator](a, b)
            elif operator == "**" and b >= 0 and isinstance(ir.children(node)[1], ir.Number):
                value = a**b if abs(a) < 2 or b < 64 else 2**64
    if value is not None and not -(2**63) <= value < 2**63:
        found.append(node)
        return None
    return value


RULES = (
    one_kind_of_name, one_rank, few_axes, batch_marker, whole_assignment, one_operator,
    complete_before_read, guard_atoms, index_expressions, header_names, declared_names, named_outputs, blocks_nest,
    axes_exist, sizes_of_inputs, numbers_fit,
)  # fmt: skip
