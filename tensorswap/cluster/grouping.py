"""Grouping: the joins of a step and what follows them once, as one task. Where a few shards meet, it costs more to hand
out a task than to run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .task_operands import Joined, Made, Operand, leaves, size
from .tasks import Group, Join, Leaf, Member, Task

SHARDS = 4  # at most: beyond, joins run beside each other
PROGRAM = 2**15  # bytes of a program that goes along with a task


def grouped(
    tasks: Sequence[Task], outputs: Mapping[str, Operand], name: str
) -> tuple[tuple[Task, ...], dict[str, Operand]]:
    """The tasks of a step with those that follow the shards as one, and where the outputs are then."""
    rest = [task for task in tasks if _is_small(task)]
    keys = {task.key for task in rest}
    others = [task for task in tasks if task.key not in keys]
    made = [leaf for operand in outputs.values() for leaf in leaves(operand) if isinstance(leaf, Made)]
    asked = {leaf for task in others for operand in task.operands.values() for leaf in leaves(operand)}
    if len(rest) < 2 or any(isinstance(leaf, Made) and leaf.task in keys for leaf in asked):
        return tuple(tasks), dict(outputs)  # a shard waits for one of them: the step has several stages
    given: dict[str, Operand] = {}
    members = []
    for task in rest:
        inner: dict[str, Operand] = {}
        for own, operand in task.operands.items():
            if any(isinstance(leaf, Made) and leaf.task in keys for leaf in leaves(operand)):
                inner[own] = operand
            else:
                given[f"{task.key} {own}"] = operand
        if any(isinstance(leaf, Made) and leaf.task not in keys for o in inner.values() for leaf in leaves(o)):
            return tuple(tasks), dict(outputs)  # one operand of tasks inside and outside
        members.append(Member(task.key, task.work, tuple(task.operands), inner))
    gives = tuple(sorted({(leaf.task, leaf.name) for leaf in made if leaf.task in keys}))
    total = sum(size(leaf) for leaf in {(leaf.task, leaf.name): leaf for leaf in made if leaf.task in keys}.values())
    group = Task(name, Group(tuple(members), gives), given, rest[-1].shard, total)

    def moved(operand: Operand) -> Operand:
        if isinstance(operand, Joined):
            return Joined(tuple(map(moved, operand.parts)), operand.axis)
        if isinstance(operand, Made) and operand.task in keys:
            return replace(operand, task=name, name=f"{operand.task} {operand.name}")
        return operand

    return (*others, group), {own: moved(operand) for own, operand in outputs.items()}


def _is_small(task: Task) -> bool:
    """A join, or what runs once."""
    work = task.work
    return isinstance(work, Join) or (isinstance(work, Leaf) and not work.told and len(work.loops) <= PROGRAM)
