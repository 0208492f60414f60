"""Guards that hold an index against whole numbers of any kind: each means what it says, as a bound of a loop or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.errors import SwapError

from .daily import LONG

pytestmark = pytest.mark.compiled
check = settings(
    max_examples=500 if LONG else 15, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
X = np.arange(1.0, 9.0)
FORMS = {
    "a loop": ("Y[b,i] = X[i] if {}", {"X": X}),
    "a sum": ("Y[b] += X[i] if {}", {"X": X}),
    "a product": ("Y[b,i,j] += A[i,k] * B[j,k] if {}", {"A": np.ones((18, 8)), "B": np.ones((16, 8))}),
    "steps": ("for t:\n    Y[t,b] += X[i] * t if {}\nsize(t) = 2", {"X": X}),
}
FAR = 2**61
GUARDS: dict[str, tuple[str, dict[str, Any]]] = {
    "a power": ("i < n[b]**2", {"n": [2, 1]}),
    "a function": ("i < sign(n[b]) * 4", {"n": [2, -3]}),
    "relu": ("-i <= relu(n[b])", {"n": [-2, 3]}),
    "a truth": ("i < n[b] + (n[b] > 1)", {"n": [2, 1]}),
    "a power of two": ("i < n[b] // 2**1", {"n": [6, -5]}),
    "rounded": ("i < n[b] + floor(2)", {"n": [2, 0]}),
    "a remainder": ("i < n[b] % 5", {"n": [FAR + 2, -FAR]}),
    "equal to a remainder": ("n[b] % 5 == i", {"n": [FAR + 2, 3]}),
    "a sum of two": ("i <= n[b] + m[b]", {"n": [-FAR, 3], "m": [FAR - 1, -1]}),
    "a difference": ("i <= n[b] - m[b]", {"n": [FAR, 3], "m": [FAR + 1, 1]}),
    "the size of a number": ("i < abs(n[b]) % 7", {"n": [-FAR - 3, 4]}),
    "a large number in the text": ("i < n[b] - 1125899906842620", {"n": [2**50 - 1, 0]}),
    "a large number beside the index": ("i + 2199023255552 < n[b]", {"n": [2**41 + 5, 3]}),
    "a large factor of the index": ("i * 1099511627776 < n[b]", {"n": [2**42 + 5, 3]}),
    "the greatest": ("i <= n[b]", {"n": [2**63 - 1, -(2**63)]}),
    "the least": ("3 - i <= n[b]", {"n": [-(2**63), 2**63 - 1]}),
    "a sum that wraps around": ("i < n[b] + 1", {"n": [2**63 - 1, 2]}),
    "a sum with an index that wraps around": ("n[b] + b >= i", {"n": [2, 2**63 - 1]}),
    "a difference that wraps around": ("i - 1 < n[b] - 1", {"n": [-(2**63), 3]}),
    "a sign that wraps around": ("i < -n[b]", {"n": [-(2**63), -3]}),
    "a size less what wraps around": ("i < size(i) - n[b]", {"n": [-(2**63), 15]}),
    "a condition that no index decides": ("n[b] % 7 == 3", {"n": [7 * 2**50 + 3, 4]}),
    "a quotient that another condition protects": ("n[b] > 0 and i < 10 // n[b]", {"n": [3, 0]}),
}


def check_same(text: str, arrays: dict[str, Any]) -> None:
    program = ts.program(text)
    found, wanted = program(arrays), program.run_reference(arrays)
    np.testing.assert_array_equal(found, wanted, err_msg=text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GUARDS)
def test_whole_numbers_of_any_kind(name: str, form: str) -> None:
    guard, given = GUARDS[name]
    text, arrays = FORMS[form]
    check_same(text.format(guard), {**arrays, **{k: np.array(v) for k, v in given.items()}, "b": 2})


@pytest.mark.filterwarnings("ignore:a call is interpreted")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shift", [2**40 - 10, 2**41, -(2**41), 2**59, 2**60, 2**60 + 1, -(2**60), 2**61, -(2**61)])
def test_numbers_of_a_call_as_large_as_any(shift: int, form: str) -> None:
    """Numbers beside an index that are as large as those that are read, and those which kernels hold these at."""
    text, arrays = FORMS[form]
    arrays = {**arrays, "n": np.array([shift + 5, shift]), "b": 2, "s": shift}
    for guard in ("i + s {} n[b]", "i {} n[b] - s", "n[b] {} s + i", "i - s {} -n[b]", "i + s {} n[b] + b"):
        for sign in ("<", "<=", ">", ">=", "=="):
            check_same("s: int\n" + text.format(guard.format(sign)), arrays)


LEAVES = ["n[b]", "m[b]", "n[b]", "h", "b", "s", "size(i)", "2", "3", "7"]
INT64 = st.sampled_from([0, 1, 2, 3, 5, 8, -1, -4, 2**40, 2**45 + 1, -(2**50), FAR, -FAR - 1, 2**63 - 1, -(2**63)])
NEAR = st.sampled_from([0, 1, -1, 5, -40])


def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.flatmap(lambda p: st.sampled_from([f"({p[0]} {sign} {p[1]})" for sign in "+-*"])),
        pairs.flatmap(lambda p: st.sampled_from([f"{f}({p[0]}, {p[1]})" for f in ("min", "max")])),
        inner.flatmap(lambda e: st.sampled_from([f"{f}({e})" for f in ("abs", "sign", "relu", "floor")])),
        inner.flatmap(lambda e: st.sampled_from([f"({e} // 3)", f"({e} % 5)", f"({e})**2", f"-{e}", f"({e} > 2)"])),
        pairs.map(lambda p: f"({p[0]} if {p[1]} > 1 else 2)"),
    )


EXPRESSIONS = st.sampled_from(LEAVES) | st.recursive(st.sampled_from(LEAVES), longer, max_leaves=4)
SIDES = st.sampled_from(["i", "i", "i + 2", "3 - i", "2 * i", "i + b", "i + n[b]", "n[b] - i", "i + s", "s * i"])
SIGNS = st.sampled_from(["<", "<=", ">", ">=", "=="])


@pytest.mark.filterwarnings("ignore:a call is interpreted")  # numbers of the call beyond 2**60 are
@check
@given(
    st.sampled_from(sorted(FORMS)),
    st.sampled_from("ijk"),
    SIDES,
    SIGNS,
    EXPRESSIONS,
    st.lists(INT64, min_size=6, max_size=6),
    st.booleans(),
    NEAR,
)
def test_expressions_that_nobody_has_thought_of(
    form: str, index: str, side: str, sign: str, value: str, numbers: list[int], together: bool, near: int
) -> None:
    """In a product each index is another thing to a tile. A number of the call may be near one that is read."""
    numbers = [*numbers[:5], max(min(numbers[0] + near, 2**63 - 1), -(2**63))] if together else numbers
    text, arrays = FORMS[form]
    side = side.replace("i", index) if form == "a product" else side
    arrays = {**arrays, "n": np.array(numbers[:2]), "m": np.array(numbers[2:4]), "h": np.array(numbers[4]), "b": 2}
    try:
        program = ts.program("s: int\n" + text.format(f"{side} {sign} {value}"))
        arrays = {name: array for name, array in arrays.items() if name in (*program.inputs, "b")} | {"s": numbers[5]}
        program.run_reference(arrays)
    except SwapError:
        return
    check_same(str(program), arrays)
