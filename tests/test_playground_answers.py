"""What a child of the playground answers, asked in this process: texts, places, derivatives, kernels and trials."""

from __future__ import annotations

from typing import Any

import pytest

from tensorswap.playground.child import answer

LAYER = "Z[i] += W[i,j] * x[j]\nY[i] = tanh(Z[i])\nloss += Y[i] ** 2\nreturn loss"
CALLS = "A = linear(x, W)\nB[n,o] = 2 * A[n,o]\nC = softmax(B)\nreturn C"


def asked(job: str, text: str, **more: Any) -> dict[str, Any]:
    told = answer({"job": job, "text": text, "derivative": "none", "sizes": {}, "seed": 0, **more})
    assert "broken" not in told, told["traceback"]
    return told


def test_statements_of_a_call_stand_where_the_call_does() -> None:
    told = asked("analyse", CALLS)["answer"]
    assert told["faults"] == []
    places = {(s["where"]["start"], s["where"]["end"]) for s in told["explanation"]["statements"]}
    assert {CALLS[start:end] for start, end in places} == {"linear(x, W)", "B[n,o] = 2 * A[n,o]", "softmax(B)"}


def test_places_count_as_an_editor_does() -> None:
    told = asked("analyse", "# 𝒜, two units in an editor\nY[i] = X[i,")["answer"]
    (fault,) = told["faults"]
    assert fault["message"]
    assert fault["start"] > len("# 𝒜, two units in an editor\n") + 1


@pytest.mark.parametrize(
    ("text", "kind", "targets"),
    [
        (LAYER, "tangent", {"Z.dot", "Y.dot", "loss.dot"}),
        (LAYER, "second", {"W.grad.dot", "x.grad.dot"}),
        ("Y[i] = sin(x[i])", "second", {"x.grad.dot"}),
        ("g[i] = i + size(x, 0)\nreturn g", "tangent", set()),
        (LAYER, "none", set()),
    ],
)
def test_derivatives_beside_the_adjoint(text: str, kind: str, targets: set[str]) -> None:
    lines = asked("analyse", text, derivative=kind)["answer"]["derivative"]["value"]
    written = {line["text"].strip().partition("[")[0].partition(" ")[0] for line in lines}
    assert targets <= written
    assert bool(lines) == bool(targets)
    numbers = [n for line in lines for n in line["statements"]]
    assert not lines or set(numbers) <= set(range(1, len(text.splitlines()) + 1))


def test_lines_of_kernels_know_their_statements() -> None:
    told = asked("plan", LAYER, sizes={"i": 5})["answer"]
    assert told["sizes"]["i"] == 5
    source = told["source"].splitlines()
    for part in told["parts"]:
        assert source[part["first"] - 1].startswith("def step")
        assert part["statements"] or part["adjoints"]
    assert {n for part in told["parts"] for n in part["statements"]} == {1, 2, 3}
    assert {n for row in told["rows"] for link in row["links"] for n in link["adjoints"]}
    assert told["operations"] > 0
    assert told["seconds"] > 0


def test_a_program_without_gradient_has_kernels_too() -> None:
    told = asked("plan", "n[i] argmax= X[i,j]\nreturn n")["answer"]
    assert told["rows"]
    assert {n for row in told["rows"] for link in row["links"] for n in link["statements"]} == {1}


def test_a_trial_runs_and_checks() -> None:
    assert asked("run", LAYER)["answer"]
    assert asked("check", LAYER)["answer"]
    assert asked("plan", "Y[i] = X[i] +")["faults"]
