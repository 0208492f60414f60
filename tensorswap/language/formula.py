"""Formulas: texts of the table of functions -> Python functions, of numbers (by `math`) or of arrays (by numpy).

A formula of numbers is Python as it stands. Of arrays, a conditional chooses at every element, so it becomes a `where`;
`and` becomes `&`.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np

from .functions import ANY, FUNCTIONS

Computed = Callable[..., Any]


def power(base: Any, exponent: Any) -> Any:
    """numpy's, without its shortcut: where all exponents are 0.5 it may take a square root, which differs of -0 and of
    -infinity."""
    found = np.power(base, exponent)
    half = np.equal(exponent, 0.5)
    if found.dtype.kind != "f" or not half.any():
        return found
    return np.where(half & np.equal(base, 0), 0, np.where(half & np.equal(base, -np.inf), np.inf, found))


OPERATIONS: dict[str, Computed] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": power, "//": np.floor_divide, "%": np.mod,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


def compiled(arguments: str, text: str, function: Callable[[str], Computed], **names: Any) -> Computed:
    """The formula as a function; the functions that it calls are looked up once, here."""
    made: Computed = eval(f"lambda {arguments}: {text}", {**{n: function(n) for n in calls(text) - {*names}}, **names})
    return made


def calls(text: str) -> set[str]:
    """The functions that a formula calls."""
    return {n.func.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}


@cache
def of_numbers(name: str) -> Computed:
    """A function of the language for Python's numbers; what has no value raises."""
    row = FUNCTIONS[name]
    if row.in_python:
        found: Computed = getattr(builtins if row.in_python == "builtins" else math, name)
        return found
    return compiled("x", row.value, of_numbers)


@cache
def of_arrays(name: str) -> Computed:
    """A function of the language for arrays, of their type."""
    row = FUNCTIONS[name]
    if row.numpy:
        ufunc: Computed = power if row.numpy == "power" else getattr(np, row.numpy)
        return ufunc if row.most < ANY else lambda *arguments: reduce(ufunc, arguments)
    if row.value:
        return compiled("x", choosing(row.value), of_arrays)
    one_by_one = np.vectorize(of_numbers(name), otypes=[np.float64])
    return lambda x: np.asarray(one_by_one(x)).astype(x.dtype) if x.size else x


def choosing(text: str) -> str:
    """A formula for arrays."""
    return ast.unparse(_Choosing().visit(ast.parse(text, mode="eval")))


class _Choosing(ast.NodeTransformer):
    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return ast.Call(ast.Name("where"), [node.test, node.body, node.orelse], [])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        operator = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        return reduce(lambda left, right: ast.BinOp(left, operator, right), node.values)


def gradient(arguments: str, derivative: str) -> Computed:
    """g, the gradient of a result, times a derivative: a function of g, the result y and the arguments, all arrays."""
    pulled = ast.unparse(_pulled(ast.parse(derivative, mode="eval").body))
    return compiled(f"g, y, {arguments}", choosing(pulled), of_arrays)


def _pulled(node: ast.expr) -> ast.expr:
    """No step more than a person would write: g / x, not g * (1 / x)."""
    match node:
        case ast.IfExp():
            return ast.IfExp(node.test, _pulled(node.body), _pulled(node.orelse))
        case ast.UnaryOp(ast.USub()):
            return ast.UnaryOp(node.op, _pulled(node.operand))
        case ast.BinOp(op=ast.Div()):
            return ast.BinOp(_pulled(node.left), node.op, node.right)
        case ast.Constant(value=0):
            return node
        case ast.Constant(value=1):
            return ast.Name("g")
    return ast.BinOp(ast.Name("g"), ast.Mult(), node)
