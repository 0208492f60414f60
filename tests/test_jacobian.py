"""Jacobians: as programs, as patterns of nonzeros, and compressed; each against the tangent and against the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import tensorswap as ts
from tensorswap.errors import ArgumentError, DerivativeError, LimitError, ProgramError
from tensorswap.jacobian import compressed, jacobian, sparsity
from tensorswap.teaching.jacobian.pattern import pattern_of

from .generate import Case, programs
from .test_generated import outputs

R = np.random.default_rng(4)

BAND = "size(i) = size(X, 0)\nY[i] += X[i+p-1] * W[p] if inside"
NETWORK = "H[j] += W[j,i] * x[i]\nA[j] = tanh(H[j])\ny[k] += V[k,j] * A[j]"


def lines(program: ts.Program) -> list[str]:
    return str(program).splitlines()


# -- as a program


@pytest.mark.parametrize(
    ("text", "of", "wrt", "expected"),
    [
        ("Y[i] += W[i,j] * x[j]", "Y", "x", "J[i,j] += W[i,j]"),
        ("Y[i] += W[i,j] * x[j]", "Y", "W", "J[i,i,j] += x[j]"),
        ("Y[i] = tanh(x[i])", "Y", "x", "J[i,i] += 1 - Y[i] * Y[i]"),
        ("Y[i] += X[2*i+p] * W[p]", "Y", "X", "J[i,2*i+p] += W[p]"),
        ("Y[b,d] = E[tok[b],d]", "Y", "E", "J[b,d,tok[b],d] += 1.0"),
        ("loss += x[i] ** 2", "loss", "x", "J[i] += 2 * x[i]"),
        ("S += A[i] + B[j]", "S", "A", "J[i] += 1.0 * size(j)"),
        ("m[i] max= X[i,j]", "m", "X", "J[i,i,j] += 1.0 if j == m.arg[i]"),
    ],
)
def test_a_jacobian_is_index_statements(text: str, of: str, wrt: str, expected: str) -> None:
    made = jacobian(ts.program(text), of, wrt)
    assert lines(made)[-1] == expected
    assert ts.program(str(made)) == made


def test_it_goes_through_several_layers_both_ways() -> None:
    program = ts.program(NETWORK)
    arrays = {"W": R.standard_normal((4, 3)), "x": R.standard_normal(3), "V": R.standard_normal((2, 4))}
    slope = 1 - np.tanh(arrays["W"] @ arrays["x"]) ** 2
    expected = (arrays["V"] * slope) @ arrays["W"]
    for mode in ("tangent", "adjoint"):
        np.testing.assert_allclose(jacobian(program, "y", "x", mode)(arrays), expected)
    by_weights = jacobian(program, "y", "W")
    assert "H.grad[s,j] += A.grad[s,j] * (1 - A[j] * A[j])" in lines(by_weights)  # fewer outputs: the adjoint
    expected = np.einsum("kj,i->kji", arrays["V"] * slope, arrays["x"])
    np.testing.assert_allclose(by_weights(arrays), expected)


def test_a_recurrence_has_a_triangular_jacobian() -> None:
    program = ts.program("for t:\n    C[t] = X[t] + a * (C[t-1] if t > 0 else 0)")
    steps = np.arange(4)
    expected = np.where(steps[:, None] >= steps, 0.5 ** np.abs(steps[:, None] - steps), 0)
    for mode in ("tangent", "adjoint"):
        np.testing.assert_allclose(jacobian(program, "C", "X", mode)(X=np.ones(4), a=0.5), expected)


def test_a_jacobian_of_a_definition_keeps_its_arguments() -> None:
    program = ts.program("def f(X[i], a=2.0) -> Y[i]:\n    Y[i] = a * X[i] ** 2")
    made = jacobian(program, "Y", "X")
    assert made.inputs == ("X", "a")
    assert ts.program(str(made)) == made
    np.testing.assert_allclose(made(X=np.array([1.0, 3.0])), np.diag([4.0, 12.0]))


def test_a_jacobian_of_a_gradient_is_the_hessian() -> None:
    program = ts.program("z[i] += A[i,j] * x[j]\nloss += exp(z[i])")
    arrays = {"A": R.standard_normal((3, 2)), "x": R.standard_normal(2)}
    hessian = jacobian(program.grad(of="loss", wrt=["x"]), "x.grad", "x")(arrays)
    expected = arrays["A"].T @ np.diag(np.exp(arrays["A"] @ arrays["x"])) @ arrays["A"]
    np.testing.assert_allclose(hessian, expected)


def test_a_jacobian_keeps_single_precision_and_is_never_whole_numbers() -> None:
    program = ts.program("Y[i] = 2 * X[i]")
    assert jacobian(program, "Y", "X")(X=np.ones(2, np.float32)).dtype == np.float32
    assert jacobian(program, "Y", "X")(X=np.ones(2)).dtype == np.float64


def test_an_independent_input_has_the_jacobian_zero() -> None:
    program = ts.program("Y[i] = X[i] * stop(Z[i])")
    for mode in ("tangent", "adjoint"):
        np.testing.assert_array_equal(jacobian(program, "Y", "Z", mode)(X=np.ones(2), Z=np.ones(2)), np.zeros((2, 2)))


def test_what_is_refused() -> None:
    program = ts.program("Y[i] = X[i] * Z[i]\nk argmax= X[i]\nV[b] = X[g[b]]")
    with pytest.raises(ArgumentError, match="not computed"):
        jacobian(program, "X", "Y")
    with pytest.raises(ArgumentError, match="not an input"):
        jacobian(program, "Y", "Q")
    with pytest.raises(ArgumentError, match="one `wrt`"):
        jacobian(program, "Y", ["X", "Z"])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mode is"):
        jacobian(program, "Y", "X", mode="sideways")
    with pytest.raises(DerivativeError, match="used as an index"):
        jacobian(program, "V", "g")
    with pytest.raises(ProgramError, match="write the indices out"):
        jacobian(ts.program("Y[...,i] = X[...,i] ** 2"), "Y", "X")


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("text", "of", "wrt", "shapes"),
    [
        (BAND, "Y", "X", {"X": (7,), "W": (3,)}),
        (NETWORK, "y", "W", {"W": (4, 3), "x": (3,), "V": (2, 4)}),
        ("Y[i,l] += A[i,j] * B[j,k] * C[k,l] * d[k]", "Y", "B", {"A": (2, 3), "B": (3, 4), "C": (4, 2), "d": (4,)}),
        ("for t:\n    C[t] = X[t] + a * (C[t-1] if t > 0 else 0)", "C", "X", {"X": (5,), "a": ()}),
    ],
)
def test_compiled_jacobians_agree_with_the_interpreter(
    text: str, of: str, wrt: str, shapes: dict[str, tuple[int, ...]]
) -> None:
    program = ts.program(text)
    arrays = {name: np.asarray(R.standard_normal(shape)) for name, shape in shapes.items()}
    for mode in ("tangent", "adjoint"):
        made = jacobian(program, of, wrt, mode)
        np.testing.assert_allclose(made(arrays), made.run_reference(arrays), atol=1e-12)
    dense = made(arrays)
    np.testing.assert_allclose(compressed(program, of, wrt)(arrays).dense(), dense, atol=1e-12)


def test_a_jacobian_of_a_value_inside_a_definition() -> None:
    program = ts.program("def f(X[i]) -> Y[i]:\n    H[i] = sin(X[i])\n    Y[i] = H[i] ** 2")
    X = np.array([0.3, 0.9])
    for mode in ("tangent", "adjoint"):
        np.testing.assert_allclose(jacobian(program, "H", "X", mode)(X=X), np.diag(np.cos(X)))


# -- sparsity


@pytest.mark.parametrize(
    ("text", "of", "wrt", "shapes", "structure", "kind", "count"),
    [
        ("Y[i] = tanh(x[i])", "Y", "x", {"x": (5,)}, "diagonal", "diagonal", 5),
        (BAND, "Y", "X", {"X": (12,), "W": (3,)}, "banded, column - row = p-1",
         "banded, 1 below and 1 above the diagonal", 34),
        ("Y[n,m] += x[n,d] * w[d,m]", "Y", "x", {"x": (3, 4), "w": (4, 2)}, "block diagonal over n",
         "block diagonal, 3 blocks of 2x4", 24),
        ("S[i,j] += Q[i,k] * K[j,k] if j <= i", "S", "Q", {"Q": (3, 2), "K": (3, 2)}, "block diagonal over i",
         "block diagonal, 3 blocks of 3x2", 12),
        ("Y[i] += W[i,j] * x[j]", "Y", "x", {"W": (3, 4), "x": (4,)}, "dense", "dense", 12),
        ("Y[i] += X[2*i+p] * W[p]", "Y", "X", {"X": (11,), "W": (3,)}, "sparse", "sparse", 15),
        ("Y[i] = x[i] * stop(z[i])", "Y", "z", {"x": (3,), "z": (3,)}, "zero", "zero", 0),
        ("for t:\n    C[t] = X[t] + (C[t-1] if t > 0 else 0)", "C", "X", {"X": (6,)}, "sum of composed, diagonal",
         "lower triangular", 21),
    ],
)  # fmt: skip
def test_sparsity_is_read_off_the_text(
    text: str, of: str, wrt: str, shapes: dict[str, tuple[int, ...]], structure: str, kind: str, count: int
) -> None:
    found = sparsity(ts.program(text), of, wrt)
    assert found.structure == structure
    pattern = found.pattern(shapes)
    assert (pattern.kind, pattern.count) == (kind, count)
    assert str(found).startswith(structure)
    assert str(pattern).count("*") == count


def test_a_large_pattern_needs_no_values_and_no_large_memory() -> None:
    pattern = sparsity(ts.program(BAND), "Y", "X").pattern(X=(50_000,), W=(3,))
    assert pattern.shape == (50_000, 50_000)
    assert pattern.count == 3 * 50_000 - 2
    assert int(pattern.colours.max()) == 2
    with pytest.raises(LimitError, match="dense array"):
        pattern.dense()


def test_gathered_positions_need_their_array() -> None:
    found = sparsity(ts.program("Y[b,d] = E[tok[b],d]"), "Y", "E")
    pattern = found.pattern(E=(4, 2), tok=np.array([3, 0]))
    assert sorted(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True)) == [(0, 6), (1, 7), (2, 0), (3, 1)]
    with pytest.raises(ArgumentError, match="pass the array tok"):
        found.pattern(E=(4, 2), tok=(2,))


def test_a_position_that_values_decide_may_be_any() -> None:
    program = ts.program("size(z) = 1\nbest[z] argmax= X[i]\nY[z] = X[best[z]] ** 2\nreturn Y")
    assert sparsity(program, "Y", "X").pattern(X=(4,)).count == 4


def test_colours_never_meet_in_a_row() -> None:
    dense = R.random((30, 40)) < 0.1
    rows, columns = np.nonzero(dense)
    pattern = pattern_of((rows, columns), dense.shape)
    np.testing.assert_array_equal(pattern.dense(), dense)
    for row in range(30):
        colours = pattern.colours[np.flatnonzero(dense[row])]
        assert len(set(colours.tolist())) == len(colours)
    assert (pattern.colours[~dense.any(0)] == -1).all()


# -- compressed


def test_a_band_takes_three_tangents() -> None:
    arrays = {"X": R.standard_normal(40), "W": R.standard_normal(3)}
    found = compressed(ts.program(BAND), "Y", "X")(arrays)
    assert found.evaluations == 3
    np.testing.assert_allclose(found.dense(), jacobian(ts.program(BAND), "Y", "X")(arrays))
    v = R.standard_normal(40)
    np.testing.assert_allclose(found @ v, found.dense() @ v)
    np.testing.assert_allclose(found @ np.stack([v, 2 * v], 1), found.dense() @ np.stack([v, 2 * v], 1))
    with pytest.raises(ArgumentError, match="40 rows"):
        found @ np.ones(3)


def test_one_tangent_gives_a_diagonal_and_one_adjoint_a_row() -> None:
    diagonal = compressed(ts.program("Y[i] = exp(x[i])"), "Y", "x")(x=np.arange(5.0))
    assert (diagonal.evaluations, diagonal.mode) == (1, "tangent")
    np.testing.assert_allclose(diagonal.values, np.exp(np.arange(5.0)))
    row = compressed(ts.program("y += x[i] ** 2"), "y", "x")(x=np.arange(5.0))
    assert (row.evaluations, row.mode) == (1, "adjoint")
    np.testing.assert_allclose(row.dense(), 2 * np.arange(5.0))


def test_colours_are_found_once_for_each_size_and_each_gathered_array() -> None:
    made = compressed(ts.program("Y[b] = E[tok[b]] ** 2"), "Y", "E")
    E = np.arange(1.0, 4.0)
    for tok in ([0, 2], [1, 1], [0, 2]):
        expected = np.zeros((2, 3))
        expected[np.arange(2), tok] = 2 * E[tok]
        np.testing.assert_allclose(made(E=E, tok=np.array(tok)).dense(), expected)
    assert len(made._colourings) == 2


def test_a_zero_jacobian_takes_no_evaluation() -> None:
    found = compressed(ts.program("Y[i] = X[i] * stop(Z[i])"), "Y", "Z")(X=np.ones(3), Z=np.ones(3))
    assert found.evaluations == 0
    np.testing.assert_array_equal(found.dense(), np.zeros((3, 3)))


# -- on generated programs


@seed(6)
@settings(max_examples=80, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(case=programs)
def test_generated_programs(case: Case) -> None:
    program = ts.program(case.text)
    everything = ts.program(case.text, outputs=program.loops.written)
    if not case.wrt or not all(np.isfinite(a).all() for a in outputs(everything, everything(case.arrays)).values()):
        return
    of, wrt = program.outputs[-1], case.wrt[0]
    x, y = case.arrays[wrt], outputs(program, program(case.arrays))[of]
    direction = np.random.default_rng(0).standard_normal(x.shape)
    tangent = program.tangent(wrt=[wrt])
    expected = outputs(tangent, tangent({**case.arrays, f"{wrt}.dot": direction}))[f"{of}.dot"]
    values = []
    for mode in ("tangent", "adjoint"):
        made = jacobian(program, of, wrt, mode)
        assert ts.program(str(made)) == made
        values.append(made(case.arrays))
        assert values[-1].shape == y.shape + x.shape
        np.testing.assert_allclose(np.tensordot(values[-1], direction, x.ndim), expected, atol=1e-9)
    pattern = sparsity(program, of, wrt).pattern(case.arrays)
    assert not values[0].reshape(pattern.shape)[~pattern.dense()].any()
    np.testing.assert_allclose(compressed(program, of, wrt)(case.arrays).dense(), values[0], atol=1e-9)
