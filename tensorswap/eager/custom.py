"""Custom functions: a forward and a backward of one's own, which are checked before they can be used."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, GradientMismatch, ShapeError
from ..run.arguments import as_array
from .bundle import bundle
from .make import constant, fitted, is_active
from .tensor import Tensor

STEP, TOLERANCE, ENTRIES = 1e-5, 1e-5, 200

F = TypeVar("F", bound="type[Function]")


class Context:
    """What `forward` leaves for `backward`: saved values, and any attribute that it sets."""

    saved: tuple[Any, ...] = ()

    def save(self, *values: Any) -> None:
        self.saved = values


class Function:
    """A function with a gradient of its own.

        class Square(ts.Function):
            example = (np.array([1.0, 2.0]),)

            @staticmethod
            def forward(ctx, x):
                ctx.save(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved
                return 2 * x * grad

        y = Square.apply(x)

    `forward` is given plain arrays and floats, and gives one, or a tuple of them. `backward` is given the gradient of
    each result, and gives that of each argument: None where it is zero. It is held against differences at the `example`
    arguments when the class is defined, or by `ts.register`; a function that was not checked cannot be applied.
    """

    example: ClassVar[tuple[Any, ...] | None] = None
    _checked: ClassVar[bool] = False

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        cls._checked = False
        if cls.example is not None:
            register(cls, cls.example)

    forward: ClassVar[Any]
    backward: ClassVar[Any]

    @classmethod
    def apply(cls, *arguments: Any, **settings: Any) -> Any:
        """The function of tensors; arrays and numbers, and all that is given by name, are constants."""
        if not cls._checked:
            raise ArgumentError(
                f"{cls.__name__} has not been checked, so it cannot be applied",
                hint=f"give it arguments to check its gradient at: ts.register({cls.__name__}, example=(...,))",
            )
        context = Context()
        values = [a.value if isinstance(a, Tensor) else a for a in arguments]
        results = _results(cls, cls.forward(context, *values, **settings))
        active = [k for k, argument in enumerate(arguments) if is_active(argument)]
        if not active:
            made = {k: constant(value) for k, value in enumerate(results)}
        else:
            made = bundle(
                {k: value for k, value in enumerate(results) if _is_floating(value)},
                tuple(arguments[k] for k in active),
                lambda seeds: _pulled(cls, context, values, results, seeds, active),
            )
            made |= {k: constant(value) for k, value in enumerate(results) if k not in made}
        return made[0] if len(results) == 1 else tuple(made[k] for k in range(len(results)))


def _is_floating(value: Any) -> bool:
    return type(value) is float or value.dtype.kind == "f"


def _results(function: type[Function], given: Any) -> list[Any]:
    results = list(given) if isinstance(given, tuple) else [given]
    if not results or any(result is None for result in results):
        raise ArgumentError(f"{function.__name__}.forward gives nothing", hint="return an array or a number")
    return [float(r) if type(r) in (int, float) else as_array(f"{function.__name__}.forward", r) for r in results]


def _zero(value: Any) -> Any:
    """The gradient of a result that nobody used; 0 times it would be NaN where it is infinite."""
    return 0.0 if type(value) is float else np.zeros_like(value)


def _pulled(
    function: type[Function],
    context: Context,
    values: Sequence[Any],
    results: Sequence[Any],
    seeds: Mapping[int, Any],
    active: Sequence[int],
) -> list[Any]:
    """The gradients of the active arguments."""
    complete = [seeds[k] if k in seeds else _zero(value) for k, value in enumerate(results)]
    given = function.backward(context, *complete)
    gradients = list(given) if isinstance(given, tuple) else [given]
    name = f"{function.__name__}.backward"
    if len(gradients) != len(values):
        raise ArgumentError(
            f"{name} gives {len(gradients)} gradients for {len(values)} arguments",
            hint="return one for each argument of forward, None where it is zero",
        )
    pulled = []
    for k in active:
        value = values[k]
        gradient = np.zeros(np.shape(value)) if gradients[k] is None else as_array(name, gradients[k])
        if gradient.shape != np.shape(value):
            raise ShapeError(
                f"{name} gives a gradient of shape {gradient.shape} for {_argument(function, k)}, which has "
                f"{np.shape(value)}",
                hint="a gradient has the shape of its argument: add up what was broadcast",
            )
        pulled.append(fitted(gradient.view(), value))  # a view: what it returned stays its own
    return pulled


def _argument(function: type[Function], position: int) -> str:
    """How `forward` calls an argument."""
    names = list(inspect.signature(function.forward).parameters)[1:]
    return f"`{names[position]}`" if position < len(names) else f"argument {position}"


def register(function: F, example: Sequence[Any], **settings: Any) -> F:
    """Checks a custom function at example arguments: only then can it be applied. Gives the function itself."""
    if not (isinstance(function, type) and issubclass(function, Function)):
        raise ArgumentError("register takes a subclass of ts.Function", hint="class Square(ts.Function): ...")
    for part in ("forward", "backward"):
        if not callable(getattr(function, part, None)):
            raise ArgumentError(f"{function.__name__} has no {part}", hint=f"def {part}(ctx, ...), a @staticmethod")
    if not isinstance(example, tuple | list):
        raise ArgumentError("the example is a tuple with the arguments of forward", hint="example=(np.ones(3), 2.0)")
    _Check(function, [_double(k, value) for k, value in enumerate(example)], settings).run()
    function._checked = True
    return function


def _double(position: int, value: Any) -> Any:
    if type(value) in (float, int, bool, str) or value is None:
        return value
    array = as_array(f"argument {position} of the example", value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


class _Check:
    """A backward held against central differences of its forward, element by element."""

    def __init__(self, function: type[Function], example: list[Any], settings: Mapping[str, Any]) -> None:
        self.function, self.example, self.settings = function, example, settings
        self.active = [k for k, v in enumerate(example) if type(v) is float or getattr(v, "dtype", None) == np.float64]
        if not self.active:
            raise ArgumentError(
                f"the example for {function.__name__} has no floating-point argument",
                hint="give one: example=(np.array([0.5, 1.5]),)",
            )

    def run(self) -> None:
        random = np.random.default_rng(0)
        context, before = Context(), copy.deepcopy(self.example)
        results = self.forward(context, self.example)
        weights = [random.uniform(0.5, 1.5, np.shape(r)) if _is_floating(r) else np.zeros(np.shape(r)) for r in results]
        seeds = {k: float(w) if type(r) is float else w for k, (w, r) in enumerate(zip(weights, results, strict=True))}
        gradients = _pulled(self.function, context, self.example, results, seeds, self.active)
        for k, (old, new) in enumerate(zip(before, self.example, strict=True)):
            if isinstance(old, np.ndarray) and not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
                raise ArgumentError(
                    f"{self.function.__name__} changes its {_argument(self.function, k)} in place",
                    hint="compute a new array: what it is given belongs to the caller",
                )
        scale = sum(float(np.sum(np.abs(r * w))) for r, w in zip(results, weights, strict=True))
        rounding = 8 * np.finfo(float).eps * scale
        for k, gradient in zip(self.active, gradients, strict=True):
            self.compare(k, np.asarray(gradient), weights, rounding, random)

    def forward(self, context: Context, arguments: list[Any]) -> list[Any]:
        return _results(self.function, self.function.forward(context, *arguments, **self.settings))

    def compare(
        self, k: int, gradient: NDArray[Any], weights: list[Any], rounding: float, random: np.random.Generator
    ) -> None:
        value = np.asarray(self.example[k])
        places = np.arange(value.size)
        if value.size > ENTRIES:
            places = np.sort(random.choice(places, ENTRIES, replace=False))
        differences = {int(p): self.difference(k, int(p), weights) for p in places}
        largest = max((abs(d) for d, _ in differences.values()), default=0.0)
        for place, (expected, step) in differences.items():
            actual = float(gradient.flat[place])
            if abs(actual - expected) <= TOLERANCE * largest + rounding / step:
                continue
            at = np.unravel_index(place, value.shape)
            element = f" at element [{', '.join(str(int(i)) for i in at)}]" if value.ndim else ""
            raise GradientMismatch(
                f"{self.function.__name__}.backward is wrong by {_argument(self.function, k)}{element}, which is "
                f"{float(value.flat[place]):.8g} there: it gives {actual:.8g}, differences of forward give "
                f"{expected:.8g}",
                hint="correct backward; at a kink, where there is no derivative, give another example",
            )

    def difference(self, k: int, place: int, weights: list[Any]) -> tuple[float, float]:
        """How the weighted results change with one element, and the step that showed it."""
        step = STEP * max(1.0, abs(float(np.asarray(self.example[k]).flat[place])))
        sides = []
        for sign in (1, -1):
            moved = np.array(self.example[k])
            moved.flat[place] += sign * step
            arguments = list(self.example)
            arguments[k] = float(moved) if type(self.example[k]) is float else moved
            results = self.forward(Context(), arguments)
            sides.append(sum(float(np.sum(r * w)) for r, w in zip(results, weights, strict=True)))
        return (sides[0] - sides[1]) / (2 * step), step
