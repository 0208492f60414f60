"""The vector registers of this CPU, and the tiles that fill them."""

from __future__ import annotations

from functools import cache

ROWS = {16: 8, 32: 6, 64: 8}  # by the width of a register in bytes: there are 32, 16 and 32 of them
VECTORS = {16: 2, 32: 2, 64: 2}


@cache
def vector_bytes() -> int:
    """The width of a vector register: AVX-512, AVX2, or NEON and SSE."""
    from llvmlite.binding import get_host_cpu_features  # only when something is compiled

    features = get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16


@cache
def multiplies_by_lane() -> bool:
    """Whether a fused multiply-add takes one lane of a register as a factor (NEON); elsewhere loads broadcast."""
    from llvmlite.binding import get_process_triple

    return str(get_process_triple()).startswith(("aarch64", "arm64"))
