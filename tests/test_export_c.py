"""Exported C files: they compile without a warning, and give what the program and its adjoint give."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError
from tensorswap.program import Program
from tensorswap.rules.activity import default_wrt
from tensorswap.rules.derived_names import next_suffix
from tensorswap.run.arguments import defaults
from tests.daily import LONG
from tests.library.rows import FAMILIES, rows_of
from tests.library.table import options_of
from tests.test_kernel_ir import LAYER, PROGRAMS, arrays_of
from tests.test_library import ROWS, answers

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
FLAGS = ["-O3", "-march=native", "-fopenmp", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-function"]
QUICK = [flag if flag != "-O3" else "-O1" for flag in FLAGS]
KINDS = {"float": np.float32, "double": np.float64, **{f"{k}{8 * n}_t": np.dtype(f"{k[0]}{n}")
         for k in ("int", "uint") for n in (1, 2, 4, 8)}}  # fmt: skip


class Library:
    """A compiled file. Its functions are called as its header says."""

    def __init__(self, folder: Path, flags: list[str]) -> None:
        assert COMPILER is not None
        command = [COMPILER, *flags, "-shared", "-fPIC", "-o", "model.so", "model.c", "-lm"]
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr[:2000]
        self.header = (folder / "model.h").read_text()
        self.code = ctypes.CDLL(str(folder / "model.so"))

    def call(self, function: str, program: Program, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
        """Arrays in the order of inputs; results by the shapes that the header tells."""
        (declared,) = re.findall(rf"int {function}\((.*)\);", self.header)
        about = self.header[: self.header.index(f"int {function}(")].rpartition("/*")[2]
        shapes = [eval(text) for text in re.findall(r"of shape (\(.*\))", about)]
        kinds = [] if declared == "void" else [KINDS[p.replace("const ", "").split()[0]] for p in declared.split(",")]
        inputs = [np.ascontiguousarray(arrays[name], kind) for name, kind in zip(program.inputs, kinds, strict=False)]
        results = [np.full(s, 7, k) for s, k in zip(shapes[len(inputs) :], kinds[len(inputs) :], strict=True)]
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *results)]
        assert getattr(self.code, function)(*addresses) == 0
        return dict(zip(program.outputs, results, strict=True))


def check_exported(program: Program, arrays: dict[str, Any], folder: Path, flags: list[str] = QUICK) -> None:
    program.export(folder / "model.c", like=arrays)
    library = Library(folder, flags)
    given = {**defaults(program.loops), **arrays}
    program = program._for_call(arrays)
    wanted = outputs(program, program.run_reference(arrays))
    check_close(library.call("forward", program, given), wanted)
    if "int adjoint(" in library.header:
        grad = next_suffix(program.loops, "grad")
        seeds = {f"{n}.{grad}": np.full(a.shape, 0.5, a.dtype) for n, a in wanted.items() if a.dtype.kind == "f"}
        of = [name for name, array in wanted.items() if array.dtype.kind == "f"]
        adjoint = program.adjoint(wrt=default_wrt(program.loops), of=of)
        own = {k: v for k, v in {**arrays, **seeds}.items() if k in adjoint.loops.names}
        found = library.call("adjoint", adjoint, {**given, **seeds})
        check_close(found, outputs(adjoint, adjoint.run_reference(own)))


def outputs(program: Program, result: Any) -> dict[str, np.ndarray]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def check_close(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].shape == array.shape, name
        if array.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], array, err_msg=name)
            continue
        assert found[name].dtype == array.dtype, name
        tolerance = 1e-9 if array.dtype == np.float64 else 1e-4
        size = np.max(np.abs(array[np.isfinite(array)]), initial=1)
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance * size, err_msg=name)


@needs_compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    text, shapes = PROGRAMS[name]
    check_exported(ts.program(text), arrays_of(shapes), tmp_path)


@needs_compiler
def test_on_all_threads(tmp_path: Path) -> None:
    check_exported(ts.program(LAYER), arrays_of({"X": (4000, 60), "W": (30, 60)}, np.float32), tmp_path, FLAGS)


@needs_compiler
def test_a_gradient_and_its_adjoint(tmp_path: Path) -> None:
    check_exported(ts.program(LAYER).grad(wrt=["W"]), arrays_of({"X": (9, 6), "W": (3, 6)}), tmp_path)


@needs_compiler
@pytest.mark.compiled
def test_a_program_that_was_called_is_written_for_such_arrays(tmp_path: Path) -> None:
    program, arrays = ts.program(LAYER), arrays_of({"X": (9, 6), "W": (3, 6)}, np.float32)
    program(arrays)
    program.export(tmp_path / "last.c")
    program.export(tmp_path / "like.c", like=arrays)
    assert (tmp_path / "last.h").read_text() == (tmp_path / "like.h").read_text().replace("like.c", "last.c")


@needs_compiler
@pytest.mark.parametrize("names", ["t0 t1 kernel0", "enough threads malloc", "array_2 int64_t NULL", "linux asm k"])
def test_names_that_a_file_needs_itself(names: str, tmp_path: Path) -> None:
    x, w, y = names.split()
    arrays = {x: np.arange(6.0).reshape(2, 3), w: np.arange(3.0)}
    check_exported(ts.program(f"{y}[i] += {x}[i,j] * {w}[j]\nQ[i] = {y}[i] ** 2\nreturn {y}, Q"), arrays, tmp_path)


@needs_compiler
def test_whole_numbers_alone_have_no_adjoint(tmp_path: Path) -> None:
    program, arrays = ts.program("Y[i] = 3 * X[i]"), {"X": np.array([1, -2], np.int8)}
    program.export(tmp_path / "model.c", like=arrays)
    library = Library(tmp_path, QUICK)
    assert "adjoint" not in library.header
    check_close(library.call("forward", program, arrays), {"Y": np.array([3, -6])})


@needs_compiler
def test_an_update_leaves_its_input(tmp_path: Path) -> None:
    program = ts.program("W[i] = W[i] - 0.5 * g[i]")
    check_exported(program, {"W": np.arange(4.0), "g": np.ones(4)}, tmp_path)
    assert "new_W" in (tmp_path / "model.h").read_text()


@needs_compiler
def test_names_that_the_file_has_itself(tmp_path: Path) -> None:
    program = ts.program("status[i] = t0[k[i]] * part[i] + kernel0[i]")
    arrays = {name: np.arange(3.0) for name in ("t0", "part", "kernel0")}
    check_exported(program, {**arrays, "k": np.array([2, 0, 1])}, tmp_path)


OPS = ["linear", "layer_norm", "cross_entropy", "max_pool2d", "gru"]
ALL = sorted(row.name for family in FAMILIES for row in rows_of(family))


@needs_compiler
def test_a_nan_is_the_largest_and_the_smallest(tmp_path: Path) -> None:
    program = ts.program("high[b] max= X[b,i]\nlow[b] min= X[b,i]\nhigh[b] max= Z[b,i]")
    X, Z = np.random.default_rng(1).standard_normal((2, 5, 40))
    for row, place in ((1, 0), (2, 39), (3, 17)):
        X[row, place] = np.nan
    Z[4, 3] = np.nan
    check_exported(program, {"X": X, "Z": Z}, tmp_path, FLAGS)


@needs_compiler
@pytest.mark.parametrize("op", ALL if LONG else OPS)
def test_ops_of_the_library(op: str, tmp_path: Path) -> None:
    family = next(family for family in FAMILIES if any(row.name == op for row in rows_of(family)))
    arrays = {**answers(family)[op, 0].input, **options_of(ROWS[op].cases[0])}
    check_exported(ts.load(op), arrays, tmp_path)


BAD = [
    ("Y[b,d] = E[tok[b],d]", {"E": np.ones((3, 2)), "tok": np.array([0, 2])}, "tok", ([0, 3], [-1, 0], [2**62, 0])),
    ("size(Y, 0) = 3\nY[g[i]] = X[i]", {"X": np.ones(2), "g": np.array([0, 1])}, "g", ([1, 1], [3, 0])),
    ("Y[i] = X[i] // k[i]", {"X": np.array([5, 7]), "k": np.array([2, 1])}, "k", ([0, 1],)),
]


@needs_compiler
@pytest.mark.parametrize(("text", "arrays", "name", "bad"), BAD)
def test_bad_values_are_refused(text: str, arrays: dict[str, Any], name: str, bad: Any, tmp_path: Path) -> None:
    program = ts.program(text)
    check_exported(program, arrays, tmp_path)
    library = Library(tmp_path, QUICK)
    for values in bad:
        given = [np.ascontiguousarray(values if n == name else arrays[n]) for n in program.inputs]
        result = np.zeros(100)
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (*given, result)]
        assert library.code.forward(*addresses) == 2


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    program = ts.program("Y[i] = X[i] * 2")
    with pytest.raises(ArgumentError, match="given types and shapes"):
        program.export(tmp_path / "model.c")
    with pytest.raises(ArgumentError, match="stays within 64 bits"):
        ts.program("Y[i] = X[g[i]*g[i]*g[i]]").export(tmp_path / "model.c", like={"X": (2,), "g": np.array([0, 1])})
    assert not list(tmp_path.iterdir())
