"""Writes the tables of docs/errors.md: a mistake, what is said, and the cure. `python -m tests.make_errors_page`.

The mistakes are those of tests/mistakes. Nothing else of the page is changed.
"""

from __future__ import annotations

from pathlib import Path

from tensorswap.errors import Fault
from tests.test_mistakes import FILES, error_of, split

TARGET = Path(__file__).parent.parent / "docs" / "errors.md"
BEGIN, END = "<!-- begin: python -m tests.make_errors_page -->\n", "<!-- end -->\n"
ORDER = ("SyntaxFault", "ProgramError", "ShapeError", "BoundsError", "DtypeError", "ArgumentError")
TITLES = {
    "SyntaxFault": "The text is not in the language",
    "ProgramError": "The program has no meaning",
    "ShapeError": "Sizes disagree, or cannot be found",
    "BoundsError": "An access leaves its tensor, or an element is written twice",
    "DtypeError": "The type of an argument",
    "ArgumentError": "Arguments that are missing, or too many",
}


def tables() -> str:
    """A table for each class of errors."""
    rows: dict[str, list[str]] = {name: [] for name in ORDER}
    for path in FILES:
        case, _ = split(path)
        error = error_of(case)
        fault = error.faults[0]
        rows[type(error).__name__].append(f"| {_shown(case)} | {_words(fault.message)} | {_words(fault.hint)} |")
        _check(fault)
    parts = []
    for name in ORDER:
        head = f"### {TITLES[name]}\n\n`{name}`\n\n| what is written | what is said | the cure |\n| --- | --- | --- |\n"
        parts.append(head + "\n".join(rows[name]) + "\n")
    return "\n".join(parts)


def _check(fault: Fault) -> None:
    assert fault.hint, f"{fault.message}: no cure"


def _shown(case: str) -> str:
    """The program and the arguments of a case, in one cell."""
    lines = [line for line in case.splitlines() if line.strip()]
    return "<br>".join(_code(line) for line in lines) or "(nothing)"


def _code(line: str) -> str:
    marks = "``" if "`" in line else "`"
    indent = "&emsp;" * (-(-(len(line) - len(line.lstrip())) // 4))
    return f"{indent}{marks}{_escaped(line.strip())}{marks}"


def _words(text: str) -> str:
    """A message: code between its own backticks, the rest as it is."""
    parts = text.replace("\n", " ").split("`")
    if len(parts) % 2 == 0:
        return _escaped("`".join(parts))
    return "`".join(_escaped(part) if k % 2 else _plain(part) for k, part in enumerate(parts))


def _plain(text: str) -> str:
    for sign in "\\*_[]<>":
        text = text.replace(sign, f"\\{sign}")
    return _escaped(text)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def page(text: str) -> str:
    """The page with the tables as they are now."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, "the mark of the tables is missing"
    assert end, "the end of the tables is missing"
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
