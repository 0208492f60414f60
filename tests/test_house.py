"""The house is in order: a newcomer who reads a name finds one thing under it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import tensorswap

PACKAGE = Path(tensorswap.__file__).parent
REBUILT = {"lower", "kernel", "export", "run"}  # their names change with what is in them
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in REBUILT]


def test_no_two_files_have_one_name() -> None:
    names = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert {name for name, count in names.items() if count > 1} == {"scalar.py"}  # derivatives; eager numbers


def test_no_class_name_stands_twice_in_a_package() -> None:
    classes = Counter(
        (path.parent, node.name)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in classes.items() if count > 1]
