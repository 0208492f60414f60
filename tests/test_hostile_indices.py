"""Gathered indices out of bounds, in every form of gather and scatter: an error that says where, never a signal.

The whole runs in a process of its own, so that a signal is a failure of one test and not the end of all.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import tuning

pytestmark = pytest.mark.compiled

SIZE, COUNT = 6, 40
VALUES = (-1, SIZE, 2**31, 2**63 - 1)
TYPES = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
RANDOM = np.random.default_rng(0)


def given(**others: Any) -> dict[str, Any]:
    """Inputs of which `g` is the one that goes wrong."""
    g = np.arange(COUNT) % SIZE
    return {"g": g, **others}


E_, W, X = RANDOM.standard_normal((SIZE, 3)), RANDOM.standard_normal((COUNT, 3)), RANDOM.standard_normal(SIZE)
SQUARE = RANDOM.standard_normal((SIZE, SIZE))

# a program, its inputs, the access that fails, and its axis
FORMS: dict[str, tuple[Callable[[], ts.Program], dict[str, Any], str, int]] = {
    "gather": (lambda: ts.program("Y[i,d] = E[g[i],d]"), given(E=E_), "E[g[i],d]", 0),
    "gather of the last axis": (lambda: ts.program("Y[d,i] = E[d,g[i]]"), given(E=SQUARE), "E[d,g[i]]", 1),
    "gather in a sum": (lambda: ts.program("s += X[g[i]] * W[i,d]"), given(X=X, W=W), "X[g[i]]", 0),
    "gather in a max": (lambda: ts.program("s max= X[g[i]]"), given(X=X), "X[g[i]]", 0),
    "gather in an argmax": (lambda: ts.program("s argmax= X[g[i]]"), given(X=X), "X[g[i]]", 0),
    "both axes": (lambda: ts.program("s += E[g[i],g[i]]"), given(E=SQUARE), "E[g[i],g[i]]", 0),
    "scatter": (
        lambda: ts.program("size(Y, 0) = 6\nY[g[i],d] += W[i,d]"), given(W=W), "Y[g[i],d]", 0),
    "scatter of the greatest": (
        lambda: ts.program("size(Y, 0) = 6\nY[g[i]] max= W[i,0]"), given(W=W), "Y[g[i]]", 0),
    "scatter and gather": (
        lambda: ts.program("size(Y, 0) = 6\nY[g[i]] += X[h[i]]"), given(X=X, h=np.zeros(COUNT, int)), "Y[g[i]]", 0),
    "block": (
        lambda: ts.program("for t:\n    H[t] = X[g[t]] + (H[t-1] if t > 0 else 0)"), given(X=X), "X[g[t]]", 0),
    "guard": (lambda: ts.program("s += W[i,0] if X[g[i]] > 0"), given(X=X, W=W), "X[g[i]]", 0),
    "branch": (
        lambda: ts.program("Y[i] = X[g[i]] if W[i,0] < 9 else W[i,0]"), given(X=X, W=W), "X[g[i]]", 0),
    "nested": (
        lambda: ts.program("Y[i] = X[h[g[i]]]"), given(X=X, h=np.arange(SIZE)), "h[g[i]]", 0),
    "arithmetic": (
        lambda: ts.program("Y[i] = X[1*g[i]+0]"), given(X=X), "X[1*g[i]+0]", 0),
    "adjoint of a gather": (
        lambda: ts.program("Y[i,d] = E[g[i],d]").adjoint(["E"]), given(E=E_) | {"Y.grad": W}, "E[g[i],d]", 0),
    "adjoint of a scatter": (
        lambda: ts.program("size(Y, 0) = 6\nY[g[i],d] += W[i,d]").adjoint(["W"]),
        given(W=W) | {"Y.grad": E_}, "Y[g[i],d]", 0),
    "tangent": (
        lambda: ts.program("Y[i,d] = E[g[i],d]**2").tangent(["E"]), given(E=E_) | {"E.dot": E_}, "E[g[i],d]", 0),
    "gradient": (
        lambda: ts.program("Y[i] = X[g[i]]\nloss += Y[i]**2").grad("loss", ["X"]), given(X=X), "X[g[i]]", 0),
}  # fmt: skip

FORMS["embedding"] = (
    lambda: ts.load("embedding"),
    {"weight": RANDOM.standard_normal((SIZE, 3)), "input": np.arange(COUNT) % SIZE},
    "weight[input",
    0,
)
FORMS["nll_loss"] = (
    lambda: ts.load("nll_loss"),
    {"input": RANDOM.standard_normal((COUNT, SIZE)), "target": np.arange(COUNT) % SIZE},
    "target",
    -1,
)
FORMS["cross_entropy"] = (lambda: ts.load("cross_entropy"), FORMS["nll_loss"][1], "target", -1)


def wrong_name(arguments: dict[str, Any]) -> str:
    return next(name for name in ("g", "target", "input") if name in arguments)


def refused(program: ts.Program, arguments: dict[str, Any], value: int, access: str, axis: int) -> str | None:
    """What is wrong with the way in which a call is refused, if anything is."""
    try:
        program(arguments)
    except ts.SwapError as error:
        text = str(error).split("\n")[0]
        told = [access.replace(" ", ""), f"position {value} of axis {axis if axis >= 0 else ''}", "=7"]
        missing = [part for part in told if part not in text and part not in text.replace(" ", "")]
        return f"`{text}` lacks {missing}" if missing else None
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "it ran"


def with_value(arguments: dict[str, Any], value: int, dtype: Any = np.int64) -> dict[str, Any]:
    """The arguments with a wrong value at position 7."""
    name = wrong_name(arguments)
    bad = arguments[name].astype(dtype)
    bad[7] = value
    return {**arguments, name: bad}


def main() -> None:
    faulthandler.enable()
    for form, (make, arguments, access, axis) in FORMS.items():
        for value in VALUES:
            told = refused(make(), with_value(arguments, value), value, access, axis)
            if told:
                print(f"{form}, first call, {value}: {told}")
        for parallel in (10**9, 0):
            tuning.PARALLEL = parallel
            program = make()
            for _ in range(3):
                program(arguments)
            for value in VALUES:
                for _ in range(2):
                    told = refused(program, with_value(arguments, value), value, access, axis)
                    if told:
                        print(f"{form}, later call, {value}: {told}")
                program(arguments)
    program = ts.program("Y[i,d] = E[g[i],d]")
    for dtype in TYPES:
        fine = given(E=E_) | {"g": given()["g"].astype(dtype)}
        limits = np.iinfo(dtype)
        for value in {SIZE, int(limits.min), int(limits.max), *VALUES}:
            if limits.min <= value <= limits.max and not 0 <= value < SIZE:
                program(fine)
                told = refused(program, with_value(fine, value, dtype), value, "E[g[i],d]", 0)
                if told:
                    print(f"{np.dtype(dtype)}, {value}: {told}")
    print("done")


def test_every_gather_and_scatter_refuses_indices_out_of_bounds() -> None:
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.test_hostile_indices"], capture_output=True, text=True, env=environment,
        timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "done\n"


def test_indices_are_no_floats() -> None:
    program = ts.program("Y[i] = X[g[i]]")
    for g in (np.zeros(3), np.full(3, np.nan), np.zeros(3, bool)):
        with pytest.raises(ts.SwapError, match="g is used as an integer, but has dtype"):
            program(X=X, g=g)


if __name__ == "__main__":
    main()
