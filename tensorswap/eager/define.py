"""define: a new scalar function of the language: name, value and derivative, checked before any program can use it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import library
from ..errors import ArgumentError, GradientMismatch, LimitError, ProgramError
from ..language import ir
from ..language.functions import DEFINED, KEYWORDS, KNOWN, RANDOM, Defined, Known
from ..language.ir import Expr
from ..language.limits import NAME_LENGTH
from ..program import Program
from ..rules.expand import expanded
from ..rules.scalar import filled, template

SIGNATURE = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([\s\w,]*)\))?\s*", re.ASCII)
POINTS = 24
TOLERANCE, ROUNDING = 1e-6, 1e-15


def define(
    name: str,
    value: str,
    derivative: str | Sequence[str] | Mapping[str, str],
    at: Sequence[Any] | None = None,
) -> None:
    """Adds a function to the language: `define("swish", "x * sigmoid(x)", "y + sigmoid(x) * (1 - y)")`.

    Value and derivative are expressions of the language; in a derivative y stands for the function's own value. For
    several arguments write them behind the name, `"blend(a, b)"`, and give a derivative for each, by name or in order.
    The derivative is held against differences at points around 0, or at those given by `at`, and refused where it is
    wrong. A name keeps its meaning: to define it again in the same way is harmless, in another way is an error.
    """
    called, arguments = _signature(name, value, derivative)
    _check_name(called, arguments)
    made = _Definition(called, arguments, _expression("value", value, called, arguments))
    if called in DEFINED:
        if made.whole(derivative) != DEFINED[called]:
            raise ArgumentError(
                f"`{called}` is defined already, in another way, and programs may use it",
                hint=f"choose another name, such as `{called}2`",
            )
        return
    defined = made.whole(derivative)
    made.check(defined, _points(called, arguments, at))
    DEFINED[called] = defined  # only now: no text may know a name that is refused


def _signature(name: str, value: str, derivative: Any) -> tuple[str, tuple[str, ...]]:
    found = SIGNATURE.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise ArgumentError(f"{str(name)[:80]!r} is no name", hint='define("swish", ...) or define("blend(a, b)", ...)')
    called, listed = found.groups()
    if listed is not None:
        arguments = tuple(part.strip() for part in listed.split(","))
        if not all(part.isidentifier() for part in arguments) or len(set(arguments)) < len(arguments):
            raise ArgumentError(f"{name.strip()} lists no plain, different names", hint="write `blend(a, b)`")
        return called, arguments
    if isinstance(derivative, Mapping):
        return called, tuple(derivative)
    names = tuple(dict.fromkeys(n.tensor for n in ir.walk(_parsed("value", value)) if isinstance(n, ir.Access)))
    if len(names) > 1:
        raise ArgumentError(
            f"the value of `{called}` has several arguments: their order is not told",
            hint=f'write define("{called}({", ".join(names)})", ...)',
        )
    return called, names or ("x",)


def _check_name(called: str, arguments: tuple[str, ...]) -> None:
    taken = {**dict.fromkeys(KEYWORDS, "a word"), **dict.fromkeys(KNOWN, "a function")}
    for argument in arguments:
        if not isinstance(argument, str) or argument in taken:
            raise ArgumentError(
                f"`{argument}` cannot name an argument of `{called}`", hint="use a plain name, such as x"
            )
    if called not in DEFINED and called in taken:
        raise ArgumentError(f"`{called}` is {taken[called]} of the language", hint="choose another name")
    if len(called) > NAME_LENGTH:
        raise LimitError(f"a name has at most {NAME_LENGTH} characters", hint="shorten it")
    if called in library.definitions():
        raise ArgumentError(f"`{called}` is an op of the standard library", hint="choose another name")


def _parsed(what: str, text: str, functions: Known = KNOWN) -> Expr:
    if not isinstance(text, str):
        raise ArgumentError(f"a {what} is a text, not {type(text).__name__}", hint='such as "x * sigmoid(x)"')
    return template(text, functions)


def _expression(what: str, text: str, called: str, names: Sequence[str], functions: Known = KNOWN) -> Expr:
    """A text of scalars alone, which the given names stand for."""
    expression = _parsed(what, text, functions)
    for node in ir.walk(expression):
        if isinstance(node, ir.Access) and (node.indices or node.tensor not in names):
            shown = f"{node.tensor}[...]" if node.indices else node.tensor
            raise ProgramError(
                f"the {what} of `{called}` names {shown}, which is no argument", hint=f"it may use {', '.join(names)}"
            )
        if isinstance(node, ir.Index | ir.Size | ir.AxisSize | ir.Inside) or (
            isinstance(node, ir.Call) and node.function in RANDOM
        ):
            raise ProgramError(
                f"the {what} of `{called}` is no function of numbers alone: {text[:80]!r}",
                hint="sizes, `inside` and random numbers belong in statements",
            )
    return expression


def _texts(called: str, arguments: tuple[str, ...], derivative: Any) -> list[str]:
    if isinstance(derivative, Mapping):
        if set(derivative) != set(arguments):
            raise ArgumentError(
                f"`{called}` has the arguments {', '.join(arguments)}, its derivatives are by {', '.join(derivative)}",
                hint="give one derivative for each argument",
            )
        return [derivative[argument] for argument in arguments]
    texts = list(derivative) if isinstance(derivative, list | tuple) else [derivative]
    if len(texts) != len(arguments):
        raise ArgumentError(
            f"`{called}` has {len(arguments)} arguments, but {len(texts)} derivatives are given",
            hint="give one derivative for each argument, in their order",
        )
    return texts


def _points(called: str, arguments: tuple[str, ...], at: Sequence[Any] | None) -> NDArray[np.float64]:
    """Points in the rows, arguments in the columns; the standard ones keep away from whole and half numbers."""
    if at is None:
        random = np.random.default_rng(0)
        spread = random.uniform(0.1, 0.4, (POINTS, len(arguments)))
        return spread + random.integers(-5, 5, (POINTS, len(arguments))) * 0.5
    try:
        points = np.asarray(at, np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the points of `{called}` are no numbers", hint="at=[0.5, 1.5]") from error
    points = points.reshape(-1, 1) if points.ndim < 2 and len(arguments) == 1 else np.atleast_2d(points)
    if points.shape[-1] != len(arguments) or points.ndim != 2:
        raise ArgumentError(
            f"a point of `{called}` has {len(arguments)} coordinates", hint="at=[(0.5, 1.5), (2.0, 3.0)]"
        )
    return points


@dataclass(frozen=True)
class _Definition:
    called: str
    arguments: tuple[str, ...]
    value: Expr

    def whole(self, derivative: Any) -> Defined:
        names = (*self.arguments, "y")
        texts = _texts(self.called, self.arguments, derivative)
        bare = Defined(self.arguments, expanded(self.value), ())
        known = {**KNOWN, self.called: bare}  # the derivative may call it, too
        return replace(bare, derivatives=tuple(_expression("derivative", t, self.called, names, known) for t in texts))

    def check(self, defined: Defined, points: NDArray[np.float64]) -> None:
        """Holds each derivative against differences of the value."""
        own = ir.Call(self.called, tuple(ir.Access(a) for a in self.arguments))
        for position, argument in enumerate(self.arguments):
            rule = filled(defined.derivatives[position], {"y": own} if "y" not in self.arguments else {})
            actual = self.evaluate(expanded(rule, {**DEFINED, self.called: defined}), points)
            with np.errstate(all="ignore"):
                expected, spread, rounding = self.differences(points, position)
                telling = np.isfinite(expected) & (spread <= 1e-3 * np.abs(expected) + rounding)
                wrong = telling & ~(np.abs(actual - expected) <= TOLERANCE * np.abs(expected) + spread + rounding)
            if wrong.any():
                k = int(np.argmax(wrong))
                place = ", ".join(f"{a} = {x:.6g}" for a, x in zip(self.arguments, points[k], strict=True))
                raise GradientMismatch(
                    f"the derivative of `{self.called}` by {argument} is {actual[k]:.8g} at {place}, "
                    f"where differences of its value give {expected[k]:.8g}",
                    hint="correct the derivative; at a kink, where there is none, give other points: at=[...]",
                )
            if not telling.any():
                raise ArgumentError(
                    f"no point that was tried tells the derivative of `{self.called}` by {argument}: its value is not "
                    "finite there, or not smooth",
                    hint="give points: at=[0.5, 1.5]",
                )

    def differences(self, points: NDArray[np.float64], position: int) -> tuple[NDArray[Any], ...]:
        """The derivative from values around each point, how far a wider step is from it, and what rounding may do."""
        step = 1e-3 * np.maximum(1.0, np.abs(points[:, position]))
        values = {}
        for side in (-4, -2, -1, 1, 2, 4):
            moved = points.copy()
            moved[:, position] += side * step
            values[side] = self.evaluate(self.value, moved)
        near, middle, far = (values[k] - values[-k] for k in (1, 2, 4))
        fine, coarse = (8 * near - middle) / (12 * step), (8 * middle - far) / (24 * step)
        rounding = ROUNDING * np.max(np.abs(list(values.values())), axis=0) / step
        return fine, np.abs(fine - coarse), rounding

    def evaluate(self, expression: Expr, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """An expression at all points, by the interpreter."""
        access = {a: ir.Access(f"X{k}", (ir.Index("i"),)) for k, a in enumerate(self.arguments)}
        places: dict[str, Expr] = dict(access)
        statement = ir.Statement(ir.Access("Y", (ir.Index("i"),)), "=", expanded(filled(expression, places)))
        program = Program(ir.Loops(body=(statement,)))
        arrays = {f"X{k}": points[:, k].copy() for k in range(len(self.arguments))}
        result = program.run_reference({"i": len(points), **{n: a for n, a in arrays.items() if n in program.inputs}})
        return np.asarray(result, np.float64)
