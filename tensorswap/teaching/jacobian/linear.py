"""Linear: a derivative, which is linear in its seed -> the same program at every unit seed at once.

The tangent of `Y[i] += W[i,j] * x[j]` reads x.dot[j]. Where x.dot is 1 at one place and 0 elsewhere, that place is
where the read stands: `J[i,j] += W[i,j]`. A tensor between input and output gets the axes of the seed in addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...language import ir
from ...language.build import ONE, conjunction, product
from ...language.ir import Expr
from ...rules.activity import depends_smoothly
from ...rules.derived_inside import lost_bounds
from ...rules.differentiate import Contribution, contributions
from ...rules.inherited_names import NOTHING
from ...rules.shapes import Shapes
from ...rules.simplify import remove_dead, with_outputs
from ...rules.solve import FreshIndices


@dataclass(frozen=True)
class Term:
    """One linear statement: what it writes at `places` depends on `source` at `read` (None: on the seed itself)."""

    target: str
    places: tuple[Expr, ...]
    source: str | None
    read: tuple[Expr, ...]
    statement: ir.Statement


@dataclass
class Linear:
    """The program in the making. `seed_first` puts the seed's axes in front: the seed is the output's adjoint."""

    derivative: ir.Loops
    seed: str
    extents: tuple[Expr, ...]  # of the seed's axes, in terms of the forward program's inputs
    seed_first: bool
    taken: frozenset[str]  # names of the forward program that a new one must avoid
    terms: list[Term] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.result = self.derivative.outputs[0]
        self.fresh = FreshIndices({*self.derivative.names, *self.taken})
        self.name = ir.claim("J", self.fresh.taken)
        self.shapes = Shapes(self.derivative, fresh=self.fresh)
        self.active = depends_smoothly(self.derivative, [self.seed])

    def rank(self, tensor: str) -> int:
        known = self.derivative.known.get(tensor)
        return self.derivative.ranks.get(tensor, len(known.indices) if known else 0)

    def directions(self) -> tuple[Expr, ...]:
        """Indices that run over all places of the seed."""
        return tuple(ir.Index(self.fresh.of_axis(self.seed, axis, extent)) for axis, extent in enumerate(self.extents))

    def joined(self, own: Sequence[Expr], seed: Sequence[Expr]) -> tuple[Expr, ...]:
        return (*seed, *own) if self.seed_first else (*own, *seed)

    def named(self, tensor: str) -> str:
        return self.name if tensor == self.result else tensor

    def items(self, item: ir.Statement, blocks: tuple[ir.Block, ...]) -> Iterator[ir.Item]:
        if item.target.tensor in self.active:
            yield from (self.split(item, found, blocks) for found in contributions(item.value, self.active))
        elif item.target.tensor != self.result:
            yield item

    def split(self, statement: ir.Statement, contribution: Contribution, blocks: tuple[ir.Block, ...]) -> ir.Statement:
        """The part of a linear statement that one of its reads makes."""
        access, target = contribution.access, statement.target
        direct = access.tensor == self.seed
        along: Sequence[Expr] = access.indices if direct else self.directions()
        seed = ONE if direct else ir.Access(self.named(access.tensor), self.joined(access.indices, along))
        made = ir.Statement(
            ir.Access(self.named(target.tensor), self.joined(target.indices, along)),
            "-=" if contribution.negative != (statement.operator == "-=") else "+=",
            contribution.value(seed),
            conjunction((statement.guard, *contribution.conditions)),
        )
        # `inside` spoke of all reads of the statement; the target itself still shows its own and the seed's places
        bounds = lost_bounds(statement, replace(made, target=target), self.shapes, access)
        made = replace(made, guard=conjunction((made.guard, *bounds)))
        named = {*made.indices, *(block.index for block in blocks)}
        lost = [ir.Size(i) for i in statement.indices if i not in named]
        value = product(lost, made.value)
        made = replace(made, value=_floating(value) if target.tensor == self.result else value)
        source = None if direct else access.tensor
        self.terms.append(Term(target.tensor, target.indices, source, access.indices, made))
        return made

    def loops(self) -> ir.Loops:
        """The whole program, with the sizes that its own text does not show."""
        body = ir.rewrite(self.derivative.body, self.items)
        if not any(term.target == self.result for term in self.terms):
            places = self.joined(self.shapes.whole(self.result), self.directions())
            body = (*body, ir.Statement(ir.Access(self.name, places), "=", NOTHING))
        known = {name: access for name, access in self.derivative.known.items() if name != self.seed}
        derived = ir.Loops(body=body, statics=self.derivative.statics, known=known)
        derived = remove_dead(derived, [self.name])
        if self.derivative.header:
            derived = replace(derived, header=self.header(self.derivative.header))
        derived = ir.map_loops(self.shapes.declare(derived), self.moved_axis)
        self.terms = [replace(t, statement=ir.map_statement(t.statement, self.moved_axis)) for t in self.terms]
        derived = replace(derived, sizes=(*self.header_indices(derived), *derived.sizes, *self.axes(derived)))
        return with_outputs(derived, [self.name])

    def moved_axis(self, node: Expr) -> Expr:
        """The size of an axis of the derivative, where it is now; the seed's are told by the forward program."""
        if not isinstance(node, ir.AxisSize) or node.tensor not in self.active:
            return node
        if node.tensor == self.seed:
            return self.extents[node.axis]
        return ir.AxisSize(self.named(node.tensor), node.axis + (len(self.extents) if self.seed_first else 0))

    def header_indices(self, derived: ir.Loops) -> Iterator[ir.SizeDeclaration]:
        """Indices of the seed's axes that stand in the header alone."""
        declared = {declaration.subject for declaration in derived.sizes}
        for axis, index in enumerate(self.directions() if derived.header else ()):
            assert isinstance(index, ir.Index)
            if ir.Size(index.name) not in declared:
                yield ir.SizeDeclaration(ir.Size(index.name), self.extents[axis])

    def axes(self, derived: ir.Loops) -> Iterator[ir.SizeDeclaration]:
        """size(J, 1) = size(X, 0), unless every statement shows it by writing a bare index of that range."""
        declared = {declaration.subject for declaration in derived.sizes}
        for tensor in self.derivative.written:
            name = self.named(tensor)
            targets = [s.target for s in derived.statements if s.target.tensor == name]
            if not targets or tensor not in self.active or any(a.tensor == name for a in derived.header_accesses):
                continue
            own = [(tensor, axis) for axis in range(self.rank(tensor))]
            seed = [(self.seed, axis) for axis in range(len(self.extents))]
            for axis, (like, place) in enumerate([*seed, *own] if self.seed_first else [*own, *seed]):
                bare = [ir.bare(t.indices[axis]) for t in targets]
                subject = ir.AxisSize(name, axis)
                if subject in declared or self.all_exact(like, place, bare):
                    continue
                yield ir.SizeDeclaration(subject, ir.transform(self.shapes.extent(like, place), self.moved_axis))

    def all_exact(self, tensor: str, axis: int, indices: Sequence[str | None]) -> bool:
        """Whether each is an index that runs over the whole axis."""
        whole = ir.bare(self.directions()[axis]) if tensor == self.seed else None
        return all(i is not None and (i == whole or self.shapes.exact(tensor, axis, i)) for i in indices)

    def header(self, header: ir.Header) -> ir.Header:
        """The arguments without the seed; J with the axes of the result and of the seed."""
        arguments = tuple(a for a in header.arguments if a.name != self.seed)
        result = next(o for o in header.outputs if o.tensor == self.result)
        return ir.Header(
            header.name, arguments, (ir.Access(self.name, self.joined(result.indices, self.directions())),)
        )


def _floating(value: Expr) -> Expr:
    """A derivative is a floating-point number, even where whole numbers make it."""
    if isinstance(value, ir.Number):
        return ir.Number(float(value.value))
    if any(isinstance(n, ir.Access) for n in ir.walk(value)):
        return value
    return ir.Binary("*", ir.Number(1.0), value)
