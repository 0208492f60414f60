"""Patterns of gradient flow: what each gate between a statement's target and one of its reads does to a gradient.

Add distributes: both inputs get the gradient. Multiply swaps: each gets it times the other. Copy adds: a value that is
read at several places gets the sum. Max routes: the winner gets all of it. Any other function chains: the gradient is
multiplied by its derivative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .language import ir
from .language.ir import Expr
from .rules.activity import active, check_of, default_wrt
from .rules.adjoint import Note, derive
from .rules.differentiate import Contribution, contributions

PASSES = "passes on"  # no gate at all: a plain copy
REDUCTIONS = {"max=": "max routes", "min=": "min routes", "*=": "multiply swaps"}


@dataclass(frozen=True)
class Flow:
    """An adjoint statement with the rule that made it, and the patterns on its way, from the output to the input."""

    note: Note
    patterns: tuple[str, ...]
    access: ir.Access  # the read that the gradient goes to

    @property
    def text(self) -> str:
        return ", ".join(self.patterns)


def flows(loops: ir.Loops, wrt: Sequence[str] | None = None, of: Sequence[str] | None = None) -> list[Flow]:
    """Every adjoint statement of a program in the order in which the adjoint makes them."""
    wrt = default_wrt(loops, of) if wrt is None else tuple(wrt)
    return flows_of(loops, derive(loops, wrt, of)[1], wrt, of)


def flows_of(loops: ir.Loops, notes: Sequence[Note], wrt: Sequence[str], of: Sequence[str] | None = None) -> list[Flow]:
    """The same, where the adjoint is at hand."""
    passed = active(loops, wrt, check_of(loops, of))
    smooth = [s for s in loops.statements if s.target.tensor in passed and not s.operator.startswith("arg")]
    reads = {id(s): list(contributions(s.value, passed)) for s in smooth}  # by identity: two may say the same
    uses = Counter(path.access.tensor for paths in reads.values() for path in paths)  # a gradient comes back from each
    paths = {place: _in_order(found, wrt) for place, found in reads.items()}
    found: list[Flow] = []
    for note in notes:
        statement = note.forward
        path = next(paths[id(statement)])
        copies = _copies(statement, path.access, uses)
        patterns = (*_reduction(loops, statement), *path.gates, *copies)
        found.append(Flow(note, tuple(dict.fromkeys(patterns)) or (PASSES,), path.access))
    return found


def _in_order(reads: Sequence[Contribution], wrt: Sequence[str]) -> Iterator[Contribution]:
    """The reads of a statement in the order of its adjoint statements."""
    order = {name: k for k, name in enumerate(wrt)}
    return iter(sorted(reads, key=lambda read: order.get(read.access.tensor, -1)))


def _reduction(loops: ir.Loops, statement: ir.Statement) -> Iterator[str]:
    """What the operator of the statement itself does."""
    if statement.operator in REDUCTIONS:
        yield REDUCTIONS[statement.operator]
        return
    summed = [i for i in statement.indices if i not in ir.index_names(statement.target)]
    if statement.operator in ir.SUM and summed:
        yield f"add distributes over {', '.join(summed)}"
    elif sum(s.target.tensor == statement.target.tensor for s in loops.statements) > 1 and statement.operator != "=":
        yield "add distributes"
    if statement.operator == "-=":
        yield "minus negates"


def _copies(statement: ir.Statement, access: ir.Access, uses: dict[str, int]) -> Iterator[str]:
    """Where one element is read more than once: over indices that the read lacks, and by other reads."""
    named = ir.index_names(access)
    missing = [i for i in statement.indices if i not in named]
    over = []
    if missing:
        over.append(f"over {', '.join(missing)}")
    elif any(map(_meets, access.indices)):
        over.append("where reads meet")
    if uses[access.tensor] > 1:
        over.append(f"{uses[access.tensor]} uses")
    if over:
        yield f"copy adds {' and '.join(over)}"


def _meets(place: Expr) -> bool:
    """Whether different points may read one position: several indices, a division, a gathered position."""
    folds = any(
        isinstance(n, ir.Access | ir.Call) or (isinstance(n, ir.Binary) and n.operator in ("//", "%"))
        for n in ir.walk(place)
    )
    return folds or len(ir.index_names(place)) > 1
