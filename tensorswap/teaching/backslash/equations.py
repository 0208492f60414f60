"""Equations: dx = L dx + D dp with operators as entries, in the order of a computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import ArgumentError
from .operators import Operator, Zero
from .spaces import Space

Entries = dict[tuple[str, str], Operator]


class Equations:
    """The block lower-triangular system of a computation.

    `nodes` are the intermediate values in the order of their computation and `parameters` what they depend on, each
    with its space. `L[y, z]` says how the node y moves with the node z before it, `D[y, p]` how it moves with the
    parameter p; entries that are left out are zero.
    """

    def __init__(
        self,
        nodes: Mapping[str, Space],
        parameters: Mapping[str, Space],
        L: Mapping[tuple[str, str], Operator],
        D: Mapping[tuple[str, str], Operator],
    ) -> None:
        self.nodes, self.parameters = dict(nodes), dict(parameters)
        self.L: Entries = dict(L)
        self.D: Entries = dict(D)
        order = {name: k for k, name in enumerate(self.nodes)}
        for (row, column), entry in (*self.L.items(), *self.D.items()):
            before = self.nodes if (row, column) in self.L else self.parameters
            if row not in order or column not in before:
                raise ArgumentError(f"the entry ({row}, {column}) is of no node and parameter of the system")
            if (row, column) in self.L and order[column] >= order[row]:
                raise ArgumentError(
                    f"L[{row}, {column}] is not below the diagonal", hint="a node depends on the nodes before it"
                )
            if entry.range != self.nodes[row] or entry.domain != before[column]:
                raise ArgumentError(
                    f"the entry ({row}, {column}) maps {entry.domain} to {entry.range}, but they are "
                    f"{before[column]} and {self.nodes[row]}"
                )

    def check_nodes(self, names: Sequence[str]) -> None:
        unknown = next((name for name in names if name not in self.nodes), None)
        if unknown is not None:
            raise ArgumentError(f"{unknown} is no node of the system", hint=f"the nodes are {', '.join(self.nodes)}")

    def entry(self, row: str, column: str) -> Operator:
        """L[row, column] or D[row, column], zero where there is none."""
        if column in self.nodes:
            return self.L.get((row, column)) or Zero(self.nodes[column], self.nodes[row])
        return self.D.get((row, column)) or Zero(self.parameters[column], self.nodes[row])
