"""The four documents that the project grew from: every number that they print, and every rule that they state."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.backslash import Hadamard, Kronecker, Left, Operator, Right, Trace, backslash, path_weights
from tensorswap.compare import numerical, symbolic
from tensorswap.jacobian import jacobian, sparsity
from tensorswap.teaching.flat import flat

from .test_backslash import Word

R = np.random.default_rng(11)


# -- Backpropagation through back substitution with a backslash

EDGES = {(1, 3): "a", (2, 3): "b", (3, 4): "c", (4, 5): "d"}


def test_path_weights_of_figure_1() -> None:
    found = path_weights({edge: Word(name) for edge, name in EDGES.items()})
    assert found.sources == (1, 2)
    assert found.sinks == (5,)
    assert found.forward == {(1, 5): "acd", (2, 5): "bcd"}
    numbers = path_weights(dict(zip(EDGES, (2.0, 3.0, 5.0, 7.0), strict=True)))
    assert numbers.forward == numbers.backward == {(1, 5): 70.0, (2, 5): 105.0}
    assert numbers.backward_multiplications == numbers.forward_multiplications - 1  # one fewer
    assert numbers.backward_multiplications == 3


def test_the_matrix_of_figure_1_shows_both_methods() -> None:
    a, b, c, d = 2.0, 3.0, 5.0, 7.0
    transposed = np.zeros((5, 5))  # L', with the weight of the edge ij at i, j
    for (i, j), weight in zip(EDGES, (a, b, c, d), strict=True):
        transposed[i - 1, j - 1] = weight
    inverse = np.linalg.inv(np.eye(5) - transposed)
    np.testing.assert_allclose(inverse[0], [1, 0, a, a * c, a * c * d])  # forward
    np.testing.assert_allclose(inverse[:, 4], [a * c * d, b * c * d, c * d, d, 1])  # backward
    sources, sink = np.eye(5)[:2], np.eye(5)[:, 4]
    np.testing.assert_allclose(sources @ inverse @ sink, [a * c * d, b * c * d])  # equation 1
    found = path_weights({(i, j): transposed[i - 1, j - 1] for i, j in EDGES}).matrix
    for (i, j), weight in found.items():
        assert weight == inverse[i - 1, j - 1]


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_the_scalar_mlp_by_backslash(layers: int) -> None:
    """x_i = h(w_i x_(i-1) + b_i): entries are numbers, and the adjoint agrees to 1e-12."""
    text = "\n".join(f"x{i} = tanh(w{i} * x{i - 1} + b{i})" for i in range(1, layers + 1))
    program = ts.program(text)
    point = {name: float(R.standard_normal()) for name in program.inputs}
    system = backslash(program, point)
    values, x = [point["x0"]], point["x0"]
    for i in range(1, layers + 1):
        x = np.tanh(point[f"w{i}"] * x + point[f"b{i}"])
        slope = 1 - x**2
        assert system.D[f"x{i}", f"w{i}"].matrix()[0, 0] == pytest.approx(slope * values[-1], rel=1e-12)
        assert system.D[f"x{i}", f"b{i}"].matrix()[0, 0] == pytest.approx(slope, rel=1e-12)
        if i > 1:
            assert system.L[f"x{i}", f"x{i - 1}"].matrix()[0, 0] == pytest.approx(slope * point[f"w{i}"], rel=1e-12)
        values.append(x)
    last = f"x{layers}"
    adjoint = program.adjoint(wrt=list(program.inputs), of=[last])({**point, f"{last}.grad": 1.0})
    for name, gradient in system.adjoint({last: 1.0}).items():
        assert float(gradient) == pytest.approx(float(adjoint[f"{name}.grad"]), abs=1e-12)
    L, D = system.matrices()  # dx = (I - L) \ D dp
    whole = np.linalg.solve(np.eye(layers) - L, D)
    np.testing.assert_allclose(whole[-1], [float(adjoint[f"{p}.grad"]) for p in system.parameters], atol=1e-12)


def matrix_mlp() -> tuple[ts.Program, dict[str, Any]]:
    text = """
    Z1[i,k] += W1[i,j] * X0[j,k]
    Z1[i,k] += B1[i,k]
    X1[i,k] = tanh(Z1[i,k])
    Z2[l,k] += W2[l,i] * X1[i,k]
    Z2[l,k] += B2[l,k]
    X2[l,k] = sigmoid(Z2[l,k])
    Z3[m,k] += W3[m,l] * X2[l,k]
    Z3[m,k] += B3[m,k]
    X3[m,k] = sin(Z3[m,k])
    """
    sizes, k = (4, 3, 5, 2), 6  # n_0 to n_3, and the number of columns
    values: dict[str, Any] = {"X0": R.standard_normal((sizes[0], k))}
    for i in (1, 2, 3):
        values[f"W{i}"] = R.standard_normal((sizes[i], sizes[i - 1]))
        values[f"B{i}"] = R.standard_normal((sizes[i], k))
    return ts.program(text), values


def test_the_matrix_mlp_by_backslash() -> None:
    """The block matrix of the document: D has (Delta_H X_R) and Delta_H, L has (Delta_H W_L) below the diagonal."""
    program, values = matrix_mlp()
    system = backslash(program, values, nodes=["X1", "X2", "X3"])
    assert set(system.L) == {("X2", "X1"), ("X3", "X2")}
    for (row, column), entry in system.L.items():
        slope, weight = entry.parts  # type: ignore[attr-defined]
        assert isinstance(slope, Hadamard)
        assert isinstance(weight, Left)
        np.testing.assert_array_equal(weight.factor, values[f"W{row[1]}"])
        assert int(row[1]) == int(column[1]) + 1
    for i in (1, 2, 3):
        assert [type(part) for part in system.D[f"X{i}", f"W{i}"].parts] == [Hadamard, Right]  # type: ignore[attr-defined]
        assert isinstance(system.D[f"X{i}", f"B{i}"], Hadamard)
    upstream = R.standard_normal((2, 6))
    adjoint = program.adjoint(wrt=list(program.inputs))({**values, "X3.grad": upstream})
    for name, gradient in system.adjoint({"X3": upstream}).items():
        np.testing.assert_allclose(gradient, adjoint[f"{name}.grad"], rtol=0, atol=1e-12)
    directions = {name: R.standard_normal(value.shape) for name, value in values.items()}
    tangent = program.tangent(wrt=list(values))({**values, **{f"{n}.dot": v for n, v in directions.items()}})
    np.testing.assert_allclose(system.tangent(directions)["X3"], tangent, rtol=0, atol=1e-12)


def test_the_table_of_operators_and_their_sizes() -> None:
    m, n, m1, n1 = 3, 4, 2, 5
    A, B, M, G, X = (R.standard_normal(shape) for shape in ((n1, n), (m1, m), (m, n), (m, n), (m, n)))
    rows: list[tuple[Operator, Any, Any, tuple[int, int]]] = [
        (Kronecker(A, B), B @ X @ A.T, np.kron(A, B), (m1 * n1, m * n)),
        (Left(B, n), B @ X, np.kron(np.eye(n), B), (m1 * n, m * n)),
        (Right(A.T, m), X @ A.T, np.kron(A, np.eye(m)), (m * n1, m * n)),
        (Hadamard(M), M * X, np.diag(M.reshape(-1, order="F")), (m * n, m * n)),
        (Trace(G), np.trace(G.T @ X), G.reshape(1, -1, order="F"), (1, m * n)),
    ]
    for operator, image, matrix, shape in rows:
        np.testing.assert_allclose(operator.apply(X), image)
        np.testing.assert_allclose(operator.matrix(), matrix)
        assert operator.shape == shape


# -- Introduction to machine learning: backpropagation


def test_the_simple_example() -> None:
    program = ts.program("q = x + y\nf = q * z", outputs=["q", "f"])
    point = {"x": -2.0, "y": 5.0, "z": -4.0}
    assert {name: float(value) for name, value in program(point).items()} == {"q": 3.0, "f": -12.0}
    gradient = ts.program("q = x + y\nf = q * z").grad(of="f")(point)
    assert {name: float(value) for name, value in gradient.items()} == {
        "f": -12.0, "x.grad": -4.0, "y.grad": -4.0, "z.grad": 3.0,
    }  # fmt: skip
    assert backslash(program, point).multipliers({"f": 1.0})["q"] == -4.0  # df/dq = z


def test_the_sigmoid_graph() -> None:
    """f = 1 / (1 + exp(-(w1 x1 + w2 x2 + b))), step by step, and with the sigmoid as one step."""
    point = {"w1": 2.0, "x1": -1.0, "w2": -3.0, "x2": -2.0, "b": -3.0}
    steps = ts.program(
        "u = w1 * x1 + w2 * x2 + b\nn = -u\ne = exp(n)\nd = 1 + e\nf = 1 / d", outputs=["u", "n", "e", "d", "f"]
    )
    assert {k: round(float(v), 2) for k, v in steps(point).items()} == {
        "u": 1.0, "n": -1.0, "e": 0.37, "d": 1.37, "f": 0.73,
    }  # fmt: skip
    back = backslash(steps, point).multipliers({"f": 1.0})
    assert {k: round(float(v), 2) for k, v in back.items()} == {"f": 1.0, "d": -0.53, "e": -0.53, "n": -0.2, "u": 0.2}
    whole = ts.program("f = sigmoid(w1 * x1 + w2 * x2 + b)")
    gradient = whole.grad(of="f")(point)
    assert {k: round(float(v), 2) for k, v in gradient.items()} == {
        "f": 0.73, "w1.grad": -0.2, "x1.grad": 0.39, "w2.grad": -0.39, "x2.grad": -0.59, "b.grad": 0.2,
    }  # fmt: skip
    f = float(gradient["f"])
    assert float(gradient["b.grad"]) == pytest.approx((1 - f) * f, rel=1e-14)  # the sigmoid's local gradient
    for name, value in backslash(steps, point).adjoint({"f": 1.0}).items():
        assert float(value) == pytest.approx(float(gradient[f"{name}.grad"]), rel=1e-14)


def test_the_gates() -> None:
    """Add distributes, multiply swaps, copy adds, max routes."""
    gates = {
        "f = x + y": ({"x": 3.0, "y": 4.0}, 2.0, {"x": 2.0, "y": 2.0}),
        "f = x * y": ({"x": 2.0, "y": 3.0}, 5.0, {"x": 15.0, "y": 10.0}),
        "f = max(x, y)": ({"x": 4.0, "y": 5.0}, 9.0, {"x": 0.0, "y": 9.0}),
    }
    for text, (point, upstream, expected) in gates.items():
        result = ts.program(text).adjoint(wrt=["x", "y"])({**point, "f.grad": upstream})
        assert {name: float(result[f"{name}.grad"]) for name in expected} == expected
    copy = ts.program("a = x\nb = x").adjoint(wrt=["x"])
    assert float(copy({"x": 7.0, "a.grad": 4.0, "b.grad": 2.0})) == 6.0


def test_the_flat_gradient_code() -> None:
    text = flat(ts.program("f = sigmoid(w0 * x0 + w1 * x1 + w2)"))
    slide = """
    s0 = w0 * x0
    s1 = w1 * x1
    s2 = s0 + s1
    s3 = s2 + w2
    f = sigmoid(s3)
    grad_f = 1.0
    grad_w2 = grad_s3
    grad_s2 = grad_s3
    grad_s0 = grad_s2
    grad_s1 = grad_s2
    grad_w1 = grad_s1 * x1
    grad_x1 = grad_s1 * w1
    grad_w0 = grad_s0 * x0
    grad_x0 = grad_s0 * w0
    """
    for line in slide.split("\n"):
        assert line.strip() in text
    assert "grad_s3 = grad_f * f * (1 - f)" in text  # the slide has (1-f) * f
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    value, gradient = namespace["f"](2.0, -1.0, -3.0, -2.0, -3.0)
    assert round(value, 2) == 0.73
    assert {name: round(g, 2) for name, g in gradient.items()} == {
        "w0": -0.2, "x0": 0.39, "w1": -0.39, "x1": -0.59, "w2": 0.2,
    }  # fmt: skip


def test_the_network_with_softmax_and_cross_entropy() -> None:
    program = ts.program("""
    a[n,j] += W1[j,i] * x[n,i]
    h[n,j] = max(0, a[n,j] + b1[j])
    s[n,c] += W2[c,j] * h[n,j]
    t[n,c] = s[n,c] + b2[c]
    top[n] max= t[n,c]
    e[n,c] = exp(t[n,c] - stop(top[n]))
    z[n] += e[n,c]
    J -= y[n,c] * (t[n,c] - stop(top[n]) - log(z[n]))
    """)
    shapes = {"W1": (5, 3), "b1": (5,), "W2": (4, 5), "b2": (4,), "x": (6, 3)}
    arrays = {name: R.standard_normal(shape) for name, shape in shapes.items()}
    arrays["y"] = np.eye(4)[R.integers(0, 4, 6)]
    h = np.maximum(0, arrays["x"] @ arrays["W1"].T + arrays["b1"])
    s = h @ arrays["W2"].T + arrays["b2"]
    f = np.exp(s) / np.exp(s).sum(1, keepdims=True)
    assert float(program(arrays)) == pytest.approx(-np.sum(arrays["y"] * np.log(f)))
    gradient = program.grad(of="J", wrt=["b2"])(arrays)["b2.grad"]
    np.testing.assert_allclose(gradient, np.sum(f - arrays["y"], 0))
    ts.gradcheck(program, arrays, wrt=["W1", "b1", "W2", "b2"])


def test_the_vector_example() -> None:
    program = ts.program("y[i] = max(0, x[i])")
    x, upstream = np.array([1.0, -2.0, 3.0, -1.0]), np.array([4.0, -1.0, 5.0, 9.0])
    np.testing.assert_array_equal(program(x=x), [1, 0, 3, 0])
    np.testing.assert_array_equal(program.adjoint(wrt=["x"])({"x": x, "y.grad": upstream}), [4, 0, 5, 0])
    J = jacobian(program, "y", "x")(x=x)
    np.testing.assert_array_equal(J, [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(J.T @ upstream, [4, 0, 5, 0])
    assert sparsity(program, "y", "x").pattern(x=(4,)).kind == "diagonal"  # off diagonal entries are all zero


MATMUL = ts.program("y[n,m] += x[n,d] * w[d,m]")
X = np.array([[2.0, 1.0, -3.0], [-3.0, 4.0, 2.0]])
W = np.array([[3.0, 2.0, 1.0, -1.0], [2.0, 1.0, 3.0, 2.0], [3.0, 2.0, 1.0, -2.0]])
DY = np.array([[2.0, 3.0, -3.0, 9.0], [-8.0, 1.0, 4.0, 6.0]])


def test_the_matrix_multiplication() -> None:
    np.testing.assert_array_equal(MATMUL(x=X, w=W), [[-1, -1, 2, 6], [5, 2, 11, 7]])
    adjoint = MATMUL.adjoint(wrt=["x", "w"])
    result = adjoint({"x": X, "w": W, "y.grad": DY})
    np.testing.assert_array_equal(result["x.grad"], [[0, 16, -9], [-24, 9, -30]])
    np.testing.assert_array_equal(result["x.grad"], DY @ W.T)
    np.testing.assert_array_equal(result["w.grad"], X.T @ DY)
    assert str(adjoint).splitlines() == [
        "x.grad[n,d] += y.grad[n,m] * w[d,m]", "w.grad[d,m] += x[n,d] * y.grad[n,m]",
    ]  # fmt: skip


def test_the_slices_of_its_jacobian() -> None:
    J = jacobian(MATMUL, "y", "x")(x=X, w=W)  # [n, m, n, d]: the document has the input's axes first
    np.testing.assert_array_equal(J[:, :, 0, 0], [[3, 2, 1, -1], [0, 0, 0, 0]])  # dy/dx_11
    np.testing.assert_array_equal(J[:, :, 1, 2], [[0, 0, 0, 0], [3, 2, 1, -2]])  # dy/dx_23
    assert np.sum(J[:, :, 0, 0] * DY) == 3 * 2 + 2 * 3 + 1 * (-3) + (-1) * 9 == 0
    assert np.sum(J[:, :, 1, 2] * DY) == 3 * (-8) + 2 * 1 + 1 * 4 + (-2) * 6 == -30
    assert J[0, 0, 0, 0] == W[0, 0]
    assert J[0, 1, 0, 0] == W[0, 1]
    assert J[1, 0, 0, 0] == 0


def test_its_jacobians_would_take_256_gigabytes() -> None:
    n, d, m = 64, 4096, 4096
    assert (n * d) * (n * m) * 4 == 256 * 2**30
    pattern = sparsity(MATMUL, "y", "x")
    assert pattern.structure == "block diagonal over n"  # and 63 of 64 parts of it are zeros


MEMORY = """
import numpy as np
import tensorswap as ts

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

ts.program("y[i] = 2 * x[i]")(x=np.ones(2))  # loads the compiler
program = ts.program("y[n,m] += x[n,d] * w[d,m]").adjoint(wrt=["x", "w"])
random = np.random.default_rng(0)
x, w, g = (random.standard_normal(s).astype(np.float32) for s in ((64, 4096), (4096, 4096), (64, 4096)))
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # forgets the peak so far
before = status("VmRSS")
result = program({"x": x, "w": w, "y.grad": g})
print(status("VmHWM") - before - sum(array.nbytes for array in result.values()))
np.testing.assert_allclose(result["x.grad"][:2], g[:2] @ w.T, rtol=2e-2, atol=2e-2)
np.testing.assert_allclose(result["w.grad"][:2], x[:, :2].T @ g, rtol=2e-2, atol=2e-2)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_the_gradient_of_the_large_multiplication_takes_less_than_200_megabytes() -> None:
    """N=64, D=M=4096: beyond x, w, dL/dy and both gradients themselves; compiling the kernels is counted."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    if "PermissionError" in run.stderr:
        pytest.skip("the peak of the memory cannot be reset here")
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 200 * 10**6


def test_products_from_the_right_avoid_matrices() -> None:
    """dL/dx0 = (dx1/dx0) (dx2/dx1) (dx3/dx2) (dL/dx3): from the loss on, there are only vectors."""
    program = ts.program(
        "x1[i] += A[i,j] * x0[j]\nx2[k] += B[k,i] * x1[i]\nx3[l] += C[l,k] * x2[k]\nloss += g[l] * x3[l]"
    )
    shapes = {"A": (30, 20), "x0": (20,), "B": (40, 30), "C": (50, 40), "g": (50,)}
    system = backslash(program, {name: R.standard_normal(shape) for name, shape in shapes.items()})
    work = system.work(of="loss", wrt=["x0"])
    vectors = 2 * (50 * 40 + 40 * 30 + 30 * 20)
    assert work.backward == work.best == vectors
    assert work.forward == 2 * (40 * 30 * 20 + 50 * 40 * 20 + 50 * 20)


# -- Back-propagation lecture notes

EXAMPLE = ts.program("f = log(x1) + x1 * x2 - sin(x2)")
POINT = {"x1": 2.0, "x2": 5.0}


def test_the_error_of_numerical_differentiation() -> None:
    def f(x1: Any, x2: Any) -> Any:
        return np.log(x1) + x1 * x2 - np.sin(x2)

    found = numerical(f, POINT, ["x2"], method="forward", step=1e-5, dtype=np.float32)
    x1, x2 = np.float32(2), np.float32(5)
    assert float(abs(x1 - np.cos(x2) - found.gradient["x2"])) == pytest.approx(0.09509146, abs=1e-6)
    assert found.evaluations == 2


def test_the_gradient_of_the_example_at_machine_precision() -> None:
    result = EXAMPLE.grad(of="f")(POINT)
    assert float(result["f"]) == pytest.approx(np.log(2) + 10 - np.sin(5), rel=1e-15)
    assert float(result["x1.grad"]) == pytest.approx(1 / 2 + 5, rel=1e-15)
    assert float(result["x2.grad"]) == pytest.approx(2 - np.cos(5), rel=1e-15)
    single = EXAMPLE.grad(of="f")({name: np.float32(value) for name, value in POINT.items()})
    assert abs(float(single["x2.grad"]) - (2 - np.cos(5))) < 2e-7


def test_a_difference_for_each_element_takes_n_evaluations() -> None:
    program = ts.program("f += x[i] ** 2")
    assert [numerical(program, {"x": np.ones(n)}, method="forward").evaluations for n in (1, 4, 9)] == [2, 5, 10]


def test_the_expression_swell() -> None:
    found = symbolic("sin(exp(x))", "x")
    assert str(found) == "cos(exp(x)) * exp(x)"  # exp(x) stands there twice
    assert (found.operations, found.shared_operations) == (4, 3)


def test_the_forward_and_backward_propagation_of_figure_1() -> None:
    program = ts.program("v1 = log(x1)\nv2 = x1 * x2\nv3 = sin(x2)\nv4 = v1 + v2\nv5 = v4 - v3")
    system = backslash(program, POINT)
    bar = {name: float(value) for name, value in system.multipliers({"v5": 1.0}).items()}
    assert bar == {"v5": 1.0, "v4": 1.0, "v3": -1.0, "v2": 1.0, "v1": 1.0}
    gradient = system.adjoint({"v5": 1.0})
    assert float(gradient["x2"]) == pytest.approx(-np.cos(5) + 2)  # the paths by v3 and by v4, v2
    assert float(gradient["x1"]) == pytest.approx(0.5 + 5)  # the paths by v4, v1 and by v4, v2
    lines = [line.strip() for line in flat(program).splitlines()]
    assert lines.index("grad_v5 = 1.0") < lines.index("grad_v4 = grad_v5") < lines.index("grad_v2 = grad_v4")
    assert "grad_x2 += grad_v2 * x1" in lines


def test_a_branch_chooses_the_graph() -> None:
    program = ts.program("x = a + b if a > 0 else a + c")
    for a, expected in ((1.0, {"a": 1.0, "b": 1.0, "c": 0.0}), (-1.0, {"a": 1.0, "b": 0.0, "c": 1.0})):
        result = program.grad(of="x")(a=a, b=2.0, c=3.0)
        assert {name: float(result[f"{name}.grad"]) for name in expected} == expected


def test_the_overhead_of_single_operations() -> None:
    parents, value, gradient, n = 2 * 4, 4, 4, 1024
    assert parents + value + gradient == 16
    assert parents * n**2 == 8 * 2**20  # 8 MiB


def test_the_diagonal_jacobian() -> None:
    program = ts.program("f[i] = a[i] * x[i]")
    a, x, g = R.standard_normal(5), R.standard_normal(5), R.standard_normal(5)
    J = jacobian(program, "f", "x")
    assert str(J).splitlines()[-1] == "J[i,i] += a[i]"
    np.testing.assert_array_equal(J(a=a, x=x), np.diag(a))
    np.testing.assert_allclose(program.adjoint(wrt=["x"])({"a": a, "x": x, "f.grad": g}), a * g)
    assert sparsity(program, "f", "x").structure == "diagonal"


def test_not_every_jacobian_is_sparse() -> None:
    program = ts.program("f[i] += A[i,j] * x[j]")
    A, x = R.standard_normal((3, 4)), R.standard_normal(4)
    np.testing.assert_array_equal(jacobian(program, "f", "x")(A=A, x=x), A)  # the document writes its transpose
    assert sparsity(program, "f", "x").pattern(A=(3, 4), x=(4,)).kind == "dense"


def test_the_product_of_matrices_backwards() -> None:
    """d<AX, G>/dX = A'G, by the trace, without the 4 TiB of its Jacobian at n = 1024."""
    assert 1024**4 * 4 == 4 * 2**40
    product, inner = ts.program("F[i,k] += A[i,j] * X[j,k]"), ts.program("s += X[i,j] * A[i,j]")
    A, B, G = (R.standard_normal((4, 4)) for _ in range(3))
    np.testing.assert_allclose(product.adjoint(wrt=["X"])({"A": A, "X": B, "F.grad": G}), A.T @ G)
    assert float(inner(X=A, A=B)) == pytest.approx(np.trace(A.T @ B))
    np.testing.assert_array_equal(inner.grad(of="s", wrt=["X"])(X=A, A=B)["X.grad"], B)  # d tr(X'A)/dX = A
    pattern = sparsity(product, "F", "X").pattern(A=(8, 8), X=(8, 8))
    assert pattern.density == 1 / 8


@pytest.mark.compiled
def test_the_product_of_matrices_backwards_at_1024() -> None:
    A, G = (R.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2))
    adjoint = ts.program("F[i,k] += A[i,j] * X[j,k]").adjoint(wrt=["X"])
    result = adjoint({"A": A, "F.grad": G})
    np.testing.assert_allclose(result[:4], A[:, :4].T @ G, rtol=1e-3, atol=1e-3)


# -- Backpropagation with arrays and tensors


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("z = x * y", ["x.grad += z.grad * y", "y.grad += x * z.grad"]),
        ("z += x[i] * y[i]", ["x.grad[i] += z.grad * y[i]", "y.grad[i] += x[i] * z.grad"]),
        ("y[j] += W[j,i] * x[i]", ["W.grad[j,i] += y.grad[j] * x[i]", "x.grad[i] += W[j,i] * y.grad[j]"]),
        (
            "Y[h,i,j] += A[h,i,k] * B[h,j,k]",
            ["A.grad[h,i,k] += Y.grad[h,i,j] * B[h,j,k]", "B.grad[h,j,k] += A[h,i,k] * Y.grad[h,i,j]"],
        ),
    ],
)
def test_the_swap_rule(forward: str, backward: list[str]) -> None:
    program = ts.program(forward)
    assert str(program.adjoint(wrt=program.inputs)).splitlines() == backward
