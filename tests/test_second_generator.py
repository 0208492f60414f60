"""Programs of the second generator, new ones in every run; tests/second says what they are held against.

A failure prints the seed of its program. To see it again: TENSORSWAP_SEED=<seed> pytest tests/test_second_generator.py,
where the programs of each test start at that seed.
"""

from __future__ import annotations

import os
import secrets

import numpy as np
import pytest

import tensorswap as ts
from tests.second.campaign import KINDS, campaign, failure
from tests.second.check import Tally, Wrong, check_values
from tests.second.evaluate import evaluate
from tests.second.layouts import LAYOUTS, laid_out
from tests.second.parse import parse, render
from tests.second.shrink import shrink
from tests.second.write import Sample, write

GIVEN = os.environ.get("TENSORSWAP_SEED")


def fresh(kind: str, count: int, part: int = 0) -> None:
    """That many programs which no run has seen before, or those that follow the seed which the environment names."""
    start = secrets.randbelow(2**40) if GIVEN is None else int(GIVEN) + part * count
    campaign(kind, start, count)


@pytest.mark.parametrize("part", range(2))
def test_values_agree_with_plain_python_loops(part: int) -> None:
    fresh("values", 50, part)


@pytest.mark.parametrize("part", range(10))
def test_no_pass_changes_what_a_program_computes(part: int) -> None:
    fresh("passes", 220, part)


@pytest.mark.compiled
@pytest.mark.parametrize("part", range(10))
def test_compiled_calls_agree_with_the_interpreter(part: int) -> None:
    fresh("compiled", 24, part)


@pytest.mark.parametrize("part", range(2))
def test_derivatives_agree_with_tangents_and_differences(part: int) -> None:
    fresh("derived", 25, part)


@pytest.mark.compiled
def test_compiled_derivatives_agree_with_the_interpreter() -> None:
    fresh("derived_compiled", 10)


def test_derivatives_agree_with_jax() -> None:
    pytest.importorskip("jax")
    fresh("jax", 10)


def test_one_seed_is_one_program() -> None:
    first, second = write(7), write(7)
    assert first.text == second.text
    assert first.text != write(8).text
    for name, value in first.arguments.items():
        assert np.array_equal(value, second.arguments[name])


@pytest.mark.parametrize("seed", range(20))
def test_the_parser_of_the_tests_reads_back_what_it_shows(seed: int) -> None:
    items = parse(write(seed).text)
    assert parse(render(items)) == items
    assert ts.program(render(items)) == ts.program(write(seed).text)


def test_the_plain_loops_on_programs_done_by_hand() -> None:
    x = np.array([[1.0, 2.0], [3.0, 5.0]])

    def run(text: str, name: str, **arguments: object) -> list[object]:
        return list(evaluate(text, arguments, {}, {})[0][name].data)

    assert run("Y[i] += X[i,j] * 2 if j <= i", "Y", X=x) == [2.0, 16.0]
    assert run("m *= X[i,j]", "m", X=x) == [30.0]
    assert run("a[j] argmax= X[i,j]", "a", X=x) == [1, 1]
    assert run("for t:\n    C[t] = X[t] + (C[t-1] if t > 0 else 0)", "C", X=x[1]) == [3.0, 8.0]
    assert run("for t down:\n    s += X[t]\n    C[t] = s", "C", X=x[1]) == [8.0, 5.0]
    assert run("size(H, 0) = 3\nH[b[n]] += w[n]", "H", b=np.array([2, 0, 2]), w=np.array([1, 2, 3])) == [2, 0, 4]
    assert run("def f(A[i], s=2.0) -> B[i]:\n    B[i] = s * A[i]\nY = f(X)", "Y", X=x[1]) == [6.0, 10.0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_keeps_the_values(layout: str) -> None:
    array = np.arange(6.0).reshape(3, 2)
    rows = np.broadcast_to(array[:1], array.shape)
    made = laid_out(array, layout)
    assert np.array_equal(made, rows if layout == "broadcast" else array)


def test_a_wrong_value_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "U[i] = X[i] + 1\nY[i] = sin(U[i]) * X[i] * Z[i]\nV[i] = Z[i] / 2"
    arguments = {"X": np.array([0.5, 1.5, 2.5]), "Z": np.array([1.0, 2.0, 3.0])}
    sample = Sample(0, text, arguments, {}, {"i": 3}, {}, (), ("X", "Z"))
    right = ts.Program.run_reference

    def planted(p: ts.Program, *given: object, **more: object) -> object:
        """The interpreter with a wrong sine."""
        return right(ts.program(str(p).replace("sin(", "cos("), outputs=list(p.outputs)), *given, **more)

    monkeypatch.setattr(ts.Program, "run_reference", planted)
    with pytest.raises(Wrong, match="value: Y"):
        check_values(sample, ts.program(text), Tally())
    small = shrink(sample, lambda candidate: failure(KINDS["values"], candidate), 20.0)
    assert small.text == "U[i] = X[i]\nY[i] = sin(U[i])"
    assert list(small.arguments) == ["X"]
