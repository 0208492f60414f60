"""Source: the data of a run as parts, epoch by epoch. What can be gone through once serves one epoch, and no part of it
is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import ArgumentError, SwapError, TrainingError

NO_DATA = "data is a dict of arrays by name, an iterable of such dicts, or a function that gives an iterable"
NOTHING = object()
PASS = "pass a list of dicts, or a function that gives a fresh iterator for each epoch: data=lambda: parts(...)"


class Source:
    """Parts of the data; `first` is looked at before the run, and is part of its first epoch."""

    def __init__(self, data: Any, epochs: int) -> None:
        self.whole = isinstance(data, Mapping)
        self.made: Callable[[], Any]
        if isinstance(data, Mapping):
            self.made = lambda: [data]
        elif callable(data):
            self.made = data
        else:
            self.made = lambda: data
            if isinstance(data, Iterator) and epochs > 1:
                raise ArgumentError(
                    f"the data can be gone through once, and there are to be {epochs} epochs",
                    hint=f"{PASS}, or epochs=1",
                )
        self.begun: Iterator[Any] | None = self._parts()
        self.first: Any = next(self.begun, NOTHING)
        if self.first is NOTHING:
            raise ArgumentError("the data gives nothing", hint=PASS)

    def epoch(self) -> Iterator[Any]:
        """The parts of one epoch; none is an error, for an epoch without a step would pass unnoticed."""
        if self.begun is not None:
            begun, self.begun = self.begun, None
            yield self.first
            yield from begun
            return
        empty = True
        for part in self._parts():
            empty = False
            yield part
        if empty:
            raise TrainingError("the data gives nothing more: it can be gone through once", hint=PASS)

    def _parts(self) -> Iterator[Any]:
        """What the caller's own code gives; what it raises is told as an error of the data."""
        try:
            parts = iter(self.made())
        except SwapError:
            raise
        except Exception as error:
            raise ArgumentError(f"{NO_DATA}: {_told(error)}", hint='data={"X": x, "t": t}') from error
        while True:
            try:
                part = next(parts)
            except StopIteration:
                return
            except SwapError:
                raise
            except Exception as error:
                raise TrainingError(f"the data raised {_told(error)}") from error
            yield part


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"
