"""ts.debug: switches for calls that look closer, at the price of speed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import TracebackType

from .errors import ArgumentError
from .language.hints import closest


@dataclass(frozen=True)
class Switches:
    """What a call checks beyond what it always does."""

    validate: bool = False  # every pass of derivation and plan, before and after, through the interpreter
    nan: bool = False  # the first NaN or infinity, by statement and index
    bounds: bool = False  # every access at its read, by statement and index
    certify: bool = True  # derivatives and plans once at tiny sizes, when they are made


_switches = Switches()


def switches() -> Switches:
    """Those in force."""
    return _switches


class Debug:
    """The switches are set when it is made; at the end of a `with` they are as they were before."""

    def __init__(self, before: Switches) -> None:
        self._before = before

    def __enter__(self) -> Switches:
        return _switches

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _switches
        _switches = self._before


def debug(**given: bool) -> Debug:
    """Sets switches for all later calls of the process, or for those within `with ts.debug(nan=True):`.

    `validate`: each pass of derivation and plan is checked against the interpreter, and the one that changes the
    meaning is named. `nan`: an error names the first value that is NaN or infinite, its statement and its indices.
    `bounds`: every access is checked when it is made. `certify=False`: no check of new derivatives and plans.
    """
    global _switches
    known = [field.name for field in fields(Switches)]
    for name, value in given.items():
        if name not in known:
            hint = closest(name, known) or f"the switches are {', '.join(known)}"
            raise ArgumentError(f"ts.debug has no switch {name[:80]!r}", hint=hint)
        if not isinstance(value, bool):
            raise ArgumentError(f"the switch {name} is True or False, not {str(value)[:80]}", hint=f"{name}=True")
    before = _switches
    _switches = replace(_switches, **given)
    return Debug(before)
