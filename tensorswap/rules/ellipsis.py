"""Ellipsis: how many axes `...` stands for in each call of a program, and in the program itself.

    A = conv2d(X, W)            # out[...,o,i,j]
    B = relu_layer(A)           # input[...]: its `...` has three axes more than that of conv2d

Each tensor, each call and the program itself are unknown numbers of axes. What is passed to what says by how much two
of them differ. Those that hang together with a tensor of known rank are known; of the others, the shortest keeps `...`
as it is, and the rest have so many indices behind theirs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from ..language import ir
from ..language.ir import Expr

NONE, OWN = "no axes", "the program's own `...`"  # the unknowns that are neither tensors nor calls


@dataclass(frozen=True)
class Extent:
    """What `...` stands for: `count` indices, behind those of another `...` if it is `open`."""

    count: int
    open: bool


@dataclass
class Ellipses:
    """Unknowns in groups whose differences are known: each points to another and says how much more it has."""

    above: dict[Hashable, tuple[Hashable, int]] = field(default_factory=dict)

    def root(self, node: Hashable) -> tuple[Hashable, int]:
        more = 0
        while node in self.above:
            node, step = self.above[node]
            more += step
        return node, more

    def differ(self, one: Hashable, other: Hashable, by: int) -> bool:
        """Says that `one` has `by` axes more than `other`; False if that contradicts what was said before."""
        (root, more), (other_root, other_more) = self.root(one), self.root(other)
        if root == other_root:
            return more == other_more + by
        self.above[root] = other_root, other_more + by - more
        return True

    def says(self, access: ir.Access) -> None:
        """What an access of the program says of its tensor."""
        self.differ(access.tensor, OWN if access.batched else NONE, len(access.indices) - access.batched)

    def passed(self, call: ir.CallStatement, parameter: ir.Access, value: ir.Access) -> bool:
        """Says that a call has `value` in the place of a parameter; False if it does not fit."""
        base: Hashable = id(call) if parameter.batched else NONE
        return self.differ(value.tensor, base, len(parameter.indices) - parameter.batched + len(value.indices))

    def rank(self, node: Hashable) -> int | None:
        """The number of axes, if it is known."""
        (root, more), (zero, base) = self.root(node), self.root(NONE)
        return more - base if root == zero else None

    def extents(self, ellipses: list[Hashable]) -> Mapping[Hashable, Extent]:
        """What each of some `...` stands for."""
        roots = {node: self.root(node) for node in ellipses}
        least: dict[Hashable, int] = {}
        for root, more in roots.values():
            least[root] = min(more, least.get(root, more))
        found = {}
        for node, (root, more) in roots.items():
            rank = self.rank(node)
            found[node] = Extent(more - least[root], True) if rank is None else Extent(rank, False)
        return found


def of_statements(loops: ir.Loops) -> Ellipses:
    """What the program's own accesses say."""
    made = Ellipses()
    for access in loops.accesses:
        made.says(access)
    return made


def in_their_places(
    call: ir.CallStatement, callee: ir.Loops, values: Mapping[str, Expr]
) -> list[tuple[ir.Access, Expr]]:
    """The tensors and scalars of a definition, and what a call has in their places."""
    assert callee.header is not None
    arguments = [(p.access, values[p.name]) for p in callee.header.arguments if isinstance(p, ir.Argument)]
    return [*arguments, *zip(callee.header.outputs, call.targets, strict=True)]
