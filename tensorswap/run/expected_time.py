"""How long a statement takes on one thread, by a guess: other threads are asked for help where that saves time.

The figures are of the right size for a core of about 3 GHz: a sum of products makes two vectors of them in a cycle, a
function takes some 40 cycles for a vector, and caches give 40 bytes in a nanosecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ..kernel.registers import registers
from ..language import ir
from ..language.build import conjuncts
from ..language.functions import is_power

PRODUCT, STEP, CALL = 0.5, 0.2, 12.0  # nanoseconds for a vector
BYTE = 0.025  # nanoseconds for a byte that is read or written
ALONE, ALONE_CALL = 0.3, 2.0  # nanoseconds for a point


def nanoseconds(
    statement: ir.Statement,
    indices: Iterable[str],
    sizes: Mapping[str, int],
    itemsize: int,
    blocks: AbstractSet[str] = frozenset(),
) -> float:
    """In vectors, where there can be any; `indices` are those that it runs for, some of them of blocks around it, each
    step of which reads all anew."""
    points = math.prod(sizes[i] for i in indices) * 0.5 ** _halvings(statement)
    nodes = list(ir.walk(statement.value))
    steps = sum(isinstance(n, ir.Binary | ir.Compare | ir.Conditional) for n in nodes)
    calls = sum(isinstance(n, ir.Call) or is_power(n) for n in nodes)
    lanes = 1 if _one_by_one(statement) else max(registers().bytes // itemsize, 1)
    inner = {*statement.indices} - blocks
    whole = [a for a in (statement.target, *statement.reads) if ir.index_names(a) >= inner]
    return points * max((PRODUCT + STEP * steps + CALL * calls) / lanes, BYTE * itemsize * len(whole))


def without_vectors(statement: ir.Statement, blocks: Sequence[str], sizes: Mapping[str, int]) -> float:
    """A guess that holds for recurrences too, whose steps wait for each other: rather too long for all else."""
    calls = sum(isinstance(n, ir.Call) for n in ir.walk(statement.value))
    return math.prod(sizes[i] for i in {*statement.indices, *blocks}) * (ALONE + ALONE_CALL * calls)


def _halvings(statement: ir.Statement) -> int:
    """How many conditions of a guard hold one index against another: each leaves about half of the points."""
    atoms = conjuncts(statement.guard)
    return sum(isinstance(atom, ir.Compare) and len(ir.index_names(atom)) > 1 for atom in atoms)


def _one_by_one(statement: ir.Statement) -> bool:
    """Whether points do not follow each other through memory, so that there are no vectors."""
    accesses = (statement.target, *statement.reads)
    gathers = any(isinstance(n, ir.Access) for a in accesses for e in a.indices for n in ir.walk(e))
    return gathers or statement.operator.startswith("arg")
