"""What a program must satisfy before it has a meaning. All faults are collected, then raised together."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Fault, LimitError, ProgramError, Span
from . import hints, ir, limits
from .functions import INDEX_FUNCTIONS
from .render import access as show_access
from .render import expression as show


def check(loops: ir.Loops) -> None:
    """Raises a ProgramError with every fault of the program."""
    if len(loops.statements) > limits.STATEMENTS:
        raise LimitError(f"the program has {len(loops.statements):,} statements; at most {limits.STATEMENTS:,} are taken")
    faults = [fault for rule in RULES for fault in rule(loops)]
    if faults:
        faults.sort(key=lambda f: f.span.start if f.span else -1)
        raise ProgramError(faults)


def one_kind_of_name(loops: ir.Loops) -> Iterator[Fault]:
    """Indices and tensors are two kinds of names."""
    indices = set(loops.indices)
    tensors: dict[str, Span | None] = {a.tensor: a.span for a in loops.header_accesses}
    for statement in loops.statements:
        for node in ir.walk_statement(statement):
            if isinstance(node, ir.Access):
                tensors.setdefault(node.tensor, node.span)
    for name, span in tensors.items():
        if name in indices:
            yield Fault(f"{name} is used both as an index and as a tensor", span,
                        "one name is one or the other: rename one of the two")
        if name in loops.static_names:
            yield Fault(f"{name} is used both as a static integer and as a tensor", span, "rename one of the two")


def one_rank(loops: ir.Loops) -> Iterator[Fault]:
    """Every access of a tensor has the same number of indices, `...` or not."""
    seen: dict[str, ir.Access] = {a.tensor: a for a in loops.header_accesses}
    for statement in loops.statements:
        for node in ir.walk_statement(statement):
            if not isinstance(node, ir.Access):
                continue
            first = seen.setdefault(node.tensor, node)
            if len(first.indices) != len(node.indices):
                yield Fault(
                    f"{show_access(node)} has {_count(len(node.indices), 'index', 'indices')}, but "
                    f"{show_access(first)} has {len(first.indices)}", node.span,
                    f"give {node.tensor} the same number of indices everywhere")
            elif _batched(first) != _batched(node):
                yield Fault(f"{node.tensor} has `...` in one place and not in another", node.span,
                            f"write {show_access(first)} or {show_access(node)} everywhere")


def _batched(access: ir.Access) -> bool:
    return any(ir.bare(e) == ir.BATCH for e in access.indices)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def batch_marker(loops: ir.Loops) -> Iterator[Fault]:
    """`...` stands first in a bracket, alone."""
    for statement in loops.statements:
        for node in ir.walk_statement(statement):
            if isinstance(node, ir.Access):
                for position, place in enumerate(node.indices):
                    inner = ir.BATCH in ir.index_names(place)
                    if inner and (position or not isinstance(place, ir.Index)):
                        yield Fault("`...` stands for leading indices", place.span, "write it first: `X[...,i]`")


def whole_assignment(loops: ir.Loops) -> Iterator[Fault]:
    """`=` writes each element once, so every index must stand in the target."""
    for statement, blocks in loops.located:
        if statement.operator != "=":
            continue
        target = {i for e in statement.target.indices for i in ir.index_names(e)}
        right = [i for i in ir.indices_of(statement) if i not in target]
        if right:
            names = " and ".join(right)
            span = next((n.span for n in (*ir.walk(statement.value), *ir.walk_statement(statement))
                         if isinstance(n, ir.Index) and n.name in right), statement.span)
            verb = "stands" if len(right) == 1 else "stand"
            yield Fault(f"index {names} {verb} on the right of `=` but not in the target", span,
                        f"write `+=` to sum over {names}, or add {names} to {show_access(statement.target)}")
        missing = [b.index for b in blocks if b.index not in target]
        if missing and not right and statement.target.tensor not in loops.updated:
            name, tensor = missing[-1], statement.target.tensor
            inner = ",".join((name, *(show(e, tight=True) for e in statement.target.indices)))
            yield Fault(f"every step of `for {name}` would write {show_access(statement.target)} again", statement.span,
                        f"give each step its own element: `{tensor}[{inner}] = ...`")


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
                f"`{earlier.operator}` before", statement.span,
                "one tensor has one operator: write "
                + ("`+=` in both (a sum starts from 0)" if {earlier.operator, statement.operator} <= {"=", "+=", "-="}
                   else "the second result under another name"))


def complete_before_read(loops: ir.Loops) -> Iterator[Fault]:
    """Writing after reading is an error, save in `for` blocks and updates."""
    read: dict[str, tuple[ir.Block, ...]] = {}
    arguments = {a.name for a in loops.header.arguments} if loops.header else set()
    for statement, blocks in loops.located:
        target = statement.target.tensor
        own = any(a.tensor == target for a in ir.reads(statement))
        for access in ir.reads(statement):
            read.setdefault(access.tensor, blocks)
        if target in loops.updated:
            if statement.operator != "=":
                shown, op = show_access(statement.target), statement.operator[:-1]
                yield Fault(f"{target} is an argument, and `{statement.operator}` would start from the identity and "
                            "ignore it", statement.span, f"write `{shown} = {shown} {op} ...` to update it")
            continue
        together = bool(blocks) and any(b in read.get(target, ()) for b in blocks)
        if target in read and not together:
            shown = show_access(statement.target)
            if own and statement.operator != "=":
                yield Fault(f"{target} is read by the statement that accumulates into it", statement.span,
                            f"write `{shown} = {shown} {statement.operator[:-1]} ...` to update an input, "
                            "or give the result a name of its own")
            else:
                yield Fault(f"{target} is written after it was read", statement.span,
                            "write all of it before the first statement that reads it, or use another name")


def guard_atoms(loops: ir.Loops) -> Iterator[Fault]:
    """`inside` speaks of a whole statement, so it stands in a guard."""
    for statement in loops.statements:
        for root in (*statement.target.indices, statement.value):
            for node in ir.walk(root):
                if isinstance(node, ir.Inside):
                    yield Fault("`inside` stands outside of a guard", node.span,
                                "write it behind the statement: `Y[i] += X[i+1] if inside`")


def index_expressions(loops: ir.Loops) -> Iterator[Fault]:
    """Inside brackets stand integers: + - * // % min max abs, indices, gathers."""
    for statement in loops.statements:
        for access in (n for n in ir.walk_statement(statement) if isinstance(n, ir.Access)):
            for place in access.indices:
                yield from _index_faults(place)
    for declaration in loops.sizes:
        yield from _index_faults(declaration.value)
        for node in ir.walk(declaration.value):
            if isinstance(node, ir.Index | ir.Access):
                name = node.name if isinstance(node, ir.Index) else node.tensor
                yield Fault(f"{name} has no place in a size", node.span,
                            f"write `size({name})` for the range of an index; a static integer is declared "
                            f"`{name}: int`")


def _index_faults(node: ir.Expr) -> Iterator[Fault]:
    match node:
        case ir.Number(value=value) if not isinstance(value, int):
            yield Fault(f"{value} is not an integer", node.span, "an index is an integer: use `//` to divide")
        case ir.Binary(operator="/" | "**" as operator):
            yield Fault(f"`{operator}` does not give an integer", node.span, "use `//` to divide inside brackets")
        case ir.Call(function=function) if function not in INDEX_FUNCTIONS:
            yield Fault(f"`{function}` cannot stand inside brackets", node.span,
                        "an index is made of + - * // % min max abs and integer arrays")
        case ir.Compare() | ir.Logic() | ir.Conditional() | ir.Unary(operator="not") | ir.Inside():
            yield Fault("a condition cannot stand inside brackets", node.span,
                        "use a guard: `Y[i] += X[i] if i < 3`")
    if not isinstance(node, ir.Access):  # a gather's own indices are checked where it is met
        for part in ir.children(node):
            yield from _index_faults(part)


def header_names(loops: ir.Loops) -> Iterator[Fault]:
    """A definition reads its arguments and what it wrote, writes its outputs, and names its indices once."""
    if not loops.header:
        return
    arguments = [a.name for a in loops.header.arguments]
    for name in dict.fromkeys(a for a in arguments if arguments.count(a) > 1):
        yield Fault(f"the argument {name} stands twice", loops.header.span, "give one another name")
    for access in loops.header_accesses:
        for place in access.indices:
            if not isinstance(place, ir.Index):
                yield Fault(f"{show_access(access)} in a header has plain indices only", access.span,
                            f"write `{access.tensor}[i,j]`")
    for output in loops.header.outputs:
        if output.tensor not in loops.written and output.tensor not in arguments:
            yield Fault(f"the output {output.tensor} is never written", output.span,
                        f"add a statement `{show_access(output)} = ...`")
    known = {*arguments, *loops.written}
    for statement in loops.statements:
        for access in ir.reads(statement):
            if access.tensor not in known:
                hint = hints.closest(access.tensor, sorted(known))
                yield Fault(f"{access.tensor} is neither an argument nor written", access.span,
                            hint or f"add {show_access(access)} to the arguments of {loops.header.name}")
                known.add(access.tensor)


def named_outputs(loops: ir.Loops) -> Iterator[Fault]:
    for name in loops.returns or ():
        if name not in loops.written:
            hint = hints.closest(name, list(loops.written))
            yield Fault(f"the output {name} is never written", None, hint or f"add a statement `{name} = ...`")
    if not loops.header and loops.body and not loops.outputs:
        yield Fault("the program has no output: every tensor it writes is read again", None,
                    f"name the outputs in a last line: `return {loops.written[-1]}`")


def blocks_nest(loops: ir.Loops) -> Iterator[Fault]:
    for _, blocks in loops.located:
        names = [b.index for b in blocks]
        if len(set(names)) < len(names):
            yield Fault(f"`for {names[-1]}` stands inside itself", blocks[-1].span, "use another index for the inner block")
    for block in dict.fromkeys(b for _, blocks in loops.located for b in blocks):
        if block.index in loops.static_names:
            yield Fault(f"{block.index} is a static integer, not an index", block.span, "use another name for the block")


def axes_exist(loops: ir.Loops) -> Iterator[Fault]:
    """`size(X, 1)` asks for an axis that X has."""
    nodes = [n for d in loops.sizes for n in (d.subject, *ir.walk(d.value))]
    nodes += [n for s in loops.statements for n in ir.walk_statement(s)]
    for node in nodes:
        if isinstance(node, ir.AxisSize) and node.tensor in loops.ranks:
            rank = loops.ranks[node.tensor]
            if node.axis >= rank:
                yield Fault(f"{node.tensor} has {_count(rank, 'axis', 'axes')}; {show(node)} asks for another", node.span,
                            f"axes count from 0 to {rank - 1}" if rank else f"{node.tensor} is a scalar")
        if isinstance(node, ir.AxisSize) and node.tensor in loops.indices:
            yield Fault(f"{node.tensor} is an index, which has no axes", node.span, f"write `size({node.tensor})`")
        if isinstance(node, ir.Size) and node.index in loops.ranks:
            yield Fault(f"{node.index} is a tensor; size() asks for one of its axes", node.span,
                        f"write `size({node.index}, 0)`")


def sizes_of_inputs(loops: ir.Loops) -> Iterator[Fault]:
    for declaration in loops.sizes:
        subject = declaration.subject
        if isinstance(subject, ir.AxisSize) and subject.tensor not in loops.written and subject.tensor not in loops.inputs:
            yield Fault(f"{show(subject)} is declared, but nothing writes {subject.tensor}", declaration.span,
                        hints.closest(subject.tensor, list(loops.written)) or "remove the line")


RULES = (
    one_kind_of_name, one_rank, batch_marker, whole_assignment, one_operator, complete_before_read, guard_atoms,
    index_expressions, header_names, named_outputs, blocks_nest, axes_exist, sizes_of_inputs,
)  # fmt: skip
