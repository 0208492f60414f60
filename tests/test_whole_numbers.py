"""Whole numbers at the ends of 64 bits: index expressions never wrap around, values wrap as numpy's do."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError

pytestmark = pytest.mark.filterwarnings("ignore:a call is interpreted")
LEAST, MOST = -(2**63), 2**63 - 1
X = np.arange(5.0)

# an index expression, gathered values, and what Python's own integers give; None: out of bounds
EXACT: list[tuple[str, list[int], list[float] | None]] = [
    ("Y[i] = X[abs(g[i])//2305843009213693952]", [LEAST, 0, 1], [4, 0, 0]),
    ("Y[i] = X[min(max(3*g[i],0),4)]", [2**62, 0, 1], [4, 0, 3]),
    ("Y[i] = X[min(max(g[i]*g[i]*g[i],0),4)]", [2**22, 0, 1], [4, 0, 1]),
    ("Y[i] = X[min(max(g[i]*g[i]*g[i]*g[i],0),4)]", [2**20, 0, 1], [4, 0, 1]),
    ("Y[i] = 7 + X[4*g[i]]", [2**62, 0, 1], None),
    ("Y[i] += 7 + X[4*g[i]] if inside", [2**62, 0, 1], [0, 7, 11]),
    ("Y[i] += 7 + X[g[i]+1] if inside", [MOST, -1, 1], [0, 7, 9]),
    ("Y[i] += 7 + X[g[i]-1] if inside", [LEAST, 1, 2], [0, 7, 8]),
    ("Y[i] += 7 + X[-g[i]] if inside", [LEAST, 0, -2], [0, 7, 9]),
    ("Y[i] = X[(3*g[i])%5]", [2**62, 0, 1], [3 * 2**62 % 5, 0, 3]),
    ("Y[i] = X[min(g[i]//(-1), 3)]", [LEAST, -2, -1], [3, 2, 1]),
    ("Y[i] = X[max(min(g[i]-h[i], 4), 0)]", [MOST, 0, 1], [4, 0, 2]),
    ("Y[i] = X[min(abs(g[i]-h[i]), 4)]", [MOST, 0, 1], [4, 0, 2]),
]
OPPOSITE = np.array([LEAST, 0, -1])

# programs whose index arithmetic leaves 64 bits by the text alone
BY_TEXT: list[tuple[str, dict[str, Any], list[float]]] = [
    ("size(i) = 2\nY[i] = Z[(i*4611686018427387904*2)//9223372036854775807]", {"Z": X}, [0, 1]),
    ("size(j) = 4\nY[i] += X[i]*(j+1) if j*4611686018427387904*2 >= i", {"X": X[1:]}, [10, 18, 27, 36]),
    ("size(j) = 4\nY[i] += 1 if i <= j*4611686018427387904*2+0*size(X, 0)", {"X": X, "i": 3}, [4, 3, 3]),
    ("Y[i] = X[i] + 1 if 4611686018427387904*i*size(i) >= 0", {"X": X}, [1, 2, 3, 4, 5]),
]


def main() -> None:
    faulthandler.enable()
    for text, g, expected in EXACT:
        program = ts.program(text)
        arguments = {"X": X, "g": np.array(g)} | ({"h": OPPOSITE} if "h[" in text else {})
        small = {**arguments, "g": np.zeros(3, np.int64)} | ({"h": np.zeros(3, np.int64)} if "h[" in text else {})
        first, later = program, ts.program(text)
        for _ in range(3):
            later(small)
        for name, run in (("first", first), ("later", later), ("interpreted", program.run_reference)):
            try:
                found = run(arguments).tolist()
            except BoundsError:
                found = None
            if found != expected:
                print(f"{text}, {name}: {found}")
    # a scatter that would end in a signal
    spread = ts.program("size(i) = 8\nY[(i*4611686018427387904*2)//549755813888] += X[i]")
    found = spread(X=np.arange(8.0))
    if found.shape != (7 * 2**24 + 1,) or found[:: 2**24].tolist() != list(range(8)):
        print("scatter", found.shape, found[:: 2**24])
    for size in (1, 3):  # the least number by -1 is one more than the greatest: a machine stops there
        for operator in ("//", "%"):
            program, g = ts.program(f"Y[i] = g[i] {operator} (-size(i))"), np.full(size, LEAST)
            if program(g=g).tolist() != program.run_reference(g=g).tolist():
                print(program, program(g=g))
    power = ts.program("Y[i] = g[i] ** 9223372036854775807")
    found = power(g=np.array([3, 2, -1, 1, 0])).tolist()
    if found != [(pow(3, MOST, 2**64) + 2**63) % 2**64 - 2**63, 0, -1, 1, 0]:
        print("power", found)
    print("done")


@pytest.mark.compiled
def test_index_arithmetic_never_wraps_around() -> None:
    """In a process of its own: a place beyond memory is a signal."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.test_whole_numbers"], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "done\n"


@pytest.mark.compiled
@pytest.mark.parametrize(("text", "arguments", "expected"), BY_TEXT)
def test_comparisons_of_indices_never_wrap_around(text: str, arguments: dict[str, Any], expected: list[float]) -> None:
    program = ts.program(text)
    assert program(arguments).tolist() == expected
    assert program.run_reference(arguments).tolist() == expected


U = np.uint64
UNSIGNED: list[tuple[str, list[int], list[int]]] = [
    ("Y[i] = 1.0 if g[i]-h[i] > 5 else 0.0", [3, 9], [4, 9]),
    ("Y[i] = 0.5*(g[i]-h[i])", [3, 9], [4, 9]),
    ("Y[i] = (g[i]*h[i])//3", [2**32 - 1, 5], [2**32 - 1, 6]),
    ("Y[i] = max(g[i]*h[i], 5)", [2**32 - 1, 5], [2**32 - 1, 6]),
    ("S += g[i]*h[i]\nY[i] = S//3 + g[i]", [2**62, 2**62], [1, 2]),
    ("T[i] = g[i]*h[i]\nm max= T[i]", [2**62, 1], [3, 1]),
    ("T[i] = g[i]*h[i]\nm argmax= T[i]", [2**62, 1], [3, 1]),
    ("T[i] = g[i]*h[i]\nY[i] = 1 if T[i] < 4 else 2", [2**62, 1], [3, 1]),
    ("T[i] = g[i]+h[i]\nY[i] = 0.5*T[i]", [2**62, 1], [2**63 - 1, 1]),
    ("Y[i] = -g[i] + h[i]*2.0", [1, 2], [1, 2]),
]


@pytest.mark.compiled
@pytest.mark.parametrize(("text", "g", "h"), UNSIGNED)
def test_unsigned_words_are_compiled_as_they_are_interpreted(text: str, g: list[int], h: list[int]) -> None:
    program = ts.program(text)
    arguments = {"g": np.array(g, U), "h": np.array(h, U)}
    expected = program.run_reference(arguments)
    np.testing.assert_array_equal(program(arguments), expected)
    later = ts.program(text)
    for _ in range(2):
        later(g=np.array([1, 1], U), h=np.array([1, 0], U))
    np.testing.assert_array_equal(later(arguments), expected)


@pytest.mark.compiled
def test_random_numbers_take_their_arguments_as_64_bits() -> None:
    program = ts.program("Y[i] = uniform(seed, i*4611686018427387904*3)")
    np.testing.assert_array_equal(program(i=4, seed=1), program.run_reference(i=4, seed=1))


@pytest.mark.parametrize("value", ["2**63", "2**64", "2**9999999", "4611686018427387904*4", "-9223372036854775807-2"])
def test_numbers_of_a_text_that_leave_64_bits_are_refused(value: str) -> None:
    """In a product with floating point they would count as what is left of them in 64 bits: 0, for 2**64."""
    for text in (f"Y[i] = X[i] * ({value})", f"Y[i] = X[i] if i < {value}"):
        with pytest.raises(ts.SwapError, match="does not fit a 64-bit integer"):
            ts.program(text)


def test_numbers_of_a_text_that_fit_are_taken() -> None:
    assert ts.program("Y[i] = X[i] * (-9223372036854775807 - 1)").run_reference(X=X)[1] == float(LEAST)
    assert ts.program("Y[i] = X[i] * 2.0**64").run_reference(X=X)[1] == 2.0**64
    assert ts.program("Y[i] = 0*X[i] + 2**10**9").run_reference(X=X)[1] == np.inf  # `10**9` is no plain exponent


if __name__ == "__main__":
    main()


@pytest.mark.compiled
def test_short_dividends_by_any_divisor() -> None:
    """They are divided as real numbers; the results are those of whole numbers all the same."""
    divisors = [1, -1, 2, 3, -3, 7, 1000, 2**31, 2**52 + 1, 2**53 + 1, -(2**53) - 1, 2**62 + 3, 2**63 - 1, -(2**63)]
    text = (
        "Q[k,s] = (k - 40) // d[s]\nR[k,s] = (k - 40) % d[s]\nB[k,s] = (k * 1000003 + 2**40) // d[s]\nA[i] = X[i//n[0]]"
    )
    program = ts.program(text.replace("2**40", str(2**40)))
    arrays = {"d": np.array(divisors), "X": np.arange(5.0), "n": np.array([3])}
    found, wanted = program(arrays, k=97, i=15), program.run_reference(arrays, k=97, i=15)
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
    assert "short_quotient" in program.source(arrays, k=97, i=15)
