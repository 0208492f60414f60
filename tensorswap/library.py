"""The standard library: `.loop` files of definitions, inside the installed package or beside it in a checkout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from .errors import ArgumentError
from .language import ir
from .language.functions import FUNCTIONS
from .language.hints import closest
from .language.parse import Source, parse

if TYPE_CHECKING:
    from pathlib import Path  # its import takes longer than a program that is no file

SUFFIX = ".loop"
DEFINITION = re.compile(r"^def ([A-Za-z_][A-Za-z0-9_]*)\(", re.MULTILINE)


@cache
def folder() -> Path:
    """Where kernels/ lies: in the package when installed from a wheel, beside it in a checkout."""
    from pathlib import Path

    here = Path(__file__).parent
    inside = here / "kernels"
    return inside if inside.is_dir() else here.parent / "kernels"


@cache
def _files() -> tuple[Path, ...]:
    return tuple(sorted(folder().glob(f"*{SUFFIX}")))


@cache
def models() -> dict[str, Path]:
    """Whole models, by name: each has a file of its own."""
    return {path.stem: path for path in sorted((folder() / "models").glob(f"*{SUFFIX}"))}


class Definitions(Mapping[str, ir.Loops]):
    """Definitions by name, each parsed when it is first asked for: a program needs few of them."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.texts = {name: text for path in files for name, text in _apart(path.read_text(encoding="utf-8")).items()}
        self.parsed: dict[str, ir.Loops] = {}

    def __getitem__(self, name: str) -> ir.Loops:
        if name not in self.parsed:
            self.parsed[name] = parse(self.texts[name], FUNCTIONS).definitions[name]
        return self.parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


def _apart(text: str) -> dict[str, str]:
    """The text of each definition, on the lines that it has in its file."""
    starts = [(match[1], match.start()) for match in DEFINITION.finditer(text)]
    ends = [start for _, start in starts[1:]] + [len(text)]
    parts = [(name, start, text[start:end]) for (name, start), end in zip(starts, ends, strict=True)]
    return {name: "\n" * text.count("\n", 0, start) + part for name, start, part in parts}


@cache
def definitions() -> Definitions:
    """Every definition of the standard library."""
    return Definitions(_files())


@cache
def family(name: str) -> tuple[str, ...]:
    """The definitions of one file."""
    return tuple(_apart((folder() / f"{name}{SUFFIX}").read_text(encoding="utf-8")))


def source_of(path_or_name: str | Path) -> tuple[Source, str]:
    """The parsed text and the definition asked for: an op of the library, a model, or that of a `.loop` file."""
    text = str(path_or_name)
    if not text.endswith(SUFFIX):
        for name in (text, f"{text}_layer"):  # `relu` is a function of the language: its op is relu_layer
            if name in definitions():
                return Source({name: definitions()[name]}, None), name
        if text in models():
            return parse(models()[text].read_text(encoding="utf-8"), FUNCTIONS), text
        known = [*definitions(), *models()]
        hint = closest(text, known) or "see ts.ops() for the standard library, or give a .loop file's path"
        raise ArgumentError(f"there is no op {text[:80]!r}", hint=hint)
    from pathlib import Path

    path = Path(path_or_name)
    try:
        content = path.read_text(encoding="utf-8-sig")  # editors of Windows put a mark before the text
    except (OSError, ValueError) as error:  # a path with a NUL byte, a file that is no text
        raise ArgumentError(f"{text[:200]} cannot be read: {error}", hint="give the path of a .loop file") from error
    source = parse(content)
    if not source.definitions:
        return source, ""
    return source, path.stem if path.stem in source.definitions else list(source.definitions)[-1]


HEADER = re.compile(r"def (.*?->[^:]*):", re.DOTALL)


def signatures() -> dict[str, str]:
    """How each op is called, in one line: `softmax(input[...,j]) -> out[...,j]`."""
    texts = definitions().texts
    headers = {name: HEADER.search(text) for name, text in texts.items()}
    return {
        name: " ".join(found[1].replace("\\\n", " ").split()) for name, found in headers.items() if found is not None
    }


class Ops(dict[str, str]):
    """The standard library's ops by name; prints as one line each."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {line}" for name, line in self.items())

    __repr__ = __str__


def ops() -> Ops:
    """Every op of the standard library with what it does; `print(ts.load(name))` shows how."""
    found = {name: line for path in _files() for name, line in _described(path.read_text(encoding="utf-8")).items()}
    return Ops({name: found.get(name, "") for name in sorted(definitions())})


def _described(text: str) -> dict[str, str]:
    """The comment right above each definition."""
    found: dict[str, str] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = DEFINITION.match(line)
        if match and number and lines[number - 1].startswith("#"):
            found[match[1]] = lines[number - 1].lstrip("# ")
    return found
