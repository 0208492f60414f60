"""Every pass of derivations and plans over the library and the corpus, certificates, and faults planted in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap import library
from tensorswap.errors import TrustError
from tensorswap.interpret import reference
from tensorswap.language import ir
from tensorswap.plan import prepare
from tensorswap.plan.work import Work
from tensorswap.program import Program
from tensorswap.rules import adjoint
from tensorswap.rules.activity import default_wrt
from tensorswap.rules.derivation import Adjoint, Tangent
from tensorswap.run import cache
from tensorswap.trust import certify, verdicts
from tensorswap.trust.certify import certify_derivative, certify_plan
from tensorswap.trust.inputs import Inputs
from tensorswap.trust.small import small_calls
from tensorswap.trust.validate import (
    changed_by_derivation,
    changed_by_plan,
    changed_by_steps,
    derivation_stages,
)
from tests.corpus import CORPUS
from tests.daily import LONG, share

OPS = sorted(library.definitions())
LARGE = 64  # passes choose as if every index were at least so large


def calls(loops: ir.Loops) -> Iterator[Inputs]:
    """Calls that run, of a program or of a derivative."""
    statics = {name: 2 for name in loops.static_names if name not in loops.static_defaults}
    for made in small_calls(loops, statics, {}):
        try:
            reference.run(made.bound)
        except ts.SwapError:  # random whole numbers need not fit together
            continue
        yield made


def check_passes(loops: ir.Loops) -> int:
    """Holds the program against itself after every pass, and so its derivatives; the number of programs that ran.

    In the long run tangents too, and the choices of a plan at small sizes.
    """
    ran = 0
    made = next(calls(loops), None)
    if made is not None:
        ran += 1
        weights = {name: LARGE + k for k, name in enumerate(made.bound.loops.indices)}
        for chosen in ({}, weights) if LONG else (weights,):
            changed = changed_by_plan(made.bound, chosen)
            assert changed is None, changed.error()
    wrt = default_wrt(loops)
    kinds = (Adjoint(wrt, None), Tangent(wrt)) if LONG else (Adjoint(wrt, None),)
    for derive in kinds if wrt else ():
        try:
            stages = derivation_stages(loops, derive)
        except ts.SwapError:  # an update, an integer: refused for a reason that other tests look at
            continue
        made = next(calls(stages[-1].loops), None)
        if made is not None:
            ran += 1
            changed = changed_by_derivation(stages, made.arguments) or changed_by_plan(made.bound, {})
            changed = changed or changed_by_steps(loops, derive, made.bound, {})
            assert changed is None, changed.error()
            certify_derivative(loops, derive, stages[-1].loops, {}, {})  # against the tangent
    return ran


@pytest.mark.parametrize("name", share(OPS, 4))
def test_passes_keep_the_meaning_of_the_library(name: str) -> None:
    check_passes(ts.load(name).loops)


@pytest.mark.parametrize("entry", share(CORPUS, 2), ids=lambda entry: entry.name)
def test_passes_keep_the_meaning_of_the_corpus(entry: Any) -> None:
    check_passes(ts.program(entry.text).loops)


# -- faults that are planted, and what finds them

TEXT = "Y[i] += A[m]*B[m]*D[i]\nZ[i] += A[m]*B[m]*D[i]*x[i]\nreturn Y, Z"
ARRAYS = {"A": np.ones(32), "B": np.ones(32), "D": np.ones(2), "x": np.array([1.0, 10.0])}


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had been certified in this process, or kept by another."""
    monkeypatch.setattr(verdicts, "_known", set())
    monkeypatch.setattr(cache, "planners", lambda: str(np.random.default_rng().integers(2**62)))


def drop_a_factor(work: Work) -> Work:
    """The pass that takes products apart, and then loses what they have in common."""
    from tensorswap.plan.contraction_order import order_products

    def change(statement: ir.Statement, _: tuple[str, ...]) -> list[ir.Statement]:
        value = statement.value
        lost = isinstance(value, ir.Binary) and value.operator == "*" and statement.target.tensor == "Z"
        return [replace(statement, value=value.left) if lost else statement]  # type: ignore[attr-defined]

    return order_products(work).each(change)


def planted(pass_: Callable[[Work], Work], name: str) -> tuple[Callable[[Work], Work], ...]:
    return tuple(pass_ if run.__name__ == name else run for run in prepare.PASSES)


@pytest.mark.compiled
@pytest.mark.usefixtures("nothing_known")
def test_a_plan_that_drops_a_factor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "PASSES", planted(drop_a_factor, "order_products"))
    with pytest.raises(TrustError, match=r"the pass drop_a_factor changes .* Z\[0\] is(?s:.*)please report it"):
        ts.program(TEXT)(ARRAYS)
    with ts.debug(certify=False):
        assert ts.program(TEXT)(ARRAYS)["Z"][0] != 32  # nobody looked


@pytest.mark.compiled
def test_validation_names_the_pass_and_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "PASSES", planted(drop_a_factor, "order_products"))
    with ts.debug(validate=True, certify=False), pytest.raises(TrustError) as error:
        ts.program(TEXT)(ARRAYS)
    text = str(error.value)
    assert "the pass drop_a_factor" in text
    assert "before: Z[i] += " in text
    assert "after:  Z[i] += " in text


@pytest.mark.compiled
@pytest.mark.usefixtures("nothing_known")
def test_a_wrong_derivative_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = adjoint.gather_form

    def wrong(raw: ir.Statement, *rest: Any) -> ir.Statement:
        made = right(raw, *rest)
        return replace(made, value=ir.Binary("*", ir.Number(2), made.value)) if made.target.tensor == "W.grad" else made

    monkeypatch.setattr(adjoint, "gather_form", wrong)
    program = ts.program("Y[i] += X[i+p] * W[p]").adjoint(wrt=["X", "W"])
    arrays = {"X": np.ones(5), "W": np.ones(2), "Y.grad": np.ones(4)}
    with pytest.raises(TrustError, match=r"a derivative is wrong(?s:.*)W.grad"):
        program(arrays)
    with ts.debug(certify=False):
        assert program(arrays)["W.grad"][0] == 8
    monkeypatch.setattr(adjoint, "gather_form", right)
    assert ts.program("Y[i] += X[i+p] * W[p]").adjoint(wrt=["X", "W"])(arrays)["W.grad"][0] == 4


def test_a_pass_of_a_derivation_that_changes_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = adjoint.share

    def wrong(loops: ir.Loops, first: int) -> ir.Loops:
        made = right(loops, first)
        return replace(made, body=ir.map_items(made.body, lambda s: replace(s, guard=None)))

    monkeypatch.setattr(adjoint, "share", wrong)
    loops = ts.program("Y[i,j] = X[i,j] * W[j] if j <= i").loops
    stages = derivation_stages(loops, Adjoint(("W",), None))
    made = next(calls(stages[-1].loops))
    changed = changed_by_derivation(stages, made.arguments)
    assert changed is not None
    assert changed.name == "share"
    assert "W.grad[j] += X[i,j] * Y.grad[i,j] if j <= i" in changed.gone


SECOND = {
    "tangent": lambda p: p.tangent(wrt=["x"]),
    "gradient": lambda p: p.grad(wrt=["x", "A"]),
    "Hessian": lambda p: p.hessian_vector(wrt=["x", "A"]),
    "tangent of a gradient": lambda p: p.grad(wrt=["x"]).tangent(wrt=["x"]),
    "adjoint of a gradient": lambda p: p.grad(wrt=["x"]).adjoint(wrt=["x"], of=["x.grad"]),
}


@pytest.mark.parametrize("how", SECOND.values(), ids=SECOND)
def test_derivatives_of_every_kind_have_a_certificate(how: Callable[[Program], Program]) -> None:
    program = how(ts.program("Y[i] += A[i,j] * tanh(x[j])\nloss += Y[i] ** 3"))
    origin, derive = program._origin, program._derivation
    assert origin is not None
    assert derive is not None
    assert certify_derivative(origin.loops, derive, program.loops, {}, {})


def test_every_pass_of_a_plan_keeps_shared_products() -> None:
    from tensorswap.run.arguments import bind

    changed = changed_by_plan(bind(ts.program(TEXT).loops, ARRAYS), {})
    assert changed is None, changed.error()


def test_a_plan_has_a_certificate() -> None:
    from tensorswap.run.arguments import bind

    assert certify_plan(bind(ts.program(TEXT).loops, ARRAYS), None, None)


@pytest.mark.compiled
@pytest.mark.usefixtures("nothing_known")
def test_a_verdict_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    right = certify.certify_plan
    monkeypatch.setattr(certify, "certify_plan", lambda *a: asked.append(1) or right(*a))  # type: ignore[func-returns-value]
    monkeypatch.setattr(cache, "planners", lambda: "one version")
    text = f"Y[i] = X[i] * {np.random.default_rng().random()!r}"  # nobody has certified this before
    ts.program(text)(X=np.ones(3))
    ts.program(text)(X=np.ones(3))
    assert len(asked) == 1
    monkeypatch.setattr(verdicts, "_known", set())  # another process finds it beside the kernels
    ts.program(text)(X=np.ones(3))
    ts.program(text)(X=np.ones(30))  # the same plan for another size
    assert len(asked) == 1


NO_FAULT = {  # right programs whose rounding looks like a fault
    "a gradient that is 0": ("Z += exp(X[i])\nP[i] = exp(X[i]) / Z\nloss += 1e6 * P[i]", {"X": (4,)}),
    "a length that is 1": ("n += X[i]**2\nu[i] = X[i] / sqrt(n)\nl += u[i]**2\nloss = 1e4 * l", {"X": (3,)}),
    "large numbers that cancel": (
        "A[i] = 1e9 + X[i]\ns += A[i] * A[i] / size(i)\nm += A[i] / size(i)\nloss = s - m * m",
        {"X": (3,)},
    ),
    "the last digits of a large number": (
        "S[i] += X[i,k] * B[k,m] * C[m] * D[i]\nloss += S[i] * 43758.5453e8 - floor(S[i] * 43758.5453e8)",
        {"X": (3, 4), "B": (4, 5), "C": (5,), "D": (3,)},
    ),
    "overflow at a random point": ("loss += exp(X[i] * 1e4)", {"X": (3,)}),
}


@pytest.mark.compiled
@pytest.mark.usefixtures("nothing_known")
@pytest.mark.parametrize(("text", "shapes"), NO_FAULT.values(), ids=NO_FAULT)
def test_rounding_is_no_fault(text: str, shapes: dict[str, tuple[int, ...]]) -> None:
    numbers = np.random.default_rng(0)
    arrays = {name: numbers.uniform(0.01, 0.02, shape) for name, shape in shapes.items()}
    ts.program(text).grad(wrt=["X"])(arrays)
    ts.program(text)(arrays)


def test_a_long_block_is_too_slow_for_a_certificate() -> None:
    loops = ts.program("n: int\nsize(t) = n\nfor t:\n    x[i] = 0.5 * x[i] + b[i]").loops
    assert list(small_calls(loops, {"n": 3}, {}))
    assert not list(small_calls(loops, {"n": 3000}, {}))


DEEP = {
    "sum": "y = " + "+".join(["X"] * 205),
    "product": "y = " + "*".join(["X"] * 230),
    "minus": "y = " + "-" * 200 + "X",
    "not": "y = " + "not " * 200 + "X",
    "almost": "y = " + "+".join(["X"] * 149),
}


@pytest.mark.compiled
@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
@pytest.mark.filterwarnings("ignore:a call is interpreted")
def test_expressions_of_any_depth_run(text: str) -> None:
    program = ts.program(text)
    np.testing.assert_allclose(program(X=1.01), program.run_reference(X=1.01))
