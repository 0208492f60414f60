"""Blocks whose steps all threads share: right forward and backward, whatever the steps look like, and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.language.ir import Access
from tensorswap.plan.merge import never_meet
from tensorswap.run import call, tuning
from tensorswap.training import training_loop

from .daily import share
from .test_compiled import check_compiled
from .test_export_c import check_exported
from .test_kernel_ir import check_source

pytestmark = pytest.mark.compiled

RANDOM = np.random.default_rng(0)
X, W = RANDOM.standard_normal(23), RANDOM.standard_normal((23, 23)) / 5
LONG = RANDOM.standard_normal(97)  # enough for sums by each thread
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "neighbours": (
        "x[0,i] = x0[i]\nfor t:\n"
        "  x[t+1,i] = x[t,i] + 0.1*((x[t,i+1] if i < size(i)-1 else 0) - 2*x[t,i] + (x[t,i-1] if i > 0 else 0))\n"
        "loss += x[size(t),i]**2\nreturn loss",
        {"x0": X, "t": 6},
    ),
    "a ring": (
        "x[0,i] = x0[i]\nfor t:\n  x[t+1,i] = x[t,i] + 0.1*(x[t,(i+1)%size(i)] - x[t,i])\nreturn x",
        {"x0": X, "t": 5},
    ),
    "the mean of all": (
        "x[0,i] = x0[i]\nfor t:\n  m[t] += x[t,i]/size(i)\n  x[t+1,i] = x[t,i] + 0.1*sin(m[t]-x[t,i])\n"
        "loss += x[size(t),i]**2 * (1 + m[t])\nreturn loss, m",
        {"x0": X, "t": 5},
    ),
    "the sum of the step before": (
        "for t:\n  m[t] += sin(x0[i])*(m[t-1] if t > 0 else 1)\nL += m[t]*m[t]\nreturn L, m",
        {"x0": LONG, "t": 5},
    ),
    "the largest of the step before": (
        "for t:\n  m[t] max= x0[i] + (m[t-1] if t > 0 else 1)\nreturn m",
        {"x0": LONG, "t": 5},
    ),
    "the sum of the step behind": (
        "for t down:\n  m[t] += sin(x0[i])*(m[t+1] if t+1 < size(t) else 1)\nreturn m",
        {"x0": LONG, "t": 5},
    ),
    "a sum behind a value": (
        "for t:\n  h[t,i] = x0[i]*(m[t-1] if t > 0 else 1)\n  m[t] += h[t,i]\nreturn h, m",
        {"x0": LONG, "t": 5},
    ),
    "a matrix": (
        "h[0,i] = x0[i]\nfor t:\n  z[t,i] += W[i,j]*h[t,j]\n  h[t+1,i] = tanh(z[t,i])\nloss += h[size(t),i]\n"
        "return loss",
        {"x0": X, "W": W, "t": 5},
    ),
    "the largest": (
        "x[0,i] = x0[i]\nfor t:\n  m[t] max= x[t,i]\n  k[t] argmax= x[t,i]\n"
        "  x[t+1,i] = sin(x[t,i] - 0.5*m[t]) * exp(x[t,i] + 0.1*k[t])\n"
        "return x, m, k",
        {"x0": X, "t": 4},
    ),
    "downwards": (
        "for t down:\n  x[t,i] = 0.5*(x[t+1,(i+3)%size(i)] if t < size(t)-1 else x0[i]) + t\nreturn x",
        {"x0": X, "t": 5},
    ),
    "a block within": (
        "x[0,i] = x0[i]\nfor t:\n  y[t,0,i] = x[t,i]\n  for s:\n"
        "    y[t,s+1,i] = y[t,s,i] + a*((y[t,s,i+1] if i < size(i)-1 else 0) - y[t,s,i])\n"
        "  x[t+1,i] = sin(y[t,3,i]) * exp(y[t,3,(i+1)%size(i)])\n"
        "size(s) = 3\nreturn x",
        {"x0": X, "t": 4, "a": 0.2},
    ),
    "earlier steps": (
        "x[0,i] = x0[i]\nx[1,i] = 2*x0[i]\n"
        "for t:\n  x[t+2,i] = x[t+1,i] - 0.3*(x[t,i+1] if i < size(i)-1 else 0)\nreturn x",
        {"x0": X, "t": 6},
    ),
    "a scatter": (
        "x[0,i] = x0[i]\nfor t:\n  y[t,(7*i)%size(i)] += x[t,i]\n  x[t+1,i] = 0.5*y[t,i]\nsize(y,1) = 23\nreturn x",
        {"x0": X, "t": 4},
    ),
    "a guard of the step": (
        "x[0,i] = x0[i]\n"
        "for t:\n  x[t+1,i] = (x[t,i] + (x[t,i+t] if i+t < size(i) else 0) if t%2 == 0 else x[t,i]*0.5)\nreturn x",
        {"x0": X, "t": 5},
    ),
    "one step": ("x[0,i] = x0[i]\nfor t:\n  x[t+1,i] = x[t,(i+1)%size(i)]\nreturn x", {"x0": X, "t": 1}),
    "no step": ("x[0,i] = x0[i]\nfor t:\n  x[t+1,i] = x[t,(i+1)%size(i)]\nreturn x", {"x0": X, "t": 0}),
}
WIDE = [name for name in PROGRAMS if name not in ("one step", "no step")]


@pytest.fixture(params=[2, 3, 7])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """As if help cost nothing."""
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    monkeypatch.setattr(call, "threads", lambda: request.param)
    return int(request.param)


def steps(program: ts.Program, arrays: dict[str, Any]) -> bool:
    return "in each step of" in str(program.plan(**arrays))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str) -> None:
    text, arrays = PROGRAMS[name]
    program = ts.program(text)
    assert steps(program, arrays) == (name in WIDE) or " the step b" in name or name == "a sum behind a value"
    check_compiled(program, arrays)
    results = program.run_reference(arrays)
    results = results if isinstance(results, dict) else {program.outputs[0]: results}
    seeds = {f"{y}.grad": RANDOM.standard_normal(a.shape) for y, a in results.items() if a.dtype.kind == "f"}
    adjoint = program.adjoint(wrt=["x0"])
    check_compiled(adjoint, {**arrays, **seeds})
    check_compiled(adjoint, {**arrays, **seeds})  # the memory of the call before is used again


def test_the_bits_are_the_same_each_time(threads: int) -> None:
    text, arrays = PROGRAMS["the mean of all"]
    gradient = ts.program(text).grad(of="loss", wrt=["x0"])
    first = gradient(arrays)
    for _ in range(200):
        assert all(array.tobytes() == first[name].tobytes() for name, array in gradient(arrays).items())


@pytest.mark.parametrize("name", share(["neighbours", "the mean of all", "downwards", "a block within"], 4))
def test_sources_and_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    text, arrays = PROGRAMS[name]
    check_source(ts.program(text), arrays)
    check_exported(ts.program(text), arrays, tmp_path)


@pytest.mark.parametrize("count", [2, 3])
def test_a_training_of_a_stencil(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a training around steps of a block."""
    program = ts.program(
        "u[0,b,i] = x[b,i]\nfor t:\n  u[t+1,b,i] = u[t,b,i] + k*((u[t,b,i+1] if i < size(i)-1 else 0) - u[t,b,i])\n"
        "m[t] += u[t,b,i]\nloss += (u[size(t),b,i] - y[b,i] + 0.1*m[t])**2 / size(b)\nsize(t) = 4\nreturn loss"
    )
    x = RANDOM.standard_normal((12, 30))
    options: dict[str, Any] = {"batch_size": 1, "epochs": 2, "lr": 0.01, "progress": False, "seed": 1}
    wanted = ts.fit(program, {"k": np.array(0.1)}, {"x": x, "y": 0.5 * x}, **options)
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    monkeypatch.setattr(training_loop, "threads", lambda: count)
    found = ts.fit(program, {"k": np.array(0.1)}, {"x": x, "y": 0.5 * x}, **options)
    np.testing.assert_allclose(found.params["k"], wanted.params["k"], rtol=1e-9)


def test_few_threads_are_not_asked_for_narrow_steps() -> None:
    text, arrays = PROGRAMS["neighbours"]
    assert not steps(ts.program(text), arrays)
    assert steps(ts.program(text), {"x0": np.zeros(200_000), "t": 4})


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("t", "t+1", False), ("t%2", "(t+1)%2", False), ("t%2", "(t+2)%2", True), ("t%3", "(t+2)%3", False),
        ("t%2", "(t+1)%3", True), ("t%2", "t", True), ("t", "2*t+1", True), ("t%2", "(t-1)%2", False),
    ],
)  # fmt: skip
def test_places_that_never_meet(one: str, other: str, meet: bool) -> None:
    def access(place: str) -> Access:
        return ts.program(f"for t:\n  Y[t] = X[{place}]").loops.statements[0].reads[0]

    assert never_meet(access(one), access(other), {"t"}) is not meet
