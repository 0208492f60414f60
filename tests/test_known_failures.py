"""Failures that other projects' trackers record, each as a program that must be right here: the name says which.

What is expected comes from explicit loops in plain Python, or from central differences; never from the engine itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorswap as ts
from tensorswap.einsum import einsum_program
from tensorswap.language import ir

Array = NDArray[Any]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def gradient(program: ts.Program, given: dict[str, Any], wrt: list[str], seed: Array | float) -> dict[str, Array]:
    """X.grad for each X in wrt, for a program with one output."""
    (output,) = program.outputs
    adjoint = program.adjoint(wrt=wrt)
    result = adjoint({**given, f"{output}.grad": seed})
    return {adjoint.outputs[0]: result} if len(wrt) == 1 else result


def differences(function: Callable[[Array], Any], at: Array, step: float = 1e-6) -> Array:
    """Central differences of a scalar function by every element of an array."""
    result = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        high, low = at.copy(), at.copy()
        high[place] += step
        low[place] -= step
        result[place] = (function(high) - function(low)) / (2 * step)
    return result


def check_gradient(program: ts.Program, given: dict[str, Any], wrt: list[str]) -> None:
    """Every gradient against central differences of the forward program, weighted by a random seed."""
    seed = normal(*np.shape(program(given)), seed=1)
    found = gradient(program, given, wrt, seed)
    for name in wrt:
        expected = differences(lambda x, name=name: np.sum(program({**given, name: x}) * seed), np.asarray(given[name]))
        np.testing.assert_allclose(found[f"{name}.grad"], expected, rtol=1e-7, atol=1e-7, err_msg=name)


def test_halide_7385_diagonal() -> None:
    """Halide#7385: the adjoint of out[x] = in[x,x] filled whole rows."""
    program = ts.program("Y[x] = X[x,x]")
    seed = normal(4)
    expected = np.zeros((4, 4))
    for x in range(4):
        expected[x, x] = seed[x]
    found = gradient(program, {"X": normal(4, 4)}, ["X"], seed)
    np.testing.assert_array_equal(found["X.grad"], expected)


def test_taichi_8802_loop_carried_value() -> None:
    """taichi#8802: the gradient through f[i+1] = g(f[i]) was 4.8 times too large, and no check said so."""
    program = ts.program("""
        F[0] = x
        for t:
            F[t+1] = sin(A[t] * F[t])
    """)
    given = {"x": np.array(0.7), "A": np.array([1.5, -0.8, 2.0, 0.6, 1.1])}
    values = [0.7]
    for a in given["A"]:
        values.append(math.sin(a * values[-1]))
    np.testing.assert_allclose(program(given), values, rtol=1e-14)
    seed = normal(6)
    carried, by_a = seed[5], np.zeros(5)
    for t in reversed(range(5)):
        slope = math.cos(given["A"][t] * values[t])
        by_a[t] = carried * slope * values[t]
        carried = seed[t] + carried * slope * given["A"][t]
    found = gradient(program, given, ["x", "A"], seed)
    np.testing.assert_allclose(found["x.grad"], carried, rtol=1e-12)
    np.testing.assert_allclose(found["A.grad"], by_a, rtol=1e-12)


def test_taichi_3003_sibling_inner_loops() -> None:
    """taichi#3003: of two inner loops side by side, the gradient of one was dropped in silence."""
    program = ts.program(
        """
        for t:
            H[t] = tanh(P[t-1] + R[t-1] if t > 0 else 0.5)
            P[t] += X[t,j] * H[t]
            R[t] += X[t,k] ** 2 * V[k] * H[t]
    """,
        outputs=["H"],
    )
    check_gradient(program, {"X": normal(4, 3), "V": normal(3, seed=2)}, ["X", "V"])


def test_taichi_3003_sibling_sums() -> None:
    """taichi#3003, without order: two sums over the same row meet in one element."""
    program = ts.program("""
        Y[i] += X[i,j] * A[j]
        Y[i] += X[i,k] ** 2
    """)
    X, A, seed = normal(3, 4), normal(4, seed=2), normal(3, seed=3)
    by_x, by_a = np.zeros((3, 4)), np.zeros(4)
    for i in range(3):
        for j in range(4):
            by_x[i, j] += seed[i] * A[j]
            by_a[j] += seed[i] * X[i, j]
        for k in range(4):
            by_x[i, k] += seed[i] * 2 * X[i, k]
    found = gradient(program, {"X": X, "A": A}, ["X", "A"], seed)
    np.testing.assert_allclose(found["X.grad"], by_x, rtol=1e-13)
    np.testing.assert_allclose(found["A.grad"], by_a, rtol=1e-13)


def test_taichi_8356_nested_accumulation() -> None:
    """taichi#8356: a sum over nested loops counted its gradient too few times."""
    program = ts.program("""
        row[i] += X[i,j]
        loss += row[i] * row[k] * w
    """)
    X, w = normal(3, 4), 0.75
    total = X.sum()
    found = program.grad(wrt=["X", "w"])(X=X, w=w)
    np.testing.assert_allclose(found["loss"], total * total * w, rtol=1e-13)
    np.testing.assert_allclose(found["X.grad"], np.full((3, 4), 2 * total * w), rtol=1e-13)
    np.testing.assert_allclose(found["w.grad"], total * total, rtol=1e-13)


def test_warp_1293_nested_loops() -> None:
    """warp#1293: nested loops gave twice the gradient."""
    program = ts.program("""
        for t:
            for u:
                H[t,u] = tanh(X[t,u] + a * (H[t-1,u] if t > 0 else 0) + b * (H[t,u-1] if u > 0 else 1))
    """)
    check_gradient(program, {"X": normal(3, 4), "a": np.array(0.6), "b": np.array(-0.9)}, ["X", "a", "b"])


def test_warp_1694_variable_set_before_the_loop() -> None:
    """warp#1694: a variable set before a loop and used in it got the gradient 0."""
    program = ts.program("""
        c = x * x
        for t:
            H[t] = c * (H[t-1] if t > 0 else 1) + A[t]
    """)
    given = {"x": np.array(0.9), "A": normal(4)}
    last = np.array([0.0, 0.0, 0.0, 1.0])
    found = gradient(program, given, ["x", "A"], last)
    c, value, slope = 0.81, 1.0, 0.0
    for t in range(4):
        slope, value = value + c * slope, c * value + given["A"][t]
    np.testing.assert_allclose(found["x.grad"], slope * 2 * 0.9, rtol=1e-13)
    np.testing.assert_allclose(found["A.grad"], [c**3, c**2, c, 1], rtol=1e-13)


def test_warp_1552_argmax_with_points_left_out() -> None:
    """warp#1552: a loop that skips points and keeps the best index sent the gradient to a wrong place."""
    program = ts.program("""
        k[i] argmax= X[i,j] if M[i,j] > 0
        Y[i] = X[i,k[i]] ** 2 * w[i] if k[i] >= 0
    """)
    X = np.array([[9.0, 1.0, 3.0, 2.0], [4.0, 8.0, -1.0, 8.0], [1.0, 2.0, 3.0, 4.0]])
    M = np.array([[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    w, seed = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    expected, by_x, by_w = np.zeros(3), np.zeros((3, 4)), np.zeros(3)
    for i in range(3):
        best = None
        for j in range(4):
            if M[i, j] <= 0:
                continue
            if best is None or X[i, j] > X[i, best]:
                best = j
        if best is not None:
            expected[i] = X[i, best] ** 2 * w[i]
            by_x[i, best] = 2 * X[i, best] * w[i] * seed[i]
            by_w[i] = X[i, best] ** 2 * seed[i]
    given = {"X": X, "M": M, "w": w}
    np.testing.assert_array_equal(program(given), expected)
    found = gradient(program, given, ["X", "w"], seed)
    np.testing.assert_array_equal(found["X.grad"], by_x)
    np.testing.assert_array_equal(found["w.grad"], by_w)


def test_taichi_2505_write_after_read_is_refused() -> None:
    """taichi#2505: a value overwritten after it was read gave wrong gradients; such a program has no meaning here."""
    with pytest.raises(ts.SwapError, match="A is written after it was read"):
        ts.program("""
            A[i] = X[i]
            Y[i] = A[i] * A[i]
            A[i] = 2 * X[i]
        """)


def test_taichi_2505_update_reads_the_old_values() -> None:
    """taichi#2505: an update reads its neighbours as they were, and leaves the caller's array alone."""
    program = ts.program("X[i] = X[i] + (X[i-1] if i > 0 else 0)")
    X = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(program(X=X), [1, 3, 5, 7])
    np.testing.assert_array_equal(X, [1, 2, 3, 4])


def test_taichi_2505_value_lost_in_a_loop_is_refused() -> None:
    """taichi#2505: where a later step destroys a value that the derivative needs, the derivative is refused."""
    program = ts.program("""
        for t:
            s += X[t] * (1 + s * s)
    """)
    with pytest.raises(ts.SwapError, match="s is read in `for t` while it is still being accumulated"):
        program.adjoint(wrt=["X"])


def test_taichi_2505_element_that_a_later_step_writes_is_not_read() -> None:
    """taichi#2505: a step that reads what a later step writes is an error, not an old or a new value by chance."""
    program = ts.program("""
        for t:
            H[t] = X[t] + (H[t+1] if t < size(t)-1 else 0)
    """)
    with pytest.raises(ts.SwapError, match="later step"):
        program(X=np.ones(3))


NETWORK = """
    H[n,h] += W[h,d] * X[n,d]
    P[n] += V[h] * tanh(H[n,h])
    loss += (P[n] - y[n]) ** 2 / size(n)
"""


def network_inputs() -> dict[str, Array]:
    return {"X": normal(4, 2), "W": normal(3, 2, seed=1), "V": normal(3, seed=2), "y": normal(4, seed=3)}


def test_pytorch_91469_double_backward() -> None:
    """pytorch#91469, #181581: the second derivative of a compiled function was bogus, then an error."""
    given = network_inputs()
    program = ts.program(NETWORK)
    gradient_program = program.grad(wrt=["W"])
    direction = normal(3, 2, seed=4)

    def slope(W: Array) -> float:
        return float(np.sum(gradient_program({**given, "W": W})["W.grad"] * direction))

    expected = differences(slope, given["W"])
    forward_over_reverse = program.hessian_vector(wrt=["W"])({**given, "W.dot": direction})
    np.testing.assert_allclose(forward_over_reverse, expected, rtol=1e-7, atol=1e-7)
    twice = gradient_program.adjoint(wrt=["W"], of=["W.grad"])
    seed = {name: direction for name in twice.inputs if name.startswith("W.grad.")}
    assert len(seed) == 1
    np.testing.assert_allclose(twice({**given, **seed}), expected, rtol=1e-7, atol=1e-7)


def test_pytorch_91469_third_order() -> None:
    """pytorch#91469: the third derivative comes from the same rules: x ** 5 gives 60 x x."""
    program = ts.program("loss += X[i] ** 5")
    X, v, w = np.array([0.5, -1.5, 2.0]), np.array([1.0, 2.0, -1.0]), np.array([0.5, -1.0, 3.0])
    second = program.hessian_vector(wrt=["X"])
    third = second.tangent(wrt=["X"])
    seed = {name: w for name in third.inputs if name.startswith("X.dot") and name != "X.dot"}
    assert len(seed) == 1
    np.testing.assert_allclose(third({"X": X, "X.dot": v, **seed}), 60 * X**2 * v * w, rtol=1e-13)


def test_tullio_85_shifted_index() -> None:
    """Tullio#85: the gradient of a shifted read wrote one element from several threads."""
    program = ts.program("Y[i] += X[i+p] * W[p]")
    X, W, seed = normal(7), normal(3, seed=1), normal(5, seed=2)
    by_x, by_w = np.zeros(7), np.zeros(3)
    for i in range(5):
        for p in range(3):
            by_x[i + p] += seed[i] * W[p]
            by_w[p] += seed[i] * X[i + p]
    adjoint = program.adjoint(wrt=["X", "W"])
    found = adjoint({"X": X, "W": W, "Y.grad": seed})
    np.testing.assert_allclose(found["X.grad"], by_x, rtol=1e-13)
    np.testing.assert_allclose(found["W.grad"], by_w, rtol=1e-13)
    assert all(isinstance(place, ir.Index) for s in adjoint.loops.statements for place in s.target.indices)


def test_tullio_83_several_points_meet_on_the_left() -> None:
    """Tullio#83: C[i//2] is written by two points at once, which raced."""
    program = ts.program("C[i//2] += A[i] ** 2")
    A, seed = normal(7), normal(4, seed=1)
    expected, by_a = np.zeros(4), np.zeros(7)
    for i in range(7):
        expected[i // 2] += A[i] ** 2
        by_a[i] += 2 * A[i] * seed[i // 2]
    np.testing.assert_allclose(program(A=A), expected, rtol=1e-14)
    np.testing.assert_allclose(gradient(program, {"A": A}, ["A"], seed)["A.grad"], by_a, rtol=1e-14)


def test_tullio_83_assignment_that_is_not_unique_is_refused() -> None:
    """Tullio#83: with `=` there is no right answer, so there is an error."""
    with pytest.raises(ts.SwapError, match="more than once"):
        ts.program("C[i//2] = A[i]")(A=np.arange(4.0))
    np.testing.assert_array_equal(ts.program("C[i//2] = A[i] if i % 2 == 0")(A=np.arange(4.0)), [0, 2])


def test_numba_3681_accumulation() -> None:
    """numba#3681: a sum in a parallel loop raced undetected; here it is right and the same at every run."""
    program = ts.program("""
        total += X[i,j]
        rows[i] += X[i,j] * X[i,j]
        largest max= X[i,j]
    """)
    X = normal(200, 300)
    first = program(X=X)
    np.testing.assert_allclose(first["total"], math.fsum(X.ravel()), rtol=1e-11)
    np.testing.assert_allclose(first["rows"], [math.fsum(row * row) for row in X], rtol=1e-13)
    assert first["largest"] == max(X.ravel())
    for _ in range(3):
        again = program(X=X)
        assert all(np.array_equal(again[name], first[name]) for name in first)


@pytest.mark.parametrize(("window", "stride"), [(3, 1), (3, 2), (2, 1), (4, 3)])
def test_nnlib_205_overlapping_max_pool(window: int, stride: int) -> None:
    """NNlib.jl#205: where windows overlap, an element that wins twice got one gradient only."""
    program = ts.program("""
        def pool(X[h,w], window: int, stride: int) -> Y[i,j]:
            size(p) = window
            size(q) = window
            size(i) = (size(h) - window) // stride + 1
            size(j) = (size(w) - window) // stride + 1
            Y[i,j] max= X[stride*i+p,stride*j+q]
    """)
    X = np.random.default_rng(3).permutation(42).reshape(6, 7).astype(np.float64)
    given: dict[str, Any] = {"X": X, "window": window, "stride": stride}
    Y = program(given)
    seed = normal(*Y.shape)
    expected = np.zeros(X.shape)
    for i, j in np.ndindex(Y.shape):
        part = X[stride * i : stride * i + window, stride * j : stride * j + window]
        p, q = np.unravel_index(np.argmax(part), part.shape)
        assert Y[i, j] == part.max()
        expected[stride * i + p, stride * j + q] += seed[i, j]
    np.testing.assert_allclose(gradient(program, given, ["X"], seed)["X.grad"], expected, rtol=1e-13)


def test_nnlib_205_ties_have_one_winner() -> None:
    """NNlib.jl#205: of equal elements the first in index order takes the whole gradient."""
    program = ts.program("Y[i] max= X[i+p] if p < 3")
    found = program.adjoint(wrt=["X"])({"X": np.ones(5), "Y.grad": np.array([1.0, 2.0, 4.0]), "p": 3})
    np.testing.assert_array_equal(found, [1, 2, 4, 0, 0])


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("Y[i] = sqrt(X[i]) if X[i] > 0 else 0", lambda x: 0.5 / math.sqrt(x) if x > 0 else 0.0),
        ("Y[i] = where(X[i] > 0, sqrt(X[i]), 0)", lambda x: 0.5 / math.sqrt(x) if x > 0 else 0.0),
        ("Y[i] = log(X[i]) if X[i] > 0 else X[i]", lambda x: 1 / x if x > 0 else 1.0),
        ("Y[i] = 1 / X[i] if X[i] != 0", lambda x: -1 / x**2 if x != 0 else 0.0),
        (
            "Y[i] = X[i] * exp(-1 / X[i] ** 2) if X[i] != 0 else 0",
            lambda x: math.exp(-1 / x**2) * (1 + 2 / x**2) if x != 0 else 0.0,
        ),
        ("loss += 2 * (sqrt(X[i]) if X[i] > 0 else 0)", lambda x: 1 / math.sqrt(x) if x > 0 else 0.0),
    ],
)
def test_jax_5798_nan_in_the_dead_branch(text: str, slope: Callable[[float], float]) -> None:
    """jax#5798: the gradient of `where` was NaN when the branch not taken had none."""
    program = ts.program(text)
    X = np.array([4.0, 0.0, -1.0, 0.25])
    value = program(X=X)
    assert np.isfinite(value).all()
    seed = np.ones(np.shape(value))
    found = gradient(program, {"X": X}, ["X"], seed)["X.grad"]
    np.testing.assert_allclose(found, [slope(x) for x in X], rtol=1e-13)
    tangent = program.tangent(wrt=["X"])({"X": X, "X.dot": np.ones(4)})
    np.testing.assert_allclose(np.sum(tangent), sum(slope(x) for x in X), rtol=1e-13)


def test_jax_5798_nan_in_the_dead_branch_second_order() -> None:
    """jax#5798: nor does the branch not taken harm the second derivative."""
    program = ts.program("loss += X[i] ** 1.5 if X[i] > 0 else 0")
    X = np.array([4.0, 0.0, -1.0, 0.25])
    found = program.hessian_vector(wrt=["X"])({"X": X, "X.dot": np.ones(4)})
    np.testing.assert_allclose(found, [0.75 / math.sqrt(x) if x > 0 else 0.0 for x in X], rtol=1e-13)


def test_jax_5798_nan_beside_a_guard() -> None:
    """jax#5798: a factor that is not finite outside the guard does not turn its zero gradient into NaN."""
    program = ts.program("loss += X[i] * W[i] if M[i] > 0")
    found = program.grad(wrt=["X", "W"])(
        X=np.array([1.0, np.nan, 3.0]), W=np.array([2.0, np.inf, 5.0]), M=np.array([1.0, 0.0, 1.0])
    )
    np.testing.assert_array_equal(found["loss"], 17)
    np.testing.assert_array_equal(found["X.grad"], [2, 0, 5])
    np.testing.assert_array_equal(found["W.grad"], [1, 0, 3])


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("Y[i] = X[t[i]]", {"X": np.ones(3), "t": np.array([0, 3])}),
        ("Y[i] = X[t[i]]", {"X": np.ones(3), "t": np.array([0, -1])}),
        ("size(Y, 0) = 3\nY[t[i]] += X[i]", {"X": np.ones(2), "t": np.array([0, 3])}),
        ("size(Y, 0) = 3\nY[t[i]] += X[i]", {"X": np.ones(2), "t": np.array([-1, 0])}),
        ("Y[i] = X[i+1] - X[i]", {"X": np.ones(3)}),
        ("Y[i] = X[i-1] + X[i]", {"X": np.ones(3)}),
        ("Y[i] = X[2*i]", {"X": np.ones(3), "i": 3}),
        ("Y = X[3]", {"X": np.ones(3)}),
        ("Y = X[-1]", {"X": np.ones(3)}),
    ],
)
def test_jax_278_out_of_bounds_raises(text: str, given: dict[str, Any]) -> None:
    """jax#278, #3493: a position out of bounds was clamped in silence, and so was its gradient."""
    with pytest.raises(ts.SwapError, match=r"asks for position -?\d of axis 0, which has size 3"):
        ts.program(text)(given)


def test_jax_278_out_of_bounds_raises_in_the_adjoint() -> None:
    """jax#278: the adjoint refuses the same positions, and does not drop or wrap them."""
    adjoint = ts.program("Y[i] = X[t[i]] * X[t[i]]").adjoint(wrt=["X"])
    for wrong in (3, -1):
        with pytest.raises(ts.SwapError, match=f"asks for position {wrong} of axis 0, which has size 3"):
            adjoint({"X": np.ones(3), "t": np.array([0, wrong]), "Y.grad": np.ones(2)})


def test_jax_3645_einsum_size_mismatch() -> None:
    """jax#3645: an axis of size 1 was stretched to fit another. einsum does so as numpy's does; programs do not."""
    for left, right in (((2, 1), (3, 4)), ((2, 3), (1, 4))):
        with pytest.raises(ts.SwapError, match="index j has size"):
            ts.program("Y[i,k] += A[i,j] * B[j,k]")(A=np.ones(left), B=np.ones(right))
    with pytest.raises(ts.SwapError, match="index 'i' has size 3"):
        ts.einsum("ii->i", np.ones((3, 1)))
    np.testing.assert_array_equal(ts.einsum("...i,...i->...", np.ones((1, 2)), np.ones((3, 2))), [2, 2, 2])


def test_tenferro_1060_fused_chain() -> None:
    """tenferro-rs#1060: the gradient of one einsum over a whole chain of matrices."""
    letters = "abcdefg"
    shapes = [(2, 3), (3, 2), (2, 2), (2, 3), (3, 1), (1, 2)]
    matrices = {f"A{k}": normal(*shape, seed=k) for k, shape in enumerate(shapes)}
    subscripts = ",".join(letters[k : k + 2] for k in range(6)) + "->ag"
    program = einsum_program(subscripts, tuple(shapes))
    np.testing.assert_allclose(program(matrices), np.linalg.multi_dot(list(matrices.values())), rtol=1e-12)
    seed = normal(2, 2, seed=9)
    found = gradient(program, matrices, list(matrices), seed)
    for k, name in enumerate(matrices):
        left, right = np.eye(2), np.eye(2)
        for j in range(k):
            left = left @ matrices[f"A{j}"]
        for j in reversed(range(k + 1, 6)):
            right = matrices[f"A{j}"] @ right
        np.testing.assert_allclose(found[f"{name}.grad"], left.T @ seed @ right.T, rtol=1e-11, atol=1e-12)


def chain(count: int) -> ts.Program:
    """A0 A1 ... as one product after the other."""
    names = "abcdefghijklmnopqrstuvwxyz"
    lines = ["P1[a,c] += A0[a,b] * A1[b,c]"]
    for k in range(2, count):
        lines.append(f"P{k}[a,{names[k + 1]}] += P{k - 1}[a,{names[k]}] * A{k}[{names[k]},{names[k + 1]}]")
    return ts.program("\n".join(lines))


def test_tenferro_1060_chain_of_products_stays_linear() -> None:
    """tenferro-rs#1060: the gradient of a chain along its binary path is a chain too, not O(N*N) factors."""
    counts = {}
    for count in (5, 10, 20):
        adjoint = chain(count).adjoint(wrt=[f"A{k}" for k in range(count)])
        statements = adjoint.loops.statements
        for statement in statements:
            assert sum(isinstance(node, ir.Access) for node in ir.walk(statement.value)) == 2
        counts[count] = len(statements)
    assert counts[20] - counts[10] == 2 * (counts[10] - counts[5])
    matrices = {f"A{k}": normal(2, 2, seed=k) for k in range(5)}
    check_gradient(chain(5), matrices, list(matrices))


def within(seconds: float, action: Callable[[], Any]) -> Any:
    """The result of an action that must not take longer: a search that doubles with every index would."""
    start = time.perf_counter()
    result = action()
    assert time.perf_counter() - start < seconds
    return result


def test_ocannl_496_many_indices_in_one_sum() -> None:
    """ocannl#496: size inference hung; here thirty indices in one place are sized at once."""
    indices = [f"i{k}" for k in range(30)]
    factors = " * ".join(f"W{k}[i{k}]" for k in range(1, 30))
    program = ts.program(f"Y[i0] += X[{'+'.join(indices)}] * {factors}")
    given = {"X": normal(6), **{f"W{k}": np.full(2 if k < 3 else 1, 1.0 + k / 8) for k in range(1, 30)}}
    Y = within(20, lambda: program(given))
    scale = math.prod((1.0 + k / 8) for k in range(1, 30))
    X = given["X"]
    np.testing.assert_allclose(Y, [(X[i] + 2 * X[i + 1] + X[i + 2]) * scale for i in range(4)], rtol=1e-12)
    found = within(20, lambda: gradient(program, given, ["X"], np.ones(4)))
    np.testing.assert_allclose(found["X.grad"], np.array([1, 3, 4, 4, 3, 1]) * scale, rtol=1e-12)


def test_ocannl_496_sizes_that_hang_on_each_other() -> None:
    """ocannl#496: fifty sizes, each found from the one before through two reads, which would double if expanded."""
    lines = ["S0[i0] = X[i0]"]
    for k in range(1, 51):
        lines.append(f"S{k}[i{k}] = S{k - 1}[i{k}+1] - S{k - 1}[i{k}+2] / 2")
    program = within(20, lambda: ts.program("\n".join(lines)))
    X = normal(105)
    expected = X
    for _ in range(50):
        expected = expected[1:-1] - expected[2:] / 2
    np.testing.assert_allclose(within(20, lambda: program(X=X)), expected, rtol=1e-9, atol=1e-9)


def test_ocannl_496_sizes_without_an_answer() -> None:
    """ocannl#496: thirty indices that nothing sizes are an error that names them, not a search."""
    indices = [f"i{k}" for k in range(30)]
    program = ts.program(f"Y += X[{'+'.join(indices)}]")
    with pytest.raises(ts.SwapError, match="size of index i29 cannot be found"):
        within(20, lambda: program(X=np.ones(5)))


def test_jax_12359_scatter_add_with_duplicates_is_deterministic() -> None:
    """jax#12359: the order in which duplicate indices are added was left open; here each run gives the same bits."""
    program = ts.program("size(H, 0) = 5\nH[bin[n]] += w[n]")
    generator = np.random.default_rng(0)
    bins, w = generator.integers(0, 5, 5000), generator.standard_normal(5000) * 10.0 ** generator.integers(-8, 8, 5000)
    first = program(bin=bins, w=w)
    expected = np.zeros(5)
    for place in range(5):
        expected[place] = math.fsum(w[bins == place])
    np.testing.assert_allclose(first, expected, rtol=1e-9)
    for _ in range(3):
        np.testing.assert_array_equal(program(bin=bins, w=w), first)
    seed = normal(5)
    found = gradient(program, {"bin": bins, "w": w}, ["w"], seed)["w.grad"]
    np.testing.assert_array_equal(found, seed[bins])


def test_jax_39949_scatter_add_is_as_precise_as_a_sum() -> None:
    """jax#39949: a scatter-add of many float32 values into one element lost digits that a sum keeps."""
    w = np.full(1_000_000, 0.1, np.float32)
    exact = math.fsum(w)
    plain = ts.program("h += w[n]")(w=w)
    scattered = ts.program("size(H, 0) = 1\nH[bin[n]] += w[n]")(w=w, bin=np.zeros(w.size, np.int64))
    assert plain.dtype == scattered.dtype == np.float32
    assert abs(float(plain) - exact) <= 1e-5 * exact
    assert abs(float(scattered[0]) - exact) <= 1e-5 * exact


def test_jax_39949_gradient_of_a_gather_is_as_precise_as_a_sum() -> None:
    """jax#39949: the adjoint of an embedding adds one row many times, and keeps its digits."""
    count = 200_000
    adjoint = ts.program("Y[n] = E[t[n]]").adjoint(wrt=["E"])
    seed = np.full(count, 0.1, np.float32)
    found = adjoint({"E": np.zeros(2, np.float32), "t": np.ones(count, np.int64), "Y.grad": seed})
    assert found.dtype == np.float32
    assert found[0] == 0
    assert abs(float(found[1]) - math.fsum(seed)) <= 1e-5 * math.fsum(seed)


def test_the_check_notices_a_wrong_gradient() -> None:
    """The check of this file fails where a derivative is not that of the value: here `stop` hides half of it."""
    check_gradient(ts.program("Y[i] = X[i] * X[i]"), {"X": normal(3)}, ["X"])
    with pytest.raises(AssertionError):
        check_gradient(ts.program("Y[i] = X[i] * stop(X[i])"), {"X": normal(3)}, ["X"])
