"""Scientific users: programs as objective, residual and right side of scipy's solvers, in float64 throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares, minimize
from scipy.sparse import csr_array
from scipy.sparse.linalg import spsolve

import tensorswap as ts
from tensorswap.jacobian import compressed

Array = NDArray[np.float64]


# -- scipy.optimize.minimize

ROSENBROCK = ts.program("f += 100 * (x[i+1] - x[i+0] ** 2) ** 2 + (1 - x[i+0]) ** 2")


def test_minimize_with_the_gradient() -> None:
    gradient = ROSENBROCK.grad(of="f", wrt=["x"])

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        result = gradient(x=x)
        return float(result["f"]), result["x.grad"]

    start = np.array([1.3, 0.7, 0.8, 1.9])
    found = minimize(value_and_gradient, start, jac=True, method="BFGS")
    assert found.success
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-5)
    assert value_and_gradient(start)[1].dtype == np.float64


def test_minimize_with_hessian_vector_products() -> None:
    gradient, product = ROSENBROCK.grad(of="f", wrt=["x"]), ROSENBROCK.hessian_vector(of="f", wrt=["x"])
    found = minimize(
        lambda x: float(ROSENBROCK(x=x)),
        np.array([1.3, 0.7, 0.8, 1.9]),
        jac=lambda x: gradient(x=x)["x.grad"],
        hessp=lambda x, v: product({"x": x, "x.dot": v}),
        method="Newton-CG",
        options={"xtol": 1e-10},
    )
    assert found.success
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-7)


def test_minimize_of_a_logistic_regression_with_several_tensors() -> None:
    model = ts.program("""
    z[n] += X[n,d] * w[d]
    s[n] = z[n] + b
    loss += softplus(s[n]) - y[n] * s[n]
    loss += 0.05 * w[d] ** 2
    """)
    gradient = model.grad(of="loss", wrt=["w", "b"])
    random = np.random.default_rng(0)
    X = random.standard_normal((80, 3))
    data = {"X": X, "y": (X @ np.array([2.0, -1.0, 0.5]) + 0.3 > 0).astype(np.float64)}

    def value_and_gradient(flat: Array) -> tuple[float, Array]:
        result = gradient({**data, "w": flat[:3], "b": flat[3]})
        return float(result["loss"]), np.append(result["w.grad"], result["b.grad"])

    found = minimize(value_and_gradient, np.zeros(4), jac=True, method="L-BFGS-B")
    assert found.success
    assert np.max(np.abs(value_and_gradient(found.x)[1])) < 1e-3
    assert np.mean((X @ found.x[:3] + found.x[3] > 0) == data["y"]) > 0.97


# -- scipy.optimize.least_squares

DECAY = ts.program("r[t] = a * exp(-k * time[t]) + c - y[t]")


def test_least_squares_with_the_jacobian() -> None:
    columns = [DECAY.jacobian("r", name) for name in ("a", "k", "c")]
    time = np.linspace(0, 4, 30)
    true = np.array([2.5, 1.3, 0.5])
    data = {"time": time, "y": true[0] * np.exp(-true[1] * time) + true[2]}

    def point(p: Array) -> dict[str, Any]:
        return {**data, "a": p[0], "k": p[1], "c": p[2]}

    found = least_squares(
        lambda p: DECAY(point(p)),
        np.array([1.0, 1.0, 0.0]),
        jac=lambda p: np.stack([column(point(p)) for column in columns], axis=1),
    )
    assert found.success
    np.testing.assert_allclose(found.x, true, rtol=1e-7)


def test_least_squares_with_a_sparse_jacobian() -> None:
    """Broyden's tridiagonal function: each residual sees three unknowns, so three tangents give the Jacobian."""
    residual = ts.program("""
    r[i] = (3 - 2 * x[i]) * x[i] + 1 - (x[i-1] if i > 0 else 0) - 2 * (x[i+1] if i < size(i) - 1 else 0)
    """)
    made = compressed(residual, "r", "x")

    def sparse(x: Array) -> csr_array:
        found = made(x=x)
        assert found.evaluations == 3
        return csr_array((found.values, (found.rows, found.columns)), shape=found.shape)

    found = least_squares(lambda x: residual(x=x), -np.ones(60), jac=sparse, xtol=1e-12)
    assert np.max(np.abs(residual(x=found.x))) < 1e-9


def test_a_newton_step_with_a_sparse_hessian() -> None:
    """The Jacobian of the gradient of a chain of springs is a band: five gradients' tangents, and one sparse solve."""
    energy = ts.program("e += (x[i+1] - x[i+0]) ** 4 + (x[i+1] - x[i+0]) ** 2\ne += 0.1 * (x[j] - y[j]) ** 2")
    gradient = energy.grad(of="e", wrt=["x"])
    hessian = compressed(gradient, "x.grad", "x")
    y = np.sin(np.arange(50.0))
    x = np.zeros(50)
    for _ in range(12):
        at = {"x": x, "y": y}
        made = hessian(at)
        assert made.evaluations == 3
        matrix = csr_array((made.values, (made.rows, made.columns)), shape=made.shape)
        x = x - spsolve(matrix, gradient(at)["x.grad"])
    assert np.max(np.abs(gradient({"x": x, "y": y})["x.grad"])) < 1e-12


# -- scipy.integrate.solve_ivp

OSCILLATOR = ts.program("d[0] = x[1]\nd[1] = mu * (1 - x[0] ** 2) * x[1] - x[0]")


def test_solve_ivp_of_a_stiff_oscillator() -> None:
    jacobian = OSCILLATOR.jacobian("d", "x")
    mu = 20.0
    found = solve_ivp(
        lambda t, x: OSCILLATOR(x=x, mu=mu),
        (0.0, 2.0),
        [2.0, 0.0],
        method="BDF",
        jac=lambda t, x: jacobian(x=x, mu=mu),
        rtol=1e-7,
        atol=1e-9,
    )
    assert found.success
    assert found.nfev < 2000
    np.testing.assert_allclose(jacobian(x=np.array([2.0, 0.5]), mu=mu), [[0, 1], [-2 * mu * 2 * 0.5 - 1, -3 * mu]])
    explicit = solve_ivp(
        lambda t, x: OSCILLATOR(x=x, mu=mu), (0.0, 2.0), [2.0, 0.0], method="RK45", rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(found.y[0, -1], explicit.y[0, -1], rtol=1e-5)


def test_solve_ivp_of_sensitivities_by_the_tangent() -> None:
    """x' = -k x: the tangent of the right side carries dx/dk along with x."""
    decay = ts.program("d[i] = -k * x[i]")
    tangent = decay.tangent(wrt=["x", "k"])

    def right(t: float, state: Array) -> Array:
        x, moved = state[:2], state[2:]
        point = {"x": x, "k": 0.7}
        return np.concatenate([decay(point), tangent({**point, "x.dot": moved, "k.dot": 1.0})])

    found = solve_ivp(right, (0.0, 2.0), [1.0, 3.0, 0.0, 0.0], rtol=1e-10, atol=1e-12)
    expected = -2.0 * np.array([1.0, 3.0]) * np.exp(-0.7 * 2.0)
    np.testing.assert_allclose(found.y[2:, -1], expected, rtol=1e-8)


def test_solve_ivp_backwards_by_the_adjoint() -> None:
    """The gradient of x(T) by x(0) from the adjoint equation, against the exact exponential."""
    linear = ts.program("d[i] += A[i,j] * x[j]")
    adjoint = linear.adjoint(wrt=["x"])
    A = np.array([[0.0, 1.0], [-1.0, -0.2]])
    found = solve_ivp(
        lambda t, g: adjoint({"A": A, "d.grad": g}), (0.0, 1.5), [1.0, 0.0], rtol=1e-10, atol=1e-12
    )  # from T back to 0, time runs the other way
    forward = [
        solve_ivp(lambda t, x: linear(A=A, x=x), (0.0, 1.5), unit, rtol=1e-10, atol=1e-12).y[0, -1]
        for unit in np.eye(2)
    ]
    np.testing.assert_allclose(found.y[:, -1], forward, rtol=1e-8)


@pytest.mark.compiled
def test_compiled_calls_serve_a_solver() -> None:
    gradient = ROSENBROCK.grad(of="f", wrt=["x"])

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        result = gradient(x=x)
        return float(result["f"]), result["x.grad"]

    found = minimize(value_and_gradient, np.array([-1.2, 1.0]), jac=True, method="BFGS")
    np.testing.assert_allclose(found.x, np.ones(2), atol=1e-6)
