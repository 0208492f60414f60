"""What an import brings: public names when they are asked for, and no compiler before something is compiled."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import tensorswap as ts
from tensorswap.lazy import LazyPackage

HEAVY = ("numba", "llvmlite", "jax", "torch", "scipy", "matplotlib")
MATMUL = "Y[i,j] += A[i,k] * B[k,j]"


def modules_after(code: str) -> set[str]:
    """The modules of a fresh process that has run a piece of code."""
    line = [sys.executable, "-c", f"import sys\n{code}\nprint(*sorted(sys.modules))"]
    run = subprocess.run(line, cwd=Path(ts.__file__).parent.parent, check=True, capture_output=True, text=True)
    return set(run.stdout.splitlines()[-1].split())


def test_the_package_alone_brings_next_to_nothing() -> None:
    found = modules_after("import tensorswap; tensorswap.__version__; dir(tensorswap)")
    assert {name for name in found if name.startswith("tensorswap")} == {
        "tensorswap",
        "tensorswap.forks",
        "tensorswap.lazy",
    }
    assert "numpy" not in found


@pytest.mark.parametrize(("level", "told"), [("", "[2.0]"), ("1", "[2.0]"), ("fast", "refused"), ("7", "refused")])
def test_the_level_of_optimising(level: str, told: str) -> None:
    code = (
        "import tensorswap as ts\n"
        "try:\n    print(ts.program('Y[i] = 2 * X[i]')(X=[1.0]).tolist())\n"
        "except ts.SwapError as error:\n    assert 'TENSORSWAP_LEVEL=0, 1, 2 or 3' in str(error), error\n"
        "    print('refused')\n"
    )
    environment = {**os.environ, "TENSORSWAP_LEVEL": level, "PYTHONPATH": str(Path(ts.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == f"{told}\n"


LOOK = f"""
import tensorswap as ts
p = ts.program("{MATMUL}")
str(p.adjoint(wrt=["A"])), p.tangent(wrt=["A"]), p.batch("n", over=["A"]), p.explain()
ts.load("softmax"), ts.ops()
"""
EXPLAIN = f"""
from tensorswap.command.main import main
assert main(["explain", "{MATMUL}"]) == 0
assert main(["explain", "{MATMUL}", "--stage", "adjoint"]) == 0
assert main(["explain", "{MATMUL}", "--json"]) == 0
assert main(["ops", "--search", "softmax"]) == 0
"""


@pytest.mark.parametrize("code", [LOOK, EXPLAIN])
def test_to_parse_derive_and_explain_brings_no_compiler(code: str) -> None:
    found = modules_after(code)
    assert "tensorswap.language.parse" in found
    assert not {name for name in found if name.partition(".")[0] in HEAVY}
    if code is LOOK:
        rooms = {name.split(".")[1] for name in found if name.startswith("tensorswap.")}
        assert not rooms & {"eager", "export", "kernel", "lower", "plan", "teaching", "training", "trust"}


def test_a_plan_asks_for_the_registers_and_not_for_numba() -> None:
    found = modules_after(f"from tensorswap.command.main import main; main(['explain', '{MATMUL}', '--stage', 'plan'])")
    assert "tensorswap.plan.table" in found
    assert not found & {"numba", "jax"}


KNOWN = {
    "tensorswap.kernel",
    "tensorswap.kernel.names",
    "tensorswap.kernel.registers",
    "tensorswap.trust",
    "tensorswap.trust.verdicts",
}


def test_plans_and_kernels_on_disk_need_neither_numba_nor_what_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports take longer than all else in a call that compiles nothing."""
    monkeypatch.setenv("TENSORSWAP_CACHE", str(tmp_path / "kernels"))
    run = "import numpy as np, tensorswap as ts; X = np.ones((40, 40), np.float32)\n"
    run += "p = ts.program('H[i,j] += A[i,k] * B[k,j]\\nloss += tanh(H[i,j])').grad(wrt=['A'])\n"
    run += "assert p(A=X, B=X)['A.grad'].shape == (40, 40)"
    assert "numba" in modules_after(run)
    found = modules_after(run)
    assert "tensorswap.run.ready" in found
    assert not found & {"numba", "importlib.metadata", "tensorswap.run.execute", "tensorswap.plan.nest"}
    rooms = {".".join(name.split(".")[:2]) for name in found if name not in KNOWN}
    assert not rooms & {"tensorswap.kernel", "tensorswap.lower", "tensorswap.trust"}


BRIDGES = {"jax", "torch"}  # they need packages that may be missing, so no star brings them
FOR_IPYTHON = {"load_ipython_extension"}


def test_every_public_name_is_what_type_checkers_are_told() -> None:
    tree = ast.parse(Path(ts.__file__).read_text("utf-8"))
    told = [node for branch in tree.body if isinstance(branch, ast.If) for node in branch.body]
    named = {alias.name: node.module for node in told if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert sorted(named.keys() - BRIDGES - FOR_IPYTHON) == ts.__all__
    for name in ts.__all__:
        assert getattr(ts, name) is getattr(import_module(f"tensorswap.{named[name]}"), name)
    assert set(ts.__all__) <= set(dir(ts))


def test_bridges_are_listed_where_their_package_is_installed() -> None:
    assert BRIDGES & set(dir(ts)) == {name for name in BRIDGES if find_spec(name) is not None}
    assert "_places" not in dir(ts)
    assert not FOR_IPYTHON & set(ts.__all__)


SHADOWS = """
import tensorswap.program, tensorswap.debug, tensorswap.gradcheck, tensorswap.einsum, tensorswap.backslash
for name in ("program", "debug", "gradcheck", "einsum", "backslash"):
    assert callable(getattr(tensorswap, name)), name
from tensorswap import debug, program
assert program is tensorswap.program
assert debug is sys.modules["tensorswap.debug"].debug
import tensorswap as ts
ts.eager.relu, ts.errors.SwapError, ts.compare.numerical, ts.models.get
"""


def test_a_submodule_does_not_take_the_place_of_a_function() -> None:
    assert "tensorswap.models" in modules_after(SHADOWS)


def test_what_is_not_there() -> None:
    assert isinstance(ts, LazyPackage)
    with pytest.raises(AttributeError, match="module 'tensorswap' has no attribute 'porgram'"):
        ts.porgram  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'porgram'"):
        from tensorswap import porgram  # type: ignore[attr-defined]  # noqa: F401
    for name in ("__wrapped__", "", "no.such", "language.no_such", "no such", "kernels"):
        assert not hasattr(ts, name)


def test_names_can_be_set() -> None:
    """As tests and notebooks do."""
    kept = ts.program
    ts.program = "other"  # type: ignore[assignment]
    try:
        assert ts.program == "other"
    finally:
        ts.program = kept


def test_functions_are_pickled_by_their_name() -> None:
    assert pickle.loads(pickle.dumps(ts.program)) is ts.program


def test_methods_from_above() -> None:
    assert ts.program("y = x * x").flat().startswith("def y(x):")
    assert "[" in str(ts.program("y[i] = 2 * x[i]").jacobian("y", "x"))
