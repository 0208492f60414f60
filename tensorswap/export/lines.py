"""Lines of Python with their indentation, and what local variables hold in the block that is being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

Key = tuple[object, ...]


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
    def aside(self) -> Iterator[list[str]]:
        """Lines of an inner block that may not be needed: they are collected, not added."""
        outer, self.text = self.text, []
        with self.inner():
            yield self.text
        self.text = outer
