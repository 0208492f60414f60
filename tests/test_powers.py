"""Powers by whole numbers and halves: products and roots that give what the interpreter gives, for every base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.program import Program
from tests.test_export_c import check_exported, needs_compiler
from tests.test_kernel_ir import check_source

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:a call is interpreted"),
]
INF, NAN = float("inf"), float("nan")
TINY = {np.float32: 1e-42, np.float64: 1e-310}  # below the normal numbers
LARGE = {np.float32: 1e30, np.float64: 1e155}  # whose square is too large, and the square's inverse is not too small
WHOLE = [*range(-3, 71), -5000, -1024, -1023, 1023, 1024, 5000, 2**53 + 1, -(2**63), 2**63 - 1]

# The exponent, and how many values j has: sizes are variables of the kernel in the first rows, and constants in others.
EXPONENTS = {
    "index": ("V[j,i] = T[j,i] ** j", 71),
    "from below zero": ("V[j,i] = T[j,i] ** (j-3)", 74),
    "steps of two": ("V[j,i] = T[j,i] ** (2*j+1)", 35),
    "from above": ("V[j,i] = T[j,i] ** (size(j)-1-j)", 71),
    "function": ("V[j,i] = pow(T[j,i], j-3)", 74),
    "constant size": ("V[j,i] = T[j,i] ** (j-i)", 71),
    "remainder": ("V[j,i] = T[j,i] ** (j%7-3)", 71),
    "branch": ("V[j,i] = (T[j,i] ** j if T[j,i] > 0 else T[j,i] ** (-j))", 71),
    "large": ("V[j,i] = T[j,i] ** (40*j)", 71),
    "gathered": ("V[j,i] = T[j,i] ** n[j]", len(WHOLE)),
    "five": ("V[j,i] = T[j,i] ** 5", 2),
    "minus two": ("V[j,i] = T[j,i] ** (-2)", 2),
    "a real five": ("V[j,i] = T[j,i] ** 5.0", 2),
    "a real minus two": ("V[j,i] = T[j,i] ** (-2.0)", 2),
    "more than a word": ("V[j,i] = T[j,i] ** 1e30", 2),
    "a truth": ("V[j,i] = T[j,i] ** (j > 0)", 2),
    "none": ("V[j,i] = T[j,i] ** (i-i)", 2),
    "a half": ("V[j,i] = T[j,i] ** 0.5", 2),
    "three halves": ("V[j,i] = T[j,i] ** 1.5", 2),
    "five halves": ("V[j,i] = pow(T[j,i], 2.5)", 2),
    "minus a half": ("V[j,i] = T[j,i] ** -0.5", 2),
    "minus three halves": ("V[j,i] = T[j,i] ** (-1.5)", 2),
}


def bases(dtype: Any) -> np.ndarray:
    tiny, large = TINY[dtype], LARGE[dtype]
    special = [0.0, -0.0, 1, -1, INF, -INF, NAN, 1e-300, 5e-324, tiny, -tiny, large, -large, 1 / large]
    plain = [0.5, -0.5, 1.5, -2.5, 3, -3, 1.000001, 0.97, -0.999]
    with np.errstate(over="ignore"):
        return np.array([*special, *plain, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)


def arrays(name: str, dtype: Any) -> tuple[Program, dict[str, Any]]:
    text, count = EXPONENTS[name]
    given: dict[str, Any] = {"T": np.tile(bases(dtype), (count, 1))}
    return ts.program(text), given | ({"n": np.array(WHOLE)} if "n[j]" in text else {})


def check_same(found: Any, wanted: np.ndarray) -> None:
    """Up to the roundings of some products; of the smallest numbers, up to some units in the last place."""
    assert found.dtype == wanted.dtype
    single = wanted.dtype == np.float32
    few = 4 * float(np.finfo(wanted.dtype).smallest_subnormal)
    np.testing.assert_allclose(found, wanted, rtol=3e-7 if single else 3e-13, atol=few)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXPONENTS)
def test_powers_and_their_adjoints(name: str, dtype: Any) -> None:
    program, given = arrays(name, dtype)
    value, wanted = program(given), program.run_reference(given)
    check_same(value, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(value)[number], np.signbit(wanted)[number])  # of zeros too
    adjoint = program.adjoint(wrt=["T"])
    seeded = {**given, "V.grad": np.ones_like(value)}
    check_same(adjoint(seeded), adjoint.run_reference(seeded))


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint32, np.uint64])
def test_exponents_of_other_types(dtype: Any) -> None:
    most = np.iinfo(dtype).max
    n = np.array([0, 1, 2, 7, 100, most - 1, most], dtype)
    program = ts.program("V[j,i] = T[i] ** n[j]\nW[j,i] = T[i] ** (n[j]-1)")
    given = {"T": np.array([0.0, 1, -1, 0.5, -2, INF, NAN]), "n": n}
    wanted = program.run_reference(given)
    for name, found in program(given).items():
        check_same(found, wanted[name])


@pytest.mark.compiled
def test_whole_bases() -> None:
    """A constant exponent gives whole numbers, which wrap around; another one, which may be negative, does not."""
    program = ts.program("V[j,i] = k[i] ** j\nW[i] = k[i] ** 5\nZ[i] = k[i] ** 41")
    given = {"k": np.array([0, 1, -1, 2, -3, 7]), "j": 70}
    found, wanted = program(given), program.run_reference(given)
    check_same(found["V"], wanted["V"])
    for name in "WZ":
        assert found[name].dtype == wanted[name].dtype == np.int64
        np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.compiled
def test_a_polynomial_of_another_degree() -> None:
    """The number of products follows from the size in each call."""
    program, t = ts.program("y[i] += c[j] * t[i] ** j"), np.linspace(-1.1, 1.1, 40)
    for count in (1, 2, 9, 50, 64, 65, 1024, 1025, 1500):
        c = np.sin(np.arange(count) + 1.0)
        wanted = np.polynomial.polynomial.polyval(t, c)
        np.testing.assert_allclose(program(c=c, t=t), wanted, rtol=1e-11, atol=1e-11)


def test_no_power_of_the_library_for_an_index() -> None:
    for text in ("y[i] += c[j] * t[i] ** j", "y[i] += c[j] * t[i] ** (size(j)-1-j)", "y[i] += c[j] * t[i] ** (-5)"):
        program = ts.program(text)
        for one, more in ((program, {}), (program.adjoint(wrt=["t"]), {"y.grad": (1000,)})):
            source = one.source({"c": (50,), "t": (1000,)} | more)
            assert "power_" in source
            assert "np.power" not in source
            assert "while" not in source


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["from below zero", "gathered"])
def test_sources(name: str) -> None:
    for dtype in (np.float32, np.float64):
        program, given = arrays(name, dtype)
        check_source(program, given)


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["from below zero", "gathered"])
def test_c_files(name: str, dtype: Any, tmp_path: Path) -> None:
    program, given = arrays(name, dtype)
    if "n" in given:  # a derivative has n[j] - 1, which must fit into a word
        given["n"] = np.where(np.abs(given["n"].astype(float)) > 2.0**54, 7, given["n"])
    check_exported(program, given, tmp_path)
