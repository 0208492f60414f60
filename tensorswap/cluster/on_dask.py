"""On Dask: the tasks of a graph on the workers of a cluster. Dask runs them again when a worker is lost; what Dask
cannot see, a worker that no longer answers or data that went with one, makes another attempt."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster

from ..arrays import Array
from ..errors import ClusterError, LimitError
from ..room import shown
from .dask_attempt import Attempt
from .dask_together import Left, Together
from .dask_watch import TICK, Lost, Watch, waited
from .meeting import NotTogether, listen
from .shard_plan import needed
from .silent import limits_of_workers
from .task_operands import Operand, size
from .tasks import Task
from .versions import refuse_others, versions

KEPT = 2**30  # bytes of arrays that workers keep between calls
SILENT = 10.0  # seconds after which a worker that says nothing is given up
PATIENCE = 40.0  # seconds without a worker, or without an answer of the scheduler
SENT = 20.0  # seconds after which data on its way is sent again: what was meant for a worker that died may never arrive
SLOWLY = 1e6  # bytes a second that a network takes at least
ATTEMPTS = 6
TOGETHER = 8  # workers that run a graph side by side, at most: each hears of all the others


@dataclass
class _Kept:
    """What the workers of a cluster hold for us: arrays by their content, and who was asked for versions."""

    arrays: OrderedDict[str, tuple[Future, int]] = field(default_factory=OrderedDict)
    known: set[str] = field(default_factory=set)


_kept: WeakKeyDictionary[Client, _Kept] = WeakKeyDictionary()


def greeted() -> dict[str, str]:
    """What a worker that is new tells."""
    listen()
    return versions()


class OnDask:
    """Runs graphs on the workers of a client."""

    def __init__(self, client: Client, silent: float = SILENT, patience: float = PATIENCE) -> None:
        self.client, self.silent, self.patience = client, silent, patience
        self.kept = _kept.setdefault(client, _Kept())
        self.left = Left()

    @property
    def dashboard(self) -> str:
        return str(self.client.dashboard_link)

    def run(
        self, tasks: Sequence[Task], outputs: Mapping[str, Operand], told: Callable[[int, int], None] | None = None,
        store: Callable[[str, int, Array], None] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """The outputs of a graph; those that `store` takes, part by part, are not among them."""
        return self.tried(tasks, lambda _: self.attempted(tasks, lambda made: made.results(outputs, told, store)))

    def together(self, tasks: Sequence[Task], outputs: Mapping[str, Operand], shards: int) -> dict[str, Array]:
        """The outputs of a long graph of few shards, whose workers send each other what they find, without asking the
        scheduler in between."""

        def side_by_side(workers: Sequence[str]) -> dict[str, Array]:
            attempt = Together(self, tasks, sorted(workers)[:shards], self.left)
            self.left = Left()
            try:
                results, self.left = attempt.side_by_side(outputs)
                return results
            finally:
                attempt.release()

        if min(shards, len(self.workers())) in range(1, TOGETHER + 1):
            try:
                return self.tried(tasks, side_by_side)
            except NotTogether:  # one of them has other work: as tasks, wherever there is room
                pass
        return self.run(tasks, outputs)

    def arrays(
        self, tasks: Sequence[Task], outputs: Mapping[str, Operand], told: Callable[[int, int], None] | None = None
    ) -> dict[str, Any]:
        """The outputs of a graph as arrays of Dask's: what was computed stays on the workers."""
        return self.tried(tasks, lambda _: self.attempted(tasks, lambda made: made.arrays(outputs, told)))

    def attempted(self, tasks: Sequence[Task], results: Callable[[Attempt], dict[str, Any]]) -> dict[str, Any]:
        attempt = Attempt(self, tasks)
        try:
            return results(attempt)
        finally:
            attempt.release()

    def tried(self, tasks: Sequence[Task], results: Callable[[Sequence[str]], dict[str, Any]]) -> dict[str, Any]:
        """What an attempt gives, and another one if something was lost with a worker."""
        why = ""
        for _ in range(ATTEMPTS):
            workers = self.workers()
            self.check_memory(tasks, workers)
            try:
                self.check_versions(workers)
                return results(list(workers))
            except Lost as error:
                why = str(error)
            except CancelledError as error:
                why = f"tasks were lost: {str(error)[:200]}"
            except KilledWorker as error:
                why = str(error)[:300]
                break
        raise ClusterError(
            f"the workers were lost too often: {why}",
            hint="look at their logs; if they ran out of memory, cut the index into more shards",
        )

    # -- before a call

    def workers(self) -> dict[str, int]:
        """The workers, each with the bytes that it may use, as soon as there are some."""
        deadline = time.monotonic() + self.patience
        while True:
            if self.client.status == "closed":
                raise ClusterError("the client of the cluster is closed", hint="make another: Client(address)")
            found: dict[str, int] | None = None
            if self.client.status == "running":
                try:
                    found = self.on_scheduler(limits_of_workers)
                except (OSError, CancelledError):  # it is away: it may come back
                    found = None
            if found:
                return found
            if time.monotonic() > deadline:
                what = "does not answer" if found is None else "has no workers"
                raise ClusterError(f"the cluster {what}", hint="start some: dask worker ADDRESS, or cluster.scale(2)")
            time.sleep(0.1)

    def on_scheduler(self, function: Callable[..., Any], **options: Any) -> Any:
        """What a function gives on the scheduler, within its time."""
        return self.client.sync(
            self.client._run_on_scheduler, function, callback_timeout=max(self.silent, 1.0), **options
        )

    def check_versions(self, workers: Mapping[str, int]) -> None:
        """Asks the workers that are new. One that does not answer is left to be found silent."""
        new = [address for address in workers if address not in self.kept.known]
        if not new:
            return
        asked = {
            address: self.client.submit(greeted, workers=[address], allow_other_workers=False, pure=False, priority=99)
            for address in new
        }
        waited(list(asked.values()), self.silent)
        there = {address: future for address, future in asked.items() if future.status == "finished"}
        values = self.gathered(list(there.values()), "the version of a worker")
        answers = dict(zip(there, values, strict=True))
        refuse_others({**answers, **{a: f.exception() for a, f in asked.items() if f.status == "error"}})
        self.kept.known |= answers.keys()

    def check_memory(self, tasks: Sequence[Task], workers: Mapping[str, int]) -> None:
        limits = [limit for limit in workers.values() if limit]
        if not limits:
            return
        least, largest = min(limits), max(tasks, key=needed)
        if needed(largest) > least:
            parts = sorted(((size(o), n) for n, o in largest.operands.items()), reverse=True)
            told = f"; {parts[0][1].split(' ')[-1]} takes {shown(parts[0][0])} of it" if parts else ""
            raise LimitError(
                f"a shard needs {shown(needed(largest))} of memory, and a worker has {shown(least)}{told}",
                hint='cut the index into more shards, or cut along another one too: p.shard(["i", "j"], shards=...)',
            )

    # -- data

    def sent(self, arrays: Mapping[str, tuple[Array, bool]], everywhere: bool) -> dict[str, Future]:
        """Arrays on the workers, by their content: those that are `kept` stay for later calls. What is new goes in one
        message."""
        kept = self.kept.arrays
        here = {key: kept.pop(key) for key in arrays if key in kept}
        kept |= {key: entry for key, entry in here.items() if entry[0].status == "finished"}
        new = [key for key in arrays if key not in kept]
        values = [{"": np.asarray(arrays[key][0], order="C")} for key in new]
        sent: list[Future] = []
        if new:
            asked = self.client._scatter(values, hash=False, broadcast=everywhere)
            seconds = SENT + sum(arrays[key][0].nbytes for key in new) / SLOWLY
            sent = self.patiently(asked, "data on its way", seconds=seconds)
        found = {key: kept[key][0] for key in arrays if key in kept} | dict(zip(new, sent, strict=True))
        for key, future in zip(new, sent, strict=True):
            if arrays[key][1]:
                kept[key] = future, arrays[key][0].nbytes
        total = sum(count for _, count in kept.values())
        while total > KEPT and len(kept) > 1:
            _, (_, count) = kept.popitem(last=False)
            total -= count
        return found

    # -- during a call

    def gathered(self, futures: list[Future], what: str) -> list[Any]:
        """The results of futures that are finished; given up if one is lost on the way: it may never come back."""
        here = isinstance(self.client.cluster, LocalCluster)  # elsewhere a worker may be reached by the scheduler alone
        found: list[Any] = self.patiently(self.client._gather(futures, direct=here), what, futures)
        return found

    def patiently(
        self, asked: Coroutine[Any, Any, Any], what: str, of: Sequence[Future] = (), seconds: float = math.inf
    ) -> Any:
        """What a coroutine of the client gives; given up if a worker falls silent, since it may wait for that, if a
        future is not finished any more, or after some seconds."""
        end = time.monotonic() + seconds
        future = asyncio.run_coroutine_threadsafe(asked, self.client.loop.asyncio_loop)
        watch = Watch(self)
        while True:
            try:
                return future.result(TICK)
            except (OSError, CancelledError, KeyError) as error:
                if future.done():
                    raise Lost(f"{what} was lost: {str(error)[:200]}") from error
            if watch.look() or time.monotonic() > end or any(each.status != "finished" for each in of):
                future.cancel()
                raise Lost(f"{what} was lost with a worker")
