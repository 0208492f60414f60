"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from . import settings


def describe(threads: int) -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": settings.cores(),
        "threads": threads,
        "memory_bytes": memory(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def cpu_model() -> str:
    """The name that the kernel gives; ARM kernels have none, but lscpu knows their part numbers."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.lower().startswith("model name"):
                return line.split(":", 1)[1].strip()
    if shutil.which("lscpu"):
        listing = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
        for line in listing.splitlines():
            if line.startswith("Model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
