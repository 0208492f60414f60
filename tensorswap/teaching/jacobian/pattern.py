"""Pattern: which entries of a matrix may be nonzero, what kind of matrix that makes, and how few products give it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Array, Integers, Mask
from ...errors import LimitError
from ...lazy import cached_property

DENSE_ENTRIES = 2**27  # of an array that `dense` makes


@dataclass(frozen=True, eq=False)
class Pattern:
    """The places of the nonzeros, sorted by row, then by column."""

    rows: Integers
    columns: Integers
    shape: tuple[int, int]

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def density(self) -> float:
        return self.count / max(1, self.shape[0] * self.shape[1])

    def dense(self) -> Mask:
        """As a matrix of truth values."""
        check_size(self.shape)
        result = np.zeros(self.shape, bool)
        result[self.rows, self.columns] = True
        return result

    @cached_property
    def bandwidths(self) -> tuple[int, int]:
        """How far the nonzeros reach below and above the diagonal; negative where they stay away from it."""
        if not self.count:
            return 0, 0
        distance = self.rows - self.columns
        return int(distance.max()), int(-distance.min())

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The shapes of the blocks on the diagonal, as small as they can be with contiguous rows and columns."""
        rows, columns = self.shape
        least = np.full(rows, columns, np.int64)
        greatest = np.full(rows, -1, np.int64)
        np.minimum.at(least, self.rows, self.columns)
        np.maximum.at(greatest, self.rows, self.columns)
        before = np.maximum.accumulate(greatest)[:-1]  # the last column of the rows so far
        behind = np.minimum.accumulate(least[::-1])[::-1][1:]  # the first column of the rows to come
        # rows without nonzeros stay with the block before them
        cuts = np.flatnonzero((before < behind) & (before >= 0) & (greatest[1:] >= 0)) + 1
        row_ends = [0, *(int(c) for c in cuts), rows]
        column_ends = [0, *(int(behind[c - 1]) for c in cuts), columns]
        return tuple(
            (row_ends[k + 1] - row_ends[k], column_ends[k + 1] - column_ends[k]) for k in range(len(row_ends) - 1)
        )

    @cached_property
    def kind(self) -> str:
        """What a person would call such a matrix."""
        rows, columns = self.shape
        below, above = self.bandwidths
        if not self.count:
            return "zero"
        if below == above == 0:
            return "diagonal"
        if self.count == rows * columns:
            return "dense"
        if len(self.blocks) > 1:
            shapes = set(self.blocks)
            size = f" of {self.blocks[0][0]}x{self.blocks[0][1]}" if len(shapes) == 1 else ""
            return f"block diagonal, {len(self.blocks)} blocks{size}"
        if 2 * (below + above + 1) <= min(rows, columns):
            return f"banded, {below} below and {above} above the diagonal"
        if rows == columns and min(below, above) <= 0:
            return "lower triangular" if above <= 0 else "upper triangular"
        return "sparse"

    @cached_property
    def transposed(self) -> Pattern:
        order = np.lexsort((self.rows, self.columns))
        return Pattern(self.columns[order], self.rows[order], (self.shape[1], self.shape[0]))

    @cached_property
    def colours(self) -> Integers:
        """A colour for each column, so that no row has two nonzeros of one colour; -1 for columns without nonzeros.

        Greedy, in the order of the columns: exact for diagonals, bands and blocks, a good guess elsewhere.
        """
        found = np.full(self.shape[1], -1, np.int64)
        used = [0] * self.shape[0]  # the colours of each row, as bits
        by_column = self.transposed
        starts = np.searchsorted(by_column.rows, np.arange(self.shape[1] + 1)).tolist()
        meets = by_column.columns.tolist()
        for column in np.unique(self.columns).tolist():
            rows = meets[starts[column] : starts[column + 1]]
            taken = 0
            for row in rows:
                taken |= used[row]
            free = ~taken & (taken + 1)  # the lowest bit that no row has
            for row in rows:
                used[row] |= free
            found[column] = free.bit_length() - 1
        return found

    def __str__(self) -> str:
        rows, columns = self.shape
        head = f"{rows}x{columns}, {self.kind}: {self.count} nonzeros, {100 * self.density:.3g} %"
        if max(rows, columns) > 64:
            return head
        return "\n".join([head, *("".join("*" if x else "." for x in row) for row in self.dense())])


def check_size(shape: tuple[int, ...]) -> None:
    entries = int(np.prod(shape, dtype=object)) if shape else 1
    if entries > DENSE_ENTRIES:
        raise LimitError(
            f"a dense array of the shape {shape} has {entries:,} entries; at most {DENSE_ENTRIES:,} are made",
            hint="use rows, columns and values",
        )


def pattern_of(pairs: tuple[Array, Array], shape: tuple[int, int]) -> Pattern:
    """The pattern of pairs in any order, with repetitions."""
    codes = np.unique(pairs[0].astype(np.int64) * shape[1] + pairs[1])
    return Pattern(codes // max(1, shape[1]), codes % max(1, shape[1]), shape)
