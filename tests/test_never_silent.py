"""What must not pass in silence outside of kernels: NaN in the library, arrays that change, types, schedules, sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError, BoundsError, DtypeError, GradientMismatch, ShapeError, SwapError
from tensorswap.explain.latex import expression
from tensorswap.run.machine_code import optimised
from tensorswap.training.schedule import schedule

from .library.table import options_of
from .test_library import CASES, ROWS, answers, program, results

# -- the library

PLACES = "a place or a class, not a value: where it is none, there is nothing"
NO_NUMBERS = {
    ("histc", "input"): "a value that is in no bin is not counted",
    **{
        (f"{loss}_embedding_loss{way}", "target"): PLACES
        for loss in ("hinge", "cosine")
        for way in ("", "_sum", "_none")
    },
    **{(f"fractional_max_pool{d}d{way}", "_random_samples"): PLACES for d in (2, 3) for way in ("", "_with_indices")},
    ("grid_sample_nearest", "grid"): PLACES,
    ("grid_sample3d_nearest", "grid"): PLACES,
}


@pytest.mark.parametrize("family", dict.fromkeys(family for family, _, _ in CASES))
def test_nan_in_any_input_of_an_op_is_seen_in_some_output(family: str) -> None:
    """In all elements of one input; no guard may take NaN for the case that has a value of its own."""
    for op in dict.fromkeys(op for found, op, _ in CASES if found == family):
        answer, options = answers(family)[op, 0], options_of(ROWS[op].cases[0])
        for name, array in answer.input.items():
            if array.dtype.kind != "f" or (op, name) in NO_NUMBERS:
                continue
            with np.errstate(all="ignore"):
                made = results(program(op), {**answer.input, **options, name: np.full_like(array, np.nan)}, False)
            floats = [value for value in made.values() if value.dtype.kind == "f" and value.size]
            assert not floats or any(np.isnan(value).any() for value in floats), f"{op} loses the NaN of {name}"


@pytest.mark.parametrize("op", ["embedding_bag_sum", "embedding_bag", "embedding_bag_max"])
@pytest.mark.parametrize("first", [2, -7, 10**6])
def test_the_first_bag_begins_at_the_first_entry(op: str, first: int) -> None:
    bags = {"input": np.array([0, 1, 2, 0]), "weight": np.ones((3, 2))}
    assert ts.load(op)(offsets=np.array([0, 3]), **bags).shape == (2, 2)
    with pytest.raises(BoundsError, match="beginning"):
        ts.load(op)(offsets=np.array([first, 3]), **bags)


def test_differences_are_taken_no_negative_number_of_times() -> None:
    with pytest.raises(SwapError, match="order"):
        ts.load("diff")(input=np.ones(5), n=-1)


@pytest.mark.parametrize("norm", [2.0, 4.0])
def test_the_norm_of_a_window_of_zeros_has_a_gradient(norm: float) -> None:
    op = ts.load("lp_pool1d").adjoint(wrt=["input"])
    x = np.array([[0.0, 0.0, 3.0, 4.0]])
    found = op({"input": x, "norm_type": norm, "kernel_size": 2, "out.grad": np.ones((1, 2))})
    np.testing.assert_allclose(found[0, :2], 0)
    assert np.isfinite(found).all()


@pytest.mark.compiled
@pytest.mark.parametrize("compiled", [False, True])
def test_a_uniform_number_is_below_1_in_single_precision(compiled: bool) -> None:
    text = ts.program("U[i] = uniform(1, i+20323447) * X[i]")  # 53 bits of this one round to 1
    ones = np.ones(3, np.float32)
    found = text(X=ones) if compiled else text.run_reference(X=ones)
    assert found.max() < 1
    np.testing.assert_array_equal(text(X=np.ones(3)), text.run_reference(X=np.ones(3)))


# -- eager values


def _changed_factor(x: Any, other: Any) -> Any:
    return (x * other).sum()


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "a product": _changed_factor,
    "a matrix product": lambda x, c: x @ c,
    "where": lambda x, c: (np.where(c > 3, x, 0 * x)).sum(),
    "a program": lambda x, c: ts.apply("y += x[i] * c[i]", x=x, c=c),
    "einsum": lambda x, c: ts.einsum("i,i->", x, c),
    "places": lambda x, c: x[(c - 3).astype(int)].sum(),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_array_may_change_before_the_gradient_is_taken(way: str) -> None:
    c = np.array([3.0, 4.0])
    expected, found = ts.tensor([1.0, 2.0]), ts.tensor([1.0, 2.0])
    WAYS[way](expected, c.copy()).backward()
    result = WAYS[way](found, c)
    c[:] = 0
    result.backward()
    np.testing.assert_array_equal(found.grad, expected.grad)


def test_places_given_as_an_array_may_change() -> None:
    x, places = ts.tensor([1.0, 2.0, 3.0]), np.array([0, 1])
    result = x[places].sum()
    places[:] = 2
    result.backward()
    np.testing.assert_array_equal(x.grad, [1, 1, 0])


@pytest.mark.parametrize("other", [np.array([1j]), np.complex64(1j), np.array(["a"]), np.array([None, 2], object)])
def test_operands_without_a_gradient_are_refused(other: Any) -> None:
    for x in (ts.tensor([2.0]), ts.tensor(2.0)):
        with pytest.raises(DtypeError):
            x * other


@pytest.mark.parametrize("x", [2.0, [2.0, 3.0]])
def test_whole_numbers_beyond_all_floats_are_refused(x: Any) -> None:
    large = 10**400
    for way in (
        lambda t: t + large, lambda t: large + t, lambda t: t - large, lambda t: large - t, lambda t: t * large,
        lambda t: large * t, lambda t: t / large, lambda t: large / t, lambda t: t**large,
    ):  # fmt: skip
        with pytest.raises(DtypeError, match="too large"):
            way(ts.tensor(x))


def test_words_in_the_place_of_numbers_are_refused() -> None:
    x = ts.tensor([[1.0, 2.0]])
    for way in (lambda: x[0.5:], lambda: x.reshape("a"), lambda: x.transpose("a")):
        with pytest.raises(SwapError):
            way()


@pytest.mark.parametrize("name", ["max", "min", "prod"])
def test_a_reduction_of_no_rows_has_a_gradient_of_none(name: str) -> None:
    x = ts.tensor(np.zeros((0, 3)))
    getattr(x, name)(axis=1).backward(np.zeros(0))
    assert x.grad.shape == (0, 3)


def test_a_result_that_nobody_uses_adds_nothing() -> None:
    class Both(ts.Function):
        example = (np.array([0.5, 2.0]),)

        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save(x)
            with np.errstate(over="ignore"):
                return x**2, np.exp(x)

        @staticmethod
        def backward(context: Any, first: Any, second: Any) -> Any:
            (x,) = context.saved
            return first * 2 * x + second * np.exp(np.minimum(x, 700))

    x = ts.tensor([1000.0, 1.0])
    Both.apply(x)[0].sum().backward()
    np.testing.assert_array_equal(x.grad, [2000, 2])


# -- einsum, gradcheck, training, formulas


@pytest.mark.parametrize(
    ("text", "kind", "out"),
    [("ij->i", np.int8, np.int32), ("ij->i", bool, np.int64), ("ij,ij->i", np.int8, np.int32),
     ("ij,ij->i", np.uint8, np.float64)],
)  # fmt: skip
@pytest.mark.parametrize("optimize", [False, True])
def test_a_wide_array_for_the_result_widens_the_sum(text: str, kind: Any, out: Any, optimize: bool) -> None:
    a = np.full((2, 3), 100).astype(kind)
    operands = [a] * (text.count(",") + 1)
    found, expected = np.zeros(2, out), np.zeros(2, out)
    np.einsum(text, *operands, out=expected, casting="unsafe", optimize=optimize)
    ts.einsum(text, *operands, out=found, casting="unsafe", optimize=optimize)
    np.testing.assert_array_equal(found, expected)


WRONG = "Y[i] = floor(X[i]) + stop(X[i]) * X[i]\nZ[i] = log(V[i])"


def test_gradcheck_does_not_pass_what_it_cannot_see() -> None:
    check = ts.program(WRONG)
    x = np.array([0.5, 1.5])
    with pytest.raises(GradientMismatch):
        ts.gradcheck(check, X=x, V=np.ones(2))
    with pytest.raises(ArgumentError, match=r"Z\[1\] is not finite"):
        ts.gradcheck(check, X=x, V=np.array([1.0, -1.0]))
    smooth = ts.program("Y[i] = tanh(X[i])")
    assert ts.gradcheck(smooth, X=x).difference_error > 0
    for wrong in ({"step": 0}, {"step": "a"}, {"entries": 0}, {"entries": "x"}, {"random_seed": -1}, {"tolerance": -1}):
        with pytest.raises(ArgumentError):
            ts.gradcheck(smooth, X=x, **wrong)


def _parts() -> Iterator[dict[str, Any]]:
    for k in range(4):
        yield {"X": np.full((8, 2), 1.0 + k), "t": np.ones(8)}


MODEL = "p[b] += X[b,d] * W[d]\nloss += (p[b] - t[b]) ** 2 / size(b)"


@pytest.mark.parametrize("name", ["cosine", "warmup", "step", {"name": "cosine", "warmup": 3}])
def test_a_schedule_needs_to_know_how_many_steps_there_are(name: Any) -> None:
    """Of data in parts nobody knows: a schedule over the parts at hand would go up and down."""
    settings: dict[str, Any] = {"loss": "loss", "batch": "b", "batch_size": 4, "lr": 1e-3}
    start = {"W": np.zeros(2)}
    with pytest.raises(ArgumentError, match="how many"):
        ts.fit(ts.program(MODEL), start, _parts(), schedule=name, epochs=1, **settings)
    options = {"name": name} if isinstance(name, str) else name
    told = ts.fit(ts.program(MODEL), start, _parts(), schedule={**options, "steps": 8}, epochs=1, **settings)
    whole = {key: np.concatenate([part[key] for part in _parts()]) for key in ("X", "t")}
    same = ts.fit(ts.program(MODEL), start, whole, schedule=name, epochs=1, shuffle=False, **settings)
    assert told.step == same.step == 8
    steps = np.arange(8.0)
    np.testing.assert_array_equal(schedule({**options, "steps": 8})(steps, None), schedule(name)(steps, 8))


def test_a_size_that_contradicts_the_data_is_refused() -> None:
    data = {"X": np.ones((6, 4)), "t": np.ones(6)}
    with pytest.raises(ShapeError, match="d is 9"):
        ts.fit(ts.program(MODEL), {"W": "zeros"}, data, loss="loss", batch="b", sizes={"d": 9}, epochs=1)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("a * -b", r"a \, \left(-b\right)"), ("(a % b) * c", r"\left(a \bmod b\right) \, c"),
     ("a * b % c", r"\left(a \, b\right) \bmod c"), ("(a / b) ** 2", r"\left(\frac{a}{b}\right)^{2}"),
     ("-a * b", r"-a \, b"), ("a * (b % c)", r"a \, \left(b \bmod c\right)"),
     ("((a % b) * c) % d", r"\left(\left(a \bmod b\right) \, c\right) \bmod d"),
     ("-a % b", r"\left(-a\right) \bmod b"), ("a * b * c", r"a \, b \, c")],
)  # fmt: skip
def test_a_formula_reads_as_it_is_computed(text: str, wanted: str) -> None:
    (statement,) = ts.program(f"Y = {text}").loops.statements
    assert expression(statement.value) == wanted


def test_a_size_and_a_magnitude_look_different() -> None:
    (statement,) = ts.program("Y[i] = X[i] * abs(i) / size(i)").loops.statements
    assert r"\operatorname{size}(i)" in expression(statement.value)
    assert r"\left|i\right|" in expression(statement.value)


@pytest.mark.compiled
@pytest.mark.parametrize("count", [1, 3, 65, 500])
@pytest.mark.parametrize("text", ["v[n] -= x[n]", "v[n] -= x[n] * u[n]", "v[n] -= x[n] * u[m]", "v[n] -= tanh(x[n])"])
def test_a_difference_from_nothing_is_no_negative_zero(text: str, count: int) -> None:
    """0 - 0 is 0: what lies left of the origin has the angle pi, not -pi."""
    program = ts.program(f"{text}\nY[n] = atan2(v[n], w[n])")
    given = {"x": np.zeros(count), "w": -np.ones(count), "u": np.ones(count)}
    given = {name: value for name, value in given.items() if name in program.inputs}
    np.testing.assert_array_equal(program(given), np.full(count, np.pi))


@pytest.mark.compiled
@pytest.mark.parametrize("points", [2, 9, 300])
def test_a_divisor_that_is_taken_out_of_a_sum_and_stands_in_it_as_well(points: int) -> None:
    """A variable of the sum's loop was read behind it, and LLVM ended the process."""
    root = "sqrt((h[t-1,n] if t > 0 else 0.3) ** 2 + 1)"
    text = f"size(t) = 2\nfor t:\n    Y[t,n] += X[t,n] * Z[n,a] / {root} / ({root} * {root} + Z[n,a] ** 2)"
    numbers = np.random.default_rng(5)
    program = ts.program(text)
    shapes = {"X": (2, points), "h": (2, points), "Z": (points, 3)}
    given = {name: numbers.standard_normal(shape) for name, shape in shapes.items()}
    np.testing.assert_allclose(program(given), program.run_reference(given), rtol=1e-13)


@pytest.mark.compiled
def test_a_module_that_makes_no_sense_is_refused_before_llvm_ends_the_process() -> None:
    text = (
        "define double @f(i1 %c) {\nentry:\n  br i1 %c, label %a, label %b\na:\n  %x = fadd double 1.0, 2.0\n"
        "  br label %b\nb:\n  ret double %x\n}"
    )
    with pytest.raises(ts.SwapError, match=r"a kernel makes no sense: .*does not dominate"), optimised(text):
        pass
