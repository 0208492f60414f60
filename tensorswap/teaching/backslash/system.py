"""System: dx = L dx + D dp with operators as entries, solved from the top (tangent) and from the bottom (adjoint)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import ArgumentError, LimitError
from ...language.hints import closest
from .cost import Work, count_work
from .equations import Entries, Equations
from .operators import MATRIX_ENTRIES, add, compose
from .picture import svg_picture, text_picture
from .spaces import Space


class System(Equations):
    """The same, solved: a program's tangent, its adjoint, and everything in between."""

    # -- solving

    def tangent(self, dp: Mapping[str, Any]) -> dict[str, Any]:
        """Forward substitution: how every node moves when parameters do. What is not given stays."""
        given = self._checked(dp, self.parameters, "parameter")
        found: dict[str, Any] = {}
        for row, space in self.nodes.items():
            terms = [e.apply(given[p]) for (y, p), e in self.D.items() if y == row and p in given]
            terms += [e.apply(found[z]) for (y, z), e in self.L.items() if y == row and z in found]
            if terms:
                found[row] = reduce(space.add, terms)
        return {name: found[name] if name in found else _zero(space) for name, space in self.nodes.items()}

    def adjoint(self, dx: Mapping[str, Any]) -> dict[str, Any]:
        """Back substitution: the gradient by every parameter, for given adjoints of nodes."""
        weights = self.multipliers(dx)
        result = {}
        for column, space in self.parameters.items():
            terms = [e.adjoint(weights[y]) for (y, p), e in self.D.items() if p == column and y in weights]
            result[column] = reduce(space.add, terms) if terms else _zero(space)
        return result

    def multipliers(self, dx: Mapping[str, Any]) -> dict[str, Any]:
        """The solution of (I - L)' v = dx: the adjoint of every node that a given one depends on."""
        given = self._checked(dx, self.nodes, "node")
        found: dict[str, Any] = {}
        for column, space in reversed(self.nodes.items()):
            terms = [given[column]] if column in given else []
            terms += [e.adjoint(found[y]) for (y, z), e in self.L.items() if z == column and y in found]
            if terms:
                found[column] = reduce(space.add, terms)
        return found

    def _checked(self, given: Mapping[str, Any], spaces: Mapping[str, Space], what: str) -> dict[str, Any]:
        unknown = next((name for name in given if name not in spaces), None)
        if unknown is not None or not given:
            named = "nothing" if unknown is None else str(unknown)
            raise ArgumentError(
                f"{named} is no {what} of the system",
                hint=closest(named, list(spaces), f"the {what}s are"),
            )
        return {name: spaces[name].checked(name, value) for name, value in given.items()}

    # -- smaller systems

    def eliminate(self, names: Sequence[str]) -> System:
        """The system without some nodes: what they passed on becomes a composition of operators."""
        self.check_nodes(names)
        L, D = dict(self.L), dict(self.D)
        for name in [node for node in self.nodes if node in names]:
            above = [(y, L.pop((y, z))) for y, z in list(L) if z == name]
            for entries in (L, D):
                below = [(column, entries.pop((y, column))) for y, column in list(entries) if y == name]
                for y, left in above:
                    for column, right in below:
                        made = compose(left, right)
                        entries[y, column] = add(entries[y, column], made) if (y, column) in entries else made
        return System({n: s for n, s in self.nodes.items() if n not in names}, self.parameters, L, D)

    def keep(self, names: Sequence[str]) -> System:
        """The system of these nodes alone."""
        self.check_nodes(names)
        return self.eliminate([name for name in self.nodes if name not in names])

    # -- as matrices, pictures and counts

    def matrices(self) -> tuple[Array, Array]:
        """L and D as plain matrices, for small systems; each block has its columns stacked."""
        rows = sum(space.dimension for space in self.nodes.values())
        columns = sum(space.dimension for space in self.parameters.values())
        if rows * max(rows, columns) > MATRIX_ENTRIES:
            raise LimitError(
                f"the system has {rows:,} rows and {columns:,} parameters; at most {MATRIX_ENTRIES:,} entries are "
                "written out",
                hint="use tangent and adjoint",
            )
        return self._matrix(self.L, self.nodes), self._matrix(self.D, self.parameters)

    def _matrix(self, entries: Entries, columns: Mapping[str, Space]) -> Array:
        row_starts, column_starts = _starts(self.nodes), _starts(columns)
        result = np.zeros((sum(s.dimension for s in self.nodes.values()), sum(s.dimension for s in columns.values())))
        for (y, z), entry in entries.items():
            block = entry.matrix()
            r, c = row_starts[y], column_starts[z]
            result[r : r + block.shape[0], c : c + block.shape[1]] = block
        return result

    def work(self, of: str | None = None, wrt: Sequence[str] | None = None) -> Work:
        """Operations for the whole Jacobian of one node, by each way to put the parentheses."""
        return count_work(self, of, wrt)

    def __str__(self) -> str:
        return text_picture(self)

    def to_svg(self) -> str:
        """The block matrix as a drawing."""
        return svg_picture(self)


def _starts(spaces: Mapping[str, Space]) -> dict[str, int]:
    return dict(zip(spaces, accumulate((s.dimension for s in spaces.values()), initial=0), strict=False))


def _zero(space: Space) -> Any:
    return space.project(np.zeros(space.shape))
