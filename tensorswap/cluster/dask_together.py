"""Together: an attempt at a graph that some workers of a Dask cluster run side by side, each its own shards. What all
of them know at the end stays there: the next graph of a training begins with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from distributed import CancelledError, Future

from ..arrays import Array
from .dask_attempt import Attempt, Sends, needs_of
from .dask_watch import TICK, Lost
from .kept_memory import kept_memory
from .meeting import Meeting, leave
from .side_by_side import EVERYBODY, Roles, roles, run
from .silent import limits_of_workers
from .sources import digest_of
from .task_operands import Made, Operand, fetched
from .tasks import Leaf, Task


@dataclass
class Left:
    """What workers, by their addresses, were left with: arrays by content, each with the task that made it and its name
    there. All have the same."""

    parts: Mapping[str, Future] = field(default_factory=dict)
    arrays: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def serves(self, addresses: Sequence[str]) -> bool:
        return all(address in self.parts and self.parts[address].status == "finished" for address in addresses)


@dataclass(frozen=True)
class Part:
    """What one worker runs, what its tasks read that was sent before, and what it has of the part before."""

    tasks: tuple[Task, ...]
    roles: Roles
    place: int
    wanted: tuple[str, ...]
    needs: tuple[str, ...]
    left: Mapping[str, tuple[str, str]]


def run_part(
    part: Part, meeting: str, addresses: Sequence[str], results: Sequence[Any], before: Mapping[str, Any]
) -> dict[str, dict[str, Array]]:
    """A part of a graph on its worker."""
    known = dict(zip(part.needs, results, strict=True))
    known |= {digest: {"": before[key][name]} for digest, (key, name) in part.left.items()}
    tasks = [
        replace(task, work=replace(task.work, loops=known[task.work.digest][""].tobytes()))
        if isinstance(task.work, Leaf) and not task.work.loops
        else task
        for task in part.tasks
    ]
    with kept_memory(), Meeting(meeting, addresses, part.place) as others:
        return run(tasks, part.wanted, part.roles, part.place, others, known)


class Together(Attempt):
    """One try, on the workers of these addresses."""

    def __init__(self, executor: Sends, tasks: Sequence[Task], addresses: Sequence[str], left: Left) -> None:
        super().__init__(executor, tasks)
        self.addresses = addresses
        self.left = left if left.serves(addresses) else Left()
        self.begun = time.monotonic()

    def is_there(self, digest: str) -> bool:
        return digest in self.left.arrays

    def side_by_side(self, outputs: Mapping[str, Operand]) -> tuple[dict[str, Array], Left]:
        """The outputs, and what the workers have of them."""
        self.send()
        parts = roles(self.tasks, outputs.values(), len(self.addresses))
        self.futures = {
            address: self.client.submit(
                run_part, part := self.own_part(parts, place, outputs), self.run, self.addresses,
                [self.data[key] for key in part.needs], self.left.parts.get(address, {}),
                key=self.key(f"part-{place}"), workers=[address], allow_other_workers=False, pure=False,
            )
            for place, address in enumerate(self.addresses)
        }  # fmt: skip
        self.watch(self.still_there, None)
        (results,) = self.executor.gathered([self.futures[self.addresses[0]]], "a result on its way")
        placed = {name: self.placed(operand) for name, operand in outputs.items()}
        sent = {key: self.data[key] for key in needs_of(placed) if key in self.data}
        if sent:  # an output that is an input
            results |= dict(zip(sent, self.executor.gathered(list(sent.values()), "an input"), strict=True))
        found = {name: np.asarray(fetched(operand, results.__getitem__)) for name, operand in placed.items()}
        everywhere = {
            digest_of(found[name]): (operand.task, operand.name)
            for name, operand in outputs.items()
            if isinstance(operand, Made) and operand.all and parts.runs[operand.task] == EVERYBODY
        }
        return found, Left(dict(self.futures), everywhere)

    def still_there(self) -> dict[str, Future]:
        """The parts of workers. Dask would wait for ever for one that has gone: its part may run nowhere else."""
        if time.monotonic() - self.begun > TICK:
            try:
                left = self.executor.on_scheduler(limits_of_workers)
            except (OSError, CancelledError):  # the watch decides whether it is gone
                return self.futures
            gone = [address for address in self.addresses if address not in left]
            if gone:
                raise Lost(f"{gone[0]} has gone")
        return self.futures

    def release(self) -> None:
        """Whoever still waits for others need not: an attempt that is given up has none."""
        if any(part.status == "pending" for part in self.futures.values()):
            told = self.client._run(leave, self.run, workers=list(self.addresses), on_error="ignore")
            asyncio.run_coroutine_threadsafe(told, self.client.loop.asyncio_loop)
        super().release()

    def own_part(self, parts: Roles, place: int, outputs: Mapping[str, Operand]) -> Part:
        tasks, needs, left = [], set(), set()
        for task in parts.own(self.tasks, place):
            operands = {name: self.placed(operand) for name, operand in task.operands.items()}
            needs |= {key for key in needs_of(operands) if key in self.data}
            left |= {key for key in needs_of(operands) if key in self.left.arrays and key not in self.data}
            work = task.work
            if isinstance(work, Leaf) and work.digest in self.data:
                needs.add(work.digest)
                work = replace(work, loops=b"")
            tasks.append(replace(task, work=work, operands=operands))
        wanted = [key for key in needs_of(outputs) if not place or parts.runs[key] == EVERYBODY]
        known = {digest: self.left.arrays[digest] for digest in left}
        return Part(tuple(tasks), parts, place, tuple(wanted), tuple(sorted(needs)), known)
