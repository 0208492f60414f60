"""Kinds of names: index, static integer or tensor, settled once a whole program is parsed."""

from __future__ import annotations

from dataclasses import replace

from . import ir


def _kinds(loops: ir.Loops) -> tuple[frozenset[str], tuple[ir.StaticDeclaration, ...]]:
    """The names that are indices, and static integers that only a size declaration shows."""
    asked = [n for d in loops.sizes for n in (d.subject, *ir.walk(d.value))]
    items = flat_items(loops.body)
    nodes = [n for item in items if not isinstance(item, ir.Block) for root in roots(item) for n in ir.walk(root)]
    certain = {node.name for node in loops.ranges} | {n.index for n in asked if isinstance(n, ir.Size)}
    certain |= {item.index for item in items if isinstance(item, ir.Block)}
    bare = {e.name for n in nodes if isinstance(n, ir.Access) for e in n.indices if isinstance(e, ir.Index)}
    scalars = () if loops.header else [n.tensor for n in asked if isinstance(n, ir.Access) and not n.indices]
    # an index has no place in a size: the checker says so
    implied = [name for name in dict.fromkeys(scalars) if name not in certain | bare]
    indices = {n.name for n in nodes if isinstance(n, ir.Index)} | {n.index for n in nodes if isinstance(n, ir.Size)}
    indices |= certain | {name for access in loops.header_accesses for name in ir.index_names(access)}
    extra = tuple(ir.StaticDeclaration(name) for name in implied if name not in loops.static_names)
    return frozenset(indices - {*loops.static_names, *implied}), extra


def unshown_indices(loops: ir.Loops) -> list[str]:
    """Indices that the text would show as scalars: they stand in values and guards alone, and need `i: index`."""
    shown = {block.index for _, blocks in loops.located for block in blocks}
    nodes = [n for d in loops.sizes for n in (d.subject, *ir.walk(d.value))]
    nodes += [n for s in loops.statements for n in s.nodes]
    shown |= {n.index for n in nodes if isinstance(n, ir.Size)}
    shown |= {name for access in loops.accesses for name in ir.index_names(access)}
    return list(dict.fromkeys(i for s in loops.statements for i in s.indices if i not in shown))


def flat_items(body: tuple[ir.Item, ...]) -> list[ir.Item]:
    """All items, those inside blocks behind their block."""
    return [x for item in body for x in ((item, *flat_items(item.body)) if isinstance(item, ir.Block) else (item,))]


def roots(item: ir.Item) -> tuple[ir.Expr, ...]:
    """The expressions of an item that is no block."""
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
