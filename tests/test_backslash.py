"""Backslash: operators, spaces, triangular systems solved both ways, pictures, counts of work, and path weights."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import tensorswap as ts
from tensorswap.backslash import (
    BlockDiagonal,
    Composition,
    Hadamard,
    Identity,
    Kronecker,
    Left,
    Operator,
    Pair,
    Plain,
    Restricted,
    Right,
    Scale,
    Space,
    Sum,
    Symmetric,
    System,
    Trace,
    Transposed,
    Zero,
    backslash,
    check_space,
    path_weights,
)
from tensorswap.errors import ArgumentError, DerivativeError, LimitError, ShapeError
from tensorswap.teaching.backslash.cost import best_order

from .generate import Case, programs
from .test_generated import outputs

R = np.random.default_rng(7)
A, B, G = R.standard_normal((5, 4)), R.standard_normal((2, 3)), R.standard_normal((3, 4))


def check_operator(operator: Operator) -> None:
    """The two directions are transposes of each other, and the matrix does what the operator does."""
    rows, columns = operator.shape
    matrix = operator.matrix()
    assert matrix.shape == (rows, columns)
    x = operator.domain.project(R.standard_normal(operator.domain.shape))
    y = operator.range.project(R.standard_normal(operator.range.shape))
    left, right = operator.range.inner(operator.apply(x), y), operator.domain.inner(x, operator.adjoint(y))
    assert left == pytest.approx(right, rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(
        operator.range.coordinates(operator.apply(x)), matrix @ operator.domain.coordinates(x), atol=1e-12
    )
    np.testing.assert_allclose(
        operator.domain.coordinates(operator.adjoint(y)), matrix.T @ operator.range.coordinates(y), atol=1e-12
    )
    np.testing.assert_allclose(operator.T.matrix(), matrix.T)


OPERATORS = {
    "left": Left(B, 4),
    "left of a vector": Left(B),
    "right": Right(A.T, 3),
    "hadamard": Hadamard(G),
    "kronecker": Kronecker(A, B),
    "trace": Trace(G),
    "identity": Identity(Plain((2, 2))),
    "zero": Zero(Plain((2, 2)), Plain((3,))),
    "scale": Scale(-2.0, Plain((3,))),
    "transposed": Left(B, 4).T,
    "sum": Left(B, 4) + Left(2 * B, 4),
    "composition": Trace(R.standard_normal((2, 5))) @ Kronecker(A, B) @ Hadamard(G),
    "symmetric": Restricted(Kronecker(B.T @ B, B.T @ B), Symmetric(3), Symmetric(3)),
    "blocks": Restricted(Left(B, 3), BlockDiagonal([1, 2]), Plain((2, 3))),
    "scaled blocks": Scale(3.0, BlockDiagonal([(1, 2), 2])),
}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_an_operator_and_its_adjoint(operator: Operator) -> None:
    check_operator(operator)


def test_the_check_of_an_operator_can_fail() -> None:
    class Wrong(Left):
        def adjoint(self, y: Any) -> Any:
            return self.factor.T @ y * 2

    with pytest.raises(AssertionError):
        check_operator(Wrong(B, 4))


def test_the_table_of_operators() -> None:
    """Description, mapping, matrix and size of each, for X with m = 3 rows and n = 4 columns."""
    X = R.standard_normal((3, 4))
    table = [
        (Kronecker(A, B), B @ X @ A.T, np.kron(A, B), (2 * 5, 12)),
        (Left(B, 4), B @ X, np.kron(np.eye(4), B), (2 * 4, 12)),
        (Right(A.T, 3), X @ A.T, np.kron(A, np.eye(3)), (3 * 5, 12)),
        (Hadamard(G), G * X, np.diag(G.reshape(-1, order="F")), (12, 12)),
        (Trace(G), np.trace(G.T @ X), G.reshape(1, -1, order="F"), (1, 12)),
    ]
    for operator, image, matrix, shape in table:
        np.testing.assert_allclose(operator.apply(X), image)
        np.testing.assert_allclose(operator.matrix(), matrix)
        assert operator.shape == shape


def test_costs_of_operators() -> None:
    assert Left(B, 4).cost == 2 * 2 * 3 * 4
    assert Right(A.T, 3).cost == 2 * 3 * 4 * 5
    assert Hadamard(G).cost == 12
    assert Trace(G).cost == 24
    assert Kronecker(A, B).cost == min(2 * 2 * 3 * 4 + 2 * 2 * 4 * 5, 2 * 3 * 4 * 5 + 2 * 2 * 3 * 5)
    assert (Left(B, 4) @ Hadamard(G)).cost == 48 + 12
    assert (Left(B, 4) + Left(B, 4)).cost == 96 + 8
    assert Identity(Plain((3,))).cost == Zero(Plain((3,)), Plain((3,))).cost == 0


def test_identities_and_zeros_vanish() -> None:
    left = Left(B, 4)
    assert left @ Identity(left.domain) is left
    assert Identity(left.range) @ left is left
    assert isinstance(left @ Zero(Plain((2,)), left.domain), Zero)
    assert left + Zero(left.domain, left.range) is left
    assert Zero(left.domain, left.range) + left is left
    assert isinstance(left.T.T, Left)
    assert len((left + left + left).parts) == 3  # type: ignore[attr-defined]


def test_operators_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="composition of operators does not fit"):
        Left(B, 4) @ Left(B, 4)
    with pytest.raises(ShapeError, match="sum of operators does not fit"):
        Left(B, 4) + Left(B, 5)
    with pytest.raises(ShapeError, match="by a matrix"):
        Left(np.ones(3))
    with pytest.raises(ShapeError, match="same shapes"):
        Restricted(Left(B, 3), Symmetric(3), Symmetric(3))
    with pytest.raises(LimitError, match="at most"):
        Hadamard(np.ones((100, 100))).matrix()
    assert repr(Left(B, 4, "B_L")) == "<Left B_L: 8x12>"


# -- spaces


@pytest.mark.parametrize("space", [Plain((2, 3)), Plain(()), Symmetric(4), BlockDiagonal([2, 1, (2, 3)])], ids=str)
def test_spaces(space: Space) -> None:
    check_space(space)
    element = space.project(R.standard_normal(space.shape))
    assert space.holds(space.embed(element))
    np.testing.assert_allclose(space.embed(space.scale(2, element)), space.embed(space.add(element, element)))


@dataclass(frozen=True)
class Wrong(Space):
    """Symmetric matrices that are only read from the upper triangle: not a projection."""

    shape: tuple[int, ...] = (2, 2)

    @property
    def dimension(self) -> int:
        return 3

    def embed(self, value: Any) -> Any:
        return np.asarray(value)

    def project(self, array: Any) -> Any:
        upper = np.triu(array)
        return upper + np.triu(array, 1).T

    def basis(self, number: int) -> Any:
        return Symmetric(2).basis(number)


def test_a_wrong_space_is_refused() -> None:
    with pytest.raises(ArgumentError, match="not the transpose"):
        check_space(Wrong())


@dataclass(frozen=True)
class Diagonal(Space):
    """A space of one's own: diagonal matrices, kept as vectors."""

    size: int

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size, self.size)

    @property
    def dimension(self) -> int:
        return self.size

    def embed(self, value: Any) -> Any:
        return np.diag(value)

    def project(self, array: Any) -> Any:
        return np.diag(array).copy()

    def basis(self, number: int) -> Any:
        return np.eye(self.size)[number]


def test_a_space_of_ones_own() -> None:
    check_space(Diagonal(3))
    program = ts.program("Y[i,k] += D[i,j] * M[j,k]\nloss += Y[i,k] ** 2")
    d, M = R.standard_normal(3), R.standard_normal((3, 2))
    gradient = backslash(program, {"D": d, "M": M}, spaces={"D": Diagonal(3)}).adjoint({"loss": 1.0})
    np.testing.assert_allclose(gradient["D"], 2 * d * np.sum(M**2, 1))


# -- systems of programs

LAYERS = """
Z1[i,k] += W1[i,j] * X0[j,k]
Z1[i,k] += B1[i,k]
X1[i,k] = tanh(Z1[i,k])
Z2[l,k] += W2[l,i] * X1[i,k]
Z2[l,k] += B2[l,k]
X2[l,k] = relu(Z2[l,k])
loss += G[l,k] * X2[l,k]
"""
SHAPES = {"W1": (3, 4), "X0": (4, 2), "B1": (3, 2), "W2": (5, 3), "B2": (5, 2), "G": (5, 2)}


def layers() -> tuple[ts.Program, dict[str, np.ndarray]]:
    return ts.program(LAYERS), {name: R.standard_normal(shape) for name, shape in SHAPES.items()}


def test_statements_become_operators() -> None:
    program, values = layers()
    system = backslash(program, values)
    assert {key: str(entry) for key, entry in system.L.items()} == {
        ("X1", "Z1"): "(1 - X1 * X1)_H", ("Z2", "X1"): "W2_L", ("X2", "Z2"): "[Z2 > 0]_H", ("loss", "X2"): "<G,.>",
    }  # fmt: skip
    assert {key: str(entry) for key, entry in system.D.items()} == {
        ("Z1", "W1"): "X0_R", ("Z1", "X0"): "W1_L", ("Z1", "B1"): "I", ("Z2", "W2"): "X1_R", ("Z2", "B2"): "I",
        ("loss", "G"): "<X2,.>",
    }  # fmt: skip
    for entry in (*system.L.values(), *system.D.values()):
        check_operator(entry)


@pytest.mark.parametrize(
    ("text", "shapes", "entry", "kind", "label"),
    [
        ("Y[i] += W[i,j] * x[j]", {"W": (2, 3), "x": (3,)}, "x", Left, "W_L"),
        ("Y[i] += W[j,i] * x[j]", {"W": (3, 2), "x": (3,)}, "x", Left, "W'_L"),
        ("Y[i,k] += X[i,j] * A[k,j]", {"X": (2, 3), "A": (4, 3)}, "X", Right, "A'_R"),
        ("Y[i,l] += B[i,j] * X[j,k] * A[l,k]", {"B": (2, 3), "X": (3, 4), "A": (5, 4)}, "X", Kronecker, "A(x)B"),
        ("Y[i,l] -= B[i,j] * X[j,k] * A[l,k]", {"B": (2, 3), "X": (3, 4), "A": (5, 4)}, "X", Kronecker, "A(x)(-B)"),
        ("Y[i,j] = 2 * X[i,j] * M[i,j]", {"X": (2, 3), "M": (2, 3)}, "X", Hadamard, "(2 * M)_H"),
        ("Y[i] = 3 * X[i]", {"X": (2,)}, "X", Scale, "3"),
        ("Y[i] -= X[i]", {"X": (2,)}, "X", Scale, "-1"),
        ("y += X[i] * G[i]", {"X": (2,), "G": (2,)}, "X", Trace, "<G,.>"),
        ("y += X[i] + b[j]", {"X": (2,), "b": (3,)}, "X", Trace, "<1,.>"),
        ("Y[i] = c * X[i]", {"X": (2,), "c": ()}, "c", Transposed, "(<X,.>)'"),
        ("y = w * x", {"w": (), "x": ()}, "x", Hadamard, "w"),
        ("Y[i,j] = X[j,i]", {"X": (2, 3)}, "X", Pair, "dY/dX"),
        ("Y[i] += X[i+p] * w[p]", {"X": (5,), "w": (2,)}, "X", Pair, "dY/dX"),
        ("Y[i] = X[i] * X[2-i]\nsize(i) = 3", {"X": (3,)}, "X", Pair, "dY/dX"),
        ("Y[i] = X[i] * X[i] ", {"X": (3,)}, "X", Sum, "X_H + X_H"),
        ("m[i] max= X[i,j]", {"X": (2, 3)}, "X", Pair, "dm/dX"),
        ("m *= X[i]", {"X": (3,)}, "X", Pair, "dm/dX"),
        ("Y[i,j] += X[i,k] * M[i,k,j]", {"X": (2, 3), "M": (2, 3, 4)}, "X", Pair, "dY/dX"),
    ],
)
def test_every_form_of_a_statement(
    text: str, shapes: dict[str, tuple[int, ...]], entry: str, kind: type[Operator], label: str
) -> None:
    program = ts.program(text)
    values = {name: R.standard_normal(shape) for name, shape in shapes.items()}
    system = backslash(program, values)
    operator = system.D[program.outputs[0], entry]
    assert isinstance(operator, kind)
    assert operator.label == label
    check_operator(operator)
    direction = R.standard_normal(shapes[entry])
    expected = program.tangent(wrt=[entry])({**values, f"{entry}.dot": direction})
    np.testing.assert_allclose(operator.apply(direction), expected)
    assert operator.cost >= 0


def test_both_substitutions_agree_with_the_programs() -> None:
    program, values = layers()
    system = backslash(program, values)
    gradient, found = program.grad(of="loss")(values), system.adjoint({"loss": 1.0})
    for name in SHAPES:
        np.testing.assert_allclose(found[name], gradient[f"{name}.grad"], atol=1e-12)
    directions = {name: R.standard_normal(shape) for name, shape in SHAPES.items()}
    tangent = program.tangent(wrt=list(SHAPES))({**values, **{f"{n}.dot": v for n, v in directions.items()}})
    np.testing.assert_allclose(system.tangent(directions)["loss"], tangent)
    some = system.tangent({"B2": directions["B2"]})
    np.testing.assert_array_equal(some["X1"], np.zeros((3, 2)))
    assert set(system.multipliers({"X1": np.ones((3, 2))})) == {"X1", "Z1"}


def test_the_system_is_a_triangular_matrix() -> None:
    program, values = layers()
    system = backslash(program, values)
    L, D = system.matrices()
    assert not np.triu(L).any()
    whole = np.linalg.solve(np.eye(len(L)) - L, D)
    gradient = system.adjoint({"loss": 1.0})
    stacked = np.concatenate([gradient[name].reshape(-1, order="F") for name in system.parameters])
    np.testing.assert_allclose(whole[-1], stacked, atol=1e-12)


def test_nodes_that_are_left_out_become_compositions() -> None:
    program, values = layers()
    whole, kept = backslash(program, values), backslash(program, values, nodes=["X1", "X2", "loss"])
    assert list(kept.nodes) == ["X1", "X2", "loss"]
    assert kept.L["X2", "X1"].label == "[Z2 > 0]_H W2_L"
    assert kept.D["X1", "W1"].label == "(1 - X1 * X1)_H X0_R"
    assert isinstance(kept.D["X1", "W1"], Composition)
    assert kept.D["X1", "B1"].label == "(1 - X1 * X1)_H"
    assert isinstance(kept.entry("X1", "X2"), Zero)
    assert isinstance(kept.entry("X1", "W2"), Zero)
    assert kept.entry("X2", "X1") is kept.L["X2", "X1"]
    for name, gradient in whole.adjoint({"loss": 1.0}).items():
        np.testing.assert_allclose(kept.adjoint({"loss": 1.0})[name], gradient, atol=1e-12)
    with pytest.raises(ArgumentError, match="X9 is no node"):
        backslash(program, values, nodes=["X9"])


def test_a_value_that_is_used_twice_adds_up() -> None:
    program = ts.program("a[i] = sin(x[i])\nb[i] = a[i] * x[i]\ny[i] = a[i] * b[i]")
    x = R.standard_normal(3)
    system = backslash(program, {"x": x}, nodes=["y"])
    expected = program.adjoint(wrt=["x"])({"x": x, "y.grad": np.ones(3)})
    np.testing.assert_allclose(system.adjoint({"y": np.ones(3)})["x"], expected)
    assert isinstance(system.D["y", "x"], Sum)


def test_a_block_is_one_entry() -> None:
    program = ts.program(
        "P[t,h] += Wx[h,d] * X[t,d]\nfor t:\n    P[t,h] += Wh[h,g] * (H[t-1,g] if t > 0 else H0[g])\n"
        "    H[t,h] = tanh(P[t,h])\nloss += H[t,h] ** 2"
    )
    shapes = {"Wx": (3, 2), "X": (4, 2), "Wh": (3, 3), "H0": (3,)}
    values = {name: R.standard_normal(shape) for name, shape in shapes.items()}
    system = backslash(program, values)
    assert isinstance(system.D["H", "Wh"], Pair)
    assert ("H", "P") not in system.L
    gradient = program.grad(of="loss")(values)
    for name, found in system.adjoint({"loss": 1.0}).items():
        np.testing.assert_allclose(found, gradient[f"{name}.grad"], atol=1e-12)
        check_operator(system.D["H", name])


def test_definitions_batches_sizes_and_whole_numbers() -> None:
    softmax = ts.program(
        "def softmax(X[...,j], scale=1.0) -> P[...,j]:\n    E[...,j] = exp(scale * X[...,j])\n    Z[...] += E[...,j]\n"
        "    P[...,j] = E[...,j] / Z[...]"
    )
    X = R.standard_normal((2, 3))
    weights = R.standard_normal((2, 3))
    expected = softmax.adjoint(wrt=["X"])({"X": X, "P.grad": weights})
    np.testing.assert_allclose(backslash(softmax, {"X": X}).adjoint({"P": weights})["X"], expected, atol=1e-12)
    gathered = ts.program("n: int = 2\nY[b] = n * E[tok[b]] * scale")
    system = backslash(gathered, {"E": np.ones(4), "tok": np.array([1, 1, 3]), "scale": 3})
    assert list(system.parameters) == ["E", "scale"]
    np.testing.assert_array_equal(system.adjoint({"Y": np.ones(3)})["E"], [0, 12, 0, 6])
    measured = ts.program("Y[i] = size(X, 0) * Z[i]")
    system = backslash(measured, {"X": np.ones((4, 2)), "Z": np.ones(3)})
    np.testing.assert_array_equal(system.adjoint({"Y": np.ones(3)})["Z"], [4, 4, 4])
    partly = ts.program("H[i+1] = X[i] ** 2\nY[j] = H[j]\nsize(j) = 2")
    np.testing.assert_array_equal(backslash(partly, {"X": np.ones(3)}).adjoint({"Y": np.ones(2)})["X"], [2, 0, 0])


def test_single_precision_stays_single() -> None:
    program, values = layers()
    system = backslash(program, {name: value.astype(np.float32) for name, value in values.items()})
    assert system.adjoint({"loss": np.float32(1)})["W1"].dtype == np.float32


def test_symmetric_values_have_symmetric_gradients() -> None:
    program = ts.program("Y[i,k] += S[i,j] * M[j,k]\nloss += Y[i,k] * T[i,k]")
    S, M, T = R.standard_normal((3, 3)), R.standard_normal((3, 2)), R.standard_normal((3, 2))
    S = S + S.T
    values = {"S": S, "M": M, "T": T}
    system = backslash(program, values, spaces={"S": Symmetric(3)})
    found = system.adjoint({"loss": 1.0})["S"]
    plain = T @ M.T
    np.testing.assert_allclose(found, (plain + plain.T) / 2)
    step = 1e-6
    for k in range(6):  # the derivative along each symmetric direction, and along those alone
        direction = Symmetric(3).basis(k)
        moved = [float(program({**values, "S": S + sign * step * direction})) for sign in (1, -1)]
        assert np.sum(found * direction) == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=1e-7)
        assert float(system.tangent({"S": direction})["loss"]) == pytest.approx(np.sum(found * direction))
    for entry in (*system.L.values(), *system.D.values()):
        check_operator(entry)
    with pytest.raises(ArgumentError, match="S lies outside of symmetric"):
        system.tangent({"S": R.standard_normal((3, 3))})
    with pytest.raises(ArgumentError, match="S lies outside of symmetric"):
        backslash(program, {**values, "S": M @ T.T}, spaces={"S": Symmetric(3)})


def test_a_symmetric_node_passes_symmetric_adjoints_on() -> None:
    program = ts.program("Q[i,k] += S[i,j] * S[j,k]\nloss += Q[i,k] * T[i,k]")
    S, T = R.standard_normal((3, 3)), R.standard_normal((3, 3))
    S = S + S.T
    spaces = {"S": Symmetric(3), "Q": Symmetric(3)}
    system = backslash(program, {"S": S, "T": T}, spaces=spaces)
    symmetric = (T + T.T) / 2
    np.testing.assert_allclose(system.multipliers({"loss": 1.0})["Q"], symmetric)
    np.testing.assert_allclose(system.adjoint({"loss": 1.0})["S"], S @ symmetric + symmetric @ S)
    unequal = ts.program("Q[i,k] += S[i,j] * T[j,k]")
    with pytest.raises(ArgumentError, match="the value of Q lies outside"):
        backslash(unequal, {"S": S, "T": T}, spaces=spaces)


def test_block_diagonal_values_go_in_and_out_as_blocks() -> None:
    program = ts.program("Y[i,k] += A[i,j] * M[j,k]\nloss += Y[i,k] ** 2")
    space = BlockDiagonal([2, (1, 2)])
    blocks, M = (R.standard_normal((2, 2)), R.standard_normal((1, 2))), R.standard_normal((4, 3))
    system = backslash(program, {"A": blocks, "M": M}, spaces={"A": space})
    found = system.adjoint({"loss": 1.0})["A"]
    whole = program.grad(of="loss")({"A": space.embed(blocks), "M": M})["A.grad"]
    assert [block.shape for block in found] == [(2, 2), (1, 2)]
    np.testing.assert_allclose(found[0], whole[:2, :2])
    np.testing.assert_allclose(found[1], whole[2:, 2:])
    moved = system.tangent({"A": blocks})["Y"]
    np.testing.assert_allclose(moved, space.embed(blocks) @ M)
    assert system.parameters["A"].dimension == 6
    with pytest.raises(ArgumentError, match="its blocks have the shapes"):
        system.tangent({"A": (np.ones((2, 2)),)})


def test_a_system_of_operators_without_a_program() -> None:
    """The algorithm asks of its entries only that they are operators: here between block-diagonal matrices."""
    space = BlockDiagonal([2, 1])
    twice = Scale(2.0, space)
    system = System({"x": space, "y": space}, {"p": space}, {("y", "x"): twice}, {("x", "p"): twice})
    blocks = (np.eye(2), np.ones((1, 1)))
    np.testing.assert_array_equal(system.tangent({"p": blocks})["y"][0], 4 * np.eye(2))
    np.testing.assert_array_equal(system.adjoint({"y": blocks, "x": blocks})["p"][1], [[6.0]])
    with pytest.raises(ArgumentError, match="not below the diagonal"):
        System({"x": space, "y": space}, {}, {("x", "y"): twice}, {})
    with pytest.raises(ArgumentError, match="maps"):
        System({"x": space}, {"p": Plain((3, 3))}, {}, {("x", "p"): twice})
    with pytest.raises(ArgumentError, match="no node and parameter"):
        System({"x": space}, {}, {}, {("x", "q"): twice})


def test_what_is_refused() -> None:
    program, values = layers()
    system = backslash(program, values)
    with pytest.raises(ArgumentError, match="did you mean `loss`"):
        system.adjoint({"los": 1.0})
    with pytest.raises(ArgumentError, match="nothing is no parameter"):
        system.tangent({})
    with pytest.raises(ShapeError, match=r"W1 has the shape \(2,\)"):
        system.tangent({"W1": np.ones(2)})
    with pytest.raises(ArgumentError, match="takes a program"):
        backslash("Y[i] = X[i]", {})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no tensor Q"):
        backslash(program, values, spaces={"Q": Symmetric(2)})
    with pytest.raises(ArgumentError, match="is missing"):
        backslash(program, {"W1": values["W1"]})
    with pytest.raises(DerivativeError, match="updated"):
        backslash(ts.program("W[i] = W[i] - g[i]"), {"W": np.ones(2), "g": np.ones(2)})
    with pytest.raises(DerivativeError, match="no tensor"):
        backslash(ts.program("k argmax= X[i]"), {"X": np.ones(2)})
    large = backslash(ts.program("Y[i,j] = X[i,j] ** 2"), {"X": np.ones((100, 100))})
    with pytest.raises(LimitError, match="written out"):
        large.matrices()


# -- pictures and work


def test_the_picture_as_text() -> None:
    program, values = layers()
    picture = str(backslash(program, values, nodes=["X1", "X2", "loss"])).splitlines()
    assert picture[0] == "dx = L dx + D dp"
    assert picture[2].split() == [
        "|", "dX1", "dX2", "dloss", "|", "dW1", "dX0", "dB1", "dW2", "dB2", "dG",
    ]  # fmt: skip
    assert picture[5].startswith("dX2   | [Z2 > 0]_H W2_L  .      .     | .")
    assert all(line == line.rstrip() for line in picture)


def test_the_picture_as_svg() -> None:
    program, values = layers()
    system = backslash(program, values)
    drawing = ElementTree.fromstring(system.to_svg())
    blocks = drawing.findall("{http://www.w3.org/2000/svg}g")
    assert len(blocks) == len(system.nodes) * (len(system.nodes) + len(system.parameters))
    titles = [block[0].text for block in blocks]
    assert titles.count("the identity") == 5
    assert {"W2_L", "<G,.>", "X0_R"} <= set(titles)


def test_work_of_a_network() -> None:
    program, values = layers()
    work = backslash(program, values).work(wrt=["X0"])
    assert work.backward == work.best  # one number comes out: from there, back
    assert work.forward > 5 * work.backward
    assert "(((J1 J2) J3) J4) J5" in str(work)
    everything = backslash(program, values).work()
    assert everything.best is None
    assert everything.forward > everything.backward
    with pytest.raises(ArgumentError, match="no node"):
        backslash(program, values).work(of="X0")
    with pytest.raises(ArgumentError, match="no parameter"):
        backslash(program, values).work(wrt=["X1"])


def test_the_best_order_of_a_chain_of_matrices() -> None:
    """The textbook case: 30x35, 35x15, 15x5, 5x10, 10x20, 20x25 takes 15,125 multiplications at best."""
    sizes = [30, 35, 15, 5, 10, 20, 25]
    chain = [Left(np.ones((rows, columns))) for rows, columns in pairwise(sizes)]
    work, order = best_order(chain)
    assert work == 2 * 15_125
    assert order == "(J1 (J2 J3)) ((J4 J5) J6)"


def test_the_best_order_lies_between_forward_and_backward() -> None:
    """Narrow layers inside: neither end is the best place to begin."""
    program = ts.program("a[i] += A[i,j] * x[j]\nb[k] += B[k,i] * a[i]\nc[l] += C[l,k] * b[k]\nd[m] += D[m,l] * c[l]")
    sizes = {"A": (2, 40), "x": (40,), "B": (30, 2), "C": (2, 30), "D": (50, 2)}
    system = backslash(program, {name: np.ones(shape) for name, shape in sizes.items()})
    work = system.work(of="d", wrt=["x"])
    assert work.order == "J1 ((J2 J3) J4)"
    assert work.best is not None
    assert work.best < min(work.forward, work.backward)


# -- path weights


class Word(str):
    """A symbol: products are written behind each other."""

    __slots__ = ()

    def __mul__(self, other: object) -> Word:  # type: ignore[override]
        return Word(f"{self}{other}")

    def __add__(self, other: object) -> Word:  # type: ignore[override]
        return Word(f"{self}+{other}")


def test_weights_of_several_paths_add_up() -> None:
    edges = {(0, 1): 2.0, (0, 2): 3.0, (1, 3): 5.0, (2, 3): 7.0, (1, 2): 11.0}
    found = path_weights(edges)
    assert found.forward == found.backward == {(0, 3): 2 * 5 + 3 * 7 + 2 * 11 * 7}
    W = np.zeros((4, 4))
    for (i, j), weight in edges.items():
        W[i, j] = weight
    inverse = np.linalg.inv(np.eye(4) - W)
    for (i, j), weight in found.matrix.items():
        assert weight == pytest.approx(inverse[i, j])


def test_paths_between_chosen_nodes_and_with_symbols() -> None:
    edges = {("u", "v"): Word("a"), ("v", "w"): Word("b"), ("u", "w"): Word("c")}
    found = path_weights(edges, sources=["u"], sinks=["w", "v"])
    assert found.forward == {("u", "w"): "c+ab", ("u", "v"): "a"}
    assert "u -> v: a" in str(found)


def test_what_a_graph_may_not_have() -> None:
    with pytest.raises(ArgumentError, match="circle"):
        path_weights({(1, 2): 1.0, (2, 1): 1.0})
    with pytest.raises(ArgumentError, match="no node of the graph"):
        path_weights({(1, 2): 1.0}, sources=[7])
    with pytest.raises(LimitError, match="nodes"):
        path_weights({(k, k + 1): 1.0 for k in range(3000)})


# -- generated programs


@seed(8)
@settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(case=programs)
def test_generated_programs(case: Case) -> None:
    program = ts.program(case.text)
    everything = ts.program(case.text, outputs=program.loops.written)
    values = outputs(everything, everything(case.arrays))
    if not all(np.isfinite(array).all() for array in values.values()):
        return
    system = backslash(program, case.arrays)
    random = np.random.default_rng(0)
    seeds = {y: random.standard_normal(values[y].shape) for y in program.outputs if y in system.nodes}
    if not seeds:
        return
    adjoint = program.adjoint(wrt=list(system.parameters), of=list(seeds))
    expected = outputs(adjoint, adjoint({**case.arrays, **{f"{y}.grad": w for y, w in seeds.items()}}))
    kept = system.keep(list(seeds))
    for found in (system.adjoint(seeds), kept.adjoint(seeds)):
        for name in system.parameters:
            np.testing.assert_allclose(found[name], expected[f"{name}.grad"], rtol=1e-9, atol=1e-9)
    directions = {x: random.standard_normal(case.arrays[x].shape) for x in system.parameters}
    tangent = program.tangent(wrt=list(directions))
    pushed = outputs(tangent, tangent({**case.arrays, **{f"{x}.dot": v for x, v in directions.items()}}))
    moved = kept.tangent(directions)
    for y in seeds:
        np.testing.assert_allclose(moved[y], pushed[f"{y}.dot"], rtol=1e-9, atol=1e-9)
    assert str(system)
    ElementTree.fromstring(system.to_svg())
