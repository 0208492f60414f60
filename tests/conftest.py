"""The reference interpreter is the oracle of the language and its rules, so tests of those run p(...) through it.

Compiling thousands of small programs would take an hour and prove nothing about the rules. Tests marked `compiled`
call p(...) as a user does, and hold it against the interpreter.
"""

from __future__ import annotations

import pytest

from tensorswap.program import Program


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("compiled") is None:
        monkeypatch.setattr(Program, "__call__", Program.run_reference)
