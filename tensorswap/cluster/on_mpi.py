"""On MPI: every rank makes the same call, and each runs the tasks of its own shards. A result goes from rank to rank as
the tree of the joins asks for it, and in the end to all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ClusterError, SwapError
from .serial import Store, Told
from .task_operands import Joined, Made, Operand, fetched, leaves
from .tasks import Task, execute
from .versions import refuse_others, versions

Description = list[tuple[str, str, tuple[int, ...]]]  # name, type and shape of each array of a result


class OnMpi:
    """Runs graphs on the ranks of a communicator: `client=MPI.COMM_WORLD`."""

    def __init__(self, communicator: Any) -> None:
        self.communicator = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        refuse_others({f"of rank {k}": found for k, found in enumerate(communicator.allgather(versions()))})

    def run(
        self, tasks: Sequence[Task], outputs: Mapping[str, Operand], told: Told | None = None,
        store: Store | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """The outputs of a graph, on every rank; `store` takes them instead."""
        shards = max(task.shard for task in tasks) + 1
        owner = {task.key: task.shard * self.size // shards for task in tasks}
        results: dict[str, Any] = {}  # of a task that failed, its error
        for number, task in enumerate(tasks, 1):
            for key in sorted(task.needs):
                self.move(key, owner[key], owner[task.key], _names(task.operands, key), results)
            if owner[task.key] == self.rank:
                results[task.key] = _result(task, results)
            if told is not None:
                told(number, len(tasks))
        own = [result for result in results.values() if isinstance(result, SwapError)]
        failed = next((errors[0] for errors in self.communicator.allgather(own) if errors), None)
        if failed is not None:
            raise failed
        return self.collected(outputs, owner, results, store)

    def move(self, key: str, source: int, target: int, names: Sequence[str], results: dict[str, Any]) -> None:
        """Brings arrays of a result, or its error, to the rank that needs them."""
        if source == target or self.rank not in (source, target):
            return
        if self.rank == source:
            result = results[key]
            if isinstance(result, SwapError):
                self.communicator.send(result, dest=target)
                return
            arrays = [np.asarray(result[name], order="C") for name in names]
            described: Description = [(n, a.dtype.str, a.shape) for n, a in zip(names, arrays, strict=True)]
            self.communicator.send(described, dest=target)
            for array in arrays:
                self.communicator.Send(array, dest=target)
            return
        found = self.communicator.recv(source=source)
        if isinstance(found, SwapError):
            results[key] = found
            return
        received = {}
        for name, dtype, shape in found:
            received[name] = np.empty(shape, dtype)
            self.communicator.Recv(received[name], source=source)
        results[key] = received

    def collected(
        self, outputs: Mapping[str, Operand], owner: Mapping[str, int], results: dict[str, dict[str, Array]],
        store: Store | None,
    ) -> dict[str, Array]:  # fmt: skip
        """The outputs on every rank, or in its storage."""
        found: dict[str, Array] = {}
        for name, operand in outputs.items():
            parts = operand.parts if store is not None and isinstance(operand, Joined) else (operand,)
            for number, part in enumerate(parts):
                made: dict[str, dict[str, Array]] = {}
                for key in sorted({leaf.task for leaf in leaves(part) if isinstance(leaf, Made)}):
                    made[key] = self.everywhere(results.get(key), owner[key], _names({"": part}, key))
                array = np.asarray(fetched(part, made.__getitem__))
                if store is None:
                    found[name] = array
                else:
                    store(name, number, array)
        return found

    def everywhere(self, result: dict[str, Array] | None, owner: int, names: Sequence[str]) -> dict[str, Array]:
        described: Description = []
        if self.rank == owner:
            assert result is not None
            described = [(name, result[name].dtype.str, result[name].shape) for name in names]
        described = self.communicator.bcast(described, root=owner)
        made: dict[str, Array] = {}
        for name, dtype, shape in described:
            own = result[name] if self.rank == owner and result is not None else np.empty(shape, dtype)
            made[name] = np.asarray(own, order="C")
            self.communicator.Bcast(made[name], root=owner)
        return made


def _result(task: Task, results: Mapping[str, Any]) -> Any:
    """What a task gives, or the error that keeps it from giving anything."""
    failed = [results[key] for key in sorted(task.needs) if isinstance(results[key], SwapError)]
    if failed:
        return failed[0]
    try:
        return execute(task.work, task.operands, results)
    except SwapError as error:
        return error
    except Exception as error:  # the other ranks would wait for ever
        return ClusterError(f"a task failed: {type(error).__name__}: {str(error)[:300]}")


def _names(operands: Mapping[str, Operand], key: str) -> list[str]:
    """What is read of a task's result."""
    return sorted({m.name for o in operands.values() for m in leaves(o) if isinstance(m, Made) and m.task == key})
