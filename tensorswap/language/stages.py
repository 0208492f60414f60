"""Stages: what a program is after each pass, told to whoever watches; nobody does in an ordinary call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from .ir import Loops
from .sizes import Sizes
from .types import Kind


@dataclass(frozen=True)
class Stage:
    """The program that the pass `name` left, with its sizes if the pass was made for some."""

    name: str
    loops: Loops
    sizes: Sizes | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # of tensors, where statements do not tell


_watched: ContextVar[list[Stage] | None] = ContextVar("stages", default=None)


def tell(
    name: str, loops: Loops | Callable[[], Loops], sizes: Sizes | None = None, kinds: Mapping[str, Kind] | None = None
) -> None:
    """Called after each pass. What makes the program is called only if somebody watches."""
    found = _watched.get()
    if found is not None:
        found.append(Stage(name, loops if isinstance(loops, Loops) else loops(), sizes, kinds or {}))


@contextmanager
def watch() -> Iterator[list[Stage]]:
    """The stages of all that runs within."""
    found: list[Stage] = []
    token = _watched.set(found)
    try:
        yield found
    finally:
        _watched.reset(token)
