"""Every error a user can cause: one base class, and faults that show the line, a caret and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of source text: `text` is the whole source, `start` and `end` are offsets into it."""

    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    def show(self) -> str:
        """The source line with a caret under this span."""
        first = self.text.rfind("\n", 0, self.start) + 1
        last = self.text.find("\n", self.start)
        last = len(self.text) if last < 0 else last
        width = max(1, min(self.end, last) - self.start)
        line = "".join(c if c.isprintable() or c == "\t" else "?" for c in self.text[first:last])
        before = "".join("\t" if c == "\t" else " " for c in line[: self.start - first])
        if len(line) > SHOWN_COLUMNS:  # a hostile text must not make a hostile message
            at = max(0, self.start - first - SHOWN_COLUMNS // 2)
            line, before = line[at : at + SHOWN_COLUMNS], " " * (self.start - first - at)
            width = min(width, SHOWN_COLUMNS)
        return f"    {line}\n    {before}{'^' * width}"


SHOWN_COLUMNS = 160


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, where, and what would be right."""

    message: str
    span: Span | None = None
    hint: str = ""

    def __str__(self) -> str:
        where = f"line {self.span.line}, column {self.span.column}: " if self.span else ""
        shown = f"\n{self.span.show()}" if self.span else ""
        return f"{where}{self.message}{shown}" + (f"\n  {self.hint}" if self.hint else "")


class SwapError(ValueError):
    """The base of every error a user can cause. `faults` holds each thing that is wrong."""

    result: Any = None  # what a training had learned before the error

    def __init__(self, faults: str | Fault | Sequence[Fault], span: Span | None = None, hint: str = "") -> None:
        if isinstance(faults, str):
            faults = [Fault(faults, span, hint)]
        elif isinstance(faults, Fault):
            faults = [faults]
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class SyntaxFault(SwapError):
    """The text is not in the language."""


class LimitError(SwapError):
    """The text is longer, deeper or larger than the language allows."""


class ProgramError(SwapError):
    """The text parses, but the program it describes has no meaning."""


class ArgumentError(SwapError):
    """A call lacks an argument, or has one that the program does not know or cannot take."""


class DtypeError(ArgumentError, TypeError):
    """An array has a type that the program cannot use there, or an argument is of another kind than is asked for."""


class ShapeError(ArgumentError):
    """Sizes disagree, or the size of an index cannot be found."""


class BoundsError(SwapError, IndexError):
    """An access would leave its tensor, or `=` would write an element twice."""


class NumberError(SwapError):
    """Under `ts.debug(nan=True)`: a value became NaN or infinite; where, in which statement, and by which operation."""


class DerivativeError(SwapError):
    """A derivative that cannot be formed is refused, with the reason."""


class TrustError(SwapError):
    """A derivative or a plan that tensorswap made is wrong: it is refused, and should be reported."""


class GradientMismatch(SwapError):
    """gradcheck found a derivative that disagrees with central differences."""


class TrainingError(SwapError):
    """A run that went wrong on its way."""


class PackageError(SwapError, ImportError):
    """A package that a bridge leads to is not installed."""


class ClusterError(SwapError):
    """A cluster that cannot be used, or that failed more often than a call can bear."""


class SwapWarning(UserWarning):
    """Something that works, but slower or with less than was asked for; it is said once."""
