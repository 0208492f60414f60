"""cached_property without a lock.

Before Python 3.12 functools' own holds one lock for all objects of a class while it computes: threads would wait for
each other, and a process that forks meanwhile would leave its child with a lock that nobody opens. Two threads may
compute the same value here; what is computed depends on the object alone, so either will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  # it stands where functools' own stood
    """Computed at the first use, then an attribute of the object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, holder: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, holder: object, owner: type) -> T: ...

    def __get__(self, holder: object | None, owner: type) -> cached_property[T] | T:
        if holder is None:
            return self
        value = self.compute(holder)
        return vars(holder).setdefault(self.name, value)  # type: ignore[no-any-return]  # the first to come, for all
