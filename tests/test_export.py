"""Exported files: they run where tensorswap cannot be imported, and give what the program and its adjoint give."""

from __future__ import annotations

import ast
import importlib.util
import os
import pickle
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError, DerivativeError, LimitError
from tensorswap.language import ir
from tensorswap.program import Program

from .corpus import CORPUS

Arrays = dict[str, Any]
Job = tuple[str, str, Arrays]  # a file, the function to call, its arguments

# Runs jobs where nothing of tensorswap can be imported. A job gives a result, or the name and the text of its error.
RUNNER = """
import importlib.util, pickle, sys, warnings

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorswap", "lark"):
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


def run_elsewhere(folder: Path, jobs: list[Job], compiled: bool = True) -> list[Any]:
    (folder / "jobs").write_bytes(pickle.dumps(jobs))
    environment = os.environ if compiled else {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", RUNNER, "jobs", "results"]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
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
                results = outputs(program, expected).items()
                seeds = {f"{y}.grad": random.standard_normal(a.shape) for y, a in results if a.dtype.kind == "f"}
                seeds = {name: seed.astype(outputs(program, expected)[name[:-5]].dtype) for name, seed in seeds.items()}
                self.call(file, "adjoint", adjoint, {**arrays, **seeds})

    def call(self, file: str, function: str, program: Program, arrays: Arrays) -> Any:
        expected = program.run_reference(arrays)
        self.jobs.append((file, function, arrays))
        self.expected.append((program, expected))
        return expected

    def run(self, compiled: bool = True) -> None:
        results = run_elsewhere(self.folder, self.jobs, compiled)
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
    for name in COMPILED[part::PARTS]:
        arrays = ENTRIES[name].inputs(np.random.default_rng(1))
        comparison.add(name, ts.program(ENTRIES[name].text), list(ENTRIES[name].wrt), arrays, single(arrays))
    for name, (program, wrt, arrays) in list(OWN.items())[part::PARTS]:
        comparison.add(name, program, wrt, arrays, single(arrays))
    comparison.run()


def test_all_programs_of_the_corpus(tmp_path: Path) -> None:
    """The same files without a compiler: Python runs the kernels as they stand."""
    comparison = Comparison(tmp_path)
    for entry in CORPUS:
        comparison.add(entry.name, ts.program(entry.text), list(entry.wrt), entry.inputs(np.random.default_rng(2)))
    comparison.run(compiled=False)


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path)
    comparison.add("model", ts.program("Y[i] = X[i] + 2"), ["X"], {"X": np.arange(3.0)})
    file = tmp_path / "model.py"
    file.write_text(file.read_text().replace("f0(2)", "f0(3)"))
    with pytest.raises(AssertionError, match=r"model\.py, forward"):
        comparison.run(compiled=False)


WHOLE, FLOAT = np.array([[3, 7], [7, -1]]), np.array([0.5, -2.5, np.nan, 0.0, 1.5])
CASES: list[tuple[str, Arrays]] = [
    ("Y[i,j] = X[i,j] + 1\nm[i] max= X[i,j]\ns += X[i,j]\np *= X[i,j]", {"X": WHOLE}),
    ("Y[i,j] = X[i,j] + 1\nm[i] max= X[i,j]\ns += X[i,j]\np *= X[i,j]", {"X": WHOLE.astype(np.int8)}),
    ("Y[i,j] = X[i,j]\nZ[i,j] = X[i,j] / 2\nm[i] min= X[i,j]", {"X": WHOLE.astype(np.uint8)}),
    ("Y[i,j] = X[i,j]\nZ[i,j] = X[i,j] * 0.5", {"X": WHOLE > 5}),
    ("Y[i] = X[i] > 0\ncount += X[i] > 0\nany max= X[i] > 0", {"X": FLOAT}),
    ("Y[i] = a * X[i] + 0.1", {"X": FLOAT.astype(np.float32), "a": 2.0}),
    ("Y[i] = a * X[i] + 0.1", {"X": FLOAT.astype(np.float32), "a": np.float64(2)}),
    ("Y[i] = a * X[i] + 0.1", {"X": np.arange(3), "a": True}),
    ("Y[i] = X[i] * Z[i]\nV[i] = X[i] * 0.1", {"X": FLOAT.astype(np.float32), "Z": np.arange(5, dtype=np.int32)}),
    ("s = uniform(1) * 2\nu = s * X", {"X": np.float32(2)}),
    ("m[i] max= X[i,j]\nn[i] min= X[i,j]\np[i] *= X[i,j]\na[i] argmax= X[i,j]", {"X": np.zeros((2, 0))}),
    ("m[i] max= X[i,j]", {"X": np.zeros((2, 0), np.int32)}),
    ("a argmax= X[i,j]\na argmax= v[k]\nb argmin= v[k]", {"X": WHOLE * 1.0, "v": FLOAT}),
    ("a[i] argmax= X[i,j] if X[i,j] < 2", {"X": WHOLE}),
    ("Y[i] = X[i] // 2 + X[i] % 3", {"X": np.array([5, -7])}),
    ("Y[i] = X[i] // k[i] if k[i] != 0", {"X": np.array([5, 7]), "k": np.array([2, 0])}),
    ("Y[i] = X[i] // k[i] + X[i] % 2.5", {"X": np.array([5.0, 7.0]), "k": np.array([2.0, 0.0])}),
    ("Y[i] = X[i] ** 2 + X[i] ** 0.5 + 2 ** X[i] + X[i] ** -1\nZ[i] = X[i] ** 3", {"X": np.arange(1, 4)}),
    ("Y[i] = round(X[i]) + floor(X[i]) + ceil(X[i]) + sign(X[i]) + abs(X[i])", {"X": np.array([-(2**60) - 1, 3])}),
    ("Y[i] = round(X[i]) + floor(X[i]) + ceil(X[i]) + sign(X[i]) + abs(X[i])", {"X": FLOAT}),
    ("Y[i] = sigmoid(X[i]) + gelu(X[i]) + silu(X[i]) + softplus(X[i]) + erf(X[i]) + relu(X[i])", {"X": FLOAT * 400}),
    ("Y[i] = atan2(X[i], i) + hypot(i, X[i]) + pow(i, X[i]) + min(X[i], i, 2) + max(X[i], 0.5)", {"X": FLOAT}),
    ("Y[i] = X[i] + normal(seed, i, 2*i) + uniform(-i)", {"X": FLOAT, "seed": -3}),
    ("size(i) = 7\nY[i] = (X[i+1] if i < 4 else 0) + (1 if i > 4 or X[i+0] > 0 else 2)", {"X": FLOAT}),
    ("size(i) = 7\nY[i] = X[k[i]] if k[i] < 5 else 0", {"X": FLOAT, "k": np.array([0, 9, 3, 4, 5, 5, 1])}),
    ("size(i) = 7\nY[i] = (X[i-1] if i % 2 == 0 else X[i+2]) if inside", {"X": FLOAT}),
    ("size(i) = 7\nY[i] += X[k[i-1]] if inside", {"X": FLOAT, "k": np.array([0, 9, 3, 4, -5, 5, 1])}),
    ("size(i) = 7\nY[i] = (X[i-1] if i < 6 else 3) if i == 6 or inside", {"X": FLOAT}),
    ("size(H, 0) = bins\nH[bin[n],k] += w[n,d,k]", {"bin": np.array([0, 2]), "w": np.ones((2, 3, 2)), "bins": 3}),
    ("Y[...,i] = X[...,i] / size(X, 1) + Z[...]\ns += X[...,i] * size(...)", {"X": np.ones((2, 2, 4)), "Z": WHOLE}),
    ("Y[...,o] += X[...,i] * W[o,i]", {"X": FLOAT[:2], "W": WHOLE}),
    ("size(i) = size(X, 0) - 1\nX[i+1] = X[i+0]\nX[i+0] = 2 * X[i+0]", {"X": FLOAT}),
    ("W[k[b]] = W[k[b]] - g[b]", {"W": np.ones(3), "k": np.array([1, 0, 2]), "g": FLOAT[:3]}),
    ("for t:\n    s += s * X[t,k] + 1\n    C[t] = s\nreturn C", {"X": WHOLE * 0.5}),
    ("Y[2*i] = X[i]\nY[2*i+1] = -X[i]", {"X": FLOAT}),
    ("def f(X[i], a=inf, n: int = 2) -> Y[i]:\n    Y[i] = min(X[i], a) * n", {"X": FLOAT}),
    ("Y[i] += X[i+j]", {"X": FLOAT, "i": 3, "j": 2}),
    ("Y[i] += X[i+p] * W[p]", {"X": FLOAT, "W": FLOAT[:2], "i": 2}),
    ("Y[i] = X[i] / size(Z, -1)", {"X": FLOAT, "Z": WHOLE}),
    ("s += 0.5", {}),
]  # fmt: skip


def test_types_guards_positions_and_sizes(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path)
    for number, (text, arrays) in enumerate(CASES):
        comparison.add(f"case_{number}", ts.program(text), None, arrays)
    comparison.run(compiled=False)


def test_arrays_of_any_layout(tmp_path: Path) -> None:
    """Compiled: transposed, reversed, read-only, of the other byte order, and no arrays at all."""
    program = ts.program("Y[i,j] += X[i,k] * W[k,j]\nX[i,k] = X[i,k] * 0.5")
    module = exported(tmp_path, program)
    X, W = np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(12.0).reshape(3, 4))
    X.flags.writeable = False
    for x, w in ((X, W), (X[::-1, ::-1], W[:, ::2]), (X.astype(">f8"), W), (X.tolist(), W), (X[:0], W)):
        check_same(program, module.forward(X=x, W=w), program.run_reference(X=x, W=w))
    np.testing.assert_array_equal(X, np.arange(6.0).reshape(2, 3))


# -- what is refused at the call


PAIR, GATHER, SHIFT = "Y[i] = X[i] * Z[i]", "Y[b,d] = E[tok[b],d]", "shift: int\nY[i] = X[i+shift]"
REFUSED: list[tuple[str, Arrays, str]] = [
    (PAIR, {"X": FLOAT, "z": FLOAT}, "no input 'z'; the inputs are X, Z\nthe input Z is missing"),
    (PAIR, {"X": FLOAT, "Z": WHOLE}, "Z[i] needs an array with 1 axis; the array given has shape (2, 2)"),
    (PAIR, {"X": FLOAT, "Z": FLOAT[:4]}, "index i has size 5 on X (axis 0) but 4 on Z (axis 0)"),
    (PAIR, {"X": FLOAT, "Z": FLOAT, "i": 4}, "index i has size 4 but 5 on X (axis 0)"),
    (PAIR, {"X": FLOAT, "Z": None}, "Z is None"),
    (PAIR, {"X": FLOAT, "Z": [[1], [1, 2]]}, "Z cannot be read as an array"),
    (PAIR, {"X": FLOAT, "Z": FLOAT * 1j}, "Z has dtype complex128"),
    (PAIR, {"X": FLOAT, "Z": FLOAT.astype(np.float16)}, "Z has dtype float16"),
    (GATHER, {"E": WHOLE, "tok": np.array([0.0])}, "tok is used as an integer, but has dtype float64"),
    (SHIFT, {"X": FLOAT, "shift": 1.0}, "the static integer shift must be a whole number, not float"),
    (SHIFT, {"X": FLOAT}, "the static integer shift is missing"),
    ("size(i) = size(X, 0) // n\nY[i] = X[n*i]", {"X": FLOAT, "n": 0}, "`size(X, 0) // n` divides by zero"),
    ("size(i) = size(X, 0) - 9\nY[i] = X[i+0]", {"X": FLOAT}, "index i would have the negative size -4"),
    ("size(i) = n\nY[i] = 1", {"n": 10**15}, "more than any memory holds"),
    ("size(X, 0) = 4\nY[i] = X[i]", {"X": FLOAT}, "size(X, 0) is 5, but is declared as 4"),
    ("Y[i] = X[i] // k[i]", {"X": np.array([5, 7]), "k": np.array([2, 0])}, "`X[i] // k[i]` divides by zero"),
    ("size(Z, 0) = 3\nZ[p[i]] = X[i]", {"X": FLOAT[:3], "p": np.array([2, 1, 1])}, "Z[p[i]] more than once"),
    ("W[k[b]] = W[k[b]] - g[b]", {"W": FLOAT, "k": np.array([1, 1]), "g": FLOAT[:2]}, "W[k[b]] more than once"),
    ("Y[...,i] = X[...,i] + Z[...]", {"X": WHOLE, "Z": FLOAT}, "but here for (2,) on X, (5,) on Z"),
    ("Y[...,i] = X[...,i] + Z[...]", {"X": 1.0, "Z": FLOAT}, "X has 0 axes, fewer than its 1 beside `...`"),
]
NARROWER: list[tuple[str, Arrays, str]] = [  # than the program itself, which takes these
    ("s: int\nY[i] = X[i+4*s] if inside", {"X": FLOAT, "i": 3, "s": -(2**61)}, "numbers that are too large"),
    ("Y[i] += X[i+j]", {"X": FLOAT, "i": 3}, "the size of index j is missing"),
]
OUTSIDE: list[tuple[str, Arrays, str]] = [
    (GATHER, {"E": WHOLE, "tok": np.array([0, 2])}, "E[tok[b],d] asks for position 2 of axis 0, which has size 2"),
    (GATHER, {"E": WHOLE, "tok": np.array([-1])}, "position -1 of axis 0"),
    (SHIFT, {"X": FLOAT, "shift": -1}, "X[i+shift] asks for position -1 of axis 0"),
    ("size(H, 0) = n\nH[b[i]] += w[i]", {"b": np.array([0, 9]), "w": FLOAT[:2], "n": 3}, "position 9 of axis 0"),
    ("Y[i] += X[i+j]", {"X": FLOAT, "i": 3, "j": 4}, "position 5 of axis 0"),
    ("size(i) = 7\nY[i] = X[i+1] if i < 6 else 0", {"X": FLOAT}, "position 5 of axis 0"),
    ("def f(X[i], Z[j]) -> Y[j]:\n    Y[i] = X[i]", {"X": FLOAT, "Z": FLOAT[:3]}, "position 4 of axis 0"),
]


@pytest.mark.parametrize(
    ("kind", "calls"), [("ValueError", REFUSED), ("IndexError", OUTSIDE), ("ValueError", NARROWER)]
)
def test_bad_calls_are_refused_with_a_reason(kind: str, calls: list[tuple[str, Arrays, str]], tmp_path: Path) -> None:
    jobs: list[Job] = []
    for number, (text, arrays, _) in enumerate(calls):
        program = ts.program(text)
        with pytest.raises(ts.SwapError) if calls is not NARROWER else nullcontext():
            program.run_reference(arrays)
        program.export(tmp_path / f"bad_{number}.py")
        jobs.append((f"bad_{number}.py", "forward", arrays))
    for (text, _, message), result in zip(calls, run_elsewhere(tmp_path, jobs, compiled=False), strict=True):
        assert isinstance(result, tuple), (text, result)
        assert result[0] == kind, (text, result)
        assert message in result[1], text


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
    assert "forward(W=..., x=...)  # gives Y" in (both.__doc__ or "")
    assert both.ADJOINT.inputs == ("W", "x", "Y.grad")
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


def test_kernels_open_with_their_statement(tmp_path: Path) -> None:
    ts.program("S[i,j] += Q[i,k] * K[j,k] if j <= i").export(tmp_path / "model.py")
    assert (
        "def loop_0(a2, a0, a1, n0, n1, n2):\n"
        "    # S[i,j] += Q[i,k] * K[j,k] if j <= i\n"
        "    for i0 in range(n0):\n"
        "        for i1 in range(min(n1, i0 + 1)):\n"
        "            total0 = a2[i0, i1]\n"
        "            for i2 in range(n2):\n"
        "                total0 += a0[i0, i2] * a1[i1, i2]\n"
        "            a2[i0, i1] = total0\n"
    ) in (tmp_path / "model.py").read_text()


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
    names = code_names(tmp_path / "model.py")
    assert {"a0", "i0", "n0", "s0", "loop_0"} <= names
    assert not names & {"secret", "odd", "left", "right", "other", "spot", "wide"}
    imports = [n for n in ast.walk(ast.parse((tmp_path / "model.py").read_text())) if isinstance(n, ast.Import)]
    assert {alias.name for n in imports for alias in n.names} == {"math", "numpy"}


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
    results = run_elsewhere(tmp_path, jobs, compiled=False)
    for forward, adjoint in zip(results[::2], results[1::2], strict=True):
        np.testing.assert_array_equal(forward, [0.0, 2.0, 4.0])
        np.testing.assert_array_equal(adjoint, [2.0, 2.0, 2.0])


def test_deep_and_wide_programs(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path)
    arrays = {"X": np.linspace(0.1, 0.9, 4)}
    chain = " ".join(f"X[k[i]+{n % 2}] if X[i] < 0.{n:02d} else" for n in range(20))
    for number, (text, more) in enumerate(
        (
            ("Y[i] = " + " + ".join(["2 * X[i]"] * 60), {}),
            ("Y[i] = " + "sin(" * 40 + "X[i]" + ")" * 40, {}),
            ("Y[i] = " + "(1 - X[i] * " * 40 + "1" + ")" * 40, {}),
            (f"Y[i] = {chain} 0", {"k": np.zeros(4, int)}),
            ("Y[i] = 1 if " + " and ".join(f"X[i] > 0.{n:02d}" for n in range(99)), {}),
        )
    ):
        comparison.add(f"deep_{number}", ts.program(text), None, {**arrays, **more})
    comparison.run(compiled=False)
    axes = ",".join(f"i{n}" for n in range(30))
    with pytest.raises(LimitError, match="too large or too deep"):
        ts.program(f"Y[{axes}] = X[{axes}]").export(tmp_path / "model.py")


# -- what is refused at the export


def test_what_only_a_run_can_show_is_refused(tmp_path: Path) -> None:
    program = ts.program("for t:\n    C[t] = X[t] + (C[p[t]] if t > 0 else 0)")
    with pytest.raises(ArgumentError, match="only a run can show that no step reads"):
        program.export(tmp_path / "model.py")
    with pytest.raises(ArgumentError, match=r"size\(X, 0\) is one of the axes that `...` stands for"):
        ts.program("Y[...,i] = X[...,i] / size(X, 0)").export(tmp_path / "model.py")
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
