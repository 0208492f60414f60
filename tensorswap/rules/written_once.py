"""Does the text alone show that `=` writes each element once, before any step reads it? If not, a run must."""

from __future__ import annotations

import math
from itertools import combinations

from ..language import ir
from ..language.affine import affine, is_constant, tidy
from ..language.build import conjuncts, opposite, subtract
from ..language.interval import interval
from ..language.ir import Number
from ..language.sizes import SizeRules, infer
from .complete_reads import complete_when_read


def shown_by_text(loops: ir.Loops) -> bool:
    """Whether no call of the program can fail for writing an element twice, or reading it before it is written."""
    rules = infer(loops)
    updates = [s for s in loops.statements if s.operator == "=" and s.target.tensor in loops.updated]
    if not all(injective(s, [], rules) for s in updates):  # the next step, and the next statement, may update again
        return False
    assigned = [
        (s, blocks) for s, blocks in loops.located if s.operator == "=" and s.target.tensor not in loops.updated
    ]
    if not all(injective(s, [b.index for b in blocks], rules) for s, blocks in assigned):
        return False
    for (first, _), (second, _) in combinations(assigned, 2):
        if first.target.tensor == second.target.tensor and not disjoint(loops, first, second):
            return False
    names = {s.target.tensor for s, blocks in assigned if blocks}
    return all(
        complete_when_read(loops, (reader, blocks), access)
        for reader, blocks in loops.located
        for access in reader.reads
        if access.tensor in names
    )


def injective(statement: ir.Statement, blocks: list[str], rules: SizeRules) -> bool:
    """Whether the target's place tells every index: axis by axis, each index it can be solved for is known."""
    open_indices = {*statement.indices, *blocks} - {ir.BATCH}
    forms = [affine(place) for place in statement.target.indices]
    progress = True
    while open_indices and progress:
        progress = False
        for form in forms:
            unknown = [] if form is None else [i for i in form.terms if i in open_indices]
            if form is None or not unknown:
                continue
            first, *rest = unknown
            if not all(isinstance(form.terms[i], Number) for i in unknown) and not rest:
                continue  # a static integer may be zero
            if not rest or (len(rest) == 1 and _digits(form.terms, first, rest[0], rules)):
                open_indices -= set(unknown)
                progress = True
    return open_indices <= _split_in_two(statement)


def _split_in_two(statement: ir.Statement) -> set[str]:
    """Indices of which the target holds both quotient and remainder by the same number: `x[k//m, k%m]`."""
    found: dict[str, set[tuple[str, ir.Expr]]] = {"//": set(), "%": set()}
    for place in statement.target.indices:
        if isinstance(place, ir.Binary) and place.operator in found and isinstance(place.left, ir.Index):
            found[place.operator].add((place.left.name, place.right))
    return {name for name, divisor in found["//"] & found["%"] if is_constant(divisor)}


def _digits(terms: dict[str, ir.Expr], a: str, b: str, rules: SizeRules) -> bool:
    """Whether c*a + b is like a number of two digits: b stays below c."""
    for high, low in ((a, b), (b, a)):
        size = rules.index.get(low)
        if terms[low] == Number(1) and size is not None:
            if terms[high] == size or terms[high] == ir.Size(low):
                return True
            numbers = isinstance(size, Number) and isinstance(terms[high], Number)
            if numbers and size.value <= terms[high].value:  # type: ignore[union-attr]  # both are numbers
                return True
    return False


def disjoint(loops: ir.Loops, first: ir.Statement, second: ir.Statement) -> bool:
    """Whether two targets never meet: some axis keeps them apart, or their guards exclude each other."""
    if first.target.indices == second.target.indices:
        own = ir.bare_indices(first.target)
        ones, others = (conjuncts(s.guard) for s in (first, second))
        # `not i == 1` is written otherwise than `i != 1`
        opposites = [atom for atom in ones if opposite(atom) in others]
        opposites += [atom for atom in others if opposite(atom) in ones]
        # of other indices, one value may hold for the first, and another for the second
        if any(ir.index_names(atom) <= own and _lasts(loops, atom, first, second) for atom in opposites):
            return True
    names = {*first.indices, *second.indices}
    sizes = {name: ir.Size(name) for name in names}
    for one, other in zip(first.target.indices, second.target.indices, strict=True):
        if _other_residue(one, other):
            return True
        a, b = interval(one, sizes), interval(other, sizes)
        if a is None or b is None:
            continue
        for low, high in ((a[0], b[1]), (b[0], a[1])):
            gap = tidy(subtract(low, high))
            if isinstance(gap, Number) and gap.value > 0:
                return True
    return False


def _lasts(loops: ir.Loops, atom: ir.Expr, first: ir.Statement, second: ir.Statement) -> bool:
    """Whether nothing changes what a condition reads, from the earlier of two statements on, or in a block around."""
    read = {n.tensor for n in ir.walk(atom) if isinstance(n, ir.Access)}
    located = list(loops.located)
    both = [k for k, (s, _) in enumerate(located) if s is first or s is second]
    blocks = [block for k in both for block in located[k][1]]
    writers = [(k, around) for k, (s, around) in enumerate(located) if s.target.tensor in read]
    return not any(k >= both[0] or any(a is b for a in around for b in blocks) for k, around in writers)


def _other_residue(one: ir.Expr, other: ir.Expr) -> bool:
    """Whether two places differ by a number that no steps of theirs make up for: `2*i` and `2*j+1`."""
    forms = affine(one), affine(other)
    if forms[0] is None or forms[1] is None:
        return False
    steps = [step for form in forms if form is not None for step in form.terms.values()]
    gap = tidy(subtract(forms[0].constant, forms[1].constant))
    if not isinstance(gap, Number) or not isinstance(gap.value, int):
        return False
    whole = [step.value for step in steps if isinstance(step, Number) and isinstance(step.value, int)]
    return len(whole) == len(steps) and gap.value % (math.gcd(*whole) or 2**62) != 0
