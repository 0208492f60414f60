"""Whole tensors: `Y = relu(A)`, `Z = Y * scale + b`, `P = softmax(S / 2)` -> calls of definitions made for them.

A name without brackets is a scalar, unless the program shows elsewhere that it has axes. An expression of such names is
computed for each element, as in numpy: `linear(x, W) + b` with b[o] adds b along the last axis. It becomes a call of a
definition, so that `...` in it is what it must be, whatever it is elsewhere:

    def `A * scale`(A[...], scale) -> out[...]:
        out[...] = A[...] * scale
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import ProgramError
from ..language import ir
from ..language.ir import Expr
from ..language.name_kinds import flat_items
from ..language.render import expression as show
from .ellipsis import NONE, Ellipses, in_their_places

Matched = Callable[[ir.CallStatement], tuple[ir.Loops, dict[str, Expr]]]


def _may_be_whole(item: ir.Item) -> bool:
    """Whether a statement speaks of names without brackets alone."""
    if not isinstance(item, ir.Statement) or item.target.indices or item.operator != "=" or item.guard is not None:
        return False
    nodes = ir.walk(item.value)
    names = [n for n in nodes if isinstance(n, ir.Access)]
    return bool(names) and not any(n.indices for n in names) and not any(isinstance(n, ir.Index) for n in nodes)


def _named(item: ir.Statement) -> list[ir.Access]:
    return [item.target, *(n for n in ir.walk(item.value) if isinstance(n, ir.Access))]


def speaks_of_whole(loops: ir.Loops) -> bool:
    """Whether a program without calls may have a statement about whole tensors."""
    candidates = [item for item in flat_items(loops.body) if _may_be_whole(item)]
    if not candidates:
        return False
    shown = {access.tensor for access in loops.accesses if access.indices}
    return any(a.tensor in shown for item in candidates if isinstance(item, ir.Statement) for a in _named(item))


@dataclass
class Whole:
    """One program, and what its calls are matched with."""

    loops: ir.Loops
    matched: Matched

    def __post_init__(self) -> None:
        self.ranks = Ellipses()
        self.scalars: set[str] = set()  # names that are shown to have no axes,
        self.bracketed: set[str] = set()  # and those that stand before brackets
        self.made: dict[str, ir.Loops] = {}
        self.taken = {*self.loops.names, *(n for item in flat_items(self.loops.body) for n in _names(item))}

    def calls(self) -> tuple[ir.Loops, dict[str, ir.Loops]]:
        """The program with calls in the place of such expressions, and the definitions that they call."""
        items = flat_items(self.loops.body)
        if not any(isinstance(i, ir.CallStatement) for i in items) and not speaks_of_whole(self.loops):
            return self.loops, {}
        self.see_statements(items)
        body = self.arguments(self.loops.body, ())
        before: tuple[ir.Item, ...] = ()
        while body != before:  # each that is decided may decide others
            before, body = body, self.statements(body)
        return replace(self.loops, body=body), self.made

    # -- what the program shows of ranks

    def see_statements(self, items: list[ir.Item]) -> None:
        declared = list(self.loops.header_accesses)
        for item in items:
            if isinstance(item, ir.Statement) and not _may_be_whole(item):
                declared += [item.target, *item.reads]
            elif isinstance(item, ir.CallStatement):
                self.see_call(item)
        self.bracketed = {access.tensor for access in declared if access.indices}
        for access in declared:
            if access.indices:
                self.ranks.says(access)
            else:
                self.scalars.add(access.tensor)

    def see_call(self, call: ir.CallStatement) -> None:
        for access, value in in_their_places(call, *self.matched(call)):
            if isinstance(value, ir.Access) and (access.indices or value.indices):
                self.ranks.passed(call, access, value)
            elif isinstance(value, ir.Access):
                self.scalars.add(value.tensor)

    def rank(self, access: ir.Access) -> int | None:
        """How many axes are left of a tensor, if that is known."""
        rank = self.ranks.rank(access.tensor)
        return None if rank is None else rank - len(access.indices)

    def has_axes(self, access: ir.Access) -> bool:
        """Whether axes may be left, if the program does not say that there are none."""
        rank = self.rank(access)
        return rank > 0 if rank is not None else access.tensor in self.ranks.above

    def shows_axes(self, access: ir.Access) -> bool:
        """Whether the program shows that axes are left. What goes to a call that takes any number of them need not have
        any: without brackets it is a scalar."""
        if self.rank(access) is not None or access.tensor in self.bracketed:
            return self.has_axes(access)
        if not self.has_axes(access):
            return False
        root, axes = self.ranks.root(access.tensor)
        least = min(more for other, more in map(self.ranks.root, self.ranks.above) if other == root)
        return axes - min(least, 0) > 0

    # -- expressions

    def arguments(self, body: tuple[ir.Item, ...], blocks: tuple[str, ...]) -> tuple[ir.Item, ...]:
        """`P = softmax(S / 2)`: what is computed for a tensor of a call gets a name first, in a block for each step."""
        result: list[ir.Item] = []
        around = tuple(ir.Index(name) for name in blocks)
        for item in body:
            if isinstance(item, ir.Block):
                item = replace(item, body=self.arguments(item.body, (*blocks, item.index)))
            elif isinstance(item, ir.CallStatement):
                callee, values = self.matched(item)
                assert callee.header is not None
                for parameter in callee.header.arguments:
                    value = values[parameter.name]
                    tensor = isinstance(parameter, ir.Argument) and parameter.access.indices
                    if tensor and _is_computed(value, blocks):
                        held = ir.Access(ir.fresh(f"{parameter.name}_1", self.taken), around, span=value.span)
                        self.taken.add(held.tensor)
                        statement = ir.Statement(held, "=", value, span=value.span or item.span)
                        result.append(self.call(statement, certain=True))
                        item = _with_argument(item, value, held)
                self.see_call(item)
            result.append(item)
        return tuple(result)

    def statements(self, body: tuple[ir.Item, ...]) -> tuple[ir.Item, ...]:
        result: list[ir.Item] = []
        for item in body:
            if isinstance(item, ir.Block):
                item = replace(item, body=self.statements(item.body))
            elif isinstance(item, ir.Statement) and _may_be_whole(item) and any(map(self.shows_axes, _named(item))):
                item = self.call(item)
            result.append(item)
        return tuple(result)

    def call(self, statement: ir.Statement, certain: bool = False) -> ir.CallStatement:
        """A call in the place of a statement, of a definition for it."""
        accesses = list(dict.fromkeys(n for n in ir.walk(statement.value) if isinstance(n, ir.Access)))
        given = _names_for(accesses)
        names = list(given.values())
        target = statement.target
        if target in given and not self.has_axes(target) and target.tensor not in self.scalars:
            shown = [access for access in accesses if self.has_axes(access)]  # an update has as many axes as the rest
            self.relate(target, shown)
        tensors = [access for access in accesses if self.has_axes(access)]
        if not tensors:  # only the result shows axes
            tensors = [access for access in accesses if access.tensor not in self.scalars]
            if len({access.tensor for access in tensors}) != 1:
                raise _unclear(statement, names, certain)
        axes = {given[access]: self.axes_of(access, tensors, names) for access in tensors}
        statics: dict[Expr, ir.StaticDeclaration] = {}

        def change(node: Expr) -> Expr:
            match node:
                case ir.Access():
                    return ir.Access(given[node], axes.get(given[node], ()), span=node.span)
                case ir.Static() | ir.Size() | ir.AxisSize():
                    name = ir.fresh("n", {*names, *(d.name for d in statics.values())})
                    return ir.Static(statics.setdefault(node, ir.StaticDeclaration(name)).name, span=node.span)
            return node

        value = _changed(statement.value, change)
        longest = max(axes.values(), key=len)
        out = ir.Access(ir.fresh("out", set(names)), longest, span=target.span)
        arguments = tuple(ir.Argument(ir.Access(name, axes.get(name, ()))) for name in names)
        header = ir.Header(f"`{show(statement.value)}`", (*arguments, *statics.values()), (out,), span=statement.span)
        if header.name not in self.made or self.made[header.name].header != header:
            header = replace(header, name=ir.fresh(header.name, set(self.made)))
            body = ir.Statement(out, "=", value, span=statement.span)
            self.made[header.name] = ir.Loops((body,), header=header)
        made = ir.CallStatement((target,), header.name, (*accesses, *statics), span=statement.span)
        self.relate(target, tensors)
        return made

    def axes_of(self, access: ir.Access, tensors: list[ir.Access], names: list[str]) -> tuple[ir.Index, ...]:
        """Of a tensor with fewer axes than another, its own last ones; of all others `...` and those."""
        ranks = {tensor: self.rank(tensor) for tensor in tensors}
        known = [rank for rank in ranks.values() if rank is not None]
        fewer = sorted({rank for rank in known if rank < max(known)} if known else set())
        open_ones = [tensor for tensor, rank in ranks.items() if rank is None]
        if open_ones and known:
            fewer = sorted(set(known))
        shared = max(fewer, default=0)
        rank = ranks[access]
        last = tuple(ir.Index(ir.fresh(f"i{k}", {*names, "out", "n"})) for k in range(shared, 0, -1))
        if rank is not None and rank in fewer:
            return last[shared - rank :]
        return (ir.Index(ir.BATCH), *last)

    def relate(self, target: ir.Access, tensors: list[ir.Access]) -> None:
        """The result has as many axes as the tensor with the most."""
        ranks = [self.rank(tensor) for tensor in tensors]
        open_ones = [tensor for tensor, rank in zip(tensors, ranks, strict=True) if rank is None]
        for tensor in open_ones:
            self.ranks.differ(target.tensor, tensor.tensor, len(target.indices) - len(tensor.indices))
        if ranks and not open_ones:
            most = max(rank for rank in ranks if rank is not None)
            self.ranks.differ(target.tensor, NONE, len(target.indices) + most)


def _names(item: ir.Item) -> list[str]:
    if isinstance(item, ir.CallStatement):
        values = (*item.targets, *item.arguments, *(value for _, value in item.keywords))
        return [n.tensor for value in values for n in ir.walk(value) if isinstance(n, ir.Access)]
    return []


def _is_computed(value: Expr, blocks: tuple[str, ...]) -> bool:
    """Whether an argument is an expression of names without brackets, or of slices that the step chooses."""
    accesses = [n for n in ir.walk(value) if isinstance(n, ir.Access)]
    plain = not isinstance(value, ir.Access | ir.Several) and not _bare_indices(value)
    return plain and bool(accesses) and all(ir.index_names(a) <= set(blocks) for a in accesses)


def _bare_indices(value: Expr) -> bool:
    """Whether an index stands for a number in a value."""
    return isinstance(value, ir.Index) or any(
        _bare_indices(part) for part in ir.children(value) if not isinstance(value, ir.Access)
    )


def _names_for(accesses: list[ir.Access]) -> dict[ir.Access, str]:
    """A name for each: that of the tensor, as far as it is not the name of another slice."""
    found: dict[ir.Access, str] = {}
    for access in accesses:
        others = {a.tensor for a in accesses if a.tensor != access.tensor}
        found[access] = ir.fresh(access.tensor, {*found.values(), *others})
    return found


def _changed(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """As ir.transform does, but what stands in brackets goes with its tensor."""
    if isinstance(value, ir.Access):
        return change(value)
    parts = ir.children(value)
    return change(ir.rebuild(value, tuple(_changed(part, change) for part in parts)) if parts else value)


def _with_argument(call: ir.CallStatement, old: Expr, new: Expr) -> ir.CallStatement:
    return replace(
        call,
        arguments=tuple(new if value is old else value for value in call.arguments),
        keywords=tuple((name, new if value is old else value) for name, value in call.keywords),
    )


def _unclear(statement: ir.Statement, names: list[str], argument: bool) -> ProgramError:
    listed = " and ".join(names)
    what = f"which of {listed} are tensors" if len(names) > 1 else f"how many axes {listed} has"
    return ProgramError(
        f"nothing shows {what}",
        statement.span,
        f"write the indices, `T[...] = {names[0]}[...]`, and pass `T`" if argument else "write the indices of each",
    )
