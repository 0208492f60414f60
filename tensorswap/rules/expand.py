"""Expand: program -> program. Functions that a user defined become their values; derivatives are taken before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import LimitError
from ..language import ir
from ..language.functions import DEFINED, Defined
from ..language.ir import Expr
from .scalar import filled

NODES = 20_000  # of one expression: a value that names its argument twice doubles with each call inside a call


def expand(loops: ir.Loops) -> ir.Loops:
    """The program in the functions of the language alone: what interpreter and planner take."""
    if not DEFINED or not any(
        isinstance(n, ir.Call) and n.function in DEFINED for s in loops.statements for n in s.nodes
    ):
        return loops
    sizes: dict[int, tuple[Expr, int]] = {}  # by identity, each with its node, which so stays alive
    body = ir.map_items(loops.body, lambda s: ir.map_statement(s, lambda node: _expanded(node, DEFINED, sizes)))
    return replace(loops, body=body)


def expanded(value: Expr, functions: Mapping[str, Defined] = DEFINED) -> Expr:
    """One expression, as above."""
    sizes: dict[int, tuple[Expr, int]] = {}
    return ir.transform(value, lambda node: _expanded(node, functions, sizes))


def _expanded(node: Expr, functions: Mapping[str, Defined], sizes: dict[int, tuple[Expr, int]]) -> Expr:
    result = node
    if isinstance(node, ir.Call) and node.function in functions:
        defined = functions[node.function]
        result = filled(defined.value, dict(zip(defined.arguments, node.arguments, strict=True)))
    if _size(result, sizes) > NODES:
        raise LimitError(
            f"written out, the defined functions of this expression make more than {NODES:,} terms",
            node.span,
            "give the inner call a statement of its own: `T[i] = f(X[i])`, then `Y[i] = f(T[i])`",
        )
    return result


def _size(node: Expr, sizes: dict[int, tuple[Expr, int]]) -> int:
    """How many nodes an expression has; arguments that stand in it several times are walked once."""
    known = sizes.get(id(node))
    if known is None:
        known = sizes[id(node)] = node, 1 + sum(_size(part, sizes) for part in ir.children(node))
    return known[1]
