"""Sharded: a program that is cut along an index; called as the program is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, LimitError
from ..interpret import reference
from ..language.hints import closest
from ..program import Program, shapes_as_arrays
from ..room import bytes_of, shown
from ..run.arguments import defaults
from ..run.call import check_origin
from .local_cluster import distributed, local_client
from .serial import Serial, Store, Told
from .shard_plan import ShardPlan, needed, plan_of
from .sources import InMemory, source
from .storage import Storage
from .task_graph import Graph, Graphs
from .task_operands import Held, Operand, Plain, size, whole
from .tasks import Task

SHARDS = 8  # whatever the number of workers: so that the bits of a result do not depend on it
HERE = "serial"
DASK = "dask"  # outputs stay on the workers; a folder of this name is "./dask"


class Executor(Protocol):
    """Whoever runs the tasks of a graph."""

    def run(
        self, tasks: Sequence[Task], outputs: Mapping[str, Operand], told: Told | None = None,
        store: Store | None = None,
    ) -> dict[str, Array]: ...  # fmt: skip


@runtime_checkable
class KeepsArrays(Protocol):
    """One that can leave outputs where they were made."""

    def arrays(
        self, tasks: Sequence[Task], outputs: Mapping[str, Operand], told: Told | None = None
    ) -> dict[str, Any]: ...


@runtime_checkable
class RunsTogether(Protocol):
    """One whose workers can run a long graph of few shards without being told each task."""

    def together(self, tasks: Sequence[Task], outputs: Mapping[str, Operand], shards: int) -> dict[str, Array]: ...


class OfProgram:
    """What is called as a program is, and computes the same in another way."""

    program: Program

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.program.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.program.outputs

    def __str__(self) -> str:
        return str(self.program)


class Sharded(OfProgram):
    """A program whose calls run as shards of an index: `p.shard("b")` gives one."""

    def __init__(
        self, program: Program, indices: Sequence[str], shards: Sequence[int] | None, executor: Executor | None,
        memory: int | None, out: str | Path | None,
    ) -> None:  # fmt: skip
        self.program, self.indices, self.shards = program, tuple(indices), shards
        self._executor, self.memory, self.out = executor, memory, out
        self.graphs = Graphs()
        self.told: Told | None = None  # hears of each call how many tasks are done, of how many

    def __repr__(self) -> str:
        return f"<{', '.join(self.indices)} sharded of {self.program!r}>"

    @property
    def executor(self) -> Executor:
        """Who runs the tasks: the cluster of this machine, if nobody else is to."""
        if self._executor is None:
            self._executor = executor_of(None)
        return self._executor

    def __call__(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any:
        """Runs the program. One output: that array; several: a dict by name."""
        operands, sizes, arguments = self._operands(self.program._arguments(mapping, arrays))
        self._check_origin(operands, arguments)
        made = self._graph(operands, sizes, arguments)
        results = self._run(made)
        single = self.program._single
        return results if single is None else results[single]

    @property
    def dashboard(self) -> str:
        """The address of Dask's page, if a cluster of Dask's runs the shards."""
        return str(getattr(self.executor, "dashboard", ""))

    def _run(self, made: Graph) -> dict[str, Any]:
        if self.out == DASK:
            executor = self.executor
            if not isinstance(executor, KeepsArrays):
                raise ArgumentError(
                    'out="dask" gives arrays on the workers of a Dask cluster', hint="client=Client(address)"
                )
            return executor.arrays(made.tasks, made.outputs, self.told)
        total = sum(map(size, made.outputs.values()))
        if self.out is None and (self.memory is None or total <= self.memory // 2):
            return self.executor.run(made.tasks, made.outputs, self.told)
        storage = Storage(made.outputs, None if self.out is None else Path(self.out))
        try:
            self.executor.run(made.tasks, made.outputs, self.told, storage)
            return storage.results()
        finally:
            storage.discard()

    def plan(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> ShardPlan:
        """What a call with these arrays (or shapes) cuts, what travels, what a worker needs, how long it may take."""
        given = shapes_as_arrays(self.program._arguments(mapping, arrays))
        operands, sizes, arguments = self._operands(given)
        return plan_of(self._graph(operands, sizes, arguments), operands)

    def _operands(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Operand], dict[str, int], dict[str, Any]]:
        """The arrays of a call, and the numbers that are part of the program."""
        loops = self.program._for_call(arguments).loops
        given = {**defaults(loops), **arguments}
        operands: dict[str, Operand] = {}
        sizes: dict[str, int] = {}
        for name, value in given.items():
            if name not in loops.inputs:
                sizes[name] = value
            elif type(value) in (bool, int, float):
                operands[name] = Plain(value)
            else:
                found = source(loops, name, value)
                operands[name] = Held(found, whole(found.shape))
        return operands, sizes, given

    def _graph(self, operands: Mapping[str, Operand], sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> Graph:
        loops = self.program._for_call(arguments).loops
        if self.shards is not None or self.memory is None:
            counts = self.shards or [SHARDS, *([1] * (len(self.indices) - 1))]
            made = self.graphs.graph(loops, operands, sizes, tuple(zip(self.indices, counts, strict=True)))
            self._check_memory(made)
            return made
        made = self.graphs.graph(loops, operands, sizes, [(index, 1) for index in self.indices])
        extents = [made.division.sizes.index.get(index, 1) for index in self.indices]
        counts = [1] * len(self.indices)
        while max(map(needed, made.tasks)) > self.memory:
            # the index whose parts are still the longest is cut once more
            place = max(range(len(counts)), key=lambda k: extents[k] / counts[k])
            if counts[place] >= extents[place]:
                self._check_memory(made)
            counts[place] = min(2 * counts[place], extents[place])
            made = self.graphs.graph(loops, operands, sizes, tuple(zip(self.indices, counts, strict=True)))
        return made

    def _check_memory(self, made: Graph) -> None:
        largest = max(made.tasks, key=needed)
        if self.memory is not None and needed(largest) > self.memory:
            parts = sorted(((size(o), name) for name, o in largest.operands.items()), reverse=True)
            told = "; ".join(f"{name.split(' ')[-1]} takes {shown(count)}" for count, name in parts[:3])
            raise LimitError(
                f"a shard needs {shown(needed(largest))}, more than the {shown(self.memory)} that it may have: {told}",
                hint='give it more memory, or cut along another index too: p.shard(["i", "j"], memory=...)',
            )

    def _check_origin(self, operands: Mapping[str, Operand], arguments: Mapping[str, Any]) -> None:
        """A derivative is refused where its program would be. What depends on sizes alone is looked at without reading
        anything; what depends on whole numbers, with these in memory."""
        origin = self.program._origin
        if origin is None:
            return
        own = {}
        for name, operand in operands.items():
            if isinstance(operand, Held):
                held = operand.source
                whole_numbers = held.dtype.kind in "iub"
                own[name] = (
                    held.read(operand.cuts)
                    if whole_numbers or (isinstance(held, InMemory) and held.array.size < 2**20)
                    else _outline(held.shape, held.dtype)
                )
            else:
                own[name] = arguments[name]
        bound = self.program._bound_origin({**arguments, **own})
        if bound is None:
            return
        reference.check(bound, values=False)
        if any(use.reads for use in bound.unproven()):
            if any(isinstance(o, Held) and not isinstance(o.source, InMemory) for o in operands.values()):
                raise LimitError(
                    "whether the program of this derivative stays in bounds depends on values that are not in memory",
                    hint="keep its accesses in bounds by a guard, or pass arrays in memory",
                )
            full = self.program._bound_origin({n: _in_memory(operands.get(n), v) for n, v in arguments.items()})
            assert full is not None
            check_origin(full)


def _outline(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.broadcast_to(np.zeros((), dtype), shape)


def _in_memory(operand: Operand | None, value: Any) -> Any:
    return operand.source.read(operand.cuts) if isinstance(operand, Held) else value


def executor_of(client: Any) -> Executor:
    """Who runs the shards: a client of Dask's, a communicator of MPI, or this process."""
    if client == HERE:
        return Serial()
    if hasattr(client, "run") and not hasattr(client, "scheduler_info"):
        return client  # type: ignore[no-any-return]  # one of ours
    if client is not None and type(client).__module__.partition(".")[0] == "mpi4py":
        from .on_mpi import OnMpi

        return OnMpi(client)
    if client is None:
        client = local_client()
    elif not hasattr(client, "scheduler_info"):
        raise ArgumentError(
            f"a cluster is a client of Dask's, not {type(client).__name__}",
            hint='client=Client(address), client="serial" for this process, or nothing for the cores of this machine',
        )
    elif not isinstance(client, distributed().Client):
        raise ArgumentError(
            f"a cluster is a client of Dask's, not the {type(client).__name__} itself", hint="client=Client(cluster)"
        )
    elif client.asynchronous:
        raise ArgumentError(
            "the client is asynchronous, and a call waits for its result", hint="client=Client(address)"
        )
    from .on_dask import OnDask

    return OnDask(client)


def shard(
    program: Program, index: Any, client: Any = None, shards: Any = None, memory: Any = None, out: Any = None
) -> Sharded:
    """`p.shard`: checks the names and numbers first."""
    names = [index] if isinstance(index, str) else list(index) if isinstance(index, list | tuple) else None
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ArgumentError(f"the index to cut along is a name, not {str(index)[:80]!r}", hint='p.shard("b")')
    known = [name for name in program.loops.indices if name.isidentifier()]
    for name in names:
        if name not in program.loops.indices and "..." not in program.loops.indices:
            hint = closest(name, known, "its indices are")
            raise ArgumentError(f"the program has no index {name[:80]!r}", hint=hint)
    limit = None if memory is None else bytes_of("memory", memory)
    executor = Serial() if client is None and memory is not None else None if client is None else executor_of(client)
    if out is not None and (not isinstance(out, str | Path) or not str(out) or "\0" in str(out)):
        raise ArgumentError(f"out is the path of a folder, not {str(out)[:80]!r}", hint='out="results"')
    return Sharded(program, names, _counts(shards, len(names)), executor, limit, out)


def _counts(shards: Any, indices: int) -> list[int] | None:
    """The number of shards along each index: a number is shared out among them, as equally as it can be."""
    if shards is None:
        return None
    given = list(shards) if isinstance(shards, list | tuple) else [shards]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given):
        raise ArgumentError(f"shards is a whole number above 0, not {str(shards)[:80]}", hint="shards=8")
    if len(given) == indices:
        return given
    if isinstance(shards, list | tuple):
        raise ArgumentError(f"shards has {len(given)} numbers for {indices} indices", hint="give one for each")
    rest, counts = given[0], []
    for left in range(indices, 0, -1):
        wanted = round(rest ** (1 / left))
        count = min((n for n in range(1, rest + 1) if rest % n == 0), key=lambda n: abs(math.log(n / max(wanted, 1))))
        counts.append(count if left > 1 else rest)
        rest //= counts[-1]
    return counts
