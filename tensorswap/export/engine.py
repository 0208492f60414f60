"""The modules that run a program, as one text: an exported file carries them, so that it does what a call does."""

from __future__ import annotations

import ast
import base64
import json
import lzma
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
ENTRY = "run.runnable"
WHOLE = "kernel"  # all of it: what is in it tells kernels on disk apart
WIDTH = 116

# An exported file needs no grammar: the texts that rules speak of were parsed when it was made.
PARSE = '''"""The derivatives of scalar functions, by their texts in the table of functions."""

RULES = {}


def parse_expression(text, functions):
    return RULES[text]
'''
REPLACED = {"language.parse": PARSE}


@cache
def engine() -> str:
    """All modules that the entry imports, packed."""
    return packed(json.dumps(dict(sorted(sources().items()))).encode())


def packed(data: bytes) -> str:
    text = base64.b85encode(lzma.compress(data, preset=9)).decode()
    return "\n".join(text[k : k + WIDTH] for k in range(0, len(text), WIDTH))


def sources() -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = [ENTRY, *(f"{WHOLE}.{path.stem}" for path in (PACKAGE / WHOLE).glob("*.py"))]
    while waiting:
        module = waiting.pop()
        path = _path(module)
        if path is None or module in found:
            continue
        found[module] = REPLACED.get(module) or path.read_text(encoding="utf-8")
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        waiting += [package, *imported(found[module], package)]
    return found


def imported(source: str, package: str) -> Iterator[str]:
    """What a module may import of this package, also in the middle of a function: modules, and names in them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".") if package else []
            parts = parts[: len(parts) - node.level + 1] + (node.module.split(".") if node.module else [])
            yield ".".join(parts)
            yield from (".".join([*parts, alias.name]) for alias in node.names)


def _path(module: str) -> Path | None:
    """The file of a module; None for the package itself, of which the engine takes nothing, and for other names."""
    place = PACKAGE.joinpath(*module.split("."))
    found = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in found if module and path.is_file()), None)
