"""Side by side: some processes run a graph together. Each runs the tasks of its own shards, and all of them what
follows where the shards meet, so results travel once: a step of a training ends with the new weights everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..arrays import Array
from ..errors import SwapError
from .task_operands import Made, Operand, Room, leaves
from .tasks import Leaf, Task, execute

EVERYBODY = -1


class Channel(Protocol):
    """To the other processes."""

    def send(self, place: int, key: str, result: dict[str, Array]) -> None: ...

    def receive(self, place: int, key: str) -> dict[str, Array]:
        """What another process sends; raises its error if it failed."""

    def fail(self, error: SwapError) -> None:
        """Tells the others not to wait."""


@dataclass(frozen=True)
class Roles:
    """Who runs each task of a graph, and who reads what of a result that one process has."""

    places: int
    runs: Mapping[str, int]
    reads: Mapping[str, Mapping[int, frozenset[str]]]  # a task -> the readers elsewhere, each with the names

    def own(self, tasks: Sequence[Task], place: int) -> list[Task]:
        return [task for task in tasks if self.runs[task.key] in (place, EVERYBODY)]

    def elsewhere(self, key: str) -> dict[int, frozenset[str]]:
        """Whom the process that has a result sends it to."""
        found = dict(self.reads.get(key, {}))
        everybody = found.pop(EVERYBODY, frozenset())
        if everybody:
            found = {place: found.get(place, frozenset()) | everybody for place in range(self.places)}
        found.pop(self.runs[key], None)
        return found


def roles(tasks: Sequence[Task], outputs: Collection[Operand], places: int) -> Roles:
    """Shards are dealt out in runs of neighbours. What reads results of one process alone runs there; the rest is run
    by everybody. Outputs are read at the first place."""
    shards = 1 + max((task.shard for task in tasks if _is_shard(task)), default=0)
    runs: dict[str, int] = {}
    for task in tasks:
        found = {runs[key] for key in task.needs if key in runs}
        alone = found.pop() if len(found) == 1 else EVERYBODY
        runs[task.key] = task.shard * places // shards if _is_shard(task) else alone
    reads: dict[str, dict[int, frozenset[str]]] = {}
    readers = [(runs[task.key], operand) for task in tasks for operand in task.operands.values()]
    for reader, operand in [*readers, *((0, operand) for operand in outputs)]:
        for leaf in leaves(operand):
            if isinstance(leaf, Made) and runs.get(leaf.task, EVERYBODY) not in (EVERYBODY, reader):
                of = reads.setdefault(leaf.task, {})
                of[reader] = of.get(reader, frozenset()) | {leaf.name}
    return Roles(places, runs, reads)


def _is_shard(task: Task) -> bool:
    return isinstance(task.work, Leaf) and bool(task.work.told)


def run(
    tasks: Sequence[Task], wanted: Collection[str], parts: Roles, place: int, channel: Channel, results: dict[str, Any]
) -> dict[str, dict[str, Array]]:
    """The tasks of one process; `results` holds what it has before. Gives the results of those that are wanted."""
    own = parts.own(tasks, place)
    readers = Counter(key for task in own for key in task.needs)
    readers.update(wanted)
    room = Room()

    def arrive(keys: Collection[str]) -> None:
        for key in sorted(keys):
            if key not in results:
                results[key] = channel.receive(parts.runs[key], key)

    for task in own:
        try:
            arrive(task.needs)
            made = results[task.key] = execute(task.work, task.operands, results, room)
        except SwapError as error:
            channel.fail(error)
            raise
        if parts.runs[task.key] == place:
            for other, names in parts.elsewhere(task.key).items():
                channel.send(other, task.key, {name: made[name] for name in sorted(names)})
        readers.subtract(task.needs)
        for key in (*task.needs, task.key):
            if not readers[key]:
                del results[key]
    arrive(wanted)
    return {key: results[key] for key in wanted}
