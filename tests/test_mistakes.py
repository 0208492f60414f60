"""Typical mistakes of a newcomer: every message stands in a golden file.

`python -m tests.test_mistakes --write` renews them; comparing never writes. A file of tests/mistakes
holds a program, perhaps `shapes:` and `values:` of a call (Python literals), a line of dashes, and the message.
An array of `shapes:` is float64 and holds zeros.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts

FOLDER = Path(__file__).parent / "mistakes"
SEPARATOR = "-----\n"
FILES = sorted(FOLDER.glob("*.txt"))


def described(line: str) -> dict[str, Any]:
    """`A=(2,3) B=[1, 2]` -> the literals by name."""
    parts = re.split(r"(?:^|\s)(\w+)=", line)
    return {name: ast.literal_eval(value) for name, value in zip(parts[1::2], parts[2::2], strict=True)}


def error_of(case: str) -> ts.SwapError:
    """What a newcomer reads who writes this program, and makes this call of it."""
    lines = case.splitlines(keepends=True)
    call = [line for line in lines if line.startswith(("shapes:", "values:"))]
    text = "".join(line for line in lines if line not in call)
    arguments: dict[str, Any] = {}
    for line in call:
        kind, _, rest = line.partition(":")
        found = described(rest.strip())
        arguments |= {name: np.zeros(value) for name, value in found.items()} if kind == "shapes" else found
    with pytest.raises(ts.SwapError) as caught:
        run(text, arguments if call else None)
    return caught.value


def run(text: str, arguments: dict[str, Any] | None) -> None:
    program = ts.program(text)
    if arguments is not None:
        program(arguments)


def message_of(case: str) -> str:
    return f"{error_of(case)}\n"


def split(path: Path) -> tuple[str, str]:
    case, separator, message = path.read_text(encoding="utf-8").partition(SEPARATOR)
    assert separator, f"{path.name} has no line of dashes"
    return case, message


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message(path: Path) -> None:
    case, message = split(path)
    assert message_of(case) == message


def test_enough_mistakes() -> None:
    assert len(FILES) >= 30


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message_is_short_and_names_a_fix(path: Path) -> None:
    error = error_of(split(path)[0])
    assert error.faults
    for fault in error.faults:
        assert fault.hint, f"{fault.message}: no fix"
        assert len(fault.message) <= 120
        assert len(fault.hint) <= 120


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_caret_stands_on_text(path: Path) -> None:
    """A caret never points beyond the end of its line, save by the one column where something is missing."""
    for fault in error_of(split(path)[0]).faults:
        if fault.span is not None:
            line, carets = fault.span.show().split("\n")
            assert carets.strip("^ \t") == ""
            assert len(carets) <= len(line) + 1


def test_a_program_without_mistake_is_noticed() -> None:
    with pytest.raises(pytest.fail.Exception):
        error_of("Y[i] = X[i]\n")


def test_an_unused_description_is_noticed() -> None:
    assert described("A=(2, 3) tok=[0, 7] x=None") == {"A": (2, 3), "tok": [0, 7], "x": None}


def write_all() -> None:
    for path in FILES:
        case, _ = split(path)
        path.write_text(case + SEPARATOR + message_of(case), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.test_mistakes --write")
    write_all()
