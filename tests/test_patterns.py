"""Patterns of gradient flow: each adjoint statement has the names of what happens on its way; explain shows them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, seed, settings

import tensorswap as ts
from tensorswap.language.render import statement as show
from tensorswap.patterns import PASSES, flows

from .generate import Case, programs


def named(text: str) -> dict[str, tuple[str, ...]]:
    """The patterns behind each adjoint statement's target."""
    return {show(flow.note.adjoint).split(" ")[0]: flow.patterns for flow in flows(ts.program(text).loops)}


@pytest.mark.parametrize(
    ("text", "target", "patterns"),
    [
        ("f = x + y", "x.grad", ("add distributes",)),
        ("f = x - y", "y.grad", ("subtract negates",)),
        ("f = x * y", "x.grad", ("multiply swaps",)),
        ("f = max(x, y)", "y.grad", ("max routes",)),
        ("f = min(x, y)", "y.grad", ("min routes",)),
        ("f = relu(x)", "x.grad", ("relu routes",)),
        ("f = x if c > 0 else y", "x.grad", ("branch routes",)),
        ("f = tanh(x)", "x.grad", ("tanh chains",)),
        ("f = -x", "x.grad", ("minus negates",)),
        ("f = x / y", "x.grad", ("divide scales",)),
        ("f = x / y", "y.grad", ("divide chains",)),
        ("f = x ** 3", "x.grad", ("power chains",)),
        ("f = x", "x.grad", (PASSES,)),
        ("f = (x + y) * z", "x.grad", ("multiply swaps", "add distributes")),
        ("a = 2 * x\nb = 3 * x\nf = a * b", "x.grad", ("multiply swaps", "copy adds 2 uses")),
        ("m max= X[i]", "X.grad[i]", ("max routes",)),
        ("m *= X[i]", "X.grad[i]", ("multiply swaps",)),
        ("s += X[i]", "X.grad[i]", ("add distributes over i",)),
        ("s += X[i]\ns += Y[i]", "Y.grad[i]", ("add distributes over i",)),
        ("Y[i] = X[i] + b", "b.grad", ("add distributes", "copy adds over i")),
        ("Z[i] += W[i,j] * x[j]", "W.grad[i,j]", ("add distributes over j", "multiply swaps")),
        ("Z[i] += W[i,j] * x[j]", "x.grad[j]", ("add distributes over j", "multiply swaps", "copy adds over i")),
        ("Y[b] = E[tok[b]]", "E.grad[tok[b]]", ("copy adds where reads meet",)),
        ("Y[i] += X[i+p] * W[p]", "X.grad[s]",
         ("add distributes over p", "multiply swaps", "copy adds where reads meet")),
    ],
)  # fmt: skip
def test_each_gate_has_its_pattern(text: str, target: str, patterns: tuple[str, ...]) -> None:
    assert named(text)[target] == patterns


def test_explain_shows_the_pattern_behind_the_rule() -> None:
    text = ts.program("q = x + y\nf = max(q, z)").explain()
    assert "-> x.grad += q.grad  # swap: add distributes" in text
    assert "-> q.grad += f.grad if q >= z      # swap, branch taken: max routes" in text


def test_chosen_inputs_and_outputs() -> None:
    loops = ts.program("a = x * y\nb = x + y", outputs=["a", "b"]).loops
    assert [show(flow.note.adjoint) for flow in flows(loops, ["y"], ["b"])] == ["y.grad += b.grad"]
    assert flows(loops, ["y"], ["b"])[0].text == "add distributes"


@seed(2)
@settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(case=programs)
def test_generated_programs_and_their_derivatives(case: Case) -> None:
    program = ts.program(case.text)
    assert all(flow.patterns for flow in flows(program.loops))
    for made in (program, program.adjoint(wrt=case.wrt), program.tangent(wrt=case.wrt)):
        assert made.explain()
