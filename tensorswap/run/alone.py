"""Alone: inside, calls run on one thread and without a library's matrix product, so that their bits depend on nothing
but their arguments: not on how many cores a machine has, nor on what else it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ALONE: ContextVar[bool] = ContextVar("tensorswap_alone", default=False)


def is_alone() -> bool:
    return _ALONE.get()


@contextmanager
def alone() -> Iterator[None]:
    """A program that is called inside is prepared so; it must not be called outside as well."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)
