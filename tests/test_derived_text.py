"""The text of a derivative parses back to the same program, stays near the length of what it is the derivative of, and
what no text can hold is refused when it is derived."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import LimitError
from tensorswap.language import limits

NESTS: dict[str, Callable[[str, int], str]] = {
    "max": lambda inner, k: f"max({inner}, x[i] * {k}.5)",
    "max on the right": lambda inner, k: f"max(x[i] - {k}.25, {inner})",
    "relu": lambda inner, k: f"relu({inner} - 0.01)",
    "silu": lambda inner, k: f"silu({inner})",
    "asin": lambda inner, k: f"asin(0.9 * {inner})",
    "quotient": lambda inner, k: f"y[i] / (2 + {inner})",
    "polynomial": lambda inner, k: f"({inner}) * x[i] + 0.5",
    "power": lambda inner, k: f"(1 + {inner}) ** 0.5",
    "conditional": lambda inner, k: f"({inner} if x[i] > 0.0{k} else y[i] * x[i])",
}
POINTS = {"x": np.array([0.15, 0.3, 0.55]), "y": np.array([0.5, 0.2, 0.35])}


def nested(name: str, levels: int) -> str:
    value = "x[i]"
    for k in range(levels):
        value = NESTS[name](value, k)
    return value


@pytest.mark.parametrize("name", NESTS)
def test_derivatives_of_nested_expressions_grow_with_their_length(name: str) -> None:
    lengths = []
    for levels in (24, 48):
        program = ts.program(f"Y[i] = {nested(name, levels)} + 0 * y[i]")
        adjoint, tangent = program.adjoint(wrt=["x"]), program.tangent(wrt=["x"])
        lengths.append(len(str(adjoint)) + len(str(tangent)))
        if levels == 24:
            assert ts.program(str(adjoint)) == adjoint
            assert ts.program(str(tangent)) == tangent
            shifted = [program.run_reference({**POINTS, "x": POINTS["x"] + step}) for step in (1e-6, -1e-6)]
            slope = (shifted[0] - shifted[1]) / 2e-6
            found = adjoint.run_reference({**POINTS, "Y.grad": np.ones(3)})
            np.testing.assert_allclose(found, slope, atol=1e-7)
            np.testing.assert_allclose(tangent.run_reference({**POINTS, "x.dot": np.ones(3)}), slope, atol=1e-7)
    assert lengths[1] < 4 * lengths[0]  # twice the levels; conditions of conditionals add up
    assert lengths[1] < 50_000


def test_sixty_levels_of_max_parse_back() -> None:
    gradient = ts.program(f"loss += {nested('max', 60)}").grad(wrt=["x"])
    assert len(str(gradient)) < 100_000
    assert ts.program(str(gradient)) == gradient


@pytest.mark.compiled
def test_a_deep_sum_in_a_block_with_a_guard() -> None:
    deep = nested("relu", 20).replace("x[i]", "(x[t,i] + (S[t-1,i] if t > 0 else 0.5))")
    program = ts.program(f"for t:\n    S[t,i] = {deep} if i > 0\nreturn S")
    arrays = {"x": np.linspace(0.5, 2, 12).reshape(3, 4), "S.grad": np.ones((3, 4))}
    adjoint = program.adjoint(wrt=["x"])
    assert ts.program(str(adjoint)) == adjoint
    report = ts.gradcheck(program, x=arrays["x"])
    assert report.difference_error < 1e-6
    np.testing.assert_allclose(adjoint(arrays), adjoint.run_reference(arrays), rtol=1e-12)


TEXTS = {
    "an index in a guard alone": "Y[j] += x[j] if i < 1\nZ[i] = 2 * i\nreturn Y",
    "an index in a value alone": "Y[j] += x[j] * i\nZ[i] = 2 * i\nreturn Y",
    "an index in a size alone": "Y[j] += x[j] * size(i)\nZ[i] = 2 * i\nreturn Y",
    "an index that another output sizes": "Y[j] += x[j] * (i + k)\nZ[i] = w[i]\nU[k] = v[2*k]\nreturn Y",
    "an index that a removed input sizes": "Y[j] += x[j] if i < 1\nZ[i] = w[i]\nreturn Y",
    "a static integer": "n: int\nY[j] += x[j] if i < n\nZ[i] = w[i] + n\nreturn Y",
    "an index like a new one": "Y[s] += x[2*s+r] * u[r] if i < 1\nZ[i] = w[i]\nreturn Y",
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_index_stays_an_index_in_the_text(name: str) -> None:
    program = ts.program(TEXTS[name])
    arrays = {"x": np.arange(1.0, 7), "w": np.arange(4.0), "v": np.arange(5.0), "u": np.ones(2), "n": 2}
    arrays |= {"Y.grad": np.ones(6), "x.dot": np.ones(6)}
    size = {"Y.grad": np.ones(3)} if "like" in name else {}
    for derived in (program.adjoint(wrt=["x"]), program.tangent(wrt=["x"])):
        again = ts.program(str(derived))
        assert again == derived
        given = {n: v for n, v in {**arrays, **size}.items() if n in {*again.inputs, *again.loops.static_names}}
        if "w" not in given and "i" in again.loops.indices:
            given["i"] = 4  # nothing else tells its size
        np.testing.assert_array_equal(again.run_reference(given), derived.run_reference(given))


def test_what_no_text_can_hold_is_refused_when_it_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ts.program("Y[i] = sin(x[i]) * cos(x[i]) + exp(x[i])")
    for limit, value in (("TEXT_LENGTH", 60), ("LINE_LENGTH", 30), ("NESTING", 1), ("EXPRESSION_DEPTH", 2)):
        with monkeypatch.context() as context:
            context.setattr(limits, limit, value)
            with pytest.raises(LimitError, match="deriv"):
                program.adjoint(wrt=["x"])
    with pytest.raises(LimitError, match="has 201 characters"):
        ts.program(f"{'Y' * 196}[i] = x[i] ** 2").adjoint(wrt=["x"])
    with pytest.raises(LimitError, match="64 bits"):
        ts.program("Y[i] = x[i] ** -9223372036854775807").adjoint(wrt=["x"])
