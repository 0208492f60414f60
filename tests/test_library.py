"""Every op of the standard library against PyTorch's stored answers: values, gradients, second derivatives.

The table is library/rows/; `make oracles` writes library/answers/. Each case runs through the interpreter in float64
and float32; one of each op runs compiled too, after six days the next. A third of the ops runs each day, a sixth
compiled, and all cases where TENSORSWAP_LONG is set.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap import library

from .daily import DAY, LONG, share
from .library.make_readme import TARGET, lines_of, readme, with_callees
from .library.rows import FAMILIES, all_rows, rows_of
from .library.store import load
from .library.table import Array, options_of

ANSWERS = Path(__file__).parent / "library" / "answers"
ROWS = all_rows()


@dataclass
class Answer:
    """What is stored of one case."""

    text: str = ""
    input: dict[str, Array] = field(default_factory=dict)
    output: dict[str, Array] = field(default_factory=dict)
    seed: dict[str, Array] = field(default_factory=dict)
    grad: dict[str, Array] = field(default_factory=dict)
    along: dict[str, Array] = field(default_factory=dict)
    second: dict[str, Array] = field(default_factory=dict)


@cache
def answers(family: str) -> dict[tuple[str, int], Answer]:
    found: dict[tuple[str, int], Answer] = {}
    arrays, texts = load(ANSWERS / f"{family}.npz")
    for key, text in texts.items():
        op, number = key.split("/")
        found[op, int(number)] = Answer(text)
    for key, array in arrays.items():
        op, number, kind, name = key.split("/")
        getattr(found[op, int(number)], kind)[name] = array
    return found


CASES = [(family, row.name, n) for family in FAMILIES for row in rows_of(family) for n in range(len(row.cases))]
COMPILED = [case for case in CASES if LONG or case[2] == DAY // 6 % len(ROWS[case[1]].cases)]
SMOOTH = [case for case in CASES if ROWS[case[1]].smooth and case[2] < 3]


@cache
def program(op: str) -> ts.Program:
    return ts.load(op)


@cache
def adjoint(op: str, wrt: tuple[str, ...], of: tuple[str, ...]) -> ts.Program:
    return program(op).adjoint(wrt=list(wrt), of=list(of))


@cache
def second_adjoint(op: str, wrt: tuple[str, ...], of: tuple[str, ...]) -> ts.Program:
    first = adjoint(op, wrt, of)
    return first.adjoint(wrt=list(wrt), of=[f"{name}.grad" for name in wrt])


def results(program: ts.Program, arguments: dict[str, Any], compiled: bool) -> dict[str, Array]:
    result = program(arguments) if compiled else program.run_reference(arguments)
    return {program.outputs[0]: result} if len(program.outputs) == 1 else result


def check_close(actual: Array, expected: Array, tolerance: float, name: str) -> None:
    """The same shape, and every element right, measured by the largest."""
    assert actual.shape == expected.shape, f"{name}: {actual.shape}, not {expected.shape}"
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, err_msg=name)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def check_case(op: str, case: str, answer: Answer, dtype: str = "float64", compiled: bool = False) -> None:
    """The values and every gradient of one case."""
    tolerance = 1e-9
    if dtype == "float32":
        terms = max((a.size for a in (*answer.input.values(), *answer.output.values())), default=1)
        tolerance = 1e-5 * max(1.0, terms**0.5)

    def cast(array: Array) -> Array:
        return array.astype(dtype) if array.dtype.kind == "f" else array

    arguments: dict[str, Any] = {**{n: cast(a) for n, a in answer.input.items()}, **options_of(case)}
    values = results(program(op), arguments, compiled)
    assert list(values) == list(answer.output)
    for name, expected in answer.output.items():
        check_close(np.asarray(values[name]), expected, tolerance, name)
        if expected.dtype.kind == "f":
            assert np.asarray(values[name]).dtype == dtype, name
    if not answer.grad:
        return
    derivative = adjoint(op, tuple(answer.grad), tuple(answer.seed))
    arguments |= {f"{name}.grad": cast(seed) for name, seed in answer.seed.items()}
    gradients = results(derivative, arguments, compiled)
    for name, expected in answer.grad.items():
        check_close(gradients[f"{name}.grad"], expected, tolerance, f"{name}.grad")


def of_today(cases: list[tuple[str, str, int]], days: int) -> list[tuple[str, str, int]]:
    chosen = set(share(sorted({op for _, op, _ in cases}), days))
    return [case for case in cases if case[1] in chosen]


def name_of(case: tuple[str, str, int]) -> str:
    return f"{case[1]}-{case[2]}"


@pytest.mark.parametrize("case", of_today(CASES, 3), ids=name_of)
def test_values_and_gradients_are_those_of_torch(case: tuple[str, str, int]) -> None:
    family, op, number = case
    answer, text = answers(family)[op, number], ROWS[op].cases[number]
    check_case(op, text, answer)
    if LONG or number == 0 or (number + DAY) % 3 == 0:
        check_case(op, text, answer, "float32")


@pytest.mark.compiled
@pytest.mark.parametrize("case", of_today(COMPILED, 6), ids=name_of)
def test_compiled_values_and_gradients_are_those_of_torch(case: tuple[str, str, int]) -> None:
    family, op, number = case
    check_case(op, ROWS[op].cases[number], answers(family)[op, number], compiled=True)


@pytest.mark.parametrize("case", of_today(SMOOTH, 6), ids=name_of)
def test_second_derivatives_are_those_of_torch(case: tuple[str, str, int]) -> None:
    family, op, number = case
    answer = answers(family)[op, number]
    assert answer.second, "a smooth op has second derivatives"
    derivative = second_adjoint(op, tuple(answer.grad), tuple(answer.seed))
    arguments: dict[str, Any] = {**answer.input, **options_of(ROWS[op].cases[number])}
    arguments |= {f"{name}.grad": seed for name, seed in answer.seed.items()}
    arguments |= {f"{name}.grad.grad2": along for name, along in answer.along.items()}
    arguments = {name: value for name, value in arguments.items() if name in derivative.loops.names}
    found = results(derivative, arguments, compiled=False)
    for name, expected in answer.second.items():
        check_close(found[f"{name}.grad2"], expected, 1e-8, f"{name}.grad2")


def test_the_answers_belong_to_the_table() -> None:
    """After a change of a row, `make oracles` has to run."""
    for family in FAMILIES:
        stored = {(op, number): answer.text for (op, number), answer in answers(family).items()}
        table = {
            (row.name, number): f"{row.oracle} | {case}"
            for row in rows_of(family)
            for number, case in enumerate(row.cases)
        }
        assert stored == table, family


def test_every_op_has_a_row_with_five_cases() -> None:
    assert set(ts.ops()) == set(ROWS)
    assert [row.name for row in ROWS.values() if len(row.cases) < 5] == []


def test_a_wrong_gradient_is_noticed() -> None:
    family, op = next((family, row.name) for family in FAMILIES for row in rows_of(family) if row.name == "linear")
    answer, text = answers(family)[op, 0], ROWS[op].cases[0]
    name = next(iter(answer.grad))
    wrong = Answer(
        answer.text, answer.input, answer.output, answer.seed, {**answer.grad, name: answer.grad[name] + 1e-6}
    )
    check_case(op, text, answer)
    with pytest.raises(AssertionError, match=rf"{name}\.grad"):
        check_case(op, text, wrong)


def test_the_page_of_the_library_is_up_to_date() -> None:
    """After a change of an op or of the benchmark's results, `python -m tests.library.make_readme` has to run."""
    assert TARGET.read_text(encoding="utf-8") == readme()


def test_all_operators_of_thnn_are_there_in_few_lines() -> None:
    with (Path(__file__).parent / "library" / "thnn.csv").open() as file:
        lines = {row["file"]: int(row["lines"] or 0) for row in csv.DictReader(file)}
    rows = [row for row in ROWS.values() if row.thnn]
    assert len(lines) == 55
    assert {name for row in rows for name in row.thnn} == set(lines)
    texts = library.definitions().texts
    assert sum(lines_of(texts[name]) for name in with_callees({row.name for row in rows})) < 0.03 * 13_700


def test_every_op_says_what_it_does() -> None:
    assert [name for name, line in ts.ops().items() if not line] == []


@pytest.mark.parametrize(
    ("op", "arguments"),
    [
        ("constant_pad1d", {"left": 1, "right": 2}),
        ("hardtanh", {}),
        ("relu6", {}),
        ("index_add", {"index": np.array([0, 2]), "source": np.ones((2, 2), np.int64)}),
        ("addmm", {"mat1": np.ones((2, 4), np.int64), "mat2": np.ones((4, 3), np.int64)}),
    ],
)
def test_whole_numbers_stay_whole(op: str, arguments: dict[str, Any]) -> None:
    """Numbers by default are whole where a fraction is not needed: they would turn an integer array into floats."""
    assert program(op)({"input": np.arange(6).reshape(2, 3), **arguments}).dtype == np.int64
