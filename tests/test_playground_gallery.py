"""Each example of the gallery parses, derives, is drawn, runs, and passes the gradient check.

All of them are derived and drawn each day; a quarter is checked and a few run compiled, and all of them where
TENSORSWAP_LONG is set. tests/test_playground_page.py does it once more in a browser.
"""

from __future__ import annotations

import pytest

from tensorswap.playground.analysis import analyse
from tensorswap.playground.examples import Example, examples
from tensorswap.playground.trial import check, run

from .daily import share

ALL = [pytest.param(example, id=example.name) for example in examples()]
CHECKED, COMPILED = share(ALL, 4), share(ALL, 20)


@pytest.mark.parametrize("example", ALL)
def test_an_example_is_derived_and_drawn(example: Example) -> None:
    told = analyse(example.text)
    assert told["faults"] == []
    assert told["explanation"]["refused"] == ""
    assert told["explanation"]["adjoints"]
    assert told["graph"]["value"].startswith("<svg")
    assert set(example.sizes) <= set(told["sliders"]["value"]), "a slider for each size that the file names"
    for statement in told["explanation"]["statements"]:
        assert statement["where"] is not None, statement["text"]
    for line in told["explanation"]["backward"]:
        if ".grad" in line["text"].partition("=")[0] and not line["text"].startswith("size("):
            assert line["statements"] or ".total" in line["text"], line["text"]


@pytest.mark.parametrize("example", CHECKED)
def test_an_example_passes_the_gradient_check(example: Example) -> None:
    told = check(example.text, example.sizes, seed=0, seconds=0.1)
    assert told["passed"], told["text"]


@pytest.mark.compiled
@pytest.mark.parametrize("example", COMPILED)
def test_an_example_runs_compiled(example: Example) -> None:
    told = run(example.text, example.sizes, seed=0)
    assert told["warnings"] == []  # none is interpreted
    assert all(tensor["strange"] == 0 for tensor in told["tensors"])
    assert any(tensor["kind"] == "gradient" and tensor["norm"] > 0 for tensor in told["tensors"])
