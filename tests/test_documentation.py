"""The documentation is a test: every example in README.md and docs/ runs, and its tables say what the code does.

Two kinds of fenced blocks stand on the pages. ```python blocks are doctest sessions that share one namespace per page;
```loops blocks are programs, parsed and printed and parsed again.
"""

from __future__ import annotations

import doctest
import inspect
import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tensorswap as ts
from tensorswap import errors
from tensorswap.language import limits
from tensorswap.language.functions import FUNCTIONS, KEYWORDS
from tensorswap.language.types import IDENTITY

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md", DOCS / "language.md", DOCS / "training.md", DOCS / "patterns.md", DOCS / "seeds.md",
    DOCS / "trust.md", DOCS / "house.md", DOCS / "command.md", DOCS / "pytorch.md", DOCS / "jax.md",
    DOCS / "playground.md", DOCS / "scale.md",
)  # fmt: skip
LANGUAGE = PAGES[1].read_text(encoding="utf-8")

pytestmark = pytest.mark.compiled  # as a user runs them


@dataclass(frozen=True)
class Fence:
    """A fenced block: its language, the line where its body starts, and the body."""

    language: str
    line: int
    body: str


def fences(text: str) -> Iterator[Fence]:
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        yield Fence(found[1], text.count("\n", 0, found.start(2)), found[2])


def check_sessions(text: str, name: str) -> int:
    """Runs the python blocks of a page in order, in one namespace; gives the number of examples that ran."""
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    namespace: dict[str, Any] = {}
    told: list[str] = []
    for fence in fences(text):
        if fence.language == "python":
            session = parser.get_doctest(fence.body, {}, name, name, fence.line)
            assert session.examples, f"{name}, line {fence.line}: a python block without `>>>` would not be tested"
            session.globs = namespace
            runner.run(session, out=told.append, clear_globs=False)
    assert runner.failures == 0, "".join(told)
    return runner.tries


def check_loops(text: str) -> int:
    """Parses each loops block and what it prints as; gives the number of blocks."""
    blocks = [fence for fence in fences(text) if fence.language == "loops"]
    for fence in blocks:
        program = ts.program(fence.body)
        assert ts.program(str(program)) == program, f"line {fence.line} does not parse back:\n{program}"
    return len(blocks)


def rows(first_cell: str) -> list[str]:
    """The table rows of the language page whose first cell starts so."""
    return [line for line in LANGUAGE.splitlines() if line.startswith(f"| {first_cell}")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # of the terminal that pages show
    if page.name == "pytorch.md":
        pytest.importorskip("torch", reason="PyTorch is not installed: `make bridges` runs this page")
    few = page.name in ("command.md", "house.md", "playground.md", "trust.md")
    assert check_sessions(page.read_text(encoding="utf-8"), page.name) >= (4 if few else 15)


def test_every_program_parses_back() -> None:
    assert check_loops(LANGUAGE) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_fence_is_of_a_kind_that_is_tested(page: Path) -> None:
    assert {fence.language for fence in fences(page.read_text(encoding="utf-8"))} <= {"python", "loops"}


def test_a_wrong_result_is_found() -> None:
    with pytest.raises(AssertionError, match=r"Got:\s+2"):
        check_sessions("```python\n>>> 1 + 1\n3\n```\n", "page")


def test_a_wrong_error_message_is_found() -> None:
    page = "```python\n>>> int('x')\nTraceback (most recent call last):\n    ...\nValueError: another\n```\n"
    with pytest.raises(AssertionError, match="invalid literal"):
        check_sessions(page, "page")


def test_a_block_without_a_prompt_is_found() -> None:
    with pytest.raises(AssertionError, match="would not be tested"):
        check_sessions("```python\nprint(1)\n```\n", "page")


def test_sessions_of_a_page_share_their_names() -> None:
    assert check_sessions("```python\n>>> a = 2\n```\n\n```python\n>>> a\n2\n```\n", "page") == 2


def test_a_program_that_does_not_parse_is_found() -> None:
    with pytest.raises(ts.SwapError, match="index k"):
        check_loops("```loops\ny[i] = A[i,k] * x[k]\n```\n")


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_the_table_of_functions_is_complete(function: str) -> None:
    assert len(rows(f"`{function}(")) == 1


RULES = [(row.name, rule) for row in FUNCTIONS.values() for rule in (*row.derivatives, row.branches) if rule not in "0"]
FLAT = sorted(row.name for row in FUNCTIONS.values() if row.flat and row.name != "stop")


@pytest.mark.parametrize(("function", "rule"), RULES)
def test_the_table_of_functions_shows_the_rule_in_use(function: str, rule: str) -> None:
    assert f"`{rule}`" in rows(f"`{function}(")[0]


@pytest.mark.parametrize("function", FLAT)
def test_flat_functions_are_shown_with_derivative_zero(function: str) -> None:
    assert rows(f"`{function}(")[0].endswith("| 0 |")


@pytest.mark.parametrize("operator", IDENTITY)
def test_the_table_of_operators_is_complete(operator: str) -> None:
    table = LANGUAGE.partition("| operator | each point")[2].partition("\n\n")[0]
    assert f"`{operator}`" in table


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_reserved_words_are_listed(word: str) -> None:
    reserved = LANGUAGE.partition("Do not use")[2].partition("as names")[0]
    assert f"`{word}`" in reserved


@pytest.mark.parametrize(
    ("row", "limit"),
    [
        ("length of a text", limits.TEXT_LENGTH),
        ("statements", limits.STATEMENTS),
        ("brackets within brackets", limits.NESTING),
        ("depth of an expression", limits.EXPRESSION_DEPTH),
        ("length of a name", limits.NAME_LENGTH),
        ("digits of a number", limits.DIGITS),
    ],
)
def test_the_limits_are_those_of_the_code(row: str, limit: int) -> None:
    assert re.search(rf"\| {limit:,}\b", rows(row)[0])


def test_every_error_class_is_listed() -> None:
    classes = {c.__name__ for c in vars(errors).values() if isinstance(c, type) and issubclass(c, ts.SwapError)}
    table = LANGUAGE.partition("| class | when |")[2].partition("\n\n")[0]
    assert {name for name in classes if f"`{name}`" not in table} == {"SwapError"}


def test_the_keywords_of_gradcheck_are_those_of_the_code() -> None:
    told = LANGUAGE.partition("## Checking a derivative")[2].partition("Keywords:")[2].partition("(`seed`")[0]
    parameters = inspect.signature(ts.gradcheck).parameters.values()
    assert re.findall(r"`(\w+)`", told) == [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def test_the_changelog_has_the_version() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(ts.__version__)} \(\d{{4}}-\d\d-\d\d\)", headings[1])


def _anchors(text: str) -> set[str]:
    """The link targets of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target.read_text(encoding="utf-8")), link


def test_the_drawings_are_those_of_the_script() -> None:
    drawn = runpy.run_path(str(DOCS / "draw.py"), run_name="draw")["drawings"]()
    assert {path.name for path in (DOCS / "drawings").glob("*.svg")} == drawn.keys()
    for name, text in drawn.items():
        assert (DOCS / "drawings" / name).read_text(encoding="utf-8") == text, f"run python docs/draw.py: {name} is old"
