"""Work: the operations of a Jacobian, by forward substitution, back substitution, and in the best order of a chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ...errors import ArgumentError
from .equations import Equations
from .operators import Operator


@dataclass(frozen=True)
class Work:
    """Counts of operations. `best` and `order` are known where the operators form a chain."""

    of: str
    wrt: tuple[str, ...]
    forward: int
    backward: int
    best: int | None
    order: str | None

    def __str__(self) -> str:
        lines = [
            f"the Jacobian of {self.of} by {', '.join(self.wrt)}",
            f"    forward, from the parameters   {self.forward:>14,} operations",
            f"    backward, from {self.of:<16}{self.backward:>14,} operations",
        ]
        if self.best is not None:
            lines.append(f"    best, {self.order:<25}{self.best:>14,} operations")
        return "\n".join(lines)

    __repr__ = __str__


def count_work(system: Equations, of: str | None, wrt: Sequence[str] | None) -> Work:
    """One column of the Jacobian for every direction of the parameters, or one row for every direction of the node."""
    target = list(system.nodes)[-1] if of is None else of
    system.check_nodes([target])
    names = list(system.parameters) if wrt is None else list(wrt)
    unknown = next((name for name in names if name not in system.parameters), None)
    if unknown is not None:
        raise ArgumentError(
            f"{unknown} is no parameter of the system", hint=f"the parameters are {', '.join(system.parameters)}"
        )
    reaching = _reaching(system, target)
    forward = 0
    for name in names:
        entries = _on_paths(system, reaching, [name])
        first = {key: e for key, e in entries.items() if key[1] == name}
        forward += _cost(system, entries, first, system.parameters[name].dimension, end=0)
    everything = _on_paths(system, reaching, names)
    first = {key: e for key, e in everything.items() if key[0] == target}
    backward = _cost(system, everything, first, system.nodes[target].dimension, end=1)
    chain = _chain(target, names, everything)
    best, order = best_order(chain) if chain else (None, None)
    return Work(target, tuple(names), forward, backward, best, order)


Place = tuple[str, str]


def _reaching(system: Equations, target: str) -> set[str]:
    """The nodes that the target depends on, and itself."""
    found = {target}
    for name in reversed(system.nodes):
        if any(z == name and y in found for y, z in system.L):
            found.add(name)
    return found


def _on_paths(system: Equations, reaching: set[str], names: Sequence[str]) -> dict[Place, Operator]:
    """The entries on a path from one of the parameters to the target."""
    entries = {key: e for key, e in system.D.items() if key[1] in names and key[0] in reaching}
    moved = {y for y, _ in entries}
    for name in system.nodes:
        if name not in reaching:
            continue
        own = {key: e for key, e in system.L.items() if key[0] == name and key[1] in moved}
        if own:
            moved.add(name)
            entries |= own
    return entries


def _cost(
    system: Equations, entries: dict[Place, Operator], first: dict[Place, Operator], directions: int, end: int
) -> int:
    """Every entry applied to all directions, and sums where several meet; what starts is a matrix that can be read."""
    total = sum(
        min(entry.matrix_cost, directions * entry.cost) if key in first else directions * entry.cost
        for key, entry in entries.items()
    )
    ends = [key[end] for key in entries]
    for name in set(ends):
        space = system.nodes[name] if name in system.nodes else system.parameters[name]
        total += directions * (ends.count(name) - 1) * space.dimension
    return total


def _chain(target: str, names: Sequence[str], entries: dict[Place, Operator]) -> list[Operator] | None:
    """The operators from the target down to a single parameter, if they stand one behind the other."""
    found: list[Operator] = []
    at = target
    while len(names) == 1 and at != names[0]:
        below = [(column, entry) for (row, column), entry in entries.items() if row == at]
        if len(below) != 1:
            return None
        at = below[0][0]
        found.append(below[0][1])
    return found or None


def best_order(chain: Sequence[Operator]) -> tuple[int, str]:
    """The least work for the matrix of a product of operators, and where its parentheses stand.

    A single operator is applied to the columns of what stands right of it, or its transpose to the rows of what stands
    left; two products that are formed are multiplied as matrices.
    """

    @cache
    def formed(first: int, last: int) -> tuple[int, str]:
        if first == last:
            return chain[first].matrix_cost, f"J{first + 1}"
        return min(way for cut in range(first, last) for way in ways(first, cut, last))

    def ways(first: int, cut: int, last: int) -> Iterator[tuple[int, str]]:
        rows, middle, columns = chain[first].shape[0], chain[cut].shape[1], chain[last].shape[1]
        (left, left_text), (right, right_text) = formed(first, cut), formed(cut + 1, last)
        text = f"({left_text} {right_text})"
        yield left + right + 2 * rows * middle * columns, text
        if first == cut:
            yield right + columns * chain[first].cost, text
        if cut + 1 == last:
            yield left + rows * chain[last].cost, text

    work, text = formed(0, len(chain) - 1)
    return work, text[1:-1] if text.startswith("(") else text
