"""What is made or imported when it is first asked for: attributes of objects, names of a package, methods."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .forks import NO_FORK

T = TypeVar("T")
H = TypeVar("H")
P = ParamSpec("P")


class cached_property(Generic[T]):  # noqa: N801  # it stands where functools' own stood
    """Computed at the first use, then an attribute of the object: functools' cached_property without a lock.

    Before Python 3.12 functools' own holds one lock for all objects of a class while it computes: threads would wait
    for each other, and a process that forks meanwhile would leave its child with a lock that nobody opens. Two threads
    may compute the same value here; what is computed depends on the object alone, so either will do.
    """

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


def kept_with_program(function: Callable[Concatenate[H, P], T]) -> Callable[Concatenate[H, P], T]:
    """A function of a frozen program, and of further arguments that can be hashed, computed once for each: the program
    keeps the answers, which nobody changes."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def asked(program: H, /, *further: P.args, **named: P.kwargs) -> T:
        answers: dict[Any, T] = vars(program).setdefault("_answers", {})
        key = (name, *further, *named.items())
        if key not in answers:
            answers[key] = function(program, *further, **named)
        return answers[key]

    return asked


class LazyPackage(ModuleType):
    """A package whose public names are imported when they are first asked for.

    A name may be that of a submodule too: `tensorswap.program` is the function, wherever it was imported from. So what
    Python does after an import of the submodule, to make it an attribute of the package, is not done for such a name.
    """

    @NO_FORK
    def __getattr__(self, name: str) -> Any:
        """A public name, or a submodule."""
        places: Mapping[str, str] = vars(self)["_places"]
        whole = f"{self.__name__}.{places.get(name, name)}"
        if name not in places:
            spec = find_spec(whole) if name.isidentifier() and not name.startswith("_") else None
            if spec is None or spec.origin is None:  # nothing, or a folder of other files
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
            return import_module(whole)
        value = getattr(import_module(whole), name)
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self)["_places"] or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """What can be had: names that lead to another package of the same name only where that is installed."""
        bridges = {name for name in vars(self)["_places"] if name not in vars(self)["__all__"] and find_spec(name)}
        return sorted({*vars(self), *vars(self)["__all__"], *bridges} - {"_places"})


def import_when_asked(package: str, places: Mapping[str, str]) -> None:
    """Makes a package that is being imported lazy. `places` tells the submodule of each of its public names."""
    module = sys.modules[package]
    vars(module)["_places"] = dict(places)
    module.__class__ = LazyPackage


# Methods of programs that packages above them bring, since they need programs: a module and a function in it.
METHODS: dict[str, tuple[str, str]] = {}


@NO_FORK
def method(name: str) -> Callable[..., Any]:
    module, function = METHODS[name]
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
