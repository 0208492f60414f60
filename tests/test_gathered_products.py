"""Sums of products that read through indices: other factors and choices leave them, as they leave plain products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled

RANDOM = np.random.default_rng(6)
GIVEN: dict[str, Any] = {
    "X": RANDOM.standard_normal((12, 5)),
    "W": RANDOM.standard_normal((3, 8, 5)),
    "V": RANDOM.standard_normal((3, 5, 8)),
    "p": RANDOM.standard_normal(12),
    "k": RANDOM.integers(3, size=12),
    "q": RANDOM.integers(3, size=12),
}

TEXTS = {
    "a factor of the target": "Y[t,d] += p[t] * V[k[t],d,f] * F[t,f]",
    "a factor through the same index": "Y[t,d] += X[t,k[t]] * V[k[t],d,f] * F[t,f]",
    "a function within": "Y[t,d] += p[t] * V[k[t],d,f] * relu(F[t,f])",
    "a divisor": "Y[t,d] += V[k[t],d,f] * F[t,f] / (p[t]**2 + 1)",
    "a number": "Y[t,d] -= 3 * V[k[t],d,f] * F[t,f] * p[t]",
    "a choice of whole sums": "Y[t,d] += (p[t] * V[k[t],d,f] * F[t,f] if X[t,d] > 0 else 0)",
    "a choice of each term": "Y[t,d] += (p[t] * V[k[t],d,f] * F[t,f] if F[t,f] > 0 else 0)",
    "a choice of plain sums": "Y[t,d] += (p[t] * V[0,d,f] * F[t,f] if X[t,d] > 0 else 0)",
    "a choice of plain terms": "Y[t,d] += (p[t] * V[0,d,f] * F[t,f] if F[t,f] > 0 else 0)",
    "a guard": "Y[t,d] += p[t] * V[k[t],d,f] * F[t,f] if X[t,d] > 0",
    "two indices": "Y[t,d] += p[t] * V[k[t],d,f] * W[q[t],f,d] * F[t,f]",
    "into places": "Y[k[t],d] += p[t] * V[k[t],d,f] * F[t,f]\nsize(Y, 0) = 3",
}


def agree(program: ts.Program, given: dict[str, Any]) -> None:
    given = {name: array for name, array in given.items() if name in program.inputs}
    found, wanted = program(given), program.run_reference(given)
    for name, array in (wanted if isinstance(wanted, dict) else {"": wanted}).items():
        np.testing.assert_allclose(found[name] if name else found, array, rtol=1e-11, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", TEXTS)
def test_values_and_gradients(name: str) -> None:
    target = "Y[k,d]" if "places" in name else "Y[t,d]"
    text = f"F[t,f] += W[k[t],f,d] * X[t,d]\n{TEXTS[name]}\nloss += {target} ** 2".replace("Y[k,d]", "Y[e,d]")
    program = ts.program(text)
    agree(program, GIVEN)
    agree(program.grad(wrt=["X", "W", "V", "p"] if "p[t]" in text else ["X", "W", "V"]), GIVEN)


def test_a_mixture_of_experts_is_as_it_would_be_by_hand() -> None:
    """The product is made once, for the value and for the derivative by its other factor."""
    program = ts.program(
        "F[t,f] += W[k[t],f,d] * X[t,d]\nY[t,d] += p[t] * V[k[t],d,f] * relu(F[t,f])\nloss += Y[t,d] ** 2"
    )
    plan = str(program.grad(wrt=["X", "W", "V", "p"]).plan(**{n: GIVEN[n] for n in program.inputs}))
    assert "product_1[t,d] += V[k[t],d,f] * " in plan
    assert "p.grad[t] += Y.grad[t,d] * product_1[t,d]" in plan
    assert "if F[t,f] > 0 else 0" in plan


def test_an_index_may_be_anything_where_a_guard_does_not_hold() -> None:
    guarded = "B[t] = p[t]\nY[t,d] += V[k[t],d,f] * F[t,f] if B[t] > 0\nreturn Y"
    wild = np.where(GIVEN["p"] > 0, GIVEN["k"], 10**9)
    given = {"V": GIVEN["V"], "F": RANDOM.standard_normal((12, 8)), "p": GIVEN["p"], "k": wild}
    agree(ts.program(guarded), given)
    agree(ts.program(f"Z[t] += V[k[t],d,f] if p[t] > 0\n{guarded}, Z"), given)
    with pytest.raises(ts.SwapError, match="k"):
        ts.program(f"Z[t] += V[k[t],d,f]\n{guarded}, Z")(given)


def test_a_winner_is_an_index_that_a_guard_need_not_keep() -> None:
    """Its range is known: the sum is made without asking, and chosen then."""
    text = "k[t] argmax= R[t,e]\nZ[t] += V[k[t],d,f]\nY[t,d] += V[k[t],d,f] * F[t,f] if X[t,d] > 0\nreturn Y, Z"
    given = {"V": GIVEN["V"], "F": RANDOM.standard_normal((12, 8)), "X": GIVEN["X"], "R": GIVEN["X"][:, :3].copy()}
    program = ts.program(text)
    agree(program, given)
    assert "sum_1[t,d] += V[k[t],d,f] * F[t,f]\n" in str(program.plan(**given))
    alone = ts.program(text.replace("Z[t] += V[k[t],d,f]", "Z[t] = p[t]"))
    agree(alone, {**given, "p": GIVEN["p"]})
    assert "sum_1" not in str(alone.plan(**given, p=GIVEN["p"]))  # nothing has shown that it may be read


def test_each_step_of_a_block_has_its_own_sum() -> None:
    text = "Z[t] += V[k[t],d,f]\nfor t:\n    y[d] += V[k[t],d,f] * F[t,f] if x[d] > 0\n    Y[t,d] = y[d]\nreturn Y, Z"
    agree(ts.program(text), {**{n: GIVEN[n] for n in "Vk"}, "F": RANDOM.standard_normal((12, 8)), "x": GIVEN["X"][0]})


def test_derivatives_of_sums_into_places() -> None:
    """They do not need the value itself, whose size nobody tells them."""
    text = "size(Y, 0) = 9\nY[q[t]] += A[t,d] * B[d,t] * c[t] if x[d] > 0"
    given = {"q": GIVEN["q"], "A": GIVEN["X"], "B": GIVEN["X"].T.copy(), "c": GIVEN["p"], "x": GIVEN["X"][0]}
    program = ts.program(text)
    agree(program, given)
    agree(program.adjoint(wrt=["A", "B", "c"]), {**given, "Y.grad": RANDOM.standard_normal(9)})
    agree(program.tangent(wrt=["A", "c"]), {**given, "A.dot": GIVEN["X"] * 2, "c.dot": GIVEN["p"] * 3})


def test_a_step_writes_the_tensor_that_it_copies_a_part_of() -> None:
    text = "for b:\n    A[b,i] += X[b,i]\n    A[b,i] += A[b,i] * z[j]\n    B[b,i] = A[b,i]\nreturn A, B"
    agree(ts.program(text), {"X": GIVEN["X"], "z": GIVEN["p"]})
