"""The vector registers of a CPU, the tiles that fill them, and the cache of a core: of the CPU that this runs on, if no
other is assumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LINE = 64  # bytes of a line of the cache
MASKED = 32  # bytes of registers that have masks: AVX, and all that is wider
NUMBERS_TAKEN = 64  # bytes of registers whose multiply-adds read numbers of memory themselves: AVX-512
USUAL = 1 << 20  # bytes of the cache that a core has for itself, where a system tells none
LEAST, MOST = 1 << 18, 1 << 21  # a larger one is that of several cores
SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Registers:
    """How wide they are, how many there are, whether a fused multiply-add takes one lane of a register as a factor
    (NEON; elsewhere loads broadcast), and bytes of the cache that a core has for itself."""

    bytes: int
    count: int
    by_lane: bool
    cache: int = USUAL

    @property
    def masks(self) -> bool:
        """Whether loads and stores take some lanes as fast as all of them."""
        return self.bytes >= MASKED

    @property
    def takes_numbers(self) -> bool:
        """Whether a fused multiply-add reads a number of memory as a factor of all lanes (AVX-512)."""
        return self.bytes >= NUMBERS_TAKEN

    @property
    def outer(self) -> tuple[int, int]:
        """Rows and vectors of an outer tile of many columns."""
        return self.rows(2), 2

    def rows(self, vectors: int) -> int:
        """Rows of an outer tile: beside its sums there is room for a row of vectors and for one factor."""
        return next(rows for rows in (8, 6, 4) if rows * vectors + vectors + 1 <= self.count)

    @property
    def dot(self) -> tuple[int, int]:
        """Rows and columns of a dot tile, which holds the vectors of all columns and of one row."""
        rows = 4
        return rows, next(columns for columns in (4, 3, 2) if rows * columns + columns + 1 <= self.count)


_assumed: list[Registers] = []


def registers() -> Registers:
    """Those that code is written for."""
    return _assumed[-1] if _assumed else _own()


@contextmanager
def assuming(other: Registers) -> Iterator[None]:
    """Code for another CPU, to look at: no call may run meanwhile."""
    _assumed.append(other)
    try:
        yield
    finally:
        _assumed.pop()


@cache
def _own() -> Registers:
    from llvmlite.binding import get_host_cpu_features, get_process_triple  # only when something is compiled

    if str(get_process_triple()).startswith(("aarch64", "arm64")):
        return Registers(16, 32, by_lane=True, cache=cache_of_core())
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return Registers(64, 32, by_lane=False, cache=cache_of_core())
    return Registers(32 if features.get("avx2") else 16, 16, by_lane=False, cache=cache_of_core())


def cache_of_core(told: Path = SYSTEM) -> int:
    """Bytes of the cache of the second level, as Linux tells them."""
    for place in sorted(told.glob("index*")):
        try:
            level, kind, size = ((place / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue  # a container that hides them
        if level == "2" and kind != "Instruction" and size.endswith("K") and size[:-1].isdigit():
            return min(max(int(size[:-1]) << 10, LEAST), MOST)
    return USUAL
