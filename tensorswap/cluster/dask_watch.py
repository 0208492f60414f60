"""Watch: what Dask cannot see while something is waited for, a worker that no longer answers or data that went with
one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from distributed import CancelledError, Client, Future, wait

from ..errors import ClusterError
from .silent import without_silent

TICK = 1.0  # seconds between two looks at the cluster


class Lost(Exception):
    """Something that tasks need went with a worker: the call is begun anew."""


class Watched(Protocol):
    """Whose cluster is looked after: it gives up workers that say nothing for `silent` seconds, and itself after
    `patience` seconds without any."""

    client: Client
    silent: float
    patience: float

    def on_scheduler(self, function: Callable[..., Any], **options: Any) -> Any: ...


class Watch:
    """Looks after the cluster while something is waited for."""

    def __init__(self, executor: Watched) -> None:
        self.executor, self.client, self.heard = executor, executor.client, time.monotonic()

    def look(self) -> int:
        """Gives up workers that say nothing any more; tells how many. Raises if there is nobody left for long."""
        silent, removed = self.executor.silent, 0
        try:
            left, removed = self.executor.on_scheduler(without_silent, silent=silent)
            if left:
                self.heard = time.monotonic()
        except (OSError, CancelledError):  # the scheduler is away: it may come back
            pass
        if self.client.status == "closed":
            raise ClusterError("the client of the cluster was closed during a call", hint="make another")
        if time.monotonic() - self.heard > self.executor.patience:
            raise ClusterError(
                f"the cluster has not had a worker, or not answered, for {self.executor.patience:.0f} seconds",
                hint="look at its logs; the call can be made again as soon as it is back",
            )
        return removed


def waited(futures: Sequence[Future], seconds: float) -> tuple[set[Future], set[Future]]:
    try:
        found = wait(futures, timeout=seconds)
    except TimeoutError:
        done = {future for future in futures if future.done()}
        return done, set(futures) - done
    return set(found.done), set(found.not_done)
