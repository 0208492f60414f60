"""Verdicts: what was certified once need not be again, in this process or, kept beside the kernels, in a later one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

_known: set[str] = set()

PARTS = ("language", "rules", "plan", "interpret", "trust", "run")  # of the package: what a verdict depends on


@cache
def _stamp() -> str:
    """The code that made and judged a program: a verdict is not that of another version."""
    package = Path(__file__).parent.parent
    files = sorted(path for part in PARTS for path in (package / part).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def certified(subject: tuple[object, ...], certify: Callable[[], bool]) -> None:
    """Runs `certify`, which raises on a wrong program, unless the same subject passed before."""
    text = repr(subject)
    if text in _known:
        return
    from ..run import cache as disk  # Numba is imported where something is compiled, not before

    name = hashlib.sha256(f"{_stamp()}\n{text}".encode()).hexdigest() + ".verdict"
    if disk.read(name) is None:
        shown = certify()
        disk.write(name, b"shown" if shown else b"not shown")
    _known.add(text)
