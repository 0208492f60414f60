"""A scalar program at complex numbers: what the complex step needs. Branches are chosen by real parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DerivativeError
from ...language import ir
from ...language.formula import OPERATIONS, calls
from ...language.functions import FUNCTIONS
from ...language.ir import Expr
from ...rules.expand import expanded
from ...rules.scalar import branches, written_out
from ..flat.gates import Gate

# What numpy does not compute with complex numbers, or not as a function with a derivative.
OWN: dict[str, Callable[..., Any]] = {
    "hypot": lambda a, b: np.sqrt(a * a + b * b), "stop": lambda x: x.real + 0j,
}  # fmt: skip

ARITHMETIC = frozenset({"+", "-", "*", "/", "**"})


def at_complex(gates: Sequence[Gate], values: Mapping[str, complex]) -> complex:
    """The value of the last gate."""
    found: dict[str, Any] = {name: np.complex128(value) for name, value in values.items()}
    missing = next((n for g in gates for n in g.operands if n not in found and n not in {h.name for h in gates}), None)
    if missing is not None:
        raise ArgumentError(f"the input {missing} is missing", hint=f"pass {missing}=1.0")
    for gate in gates:
        holds = gate.condition is None or bool(found[gate.condition])
        found[gate.name] = _evaluate(expanded(gate.value), found) if holds else np.complex128(0)
    return complex(found[gates[-1].name])


def _evaluate(node: Expr, found: Mapping[str, Any]) -> Any:
    match node:
        case ir.Number(value=value):
            return np.complex128(value)
        case ir.Access(tensor=tensor):
            return found[tensor]
        case ir.Unary(operator="not", operand=operand):
            return not _evaluate(operand, found)
        case ir.Unary(operand=operand):
            return -_evaluate(operand, found)
        case ir.Binary(operator=operator, left=left, right=right) if operator in ARITHMETIC:
            return OPERATIONS[operator](_evaluate(left, found), _evaluate(right, found))
        case ir.Compare(operator=operator, left=left, right=right):
            return OPERATIONS[operator](_evaluate(left, found).real, _evaluate(right, found).real)
        case ir.Logic(operator=operator, left=left, right=right):
            first = bool(_evaluate(left, found))
            return bool(_evaluate(right, found)) if first == (operator == "and") else first
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            return _evaluate(then if _evaluate(condition, found) else otherwise, found)
        case ir.Call() if (branched := branches(node)) is not None:
            return _evaluate(branched, found)
        case ir.Call(function=function, arguments=arguments) if (analytic := _analytic(function)) is not None:
            return analytic(*(_evaluate(a, found) for a in arguments))
    what = node.function if isinstance(node, ir.Call) else getattr(node, "operator", type(node).__name__)
    raise DerivativeError(
        f"`{what}` has no complex derivative, so that a complex step would be wrong",
        node.span,
        'use method="central"',
    )


def _analytic(name: str) -> Callable[..., Any] | None:
    """A function with a complex derivative: one that keeps the imaginary part."""
    if name in OWN:
        return OWN[name]
    row = FUNCTIONS[name]
    if row.flat or row.random:
        return None
    if row.value and all(map(_analytic, calls(row.value))):
        formula = written_out(ir.Call(name, (ir.Access("x"),)))
        return lambda x: _evaluate(formula, {"x": x})
    ufunc = getattr(np, row.numpy, None)
    return ufunc if {"D->D", "DD->D"} & {*getattr(ufunc, "types", ())} else None
