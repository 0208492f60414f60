"""What a user is told who calls, or derives, in a way that cannot be: the reason, and what would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import SwapError
from tensorswap.plan import nest

X = np.arange(3.0)
AXES = [f"a{k}" for k in range(65)]
WIDE = f"Y[{','.join(AXES)}] = X[{','.join(AXES[:64])}] * Z[a64]"
TOLD: dict[str, tuple[Callable[[], Any], str, str]] = {
    "no loss": (lambda: ts.program("Y += X[i]**2").grad(), "loss is not computed", "differentiate one of Y"),
    "no loss, second order": (
        lambda: ts.program("Y += X[i]**2").hessian_vector(),
        "loss is not computed",
        "differentiate one of Y",
    ),
    "no inputs": (lambda: ts.program("loss += 2").grad(wrt=["x"]), "x is not an input", "the program has no inputs"),
    "nothing to differentiate by": (
        lambda: ts.program("loss += a[i]").grad(wrt=[]),
        "wrt names no input",
        "differentiate by some of a",
    ),
    "a size of the call": (
        lambda: ts.program("Y[i] = X[i]*2\nZ += Y[i]")(X=X, i=4),
        "index i has size 4 as given at the call but 3 on X (axis 0)",
        "`X` needs size(i) = 3",
    ),
    "a size of two inputs": (
        lambda: ts.program("Y[i] = X[i] * Z[i]")(X=X, Z=np.ones(4), i=4),
        "index i has size 4 on Z (axis 0) but 3 on X (axis 0)",
        "give Z and X the same size there",
    ),
    "a large number": (
        lambda: ts.program("Y[i] = X[i]*a")(X=X, a=2**64),
        "a is a whole number beyond 64 bits",
        "pass float(a)",
    ),
    "an update that names a step": (
        lambda: ts.program("for t:\n    X[t,i] = X[t,i]*2")(X=np.ones((2, 3))),
        "X is computed by the program, not an input",
        "the program has no inputs; an update of an input, `X[i] = X[i] * 2`, names no index of the block",
    ),
    "more axes than arrays have": (
        lambda: ts.program(WIDE)(X=np.ones((1,) * 64), Z=np.ones(2)),
        "Y has 65 axes",
        "at most 64",
    ),
    "two inputs without names": (
        lambda: ts.program("Y[i] = X[i]*a")(X, 2.0),
        "a call takes one mapping, or names: 2 came without",
        "p(X=..., a=...)",
    ),
    "memory for results": (
        lambda: ts.program("Y[i] = X[i]*2")(X=X, out=np.zeros(3)),
        "the program has no input 'out'",
        "results are arrays of their own",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_a_user_is_told(name: str) -> None:
    wrong, reason, instead = TOLD[name]
    with pytest.raises(SwapError) as caught:
        wrong()
    assert reason in str(caught.value)
    assert instead in str(caught.value)


@pytest.mark.compiled
@pytest.mark.parametrize("text", ["Y[i] = X[i] * 2", "Y[i,k] += X[i,j] * Z[j,k]"])
def test_inputs_without_names_at_a_later_call(text: str) -> None:
    """Later calls go another way, and a product that a library computes one of its own."""
    program = ts.program(text)
    arrays = {name: np.ones((400, 400) if "," in text else 3) for name in program.inputs}
    for _ in range(3):
        program(arrays)
        with pytest.raises(SwapError, match="a call takes one mapping, or names: 2 came without"):
            program(*[*arrays.values()][:2], *[1.0] * (2 - len(arrays)))


@pytest.mark.compiled
def test_long_chains_of_numbers_are_planned_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement is looked at a few times, not once for each pair of others."""
    looks = []
    join = nest.Nester.joined

    def counted(self: nest.Nester, *given: Any) -> Any:
        looks.append(1)
        return join(self, *given)

    monkeypatch.setattr(nest.Nester, "joined", counted)
    count = 150
    text = "\n".join(["A0 = x * 2", *(f"A{k + 1} = A{k} * 1.0001 + 0.1" for k in range(count))])
    program = ts.program(f"{text}\nreturn A{count}")
    expected = program.run_reference(x=1.0)
    assert program(x=1.0) == pytest.approx(expected)
    assert len(looks) < 10 * count
