"""Explanation -> LaTeX: statements as formulas, with a line over what is a gradient; needs the package amsmath."""

from __future__ import annotations

from ..language import ir
from ..language.parse import parse
from ..language.render import ATOM, CONDITIONAL, NOT, OR, PRODUCT, SIGN, SUM, binding
from .explanation import Explanation

REDUCTIONS = {
    "+=": r"\sum", "-=": r"\sum", "*=": r"\prod", "max=": r"\max", "min=": r"\min",
    "argmax=": r"\operatorname*{arg\,max}", "argmin=": r"\operatorname*{arg\,min}",
}  # fmt: skip
RELATIONS = {"+=": r"\mathrel{+}=", "-=": r"\mathrel{-}="}
COMPARE = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "==": "=", "<": "<", ">": ">"}
KNOWN = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "min", "max")  # LaTeX has these
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
}  # fmt: skip
ACCENTS = {"grad": r"\overline", "dot": r"\dot"}


def document(made: Explanation) -> str:
    """A formula for each statement, then for each adjoint statement, aligned."""
    rows = [formula(statement.text) for statement in made.statements]
    rows += [formula(adjoint.text) for adjoint in made.adjoints]
    return "\n".join([r"\begin{align}", " \\\\\n".join(f"  {row}" for row in rows), r"\end{align}", ""])


def formula(text: str) -> str:
    """A statement of the language as a formula, with `&` where formulas are aligned."""
    loops = parse(text).main
    assert loops is not None
    (statement,) = loops.statements
    target = statement.target
    over = [i for i in statement.indices if i not in ir.index_names(target)]
    relation = RELATIONS.get(statement.operator, "=")
    reduction = ""
    if over and statement.operator in REDUCTIONS:
        reduction = f"{REDUCTIONS[statement.operator]}_{{{','.join(map(name, over))}}} "
    least = PRODUCT if reduction else CONDITIONAL
    guard = "" if statement.guard is None else rf" \quad \text{{where }} {expression(statement.guard, OR)}"
    return f"{access(target)} &{relation} {reduction}{expression(statement.value, least)}{guard}"


def name(text: str) -> str:
    """`x` as it is, `beta` as the letter, `mean_of` as a word; `X.grad` with a line above, `X.dot` with a dot."""
    base, *marks = text.split(".")
    if base in GREEK:
        shown = f"\\{base}"
    else:
        shown = base if len(base) == 1 else rf"\mathrm{{{_escaped(base)}}}"
    for mark in marks:
        kind = mark.rstrip("0123456789")
        shown = f"{ACCENTS[kind]}{{{shown}}}" if kind in ACCENTS else rf"{shown}^{{\mathrm{{{_escaped(mark)}}}}}"
    return shown


def access(node: ir.Access) -> str:
    if not node.indices:
        return name(node.tensor)
    return f"{name(node.tensor)}_{{{','.join(expression(index) for index in node.indices)}}}"


def expression(node: ir.Expr, least: int = CONDITIONAL) -> str:
    """In a place that needs a binding of at least `least`, as language/render.py has it."""
    bound = binding(node)
    if bound < least and not (isinstance(node, ir.Binary) and node.operator == "/"):
        return _enclosed(expression(node))
    match node:
        case ir.Number(value=value):
            return _number(value)
        case ir.Index(name=index) | ir.Static(name=index):
            return r"\ldots" if index == ir.BATCH else name(index)
        case ir.Size(index=index):
            return rf"\operatorname{{size}}({name(index)})"
        case ir.AxisSize(tensor=tensor, axis=axis):
            return rf"\operatorname{{size}}_{{{axis}}}({name(tensor)})"
        case ir.Access():
            return access(node)
        case ir.Unary(operator="not", operand=operand):
            return rf"\lnot {expression(operand, NOT)}"
        case ir.Unary(operand=operand):
            return f"-{expression(operand, SIGN)}"
        case ir.Inside():
            return r"\text{inside}"
    return _of_several(node, bound)


def _of_several(node: ir.Expr, bound: int) -> str:
    match node:
        case ir.Binary(operator="/", left=left, right=right):
            return rf"\frac{{{expression(left)}}}{{{expression(right)}}}"
        case ir.Binary(operator="**", left=left, right=right):
            base = expression(left, ATOM)
            if isinstance(left, ir.Binary) and left.operator == "/":
                base = _enclosed(base)
            return f"{base}^{{{expression(right)}}}"
        case ir.Binary(operator="//", left=left, right=right):
            return rf"\left\lfloor \frac{{{expression(left)}}}{{{expression(right)}}} \right\rfloor"
        case ir.Binary(operator=operator, left=left, right=right):
            sign = {"*": r" \, ", "%": r" \bmod "}.get(operator, f" {operator} ")
            if operator == "*" and isinstance(right, ir.Number):
                sign = r" \cdot "
            first, second = expression(left, bound), expression(right, bound + 1)
            if operator in "*%":  # no sign tells where a factor ends
                unclear = ("%",) if operator == "*" else ("*", "%")
                signed = operator == "%" and first.startswith("-")
                if signed or (isinstance(left, ir.Binary) and left.operator in unclear):
                    first = _enclosed(first)
                second = _enclosed(second) if second.startswith("-") else second
            return f"{first}{sign}{second}"
        case ir.Compare(operator=operator, left=left, right=right):
            return f"{expression(left, SUM)} {COMPARE[operator]} {expression(right, SUM)}"
        case ir.Logic(operator=operator, left=left, right=right):
            sign = r"\land" if operator == "and" else r"\lor"
            return f"{expression(left, bound)} {sign} {expression(right, bound + 1)}"
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            first = rf"{expression(then)} & \text{{if }} {expression(condition, OR)}"
            return rf"\begin{{cases}} {first} \\ {expression(otherwise)} & \text{{else}} \end{{cases}}"
        case ir.Call(function="sqrt", arguments=(argument,)):
            return rf"\sqrt{{{expression(argument)}}}"
        case ir.Call(function="abs", arguments=(argument,)):
            return rf"\left|{expression(argument)}\right|"
        case ir.Call(function=function, arguments=arguments):
            shown = f"\\{function}" if function in KNOWN else rf"\operatorname{{{_escaped(function)}}}"
            return rf"{shown}\left({', '.join(map(expression, arguments))}\right)"
    raise AssertionError(f"no formula for {type(node).__name__}")


def _enclosed(text: str) -> str:
    return rf"\left({text}\right)"


def _number(value: float) -> str:
    if value == float("inf"):
        return r"\infty"
    mantissa, e, exponent = repr(value).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else mantissa


def _escaped(text: str) -> str:
    return text.replace("_", r"\_")
