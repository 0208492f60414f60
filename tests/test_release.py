"""What a release tells of itself is the same everywhere: version, requirements, extras, links."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import tensorswap as ts

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "release" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def field(text: str, name: str) -> str:
    found = re.search(rf'^ *{name}: "?(.*?)"?$', text, flags=re.MULTILINE)
    assert found is not None, name
    return found[1]


def test_one_version() -> None:
    assert field(RECIPE, "version") == ts.__version__
    assert field(CITATION, "version") == ts.__version__
    assert f"## {ts.__version__} ({field(CITATION, 'date-released')})" in CHANGES


def test_conda_asks_for_what_pip_asks_for() -> None:
    run = RECIPE.partition("  run:\n")[2].partition("\n\n")[0]
    asked = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    assert asked == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert field(RECIPE, "license") == PROJECT["license"] == field(CITATION, "license")
    assert field(RECIPE, "summary") == PROJECT["description"]
    ((name, place),) = PROJECT["scripts"].items()
    assert f"- {name} = {place}" in RECIPE


def test_every_extra_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {
        name for page in pages for name in re.findall(r"tensorswap\[([a-z,]+)\]", page.read_text(encoding="utf-8"))
    }
    assert named
    assert {part for names in named for part in names.split(",")} <= set(PROJECT["optional-dependencies"])


def test_the_pythons_are_those_of_the_workflow() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    tested = re.findall(r'"(3\.\d+)"', workflow.partition("python: [")[2].partition("]")[0])
    prefix = "Programming Language :: Python :: "
    assert [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(f"{prefix}3.")] == tested


def test_links_of_the_readme_are_absolute_on_the_page_of_the_package() -> None:
    pytest.importorskip("hatchling", reason="hatchling builds the package")
    absolute = runpy.run_path(str(ROOT / "release" / "readme.py"))["absolute"]
    page = absolute((ROOT / "README.md").read_text(encoding="utf-8"), ts.__version__)
    links = re.findall(r"\]\(([^)]*)\)", re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE))
    assert links
    assert not [link for link in links if not link.startswith("https://")]
    assert absolute("![a](b.png) [c](d.md#e) [f](https://g)", "1.0") == (
        "![a](https://github.com/tensorswap/tensorswap/raw/v1.0/b.png) "
        "[c](https://github.com/tensorswap/tensorswap/blob/v1.0/d.md#e) [f](https://g)"
    )
