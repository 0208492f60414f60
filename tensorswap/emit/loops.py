"""Loops: those around a statement, from their order and bounds to the conditions that are left inside them."""

from __future__ import annotations

from collections.abc import Callable

from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero
from ..language.build import conjuncts
from ..language.ir import Expr, Number
from .expression import Expressions, joined
from .layout import Layout
from .once import invariant, repeated
from .scope import Scope


def loop_order(statement: ir.Statement, scope: Scope) -> list[str]:
    """Target indices outside, candidates inside, and innermost the index with the most unit strides."""
    layout = scope.write.layout
    names = [i for i in statement.indices if i not in scope.fixed]
    outer = [i for e in statement.target.indices for i in _names(e) if i in names]
    order = list(dict.fromkeys([*outer, *names]))
    if not order:
        return order
    guarded = {i for atom in conjuncts(statement.guard) for i in ir.index_names(atom)}
    best = max(order, key=lambda i: (score(statement, i, layout), order.index(i)))
    if best not in guarded and score(statement, best, layout) > score(statement, order[-1], layout):
        order.remove(best)
        order.append(best)
    return order


def score(statement: ir.Statement, index: str, layout: Layout) -> int:
    """How many accesses run along memory with the index, less those that jump."""
    score = 0
    for access in (statement.target, *statement.reads):
        stride = 0
        for place, step in zip(access.indices, layout.strides(access.tensor), strict=True):
            form = affine(place)
            if index in ir.index_names(place):
                c = form.terms.get(index) if form else None
                stride += abs(int(c.value)) * step if isinstance(c, Number) else 100
        if stride == 1:
            score += 2 if access is statement.target else 1
        elif stride > 1:
            score -= 3
    return score


def loops_around(
    scope: Scope,
    statement: ir.Statement,
    order: list[str],
    indent: str,
    values: list[Expr],
    body: Callable[[str, list[Expr]], None],
) -> None:
    """The loops of a statement; what the innermost one does not change is computed before it.

    Where conditions that only indices decide choose between values, the points at which all of them hold have a
    loop of their own, without them: one that can run in vectors.
    """
    write = scope.write
    atoms = list(conjuncts(statement.guard))
    ranges = []
    for position, index in enumerate(order):
        low, high, used = scope.range(index, atoms, order[:position])
        atoms = [atom for atom in atoms if atom not in used]
        ranges.append((low, high))
    remaining = conditions(statement, atoms, write)

    def innermost(inner: str, chosen: list[Expr]) -> None:
        held = dict(write.held)
        if remaining:
            scope.add(inner, f"if {remaining}:")
            inner += "    "
        scope.hold(repeated(chosen, write.held), inner)
        body(inner, chosen)
        write.held = held

    held = dict(write.held)
    for index, (low, high) in zip(order[:-1], ranges[:-1], strict=True):
        indent = scope.loop(indent, index, low, high)
    if not order:
        innermost(indent, values)
        return
    last, (low, high) = order[-1], ranges[-1]
    name = write.layout.index(last)
    often = where_all_hold(scope, values, last, order[:-1])
    if often is None:
        if not statement.guard:
            scope.hold(invariant(values, last), indent)
        innermost(scope.loop(indent, last, low, high), values)
    else:
        chosen, outer, lows, highs = often
        inner = indent
        scope.add(indent, f"begin, middle, rest = {low}, {high}, {high}")
        if outer:
            scope.add(indent, f"if {outer}:")
            inner += "    "
        scope.add(inner, f"middle = min({joined('max', ['begin', *lows])}, rest)")
        scope.add(inner, f"rest = {joined('max', ['middle', joined('min', ['rest', *highs])])}")
        scope.add(indent, f"for {name} in range(middle, rest):")
        innermost(indent + "    ", chosen)
        scope.add(
            indent,
            "for side in range(2):",
            f"    first, past = begin if side == 0 else rest, middle if side == 0 else {high}",
            f"    for {name} in range(first, past):",
        )
        innermost(indent + "        ", values)
    write.held = held


def where_all_hold(
    scope: Scope, values: list[Expr], index: str, outer: list[str]
) -> tuple[list[Expr], str, list[str], list[str]] | None:
    """The values where all conditions on indices hold, what must hold of outer indices, bounds for the index."""
    atoms: dict[Expr, None] = {}
    for value in values:
        for node in ir.walk(value):
            if isinstance(node, ir.Conditional):
                parts = conjuncts(node.condition)
                if all(at_least_zero(p) and not any(isinstance(n, ir.Access) for n in ir.walk(p)) for p in parts):
                    atoms |= dict.fromkeys(parts)
    mine = [atom for atom in atoms if index in ir.index_names(atom)]
    lows, highs, used = scope.bounds(index, mine, outer)
    holding = {atom for atom in atoms if atom in used or index not in ir.index_names(atom)}
    if not holding:
        return None

    def change(node: Expr) -> Expr:
        return node.then if isinstance(node, ir.Conditional) and set(conjuncts(node.condition)) <= holding else node

    texts = [scope.write.truth(atom) for atom in atoms if index not in ir.index_names(atom)]
    return [ir.transform(value, change) for value in values], " and ".join(texts), lows, highs


def conditions(statement: ir.Statement, atoms: list[Expr], write: Expressions) -> str:
    """What is left of the guard once loop bounds took their part; `inside` first."""
    texts = []
    if any(isinstance(atom, ir.Inside) for atom in atoms):
        texts.append(write.inside_statement(statement))
    texts += [_guard_text(statement, atom, write) for atom in atoms if not isinstance(atom, ir.Inside)]
    return " and ".join(t for t in texts if t != "True")


def _guard_text(statement: ir.Statement, atom: Expr, write: Expressions) -> str:
    if not any(isinstance(n, ir.Inside) for n in ir.walk(atom)):
        return write.truth(atom)
    assert isinstance(atom, ir.Logic | ir.Unary)
    if isinstance(atom, ir.Unary):
        return f"(not {_with_inside(statement, atom.operand, write)})"
    return _with_inside(statement, atom, write)


def _with_inside(statement: ir.Statement, node: Expr, write: Expressions) -> str:
    if isinstance(node, ir.Inside):
        return f"({write.inside_statement(statement)})"
    if isinstance(node, ir.Logic):
        left, right = _with_inside(statement, node.left, write), _with_inside(statement, node.right, write)
        return f"({left} {node.operator} {right})"
    if isinstance(node, ir.Unary) and node.operator == "not":
        return f"(not {_with_inside(statement, node.operand, write)})"
    return write.truth(node)


def _names(node: Expr) -> list[str]:
    return [n.name for n in ir.walk(node) if isinstance(n, ir.Index)]
