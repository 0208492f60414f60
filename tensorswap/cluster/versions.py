"""Versions: workers compute the same bits only if they have the same packages."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import ClusterError

PACKAGES = ("tensorswap", "numpy", "numba", "llvmlite")


def versions() -> dict[str, str]:
    """Of this process: what decides the bits of a result, and what is needed to read a program."""
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "machine": platform.machine()}
    for name in PACKAGES[1:]:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found | {"tensorswap": vars(sys.modules[__name__.partition(".")[0]])["__version__"]}


def refuse_others(of_workers: dict[str, Any]) -> None:
    """Raises for a worker that has other versions than this process."""
    own = versions()
    for address, found in of_workers.items():
        if not isinstance(found, dict):
            raise ClusterError(
                f"the worker {address} cannot run tensorswap: {str(found)[:200]}",
                hint=f"install tensorswap {own['tensorswap']} on every worker",
            )
        for name, wanted in own.items():
            if found.get(name) != wanted:
                raise ClusterError(
                    f"the worker {address} has {name} {found.get(name)}, this process {wanted}",
                    hint="give every worker the packages of this process: results would depend on who computes them",
                )
