"""Programs are pickled and copied, before and after they have run."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tensorswap as ts

A, B = np.arange(6.0).reshape(2, 3), np.ones((3, 4))
TEXT = "Y[i,j] += A[i,k] * B[k,j]\nloss += Y[i,j]**2"


@pytest.mark.compiled
def test_a_program_that_has_run_is_pickled_and_copied() -> None:
    made = ts.program(TEXT)
    along = {"A": A, "B": B, "A.dot": A}
    derived = {
        "program": (made, {"A": A, "B": B}),
        "gradient": (made.grad("loss", ["A", "B"]), {"A": A, "B": B}),
        "adjoint": (made.adjoint(["A"]), {"A": A, "B": B, "loss.grad": 1.0}),
        "tangent": (made.tangent(["A"]), along),
        "twice": (made.hessian_vector("loss", ["A"]), along),
        "batch": (made.batch("n", ["A"]), {"A": A[None], "B": B}),
    }
    for name, (program, arguments) in derived.items():
        expected = program(arguments)
        program(arguments)
        for other in (pickle.loads(pickle.dumps(program)), copy.copy(program), copy.deepcopy(program)):
            assert other == program, name
            assert str(other) == str(program)
            np.testing.assert_equal(other(arguments), expected)


def test_optional_tensors_and_definitions_stay_when_pickled() -> None:
    loaded = ts.load("cross_entropy")
    arguments = {"input": np.ones((3, 4)), "target": np.array([0, 1, 3])}
    other = pickle.loads(pickle.dumps(loaded))
    assert str(other) == str(loaded)
    assert other.run_reference(arguments) == loaded.run_reference(arguments)


def test_a_derivative_refuses_what_its_program_refuses_after_pickling() -> None:
    derived = ts.program("Y[i] = X[g[i]]").adjoint(["X"])
    other = pickle.loads(pickle.dumps(derived))
    with pytest.raises(ts.SwapError, match="asks for position 9"):
        other.run_reference({"X": A[0], "g": np.array([9]), "Y.grad": np.ones(1)})


def test_a_deep_expression_is_pickled() -> None:
    program = ts.program("y = " + " + ".join(["x"] * 240))
    assert pickle.loads(pickle.dumps(program)) == program
    assert pickle.loads(pickle.dumps(program.grad("y", ["x"]))).run_reference(x=1.0)["x.grad"] == 240
