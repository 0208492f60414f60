"""Late: which tasks take much longer than others of their kind, so that another worker may run them too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from .tasks import Task

GRACE = 3.0  # seconds by which a task may always be later than the others
TIMES = 2.0  # as long as others of its kind, at least
HEARD = 2.0  # seconds since a worker has said something that may be asked


class Late:
    """Times of tasks, as they are seen from outside: from when all is there that one needs until it is done."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.ready: dict[str, float] = {}
        self.spent: dict[Any, dict[str, float]] = {}  # by kind

    def found(self, done: set[str], now: float) -> list[str]:
        """The tasks that are late, when these are done."""
        late = []
        for task in self.tasks:
            if task.needs <= done:
                begun = self.ready.setdefault(task.key, now)
                spent = self.spent.setdefault(_kind(task), {})
                if task.key in done:
                    spent.setdefault(task.key, now - begun)
        for task in self.tasks:
            others = self.spent.get(_kind(task))
            if task.key in done or task.key not in self.ready or not others:
                continue  # done, not begun, or without anything to compare it with
            if now - self.ready[task.key] > TIMES * median(others.values()) + GRACE:
                late.append(task.key)
        return late


def _kind(task: Task) -> Any:
    """Tasks that give the same tensors do much the same work: the shards of a stage, or the joins of one."""
    return (type(task.work), *task.work.names)


async def idle_workers(dask_scheduler: Any, keys: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """On the scheduler: the workers that have nothing to do, and where each of some tasks is."""
    now, tasks = time.time(), dask_scheduler.tasks
    idle = [w.address for w in dask_scheduler.workers.values() if not w.processing and now - w.last_seen < HEARD]
    known = {key: tasks[key].processing_on for key in keys if key in tasks}
    return idle, {key: worker.address for key, worker in known.items() if worker is not None}
