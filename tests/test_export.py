"""Exported files: they run where tensorswap cannot be imported, and give what the program and its adjoint give."""

from __future__ import annotations

import ast
import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError, DerivativeError
from tensorswap.language import ir
from tensorswap.program import Program
from tensorswap.rules.activity import default_wrt
from tensorswap.rules.derived_names import next_suffix

from .corpus import CORPUS
from .daily import share
from .library.rows import FAMILIES, rows_of
from .library.table import options_of
from .test_library import ROWS, answers

Arrays = dict[str, Any]
Job = tuple[str, str, Arrays]  # a file, the function to call, its arguments

# Runs jobs where nothing of tensorswap can be imported. A job gives a result, or the name and the text of its error.
RUNNER = """
import importlib.util, pickle, sys, warnings

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorswap", "lark", "opt_einsum", "platformdirs", "safetensors"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Missing())
try:
    import tensorswap
except ImportError:
    pass
else:
    raise SystemExit("tensorswap can be imported")

warnings.simplefilter("ignore")
modules, results = {}, []
with open(sys.argv[1], "rb") as file:
    jobs = pickle.load(file)
for path, function, arguments in jobs:
    if path not in modules:
        spec = importlib.util.spec_from_file_location(f"exported_{len(modules)}", path)
        modules[path] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[path])
    before = pickle.dumps(arguments)
    try:
        results.append(getattr(modules[path], function)(arguments))
    except (ValueError, IndexError) as error:
        results.append((type(error).__name__, str(error)))
    assert pickle.dumps(arguments) == before, "the caller's arrays have changed"
assert not any(name.split(".")[0] == "tensorswap" for name in sys.modules)
with open(sys.argv[2], "wb") as file:
    pickle.dump(results, file)
"""


def run_elsewhere(folder: Path, jobs: list[Job]) -> list[Any]:
    (folder / "jobs").write_bytes(pickle.dumps(jobs))
    command = [sys.executable, "-c", RUNNER, "jobs", "results"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    results: list[Any] = pickle.loads((folder / "results").read_bytes())
    return results


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(folder: Path, program: Program, wrt: list[str] | None = None) -> ModuleType:
    program.export(folder / "model.py", wrt)
    return loaded(folder / "model.py")


def outputs(program: Program, result: Any) -> dict[str, np.ndarray]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def check_same(program: Program, found: Any, expected: Any) -> None:
    """The same names, shapes, types, and values up to the order of their sums."""
    assert isinstance(found, dict) == isinstance(expected, dict)
    found, expected = outputs(program, found), outputs(program, expected)
    assert list(found) == list(expected)
    for name, wanted in expected.items():
        assert isinstance(found[name], np.ndarray), name
        assert found[name].shape == wanted.shape, name
        assert found[name].dtype == wanted.dtype, name
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], wanted, err_msg=name)
            continue
        tolerance = 1e-10 if wanted.dtype == np.float64 else 2e-4
        size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1)
        np.testing.assert_allclose(found[name], wanted, rtol=tolerance, atol=tolerance * size, err_msg=name)


def single(arrays: Arrays) -> Arrays:
    return {
        k: v.astype(np.float32) if isinstance(v, np.ndarray) and v.dtype == np.float64 else v for k, v in arrays.items()
    }


class Comparison:
    """Calls of several programs, all run in one other process and held against the interpreter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs: list[Job] = []
        self.expected: list[tuple[Program, Any]] = []

    def add(self, name: str, program: Program, wrt: list[str] | None, *calls: Arrays) -> None:
        """Forward and, if there is something to differentiate by, adjoint."""
        file = f"{name}.py"
        program.export(self.folder / file, wrt)
        adjoint = program.adjoint(wrt=wrt) if wrt else None
        for arrays in calls:
            expected = self.call(file, "forward", program, arrays)
            if adjoint is not None:
                random = np.random.default_rng(9)
                seeds: Arrays = {}
                for name, array in outputs(program, expected).items():
                    dtype = array.dtype if array.dtype.kind == "f" else np.float64
                    seeds[f"{name}.{next_suffix(program.loops, 'grad')}"] = random.standard_normal(array.shape).astype(
                        dtype
                    )
                seeds = {name: seed for name, seed in seeds.items() if name in adjoint.inputs}
                self.call(file, "adjoint", adjoint, {**arrays, **seeds})

    def call(self, file: str, function: str, program: Program, arrays: Arrays) -> Any:
        expected = program.run_reference(arrays)
        self.jobs.append((file, function, arrays))
        self.expected.append((program, expected))
        return expected

    def run(self) -> None:
        results = run_elsewhere(self.folder, self.jobs)
        for (file, function, _), (program, expected), found in zip(self.jobs, self.expected, results, strict=True):
            assert not isinstance(found, tuple), (file, function, found)
            try:
                check_same(program, found, expected)
            except AssertionError as error:
                raise AssertionError(f"{file}, {function}: {error}") from error


# -- the same results


PARTS = 4
ENTRIES = {entry.name: entry for entry in CORPUS}
COMPILED = (
    "matrix_product", "conv1d_strided_dilated_padded", "cumulative_sum_by_guard", "discounted_returns", "embedding",
    "histogram", "positions", "dropout", "permutation", "product_with_zeros", "remainder",
)  # fmt: skip
OWN: dict[str, tuple[Program, list[str] | None, Arrays]] = {
    "softmax": (ts.load("softmax"), ["input"], {"input": np.linspace(-2, 3, 24).reshape(2, 3, 4)}),
    "update": (
        ts.program("for step:\n    W[i] = W[size(i)-1-i] - rate * g[i]"),
        None,
        {"W": np.arange(4.0), "g": np.ones(4), "rate": 0.25, "step": 3},
    ),
    "statics": (
        ts.program("stride: int = 1\npad: int\nsize(i) = 4\nY[i] += X[stride*i+u-pad] * W[u] if inside"),
        ["X", "W"],
        {"X": np.linspace(0, 1, 9), "W": np.array([1.0, -2.0, 0.5]), "stride": 2, "pad": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", range(PARTS))
def test_files_run_without_tensorswap(part: int, tmp_path: Path) -> None:
    """Forward and adjoint, float64 and float32."""
    comparison = Comparison(tmp_path)
    for name in share(COMPILED, 2)[part::PARTS]:
        arrays = ENTRIES[name].inputs(np.random.default_rng(1))
        comparison.add(name, ts.program(ENTRIES[name].text), list(ENTRIES[name].wrt), arrays, single(arrays))
    for name, (program, wrt, arrays) in list(OWN.items())[part::PARTS]:
        comparison.add(name, program, wrt, arrays, single(arrays))
    comparison.run()


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path)
    comparison.add("model", ts.program("Y[i] = X[i] + 2"), ["X"], {"X": np.arange(3.0)})
    ts.program("Y[i] = X[i] + 3").export(tmp_path / "model.py")
    with pytest.raises(AssertionError, match=r"model\.py, forward"):
        comparison.run()


WHOLE, FLOAT = np.array([[3, 7], [7, -1]]), np.array([0.5, -2.5, np.nan, 0.0, 1.5])
CASES: list[tuple[str, Arrays]] = [
    ("Y[i,j] = X[i,j] + 1\nm[i] max= X[i,j]\ns += X[i,j]\np *= X[i,j]", {"X": WHOLE.astype(np.int8)}),
    ("Y[i] = X[i] > 0\ncount += X[i] > 0\nany max= X[i] > 0", {"X": FLOAT}),
    ("Y[i] = a * X[i] + 0.1", {"X": FLOAT.astype(np.float32), "a": 2.0}),
    ("Y[i] = a * X[i] + 0.1", {"X": np.arange(3), "a": True}),
    ("m[i] max= X[i,j]\nn[i] min= X[i,j]\np[i] *= X[i,j]\na[i] argmax= X[i,j]", {"X": np.zeros((2, 0))}),
    ("Y[i] = sigmoid(X[i]) + gelu(X[i]) + silu(X[i]) + softplus(X[i]) + erf(X[i]) + relu(X[i])", {"X": FLOAT * 400}),
    ("Y[i] = X[i] + normal(seed, i, 2*i) + uniform(-i)", {"X": FLOAT, "seed": -3}),
    ("size(i) = 7\nY[i] += X[k[i-1]] if inside", {"X": FLOAT, "k": np.array([0, 9, 3, 4, -5, 5, 1])}),
    ("Y[...,i] = X[...,i] / size(X, 1) + Z[...]\ns += X[...,i] * size(...)", {"X": np.ones((2, 2, 4)), "Z": WHOLE}),
    ("for t:\n    C[t] = X[t] + (C[p[t]] if t > 0 else 0)", {"X": FLOAT, "p": np.array([0, 0, 1, 1, 3])}),
    ("Y[i,n] += A[i,j] * B[j,k] * C[k,l] * D[l,m] * E[m,n]", {name: np.ones((3, 3)) for name in "ABCDE"}),
    ("def f(X[i], a=inf, n: int = 2) -> Y[i]:\n    Y[i] = min(X[i], a) * n", {"X": FLOAT}),
    ("Y[i] += X[i+j]", {"X": FLOAT, "i": 3, "j": 2}),
    ("s += 0.5", {}),
]  # fmt: skip


def test_types_guards_positions_and_sizes(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path)
    for number, (text, arrays) in enumerate(CASES):
        comparison.add(f"case_{number}", ts.program(text), None, arrays)
    comparison.run()


def test_arrays_of_any_layout(tmp_path: Path) -> None:
    """Compiled: transposed, reversed, read-only, of the other byte order, and no arrays at all."""
    program = ts.program("Y[i,j] += X[i,k] * W[k,j]\nX[i,k] = X[i,k] * 0.5")
    module = exported(tmp_path, program)
    X, W = np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(12.0).reshape(3, 4))
    X.flags.writeable = False
    for x, w in ((X, W), (X[::-1, ::-1], W[:, ::2]), (X.astype(">f8"), W), (X.tolist(), W), (X[:0], W)):
        check_same(program, module.forward(X=x, W=w), program.run_reference(X=x, W=w))
    np.testing.assert_array_equal(X, np.arange(6.0).reshape(2, 3))


ALL = sorted(row.name for family in FAMILIES for row in rows_of(family))
SAMPLE = share(ALL, 12)


@pytest.mark.parametrize("part", range(PARTS))
def test_ops_of_the_library(part: int, tmp_path: Path) -> None:
    comparison = Comparison(tmp_path)
    for op in SAMPLE[part::PARTS]:
        family = next(family for family in FAMILIES if any(row.name == op for row in rows_of(family)))
        program = ts.load(op)
        arrays = {**answers(family)[op, 0].input, **options_of(ROWS[op].cases[0])}
        wrt = [name for name in default_wrt(program.loops) if name in program._for_call(arrays).inputs]
        comparison.add(op, program, None if program.loops.updated else wrt or None, arrays)
    comparison.run()


# -- what is refused at the call


PAIR, GATHER, SHIFT = "Y[i] = X[i] * Z[i]", "Y[b,d] = E[tok[b],d]", "shift: int\nY[i] = X[i+shift]"
REFUSED: list[tuple[str, Arrays]] = [
    (PAIR, {"X": FLOAT, "z": FLOAT}),
    (PAIR, {"X": FLOAT, "Z": WHOLE}),
    (PAIR, {"X": FLOAT, "Z": FLOAT[:4]}),
    (PAIR, {"X": FLOAT, "Z": FLOAT, "i": 4}),
    (PAIR, {"X": FLOAT, "Z": None}),
    (PAIR, {"X": FLOAT, "Z": [[1], [1, 2]]}),
    (PAIR, {"X": FLOAT, "Z": FLOAT * 1j}),
    (PAIR, {"X": FLOAT, "Z": FLOAT.astype(np.float16)}),
    (GATHER, {"E": WHOLE, "tok": np.array([0.0])}),
    (SHIFT, {"X": FLOAT, "shift": 1.0}),
    (SHIFT, {"X": FLOAT}),
    ("size(i) = size(X, 0) // n\nY[i] = X[n*i]", {"X": FLOAT, "n": 0}),
    ("size(i) = size(X, 0) - 9\nY[i] = X[i+0]", {"X": FLOAT}),
    ("size(i) = n\nY[i] = 1", {"n": 10**15}),
    ("size(X, 0) = 4\nY[i] = X[i]", {"X": FLOAT}),
    ("Y[i] = X[i] // k[i]", {"X": np.array([5, 7]), "k": np.array([2, 0])}),
    ("size(Z, 0) = 3\nZ[p[i]] = X[i]", {"X": FLOAT[:3], "p": np.array([2, 1, 1])}),
    ("W[k[b]] = W[k[b]] - g[b]", {"W": FLOAT, "k": np.array([1, 1]), "g": FLOAT[:2]}),
    ("Y[...,i] = X[...,i] + Z[...]", {"X": WHOLE, "Z": FLOAT}),
    ("Y[...,i] = X[...,i] + Z[...]", {"X": 1.0, "Z": FLOAT}),
    (GATHER, {"E": WHOLE, "tok": np.array([0, 2])}),
    (GATHER, {"E": WHOLE, "tok": np.array([-1])}),
    (SHIFT, {"X": FLOAT, "shift": -1}),
    ("size(H, 0) = n\nH[b[i]] += w[i]", {"b": np.array([0, 9]), "w": FLOAT[:2], "n": 3}),
    ("Y[i] += X[i+j]", {"X": FLOAT, "i": 3, "j": 4}),
    ("size(i) = 7\nY[i] = X[i+1] if i < 6 else 0", {"X": FLOAT}),
    ("def f(X[i], Z[j]) -> Y[j]:\n    Y[i] = X[i]", {"X": FLOAT, "Z": FLOAT[:3]}),
]


def test_bad_calls_are_refused_with_the_same_words(tmp_path: Path) -> None:
    jobs: list[Job] = []
    expected: list[tuple[str, str]] = []
    for number, (text, arrays) in enumerate(REFUSED):
        program = ts.program(text)
        with pytest.raises(ts.SwapError) as error:
            program.run_reference(arrays)
        program.export(tmp_path / f"bad_{number}.py")
        jobs.append((f"bad_{number}.py", "forward", arrays))
        expected.append((type(error.value).__name__, str(error.value)))
    for (text, _), wanted, found in zip(REFUSED, expected, run_elsewhere(tmp_path, jobs), strict=True):
        assert isinstance(found, tuple), (text, found)
        assert found == wanted, text


def test_positions_are_checked_in_compiled_kernels(tmp_path: Path) -> None:
    module = exported(tmp_path, ts.program("Y[b,d] = E[tok[b],d]"))
    E = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(module.forward(E=E, tok=[2, 0]), E[[2, 0]])
    with pytest.raises(IndexError, match="position 3 of axis 0, which has size 3"):
        module.forward(E=E, tok=[0, 3])
    with pytest.raises(IndexError, match="position -1"):
        module.adjoint({"E": E, "tok": [0, -1], "Y.grad": np.ones((2, 2))})
    assert module.forward(E=E[:, :0], tok=[7]).shape == (1, 0)  # nothing is read


def test_an_adjoint_is_refused_where_its_program_would_be(tmp_path: Path) -> None:
    """The adjoint of a window gathers within bounds, but a size beyond the array is still a mistake."""
    module = exported(tmp_path, ts.program("Y[i] += X[i+p] * W[p]"))
    arrays = {"X": np.ones(5), "W": np.ones(3)}
    with pytest.raises(IndexError, match="position 5 of axis 0"):
        module.adjoint({**arrays, "i": 4, "Y.grad": np.ones(4)})
    with pytest.raises(ValueError, match="X is given twice"):
        module.forward({"X": np.ones(5)}, X=np.ones(5), W=np.ones(3))
    with pytest.raises(ValueError, match="takes a mapping"):
        module.forward([1.0])


# -- the file


def test_what_a_file_offers(tmp_path: Path) -> None:
    model = ts.program("Z[i] += W[i,j] * x[j]\nY[i] = tanh(Z[i])")
    both = exported(tmp_path, model)
    assert both.__all__ == ["adjoint", "forward"]
    assert "Y[i] = tanh(Z[i])" in (both.__doc__ or "")
    assert "forward(W=..., x=...) gives Y" in (both.__doc__ or "")
    assert "adjoint({'W': ..., 'x': ..., 'Y.grad': ...}) gives a dict of W.grad, x.grad" in (both.__doc__ or "")
    alone = exported(tmp_path, model, wrt=["x"])
    arrays = {"W": np.ones((2, 2)), "x": np.zeros(2), "Y.grad": np.array([1.0, 2.0])}
    np.testing.assert_array_equal(alone.adjoint(arrays), [3.0, 3.0])


@pytest.mark.parametrize(
    ("text", "reason"),
    [("Y[i] = floor(X[i])", "No output depends smoothly"), ("W[i] = W[i] - rate * g[i]", "updated in place")],
)
def test_a_program_without_a_derivative_has_no_adjoint(text: str, reason: str, tmp_path: Path) -> None:
    module = exported(tmp_path, ts.program(text))
    assert module.__all__ == ["forward"]
    assert not hasattr(module, "adjoint")
    assert reason in (module.__doc__ or "")


def code_names(path: Path) -> set[str]:
    """Every name that stands in the code of a file: not those in comments and texts."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        for field in ("id", "attr", "name", "arg", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.add(value)
    return found


def test_no_name_of_the_user_is_part_of_the_code(tmp_path: Path) -> None:
    text = "wide: int\nsecret[odd,name] += left[odd,other] * right[other,name+wide]\nspot argmax= secret[odd,name]"
    ts.program(text).export(tmp_path / "model.py")
    assert not code_names(tmp_path / "model.py") & {"secret", "odd", "left", "right", "other", "spot", "wide"}


HOSTILE = (
    'A"""\nraise SystemExit(3)\n"""', "A\nraise SystemExit(3)\n#", "A'] = 0; raise SystemExit(3) #", "A\\", '"', "A\r1",
    "\u2028x{0}",
)  # fmt: skip


def test_hostile_names_stay_texts(tmp_path: Path) -> None:
    """No text can hold such a name, but a program that was built by hand might."""
    jobs: list[Job] = []
    for number, name in enumerate(HOSTILE):
        index = ir.Index(f"i{name}")
        value = ir.Binary("*", ir.Access(name, (index,)), ir.Static(f"s{name}"))
        body = (ir.Statement(ir.Access(f"Y{name}", (index,)), "+=", value),)
        file = f"hostile_{number}.py"
        Program(ir.Loops(body, statics=(ir.StaticDeclaration(f"s{name}"),))).export(tmp_path / file)
        arrays = {name: np.arange(3.0), f"s{name}": 2}
        jobs += [(file, "forward", arrays), (file, "adjoint", {**arrays, f"Y{name}.grad": np.ones(3)})]
    results = run_elsewhere(tmp_path, jobs)
    for forward, adjoint in zip(results[::2], results[1::2], strict=True):
        np.testing.assert_array_equal(forward, [0.0, 2.0, 4.0])
        np.testing.assert_array_equal(adjoint, [2.0, 2.0, 2.0])


def test_deep_programs(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path)
    chain = " ".join(f"X[k[i]+{n % 2}] if X[i] < 0.{n:02d} else" for n in range(20))
    comparison.add(
        "deep", ts.program(f"Y[i] = {chain} 0"), None, {"X": np.linspace(0.1, 0.9, 4), "k": np.zeros(4, int)}
    )
    comparison.add(
        "nested", ts.program("Y[i] = " + "(1 - X[i] * " * 40 + "1" + ")" * 40), None, {"X": np.linspace(0.1, 0.9, 4)}
    )
    comparison.run()


# -- what is refused at the export


def test_a_derivative_that_cannot_be_formed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DerivativeError, match="updated in place"):
        ts.program("W[i] = W[i] - rate * g[i]").export(tmp_path / "model.py", wrt=["W"])
    with pytest.raises(ArgumentError, match="z is not an input"):
        ts.program("Y[i] = X[i]").export(tmp_path / "model.py", wrt=["z"])
    assert not list(tmp_path.iterdir())


def test_bad_paths_are_refused(tmp_path: Path) -> None:
    program = ts.program("Y[i] = X[i]")
    for path in (tmp_path, "", tmp_path / "none" / "model.py", "model\0.py", 3, None, b"model.py"):
        with pytest.raises(ArgumentError):
            program.export(path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.py").write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(ArgumentError, match="disk full"):
            ts.program("Y[i] = X[i]").export(tmp_path / "model.py")
    assert [p.name for p in tmp_path.iterdir()] == ["model.py"]
    assert (tmp_path / "model.py").read_text() == "old"
    ts.program("Y[i] = X[i]").export(str(tmp_path / "model.py"))
    assert "def forward" in (tmp_path / "model.py").read_text()
