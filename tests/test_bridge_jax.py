"""ts.jax against JAX itself: every transformation, in eager code and compiled, and what users do wrong."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import tensorswap as ts
from tensorswap import errors
from tensorswap.bridges.jax_arrays import foreign_call, lowering
from tensorswap.bridges.jax_arrays.primitive import Call

from .generate import Case, programs

jax.config.update("jax_enable_x64", True)

RANDOM = np.random.default_rng(0)
X, W = jnp.asarray(RANDOM.normal(size=(3, 4))), jnp.asarray(RANDOM.normal(size=(2, 4)))
XS = jnp.stack([X, 2 * X])
LINEAR = "Y[b,o] += tanh(X[b,i]) * W[o,i]"
ways = pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])

Function = Callable[..., Any]


def linear(x: Any, w: Any) -> Any:
    return ts.jax(LINEAR)(X=x, W=w)


def plain(x: Any, w: Any) -> Any:
    return jnp.tanh(x) @ w.T


def loss(f: Function) -> Function:
    return lambda x: jnp.sin(f(x, W)).sum()


TRANSFORMATIONS: dict[str, Callable[[Function], Any]] = {
    "call": lambda f: f(X, W),
    "grad": lambda f: jax.grad(loss(f))(X),
    "jvp": lambda f: jax.jvp(lambda x: f(x, W), (X,), (2 * X,)),
    "jvp of both": lambda f: jax.jvp(f, (X, W), (2 * X, W)),
    "vmap": lambda f: jax.vmap(f, (0, None))(XS, W),
    "vmap over another axis": lambda f: jax.vmap(f, (None, 1), 1)(X, jnp.stack([W, -W], 1)),
    "vmap of vmap": lambda f: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(XS, jnp.stack([W, -W])),
    "vmap of grad": lambda f: jax.vmap(jax.grad(loss(f)))(XS),
    "grad of vmap": lambda f: jax.grad(lambda xs: jnp.sin(jax.vmap(f, (0, None))(xs, W)).sum())(XS),
    "grad of grad": lambda f: jax.grad(lambda x: jnp.sin(jax.grad(loss(f))(x)).sum())(X),
    "grad of jvp": lambda f: jax.grad(lambda x: jax.jvp(lambda y: f(y, W), (x,), (x,))[1].sum())(X),
    "jacfwd": lambda f: jax.jacfwd(lambda x: f(x, W))(X),
    "jacrev": lambda f: jax.jacrev(lambda x: f(x, W))(X),
    "hessian": lambda f: jax.hessian(loss(f))(X),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(loss(f)))(X),
    "third order": lambda f: jax.jacfwd(jax.jacrev(jax.grad(lambda x: loss(f)(x[None]))))(X[0]),
    "linear_transpose": lambda f: jax.linear_transpose(lambda w: f(X, w), W)(plain(X, W)),
    "transpose of a batch": lambda f: jax.linear_transpose(
        jax.vmap(jax.linearize(lambda x: f(x, W), X)[1]), XS
    )(jax.vmap(plain, (0, None))(XS, W)),
    "scan": lambda f: jax.lax.scan(lambda c, x: (c + f(x, W).sum(), f(x, W)), 0.0, XS),
    "cond": lambda f: jax.lax.cond(X[0, 0] > 0, lambda: f(X, W), lambda: f(-X, W)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(loss(f)))(X),
}  # fmt: skip


def check_equal(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


EAGER = ("call", "grad", "jvp", "vmap", "vmap of grad", "grad of vmap", "grad of grad")


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations_are_those_of_jax(name: str) -> None:
    expected = jax.jit(lambda: TRANSFORMATIONS[name](plain))()
    check_equal(jax.jit(lambda: TRANSFORMATIONS[name](linear))(), expected)
    if name in EAGER:
        check_equal(TRANSFORMATIONS[name](linear), expected)


@pytest.mark.compiled
@ways
def test_compiled_kernels_give_the_same(way: Callable[[Function], Function]) -> None:
    check_equal(way(jax.grad(loss(linear)))(X), jax.grad(loss(plain))(X))


def test_a_transpose_of_what_is_not_linear_is_refused() -> None:
    with pytest.raises(ts.SwapError, match="not linear in X"):
        jax.linear_transpose(lambda x: linear(x, W), X)(plain(X, W))


@settings(max_examples=6, deadline=None, database=None)
@given(programs)
def test_generated_programs(case: Case) -> None:
    """Gradients, tangents and batches through JAX are those of the program itself."""
    program = ts.program(case.text)
    function = ts.jax(program)
    fixed = {name: array for name, array in case.arrays.items() if name not in case.wrt}
    point = {name: jnp.asarray(case.arrays[name]) for name in case.wrt}

    def values(at: dict[str, Any]) -> dict[str, Any]:
        made = function({**fixed, **at})
        named = made if isinstance(made, dict) else {program.outputs[0]: made}
        return {name: array for name, array in named.items() if array.dtype.kind == "f"}

    expected = program.run_reference(case.arrays)
    named = expected if isinstance(expected, dict) else {program.outputs[0]: expected}
    results, back = jax.vjp(jax.jit(values), point)
    for name, array in results.items():
        np.testing.assert_array_equal(array, named[name])
    if not results or not point:
        return
    seeds = {name: np.cos(np.arange(array.size)).reshape(array.shape) for name, array in results.items()}
    (found,) = back({name: jnp.asarray(seed) for name, seed in seeds.items()})
    adjoint = program.adjoint(wrt=case.wrt, of=list(seeds))
    own = adjoint.run_reference({**case.arrays, **{f"{name}.grad": seed for name, seed in seeds.items()}})
    gradients = own if isinstance(own, dict) else {adjoint.outputs[0]: own}
    for name in case.wrt:
        np.testing.assert_allclose(found[name], gradients[f"{name}.grad"], rtol=1e-9, atol=1e-9)
    both = {name: np.stack([array, array]) for name, array in point.items()}
    for name, array in jax.jit(jax.vmap(values))(both).items():
        np.testing.assert_allclose(array[1], results[name], rtol=1e-9, atol=1e-12)


# -- programs of other kinds


@ways
def test_several_outputs_and_integers(way: Callable[[Function], Function]) -> None:
    f = ts.jax("A[i] = sin(X[i])\nB[i] = X[i] * Z[i]\nk argmax= X[i]")
    x, z = jnp.asarray([0.5, 2.0, 1.0]), jnp.asarray([3.0, 4.0, 5.0])
    made = way(lambda: f(X=x, Z=z))()
    check_equal(made, {"A": jnp.sin(x), "B": x * z, "k": jnp.asarray(1)})
    check_equal(way(jax.grad(lambda x: f(X=x, Z=z)["B"].sum()))(x), z)
    _, moved = jax.jvp(lambda x: f(X=x, Z=z), (x,), (z,))
    assert moved["k"].dtype == jax.dtypes.float0
    batched = jax.vmap(lambda z: f(X=x, Z=z))(jnp.stack([z, z]))
    assert {name: array.shape for name, array in batched.items()} == {"A": (2, 3), "B": (2, 3), "k": (2,)}


@ways
def test_an_op_with_any_leading_axes(way: Callable[[Function], Function]) -> None:
    f, x = ts.jax("softmax"), jnp.asarray(RANDOM.normal(size=(2, 3, 4)))
    check_equal(way(jax.vmap(jax.vmap(lambda x: f(input=x))))(x), jax.nn.softmax(x))
    check_equal(
        way(jax.vmap(jax.grad(lambda x: jnp.sin(f(input=x)).sum())))(x),
        jax.vmap(jax.grad(lambda x: jnp.sin(jax.nn.softmax(x)).sum()))(x),
    )


def test_options_optional_tensors_and_sizes() -> None:
    f, image, kernel = ts.jax("conv2d"), jnp.ones((2, 3, 8, 9)), jnp.asarray(RANDOM.normal(size=(4, 3, 3, 3)))

    def convolved(image: Any) -> Any:
        return f(input=image, weight=kernel, bias=None, stride=(2, 1), padding=1)

    expected = jax.lax.conv_general_dilated(image, kernel, (2, 1), ((1, 1), (1, 1)))
    np.testing.assert_allclose(jax.jit(convolved)(image), expected, rtol=1e-9)
    assert jax.jit(lambda n: ts.jax("Y[i,j] = X[i] * j")(X=X[0], j=n), static_argnums=0)(4).shape == (4, 4)


@ways
def test_gathers_and_their_bounds(way: Callable[[Function], Function]) -> None:
    f, table, places = ts.jax("Y[b,d] = E[tok[b],d]"), jnp.arange(12.0).reshape(4, 3), jnp.asarray([1, 2, 1])
    check_equal(way(lambda: f(E=table, tok=places))(), table[places])
    check_equal(
        way(jax.grad(lambda e: f(E=e, tok=places).sum()))(table), jnp.zeros((4, 3)).at[places].add(jnp.ones((3, 3)))
    )
    with pytest.raises((ts.SwapError, jax.errors.JaxRuntimeError), match="asks for position 9 of axis 0"):
        jax.block_until_ready(way(lambda k: f(E=table, tok=k))(jnp.asarray([1, 9])))


def test_plain_numbers_never_widen_and_are_told_apart() -> None:
    f, x = ts.jax("Y[i] = a * X[i] + b"), jnp.ones(3, jnp.float32)
    assert f(X=x, a=2, b=0.5).dtype == np.float32
    assert jax.jit(lambda a: f(X=x, a=a, b=0.5))(2.0).dtype == np.float32
    assert jax.jit(lambda a: f(X=x, a=a, b=1))(2).dtype == np.float32
    check_equal(jax.grad(lambda a: f(X=x, a=a, b=1).sum())(jnp.float32(2.0)), jnp.float32(3.0))
    g, whole = ts.jax("Y[i] = a * X[i]"), jnp.ones(3, jnp.int64)
    made = [jax.jit(lambda a=a: g(X=whole, a=a))() for a in (1, 1.0, 1)]
    assert [array.dtype.kind for array in made] == ["i", "f", "i"]
    assert [float(jax.jit(lambda a=a: g(X=-x, a=a))()[0]) for a in (0.0, -0.0)] == [0.0, 0.0]
    assert [bool(np.signbit(jax.jit(lambda a=a: g(X=x, a=a))()[0])) for a in (0.0, -0.0)] == [False, True]


def test_mixed_types() -> None:
    f = ts.jax("Y[i] = X[i] + Z[i]")
    x, z = jnp.ones(3, jnp.float32), jnp.ones(3, jnp.float64)
    assert f(X=x, Z=z).dtype == np.float64
    assert jax.grad(lambda x: f(X=x, Z=z).sum())(x).dtype == np.float32
    assert jax.jvp(lambda x: f(X=x, Z=z), (x,), (x,))[1].dtype == np.float64


def test_empty_arrays() -> None:
    empty = jnp.ones((0, 4))
    assert jax.jit(linear)(empty, W).shape == (0, 2)
    check_equal(jax.grad(lambda w: jax.jit(linear)(empty, w).sum())(W), jnp.zeros_like(W))


def test_without_inputs() -> None:
    check_equal(jax.jit(lambda: ts.jax("Y[i] = 2 * i")(i=4))(), jnp.asarray([0, 2, 4, 6]))


# -- a model


@pytest.mark.compiled
def test_a_model_trains_to_the_same_losses() -> None:
    """Under jit, with the layer under vmap over the samples."""
    x, y = jnp.asarray(RANDOM.normal(size=(16, 4))), jnp.asarray(RANDOM.normal(size=16))
    layer = ts.jax("h[o] += tanh(x[i]) * W[o,i]")

    def train(inner: Function) -> list[float]:
        def cost(params: dict[str, Any]) -> Any:
            hidden = jax.vmap(lambda x: inner(x, params["W"]))(x)
            return jnp.mean((jax.nn.relu(hidden) @ params["v"] - y) ** 2)

        @jax.jit
        def step(params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            value, slope = jax.value_and_grad(cost)(params)
            return value, jax.tree.map(lambda p, g: p - 0.05 * g, params, slope)

        params, losses = {"W": W, "v": jnp.ones(2)}, []
        for _ in range(10):
            value, params = step(params)
            losses.append(float(value))
        return losses

    own = train(lambda x, w: layer(x=x, W=w))
    np.testing.assert_allclose(own, train(lambda x, w: w @ jnp.tanh(x)), rtol=1e-12)
    assert own[-1] < 0.9 * own[0]


# -- what users do wrong


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"X": X, "W": W[:, :3]}, "index i has size 4 on X .axis 1. but 3 on W"),
        ({"X": X}, "the input W is missing"),
        ({"X": X, "W": W, "V": W}, "no input 'V'"),
        ({"X": X, "W": W, "V": "text"}, "no input 'V'"),
        ({"X": X[0], "W": W}, "needs an array with 2 axes"),
        ({"X": X.astype(jnp.bfloat16), "W": W}, "X has dtype bfloat16"),
        ({"X": X.astype(jnp.float16), "W": W}, "X has dtype float16"),
        ({"X": X + 1j, "W": W}, "X.real and X.imag"),
        ({"X": {"a": 1}, "W": W}, "X cannot be read as an array"),
        ({"X": X, "W": W, "i": X}, "i must be a whole number, not ArrayImpl"),
    ],
)
@ways
def test_wrong_arguments(arguments: dict[str, Any], told: str, way: Callable[[Function], Function]) -> None:
    with pytest.raises(ts.SwapError, match=told):
        way(lambda: ts.jax(LINEAR)(arguments))()


def test_a_traced_size_is_refused_with_a_cure() -> None:
    with pytest.raises(ts.SwapError, match='static_argnames="j"'):
        jax.jit(lambda n: ts.jax("Y[i,j] = X[i] * j")(X=X[0], j=n))(4)


def test_what_has_no_derivative_says_so() -> None:
    f = ts.jax("W[i] = W[i] - lr * g[i]")
    with pytest.raises(ts.SwapError, match="updated in place"):
        jax.grad(lambda w: f(W=w, g=w, lr=0.1).sum())(X[0])


def test_the_bridge_takes_programs_texts_and_names() -> None:
    assert ts.jax(ts.program(LINEAR))(X=X, W=W).shape == ts.jax(LINEAR)(X=X, W=W).shape == (3, 2)
    with pytest.raises(ts.SwapError, match="takes a program, its text or the name of an op, not int"):
        ts.jax(3)
    assert "Y[b,o] +=" in repr(ts.jax(LINEAR))


# -- compiled code, threads, processes


def test_threads_call_compiled_code() -> None:
    compiled = jax.jit(lambda x: linear(x, W) + linear(2 * x, W))
    expected = np.asarray(plain(X, W) + plain(2 * X, W))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: np.asarray(compiled(X)), range(20)))
    for array in made:
        np.testing.assert_allclose(array, expected, rtol=1e-9)


def test_a_callback_serves_where_the_foreign_function_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "registered", lambda: False)
    text = jax.jit(linear).lower(X, W).as_text()
    assert "callback" in text
    assert lowering.NAME not in text
    check_equal(jax.jit(jax.grad(loss(lambda x, w: linear(x, w) * 1)))(X), jax.grad(loss(plain))(X))


def test_compiled_code_calls_the_foreign_function() -> None:
    assert lowering.NAME in jax.jit(lambda x, w: linear(x, w) + 2).lower(X, W).as_text()


def test_code_for_other_shapes_is_other_code() -> None:
    arrays = X, X[:1]  # the smaller one last: in its frame the larger one would lose rows, and not gain what is luck
    compiled = [jax.jit(linear).lower(x, W).compile() for x in arrays]
    for f, x in zip(compiled, arrays, strict=True):
        check_equal(f(x, W), plain(x, W))


def test_code_of_a_program_that_is_not_known_here_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jax.jit(lambda x: linear(x, W) - 3).lower(X).compile()
    monkeypatch.setattr(foreign_call, "TARGETS", {})
    with pytest.raises(jax.errors.JaxRuntimeError, match="a program that this one has not seen"):
        jax.block_until_ready(compiled(X))


def test_an_interrupt_within_compiled_code_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Call, arrays: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Call, "run", interrupted)
    with pytest.raises(jax.errors.JaxRuntimeError, match="CANCELLED: interrupted"):
        jax.block_until_ready(jax.jit(lambda x: linear(x, W) - 5)(X))


def test_symbolic_shapes_are_refused() -> None:
    from jax import export

    shape = export.symbolic_shape("b, 4")
    with pytest.raises(ts.SwapError, match="sizes that are numbers"):
        export.export(jax.jit(lambda x: linear(x, W)))(jax.ShapeDtypeStruct(shape, np.float64))


def test_arrays_on_a_device_stay_there() -> None:
    device = jax.devices()[0]
    made = linear(jax.device_put(X, device), W)
    assert made.committed
    check_equal(made, plain(X, W))


def test_pickled_functions_work() -> None:
    check_equal(pickle.loads(pickle.dumps(ts.jax(LINEAR)))(X=X, W=W), plain(X, W))


def test_neither_framework_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, tensorswap; sys.exit(any(name in sys.modules for name in ('torch', 'jax')))"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 0


def test_a_framework_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorswap import bridges

    for name in [name for name in sys.modules if name.startswith("tensorswap.bridges.jax_arrays")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ts.SwapError, match=r"ts.jax needs JAX.*\n.*pip install"):
        _ = bridges.jax
    with pytest.raises(AttributeError, match="no attribute 'jaxx'"):
        ts.jaxx  # noqa: B018


@ways
def test_vmap_of_an_update_starts_all_of_the_batch_from_one_value(way: Function) -> None:
    update = ts.jax("W[i] = W[i] - sin(W[i]) * g[i]")
    made = way(jax.vmap(lambda g: update(W=W[0], g=g), 1))(X.T)
    assert jnp.allclose(made, W[0] - jnp.sin(W[0]) * X)


@ways
@pytest.mark.parametrize("start", [2, 2.0])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_vmap_of_an_update_of_a_plain_number(way: Function, start: float, dtype: Any) -> None:
    """Which has the type that it has without a batch."""
    update, y = ts.jax("s = 0.5 * s + y\nn = n + 1"), jnp.arange(3, dtype=dtype)
    made = way(jax.vmap(lambda y: update(s=start, y=y, n=4)))(y)
    alone = update(s=start, y=y[1], n=4)
    check_equal(made["s"], 0.5 * start + y)
    assert made["s"].dtype == alone["s"].dtype
    assert (made["n"].tolist(), made["n"].dtype) == ([5, 5, 5], alone["n"].dtype)


def test_a_traced_name_that_is_no_input() -> None:
    with pytest.raises(errors.ArgumentError, match="W is computed by the program, not an input"):
        jax.jit(lambda W, g: ts.jax("W[i] -= g[i]")(W=W, g=g))(W[0], X[0])
    with pytest.raises(errors.ArgumentError, match="the program has no input 'h'"):
        jax.jit(lambda h, g: ts.jax("W[i] -= g[i]")(h=h, g=g))(W[0], X[0])


def test_a_gradient_of_one_of_several_outputs() -> None:
    """Its sizes come from inputs that the gradient of all outputs need not read."""
    program = ts.jax("b[i] = 2 * W[i]\nc += b[i]\nreturn b, c")
    slope = jax.grad(lambda w: program(W=w)["c"])
    for found in (slope(jnp.ones(3)), jax.jit(slope)(jnp.ones(3)), jax.vmap(slope)(jnp.ones((2, 3)))[0]):
        np.testing.assert_allclose(found, [2, 2, 2])


def test_a_batch_of_hessians_of_a_window() -> None:
    program = ts.jax("Y[i] += X[i+p] * W[p]")
    X, W = jnp.linspace(0, 1, 14, dtype="float32").reshape(2, 7), jnp.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)

    def ours(x: Any, w: Any) -> Any:
        return jnp.sin(program(X=x, W=w)).sum()

    def twin(x: Any, w: Any) -> Any:
        return jnp.sin(jnp.convolve(x, w[::-1], mode="valid")).sum()

    for by in (0, 1):
        found, wanted = (jax.vmap(jax.hessian(f, argnums=by))(X, W) for f in (ours, twin))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        found, wanted = (jax.vmap(jax.hessian(f, argnums=by), in_axes=(0, None))(X, W[0]) for f in (ours, twin))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
