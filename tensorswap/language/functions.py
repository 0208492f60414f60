"""The scalar functions of the language: one row each, with all that is known of it; and those that a user defines."""

from __future__ import annotations

import builtins
import math
import re
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .ir import Binary, Call, Expr, Number

ANY = 10**6


class Cost(Enum):
    """What a value costs at one point."""

    CHEAP = "an instruction or two: quicker done again than read"
    QUICK = "many instructions, which run in vectors: for all points quicker than one by one where it is needed"
    COSTLY = "a call for each point"


CHEAP, QUICK, COSTLY = Cost.CHEAP, Cost.QUICK, Cost.COSTLY


@dataclass(frozen=True)
class Function:
    """One function. Its texts are of the language: x is the argument, of several a and b; y is its own value."""

    name: str
    cost: Cost
    derivatives: tuple[str, ...] = ()  # by each argument; "0" where it is constant between its jumps
    branches: str = ""  # the conditional that it is, instead of derivatives: they are those of the branch taken
    numpy: str = ""  # its name in numpy
    value: str = ""  # in other functions, for those who have no name for it
    least: int = 1  # arguments
    most: int = 1
    keeps_integers: bool = False  # of integers it is an integer
    in_brackets: bool = False  # it may stand in an index expression
    random: bool = False  # of integers, which are a counter
    domain: str = ""  # what it needs of its argument

    def __post_init__(self) -> None:
        if (len(self.derivatives) != self.least or self.random) and not self.branches and not self.flat:
            raise AssertionError(f"{self.name} lacks a derivative")
        if not (self.numpy or self.value or self.random or self.in_python):
            raise AssertionError(f"{self.name} lacks a value")
        if self.numpy and not hasattr(np, self.numpy):
            raise AssertionError(f"{self.name} is no {self.numpy} of numpy")

    @property
    def flat(self) -> bool:
        """The derivative is zero wherever there is one."""
        return self.derivatives == ("0",)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is written of it in the language."""
        return tuple(text for text in (*self.derivatives, self.branches, self.value) if text)

    @property
    def arguments(self) -> str:
        """Their names in the texts, a letter each."""
        return "x" if self.least == 1 else "ab"

    @property
    def slopes(self) -> tuple[str, ...]:
        """The derivatives, those of a branching function written out: 1 where the branch taken is the argument."""
        if not self.branches:
            return self.derivatives
        then, condition, otherwise = re.split(" if | else ", self.branches)
        return tuple(f"{int(then == by)} if {condition} else {int(otherwise == by)}" for by in self.arguments)

    @property
    def in_python(self) -> str:
        """The module of Python that has it under its own name, or nothing."""
        return next((module.__name__ for module in (builtins, math) if hasattr(module, self.name)), "")


NORMAL = "0.5 * (1 + erf(0.7071067811865476 * x)) + 0.3989422804014327 * x * exp(-(0.7071067811865476 * x) ** 2)"
POWER = ("b * a ** (b - 1) if b != 0 else 0", "0 if a == 0 and b >= 0 else y * log(a)")
ROWS = (
    Function("abs", CHEAP, ("sign(x)",), numpy="abs", keeps_integers=True, in_brackets=True),
    Function("sqrt", QUICK, ("0.5 / y",), numpy="sqrt", domain="a number that is not negative"),
    Function("exp", QUICK, ("y",), numpy="exp"),
    Function("log", QUICK, ("1 / x",), numpy="log", domain="a positive number"),
    Function("log1p", QUICK, ("1 / (1 + x)",), numpy="log1p", domain="a number above -1"),
    Function("expm1", QUICK, ("exp(x)",), numpy="expm1"),
    Function("sin", QUICK, ("cos(x)",), numpy="sin"),
    Function("cos", QUICK, ("-sin(x)",), numpy="cos"),
    Function("tan", COSTLY, ("1 + y * y",), numpy="tan"),
    Function("asin", COSTLY, ("1 / sqrt(1 - x * x)",), numpy="arcsin", domain="a number between -1 and 1"),
    Function("acos", COSTLY, ("-1 / sqrt(1 - x * x)",), numpy="arccos", domain="a number between -1 and 1"),
    Function("atan", COSTLY, ("1 / (1 + x * x)",), numpy="arctan"),
    Function("sinh", COSTLY, ("cosh(x)",), numpy="sinh"),
    Function("cosh", COSTLY, ("sinh(x)",), numpy="cosh"),
    Function("tanh", QUICK, ("1 - y * y",), numpy="tanh"),
    Function("sigmoid", QUICK, ("y * (1 - y)",), value="1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))"),
    Function("relu", CHEAP, branches="x if x > 0 else 0", value="max(x, 0)", keeps_integers=True),
    Function("gelu", QUICK, (NORMAL,), value="0.5 * x * (1 + erf(0.7071067811865476 * x))"),
    Function("silu", QUICK, ("sigmoid(x) * (1 + x * (1 - sigmoid(x)))",), value="x * sigmoid(x)"),
    Function("softplus", QUICK, ("sigmoid(x)",), value="log1p(exp(x)) if x < 0 else x + log1p(exp(-x))"),
    Function("erf", QUICK, ("1.1283791670955126 * exp(-x * x)",)),
    Function("sign", CHEAP, ("0",), numpy="sign", value="(x > 0) - (x < 0) if x == x else x", keeps_integers=True),
    Function("floor", CHEAP, ("0",), numpy="floor", keeps_integers=True),
    Function("ceil", CHEAP, ("0",), numpy="ceil", keeps_integers=True),
    Function("round", CHEAP, ("0",), numpy="round", keeps_integers=True),
    Function("stop", CHEAP, ("0",), value="x", keeps_integers=True),
    Function("max", CHEAP, (), "a if a >= b else b", "maximum", "", 2, ANY, keeps_integers=True, in_brackets=True),
    Function("min", CHEAP, (), "a if a <= b else b", "minimum", "", 2, ANY, keeps_integers=True, in_brackets=True),
    Function("where", CHEAP, (), "a if c else b", "where", least=3, most=3),  # the parser makes a conditional of it
    Function("pow", COSTLY, POWER, "", "power", "", 2, 2),
    Function("atan2", COSTLY, ("b / (a * a + b * b)", "-a / (a * a + b * b)"), "", "arctan2", "", 2, 2),
    Function("hypot", COSTLY, ("a / y", "b / y"), "", "hypot", "", 2, 2),
    Function("uniform", COSTLY, ("0",), random=True, most=ANY),
    Function("normal", COSTLY, ("0",), random=True, most=ANY),
)  # fmt: skip

FUNCTIONS: Mapping[str, Function] = {row.name: row for row in ROWS}

KEYWORDS = frozenset({"if", "else", "and", "or", "not", "for", "def", "return", "inside", "inf", "size"})

INDEX_FUNCTIONS = frozenset(row.name for row in ROWS if row.in_brackets)
KEEP_INTEGERS = frozenset(row.name for row in ROWS if row.keeps_integers)
RANDOM = frozenset(row.name for row in ROWS if row.random)
DONE_AGAIN = frozenset(row.name for row in ROWS if row.cost is CHEAP)
IN_VECTORS = frozenset(row.name for row in ROWS if row.cost is not COSTLY)


def is_power(node: Expr) -> bool:
    """Of another exponent than a whole number, which would make it a product: it takes as long as a function."""
    if not isinstance(node, Binary) or node.operator != "**":
        return False
    return not (isinstance(node.right, Number) and float(node.right.value).is_integer())


def takes_long(node: Expr) -> bool:
    """A function that is not sooner done again than kept, or a power that is no product."""
    return is_power(node) or (isinstance(node, Call) and node.function not in DONE_AGAIN)


@dataclass(frozen=True)
class Defined:
    """A function that a user defined: expressions of its arguments, in the derivatives also of y, its own value."""

    arguments: tuple[str, ...]
    value: Expr
    derivatives: tuple[Expr, ...]  # by each argument

    @property
    def least(self) -> int:
        return len(self.arguments)

    most = least


DEFINED: dict[str, Defined] = {}
Known = Mapping[str, Function | Defined]
KNOWN: Known = ChainMap(DEFINED, FUNCTIONS)  # type: ignore[arg-type]  # a view of both, which writes to neither
