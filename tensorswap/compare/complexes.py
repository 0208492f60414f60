"""A scalar program at complex numbers: what the complex step needs. Branches are chosen by real parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DerivativeError
from ..flat.gates import Gate
from ..language import ir
from ..language.ir import Expr
from ..rules.expand import expanded


def _softplus(x: Any) -> Any:
    return np.log1p(np.exp(x)) if x.real < 0 else x + np.log1p(np.exp(-x))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# Functions with a complex derivative, as formulas that keep the imaginary part.
ANALYTIC: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "sigmoid": _sigmoid, "softplus": _softplus, "silu": lambda x: x * _sigmoid(x),
    "pow": lambda a, b: a**b, "hypot": lambda a, b: np.sqrt(a * a + b * b), "stop": lambda x: x.real + 0j,
    "relu": lambda x: x if x.real > 0 else 0j,
    "max": lambda a, b: a if a.real >= b.real else b,
    "min": lambda a, b: a if a.real <= b.real else b,
}  # fmt: skip

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


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
            return ARITHMETIC[operator](_evaluate(left, found), _evaluate(right, found))
        case ir.Compare(operator=operator, left=left, right=right):
            return COMPARISONS[operator](_evaluate(left, found).real, _evaluate(right, found).real)
        case ir.Logic(operator=operator, left=left, right=right):
            first = bool(_evaluate(left, found))
            return bool(_evaluate(right, found)) if first == (operator == "and") else first
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            return _evaluate(then if _evaluate(condition, found) else otherwise, found)
        case ir.Call(function=function, arguments=arguments) if function in ANALYTIC:
            return ANALYTIC[function](*(_evaluate(a, found) for a in arguments))
    what = node.function if isinstance(node, ir.Call) else getattr(node, "operator", type(node).__name__)
    raise DerivativeError(
        f"`{what}` has no complex derivative, so that a complex step would be wrong",
        node.span,
        'use method="central"',
    )
