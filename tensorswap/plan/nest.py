"""Nests: a program's items -> loops over strips of one index each, outermost in parallel.

Items share a nest over an index if every tensor that one of them writes is touched, at one value of the index, only in
the part that belongs to that value: the index stands bare on one and the same axis of all its accesses. A statement
that sums over the index instead may join too: each thread then has a copy of its target, and the copies are added up
in a fixed order when all have finished. What lives and dies within a nest is never stored beyond one strip.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from ..language import ir
from ..language.functions import DONE_AGAIN, IN_VECTORS
from ..language.sizes import Sizes
from .merge import never_meet
from .work import are_few, is_contraction, product_of, statements_in

CACHE = 256 * 1024  # bytes that the values of one strip may take: they stay in the cache of one core
PRIVATE = 1024 * 1024  # bytes of a target that every thread may have a copy of
OWN = 512 * 1024  # bytes of a matrix of which each thread packs its own part, if another one is read as it lies
COPIED = 128 * 1024  # bytes of the target of a product that is better cut than copied
LARGEST = 64 * 1024 * 1024  # bytes of a strip that is longer than the cache likes, for vectors along it
STRIP = 256  # values of an index that run through all items of a nest before the next ones do, at most
GRAIN = 8  # strips are multiples of this, which register tiles like
FINE = 2  # and those of a short index through the steps of a block, of this
FEW = 4  # an index of fewer strips than this is short
WIDE = 64  # long strips that cut lines, or go through steps of a block, are multiples of this: it fills any registers
THIN = 4  # times as much memory as all else of a product takes: it should be cut
AHEAD = 16  # times as much work as others have, or as many values
PLENTY = 8  # an index of so many values feeds every thread
LONG = 4096  # values of an index in line whose strips are worth what stays in the cache


@dataclass(frozen=True)
class Nest:
    """Items that run one after the other for each strip of an index; a strip of 0 is each thread's whole share.

    Strips have `strip` values at most, in multiples of `grain`; what is left beyond the last multiple joins the last.
    """

    index: str | None
    items: tuple[Nest | ir.Item, ...]
    why: str
    strip: int = 0
    grain: int = 1
    private: tuple[str, ...] = ()  # targets of which each thread has a copy
    local: tuple[str, ...] = ()  # tensors of which only the strip at hand is kept
    axes: dict[str, int] = field(default_factory=dict)  # the axis of each local tensor that the index runs over
    vectors: bool = False  # steps of recurrences run over a strip in vectors: local tensors lie along the index
    joins: str = ""  # the tensor to which it adds the copies that threads have of it
    block: ir.Block | None = None  # it runs in each step of this block, after one nest of it and before the next

    def most(self, size: int, fixed: bool) -> int:
        """The most values that a strip of an index of this size can have; if it is not fixed, of one of any size."""
        return min(self.strip + size % self.grain, size) if fixed else self.strip + self.grain - 1

    @property
    def statements(self) -> list[ir.Statement]:
        return [s for item in self.items for s in statements_of(item)]

    @property
    def repeated(self) -> list[tuple[ir.Statement, tuple[str, ...]]]:
        """Each statement with the indices that it runs for: its own, and those of the blocks around it."""
        around = () if self.block is None else (self.block.index,)
        return [(s, tuple(dict.fromkeys((*around, *names)))) for item in self.items for s, names in _repeated(item)]


def statements_of(item: Nest | ir.Item) -> list[ir.Statement]:
    return item.statements if isinstance(item, Nest) else statements_in(item)


def _repeated(item: Nest | ir.Item) -> list[tuple[ir.Statement, tuple[str, ...]]]:
    if isinstance(item, Nest):
        return item.repeated
    located = ir.Loops(body=(item,)).located
    return [(s, tuple(dict.fromkeys((*(b.index for b in blocks), *s.indices)))) for s, blocks in located]


def block_indices(item: ir.Item) -> set[str]:
    if not isinstance(item, ir.Block):
        return set()
    return {item.index}.union(*(block_indices(inner) for inner in item.body))


class _Touched:
    """What an item reads and writes; `before` are reads of what no point of the same step writes."""

    def __init__(self, item: ir.Item, before: frozenset[ir.Access] = frozenset()) -> None:
        self.item = item
        self.statements = statements_of(item)
        self.before = before
        self.reads = frozenset(a.tensor for s in self.statements for a in s.reads if a not in before)
        self.writes = frozenset(s.target.tensor for s in self.statements)


class _Skipped:
    """Items that a group leaves behind, and what they read and write."""

    def __init__(self) -> None:
        self.items: list[_Touched] = []
        self.reads: set[str] = set()
        self.writes: set[str] = set()

    def append(self, item: _Touched) -> None:
        self.items.append(item)
        self.reads |= item.reads
        self.writes |= item.writes

    def conflict(self, item: _Touched) -> bool:
        """Whether an item may not overtake them all."""
        apart = item.writes.isdisjoint(self.reads) and item.writes.isdisjoint(self.writes)
        return not apart or not item.reads.isdisjoint(self.writes)


@dataclass
class _Candidate:
    """An index that a nest could run over: where it stands on the tensors that the nest writes."""

    index: str
    axes: dict[str, frozenset[int]] = field(default_factory=dict)
    private: frozenset[str] = frozenset()
    seen: dict[str, frozenset[int]] = field(default_factory=dict)  # axes common to all accesses of every tensor
    read: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()  # tensors whose elements lie side by side along it


@dataclass(frozen=True)
class _Level:
    """Where nests are made: inside which indices, what must outlive them, and the axis of each tensor that the nest
    around them cuts."""

    around: frozenset[str]
    needed: frozenset[str]
    cut: Mapping[str, int] = field(default_factory=dict)
    parallel: bool = False
    before: frozenset[ir.Access] = frozenset()  # reads in the steps of a block that meet nothing which the step writes
    apart: bool = False  # whether large items leave small ones


class Nester:
    """Makes nests for one program and its sizes. `weight` is the size of an index, or infinite if it may vary; `copies`
    are those of inputs that passes have made. With `wide` registers, tiles read a first matrix as it lies."""

    def __init__(
        self, sizes: Sizes, outputs: Iterable[str], copies: Set[str],
        width: Callable[[str], int], weight: Callable[[str], float], wide: bool = False,
    ) -> None:  # fmt: skip
        self.sizes = sizes
        self.outputs = frozenset(outputs)
        self.copies = copies
        self.width = width
        self.weight = weight
        self.wide = wide
        self.between: Set[str] = frozenset()  # tensors that one item writes and another reads
        self.parted = False  # whether an item has left a group
        self.small = 0  # elements of a tensor whose lines do not count beside the largest one
        self.measure = 0  # the same, if the largest of the program counts and not that of a group
        self.doubted = False  # whether that makes a difference

    def kernels(self, items: Sequence[ir.Item]) -> list[Nest]:
        """The outermost nests: each is one kernel. Of several ways to make them, that which stores least."""
        self.small = self.elements(items) // GRAIN
        statements = [s for item in items for s in statements_of(item)]
        read = {a.tensor for s in statements for a in s.reads}
        self.between = read & {s.target.tensor for s in statements}
        self.measure = 0
        found = self.plans(items)
        if self.doubted:
            self.measure = self.small
            found += self.plans(items)
            self.measure = 0
        return min(found, key=self.stored)

    def plans(self, items: Sequence[ir.Item]) -> list[list[Nest]]:
        """Large items may leave small ones that they could join."""
        level = _Level(frozenset(), self.outputs, parallel=True)
        self.parted = self.doubted = False
        apart = self.nests(items, replace(level, apart=True))
        return [self.nests(items, level), apart] if self.parted else [apart]

    def elements(self, items: Iterable[ir.Item]) -> int:
        """Those of the largest tensor that items touch."""
        names = {a.tensor for item in items for s in statements_of(item) for a in (s.target, *s.reads)}
        return max((math.prod(self.sizes.shapes[name]) for name in names), default=0)

    def stored(self, nests: list[Nest]) -> int:
        """Bytes of what outlives the nests that make it."""
        names = {s.target.tensor for nest in nests for s in nest.statements if s.target.tensor not in nest.local}
        return sum(self.bytes_at_one(name, set()) for name in names)

    def steps(self, block: ir.Block) -> list[Nest]:
        """The nests of a step of a block, each a kernel: what they write lives on to the next step."""
        statements = statements_of(block)
        written = {
            s.target.tensor: [w.target for w in statements if w.target.tensor == s.target.tensor] for s in statements
        }
        before = frozenset(
            a
            for s in statements
            for a in s.reads
            if all(never_meet(target, a, {block.index}) for target in written.get(a.tensor, ()))
        )
        level = _Level(frozenset({block.index}), self.outputs | written.keys(), parallel=True, before=before)
        return [replace(nest, block=block) for nest in self.nests(block.body, level)]

    def nests(self, items: Sequence[ir.Item], level: _Level) -> list[Nest]:
        groups = self.grouped([_Touched(item, level.before) for item in items], level)
        names = [frozenset(name for t in group for name in t.reads | t.writes) for group, _ in groups]
        named = Counter(name for own in names for name in own)
        result = []
        for own, (group, candidates) in zip(names, groups, strict=True):
            elsewhere = frozenset(name for name in own if named[name] > 1)
            result.append(self.nest(group, candidates, replace(level, needed=level.needed | elsewhere)))
        return result

    def grouped(self, touched: list[_Touched], level: _Level) -> list[tuple[list[_Touched], list[_Candidate]]]:
        """Items in groups that can share a nest; an item may overtake others that it does not depend on."""
        result = []
        while touched:
            first, *rest = touched
            group: list[_Touched] = [first]
            skipped = _Skipped()
            fresh = [_Candidate(i) for i in _indices(first) if i not in level.around]
            candidates = self.joined(fresh, first, level)
            candidates = self.cutting(first, candidates, level) or candidates
            served = first.writes & self.copies  # a copy of an input comes before everything that it serves
            if served or not candidates:
                result.append((group, candidates))
                touched = rest
                continue
            for item in rest:
                after = [] if skipped.conflict(item) else candidates
                after = self.cutting(item, self.joined(after, item, level), level)
                enough = after and self.best(after) >= min(self.best(candidates), PLENTY)
                if enough and not self.deserves_its_own(item, group, after, level):
                    group.append(item)
                    candidates = after
                else:
                    skipped.append(item)
            result.append((group, candidates))
            touched = skipped.items
        return result

    def deserves_its_own(self, item: _Touched, group: list[_Touched], after: list[_Candidate], level: _Level) -> bool:
        """Whether an item has an index that feeds threads better than those of a group, all of which is little work
        beside it."""
        if not level.apart or self.points(item) < AHEAD * sum(map(self.points, group)):
            return False
        own = self.joined([_Candidate(i) for i in _indices(item) if i not in level.around], item, level)
        found = self.best(own) >= AHEAD * self.best(after)
        self.parted |= found
        return found

    def cutting(self, item: _Touched, candidates: list[_Candidate], level: _Level) -> list[_Candidate]:
        """Of the candidates, those that cut the large matrix of a product, of which every thread would read all else;
        all, if it has none."""
        large = self.one_large(item.statements) if level.parallel and not level.around else None
        return [c for c in candidates if large is None or c.index in ir.index_names(large)]

    def points(self, item: _Touched) -> int:
        return sum(math.prod(self.sizes.index[i] for i in statement.indices) for statement in item.statements)

    def best(self, candidates: list[_Candidate]) -> float:
        """How many values the best index has, as far as that counts: strips of an index in line are short ones, unless
        it is long."""
        return max((min(self.weight(c.index), self.counted(c)) for c in candidates), default=0)

    def counted(self, candidate: _Candidate) -> float:
        if not self.in_line(candidate):
            return math.inf
        return PLENTY if self.sizes.index[candidate.index] >= LONG else 2

    def in_line(self, candidate: _Candidate) -> bool:
        """Whether strips of the index would cut the lines of a large tensor; those of a small one do not count."""
        largest = max((math.prod(self.sizes.shapes[name]) for name in candidate.seen), default=0)
        lines = max((math.prod(self.sizes.shapes[name]) for name in candidate.lines), default=0)
        found = bool(candidate.lines) and lines * GRAIN >= largest
        self.doubted |= found and lines < self.small
        return found and lines >= self.measure

    def joined(self, candidates: list[_Candidate], item: _Touched, level: _Level) -> list[_Candidate]:
        """The candidates that still hold when the item joins."""
        found = (self.join(candidate, item, level) for candidate in candidates)
        return [candidate for candidate in found if candidate is not None]

    def join(self, candidate: _Candidate, item: _Touched, level: _Level) -> _Candidate | None:
        index = candidate.index
        if index in block_indices(item.item):
            return None
        seen, private, written = dict(candidate.seen), set(candidate.private), set(candidate.axes)
        lines = set(candidate.lines)
        for statement in item.statements:
            if index not in statement.indices:
                return None
            for access in (statement.target, *(a for a in statement.reads if a not in item.before)):
                here = frozenset(k for k, e in enumerate(access.indices) if ir.bare(e) == index)
                seen[access.tensor] = seen.get(access.tensor, here) & here
                last = len(access.indices) - 1
                if last > 0 and last in here:
                    lines.add(access.tensor)
            name = statement.target.tensor
            written.add(name)
            if not any(ir.bare(e) == index for e in statement.target.indices):
                if not self.may_be_private(statement, level):
                    return None
                private.add(name)
        read = candidate.read | item.reads
        if private & read:
            return None
        if any(not seen[name] for name in written - private):
            return None
        axes = {name: seen[name] for name in written}
        return _Candidate(index, axes, frozenset(private), seen, read, frozenset(lines))

    def may_be_private(self, statement: ir.Statement, level: _Level) -> bool:
        if statement.operator in ("=", "argmax=", "argmin="):
            return False
        if not level.parallel:
            return True  # one thread: it adds to the target itself
        if any(access.tensor == statement.target.tensor for access in level.before):
            return False  # steps read what those before them have made of it: a copy would not have that
        size = math.prod(self.sizes.shapes[statement.target.tensor])
        if size * self.width(statement.target.tensor) >= COPIED and self.is_large_product([statement]):
            return False
        points = math.prod(self.sizes.index[i] for i in statement.indices if i not in level.around)
        return size * self.width(statement.target.tensor) <= PRIVATE and points >= PLENTY * size

    def nest(self, group: list[_Touched], candidates: list[_Candidate], level: _Level) -> Nest:
        items = tuple(t.item for t in group)
        if not candidates:
            return Nest(None, items, "serial: every step may meet the same elements")
        statements = [s for t in group for s in t.statements]
        chosen = max(candidates, key=lambda c: self.preference(c, statements))
        found = self.whole(items, statements, chosen, level)
        found = self.in_strips(found, level) if found.local else found
        return replace(found, grain=FINE) if self.may_be_fine(found) else found

    def may_be_fine(self, nest: Nest) -> bool:
        """Whether strips of a short index need not be multiples of what tiles like, so that it feeds all threads: there
        are no tiles, but steps of a block whose functions take longer than it takes to share lines of memory."""
        index = nest.index or ""
        if nest.grain != GRAIN or nest.vectors or self.sizes.index[index] >= FEW * GRAIN:
            return False
        called = any(_takes_long(s) for item in nest.items if _is_block(item) for s in statements_of(item))
        return called and not any(self.needs_rows(statement, index) for statement in nest.statements)

    def whole(
        self, items: tuple[ir.Item, ...], statements: list[ir.Statement], chosen: _Candidate, level: _Level
    ) -> Nest:
        """A nest over an index, of which each thread takes its share at once."""
        index = chosen.index
        targets = dict.fromkeys(s.target.tensor for s in statements)
        axes = {
            name: min(chosen.axes[name])
            for name in targets
            if name not in level.needed and name not in chosen.private and chosen.axes[name]
        }
        walks = any(_walks_in_line(item, index) for item in items)
        tiled = self.in_line(chosen) or any(self.needs_rows(s, index) for s in statements)
        return Nest(
            index, items, _why(chosen, level.parallel),
            strip=GRAIN if walks else 0,
            grain=self.grain(chosen, walks) if tiled and self.sizes.index[index] >= GRAIN else 1,
            private=tuple(sorted(chosen.private)) if level.parallel else (),
            local=tuple(axes), axes=axes,
        )  # fmt: skip

    def grain(self, chosen: _Candidate, walks: bool) -> int:
        """What strips are multiples of: where they cut lines of memory, tiles have the vectors of a strip side by side,
        and fill the registers of any machine only if that is long."""
        if walks or not self.in_line(chosen):
            return GRAIN
        grains = (WIDE, WIDE // 2, WIDE // 4)
        return next((g for g in grains if self.sizes.index[chosen.index] >= PLENTY * g), GRAIN)

    def in_strips(self, nest: Nest, level: _Level) -> Nest:
        """The nest by strips so short that what lives within one stays in the cache; if one value of the index is too
        much for that, there are nests within it."""
        index, axes = nest.index or "", nest.axes
        sizes = {n: self.bytes_at_one(n, {axis, level.cut.get(n, axis)}) for n, axis in axes.items()}
        unit = most_alive(nest.items, sizes)
        if unit > CACHE // 2 and self.sizes.index[index] > 0:
            items = [item for item in nest.items if not isinstance(item, Nest)]
            inner = self.nests(items, _Level(level.around | {index}, level.needed, axes))
            if any(other.index is not None and other.local for other in inner):
                return replace(nest, strip=1, grain=1, items=tuple(_unwrapped(inner)))
        if unit * GRAIN <= LARGEST and self.sizes.index[index] >= GRAIN and _has_scalar_steps(nest):
            lanes = GRAIN if self.sizes.index[index] >= 2 * GRAIN else GRAIN // 2  # so that it feeds two threads
            return replace(nest, strip=lanes, grain=lanes, vectors=True)
        strip, grain = self.strip(nest, unit, level.around)
        if not level.parallel and self.weight(index) <= strip:
            return replace(nest, local=(), axes={})  # one strip would be all
        if strip >= WIDE and self.sizes.index[index] >= PLENTY * WIDE and any(map(_is_block, nest.items)):
            grain = WIDE
        return replace(nest, strip=strip // grain * grain, grain=grain)

    def strip(self, nest: Nest, unit: int, around: frozenset[str]) -> tuple[int, int]:
        """The length of a strip, of which each value takes so many bytes, and its grain."""
        index, statements = nest.index or "", nest.statements
        room = min(max(CACHE // 2, self.bytes_summed(statements, index, around)), 2 * CACHE)
        strip = max(min(nest.strip or STRIP, room // max(unit, 1)), 1)
        grain = nest.grain if strip >= nest.grain else min(nest.grain, GRAIN)
        if strip >= grain:
            return strip, grain
        if unit * grain <= 2 * CACHE or any(self.needs_rows(s, index) for s in statements):
            return grain, grain
        if unit * grain <= LARGEST and any(isinstance(item, ir.Block) for item in nest.items):
            return grain, grain  # its steps touch little at a time, and run along it in vectors
        return strip, 1

    def needs_rows(self, statement: ir.Statement, index: str) -> bool:
        """Whether only this index can count the rows of a contraction: several at a time are worth more than the
        cache."""
        over, under = product_of(statement.value)
        factors = [f for f in (*over, *under) if ir.index_names(f)]
        summed = [i for i in ir.candidates(statement) if all(i in ir.index_names(f) for f in factors)]
        holding = [f for f in factors if index in ir.index_names(f)]
        if statement.operator not in ir.SUM or len(factors) != 2 or not summed or len(holding) != 1:
            return False
        other = next(f for f in factors if f is not holding[0])
        free = ir.index_names(holding[0]) & ir.index_names(statement.target) - ir.index_names(other)
        return not any(self.sizes.index[i] >= GRAIN for i in free if i != index)

    def bytes_summed(self, statements: list[ir.Statement], index: str, around: frozenset[str]) -> int:
        """What each strip reads and writes anew because it adds to all of it: the longer the strips, the less often."""
        targets = {s.target.tensor: s.target for s in statements if index not in ir.index_names(s.target)}
        return sum(
            self.bytes_at_one(name, {k for k, e in enumerate(target.indices) if ir.bare(e) in around})
            for name, target in targets.items()
        )

    def bytes_at_one(self, name: str, cut: set[int]) -> int:
        shape = self.sizes.shapes[name]
        return math.prod(n for k, n in enumerate(shape) if k not in cut) * self.width(name)

    def is_large_product(self, statements: list[ir.Statement]) -> bool:
        """Whether there is a single product whose target is as large as what it reads: threads that cut lines of memory
        read some of it twice, which costs less than copies of the target would."""
        if len(statements) != 1 or not is_contraction(statements[0]):
            return False
        accesses = (statements[0].target, *statements[0].reads)
        sizes = [math.prod(self.sizes.shapes[access.tensor]) for access in accesses]
        bare = all(ir.bare(place) is not None for access in accesses for place in access.indices)
        return bare and sizes[0] == max(sizes)

    def one_large(self, statements: list[ir.Statement]) -> ir.Access | None:
        """The large matrix of a product of which all else is small: each thread should read its own part of it."""
        if len(statements) != 1 or not is_contraction(statements[0]):
            return None
        (statement,) = statements
        large = max(statement.reads, key=lambda a: math.prod(self.sizes.shapes[a.tensor]))
        others = [a for a in (statement.target, *statement.reads) if a is not large]
        size = self.bytes_at_one(large.tensor, set())
        if size < CACHE or any(THIN * self.bytes_at_one(a.tensor, set()) > size for a in others):
            return None
        return large

    def may_cut_lines(self, index: str, statements: list[ir.Statement]) -> bool:
        """Whether there is a single product with a large target, or with a large matrix of which it makes many rows:
        panels are packed of long pieces of lines, so that threads may cut these."""
        if self.is_large_product(statements):
            return True
        if self.sizes.index[index] < PLENTY * WIDE // 2:
            return False
        if len(statements) != 1 or not is_contraction(statements[0]):
            return False
        (statement,) = statements
        large = max(statement.reads, key=lambda a: self.bytes_at_one(a.tensor, set()))
        size = self.bytes_at_one(large.tensor, set())
        bare = all(ir.bare(place) for access in (statement.target, large) for place in access.indices)
        rows = ir.index_names(statement.target) - ir.index_names(large)
        return bare and size >= CACHE and not are_few(math.prod(self.sizes.index[i] for i in rows), size)

    def is_cut_in_lines(self, statements: list[ir.Statement]) -> bool:
        """Whether threads should cut the lines of a product of inputs: each packs its own part of the second matrix,
        and none waits for what another one has packed. What is read again lies better where rows are cut."""
        if not self.wide or not self.is_large_product(statements):
            return False
        (statement,) = statements
        column = ir.bare(statement.target.indices[-1])
        second = [a for a in statement.reads if column in ir.index_names(a)]
        size = sum(self.bytes_at_one(a.tensor, set()) for a in second)
        return OWN // 4 <= size <= OWN and not self.between & {a.tensor for a in (statement.target, *statement.reads)}

    def preference(self, candidate: _Candidate, statements: list[ir.Statement]) -> tuple[float, ...]:
        """An index that feeds all threads, needs no copies, and stands far out in memory."""
        index, thin = candidate.index, self.one_large(statements)
        size = self.sizes.index[index]
        places = [k for s in statements for k, e in enumerate(s.target.indices) if ir.bare(e) == index]
        return (
            float(size > 1) + float(min(self.weight(index), PLENTY) >= PLENTY or size >= PLENTY // 2),
            -float(thin is not None and index not in ir.index_names(thin)),
            -float(self.in_line(candidate) and not self.may_cut_lines(index, statements)),
            -sum(self.bytes_at_one(name, set()) for name in candidate.private),
            sum(places) if self.is_cut_in_lines(statements) else -sum(places),
        )


class Alive:
    """When each tensor is needed: the first moment and the last, of those that count the pieces of a nest."""

    def __init__(self) -> None:
        self.moment = 0
        self.spans: dict[str, tuple[int, int]] = {}

    def passes(self, statements: Sequence[ir.Statement], first: int, besides: Iterable[str] = ()) -> None:
        """What statements touch is needed from a moment until now: one loop goes through all of them."""
        for name in {a.tensor for s in statements for a in (s.target, *s.reads)}.difference(besides):
            self.spans[name] = min(first, self.spans.get(name, (first, 0))[0]), self.moment
        self.moment += 1

    def visit(self, item: Nest | ir.Item) -> None:
        first = self.moment
        if not isinstance(item, ir.Statement):
            for inner in item.items if isinstance(item, Nest) else item.body:  # type: ignore[union-attr]  # calls are inlined
                self.visit(inner)
        self.passes(statements_of(item), first, item.local if isinstance(item, Nest) else ())


def most_alive(items: Sequence[Nest | ir.Item], sizes: dict[str, int]) -> int:
    """The most bytes of tensors that are needed at the same time."""
    alive = Alive()
    for item in items:
        alive.visit(item)
    spans = alive.spans
    ends = {spans[name][1] for name in sizes}
    return max((sum(sizes[n] for n in sizes if spans[n][0] <= at <= spans[n][1]) for at in ends), default=0)


def _unwrapped(nests: list[Nest]) -> Iterable[Nest | ir.Item]:
    """Nests that keep nothing local are loops like any other: their items stand in the nest around them."""
    for nest in nests:
        if nest.index is None or not nest.local:
            yield from nest.items
        else:
            yield nest


def _why(chosen: _Candidate, parallel: bool) -> str:
    """Why threads do not meet."""
    why = f"each {chosen.index} writes elements of its own"
    if not chosen.private or not parallel:
        return why
    apart = ", ".join(sorted(chosen.private))
    own = any(name not in chosen.private for name in chosen.axes)
    return f"{why + '; ' if own else ''}each thread adds up {apart} apart, and the copies are added in order"


def _walks_in_line(item: ir.Item, index: str) -> bool:
    """Whether the steps of a block go along rows that the index counts: few of them at a time stay in the cache."""
    if not isinstance(item, ir.Block):
        return False
    return any(
        len(a.indices) > 1
        and item.index in ir.index_names(a.indices[-1])
        and any(ir.bare(e) == index for e in a.indices[:-1])
        for s in statements_of(item)
        for a in (s.target, *s.reads)
    )


def _is_block(item: Nest | ir.Item) -> bool:
    return isinstance(item, ir.Block)


def _has_scalar_steps(nest: Nest) -> bool:
    """Whether a step of a block computes but one element for each value of the nest's index, far from the next one in
    memory, by functions that take as long for one as for a vector."""
    return any(
        {*statement.indices} <= {nest.index, *block_indices(item)}
        and statement.target.indices[-1:] != (ir.Index(nest.index or ""),)
        and _takes_long(statement)
        for item in nest.items
        if isinstance(item, ir.Block)
        for statement in statements_in(item)
    )


def _takes_long(statement: ir.Statement) -> bool:
    return any(isinstance(n, ir.Call) and n.function in IN_VECTORS - DONE_AGAIN for n in statement.nodes)


def _indices(item: _Touched) -> list[str]:
    """The indices that every statement of the item runs over."""
    first, *rest = item.statements
    return [i for i in first.indices if all(i in s.indices for s in rest)]
