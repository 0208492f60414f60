"""Verdicts: what was certified once need not be again, in this process or, kept beside the kernels, in a later one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

_known: set[str] = set()


def certified(subject: tuple[object, ...], certify: Callable[[], bool]) -> None:
    """Runs `certify`, which raises on a wrong program, unless the same subject passed before."""
    text = repr(subject)
    if text in _known:
        return
    from ..run import cache as disk  # Numba is imported where something is compiled, not before

    name = hashlib.sha256(f"{disk.planners()}\n{text}".encode()).hexdigest() + ".verdict"
    if disk.read(name) is None:
        shown = certify()
        disk.write(name, b"shown" if shown else b"not shown")
    _known.add(text)
