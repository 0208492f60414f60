"""One planted fault: a change of the source, and the tests that must notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """`old` stands exactly once in `file`, a path within the package; `tests` are the ids of a few quick tests."""

    name: str
    kind: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str

    def planted(self, source: str) -> str:
        """The source with the fault in it."""
        count = source.count(self.old)
        if count != 1:
            raise LookupError(
                f"{self.name}: its old text stands {count} times in {self.file}: bring the row up to date"
            )
        return source.replace(self.old, self.new)
