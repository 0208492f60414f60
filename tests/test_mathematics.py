"""The scalar functions of kernels: errors in units in the last place, special values, and loops that are vectorised."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy import special

from tensorswap.kernel import ir
from tensorswap.kernel.effort import Effort, effort_of
from tensorswap.kernel.functions import INSTRUCTIONS, REAL
from tensorswap.kernel.llvm import texts
from tensorswap.language.formula import power
from tensorswap.run.known_code import functions
from tensorswap.run.launch import launch
from tensorswap.run.machine_code import optimised, target

pytestmark = pytest.mark.compiled

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan
FUNCTIONS = [*REAL, "abs", "sqrt", "floor", "ceil", "round"]
WIDE = np.longdouble
IS_WIDE = np.finfo(WIDE).nmant > 60

# The errors that the docstrings name, for float32 and float64.
BOUNDS = {
    "exp": (1.1, 1.1), "expm1": (1.7, 1.9), "log": (0.9, 0.9), "log1p": (1.4, 1.4), "tanh": (1.5, 1.5),
    "sigmoid": (2.4, 2.4), "silu": (3.3, 3), "softplus": (2.1, 2), "sin": (1.7, 1.5), "cos": (1.7, 1.5),
    "erf": (1.9, 2), "gelu": (6, 7), "sqrt": (0.5, 0.5), "root": (0.5, 0.5), "three_halves": (1.5, 1.5),
    "five_halves": (2.5, 2.5), "inverse_root": (1.5, 1.5), "inverse_three_halves": (2.5, 2.5),
    "inverse_five_halves": (3.5, 3.5),
}  # fmt: skip

# Where most arguments are taken from: float32, then float64.
RANGES = {
    "exp": ((-106, 90), (-750, 711)), "expm1": ((-20, 90), (-50, 711)), "log": ((0, 10), (0, 10)),
    "log1p": ((-1, 10), (-1, 10)), "tanh": ((-12, 12), (-25, 25)), "sigmoid": ((-106, 20), (-750, 40)),
    "silu": ((-112, 20), (-760, 40)), "softplus": ((-106, 20), (-750, 40)), "sin": ((-100, 100), (-100, 100)),
    "cos": ((-100, 100), (-100, 100)), "erf": ((-4.5, 4.5), (-6.5, 6.5)), "gelu": ((-14.8, 6), (-39, 9)),
    "sqrt": ((0, 100), (0, 100)),
}  # fmt: skip
HALVES = {"root": 0.5, "three_halves": 1.5, "five_halves": 2.5, "inverse_root": -0.5, "inverse_three_halves": -1.5,
          "inverse_five_halves": -2.5}  # fmt: skip
RANGES |= dict.fromkeys(HALVES, ((0, 100), (0, 100)))


KINDS = {"f4": ir.F4, "f8": ir.F8, "i8": ir.WORD}
K, N = ir.Variable("k", ir.WORD), ir.Memory("n", ir.WORD)


class Loop:
    """A function of arrays x and y, made of a body for each of n elements: machine code, and the code of LLVM."""

    def __init__(self, name: str, kind: str, made: Callable[[ir.Load, ir.Memory], ir.Body]) -> None:
        x, y = (ir.Memory(word, KINDS[kind]) for word in "xy")
        body = made(ir.Load(x, K), y)
        source = f"test {name} {kind} {id(self)}"
        made = [x, y, N], (ir.Step(0, name, body),)
        (found,) = functions([(source, lambda: made)])
        self.code = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(found.address)
        (self.text,) = (
            text for text in texts(*made, launch, target()) if effort_of(text) in (Effort.LOOPS, Effort.VECTORS)
        )

    def __call__(self, x: Array, y: Array, n: int) -> None:
        self.code(x.ctypes.data, y.ctypes.data, np.array([n]).ctypes.data)


def each(*body: ir.Statement) -> ir.For:
    return ir.For(K, ir.ZERO, ir.Load(N, ir.ZERO), ir.ONE, body)


@cache
def elementwise(name: str, kind: str) -> Loop:
    return Loop(name, kind, lambda x, y: (each(ir.Store(y, K, ir.Call(name, (x,), KINDS[kind]))),))


@cache
def reduction(name: str, kind: str) -> Loop:
    best = ir.Variable("best", KINDS[kind])

    def body(x: ir.Load, y: ir.Memory) -> ir.Body:
        first = ir.Set(best, ir.Load(x.memory, ir.ZERO))
        step = each(ir.Set(best, ir.Call(name, (best, x), KINDS[kind])))
        return first, step, ir.Store(y, ir.ZERO, best)

    return Loop(name, kind, body)


@cache
def sum_of_exp(kind: str) -> Loop:
    shift, total = (ir.Variable(word, KINDS[kind]) for word in ("shift", "total"))

    def body(x: ir.Load, y: ir.Memory) -> ir.Body:
        start = ir.Set(shift, ir.Load(y, ir.ZERO)), ir.Set(total, ir.number(0, KINDS[kind]))
        step = each(ir.Set(total, total + ir.Call("exp", (x - shift,), KINDS[kind])))
        return *start, step, ir.Store(y, ir.ZERO, total)

    return Loop("sum of exp", kind, body)


def evaluate(name: str, x: Array) -> Array:
    y = np.empty_like(x)
    elementwise(name, x.dtype.str[1:])(x, y, len(x))
    return y


# -- references: of float64 arguments for float32, of long double ones for float64


def gauss(a: Array) -> Array:
    """exp(-a²/2), with the digits of a² that a product would round off."""
    high = a.astype(np.float32).astype(a.dtype)
    return np.asarray(np.exp(-high * high / 2) * np.exp((high - a) * (high + a) / 2))


def tail(a: Array) -> Array:
    """erfc(a / sqrt(2)) for a >= 0, from a series and a continued fraction."""
    if a.dtype == np.float64:
        return np.asarray(special.erfc(a * np.sqrt(0.5)))
    near, far = a < 3, np.clip(a, 3, 45)  # beyond, it is 0 in float64
    small = np.where(near, a, 0)
    term, total = small, small
    for n in range(1, 90):
        term = term * small * small / (2 * n + 1)
        total = total + term
    pi = np.arctan(WIDE(1)) * 4
    fraction = np.zeros_like(a)
    for n in range(140, 0, -1):
        fraction = n / (far + fraction)
    large = np.where(a > 45, 0, gauss(far) / (far + fraction))
    return np.asarray(np.where(near, 1 - total * gauss(small) * np.sqrt(2 / pi), large * np.sqrt(2 / pi)))


def erf(x: Array) -> Array:
    if x.dtype == np.float64:
        return np.asarray(special.erf(x))
    a = np.abs(x) * np.sqrt(WIDE(2))
    pi, z = np.arctan(WIDE(1)) * 4, np.minimum(np.abs(x), 1) ** 2
    series, term = np.zeros_like(x), np.ones_like(x)
    for n in range(30):
        series, term = series + term / (2 * n + 1), -term * z / (n + 1)
    return np.asarray(np.where(np.abs(x) < 1, x * series * 2 / np.sqrt(pi), np.copysign(1 - tail(a), x)))


def gelu(x: Array) -> Array:
    half = np.abs(x) * tail(np.abs(x)) / 2
    return np.asarray(np.where(np.isinf(x), np.where(x > 0, x, NAN), np.where(x < 0, -half, x - half)))


def logistic(x: Array, factor: Array | float) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) * factor / (1 + small))


REFERENCE: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "sqrt": np.sqrt, "sigmoid": lambda x: logistic(x, 1), "silu": lambda x: logistic(x, x),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), "erf": erf, "gelu": gelu,
    **{name: partial(lambda half, x: power(x, x.dtype.type(half)), half) for name, half in HALVES.items()},
}  # fmt: skip


def samples(name: str, kind: str, count: int) -> Array:
    """Arguments of every size, and many of those at which the function changes."""
    random = np.random.default_rng(1)
    low, high = RANGES[name][kind == "f8"]
    bits = random.integers(0, 2 ** (32 if kind == "f4" else 64), count, np.uint32 if kind == "f4" else np.uint64)
    parts = [
        random.uniform(low, high, 2 * count), random.uniform(-2, 2, count), random.uniform(-8, 8, count),
        random.choice([-1, 1], count) * 10.0 ** random.uniform(-12, 4, count),
    ]  # fmt: skip
    return np.concatenate([*(part.astype(kind) for part in parts), bits.view(kind)])


def errors(found: Array, exact: Array) -> Array:
    """In units in the last place; infinite where one of the two is NaN, or one is infinite, and the other is not."""
    rounded = exact.astype(found.dtype)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(found.dtype).max))
        error = np.abs(found.astype(exact.dtype) - exact) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(np.isfinite(rounded) & np.isfinite(found), error, np.where(same, 0, INF))


def check(name: str, x: Array) -> None:
    kind = x.dtype.str[1:]
    if kind == "f8" and not IS_WIDE:
        pytest.skip("no type that is wider than float64")
    with np.errstate(all="ignore"):
        error = errors(evaluate(name, x), REFERENCE[name](x.astype(np.float64 if kind == "f4" else WIDE)))
    worst = int(np.argmax(error))
    bound = 1.1 * BOUNDS[name][kind == "f8"]  # another machine may merge other products and sums
    assert error[worst] <= bound, f"{name}({x[worst]!r}) is off by {error[worst]} ulp"


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("name", BOUNDS)
def test_error(name: str, kind: str) -> None:
    check(name, samples(name, kind, 50_000 if kind == "f4" else 5_000))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_near_multiples_of_a_quarter_turn(name: str) -> None:
    random = np.random.default_rng(2)
    turns = np.concatenate([np.arange(1, 3000), random.integers(1, 2**50, 3000)]).astype(WIDE)
    known = [6381956970095103 * 2.0**797, 1e22, 2.0**1023, np.finfo(np.float64).max]  # the first is the closest of all
    near = turns * 2 * np.arctan(WIDE(1))
    check(name, near.astype(np.float32))
    check(name, np.concatenate([near.astype(np.float64), known]))


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("name", ["log", "log1p", "expm1", "tanh", "sin", "erf", "sqrt"])
def test_denormal_arguments(name: str, kind: str) -> None:
    tiny = np.finfo(kind).smallest_subnormal * 2.0 ** np.arange(0, 40).astype(kind)
    check(name, np.concatenate([tiny, tiny * 3, *([] if name == "log" else [-tiny])]).astype(kind))


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (1e4, INF), (-1e4, 0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (1e4, INF), (-1e4, -1)],
    "log": [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (-1, NAN), (-1e-40, NAN), (1, 0.0)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1, -INF), (INF, INF), (-INF, NAN), (-1.5, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e30, 1)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (-1e30, 0)],
    "silu": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, NAN), (-1e30, -0.0)],
    "softplus": [(INF, INF), (-INF, 0), (1e30, 1e30), (-1e30, 0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (1e-300, 1), (1e-10, 1)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e30, 1), (-1e30, -1)],
    "gelu": [(0.0, 0.0), (INF, INF), (-INF, NAN), (1e30, 1e30), (-1e30, 0)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1, NAN), (4, 2)],
    "abs": [(0.0, 0.0), (-0.0, 0.0), (-INF, INF), (-2.5, 2.5)],
    "sign": [(0.0, 0), (-3, -1), (3, 1), (INF, 1), (-INF, -1)],
    "floor": [(2.5, 2), (-2.5, -3), (-0.0, -0.0), (INF, INF)],
    "ceil": [(2.5, 3), (-2.5, -2), (-INF, -INF)],
    "round": [(2.5, 2), (3.5, 4), (-2.5, -2), (-0.0, -0.0), (INF, INF)],
    **{
        name: [(0.0, zero), (-0.0, zero), (INF, far), (-INF, far), (-1, NAN), (4, 4.0**half)]
        for name, half in HALVES.items()
        for zero, far in [(0.0, INF) if half > 0 else (INF, 0.0)]
    },
}


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, kind: str) -> None:
    arguments, expected = (np.array(column, kind) for column in zip(*SPECIAL[name], (NAN, NAN), strict=True))
    for repeats in (1, 17):  # a loop of scalars, and one of vectors
        found = evaluate(name, np.repeat(arguments, repeats))
        np.testing.assert_array_equal(found, np.repeat(expected, repeats))
        signed = ~np.isnan(found) & (name not in ("exp", "sigmoid", "gelu", "sign"))
        np.testing.assert_array_equal(np.signbit(found[signed]), np.signbit(np.repeat(expected, repeats)[signed]))


def test_every_function_has_special_values() -> None:
    assert SPECIAL.keys() == set(FUNCTIONS)
    assert {*INSTRUCTIONS} - {*FUNCTIONS} == {"fabs", "rint", "fma", "maximum", "minimum"}


# -- maximum and minimum


@pytest.mark.parametrize("kind", ["f4", "f8", "i8"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes(name: str, kind: str) -> None:
    numpy: Any = getattr(np, name)
    call = reduction(name, kind)
    random, result = np.random.default_rng(3), np.empty(1, kind)
    for size in (1, 2, 3, 7, 16, 33, 100):
        x = (random.standard_normal(size) * 100).astype(kind)
        call(x, result, size)
        assert result[0] == numpy.reduce(x)
        for place in range(size if kind != "i8" else 0):
            with_nan = x.copy()
            with_nan[place] = NAN
            call(with_nan, result, size)
            assert np.isnan(result[0]), (size, place)
    if kind != "i8":
        for a in (INF, -INF, 1.5, NAN):
            for b in (INF, -INF, -1.5, NAN):
                call(np.array([a, b], kind), result, 2)
                np.testing.assert_array_equal(result[0], numpy(a, b))


def test_extremes_of_integers_beyond_float64() -> None:
    x, result = np.array([2**62, 2**62 + 1, -(2**62), -(2**62) - 1]), np.empty(1, np.int64)
    for name, expected in (("maximum", 2**62 + 1), ("minimum", -(2**62) - 1)):
        reduction(name, "i8")(x, result, len(x))
        assert result[0] == expected


# -- vectors


def vector_code(loop: Loop, kind: str) -> str:
    """The optimised LLVM code, which has vectors of the type of the numbers."""
    with optimised(loop.text) as module:
        code = str(module)
    element = {"f4": "float", "f8": "double", "i8": "i64"}[kind]
    written = effort_of(loop.text) is Effort.VECTORS
    assert written or "llvm.loop.isvectorized" in code, "the loop is not vectorised"
    assert re.search(rf"<(vscale x )?\d+ x {element}>", code), "the loop has no vectors"
    assert not re.search(r"call [^\n]*@(exp|log|sin|cos|tan|erf|pow|fm)\w*\(", code), "the loop calls a function"
    return code


@pytest.mark.optimised
@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_are_vectorised(name: str, kind: str) -> None:
    vector_code(elementwise(name, kind), kind)


@pytest.mark.optimised
@pytest.mark.parametrize("kind", ["f4", "f8", "i8"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_reductions_are_vectorised(name: str, kind: str) -> None:
    wanted = rf"llvm.{name}.v\d+f" if kind != "i8" else f"llvm.vector.reduce.s{name[:3]}"
    assert re.search(wanted, vector_code(reduction(name, kind), kind))


@pytest.mark.optimised
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_sums_of_exp_are_vectorised(kind: str) -> None:
    assert re.search(r"fadd [^\n]*<\d+ x ", vector_code(sum_of_exp(kind), kind))
    x = np.linspace(-5, 5, 1001).astype(kind)
    result = np.array([5], kind)
    sum_of_exp(kind)(x, result, len(x))
    np.testing.assert_allclose(result[0], np.exp(x - 5, dtype=np.float64).sum(), rtol=1e-5 if kind == "f4" else 1e-13)
