"""Functions of a user's own: forward and backward, and new functions of the language; wrong rules are refused."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.errors import ArgumentError, DtypeError, GradientMismatch, LimitError, ProgramError, ShapeError
from tensorswap.language.functions import DEFINED, KNOWN

R = np.random.default_rng(13)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Every test begins and ends with the language's own functions."""
    yield
    DEFINED.clear()


# -- forward and backward


class Multiply(ts.Function):
    """The document's own example."""

    example = (2.0, 3.0)

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_z: Any) -> Any:
        x, y = ctx.saved
        return y * grad_z, x * grad_z


class Square(ts.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved
        return 2 * x * grad


ts.register(Square, example=(np.array([[1.0, 2.0], [-0.5, 3.0]]),))


def test_the_documents_function() -> None:
    x, y, z = ts.tensor(-2.0), ts.tensor(5.0), ts.tensor(-4.0)
    f = Multiply.apply(x + y, z)
    f.backward()
    assert (f.value, x.grad, y.grad, z.grad) == (-12.0, -4.0, -4.0, 3.0)
    assert type(f.value) is float


def test_a_function_of_arrays_in_a_graph() -> None:
    x = ts.tensor(np.arange(3, dtype=np.float32))
    y = Square.apply(x)
    (y * x).sum().backward()
    np.testing.assert_allclose(x.grad, 3 * x.value**2)
    assert y.dtype == x.grad.dtype == np.float32


def test_a_custom_step_between_scalars_stays_a_scalar() -> None:
    x = ts.tensor(3.0)
    y = Square.apply(x) * 2 + x
    y.backward()
    assert (type(y).__name__, y.value, x.grad) == ("Scalar", 21.0, 13.0)


def test_constants_and_settings() -> None:
    class Scale(ts.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: Any, *, power: int = 1) -> Any:
            ctx.factor, ctx.power, ctx.x = factor, power, x
            return factor * x**power

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return ctx.factor * ctx.power * ctx.x ** (ctx.power - 1) * grad, np.sum(ctx.x**ctx.power * grad)

    ts.register(Scale, example=(np.array([1.0, 2.0]), 3.0), power=2)
    x, constant = ts.tensor([1.0, 2.0]), np.array([1.0, 2.0])
    Scale.apply(x, 2, power=3).backward([1, 1])
    np.testing.assert_array_equal(x.grad, [6, 24])
    factor = ts.tensor(2.0)
    Scale.apply(constant, factor).backward([1, 1])
    assert factor.grad == 3.0
    plain = Scale.apply(constant, 2)
    with pytest.raises(ArgumentError, match="constant"):
        plain.backward([1, 1])


def test_several_results() -> None:
    class Both(ts.Function):
        example = (np.array([0.3, 0.8]),)

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save(x)
            return np.sin(x), np.cos(x), np.argmax(x)

        @staticmethod
        def backward(ctx: Any, by_sine: Any, by_cosine: Any, _: Any) -> Any:
            (x,) = ctx.saved
            return by_sine * np.cos(x) - by_cosine * np.sin(x)

    x = ts.tensor([0.2, 0.4])
    sine, cosine, place = Both.apply(x)
    assert place.value == 1
    (sine * cosine).sum().backward()
    np.testing.assert_allclose(x.grad, np.cos(2 * x.value))
    x.zero_grad()
    Both.apply(x)[1].sum().backward()
    np.testing.assert_allclose(x.grad, -np.sin(x.value))


def test_what_backward_gives_stays_its_own() -> None:
    table = np.array([1.0, 2.0])

    class Weighted(ts.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return np.sum(table * x) + np.sum(table * y)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return (table, table) if grad == 1 else (grad * table, grad * table)

    ts.register(Weighted, example=(np.ones(2), np.ones(2)))
    x, y = ts.tensor([0.0, 0.0]), ts.tensor([0.0, 0.0])
    Weighted.apply(x, y).backward()
    x.grad += 5
    np.testing.assert_array_equal(y.grad, [1, 2])
    table[0] = 7
    np.testing.assert_array_equal(y.grad, [1, 2])


def test_an_error_on_the_way_back_reaches_the_user_and_spends_the_graph() -> None:
    class Fragile(ts.Function):
        example = (1.5,)

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if grad > 100:
                raise RuntimeError("too steep")
            return grad * 2

    x = ts.tensor(1.0)
    middle = x * 3
    y = Fragile.apply(middle) * 1000
    with pytest.raises(RuntimeError, match="too steep"):
        y.backward()
    with pytest.raises(ArgumentError, match="already"):
        (middle * 2).backward()
    (x * 2).backward()
    assert x.grad == 2.0


# -- a wrong backward


def test_a_wrong_backward_is_refused_when_it_is_defined() -> None:
    with pytest.raises(
        GradientMismatch,
        match=r"Wrong.backward is wrong by `x` at element \[1\], which is -2 there: it gives -[\d.]+, ",
    ) as caught:

        class Wrong(ts.Function):
            example = (np.array([0.0, -2.0, 1.0]),)

            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                (x,) = ctx.saved
                return x * grad

    assert "differences of forward give" in str(caught.value)
    assert isinstance(caught.value, ts.SwapError)


def test_a_small_error_in_one_of_many_entries_is_found() -> None:
    class Almost(ts.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save(x, y)
            return x @ y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved
            by_y = x.T @ grad
            by_y[2, 1] *= 1.001
            return grad @ y.T, by_y

    with pytest.raises(GradientMismatch, match=r"by `y` at element \[2, 1\]"):
        ts.register(Almost, example=(R.standard_normal((4, 3)), R.standard_normal((3, 2))))
    with pytest.raises(ArgumentError, match="has not been checked"):
        Almost.apply(ts.tensor(np.ones((4, 3))), np.ones((3, 2)))


def test_a_tiny_function_is_checked_by_its_own_scale() -> None:
    class Tiny(ts.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 1e-9 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2e-9 * grad

    with pytest.raises(GradientMismatch):
        ts.register(Tiny, example=(1.0,))


def _function(forward: Any, backward: Any) -> Any:
    return type("Bad", (ts.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


@pytest.mark.parametrize(
    ("forward", "backward", "example", "error", "message"),
    [
        (lambda c, x: x, lambda c, g: (g, g), (1.0,), ArgumentError, "2 gradients for 1 arguments"),
        (lambda c, x: x.sum(), lambda c, g: g, (np.ones(3),), ShapeError, r"shape \(\) for `x`, which has \(3,\)"),
        (lambda c, x: None, lambda c, g: g, (1.0,), ArgumentError, "gives nothing"),
        (lambda c, x: "text", lambda c, g: g, (1.0,), DtypeError, "Bad.forward"),
        (lambda c, x: x * 2, lambda c, g: None, (1.0,), GradientMismatch, "gives 0, differences of forward give"),
        (lambda c, x: x * 2, lambda c, g: g * np.nan, (1.0,), GradientMismatch, "nan"),
        (lambda c, x: x * 2, lambda c, g: g * np.inf, (np.ones(2),), GradientMismatch, "inf"),
        (lambda c, x: x, lambda c, g: g, (1,), ArgumentError, "no floating-point argument"),
        (lambda c, x: x, lambda c, g: g, 1.0, ArgumentError, "is a tuple"),
        (lambda c, x: np.multiply(x, 2, out=x), lambda c, g: g, (np.ones(2),), ArgumentError, "changes its `x`"),
        (None, lambda c, g: g, (1.0,), ArgumentError, "has no forward"),
    ],
)  # fmt: skip
def test_other_faults_are_named(forward: Any, backward: Any, example: Any, error: Any, message: str) -> None:
    bad = _function(forward, backward)
    with pytest.raises(error, match=message):
        ts.register(bad, example=example)


def test_unchecked_functions_and_other_things_are_refused() -> None:
    class Unchecked(ts.Function):
        forward = staticmethod(lambda ctx, x: x)
        backward = staticmethod(lambda ctx, g: g)

    with pytest.raises(ArgumentError, match=r"ts.register\(Unchecked, example"):
        Unchecked.apply(1.0)
    with pytest.raises(ArgumentError, match="subclass"):
        ts.register(int, example=(1.0,))

    class Changed(Square):
        backward = staticmethod(lambda ctx, g: g)

    with pytest.raises(ArgumentError, match="has not been checked"):
        Changed.apply(1.0)


# -- new functions of the language

SWISH = ("x * sigmoid(x)", "sigmoid(x) + x * sigmoid(x) * (1 - sigmoid(x))")


def test_a_defined_function_in_statements() -> None:
    ts.define("swish", *SWISH)
    program = ts.program("Y[i] = swish(2 * X[i]) if i > 0")
    assert str(program) == "Y[i] = swish(2 * X[i]) if i > 0"
    assert ts.program(str(program)) == program
    x = R.standard_normal(4)
    expected = 2 * x / (1 + np.exp(-2 * x))
    np.testing.assert_allclose(program(X=x), np.where(np.arange(4) > 0, expected, 0))
    ts.gradcheck(program, X=x)


def test_the_given_derivative_is_used() -> None:
    ts.define("swish", "x * sigmoid(x)", derivative="y + sigmoid(x) * (1 - y)")
    adjoint = ts.program("Y[i] = swish(X[i])").adjoint(wrt=["X"])
    assert "Y.grad[i] * (Y[i] + sigmoid(X[i]) * (1 - Y[i]))" in str(adjoint)


def test_derivatives_to_any_order() -> None:
    ts.define("swish", *SWISH)
    program = ts.program("y = swish(x)")
    plain = ts.program("y = x * sigmoid(x)")
    second = [p.adjoint(wrt=["x"]).adjoint(wrt=["x"], of=["x.grad"]) for p in (program, plain)]
    third = [p.adjoint(wrt=["x"], of=["x.grad2"]) for p in second]
    seeds = {"y.grad": 1.0, "x.grad.grad2": 1.0}
    for value in (-1.3, 0.2, 2.1):
        assert second[0]({"x": value, **seeds}) == pytest.approx(float(second[1]({"x": value, **seeds})), rel=1e-12)
        more = {"x": value, **seeds, "x.grad2.grad3": 1.0}
        assert third[0](more) == pytest.approx(float(third[1](more)), rel=1e-10)
    ts.gradcheck(second[0], {"x": 0.4, **seeds})
    product = ts.program("loss += swish(W[i] * x[i]) ** 2").hessian_vector(wrt=["W"])
    same = ts.program("loss += (W[i] * x[i] * sigmoid(W[i] * x[i])) ** 2").hessian_vector(wrt=["W"])
    arrays = {"W": R.standard_normal(3), "x": R.standard_normal(3), "W.dot": R.standard_normal(3)}
    np.testing.assert_allclose(product(arrays), same(arrays))


def test_several_arguments_in_order_or_by_name() -> None:
    ts.define("blend(a, b)", "a * b + sin(b)", derivative=["b", "a + cos(b)"])
    ts.define(
        "lean(u, v)", "u / (1 + v * v)", derivative={"v": "-2 * u * v / (1 + v * v) ** 2", "u": "1 / (1 + v * v)"}
    )
    ts.define("tilt", "p - 2 * q", derivative={"p": "1", "q": "-2"})
    program = ts.program("Y[i,j] = blend(A[i], lean(B[j], A[i])) + tilt(B[j], A[i])")
    a, b = R.standard_normal(3), R.standard_normal(2)
    inner = b[None, :] / (1 + a[:, None] ** 2)
    np.testing.assert_allclose(program(A=a, B=b), a[:, None] * inner + np.sin(inner) + b[None, :] - 2 * a[:, None])
    ts.gradcheck(program, A=a, B=b)
    assert ts.gradcheck(program.adjoint(wrt=["A"]), {"A": a, "B": b, "Y.grad": np.ones((3, 2))})


def test_branches_guards_blocks_and_batches() -> None:
    ts.define("leak", "x if x > 0 else 0.1 * x", derivative="1 if x > 0 else 0.1")
    program = ts.program("for t:\n    H[t] = leak(X[t] + 0.5 * (H[t-1] if t > 0 else 0))")
    ts.gradcheck(program, X=R.standard_normal(5))
    pooled = ts.program("m[i] max= leak(X[i,j]) if leak(X[i,j]) < 2\nn += leak(X[i,j]) ** 2").batch("b", over=["X"])
    ts.gradcheck(pooled, X=R.standard_normal((2, 2, 3)))


def test_a_function_made_of_defined_functions() -> None:
    ts.define("swish", *SWISH)
    ts.define("shifted", "swish(x - 1) + 1", derivative="sigmoid(x-1) + swish(x-1) * (1 - sigmoid(x-1))")
    program = ts.program("Y[i] = shifted(X[i])")
    x = R.standard_normal(3)
    np.testing.assert_allclose(program(X=x), (x - 1) / (1 + np.exp(1 - x)) + 1)
    ts.gradcheck(program, X=x)


def test_a_derivative_may_call_its_own_function() -> None:
    ts.define("grow", "exp(0.5 * x)", derivative="0.5 * grow(x)")
    program = ts.program("y = grow(x)")
    third = program.tangent(wrt=["x"]).tangent(wrt=["x"]).tangent(wrt=["x"])
    assert any("grow(x)" in line for line in str(third).splitlines())
    ts.gradcheck(program, x=0.3)


def test_types_are_those_of_the_value() -> None:
    ts.define("cube", "x * x * x", derivative="3 * x * x")
    program = ts.program("Y[i] = cube(X[i])")
    assert program(X=np.ones(2, np.float32)).dtype == np.float32
    assert program(X=np.array([2, 3])).dtype == np.int64
    np.testing.assert_array_equal(program(X=np.array([2, 3])), [8, 27])


def test_defined_functions_on_tensors() -> None:
    ts.define("swish", *SWISH)
    x = ts.tensor(R.standard_normal(3))
    ts.apply("Y[i] = swish(X[i])", X=x).sum().backward()
    s = 1 / (1 + np.exp(-x.value))
    np.testing.assert_allclose(x.grad, s + x.value * s * (1 - s))


@pytest.mark.compiled
def test_a_defined_function_is_compiled_and_exported(tmp_path: Any) -> None:
    ts.define("swish", *SWISH)
    program = ts.program("Z[n,o] += X[n,i] * W[i,o]\nY[n,o] = swish(Z[n,o])")
    arrays = {"X": R.standard_normal((5, 3)), "W": R.standard_normal((3, 4))}
    np.testing.assert_allclose(program(arrays), program.run_reference(arrays), rtol=1e-12)
    adjoint = program.adjoint(wrt=["X", "W"])
    seed = {**arrays, "Y.grad": R.standard_normal((5, 4))}
    expected = adjoint.run_reference(seed)
    for name, value in adjoint(seed).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-11)
    long = ts.program("y[i] += swish(a[i]) * A[i,j] * B[j,k] * C[k,l] * d[l]").adjoint(wrt=["a", "A"])
    sizes = {"a": (3,), "A": (3, 4), "B": (4, 5), "C": (5, 6), "d": (6,), "y.grad": (3,)}
    values = {name: R.standard_normal(shape) for name, shape in sizes.items()}
    expected = long.run_reference(values)
    for name, value in long(values).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-10)
    program.export(tmp_path / "model.py")
    spec = importlib.util.spec_from_file_location("exported_swish", tmp_path / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    np.testing.assert_array_equal(module.forward(arrays), program(arrays))
    np.testing.assert_array_equal(module.adjoint(seed)["W.grad"], adjoint(seed)["W.grad"])


# -- a wrong definition


@pytest.mark.parametrize("derivative", ["sigmoid(x)", "1.001 * (" + SWISH[1] + ")", "0", "x", "log(-x * x)", "inf"])
def test_a_wrong_derivative_is_refused_with_the_point(derivative: str) -> None:
    with pytest.raises(GradientMismatch, match=r"`swish` by x is \S+ at x = \S+, where differences of its value give"):
        ts.define("swish", "x * sigmoid(x)", derivative)
    assert "swish" not in KNOWN
    assert "swish" not in DEFINED
    with pytest.raises(ts.SwapError, match="swish"):
        ts.program("Y[i] = 2 * swish(X[i])")


def test_the_wrong_argument_is_named() -> None:
    with pytest.raises(GradientMismatch, match=r"`blend` by b is .* at a = .*, b = "):
        ts.define("blend(a, b)", "a * b + sin(b)", derivative=["b", "a - cos(b)"])


def test_a_function_that_is_finite_in_parts() -> None:
    ts.define("entropy", "-x * log(x)", derivative="-log(x) - 1")
    ts.define("edge", "sqrt(x - 10)", derivative="0.5 / y", at=[10.5, 12.0])
    with pytest.raises(ArgumentError, match="no point that was tried"):
        ts.define("far", "sqrt(x - 10)", derivative="0.5 / y")
    ts.define("fast", "sin(60 * x)", derivative="60 * cos(60 * x)")
    ts.define("constant", "3 + 0 * x", derivative="0")
    with pytest.raises(GradientMismatch):
        ts.define("quick", "sin(60 * x)", derivative="60.06 * cos(60 * x)")
    with pytest.raises(GradientMismatch):
        ts.define("still", "3 + 0 * x", derivative="1e-6")
    jump = ["1", "1 if b < 3 else 0"]
    with pytest.raises(ArgumentError, match="by b"):
        ts.define("half(a, b)", "a + (b if b < 3 else 9)", jump, at=[(1, 3), (2, 3)])
    with pytest.raises(GradientMismatch, match=r"at x = 10\.5"):
        ts.define("far", "sqrt(x - 10)", derivative="0.6 / y", at=[10.5, 12.0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("exp", "x", "1"), ArgumentError, "`exp` is a function of the language"),
        (("size", "x", "1"), ArgumentError, "`size` is a word"),
        (("softmax", "x", "1"), ArgumentError, "standard library"),
        (("two words", "x", "1"), ArgumentError, "is no name"),
        ((3, "x", "1"), ArgumentError, "is no name"),
        (("f" * 300, "x", "1"), LimitError, "at most 200"),
        (("f(x, x)", "x", "1"), ArgumentError, "different names"),
        (("f(x,)", "x", "1"), ArgumentError, "different names"),
        (("f(exp)", "1", "1"), ArgumentError, "cannot name an argument"),
        (("f", "a + b", ["1", "1"]), ArgumentError, r'define\("f\(a, b\)"'),
        (("f(a, b)", "a + b", "1"), ArgumentError, "2 arguments, but 1 derivatives"),
        (("f(a, b)", "a + b", {"a": "1"}), ArgumentError, "derivatives are by a"),
        (("f(x)", "x * k", "k"), ProgramError, "names k, which is no argument"),
        (("f", "X[i]", "1"), ProgramError, r"names X\[...\]"),
        (("f", "x * size(i)", "1"), ProgramError, "numbers alone"),
        (("f", "x * uniform(3)", "1"), ProgramError, "numbers alone"),
        (("f", "x + f(x)", "1"), ts.SwapError, "not a function"),
        (("f", "x +", "1"), ts.SwapError, "column"),
        (("f", 3, "1"), ArgumentError, "is a text"),
        (("f", "x", 3), ArgumentError, "is a text"),
        (("f", "x", "1", ["a"]), ArgumentError, "no numbers"),
        (("f", "x", "1", [[1, 2]]), ArgumentError, "1 coordinates"),
    ],
)  # fmt: skip
def test_faults_of_a_definition_are_named(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        ts.define(*arguments)
    assert not DEFINED
    assert "f" not in KNOWN


def test_a_name_keeps_its_meaning() -> None:
    ts.define("swish", *SWISH)
    ts.define("swish", *SWISH)
    with pytest.raises(ArgumentError, match="defined already"):
        ts.define("swish", "x * x", "2 * x")
    with pytest.raises(ArgumentError, match="defined already"):
        ts.define("swish(a, b)", "a * b", ["b", "a"])
    assert ts.program("y = swish(x)")(x=1.0) == pytest.approx(1 / (1 + np.exp(-1)))
    with pytest.raises(ts.SwapError, match="takes 1 argument"):
        ts.program("y = swish(x, z)")
    with pytest.raises(ts.SwapError, match="is a function"):
        ts.program("y = swish * 2")


def test_calls_within_calls_end_somewhere() -> None:
    ts.define("swish", *SWISH)
    text = "X[i]"
    for _ in range(4):
        text = f"swish({text})"
    ts.gradcheck(ts.program(f"Y[i] = {text}"), X=np.array([0.3, -0.8]))
    for _ in range(20):
        text = f"swish({text})"
    with pytest.raises(LimitError, match="a statement of its own"):
        ts.program(f"Y[i] = {text}").run_reference(X=np.ones(2))


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    a=st.floats(-2, 2).map(lambda v: round(v, 2)), b=st.floats(0.1, 2).map(lambda v: round(v, 2)),
    inner=st.sampled_from(["x", "sin(x)", "tanh(2 * x)", "x ** 2"]), error=st.sampled_from([0.0, 1e-3, -0.1, 1.0]),
)  # fmt: skip
def test_definitions_are_taken_exactly_where_they_are_right(a: float, b: float, inner: str, error: float) -> None:
    slopes = {"x": "1", "sin(x)": "cos(x)", "tanh(2 * x)": "2 - 2 * tanh(2 * x) ** 2", "x ** 2": "2 * x"}
    value = f"{a} * x + {b} * ({inner})"
    derivative = f"{a} + {b} * ({slopes[inner]}) + {error}"
    try:
        ts.define("made", value, derivative)
        taken = True
    except GradientMismatch:
        taken = False
    finally:
        if "made" in DEFINED:
            del DEFINED["made"]
    assert taken == (error == 0)
