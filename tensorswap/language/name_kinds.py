"""Kinds of names: index, static integer or tensor, settled once a whole program is parsed."""

from __future__ import annotations

from dataclasses import replace

from . import ir


def _kinds(loops: ir.Loops) -> tuple[frozenset[str], tuple[ir.StaticDeclaration, ...]]:
    """The names that are indices, and static integers that only a size declaration shows."""
    declared = set(loops.static_names)
    implied: dict[str, ir.StaticDeclaration] = {}
    indices: set[str] = {node.name for node in loops.ranges}
    for declaration in loops.sizes:
        for node in (declaration.subject, *ir.walk(declaration.value)):
            if isinstance(node, ir.Size):
                indices.add(node.index)
            elif isinstance(node, ir.Access) and not node.indices and not loops.header:
                implied.setdefault(node.tensor, ir.StaticDeclaration(node.tensor))
    for name in _certain_indices(loops, indices):
        implied.pop(name, None)  # an index has no place in a size: the checker says so
    statics = declared | implied.keys()
    for access in loops.header_accesses:
        indices |= {n.name for e in access.indices for n in ir.walk(e) if isinstance(n, ir.Index)}
    for item in flat_items(loops.body):
        if isinstance(item, ir.Block):
            indices.add(item.index)
        else:
            for root in _roots(item):
                for node in ir.walk(root):
                    if isinstance(node, ir.Index):
                        indices.add(node.name)
                    elif isinstance(node, ir.Size):
                        indices.add(node.index)
    extra = tuple(d for name, d in implied.items() if name not in declared)
    return frozenset(indices - statics), extra


def _certain_indices(loops: ir.Loops, sized: set[str]) -> set[str]:
    """Names that can only be indices: they stand alone in a bracket, head a block, or have a size."""
    found = set(sized)
    for item in flat_items(loops.body):
        if isinstance(item, ir.Block):
            found.add(item.index)
        else:
            accesses = [n for root in _roots(item) for n in ir.walk(root) if isinstance(n, ir.Access)]
            found |= {e.name for a in accesses for e in a.indices if isinstance(e, ir.Index)}
    return found


def unshown_indices(loops: ir.Loops) -> list[str]:
    """Indices that the text would show as scalars: they stand in values and guards alone, and need `i: index`."""
    shown = {block.index for _, blocks in loops.located for block in blocks}
    shown |= {n.index for d in loops.sizes for n in (d.subject, *ir.walk(d.value)) if isinstance(n, ir.Size)}
    accesses = list(loops.header_accesses)
    for statement in loops.statements:
        shown |= {n.index for n in statement.nodes if isinstance(n, ir.Size)}
        accesses += [n for n in statement.nodes if isinstance(n, ir.Access)]
    shown |= {name for a in accesses for e in a.indices for name in ir.index_names(e)}
    return list(dict.fromkeys(i for s in loops.statements for i in s.indices if i not in shown))


def flat_items(body: tuple[ir.Item, ...]) -> list[ir.Item]:
    """All items, those inside blocks behind their block."""
    return [x for item in body for x in ((item, *flat_items(item.body)) if isinstance(item, ir.Block) else (item,))]


def _roots(item: ir.Item) -> tuple[ir.Expr, ...]:
    if isinstance(item, ir.CallStatement):
        return (*item.targets, *item.arguments, *(value for _, value in item.keywords))
    assert isinstance(item, ir.Statement)
    return (item.target, item.value) if item.guard is None else (item.target, item.value, item.guard)


def resolve_names(loops: ir.Loops) -> ir.Loops:
    """Gives every name its kind: index, static integer, or tensor. The name of an option, as an argument of a call, is
    all of its parts."""
    indices, extra = _kinds(loops)
    statics = {*loops.static_names, *(d.name for d in extra)}

    def argument(node: ir.Expr) -> ir.Expr:
        parts = loops.options.get(node.tensor, ()) if isinstance(node, ir.Access) and not node.indices else ()
        if parts:
            return ir.Several(tuple(ir.Static(part, span=node.span) for part in parts), span=node.span)
        return ir.transform(node, kind)

    def kind(node: ir.Expr) -> ir.Expr:
        name = node.name if isinstance(node, ir.Index) else node.tensor if isinstance(node, ir.Access) else None
        if name is None or (isinstance(node, ir.Access) and node.indices):
            return node
        if name in statics:
            return ir.Static(name, span=node.span)
        if name in indices:
            return ir.Index(name, span=node.span)
        return node

    def places(node: ir.Access) -> ir.Access:  # a target's own name keeps its kind: it is a tensor
        return replace(node, indices=tuple(ir.transform(e, kind) for e in node.indices))

    def settle(item: ir.Item) -> ir.Item:
        if isinstance(item, ir.Block):
            return replace(item, body=tuple(settle(x) for x in item.body))
        if isinstance(item, ir.CallStatement):
            return replace(
                item,
                targets=tuple(places(t) for t in item.targets),
                arguments=tuple(argument(a) for a in item.arguments),
                keywords=tuple((k, argument(v)) for k, v in item.keywords),
            )
        guard = None if item.guard is None else ir.transform(item.guard, kind)
        return replace(item, target=places(item.target), value=ir.transform(item.value, kind), guard=guard)

    sizes = tuple(replace(d, value=ir.transform(d.value, kind)) for d in loops.sizes)
    arrays = tuple(places(a) for a in loops.arrays)
    body = tuple(settle(i) for i in loops.body)
    return replace(loops, body=body, sizes=sizes, arrays=arrays, statics=loops.statics + extra)
