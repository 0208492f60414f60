"""The passes of a plan, each on programs made for it: the result stays that of the interpreter, and of its type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel.registers import registers
from tensorswap.lower import panels
from tests.daily import share
from tests.test_planner import Arrays, check

pytestmark = pytest.mark.compiled

# -- values chosen, sifted, lifted and forwarded

ENTROPY = """
M[n] max= X[n,c]
Z[n] += exp(X[n,c] - stop(M[n]))
L[n,c] = X[n,c] - stop(M[n]) - log(Z[n])
"""
SIFTED = {
    "label": ENTROPY + "loss -= L[n,label[n]] / size(n)",
    "weighted": ENTROPY + "loss -= L[n,label[n]] * W[label[n]]",
    "guarded": ENTROPY + "loss -= L[n,label[n]] if label[n] != 3",
    "read twice": ENTROPY + "loss -= L[n,label[n]]\nloss += 0.1 * L[n,0]",
    "read whole too": ENTROPY + "loss -= L[n,label[n]]\nloss += 0.1 * L[n,c] * L[n,c]",
}


@pytest.mark.parametrize("text", SIFTED.values(), ids=SIFTED)
def test_a_gathered_element_of_each_row(text: str) -> None:
    numbers = np.random.default_rng(1)
    arrays = {"X": numbers.standard_normal((50, 40)), "W": numbers.random(40), "label": numbers.integers(0, 40, 50)}
    program = ts.program(text).grad(wrt=["X"])
    check(program, {name: array for name, array in arrays.items() if name in program.inputs})


COUNTED = {
    "read at a number": "size(k) = 4\nsize(l) = 8\nT[l,k] = v\nZ += v * T[1,k]\nreturn Z",
    "read at a gathered place": "size(n) = 7\nL[n,c] = W[c] * 2\nZ += L[n,label[m]]\nreturn Z",
    "written at a gathered place": "size(c) = 40\nG[n,label[n]] += v\nZ += G[n,c]\nreturn Z",
    "read behind inside": "L[n,c] = W[c] * label[n]\nZ += L[n,label[n]+1] if inside\nreturn Z",
}


@pytest.mark.parametrize("text", COUNTED.values(), ids=COUNTED)
def test_a_sum_counts_an_index_that_its_values_do_not_need(text: str) -> None:
    arrays = {"v": np.array(1.5), "W": np.arange(40.0), "label": np.arange(13, 40, 13)}
    program = ts.program(text)
    check(program, {name: array for name, array in arrays.items() if name in program.inputs})


def test_what_only_labels_read_is_never_stored() -> None:
    program = ts.program(SIFTED["label"]).grad(wrt=["X"])
    plan = str(program.plan(X=(50, 40), label=np.zeros(50, int)))
    assert "L.grad" not in plan
    assert "L[n,c]" not in plan
    assert "X.grad[n,label[n]]" in plan


def test_statements_on_the_same_axes_share_a_nest() -> None:
    """Even if they call its indices otherwise."""
    plan = str(ts.program("M[b] += X[b,k]\nC[n,d] = X[n,d] - M[n]\nY[i] += C[i,j] ** 2").plan(X=(500, 400)))
    assert "never stored beyond a strip: C, M" in plan
    assert "\n2 " not in plan


def test_what_lives_in_one_step_keeps_one_slice() -> None:
    text = "for t:\n    A[t,j] = exp(X[t,j])\n    Y[t,j] = A[t,j] * A[t,size(j) - 1 - j]"
    plan = str(ts.program(text).plan(X=(1000, 128)))
    assert "Y[t,j] = A[0,j]" in plan
    assert "1.02 kB of workspace" in plan


PASSES = {
    "chosen": "D[i,j] += G[i,j] if X[i,j] > 0",
    "chosen twice": "D[i,j] += G[i,j] if X[i,j] > 0\nD[i,j] += 1 if X[i,j] < -1 and i <= j",
    "chosen once": "D[i,j] = G[i,j] if X[i,j] > 0",
    "chosen sum": "D[j] += G[i,j] if X[i,j] > 0",
    "lifted": "Y[n,i] += X[i,j] * 2\nY[n,i] += G[i,n]",
    "lifted guard": "Y[n,i] += X[i,j] if j <= i\nY[n,i] -= G[i,n]",
    "forwarded": "A[j,i] += G[i,j]\nY[i,j] = A[j,i] * X[i,j]",
    "forwarded diagonal": "A[j,i] += G[i,j]\nY[i] = A[i,i] * X[i,i]",
    "forwarded sum": "A[j,i] += G[i,j]\nA[j,i] += X[j,i]\nY[i] += A[i,j]",
    "turned": "Y[j,k] += G[i,j] * (P[i,k] - P[j,k])",
    "turned sum": "Y[i,k] += G[i,j] * (P[i,k] - P[j,k])",
    "jammed": "Y[j] += X[i,j] * 3",
    "merged after a diagonal": "Y[i,i] += X[i,i]\nY[i,j] += G[i,j]",
    "merged before a diagonal": "Y[i,j] += G[i,j]\nY[i,i] += X[i,i]",
    "named alike": "M[b] += X[b,k]\nY[n,d] = X[n,d] - M[n]",
    "named crosswise": "A[i,j] = X[i,j] * 2\nY[j,i] = A[j,i] * A[i,j]\nZ[i,j] += Y[k,i] * A[j,k]",
    "named by others": "M[j] max= X[i,j]\nY[i,j] = X[i,j] - M[i]\nZ[j] += Y[i,j] * size(j) / size(i)",
    "made and read in one step": "for t:\n    A[t,j] = X[t,j] * 3\n    Y[t,j] = A[t,j] * G[j,t]",
    "summed in one step": "for t:\n    A[t,j] += X[t,j] * G[t,j]\n    Y[j] += A[t,j] * X[j,t]",
    "read a step later": "for t:\n    Y[t,j] = X[t,j] + (A[t-1,j] if t > 0 else 0)\n    A[t,j] = Y[t,j] * 2\nreturn Y",
    "read again later": "for t:\n    A[t,j] = X[t,j] * 3\n    B[t,j] = A[t,j] * G[t,j]\nY[j] += B[t,j] * A[t,j]",
    "added to by all threads": "L[j] += X[0,j]\nL[j] += G[i,j] * X[i,j]",
}


@pytest.mark.parametrize("text", PASSES.values(), ids=PASSES)
def test_programs_after_each_pass(text: str) -> None:
    numbers = np.random.default_rng(2)
    program = ts.program(text)
    arrays = {name: numbers.standard_normal((67, 5) if name == "P" else (67, 67)) for name in program.inputs}
    if "X" in arrays:
        arrays["X"][0, 0] = np.nan
    check(program, arrays)
    for name in program.outputs:
        derivative = program.adjoint(wrt=list(program.inputs), of=[name])
        seed = numbers.standard_normal(np.shape(program.run_reference(arrays)))
        given = {**arrays, f"{name}.grad": seed}
        check(derivative, {k: v for k, v in given.items() if k in derivative.inputs})


FLAT = {
    "all axes": "Y[n,h,w] = X[n,h,w] * 2 + G[n]",
    "a sum over two": "Y[n] += X[n,h,w] ** 2\nZ[n] max= X[n,h,w]",
    "a value beside": "Y[n,h,w] = X[n,h,w] * V[w]",
    "an index in the value": "Y[n,h,w] = X[n,h,w] * h + w",
    "a condition": "Y[n,h,w] = X[n,h,w] if h > 2 else 0",
    "chosen by data": "Y[n,h,w] = X[n,h,w] if X[n,h,w] > 0 else G[n]",
    "turned": "Y[n,w,h] = X[n,h,w]",
    "part of an axis": "size(w) = 8\nY[n,h,w] = X[n,h,w+1] * X[n,h,w+0]",
    "a shift outside": "size(h) = 6\nY[n,h,w] = X[n,h+1,w] - X[n,h+0,w]",
    "a window": "size(u) = 2\nY[n,h,w] += X[n,h+u,w]",
    "groups": "M[n//2] += X[n,h,w]\nY[n,h,w] = X[n,h,w] - M[n//2]",
    "first of all": "Y[n] argmax= X[n,h,w]",
    "a random number": "Y[n,h,w] = X[n,h,w] * uniform(3, h, w)",
    "gathered": "Y[n,h,w] = X[order[n],h,w]",
}


@pytest.mark.parametrize("text", FLAT.values(), ids=FLAT)
def test_loops_that_run_on_in_memory(text: str) -> None:
    numbers = np.random.default_rng(3)
    program = ts.program(text)
    arrays: Arrays = {
        "X": numbers.standard_normal((6, 7, 9)),
        "G": numbers.standard_normal(6),
        "V": numbers.standard_normal(9),
        "order": numbers.permutation(6),
    }
    check(program, {name: arrays[name] for name in program.inputs})


# -- types, order, and what was there before

NUMBERS = {
    "bool": np.array([True, False, True]),
    "int8": np.array([1, -2, 3], np.int8),
    "uint8": np.array([1, 2, 3], np.uint8),
    "int32": np.array([3, 0, -1], np.int32),
    "int64": np.array([3, 0, -1]),
    "float32": np.array([1.5, -2, 0], np.float32),
    "float64": np.array([1.5, -2, 0]),
}
TYPED = {
    "copied": "G[i] += A[i]\nY[i] = G[i]",
    "compared": "G[i] += A[i] > 0\nY[i] = G[i] * B[i]",
    "merged": "Y[i] += A[i]\nY[i] += B[i]",
    "chosen": "Y[i] = A[i] if B[i] > 0",
    "chosen sum": "Y[i] += A[i] if B[i] > 0",
    "one slice": "for i:\n    G[i] += A[i]\n    Y[i] = G[i] * B[i]\nreturn Y",
    "two slices": "H[0] += A[0]\nfor i:\n    H[i+1] += H[i] + B[i]\nY += H[size(i)]",
}


@pytest.mark.parametrize("name", share(TYPED, 3))
def test_a_plan_changes_no_type(name: str) -> None:
    program = ts.program(TYPED[name])
    for a in NUMBERS.values():
        for b in NUMBERS.values():
            arrays = {name: value for name, value in (("A", a), ("B", b)) if name in program.inputs}
            expected, found = program.run_reference(arrays), program(arrays)
            assert found.dtype == expected.dtype, (a.dtype, b.dtype)
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_product_under_a_guard_that_has_changed_is_another() -> None:
    program = ts.program(
        "Y[i,j] += A[i,k]*B[k,l]*C[l,j] if M[i] > 0 or M[i] < -1\nM[i] = 0.3 - M[i]\n"
        "Z[i,j] += A[i,k]*B[k,l]*D[l,j] if M[i] > 0 or M[i] < -1\nreturn Y, Z, M"
    )
    random = np.random.default_rng(1)
    arrays = {name: random.standard_normal((12, 12)) for name in "ABCD"} | {"M": np.linspace(-2, 2, 12)}
    expected = program.run_reference(arrays)
    for name, found in program(arrays).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-10, atol=1e-10, err_msg=name)


def test_outputs_keep_their_order() -> None:
    program = ts.program("for t:\n    A[t] += X[t]\n    B[t] = X[t]\nreturn A, B")
    assert list(program(X=np.ones(2))) == ["A", "B"]


UPDATES = ("W[i] = 2 * W[i] if W[i] > 0", "W[i] = G[i] if G[i] > W[i]", "for t:\n    W[i] = 2 * W[i] if W[i] > H[t]")


@pytest.mark.parametrize("text", UPDATES)
def test_an_update_keeps_what_its_guard_leaves_out(text: str) -> None:
    program = ts.program(text)
    arrays = {"W": np.array([1.0, -1, 3]), "G": np.array([0.0, 5, 2]), "H": np.array([0.0, 2])}
    check(program, {name: arrays[name] for name in program.inputs})


@pytest.mark.parametrize(("first", "second"), [(10, 11), (11, 10), (3, 5), (4, 4)])
def test_padded_copies_are_shared_only_where_they_are_equal(first: int, second: int) -> None:
    program = ts.program(
        "size(i) = size(X, 1)\nsize(j) = size(X, 1)\n"
        "Y[c,i] += X[c,i+u-1] * W[u] if inside\nZ[c,j] += X[c,j+v-1] * V[v] if inside"
    )
    numbers = np.random.default_rng(1)
    shapes = {"X": (2, 6), "W": (first,), "V": (second,)}
    check(program, {name: numbers.standard_normal(shape) for name, shape in shapes.items()})


# -- copies that suit register tiles


@pytest.mark.parametrize("channels", [3, 8, 12, 16, 17])
@pytest.mark.parametrize("stride", [1, 2])
def test_weights_of_windows(channels: int, stride: int) -> None:
    program = ts.program(f"size(u) = 3\nsize(v) = 2\nW[o,c,u,v] += X[n,c,{stride}*i+u,{stride}*j+v] * G[n,o,i,j]")
    numbers = np.random.default_rng(1)
    arrays = {
        "X": numbers.standard_normal((3, channels, 9 * stride + 3, 8 * stride + 2)),
        "G": numbers.standard_normal((3, 16, 10, 9)),
    }
    check(program, arrays)
    assert ("windows" in str(program.plan(arrays))) == (8 <= channels <= 16)


@pytest.mark.parametrize(
    "text", ["Y[i,j] += A[i,k] * B[k,j]", "Y[i,j] += A[i,k] * B[j,k]", "Y[h,i] += A[i,k] * B[k,h]"]
)
def test_panels_that_all_threads_share(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "SHARED", 1)
    monkeypatch.setattr("tensorswap.run.tuning.PARALLEL", 0)
    monkeypatch.setattr("tensorswap.run.call.threads", lambda: 2)
    numbers = np.random.default_rng(1)
    for size in (17, 40, 64):
        program = ts.program(text)
        arrays = {name: numbers.standard_normal((size, size)) for name in "AB"}
        check(program, arrays)
        if "B[j,k]" in text:  # it cannot be read as it lies
            assert "parts * " in program.source(arrays)


IN_STRIPS = {
    "a layer": "H[b,h] += X[b,i] * V[h,i]\nA[b,h] = tanh(H[b,h])\nZ[b,k] += A[b,h] * W[k,h]",
    "turned": "H[b,h] += X[b,i] * U[i,h]\nA[b,h] = tanh(H[b,h])\nZ[b,k] += A[b,h] * W[k,h]",
    "with a guard": "H[b,h] += X[b,i] * V[h,i] if i <= h + 3\nA[b,h] = tanh(H[b,h])\nZ[b,k] += A[b,h] * W[k,h]",
    "a sum before": "H[b,h] = c[h]\nA[b,h] += X[b,i] * V[h,i]\nA[b,h] -= H[b,h]\nZ[b,k] += A[b,h]**2 * W[k,h]",
}


@pytest.mark.parametrize("text", IN_STRIPS.values(), ids=IN_STRIPS)
def test_panels_too_large_for_a_cache_are_packed_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if caches were tiny: the panels of a layer's weights are read block by block in every strip."""
    tiny = replace(registers(), cache=1 << 12)
    for module in ("roles", "tiling"):
        monkeypatch.setattr(f"tensorswap.lower.{module}.registers", lambda: tiny)
    monkeypatch.setattr("tensorswap.plan.nest.CACHE", 1 << 14)
    numbers = np.random.default_rng(1)
    program = ts.program(text, outputs=["Z"])
    for units in (32, 75, 200):
        shapes = {"X": (100, 40), "V": (units, 40), "U": (40, units), "W": (9, units), "c": (units,)}
        check(program, {n: numbers.standard_normal(s) for n, s in shapes.items() if n in program.inputs})
    weights = {name: shapes[name] for name in program.inputs}
    assert "for block in range(" in program.source(weights)
    assert "packed ahead" in program.source(weights)


# -- products shared by several statements

SHARED = {
    "a number summed up": "Y[i] += A[m]*B[m]*D[i]\nZ[i] += A[m]*B[m]*D[i]*x[i]\nreturn Y, Z",
    "with a scale": "Y[i] += 3*A[m]*B[m]*D[i]/s\nZ[i] -= A[m]*B[m]*D[i]*x[i]*s\nreturn Y, Z",
    "three statements": "Y[i] += A[m]*B[m]*D[i]\nZ[i] += A[m]*B[m]*D[i]*x[i]\nV += A[m]*B[m]*D[i]\nreturn Y, Z, V",
    "an index of the target alone": "Y[i,n] += A[m]*B[m]*D[i]\nZ[i] += A[m]*B[m]*D[i]*x[i]\nreturn Y, Z",
    "two numbers": "Y[i] += A[m]*B[m]*C[k]*E[k]*D[i]\nZ[i] += A[m]*B[m]*C[k]*E[k]*D[i]*x[i]\nreturn Y, Z",
}


@pytest.mark.parametrize("text", SHARED.values(), ids=SHARED)
def test_a_shared_product_keeps_every_factor(text: str) -> None:
    numbers = np.random.default_rng(3)
    shapes = {"A": 32, "B": 32, "C": 9, "E": 9, "D": 5, "x": 5, "s": ()}
    program = ts.program(text)
    arrays: Arrays = {
        name: numbers.uniform(0.5, 1.5, shape) for name, shape in shapes.items() if name in program.inputs
    }
    if "n" in program.loops.indices:
        arrays["n"] = 4
    check(program, arrays)


def test_the_gradient_of_a_sum_behind_a_fraction_keeps_the_sum() -> None:
    program = ts.program("Y[i] += A[m]*B[m]/(1+x[i])\nloss += Y[i]**2").grad(wrt=["x"])
    check(program, {"A": np.ones(32), "B": np.ones(32), "x": np.ones(2)})
    np.testing.assert_allclose(program(A=np.ones(32), B=np.ones(32), x=np.ones(2))["x.grad"], [-256, -256])
