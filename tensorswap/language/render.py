"""IR -> text: the one printer. What it prints parses back to an equal program."""

from __future__ import annotations

from . import ir

# How tightly each form binds; a part that binds less tightly than its place gets parentheses.
CONDITIONAL, OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN, POWER, ATOM = range(10)
BINDING = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT, "**": POWER}


def binding(node: ir.Expr) -> int:
    match node:
        case ir.Conditional():
            return CONDITIONAL
        case ir.Logic(operator=operator):
            return OR if operator == "or" else AND
        case ir.Unary(operator=operator):
            return NOT if operator == "not" else SIGN
        case ir.Compare():
            return COMPARE
        case ir.Binary(operator=operator):
            return BINDING[operator]
        case ir.Number(value=value):
            return SIGN if str(value).startswith("-") else ATOM
    return ATOM


def _is_index_arithmetic(node: ir.Expr) -> bool:
    """Integers and index names only: such a parenthesis is written without spaces, as inside a bracket."""
    parts = list(ir.walk(node))
    return all(
        isinstance(p, ir.Index | ir.Static | ir.Binary | ir.Size)
        or (isinstance(p, ir.Number) and isinstance(p.value, int))
        for p in parts
    )


def expression(node: ir.Expr, least: int = CONDITIONAL, tight: bool = False) -> str:
    """The text of an expression in a place that needs a binding of at least `least`; `tight` writes no spaces."""
    if isinstance(node, ir.Index):  # most are, or accesses: these first
        return node.name
    if isinstance(node, ir.Access):
        return access(node)
    bound = binding(node)
    if bound < least:
        return f"({expression(node, tight=tight or _is_index_arithmetic(node))})"
    space = "" if tight else " "
    match node:
        case ir.Number(value=value):
            return repr(value)
        case ir.Static(name=name):
            return name
        case ir.Size(index=index):
            return f"size({index})"
        case ir.AxisSize(tensor=tensor, axis=axis):
            return f"size({tensor}, {axis})"
        case ir.Unary(operator="not", operand=operand):
            return f"not {expression(operand, NOT)}"
        case ir.Unary(operand=operand):
            text = expression(operand, SIGN, tight)
            # `-2` would read as a number, so that the minus of a number keeps its parentheses
            return f"-({text})" if isinstance(operand, ir.Number) and bound == SIGN and text[:1] != "-" else f"-{text}"
        case ir.Binary(operator="**", left=left, right=right):
            return f"{expression(left, ATOM, tight)}{space}**{space}{expression(right, SIGN, tight)}"
        case ir.Binary(operator=operator, left=left, right=right):
            return f"{expression(left, bound, tight)}{space}{operator}{space}{expression(right, bound + 1, tight)}"
        case ir.Compare(operator=operator, left=left, right=right):
            return f"{expression(left, SUM, tight)} {operator} {expression(right, SUM, tight)}"
        case ir.Logic(operator=operator, left=left, right=right):
            return f"{expression(left, bound)} {operator} {expression(right, bound + 1)}"
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            return f"{expression(then, OR)} if {expression(condition, OR)} else {expression(otherwise)}"
        case ir.Call(function=function, arguments=arguments):
            return f"{function}({f',{space}'.join(expression(a, tight=tight) for a in arguments)})"
        case ir.Inside():
            return "inside"
    raise AssertionError(f"no text for {type(node).__name__}")


def access(node: ir.Access) -> str:
    if not node.indices:
        return node.tensor
    return f"{node.tensor}[{','.join(expression(e, tight=True) for e in node.indices)}]"


def statement(item: ir.Statement) -> str:
    # behind a conditional value a guard would read as part of it only if it had an `else`, so none is needed
    guard = "" if item.guard is None else f" if {expression(item.guard, OR)}"
    return f"{access(item.target)} {item.operator} {expression(item.value)}{guard}"


def lines(body: tuple[ir.Item, ...], indent: str = "") -> list[str]:
    result = []
    for item in body:
        if isinstance(item, ir.Block):
            result.append(f"{indent}for {item.index}{' down' if item.down else ''}:")
            result.extend(lines(item.body, indent + "    "))
        else:
            assert isinstance(item, ir.Statement), "calls are inlined before a program is printed"
            result.append(indent + statement(item))
    return result


def declaration(item: ir.SizeDeclaration) -> str:
    return f"{expression(item.subject)} = {expression(item.value, SUM)}"


def _static(item: ir.StaticDeclaration) -> str:
    return f"{item.name}: int" + ("" if item.default is None else f" = {item.default}")


def header(item: ir.Header) -> str:
    parameters = item.parameters
    option_of = {part.name: name for name, parts in parameters.items() if len(parts) > 1 for part in parts}

    def parameter(name: str) -> str:
        first, *others = parameters[name]
        if isinstance(first, ir.Argument):
            return access(first.access) + ("" if first.default is None else f"={first.default!r}")
        if not others:
            return _static(first)
        same = {part.default for part in parameters[name]} == {first.default}
        default = first.default if same else option_of[str(first.default)]
        kind = f"int[{','.join(part.name for part in parameters[name])}]"
        return f"{name}: {kind}" + ("" if default is None else f" = {default}")

    return f"def {item.name}({', '.join(map(parameter, parameters))}) -> {', '.join(map(access, item.outputs))}:"


def program(loops: ir.Loops) -> str:
    """The canonical text of a whole program."""
    indent = "    " if loops.header else ""
    result = [header(loops.header)] if loops.header else [_static(s) for s in loops.statics]
    result += [f"{access(a)}: array" for a in loops.arrays]
    result += [f"{i.name}: index" for i in loops.ranges]
    result += [indent + declaration(d) for d in loops.sizes]
    result += lines(loops.body, indent)
    if loops.returns is not None:
        result.append(f"return {', '.join(loops.returns)}")
    return "\n".join(result)
