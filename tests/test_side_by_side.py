"""Graphs that several processes run side by side: the bits of one process, whoever runs what."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.cluster.serial import Serial
from tensorswap.cluster.side_by_side import EVERYBODY, roles, run
from tensorswap.cluster.sources import InMemory
from tensorswap.cluster.task_operands import Held, Made, Operand, Room, Taken, fetched, leaves
from tensorswap.cluster.tasks import Join, Leaf, Task
from tensorswap.errors import BoundsError, SwapError

from .cluster_programs import EXAMPLES, Example
from .daily import share
from .test_cluster import outputs, same, trained


class Hall:
    """Where threads leave results for each other."""

    def __init__(self, places: int) -> None:
        self.changed, self.left, self.failed = threading.Condition(), {}, None
        self.messages: Counter[tuple[int, int]] = Counter()
        self.sides = [Side(self, place) for place in range(places)]


class Side:
    def __init__(self, hall: Hall, place: int) -> None:
        self.hall, self.place = hall, place

    def send(self, place: int, key: str, result: dict[str, Any]) -> None:
        with self.hall.changed:
            assert (place, key) not in self.hall.left, "sent twice"
            self.hall.left[place, key] = result
            self.hall.messages[self.place, place] += 1
            self.hall.changed.notify_all()

    def receive(self, place: int, key: str) -> dict[str, Any]:
        with self.hall.changed:
            there = self.hall.changed.wait_for(lambda: (self.place, key) in self.hall.left or self.hall.failed, 60)
            assert there, f"{key} of {place} never came to {self.place}"
            if self.hall.failed:
                raise self.hall.failed
            return self.hall.left.pop((self.place, key))

    def fail(self, error: SwapError) -> None:
        with self.hall.changed:
            self.hall.failed = error
            self.hall.changed.notify_all()


class Together:
    """Runs graphs in threads, one for each place."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.hall = Hall(places)

    def run(self, tasks: Sequence[Task], results: Mapping[str, Operand], *_: Any) -> dict[str, Any]:
        return self.together(tasks, results, self.places)

    def together(self, tasks: Sequence[Task], results: Mapping[str, Operand], shards: int) -> dict[str, Any]:
        self.hall = Hall(self.places)
        parts = roles(tasks, results.values(), self.places)
        found = [leaf for operand in results.values() for leaf in leaves(operand)]
        wanted = {leaf.task for leaf in found if isinstance(leaf, Made)}
        with ThreadPoolExecutor(self.places) as threads:
            made = [
                threads.submit(run, tasks, wanted if not side.place else (), parts, side.place, side, {})
                for side in self.hall.sides
            ]
        first = made[0].result()
        assert all(not future.result() for future in made[1:])
        assert not self.hall.left, "something was sent that nobody reads"
        return {name: np.asarray(fetched(operand, first.__getitem__)) for name, operand in results.items()}


@pytest.mark.parametrize("places", [1, 2, 3, 5])
@pytest.mark.parametrize("example", share(EXAMPLES, 3), ids=lambda example: example.name)
def test_any_number_of_places_gives_the_bits_of_one(example: Example, places: int) -> None:
    program = example.program()
    want = outputs(program, program.shard(example.indices, client="serial", shards=example.shards)(example.arrays))
    sharded = program.shard(example.indices, client="serial", shards=example.shards)
    sharded._executor = Together(places)
    got = outputs(program, sharded(example.arrays))
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in got.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in want.items()
    }


@pytest.mark.parametrize("places", [1, 2, 4])
def test_a_training_has_the_bits_of_one_process(places: int) -> None:
    want = trained(shards=4, clip=0.5, cluster=Serial(), batch_size=50)
    assert same(trained(shards=4, clip=0.5, cluster=Together(places), batch_size=50), want)


def graph(program: ts.Program, index: str, shards: int, **arrays: Any) -> Any:
    sharded = program.shard(index, client="serial", shards=shards)
    operands, sizes, arguments = sharded._operands(arrays)
    return sharded._graph(operands, sizes, arguments)


def test_what_one_place_can_join_it_joins_and_the_top_of_the_tree_is_everywhere() -> None:
    program = ts.program("s[i] += X[b,i] ** 2\nY[i] = 2*s[i]")
    made = graph(program, "b", 8, X=np.ones((16, 3)))
    parts = roles(made.tasks, made.outputs.values(), 2)
    shards = [task for task in made.tasks if isinstance(task.work, Leaf) and task.work.told]
    joins = [task for task in made.tasks if isinstance(task.work, Join)]
    assert [parts.runs[task.key] for task in shards] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert Counter(parts.runs[task.key] for task in joins) == {0: 3, 1: 3, EVERYBODY: 1}
    executor = Together(2)
    executor.run(made.tasks, made.outputs)
    assert executor.hall.messages == {(0, 1): 1, (1, 0): 1}  # one exchange


def test_an_error_of_one_place_ends_all() -> None:
    made = graph(ts.program("Y[b] = E[t[b]]\ns += Y[b]"), "b", 4, E=np.ones(3), t=np.array([0, 1, 2, 7]))
    with pytest.raises(BoundsError, match="in the shard of b from 3 to 4"):
        Together(3).run(made.tasks, made.outputs)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_are_taken_wherever_a_table_lies(axis: int) -> None:
    random = np.random.default_rng(0)
    whole = random.standard_normal((4, 5, 6)).astype(np.float32)
    memory = bytearray(whole.nbytes + 1)
    memory[1:] = whole.tobytes()
    unaligned = np.frombuffer(memory, np.float32, offset=1, count=whole.size).reshape(whole.shape)
    turned = np.ascontiguousarray(whole.T).T
    room = Room()
    for table in (whole, unaligned, turned):
        for rows in (np.array([3, 0, 3]), np.array([1]), np.array([], np.int64)):
            taken = Taken(Held(InMemory(table), ((0, 4), (0, 5), (0, 6))), rows, axis)
            np.testing.assert_array_equal(room.taken("X", taken, table), np.take(whole, rows, axis=axis))
        for rows in (np.array([0, whole.shape[axis]]), np.array([-1])):
            with pytest.raises(IndexError, match="rows from"):
                room.taken("X", Taken(taken.table, rows, axis), table)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library of others has no such limits")
def test_memory_is_kept_during_a_run_and_given_back_after_it() -> None:
    command = """
import resource, numpy as np
from tensorswap.cluster.kept_memory import kept_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

outside = faults()
with kept_memory():
    faults()
    with kept_memory():
        pass
    inside = faults()
print(outside > 5000, inside < 1000, faults() > 5000)
"""
    done = subprocess.run(
        [sys.executable, "-c", command], env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    if platform.libc_ver()[0] == "glibc":
        assert done.stdout.split() == ["True", "True", "True"], done.stdout
