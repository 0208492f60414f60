"""The scalar functions of the language: their names, how many arguments each takes, and those that a user defines."""

from __future__ import annotations

from dataclasses import dataclass

from .ir import Expr

ANY = 10**6

FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        (
            "abs", "sign", "sqrt", "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
            "cosh", "tanh", "sigmoid", "relu", "gelu", "silu", "softplus", "erf", "floor", "ceil", "round", "stop",
        ),
        (1, 1),
    ),
    **dict.fromkeys(("pow", "atan2", "hypot"), (2, 2)),
    **dict.fromkeys(("min", "max"), (2, ANY)),
    "where": (3, 3),
    **dict.fromkeys(("uniform", "normal"), (1, ANY)),
}  # fmt: skip

KEYWORDS = frozenset({"if", "else", "and", "or", "not", "for", "def", "return", "inside", "inf", "size"})

INDEX_FUNCTIONS = frozenset({"min", "max", "abs"})  # those that may stand inside brackets
RANDOM = frozenset({"uniform", "normal"})
FLAT = frozenset({"sign", "floor", "ceil", "round", "stop", "uniform", "normal"})  # derivative zero everywhere


@dataclass(frozen=True)
class Defined:
    """A function that a user defined: expressions of its arguments, in the derivatives also of y, its own value."""

    arguments: tuple[str, ...]
    value: Expr
    derivatives: tuple[Expr, ...]  # by each argument


DEFINED: dict[str, Defined] = {}  # their names stand in FUNCTIONS, too
