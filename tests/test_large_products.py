"""Large products, which numpy computes: calls like earlier ones take a short way, and all others the long one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel.registers import Registers
from tensorswap.program import Program
from tensorswap.run import products

pytestmark = pytest.mark.compiled

SIZE = 512
ROWS = ts.program("Y[i,j] += A[i,k] * B[k,j]")


def arrays(rows: int = SIZE, dtype: str = "float32") -> dict[str, Any]:
    rng = np.random.default_rng(rows)
    return {"A": rng.standard_normal((rows, SIZE)).astype(dtype), "B": rng.standard_normal((SIZE, SIZE)).astype(dtype)}


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """One that has taken the short way, as on a CPU whose products are the library's."""
    monkeypatch.setattr(products, "registers", lambda: Registers(32, 16, by_lane=False))
    made = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    given = arrays()
    assert "numpy's matrix product" in made.plan(given).note, "the products of this file are large"
    for _ in range(3):
        made(given)
    assert made._way != made._called
    return made


def check(found: Any, given: dict[str, Any]) -> None:
    expected = given["A"].astype("float64") @ given["B"].astype("float64")
    assert found.dtype == np.result_type(*given.values())
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_the_short_way(program: Program) -> None:
    given = arrays()
    for found in (program(given), program(**given), program({"A": given["A"]}, B=given["B"])):
        check(found, given)
    assert program(given) is not program(given)


@pytest.mark.parametrize(
    "given",
    [arrays(SIZE + 8), arrays(3), arrays(dtype="float64"), {**arrays(), "A": arrays()["A"].T},
     {**arrays(), "A": arrays()["A"][::-1]}, {**arrays(), "A": arrays(dtype="float64")["A"]}],
    ids=["other sizes", "few rows", "another type", "turned", "from behind", "two types"],
)  # fmt: skip
def test_other_arguments(program: Program, given: dict[str, Any]) -> None:
    check(program(given), given)
    check(program(arrays()), arrays())


def test_what_is_wrong_is_refused(program: Program) -> None:
    given = arrays()
    with pytest.raises(ts.SwapError, match="size"):
        program(A=given["A"], B=given["B"][:-1])
    with pytest.raises(ts.SwapError, match="C"):
        program({"C": given["A"]}, **given)
    with pytest.raises(ts.SwapError, match="B"):
        program(A=given["A"])
    with pytest.raises(ts.SwapError, match="C"):
        program(A=given["A"], C=given["B"])
    for wrong in (list(given.values()), given["A"]):
        with pytest.raises(ts.SwapError, match="a mapping of names"):
            program(wrong)


def test_numbers_without_a_result_are_no_warning(program: Program) -> None:
    given = {**arrays(), "A": arrays()["A"].copy()}
    given["A"][0, 0] = np.inf
    with np.errstate(all="raise"):
        assert not np.isfinite(program(given)[0]).any()


def test_nothing_taken_away_is_not_below_zero() -> None:
    zeros = {"A": np.zeros((SIZE, SIZE)), "B": np.zeros((SIZE, SIZE))}
    assert not np.signbit(ts.program("Y[i,j] -= A[i,k] * B[k,j]")(zeros)).any()


def test_calls_that_are_looked_at_take_the_long_way(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(Program, "_looked_at", lambda self, arguments: seen.append(arguments) or {"Y": None})
    program(arrays())
    assert not seen
    with ts.debug(nan=True):
        program(arrays())
    assert len(seen) == 1


def test_several_outputs() -> None:
    adjoint = ROWS.adjoint(wrt=["A", "B"])
    given = {**arrays(), "Y.grad": arrays()["B"]}
    for _ in range(4):
        found = adjoint(given)
        np.testing.assert_allclose(found["A.grad"], given["Y.grad"] @ given["B"].T, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(found["B.grad"], given["A"].T @ given["Y.grad"], rtol=1e-3, atol=1e-3)
