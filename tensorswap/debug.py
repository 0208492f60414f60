"""ts.debug: switches for calls that look closer, at the price of speed."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, fields
from types import TracebackType

import numpy as np

from .errors import ArgumentError
from .language.hints import closest


@dataclass(frozen=True)
class Switches:
    """What a call checks beyond what it always does."""

    validate: bool = False  # every pass of derivation and plan, before and after, through the interpreter
    nan: bool = False  # the first NaN, or an infinity in an output, by statement and index
    bounds: bool = False  # every access at its read, by statement and index
    certify: bool = True  # derivatives and plans once at tiny sizes, when they are made

    @property
    def looking(self) -> bool:
        """Whether calls look at every statement, and so go through the interpreter."""
        return self.nan or self.bounds


_lock = threading.Lock()
_layers: list[Debug] = []  # each call that still holds: later ones over earlier ones, whatever thread made them
_switches = Switches()
WATCHED = ctypes.c_int64(0)  # not zero: calls do more than run kernels


def switches() -> Switches:
    """Those in force."""
    return _switches


def _settle() -> None:
    global _switches
    _switches = Switches(**{name: value for layer in _layers for name, value in layer.given.items()})
    WATCHED.value = _switches.validate or _switches.looking


class Debug:
    """The switches hold from the call on, for all threads; at the end of a `with` those of this call are let go."""

    def __init__(self, given: dict[str, bool]) -> None:
        self.given = given
        self.entered = False
        with _lock:
            _layers.append(self)
            _settle()

    def __enter__(self) -> Switches:
        with _lock:
            if self.entered:
                raise ArgumentError(
                    "this ts.debug(...) was used before", hint="call ts.debug(...) anew for each `with`"
                )
            self.entered = True
        return _switches

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _layers[:] = [layer for layer in _layers if layer is not self]
            _settle()


def debug(*positional: object, **given: bool) -> Debug:
    """Sets switches for all later calls of the process, or for those within `with ts.debug(nan=True):`.

    `validate`: each pass of derivation and plan is checked against the interpreter, and the one that changes the
    meaning is named. `nan`: an error names the first NaN, or an infinity that comes to an output, its statement, its
    indices and the operation that made it. `bounds`: every access is checked when it is made, every `=` when it writes.
    With either, calls go through the interpreter, statement by statement. `certify=False`: no check of new derivatives
    and plans.
    """
    if positional:
        raise ArgumentError("ts.debug takes its switches by name", hint="ts.debug(nan=True)")
    known = [field.name for field in fields(Switches)]
    for name, value in given.items():
        if name not in known:
            hint = closest(name, known, "the switches are")
            raise ArgumentError(f"ts.debug has no switch {name[:80]!r}", hint=hint)
        if not isinstance(value, bool | np.bool_):
            raise ArgumentError(f"the switch {name} is True or False, not {str(value)[:80]}", hint=f"{name}=True")
    return Debug({name: bool(value) for name, value in given.items()})
