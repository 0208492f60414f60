"""Attempt: one try at a graph on the workers of a Dask cluster. Tasks go out in one message, what they need before
them; results are watched until they are there."""

from __future__ import annotations

import pickle
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
from distributed import CancelledError, Future, KilledWorker

from ..arrays import Array
from ..errors import ClusterError, LimitError, SwapError
from ..lazy import cached_property
from .dask_chunks import dask_array
from .dask_watch import TICK, Lost, Watch, Watched, waited
from .late import Late, idle_workers
from .meeting import Apart, NotTogether
from .sources import InGraph, InMemory, digest_of
from .task_operands import Held, Joined, Made, Operand, Taken, fetched, leaves, size
from .tasks import Leaf, Task, Work, execute

INLINE = 2**15  # bytes of an operand that goes along with its task
PICKED = 2**20  # bytes of a result that are not needed, for which the rest is picked out
TABLE = 2**28  # bytes of a table that is sent whole: of a larger one, rows are


class Sends(Watched, Protocol):
    """Who sends what an attempt needs, and fetches what it gives."""

    def sent(self, arrays: Mapping[str, tuple[Array, bool]], everywhere: bool) -> dict[str, Future]: ...

    def gathered(self, futures: list[Future], what: str) -> list[Any]: ...


def run_task(
    work: Work, operands: Mapping[str, Operand], names: Sequence[str], results: Sequence[Any]
) -> dict[str, Array]:
    """A task on a worker: `names` are those of the results. A program that was sent by itself comes as the last one."""
    if isinstance(work, Leaf) and not work.loops:
        work = replace(work, loops=results[-1][""].tobytes())
    return execute(work, operands, dict(zip(names, results, strict=False)))


def pick(result: Mapping[str, Array], names: tuple[str, ...]) -> dict[str, Array]:
    """Some of what a task gave, so that the rest can stay where it is."""
    return {name: result[name] for name in names}


def element(result: Mapping[str, Array], part: Made) -> Array:
    """A part of what a task gave, as a chunk of a Dask array."""
    return np.asarray(fetched(part, lambda _: result))


def named(array: Any) -> dict[str, Array]:
    """A part of a Dask array, as a result."""
    return {"": np.asarray(array, order="C")}


class Attempt:
    """One try at a graph: its futures, and the data that they need."""

    def __init__(self, executor: Sends, tasks: Sequence[Task]) -> None:
        self.executor, self.client, self.tasks = executor, executor.client, tasks
        self.run = f"tensorswap-{uuid4().hex[:12]}"
        self.futures: dict[str, Future] = {}
        self.picked: dict[tuple[str, tuple[str, ...]], Future] = {}
        self.data: dict[str, Future] = {}  # sent for this call, under the names that operands have for it
        self.names = {task.key: task.work.names for task in tasks}
        self.gives = {task.key: task.gives for task in tasks}
        self.sent: dict[tuple[int, Any], str] = {}
        self.late = Late(tasks)
        self.twins: dict[str, Future] = {}  # of tasks that are late
        self.submissions = 0
        self.begun = time.monotonic()

    # -- data

    def send(self) -> None:
        """Sends what lies in this process, all that several tasks read in one message, and the rest in another."""
        held: dict[tuple[int, Any], Held] = {}
        readers: Counter[tuple[int, Any]] = Counter()
        for task in self.tasks:
            for operand in task.operands.values():
                for leaf in leaves(self.shortened(operand)):
                    if isinstance(leaf, Held) and leaf.source.travels and not _is_inline(leaf):
                        held[_key(leaf)] = leaf
                        readers[_key(leaf)] += 1
        for everywhere in (True, False):
            arrays: dict[str, tuple[Array, bool]] = {}
            for key, leaf in held.items():
                if isinstance(leaf.source, InMemory) and (readers[key] > 1) == everywhere:
                    array = leaf.source.read(leaf.cuts)
                    whole = array.shape == leaf.source.shape
                    self.sent[key] = digest = leaf.source.digest if whole else digest_of(array)
                    if not self.is_there(digest):
                        arrays[digest] = array, leaf.source.kept
            if everywhere:
                arrays |= {
                    task.work.digest: (np.frombuffer(task.work.loops, np.uint8), True)
                    for task in self.tasks
                    if isinstance(task.work, Leaf) and len(task.work.loops) > INLINE
                }
            self.data |= self.executor.sent(arrays, everywhere)
        for key, leaf in held.items():
            if isinstance(leaf.source, InGraph):
                name = f"part {len(self.data)}"
                part = self.client.compute(leaf.source.part(leaf.cuts))
                self.data[name] = self.client.submit(named, part, key=self.key(name), pure=False)
                self.sent[key] = name

    def is_there(self, digest: str) -> bool:
        """Whether all workers have an array of this content already."""
        return False

    def shortened(self, operand: Operand) -> Operand:
        """Rows of a table that is too large to be everywhere are taken here."""
        if not isinstance(operand, Taken) or not isinstance(operand.table, Held):
            return operand
        if not operand.table.source.travels or size(operand.table) <= TABLE:
            return operand
        if id(operand) not in self.taken:
            rows = np.take(operand.table.source.read(operand.table.cuts), operand.rows, axis=operand.axis)
            self.taken[id(operand)] = Held(InMemory(rows, kept=False), tuple((0, n) for n in rows.shape))
        return self.taken[id(operand)]

    @cached_property
    def taken(self) -> dict[int, Held]:
        return {}

    def placed(self, operand: Operand) -> Operand:
        """The operand, with what was sent in the place of what lies in this process."""
        operand = self.shortened(operand)
        if isinstance(operand, Joined):
            return Joined(tuple(map(self.placed, operand.parts)), operand.axis)
        if isinstance(operand, Taken):
            table = self.placed(operand.table)
            assert isinstance(table, Held | Made)
            return replace(operand, table=table)
        if not isinstance(operand, Held) or not operand.source.travels:
            return operand
        cuts = tuple((0, n) for n in operand.shape)
        if _is_inline(operand):
            return Held(InMemory(np.array(operand.source.read(operand.cuts))), cuts)
        return Made(self.sent[_key(operand)], "", cuts, operand.dtype)

    # -- tasks

    def submit(self, outputs: Mapping[str, Operand]) -> None:
        """All tasks, and the parts of results that are needed, in one message."""
        self.send()
        keys = {task.key: self.key(task.key) for task in self.tasks}
        picks: dict[tuple[str, tuple[str, ...]], str] = {}

        def part(key: str, operands: Mapping[str, Operand]) -> str:
            names = self.picked_names(key, operands)
            return keys[key] if names is None else picks.setdefault((key, names), self.key(f"{key}-part"))

        graph: dict[str, Any] = {keys[task.key]: self.call(task, part) for task in self.tasks}
        for key in needs_of(outputs):
            part(key, outputs)
        graph |= {key: (partial(pick, names=names), keys[of]) for (of, names), key in picks.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of large graphs: an operand beyond INLINE is sent apart
            futures = self.client.get(graph, list(graph), sync=False)
        made = dict(zip(graph, futures, strict=True))
        self.futures = {task.key: made[keys[task.key]] for task in self.tasks}
        self.picked = {of: made[key] for of, key in picks.items()}

    def submitted(self, task: Task, **options: Any) -> Future:
        """Another future of a task."""
        call, results = self.call(task, self.part)
        return self.client.submit(call, results, key=self.key(task.key), pure=False, priority=-task.shard, **options)

    def call(
        self, task: Task, part: Callable[[str, Mapping[str, Operand]], Any]
    ) -> tuple[Callable[[Sequence[Any]], dict[str, Array]], list[Any]]:
        """A task as a function of results, and these; `part` gives what stands for those of other tasks."""
        operands = {name: self.placed(operand) for name, operand in task.operands.items()}
        needs = needs_of(operands)
        results = [self.data[key] if key in self.data else part(key, operands) for key in needs]
        work = task.work
        if isinstance(work, Leaf) and work.digest in self.data:
            results.append(self.data[work.digest])
            work = replace(work, loops=b"")
        return partial(run_task, work, operands, needs), results

    def key(self, name: str) -> str:
        """A name that no other submission has."""
        self.submissions += 1
        return f"{self.run}-{name}-{self.submissions}"

    def part(self, key: str, operands: Mapping[str, Operand]) -> Future:
        """What is needed of a task's result."""
        if key in self.data:
            return self.data[key]
        names = self.picked_names(key, operands)
        if names is None:
            return self.futures[key]
        if (key, names) not in self.picked:
            self.picked[key, names] = self.client.submit(
                pick, self.futures[key], names, key=self.key(f"{key}-part"), pure=False
            )
        return self.picked[key, names]

    def picked_names(self, key: str, operands: Mapping[str, Operand]) -> tuple[str, ...] | None:
        """What is needed of a task's result, if the rest is so much that it should stay where it is."""
        found: dict[str, int] = {}
        for operand in operands.values():
            for leaf in leaves(operand):
                if isinstance(leaf, Made) and leaf.task == key:
                    found[leaf.name] = max(found.get(leaf.name, 0), size(leaf))
        rest = self.gives[key] - sum(found.values())
        return tuple(sorted(found)) if rest > PICKED and len(found) < len(self.names[key]) else None

    # -- results

    def results(
        self, outputs: Mapping[str, Operand], told: Callable[[int, int], None] | None,
        store: Callable[[str, int, Array], None] | None,
    ) -> dict[str, Array]:  # fmt: skip
        self.submit(outputs)
        placed = {name: self.placed(operand) for name, operand in outputs.items()}
        if store is None:
            return self.fetched(placed, told)
        for name, operand in placed.items():
            for number, part in enumerate(operand.parts if isinstance(operand, Joined) else (operand,)):
                store(name, number, self.fetched({name: part}, told)[name])
        return {}

    def arrays(self, outputs: Mapping[str, Operand], told: Callable[[int, int], None] | None) -> dict[str, Any]:
        self.submit(outputs)
        placed = {name: self.placed(operand) for name, operand in outputs.items()}
        self.watch(lambda: self.parts(placed), told)
        chunks: list[Future] = []

        def chunk(part: Made) -> Future:
            result = self.part(part.task, {"": part})
            chunks.append(self.client.submit(element, result, part, key=self.key("chunk"), pure=False))
            return chunks[-1]

        made = {name: dask_array(operand, chunk) for name, operand in placed.items()}
        self.watch(lambda: dict(enumerate(chunks)), None)
        return made

    def parts(self, operands: Mapping[str, Operand]) -> dict[str, Future]:
        """What is needed of each task for some operands."""
        return {key: self.part(key, operands) for key in needs_of(operands)}

    def fetched(self, operands: Mapping[str, Operand], told: Callable[[int, int], None] | None) -> dict[str, Array]:
        """Outputs, when they are there."""
        futures = self.watch(lambda: self.parts(operands), told)
        values = self.executor.gathered(list(futures.values()), "a result on its way")
        results = dict(zip(futures, values, strict=True))
        return {name: np.asarray(fetched(operand, results.__getitem__)) for name, operand in operands.items()}

    def watch(
        self, wanted: Callable[[], dict[Any, Future]], told: Callable[[int, int], None] | None
    ) -> dict[Any, Future]:
        """Waits for futures, and looks after the cluster meanwhile. Which are wanted may change on the way: a task that
        is late is run by another worker too."""
        watch = Watch(self.executor)
        while True:
            futures = wanted()
            _, waiting = waited(list(futures.values()), TICK)
            for future in (*self.futures.values(), *self.picked.values(), *self.data.values(), *futures.values()):
                if future.status == "error":
                    _raise(future)
                if future.status in ("cancelled", "lost"):
                    raise Lost(f"{future.key} went with its worker")
            if told is not None:
                told(sum(future.status == "finished" for future in self.futures.values()), len(self.futures))
            if not waiting:
                return futures
            watch.look()
            self.double()

    # -- tasks that are late

    def double(self) -> None:
        """Gives tasks that are late to workers that have nothing to do. Whatever finishes first counts, once."""
        for key, twin in list(self.twins.items()):
            if self.futures[key].status == "finished" or twin.status in ("error", "cancelled", "lost"):
                del self.twins[key]
            elif twin.status == "finished":
                self.adopt(key)
        done = {key for key, future in self.futures.items() if future.status == "finished"}
        late = [key for key in self.late.found(done, time.monotonic()) if key not in self.twins]
        if not late:
            return
        try:
            idle, placed = self.executor.on_scheduler(idle_workers, keys=[self.futures[key].key for key in late])
        except (OSError, CancelledError):  # the next look at the cluster decides whether it is gone
            return
        by_key = {task.key: task for task in self.tasks}
        for key in late:
            place = placed.get(self.futures[key].key)
            others = [address for address in idle if address != place]
            if place is not None and others:
                idle.remove(others[0])
                self.twins[key] = self.submitted(by_key[key], workers=others[:1], allow_other_workers=True)

    def adopt(self, key: str) -> None:
        """The twin of a task takes its place: what waits for the task is submitted anew."""
        self.futures[key] = self.twins.pop(key)
        changed = {key}
        for task in self.tasks:
            if task.needs & changed and self.futures[task.key].status != "finished":
                changed.add(task.key)
                self.twins.pop(task.key, None)
            if task.key in changed:
                self.picked = {named: future for named, future in self.picked.items() if named[0] != task.key}
                if task.key != key:
                    self.futures[task.key] = self.submitted(task)

    def release(self) -> None:
        self.twins.clear()
        self.picked.clear()
        self.futures.clear()
        self.data.clear()


def needs_of(operands: Mapping[str, Operand]) -> tuple[str, ...]:
    """The tasks whose results some operands are made of."""
    return tuple(sorted({leaf.task for o in operands.values() for leaf in leaves(o) if isinstance(leaf, Made)}))


def _key(held: Held) -> tuple[int, Any]:
    return id(held.source), held.cuts


def _is_inline(held: Held) -> bool:
    """Small enough to go along with each task that reads it."""
    return isinstance(held.source, InMemory) and size(held) <= INLINE


def _raise(future: Future) -> None:
    """An error of a task, as the caller of a program knows it."""
    error = future.exception()
    if isinstance(error, SwapError | KilledWorker | NotTogether):
        raise error
    if isinstance(error, Apart):
        raise Lost(str(error)) from error
    if isinstance(error, MemoryError):
        raise LimitError(
            f"a worker ran out of memory: {str(error)[:200]}", hint="cut the index into more shards"
        ) from error
    if isinstance(error, pickle.UnpicklingError | ModuleNotFoundError | AttributeError):
        raise ClusterError(f"a worker cannot read a task: {str(error)[:200]}", hint="is tensorswap installed there?")
    raise ClusterError(f"a task failed: {type(error).__name__}: {str(error)[:300]}") from error
