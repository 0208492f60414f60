"""Plans on disk: found again by the next process, told apart from all others, and harmless when damaged."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import cache, kept, tuning
from tensorswap.run.kept import Plans

pytestmark = pytest.mark.compiled

SESSION = """
import sys, warnings, numpy as np, tensorswap as ts
from tensorswap.run import execute, tuning
warnings.simplefilter("error")
planned = []
first = execute.Executable.__init__
execute.Executable.__init__ = lambda self, *given, **named: (planned.append(1), first(self, *given, **named))[0]
random = np.random.default_rng(0)
PROGRAMS
print(len(planned))
"""
CALLED = """
for text, arrays in [
    ("Y[i,j] += A[i,k] * B[k,j]\\nZ[i] max= tanh(Y[i,j])", {"A": (3, 4), "B": (4, 9)}),
    ("Y[i] argmax= X[i,j]\\nS[i] min= X[i,j]", {"X": (5, 7)}),
    ("W[i] = W[i] - rate * G[i]", {"W": (40,), "G": (40,), "rate": ()}),
    ("for t:\\n    H[t,i] = tanh(H[t-1,i] * W[i] + X[t,i]) if t > 0 else X[t,i]", {"X": (9, 8), "W": (8,)}),
    ("size(Y, 0) = 9\\nY[k[i]] += X[i]", {"X": (5,)}),
    ("Y[k[i]] = X[i]\\nsize(Y, 0) = 9", {"X": (5,)}),
]:
    program = ts.program(text)
    given = {name: random.standard_normal(shape) for name, shape in arrays.items()}
    given = {name: float(array) if array.shape == () else array for name, array in given.items()}
    if "k" in program.inputs:
        given["k"] = np.array([8, 1, 3, 0, 2])
    calls = [(program, given)]
    if "max=" not in text and "W[i] = W" not in text:
        seeds = {f"{name}.grad": np.ones_like(program.run_reference(given)) for name in program.outputs}
        calls.append((program.adjoint([name for name in given if name != "k"]), {**given, **seeds}))
    for called, arrays in calls:
        wanted = called.run_reference(arrays)
        for found in (called(arrays), called(arrays), called(arrays)):
            for a, b in zip(*(made.values() if isinstance(made, dict) else [made] for made in (found, wanted))):
                np.testing.assert_allclose(a, b, rtol=1e-12)
"""
FITTED = """
model = ts.program("H[n,h] += X[n,i] * W[i,h]\\nloss += (H[n,h] - T[n,h]) ** 2")
data = {"X": random.standard_normal((20, 3)), "T": random.standard_normal((20, 2))}
ts.fit(model, {"W": np.zeros((3, 2))}, data, batch="n", batch_size=6, epochs=2, progress=False)
"""


def session(folder: Path, programs: str, **variables: str) -> str:
    environment = {**os.environ, "TENSORSWAP_CACHE": str(folder), **variables}
    code = SESSION.replace("PROGRAMS", programs)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def test_a_process_that_finds_its_plans_makes_none(tmp_path: Path) -> None:
    first = int(session(tmp_path, CALLED))
    assert first >= 9
    assert session(tmp_path, CALLED) == "0"


def test_training_finds_its_plans(tmp_path: Path) -> None:
    assert int(session(tmp_path, FITTED)) >= 2
    assert session(tmp_path, FITTED) == "0"


def test_without_certificates_plans_are_others(tmp_path: Path) -> None:
    """A plan that nobody has looked at is not taken for one that was certified."""
    without = "ts.debug(certify=False).__enter__()\n" + CALLED
    made = session(tmp_path, without)
    assert session(tmp_path, without) == "0"
    assert session(tmp_path, CALLED) == made


@pytest.mark.parametrize("kind", ["plan", "kernel", "object"])
def test_what_is_damaged_is_planned_again(tmp_path: Path, kind: str) -> None:
    first = int(session(tmp_path, CALLED))
    for path in tmp_path.glob(f"*.{kind}"):
        path.write_bytes(path.read_bytes()[:-20])
    assert 0 < int(session(tmp_path, CALLED)) <= first
    assert session(tmp_path, CALLED) == "0"


def plans(text: str, given: dict[str, Any], threads: int = 1) -> Plans:
    program = ts.program(text)
    known = program._caller.prepare(kept_bind(program, given), looking=True)
    assert known.plans is not None
    return replace(known.plans, threads=threads)


def kept_bind(program: ts.Program, given: dict[str, Any]) -> Any:
    from tensorswap.run.arguments import bind

    return bind(program.loops, given)


A, B = np.ones((4, 5)), np.ones((5, 6))
NUMBER = "Y[i] = a * X[i]\nV[i] = Z[i]"
PRODUCT = "Y[i,j] += A[i,k] * B[k,j]"
OTHERS: dict[str, Callable[[], Plans]] = {
    "the same": lambda: plans(PRODUCT, {"A": A, "B": B}),
    "another text": lambda: plans("Y[i,j] -= A[i,k] * B[k,j]", {"A": A, "B": B}),
    "another number": lambda: plans("Y[i,j] += 0.5 * A[i,k] * B[k,j]", {"A": A, "B": B}),
    "a number near it": lambda: plans("Y[i,j] += 0.5000000000000001 * A[i,k] * B[k,j]", {"A": A, "B": B}),
    "minus zero": lambda: plans("Y[i,j] += A[i,k] * B[k,j] - 0.0", {"A": A, "B": B}),
    "zero": lambda: plans("Y[i,j] += A[i,k] * B[k,j] - 0", {"A": A, "B": B}),
    "another size": lambda: plans(PRODUCT, {"A": A[:3], "B": B}),
    "another type": lambda: plans(PRODUCT, {"A": A.astype(np.float32), "B": B.astype(np.float32)}),
    "one of another type": lambda: plans(PRODUCT, {"A": A.astype(np.float32), "B": B}),
    "whole numbers": lambda: plans(PRODUCT, {"A": A.astype(int), "B": B.astype(int)}),
    "threads": lambda: plans(PRODUCT, {"A": A, "B": B}, threads=2),
    "a weak number": lambda: plans(NUMBER, {"X": A[0].astype(np.float32), "Z": A[0], "a": 2.0}),
    "a number that is not": lambda: plans(NUMBER, {"X": A[0].astype(np.float32), "Z": A[0], "a": np.float64(2.0)}),
    "a shift": lambda: plans("s: int\nY[i] = X[i+s]", {"X": A[0], "s": 1}),
    "another shift": lambda: plans("s: int\nY[i] = X[i+s]", {"X": A[0], "s": 2}),
    "certified": lambda: replace(plans(PRODUCT, {"A": A, "B": B}), certified=False),
    "other outputs": lambda: plans("H[i] = A[i]\nY[i] = H[i]\nreturn H, Y", {"A": A[0]}),
    "one output": lambda: plans("H[i] = A[i]\nY[i] = H[i]\nreturn Y", {"A": A[0]}),
}


def test_keys_tell_plans_apart() -> None:
    keys = {told: make().key for told, make in OTHERS.items()}
    assert len(set(keys.values())) == len(OTHERS), keys
    assert keys["the same"] == OTHERS["the same"]().key


@pytest.mark.parametrize(("module", "name", "value"), [(tuning, "level", 1), (tuning, "PARALLEL", 7)])
def test_settings_are_part_of_keys(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: int) -> None:
    before = OTHERS["the same"]().key
    monkeypatch.setattr(module, name, value)
    assert OTHERS["the same"]().key != before


def test_functions_of_users_are_part_of_keys(tmp_path: Path) -> None:
    """The name of a function says nothing of what it does in another process."""
    for slope in ("2.0", "3.0", "2.0"):
        code = f"""
ts.define("bent", "{slope} * x", "{slope}")
inner = ts.program("Y[i] = bent(X[i]) + 1")
assert inner(X=np.ones(3))[0] == {slope} + 1, inner(X=np.ones(3))
"""
        session(tmp_path, code)


def test_every_module_that_plans_is_part_of_the_stamp() -> None:
    code = "import sys, tensorswap.run.call, tensorswap.run.words, tensorswap.run.compile\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    package = "tensorswap."
    found = {name.removeprefix(package) for name in done.stdout.split() if name.startswith(package)}
    assert {"run.execute", "plan.nest", "lower.kernel"} <= found
    assert found | {"trust.certify", "interpret.reference"} <= set(cache._texts())


def made(text: str, given: dict[str, Any]) -> tuple[str, bytes]:
    """A plan as it is kept."""
    known = plans(text, given)
    known.ready(lambda plan: None)
    name = f"{known.key}.plan"
    content = cache.read(name)
    assert content is not None
    return name, content


LOAD = kept._load  # which other tests do without


def test_a_plan_of_another_making_is_not_read() -> None:
    name, content = made(PRODUCT, {"A": A, "B": B})
    assert LOAD(name) is not None
    plain = json.loads(content)
    without = [json.dumps({name: plain[name] for name in plain if name != gone}).encode() for gone in plain]
    for wrong in (b"", b"7", b"[]", b"{}", b"\xff", b"[" * 100_000, *without):
        cache.write(name, wrong)
        assert LOAD(name) is None, wrong[:80]
    gone = json.dumps({**plain, "rows": [["0" * 64, words] for _, words in plain["rows"]]})
    cache.write(name, gone.encode())
    assert LOAD(name) is None, "kernels that are not there"
    cache.write(name, content)
    assert LOAD(name) is not None


@pytest.mark.parametrize("dtype", ["q", "Q", np.dtype(np.float32, metadata={"unit": "m"})])
def test_dtypes_of_results_are_the_usual_ones(dtype: Any) -> None:
    """Whoever makes a plan has the same results as whoever finds it."""
    X = np.ones(3, dtype)
    found = ts.program("Y[i] = X[i]\nZ max= X[i]\nreturn Y, Z")(X=X)
    for name in ("Y", "Z"):
        assert found[name].dtype is np.dtype(X.dtype.str)


def test_arrays_of_a_call_are_not_kept() -> None:
    program = ts.program("Y[i] = X[i] * 2")
    X = np.ones(1000)
    alive = weakref.ref(X)
    for _ in range(3):
        program(X=X)
    program.plan(X=X)
    del X
    gc.collect()
    assert alive() is None
