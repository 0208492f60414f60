"""The standard library: `.loop` files of definitions, inside the installed package or beside it in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .errors import ArgumentError
from .language import ir, render
from .language.hints import closest
from .language.parse import Source, parse

SUFFIX = ".loop"


@cache
def folder() -> Path:
    """Where kernels/ lies: in the package when installed from a wheel, beside it in a checkout."""
    here = Path(__file__).parent
    inside = here / "kernels"
    return inside if inside.is_dir() else here.parent / "kernels"


@cache
def _files() -> tuple[Path, ...]:
    return tuple(sorted(folder().rglob(f"*{SUFFIX}")))


@cache
def _read(path: Path) -> Source:
    return parse(path.read_text(encoding="utf-8"))


@cache
def definitions() -> dict[str, ir.Loops]:
    """Every definition of the standard library, by name."""
    return {name: loops for path in _files() for name, loops in _read(path).definitions.items()}


def source_of(path_or_name: str | Path) -> tuple[Source, str]:
    """The parsed file and the definition asked for: an op of the library, or that of a `.loop` file."""
    text = str(path_or_name)
    if not text.endswith(SUFFIX):
        for path in _files():
            if text in _read(path).definitions:
                return _read(path), text
        hint = (
            closest(text, list(definitions())) or "see ts.ops() for the standard library, or give a .loop file's path"
        )
        raise ArgumentError(f"there is no op {text[:80]!r}", hint=hint)
    path = Path(path_or_name)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # a path with a NUL byte, a file that is no text
        raise ArgumentError(f"{text[:200]} cannot be read: {error}", hint="give the path of a .loop file") from error
    source = parse(content)
    if not source.definitions:
        return source, ""
    return source, path.stem if path.stem in source.definitions else list(source.definitions)[-1]


class Ops(dict[str, str]):
    """The standard library's ops by name; prints as one line each."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {line}" for name, line in self.items())

    __repr__ = __str__


def ops() -> Ops:
    """Every op of the standard library with its signature."""
    return Ops({name: _signature(loops) for name, loops in sorted(definitions().items())})


def _signature(loops: ir.Loops) -> str:
    assert loops.header is not None
    return render.header(loops.header).removeprefix("def ").removesuffix(":")
