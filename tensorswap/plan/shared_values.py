"""Shared values: a function value that several statements need is computed once and held, and so is one that a block
would compute again in each step. `gelu` is taken apart so that its erf can be shared with its derivative.

for t:
    H[t,i] = exp(a[i]) * H[t-1,i]
->  value[i] = exp(a[i]) stands before the block
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ..language import ir
from ..language.functions import takes_long
from ..language.ir import Call, Expr
from ..rules.complete_reads import Place, complete_when_read
from ..rules.scalar import written_out
from .work import Draft, Work, statements_in

Key = tuple[Hashable, Expr | None]  # a value, by what it reads, and the guard around it


@dataclass(frozen=True)
class _Use:
    around: tuple[str, ...]  # the indices of the blocks that the statement stands in
    item: int  # which item of the program that is
    in_step: bool  # whether it reads what the same item writes: only the step itself can make it
    makes: bool  # whether what it reads may be read by itself: a value can be made for it


@dataclass
class _Value:
    node: Expr
    uses: list[_Use] = field(default_factory=list)
    holder: ir.Statement | None = None  # one that does nothing but hold the value, in a tensor of its own
    movable: bool = False  # whether the holder may come earlier than it stands


@dataclass(frozen=True)
class _Moment:
    """An item of the program, and how often each tensor is written before it and when it has run."""

    item: int
    before: Counter[str]
    after: Counter[str]

    @property
    def writes(self) -> frozenset[str]:
        return frozenset(name for name, count in self.after.items() if count > self.before[name])


_Found = dict[Expr, tuple[Key, _Use]]  # the values of a statement


def share_values(work: Work) -> Work:
    draft = Draft(work.made(ir.map_loops(work.loops, _taken_apart).body))
    return _Sharing(draft).made()


class _Sharing:
    """The values of a program, and the tensors that hold them."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        writers = Counter(statement.target.tensor for statement in draft.loops.statements)
        self.once = {name for name, count in writers.items() if count == 1} - draft.loops.updated  # one value for ever
        self.values: dict[Key, _Value] = {}
        self.found = self.collected()
        self.serve_guarded()
        kept = self.kept()
        self.shared = {key for key, value in self.values.items() if self.is_worthwhile(value, key[1], kept)}
        self.held: dict[Key, ir.Access] = {}
        self.moved: list[ir.Statement] = []  # holders that a value was needed before
        self.body: list[ir.Item] = []

    def collected(self) -> list[_Found]:
        """What each statement has of values, in the order of statements."""
        before: Counter[str] = Counter()
        places = iter(self.draft.loops.located)
        result = []
        for number, item in enumerate(self.draft.loops.body):
            inside = statements_in(item)
            moment = _Moment(number, before, before + Counter(s.target.tensor for s in inside))
            for _ in inside:
                place = next(places)
                nodes = dict.fromkeys((*_always(place[0]), *self.quotients(place[0])))
                entries = {node: self.entry(node, place, moment) for node in nodes}
                result.append({node: entry for node, entry in entries.items() if entry is not None})
            before = moment.after
        return result

    def entry(self, node: Expr, place: Place, moment: _Moment) -> tuple[Key, _Use] | None:
        """A value that stands in a statement, if what it reads will not change any more."""
        statement, blocks = place
        holds = node == statement.value and statement.operator == "="
        if holds and not (_keeps(statement) and statement.target.tensor in self.once):
            return None
        if self.draft.types.of(node).weak:
            return None  # of plain numbers: a tensor would round them
        reads = [n for n in ir.walk(node) if isinstance(n, ir.Access)]
        own = [a for a in reads if blocks and a.tensor in moment.writes]
        if not all(map(_is_near, reads)) or not all(complete_when_read(self.draft.loops, place, a) for a in own):
            return None
        state = moment.after if own else moment.before
        versions = tuple((name, state[name]) for name in sorted({a.tensor for a in reads}))
        key = (node, versions), statement.guard
        value = self.values.setdefault(key, _Value(node))
        if holds and value.holder is None and not (blocks and value.uses):
            value.holder, value.movable = statement, not blocks
        makes = self.may_be_made(place, reads, bool(own))
        value.uses.append(_Use(tuple(b.index for b in blocks), moment.item, bool(own), makes))
        return key, value.uses[-1]

    def serve_guarded(self) -> None:
        """What can be made without a guard serves those with one as well."""
        for found in self.found:
            for node, (key, use) in found.items():
                everywhere = (key[0], None)
                if key == everywhere or not any(u.makes for u in self.uses_of(everywhere)):
                    continue
                found[node] = everywhere, replace(use, makes=use.makes and not use.in_step)
                self.values[everywhere].uses.append(found[node][1])

    def uses_of(self, key: Key) -> list[_Use]:
        return self.values[key].uses if key in self.values else []

    def quotients(self, statement: ir.Statement) -> Iterator[Expr]:
        """Index arithmetic that divides by what no text tells."""
        for node in _index_arithmetic(statement):
            divisors = [n.right for n in ir.walk(node) if isinstance(n, ir.Binary) and n.operator in ("//", "%")]
            long = any(isinstance(n, ir.Access) for divisor in divisors for n in ir.walk(divisor))
            if long and self.draft.types.of(node).dtype == np.int64:
                yield node

    def may_be_made(self, place: Place, reads: list[ir.Access], in_step: bool) -> bool:
        """Whether a value can be made by itself: of whole tensors, or in the step of what the statement reads there."""
        statement, blocks = place
        if any(self.draft.sizes.index[i] == 0 for i in (*statement.indices, *(b.index for b in blocks))):
            return False  # a statement of no points may read anywhere, and divide by anything
        return in_step or all(map(_is_whole, reads))

    def kept(self) -> int:
        """Elements that a block makes and another item reads, of the tensor with most of them."""
        body = self.draft.loops.body
        makers = {
            s.target.tensor: n for n, item in enumerate(body) if isinstance(item, ir.Block) for s in statements_in(item)
        }
        reads = [(n, a) for n, item in enumerate(body) for s in statements_in(item) for a in s.reads]
        return max((self.draft.volume(ir.index_names(a)) for n, a in reads if makers.get(a.tensor, n) != n), default=0)

    def is_worthwhile(self, value: _Value, guard: Expr | None, kept: int) -> bool:
        """Whether a value is needed more often than it changes. Those of single steps are held for other items only if
        the steps keep as much of something else."""
        names = ir.index_names(value.node)
        if not _fits(names, guard):
            return False
        if any(use.makes and not use.in_step and not names.issuperset(use.around) for use in value.uses):
            return True
        if not takes_long(value.node):
            return False
        if sum(use.makes and not use.around for use in value.uses) > 1:
            return True
        return len({use.item for use in value.uses}) > 1 and self.draft.volume(names) <= kept

    def made(self) -> Work:
        found = iter(self.found)
        for item in self.draft.loops.body:
            changed = ir.rewrite((item,), lambda statement, _: self.changed(statement, next(found)))
            self.body += changed
        return self.draft.made(self.body)

    def changed(self, statement: ir.Statement, found: _Found) -> list[ir.Statement]:
        """The statement that reads values where it would compute them, behind those that only its step can make."""
        if any(statement is holder for holder in self.moved):
            return []
        for key, _ in found.values():
            if key in self.shared and self.values[key].holder is statement:
                self.held.setdefault(key, statement.target)
        step: list[ir.Statement] = []
        value = self.reading(statement.value, statement.target, found, step)
        target = self.reading(statement.target, statement.target, found, step)
        assert isinstance(target, ir.Access)
        return [*step, replace(statement, target=target, value=value)]

    def reading(self, value: Expr, target: ir.Access, found: _Found, step: list[ir.Statement]) -> Expr:
        """A value that reads what is held; not what it is to hold itself."""
        for node in sorted(found, key=lambda n: -len(ir.walk(n))):
            key, use = found[node]
            if key in self.shared and self.held.get(key) != target and any(n == node for n in ir.walk(value)):
                access = self.held.get(key) or self.hold(key, use, target, found, step)
                value = _replaced(value, node, access) if access else value
        return value

    def hold(self, key: Key, use: _Use, target: ir.Access, found: _Found, step: list[ir.Statement]) -> ir.Access | None:
        """A tensor that holds a value from here on, if it can be made here."""
        value = self.values[key]
        names = self.axes(value.node, target)
        if not use.makes or (use.in_step and not {*names} >= {*use.around}):
            return None
        if value.holder is not None and value.movable and not use.in_step:
            maker = value.holder
            self.moved.append(maker)
        else:
            access = self.draft.tensor("value", [ir.Index(name) for name in names])
            maker = ir.Statement(access, "=", value.node, key[1])
        self.held[key] = maker.target
        maker = replace(maker, value=self.reading(value.node, maker.target, found, step))
        (step if use.in_step else self.body).append(maker)
        return maker.target

    def axes(self, node: Expr, target: ir.Access) -> tuple[str, ...]:
        """The indices of a value in an order that suits those who read it: that of what it is made of, or for."""
        names = ir.ordered_indices(node)
        if not takes_long(node):
            return tuple(sorted(names, key=self.draft.weight))  # loops are most often along the longest
        orders = [ir.ordered_indices(n) for n in ir.walk(node) if isinstance(n, ir.Access)]
        whole = [order for order in orders if len(order) == len(names)]
        first = [i for i in ir.ordered_indices(target) if i in names]
        return whole[0] if whole else tuple(dict.fromkeys((*first, *names)))


def _keeps(statement: ir.Statement) -> bool:
    """Whether each element of the target is the value at one point."""
    names = [ir.bare(place) for place in statement.target.indices]
    return None not in names and sorted(map(str, names)) == sorted(ir.index_names(statement.value))


def _replaced(value: Expr, old: Expr, new: Expr) -> Expr:
    return ir.transform(value, lambda node: new if node == old else node)


def _fits(names: frozenset[str], guard: Expr | None) -> bool:
    """A guard must be told by the value's own indices."""
    if guard is None:
        return True
    plain = not any(isinstance(n, ir.Inside | ir.Access) for n in ir.walk(guard))
    return plain and ir.index_names(guard) <= names


def _taken_apart(node: Expr) -> Expr:
    if isinstance(node, Call) and node.function == "gelu":
        return written_out(node)
    return node


def _is_whole(access: ir.Access) -> bool:
    return all(isinstance(place, ir.Index) for place in access.indices)


def _is_near(access: ir.Access) -> bool:
    """Whether nothing but indices and numbers tells where it reads."""
    return not any(isinstance(n, ir.Access) for place in access.indices for n in ir.walk(place))


def _always(statement: ir.Statement) -> Iterator[Expr]:
    """What is worth holding and evaluated at every point."""
    stack = [] if statement.operator.startswith("arg") else [statement.value]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Conditional | ir.Logic | ir.Access):
            continue
        if takes_long(node):
            parts = ir.walk(node)
            if any(isinstance(n, ir.Access) for n in parts) and not any(
                isinstance(n, ir.Conditional | ir.Logic) for n in parts
            ):
                yield node
        stack.extend(ir.children(node))


def _index_arithmetic(statement: ir.Statement) -> Iterator[Expr]:
    """What every point computes with whole numbers alone: places, and sides of conditions."""
    stack: list[Expr] = [statement.target, statement.value]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Access):
            yield from node.indices
        elif isinstance(node, ir.Conditional):
            if isinstance(node.condition, ir.Compare):
                yield from (node.condition.left, node.condition.right)
        elif not isinstance(node, ir.Logic):
            stack.extend(ir.children(node))
