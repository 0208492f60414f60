"""Serial: the tasks of a graph in this process, one after the other; what nobody reads any more is let go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..arrays import Array
from .task_operands import Joined, Made, Operand, fetched, leaves
from .tasks import Task, execute

Told = Callable[[int, int], None]
Store = Callable[[str, int, Array], None]


class Serial:
    """Runs a graph here."""

    def run(
        self, tasks: Sequence[Task], outputs: Mapping[str, Operand], told: Told | None = None,
        store: Store | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """The outputs of a graph. `told` hears how many tasks are done, of how many. `store` takes the outputs instead,
        part by part, as soon as each is there."""
        parts: list[tuple[str, int, Operand]] = []
        for name, operand in outputs.items():
            split = operand.parts if store is not None and isinstance(operand, Joined) else (operand,)
            parts += [(name, number, part) for number, part in enumerate(split)]
        readers = Counter(key for task in tasks for key in task.needs)
        readers.update(key for _, _, part in parts for key in _needs(part))
        results: dict[str, Any] = {}
        found: dict[str, Array] = {}

        def let_go(keys: frozenset[str]) -> None:
            for key in keys:
                readers[key] -= 1
                if not readers[key]:
                    del results[key]

        def hand_out() -> None:
            for entry in list(parts):
                name, number, part = entry
                if _needs(part) <= results.keys():
                    array = fetched(part, results.__getitem__)
                    if store is None:
                        found[name] = array
                    else:
                        store(name, number, array)
                    parts.remove(entry)
                    let_go(_needs(part))

        hand_out()
        for number, task in enumerate(tasks, 1):
            results[task.key] = execute(task.work, task.operands, results)
            let_go(task.needs)
            hand_out()
            if told is not None:
                told(number, len(tasks))
        assert not parts, "every output is made by a task, or is an input"
        return {name: found[name] for name in outputs if name in found}


def _needs(operand: Operand) -> frozenset[str]:
    return frozenset(leaf.task for leaf in leaves(operand) if isinstance(leaf, Made))
