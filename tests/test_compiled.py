"""Compiled equals interpreted: fixed programs and their adjoints, generated programs, both types, corners of calls."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import tensorswap as ts
from tensorswap.kernel.registers import Registers
from tensorswap.plan import nest
from tensorswap.program import Program
from tensorswap.run import call, products, tuning

from .corpus import CORPUS
from .corpus.entry import Entry
from .daily import LONG, share
from .generate import Case, programs

pytestmark = pytest.mark.compiled

PARTS = 4
EXAMPLES = 3_000 if LONG else 60

PLANTED = "conv1d_strided_dilated_padded"  # finds faults that are planted
TODAY = [*share([entry for entry in CORPUS if entry.name != PLANTED], 3), *(e for e in CORPUS if e.name == PLANTED)]

Arrays = dict[str, Any]


def outputs(program: Program, result: Any) -> dict[str, np.ndarray]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def check_compiled(program: Program, arrays: Arrays, infinities: bool = True) -> None:
    """The same names, shapes, types, and values up to the order of their sums.

    A product may be summed in another order, in which infinities of both signs meet elsewhere or not at all: without
    `infinities`, what is NaN by the interpreter may come out infinite.
    """
    expected = outputs(program, program.run_reference(arrays))
    found = outputs(program, program(arrays))
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        assert found[name].shape == wanted.shape, name
        assert found[name].dtype == wanted.dtype, name
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], wanted, err_msg=name)
            continue
        if not infinities:
            lost = np.isnan(wanted) & ~np.isfinite(found[name])
            wanted = np.where(lost, found[name], wanted)
        tolerance = 1e-10 if wanted.dtype == np.float64 else 1e-4
        size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1)
        np.testing.assert_allclose(found[name], wanted, rtol=tolerance, atol=tolerance * size, err_msg=name)


def single(arrays: Arrays) -> Arrays:
    return {
        k: v.astype(np.float32) if isinstance(v, np.ndarray) and v.dtype == np.float64 else v for k, v in arrays.items()
    }


@pytest.mark.parametrize("entry", TODAY, ids=lambda entry: entry.name)
def test_fixed_programs_and_their_adjoints(entry: Entry) -> None:
    random = np.random.default_rng(1)
    program, arrays = ts.program(entry.text), entry.inputs(random)
    check_compiled(program, arrays)
    results = outputs(program, program.run_reference(arrays))
    seeds = {f"{y}.grad": random.standard_normal(a.shape) for y, a in results.items() if a.dtype.kind == "f"}
    check_compiled(program.adjoint(wrt=list(entry.wrt)), {**arrays, **seeds})


@pytest.mark.parametrize("entry", CORPUS[::6], ids=lambda entry: entry.name)
def test_fixed_programs_in_single_precision(entry: Entry) -> None:
    check_compiled(ts.program(entry.text), single(entry.inputs(np.random.default_rng(2))))


@pytest.fixture
def tiny_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if caches were tiny and threads free: small programs too run in nested strips, on several threads."""
    monkeypatch.setattr(nest, "CACHE", 64)
    monkeypatch.setattr(nest, "GRAIN", 2)
    monkeypatch.setattr(tuning, "PARALLEL", 0)


@pytest.mark.usefixtures("tiny_strips")
@pytest.mark.parametrize("entry", share(CORPUS, 8), ids=lambda entry: entry.name)
def test_fixed_programs_in_tiny_strips(entry: Entry) -> None:
    random = np.random.default_rng(5)
    program, arrays = ts.program(entry.text), entry.inputs(random)
    check_compiled(program, arrays)
    results = outputs(program, program.run_reference(arrays))
    seeds = {f"{y}.grad": random.standard_normal(a.shape) for y, a in results.items() if a.dtype.kind == "f"}
    check_compiled(program.adjoint(wrt=list(entry.wrt)), {**arrays, **seeds})


@pytest.mark.usefixtures("tiny_strips")
@pytest.mark.parametrize("part", range(PARTS))
def test_generated_programs(part: int) -> None:
    @seed(1000 + part)
    @settings(max_examples=EXAMPLES // PARTS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=programs)
    def run(case: Case) -> None:
        check_compiled(ts.program(case.text), case.arrays, infinities=False)

    run()


@pytest.mark.parametrize("threads", [1, 2])
def test_large_enough_for_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "threads", lambda: threads)
    random = np.random.default_rng(3)
    arrays = {"A": random.standard_normal((70, 40)), "B": random.standard_normal((40, 50))}
    program = ts.program(
        "Y[i,j] += A[i,k] * B[k,j]\nZ[i,j] = tanh(Y[i,j])\nm[i] max= Z[i,j]\ns += Z[i,j] * m[i]\nreturn Y, m, s"
    )
    check_compiled(program, arrays)
    check_compiled(program.adjoint(wrt=["A", "B"], of=["s"]), {**arrays, "s.grad": 1.0})


@pytest.mark.optimised
@pytest.mark.parametrize("threads", [1, 2])
def test_long_sums_are_sums_of_sums(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million numbers added one by one lose three digits: the later ones meet a large sum."""
    monkeypatch.setattr(call, "threads", lambda: threads)
    value = 1 + 8196 * np.finfo(np.float64).eps
    total = ts.program("s += X[i]")(X=np.full(1_000_000, value))
    assert abs(total / 1_000_000 - value) < 1.5e-15


def test_another_batch_size_compiles_nothing() -> None:
    from tensorswap.run.known_code import kernels

    program = ts.program("H[b,h] += X[b,i] * W[h,i]\nY[b,h] = tanh(H[b,h])\nM[h] += Y[b,h]\nreturn Y, M")
    W = np.ones((3, 5))
    for one, other in ((9, 64), (2, 7)):  # for fewer than 8 the kernels are others
        check_compiled(program, {"X": np.ones((one, 5)), "W": W})
        before = len(kernels)
        check_compiled(program, {"X": np.ones((other, 5)), "W": W})
        assert len(kernels) == before


def test_layouts_and_the_callers_arrays() -> None:
    program = ts.program("W[i,j] = W[i,j] - rate * g[j,i]\nN += W[i,j] ** 2")
    W, g = np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(3, 2))
    W.flags.writeable = False
    check_compiled(program, {"W": W, "g": g, "rate": 0.5})
    check_compiled(program, {"W": W[::-1, ::-1], "g": g[::-1], "rate": 0.5})
    np.testing.assert_array_equal(W, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("order", [(4, -1), (-1, 4)])
def test_gathered_indices_are_checked_at_every_call(order: tuple[int, int]) -> None:
    """In either order: kernels that have met one of them look for themselves from then on."""
    program = ts.program("Y[n,d] = E[tok[n],d]")
    E = np.arange(8.0).reshape(4, 2)
    check_compiled(program, {"E": E, "tok": np.array([3, 0, 3])})
    for outside in order:
        with pytest.raises(ts.SwapError, match=f"position {outside}"):
            program(E=E, tok=np.array([3, 0, outside]))


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("W[g[i]] = W[g[i]] - X[i]", {"g": np.array([1, 1, 0])}),
        ("W[i//2] = W[i//2] - X[i]", {}),
        ("W[i%2] = W[i%2] + X[i]", {}),
    ],
)
def test_an_update_that_meets_an_element_twice_is_refused(text: str, more: Arrays) -> None:
    with pytest.raises(ts.SwapError, match="more than once"):
        ts.program(text)({"W": np.ones(3), "X": np.ones(3), **more})


def test_not_a_number_and_infinity_come_through() -> None:
    X = np.array([0.0, -1.0, np.nan, np.inf, -np.inf, 1000.0, -1000.0])
    for value in ("exp(X[i])", "tanh(X[i])", "sigmoid(X[i])", "log(X[i])", "sqrt(X[i])", "1 / X[i]", "max(X[i], 0)",
                  "X[i] - X[i]", "relu(X[i])", "softplus(X[i])", "silu(X[i])"):  # fmt: skip
        program = ts.program(f"Y[i] = {value}\nm max= Y[i]")
        for dtype in (np.float64, np.float32):
            found, wanted = program({"X": X.astype(dtype)}), program.run_reference({"X": X.astype(dtype)})
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=value)
        whole = ts.program(f"Y[i] = {value}")
        np.testing.assert_allclose(whole(X=X), whole.run_reference(X=X), rtol=1e-9, err_msg=value)


def test_exp_and_tanh_are_accurate() -> None:
    """exp to 2 units in the last place, tanh and sigmoid to 4."""
    x = np.concatenate([np.linspace(-80, 80, 20_001), np.linspace(-1, 1, 20_001)])
    for name, exact, units in (
        ("exp", np.exp, 2),
        ("tanh", np.tanh, 4),
        ("sigmoid", lambda v: 1 / (1 + np.exp(-v)), 4),
    ):
        for dtype in (np.float32, np.float64):
            values = x.astype(dtype)
            found = ts.program(f"Y[i] = {name}(X[i])")(X=values)
            wide = values.astype(np.longdouble) if dtype == np.float64 else values.astype(np.float64)
            wanted = exact(wide)
            spacing = np.spacing(np.abs(wanted.astype(dtype)))
            error = np.abs(found.astype(wide.dtype) - wanted) / spacing
            assert np.max(error[np.abs(wanted) > np.finfo(dtype).tiny]) <= units, (name, dtype)


CONTRACTIONS = {
    "matmul": ("Y[i,j] += A[i,k] * B[k,j]", {"A": (13, 9), "B": (9, 19)}),
    "transposed": ("Y[i,j] += A[i,k] * B[j,k]", {"A": (13, 21), "B": (7, 21)}),
    "both_transposed": ("Y[i,j] -= A[k,i] * B[k,j] / 3", {"A": (9, 13), "B": (9, 19)}),
    "batched": ("Y[h,i,j] += A[h,i,k] * B[h,j,k] / sqrt(size(k))", {"A": (2, 11, 18), "B": (2, 5, 18)}),
    "convolution": ("Y[b,o,i,j] += X[b,c,i+u,j+v] * W[o,c,u,v]", {"X": (2, 3, 9, 14), "W": (11, 3, 3, 2)}),
    "strided_convolution": ("Y[b,o,i,j] += X[b,c,2*i+u,2*j+v] * W[o,c,u,v]", {"X": (2, 3, 9, 14), "W": (11, 3, 3, 2)}),
    "two_sums": ("Y[i,j] += A[i,k,l] * B[k,l,j]", {"A": (9, 4, 5), "B": (4, 5, 17)}),
    "matrix_vector": ("y[i] += A[i,k] * x[k]", {"A": (13, 40), "x": (40,)}),
    "vector_matrix": ("y[j] += x[k] * A[k,j]", {"A": (13, 40), "x": (13,)}),
    "inner": ("s += x[k] * y[k]", {"x": (40,), "y": (40,)}),
    "outer": ("Y[i,j] += x[i] * y[j]", {"x": (9,), "y": (17,)}),
    "diagonal": ("y[i] += A[i,k] * B[k,i]", {"A": (9, 12), "B": (12, 9)}),
    "shared_index": ("Y[i,j] += A[i,j,k] * B[j,k]", {"A": (5, 9, 12), "B": (9, 12)}),
    "shifted": ("size(i) = 9\nY[i,j] += A[i+1,k] * B[k,j+2]", {"A": (13, 9), "B": (9, 19)}),
    "reversed": ("Y[i,j] += A[i,k] * B[size(k)-1-k,j]", {"A": (13, 9), "B": (9, 19)}),
    "empty": ("Y[i,j] += A[i,k] * B[k,j]", {"A": (3, 0), "B": (0, 4)}),
}


@pytest.mark.parametrize(("name", "dtype"), share(product(CONTRACTIONS, [np.float32, np.float64]), 3))
def test_contractions_with_their_adjoints(name: str, dtype: type) -> None:
    text, shapes = CONTRACTIONS[name]
    random = np.random.default_rng(4)
    program = ts.program(text)
    arrays = {k: random.standard_normal(shape).astype(dtype) for k, shape in shapes.items()}
    check_compiled(program, arrays)
    result = program.run_reference(arrays)
    gradient = random.standard_normal(result.shape).astype(dtype)
    check_compiled(program.adjoint(wrt=list(shapes)), {**arrays, f"{program.outputs[0]}.grad": gradient})


def test_plan_says_how_and_why() -> None:
    program = ts.program("H[b,h] += X[b,i] * W[h,i]\nY[b,h] = tanh(H[b,h])\nloss += Y[b,h] ** 2")
    text = str(program.plan(X=(64, 32), W=(128, 32)))
    assert "parallel over b" in text
    assert "each b writes elements of its own" in text
    assert "Y[b,h] = tanh(H[b,h])" in text
    assert str(ts.program("m max= X[i]").plan(X=np.array([2**63], np.uint64))).startswith("interpreted: X holds")


def test_source_holds_no_name_of_the_user() -> None:
    program = ts.program("secret[weird,name] += left[weird,other] * right[other,name]")
    source = program.source(left=(3, 4), right=(4, 5))
    assert "a0[i0,i1] += a1[i0,i2] * a2[i2,i1]" in source
    for name in ("secret", "weird", "name", "left", "right", "other"):
        assert name not in source.replace("context", "")


def test_import_does_not_import_numba() -> None:
    code = "import sys, tensorswap; assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


FOUND = {  # programs that once went wrong
    "copies_of_one_tensor_in_two_kernels": (
        "Y[n] += A[i,n] * B[i,m]\nM[n] += tanh(A[i,n])\nY[n] += C[i,n] * M[n]\nreturn Y",
        {"A": (64, 2), "C": (64, 2), "B": (64, 65)},
    ),
    "condition_before_its_loop": ("G[k,j,l] += Y[k,j,i] * P[l,i] if k > 0", {"Y": (3, 65, 40), "P": (5, 40)}),
    "sum_over_two_strips": ("P[i,j] = tanh(A[i,j])\nY[k,l] += P[i,j] * B[i,j,k] * C[i,j,l]",
                            {"A": (40, 30), "B": (40, 30, 9), "C": (40, 30, 17)}),
    "guard_on_column_and_sum": ("R[n,k,i] += Q[k,i,j] * X[n,j] if j <= i", {"Q": (3, 20, 20), "X": (40, 20)}),
    "guard_on_everything": ("R[i,j] += Q[i,k] * X[k,j] if k <= i and k >= j - 2", {"Q": (33, 37), "X": (37, 41)}),
    "folded": ("F[0,i] = a[i]\nF[1,i] = b[i]\nfor t:\n    F[t+2,i] = F[t+1,i] + c[t] * F[t,i]\n"
               "Y[i] = F[size(t)+1,i] * 2 + F[size(t),i]", {"a": (5,), "b": (5,), "c": (6,)}),
    "fractions_in_guards": ("Y[i] += X[i] * Z[j] if 0.5 < i <= 3.5 and j < i + 1.5 and 0.5*i < j",
                            {"X": (7,), "Z": (5,)}),
    "diagonal_in_steps": ("size(i) = 3\nfor t:\n    U[t,t] = X[t]\n    Y[t] max= U[t,i]\nreturn Y", {"X": (3,)}),
    "stride_and_another_size": ("Y[i] += X[2*i+p]*W[p] if p < size(V, 0)\nz += V[v]\nreturn Y",
                                {"X": (7,), "W": (3,), "V": (2,)}),
    "stride_of_a_short_index": ("size(Y, 0) = 12\nsize(i) = 4\nY[i] += X[i//2]*W[p] if i % 2 == 0",
                                {"X": (6,), "W": (1,)}),
    "stride_beside_a_branch": ("size(i) = 5\nY[i] += X[i//2]*(Z[i+1] if i < size(i)-1 else 0.5) if i % 2 == 0",
                               {"X": (3,), "Z": (5,)}),
    "stride_beside_an_or": ("size(i) = 5\nY[i] += X[i//2] if i % 2 == 0 and (i == 0 or Z[i-1] > 0)",
                            {"X": (3,), "Z": (4,)}),
    "buffer_under_inside": ("for t:\n    H[t] = X[t] + (H[t-1] if t > 0 else 1)\n"
                            "    Y[t] = (H[t-1] + 3 if Z[t] > -9 else 7) if inside\nreturn Y", {"X": (5,), "Z": (5,)}),
    "copy_under_inside": ("C[i+1] = X[i]\nC[0] = 2\nG[i] = C[i]\nY[i] = (G[i+1] + 3 if Z[i] > -9 else 5) if inside\n"
                          "return Y", {"X": (6,), "Z": (6,)}),
    "padded_in_two_factors": ("size(i) = size(X,0)\nY[i] += X[i+p-1] * exp(1/X[i+p-1]) * W[p] if inside",
                              {"X": (40,), "W": (3,)}),
    "stride_under_values": ("Y[s] += A[(s-u)//3]*W[u] if (s-u) % 3 == 0 and (s-u)//3 >= 0 and (s-u)//3 < size(A,0) "
                            "and M[s] > 0", {"A": (3,), "W": (3,), "M": (10,)}),
    "fraction_that_keeps_a_read_in_bounds": ("Y[i] = X[i-1] + Z[i] if i > 0.5", {"X": (4,), "Z": (5,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_programs_that_once_went_wrong(name: str) -> None:
    text, shapes = FOUND[name]
    random = np.random.default_rng(6)
    program = ts.program(text)
    arrays = {k: random.standard_normal(shape) for k, shape in shapes.items()}
    check_compiled(program, arrays)
    seed = random.standard_normal(program.run_reference(arrays).shape)
    check_compiled(program.adjoint(wrt=list(shapes)), {**arrays, f"{program.outputs[0]}.grad": seed})


@pytest.mark.parametrize("size", [(32, 16), (47, 16), (200, 33)])
def test_a_guard_that_keeps_two_reads_in_bounds_stays_for_the_second(size: tuple[int, int]) -> None:
    rows, columns = size
    around = np.full((rows + 2, columns), np.nan)  # what a read beyond the array would find
    around[1:-1] = np.random.default_rng(3).standard_normal(size)
    adjoint = ts.program("Y[m] += A[m+1] * B[m,i]").adjoint(wrt=["A"])
    check_compiled(adjoint, {"A": np.ones(rows + 1), "B": around[1:-1], "Y.grad": np.ones(rows)})
    shifted = ts.program("size(i) = size(X, 0)\nY[i] += X[i-u+1] * Z[i-u+1,k] * W[u,k] if inside")
    check_compiled(shifted, {"X": np.ones(rows), "Z": around[1:-1], "W": np.ones((3, columns))})


def test_a_padded_copy_stays_within_the_callers_array() -> None:
    around = np.ones(80)
    around[40:] = 1e6
    program = ts.program("size(i) = size(X, 0)\nY[i,m] += X[i+u] * W[m,u] if inside")
    check_compiled(program, {"X": around[:40], "W": np.ones((17, 3))})


@pytest.mark.parametrize("taken", [False, True], ids=["by broadcasts", "numbers of memory"])
def test_large_products_are_numpys(taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "registers", lambda: Registers(64 if taken else 32, 32, by_lane=False))
    A, B = np.random.default_rng(7).standard_normal((2, 701, 701))
    texts = {
        "Y[i,j] += A[i,k] * B[k,j]": A @ B,
        "Y[j,i] -= A[k,i] * B[j,k]": -(B @ A),
        "Y[i,j] += A[k,i] * B[k,j]": A.T @ B,
    }
    for text, wanted in texts.items():
        program = ts.program(text)
        assert ("numpy" in str(program.plan(A=A, B=B))) == (not taken or "Y[i,j] += A[k" in text)
        np.testing.assert_allclose(program(A=A, B=B), wanted, rtol=1e-10, atol=1e-10)
    assert ts.program("size(Y, 0) = 710\nY[i,j] += A[i,k] * B[k,j]")(A=A, B=B).shape == (710, 701)


@pytest.mark.filterwarnings("ignore:a call is interpreted")
def test_numbers_at_the_edge_of_their_types() -> None:
    check_compiled(ts.program("m max= X[i]"), {"X": np.array([2**63 + 7, 3], np.uint64)})
    program = ts.program("Y[i] = n * X[i]")
    for n in (1, 2**63):
        check_compiled(program, {"X": np.ones(2), "n": n})
    for n in (1.0, 1e300):
        assert program(X=np.ones(2, np.float32), n=n).dtype == np.float32
