"""Strides: a gather through a division goes back to the scatter that it came from, and its sum over products is taken
first.

    X.grad[c,s] += Y.grad[o,(s-u)//2] * W[o,c,u] if (s-u) % 2 == 0 and ...
    ->  T[c,u,q] += Y.grad[o,q] * W[o,c,u]
        X.grad[c,2*q+u] += T[c,u,q] if 0 <= 2*q+u < size(X.grad, 1)
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.affine import affine, is_constant
from ..language.build import ONE, conjunction, conjuncts, multiply, subtract
from ..language.ir import Expr, Number
from ..language.paths import always_read
from .compare_inside import bounds_of
from .work import Draft, for_each_statement, product_of


@for_each_statement
def unstride(draft: Draft, statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
    if blocks or statement.operator not in ir.SUM:
        return [statement]
    if _spreads(statement):
        return _split(draft, statement, [])
    scattered = _scattered(draft, statement)
    return [statement] if scattered is None else _split(draft, *scattered)


def _spreads(statement: ir.Statement) -> bool:
    """Whether a statement is a scatter already: its target has places such as 2*q+u."""
    forms = [affine(place) for place in statement.target.indices]
    return all(form is not None for form in forms) and any(len(form.terms) > 1 for form in forms if form is not None)


def _scattered(draft: Draft, statement: ir.Statement) -> tuple[ir.Statement, list[str]] | None:
    """The statement over the values of the quotients instead of the indices that are divided, and their indices."""
    atoms = list(conjuncts(statement.guard))
    solved: dict[Expr, tuple[str, Expr, ir.Index]] = {}  # by quotient: the index solved for, its value, the new one
    always = set(always_read(statement.value))
    for access in statement.reads:
        for axis, place in enumerate(access.indices):
            if not (isinstance(place, ir.Binary) and place.operator == "//") or place in solved:
                continue
            whole = ir.Compare("==", ir.Binary("%", place.left, place.right), Number(0))
            form = affine(place.left)
            if whole not in atoms or form is None or access not in always or not is_constant(place.right):
                return None  # a branch that does not read it has points beyond its axis
            bare = [i for i, c in form.terms.items() if c == ONE and ir.Index(i) in statement.target.indices]
            index = bare[0] if bare else None
            if index is None or any(index == other for other, _, _ in solved.values()):
                return None
            atoms.remove(whole)
            own = statement.target.indices.index(ir.Index(index))
            if draft.sizes.index[index] != draft.sizes.shapes[statement.target.tensor][own]:
                return None  # what bounds the target would not bound the index
            quotient = draft.index("quotient", draft.sizes.shapes[access.tensor][axis])
            rest = form.without(index).expression()
            value = subtract(multiply(place.right, quotient), rest)
            solved[place] = (index, value, quotient)
    if not solved:
        return None
    quotients: dict[Expr, Expr] = {place: quotient for place, (_, _, quotient) in solved.items()}
    values = {index: value for index, value, _ in solved.values()}
    if any(ir.index_names(value) & values.keys() for value in values.values()):
        return None  # one quotient would be told by another

    def change(node: Expr) -> Expr:
        return quotients.get(node, node)

    def again(node: Expr) -> Expr:
        return values.get(node.name, node) if isinstance(node, ir.Index) else node

    made = ir.map_statement(ir.map_statement(replace(statement, guard=conjunction(atoms)), change), again)
    reads = list(always_read(made.value, *conjuncts(made.guard)))  # others are in bounds where they are read
    inside = [b for access in (made.target, *reads) for b in bounds_of(draft.sizes, access)]
    names = [quotient.name for _, _, quotient in solved.values()]
    others = [atom for atom in conjuncts(made.guard) if not _holds(draft, atom, names)]
    if set(reads).issuperset(made.reads):
        others = [atom for atom in others if not isinstance(atom, ir.Inside)]  # its bounds are told
    return replace(made, guard=conjunction([*inside, *others])), names


def _holds(draft: Draft, atom: Expr, quotients: list[str]) -> bool:
    """Whether a bound of an axis holds for a quotient, which runs over one as long, by itself."""
    match atom:
        case ir.Compare(operator=">=", left=ir.Index(name=name), right=Number(value=0)):
            return name in quotients
        case ir.Compare(operator="<", left=ir.Index(name=name), right=ir.AxisSize(tensor=tensor, axis=axis)):
            return name in quotients and draft.sizes.index[name] <= draft.sizes.shapes[tensor][axis]
    return False


def _split(draft: Draft, statement: ir.Statement, quotients: list[str]) -> list[ir.Statement]:
    """The sum over indices that stand in neither the target nor the guard, first."""
    over, under = product_of(statement.value)
    plain = all(isinstance(f, ir.Access) and all(isinstance(e, ir.Index) for e in f.indices) for f in over)
    kept = {*ir.index_names(statement.target), *(ir.index_names(statement.guard) if statement.guard else ())}
    if under or not plain or len(over) != 2 or all(i in kept for i in statement.indices):
        return [statement]
    names = [i for i in statement.indices if i in kept]
    first = {ir.bare(e) for e in statement.target.indices}
    order = sorted(names, key=lambda i: (i not in first, i in quotients))
    held = draft.tensor("summed", [ir.Index(i) for i in order], like=statement.target.tensor)
    return [
        ir.Statement(held, "+=", statement.value),
        replace(statement, value=held),
    ]
