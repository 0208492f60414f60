"""The type of every tensor and expression of a program, from the types of its inputs: numpy's promotion, statically."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from . import ir
from .functions import KEEP_INTEGERS, RANDOM
from .ir import Expr

INT, BOOL, DOUBLE = np.dtype(np.int64), np.dtype(np.bool_), np.dtype(np.float64)
UNSIGNED = np.dtype(np.uint64)
IDENTITY = {"=": 0, "+=": 0, "-=": 0, "*=": 1, "max=": -math.inf, "min=": math.inf, "argmax=": -1, "argmin=": -1}


@dataclass(frozen=True)
class Kind:
    """`weak` kinds, those of plain numbers and indices, take the type of what they meet."""

    dtype: np.dtype[Any]
    weak: bool = False


WEAK_INT, WEAK_FLOAT, TRUTH = Kind(INT, True), Kind(DOUBLE, True), Kind(BOOL)


@cache  # there are few kinds, and numpy takes its time
def join(*kinds: Kind) -> Kind:
    """numpy's promotion, with weak kinds like plain Python numbers: they never widen."""
    strong = [k.dtype for k in kinds if not k.weak]
    weak = [k.dtype for k in kinds if k.weak]
    if not strong:
        return Kind(np.result_type(*weak), True)
    stand_ins: list[Any] = [0.0 if d.kind == "f" else 0 for d in weak if d != BOOL]
    return Kind(np.result_type(*strong, *stand_ins), False)


def promote(*kinds: Kind) -> Kind:
    """The type that operands of these kinds are computed in: whole numbers in 64 bits, so that none wraps around."""
    kind = join(*kinds)
    return Kind(INT, kind.weak) if kind.dtype.kind in "iu" and kind.dtype != UNSIGNED else kind


def number(kind: Kind) -> Kind:
    return WEAK_INT if kind.dtype == BOOL else kind


def floating(kind: Kind) -> Kind:
    return kind if kind.dtype.kind == "f" else Kind(DOUBLE, kind.weak)


@dataclass
class Types:
    """Kinds of the tensors of one program."""

    tensors: dict[str, Kind]
    _known: dict[int, tuple[Expr, Kind]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def learn(self, tensor: str, kind: Kind) -> None:
        """What a tensor holds. All that was known of expressions may be another one then."""
        if self.tensors.get(tensor) != kind:
            self.tensors[tensor] = kind
            self._known.clear()

    def of(self, node: Expr) -> Kind:
        """The kind of an expression, found once for each node: by identity, with the node, which so stays alive."""
        known = self._known.get(id(node))
        if known is None or known[0] is not node:
            known = self._known[id(node)] = node, self._of(node)
        return known[1]

    def _of(self, node: Expr) -> Kind:
        match node:
            case ir.Number(value=value):
                return WEAK_INT if isinstance(value, int) else WEAK_FLOAT
            case ir.Index() | ir.Static() | ir.Size() | ir.AxisSize():
                return WEAK_INT
            case ir.Access(tensor=tensor):
                return self.tensors.get(tensor, WEAK_INT)
            case ir.Unary(operator="not") | ir.Compare() | ir.Logic() | ir.Inside():
                return TRUTH
            case ir.Unary(operand=operand):
                return promote(number(self.of(operand)))
            case ir.Binary(operator=operator, left=left, right=right):
                kind = promote(number(self.of(left)), number(self.of(right)))
                whole = isinstance(right, ir.Number) and isinstance(right.value, int) and right.value >= 0
                if operator == "/" or (operator == "**" and not whole):
                    return floating(kind)
                return kind
            case ir.Conditional(then=then, otherwise=otherwise):
                return promote(self.of(then), self.of(otherwise))
            case ir.Call(function=function) if function in RANDOM:
                return WEAK_FLOAT
            case ir.Call(function=function, arguments=arguments):
                kind = promote(*(number(self.of(a)) for a in arguments))
                return kind if function in KEEP_INTEGERS else floating(kind)
        raise AssertionError(f"no type for {type(node).__name__}")


def infer_types(loops: ir.Loops, inputs: Mapping[str, Kind], known: Mapping[str, Kind] | None = None) -> Types:
    """Repeats the statements until no type changes: a block may read what it writes later. `known` kinds stay."""
    known = known or {}
    types = Types({**inputs, **known})
    while True:
        before = dict(types.tensors)
        for statement in loops.statements:
            name, operator = statement.target.tensor, statement.operator
            if name in known:
                continue
            kind = accumulated(operator, types.of(statement.value))
            if kind.dtype.kind != "f" and is_derivative(name) and not operator.startswith("arg"):
                kind = WEAK_FLOAT
            types.learn(name, join(types.tensors[name], kind) if name in types.tensors else kind)
        if types.tensors == before:
            return types


def accumulated(operator: str, kind: Kind) -> Kind:
    """The kind of a tensor that an operator fills: sums and products of whole numbers take 64 bits, and a sign, since
    what is taken away from a sum of unsigned numbers may leave less than nothing."""
    if operator.startswith("arg"):
        return Kind(INT)
    if operator in ("+=", "-=", "*=") and kind.dtype.kind in "biu":
        return Kind(UNSIGNED if kind.dtype == UNSIGNED else INT, kind.weak or kind.dtype == BOOL)
    return Kind(INT, True) if kind.dtype == BOOL and operator != "=" else kind


def is_derivative(name: str) -> bool:
    """Names with .grad or .dot: floating-point numbers, even where they are whole."""
    return any(part.startswith(("grad", "dot")) for part in name.split(".")[1:])


def identity(operator: str, dtype: np.dtype[Any]) -> float | int:
    """What an accumulation starts from: for whole numbers the least or greatest there is stands for the infinite."""
    start = IDENTITY[operator]
    if math.isfinite(start) or dtype.kind not in "iu":
        return start
    return int(np.iinfo(dtype).min if start < 0 else np.iinfo(dtype).max)
