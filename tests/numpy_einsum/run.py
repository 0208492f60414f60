"""Runs numpy's tests of einsum on ts.einsum, and counts who computed what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.einsum import call, recipe
from tensorswap.program import Program

FILE = "numpy._core.tests.test_einsum"


class Swapped:
    """A plugin of pytest: while it is there, np.einsum is ts.einsum. Results and calls are counted."""

    def __init__(self, interpreted: bool) -> None:
        self.results: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.interpreted = interpreted
        self.patch = pytest.MonkeyPatch()

    def pytest_configure(self) -> None:
        self.patch.setattr(np, "einsum", ts.einsum)
        self.counted(recipe.Recipe, "run", "programs")
        self.counted(call, "diagonal_view", "views")
        self.counted(call, "numpys_einsum", "numpy")
        if self.interpreted:
            self.patch.setattr(Program, "__call__", Program.run_reference)

    def counted(self, owner: Any, name: str, kind: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def counting(*given: Any, **settings: Any) -> Any:
            self.calls[kind] += 1
            return function(*given, **settings)

        self.patch.setattr(owner, name, counting)

    def pytest_unconfigure(self) -> None:
        self.patch.undo()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.results[report.outcome] += 1


def run(interpreted: bool, chosen: str = "") -> Swapped:
    """The tests whose names hold a word, or all."""
    swapped = Swapped(interpreted)
    given = ["--pyargs", FILE, "-q", "-p", "no:cacheprovider", "-o", "addopts=", *(["-k", chosen] if chosen else [])]
    pytest.main(given, plugins=[swapped])
    return swapped


def report(swapped: Swapped) -> str:
    calls = swapped.calls
    return (
        f"{swapped.results['passed']} of {swapped.results.total()} tests of numpy {np.__version__} pass\n"
        f"{calls['programs']:,} calls by {'the interpreter' if swapped.interpreted else 'kernels'}, "
        f"{calls['views']:,} views, "
        f"{calls['numpy']:,} by numpy itself (complex, object and long double)"
    )
