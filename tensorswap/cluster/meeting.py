"""Meeting: tasks on several workers of a Dask cluster that run at the same time and send each other results, by the
connections that Dask has. Nobody waits for a worker that is gone, or that is busy with something else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from types import TracebackType
from typing import Any

from distributed import get_worker
from distributed.protocol import to_serialize

from ..arrays import Array
from ..errors import SwapError

COMES = 10.0  # seconds that others may take until they are there
LOOKS = 1.0  # seconds between two questions whether another is still there
ANSWERS = 10.0  # seconds that it may take to answer
TAKE, ASK = "tensorswap_take", "tensorswap_ask"  # what a worker is asked by others
HERE, LATER, ELSEWHERE = "here", "later", "elsewhere"  # its answers

_meetings: dict[str, Meeting] = {}  # that this process takes part in


class Apart(Exception):
    """Another one has gone on the way: what is made so far counts nothing."""


class NotTogether(Exception):
    """The others did not come."""


class Meeting:
    """One side of a meeting, as a context. `addresses` are the workers by their places."""

    def __init__(self, name: str, addresses: Sequence[str], place: int) -> None:
        self.name, self.addresses, self.place = name, addresses, place
        self.arrived: dict[str, dict[str, Array]] = {}
        self.failed: SwapError | None = None
        self.over = False  # given up by who called it
        self.changed = threading.Condition()
        self.on_the_way: list[Future[Any]] = []
        self.worker = get_worker()

    def __enter__(self) -> Meeting:
        listen()
        _meetings[self.name] = self
        try:
            self.wait_for_others()
        except BaseException:
            del _meetings[self.name]
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            for sent in self.on_the_way if error is None else ():
                self.answer(sent)
        finally:
            del _meetings[self.name]

    def wait_for_others(self) -> None:
        deadline = time.monotonic() + COMES
        for place in self.others:
            while (found := self.state(place, NotTogether)) != HERE:
                if found == ELSEWHERE or time.monotonic() > deadline:
                    raise NotTogether(f"{self.addresses[place]} is busy")
                time.sleep(0.001)

    @property
    def others(self) -> list[int]:
        return [place for place in range(len(self.addresses)) if place != self.place]

    # -- to others

    def send(self, place: int, key: str, result: dict[str, Array]) -> None:
        arrays = {name: to_serialize(array) for name, array in result.items()}
        for sent in self.on_the_way:
            if sent.done():
                self.answer(sent)
        self.on_the_way = [sent for sent in self.on_the_way if not sent.done()]
        self.on_the_way.append(self.asked(place, TAKE, name=self.name, key=key, arrays=arrays))

    def fail(self, error: SwapError) -> None:
        options = {"name": self.name, "key": "", "arrays": {}, "error": to_serialize(error)}
        told = [self.asked(place, TAKE, **options) for place in self.others]
        for each in told:
            with suppress(Apart):  # who has gone does not wait
                self.answer(each)

    def asked(self, place: int, what: str, **options: Any) -> Future[Any]:
        call = getattr(self.worker.rpc(self.addresses[place]), what)(**options)
        return asyncio.run_coroutine_threadsafe(call, self.worker.loop.asyncio_loop)

    # -- from others

    def receive(self, place: int, key: str) -> dict[str, Array]:
        while True:
            with self.changed:
                if self.changed.wait_for(lambda: key in self.arrived or self.failed is not None or self.over, LOOKS):
                    if self.failed is not None:
                        raise self.failed
                    if self.over:
                        raise Apart("given up")
                    return self.arrived.pop(key)
            there = self.state(place, Apart) == HERE
            if not there and key not in self.arrived and self.failed is None:
                raise Apart(f"{self.addresses[place]} has gone")

    def state(self, place: int, otherwise: type[Exception]) -> str:
        """Where another worker is."""
        return str(self.told(self.asked(place, ASK, name=self.name), otherwise))

    def told(self, asked: Future[Any], otherwise: type[Exception]) -> Any:
        deadline = time.monotonic() + ANSWERS
        while not wait([asked], 0.1).done:
            if self.over or time.monotonic() > deadline:
                raise otherwise("another worker does not answer")
        try:
            return asked.result()
        except OSError as error:
            raise otherwise("another worker does not answer") from error

    def give_up(self) -> None:
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def take(self, key: str, arrays: dict[str, Array], error: SwapError | None) -> None:
        with self.changed:
            self.failed = error or self.failed
            self.arrived[key] = arrays
            self.changed.notify_all()

    def answer(self, sent: Future[Any]) -> None:
        """Of something that was sent."""
        if not self.told(sent, Apart):
            raise Apart("another worker has gone")


def listen() -> None:
    """This worker answers those that it meets, and those that come before it."""
    get_worker().handlers |= {TAKE: _take, ASK: _ask}


def leave(name: str) -> None:
    """A worker need not wait in a meeting that was given up: it has other work."""
    if name in _meetings:
        _meetings[name].give_up()


# -- on the loop of a worker


def _take(name: str, key: str, arrays: dict[str, Array], error: SwapError | None = None) -> bool:
    meeting = _meetings.get(name)
    if meeting is not None:
        meeting.take(key, arrays, error)
    return meeting is not None


def _ask(name: str) -> str:
    return HERE if name in _meetings else ELSEWHERE if _meetings else LATER
