"""Lines of Python with their indentation, and what local variables hold in the block that is being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Key = tuple[object, ...]


@dataclass
class Piece:
    """Lines of a block that were set aside, and what its variables hold."""

    text: list[str] = field(default_factory=list)
    held: dict[Key, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.text)


class Lines:
    def __init__(self, indent: int = 1) -> None:
        self.text: list[str] = []
        self.indent = indent
        self.held: list[dict[Key, str]] = [{}]  # one for each block around, innermost last
        self.count: dict[str, int] = {}

    def add(self, line: str) -> None:
        self.text.append("    " * self.indent + line)

    def fresh(self, prefix: str) -> str:
        """A name that no other variable of the function has."""
        number = self.count.setdefault(prefix, 0)
        self.count[prefix] += 1
        return f"{prefix}{number}"

    def find(self, key: Key) -> str | None:
        """The variable that holds something in this block, or in one around it."""
        return next((frame[key] for frame in reversed(self.held) if key in frame), None)

    def keep(self, key: Key, name: str) -> None:
        self.held[-1][key] = name

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.add(header)
        with self.inner():
            yield

    @contextmanager
    def inner(self) -> Iterator[None]:
        self.indent += 1
        self.held.append({})
        yield
        self.held.pop()
        self.indent -= 1

    @contextmanager
    def aside(self) -> Iterator[Piece]:
        """Lines of an inner block that may not be needed: they are collected, not added."""
        piece = Piece()
        outer, self.text = self.text, piece.text
        with self.inner():
            self.held[-1] = piece.held
            yield piece
        self.text = outer

    def add_block(self, header: str, piece: Piece) -> None:
        """Lines that were set aside, as a block."""
        self.add(header)
        self.text += piece.text

    def add_here(self, piece: Piece) -> None:
        """Lines that were set aside, in the block that is being written."""
        self.text += [line.removeprefix("    ") for line in piece.text]
        self.held[-1] |= piece.held
