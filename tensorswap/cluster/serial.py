"""Serial: the tasks of a graph in this process, one after the other; what nobody reads any more is let go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..arrays import Array
from .operands import Made, Operand, fetched, leaves
from .tasks import Task, execute


class Serial:
    """Runs a graph here."""

    def run(
        self, tasks: Sequence[Task], outputs: Mapping[str, Operand], told: Callable[[int, int], None] | None = None
    ) -> dict[str, Array]:
        """The outputs of a graph. `told` hears how many tasks are done, of how many."""
        wanted = [leaf.task for o in outputs.values() for leaf in leaves(o) if isinstance(leaf, Made)]
        readers = Counter(key for task in tasks for key in task.needs)
        readers.update(set(wanted))
        results: dict[str, Any] = {}
        for number, task in enumerate(tasks, 1):
            results[task.key] = execute(task.work, task.operands, results)
            for key in task.needs:
                readers[key] -= 1
                if not readers[key]:
                    del results[key]
            if told is not None:
                told(number, len(tasks))
        return {name: fetched(operand, results.__getitem__) for name, operand in outputs.items()}
