"""python -m tests.emulated [TEST ...]: runs tests of kernels as they are on x86-64 with AVX2; words go to pytest."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which

from .compiler import serving
from .plugin import ADDRESS, PYTHON
from .root import made

TREE = Path(__file__).parent.parent.parent
PLACE = TREE / ".emulated"
KERNELS = (
    "blocks_at_rest",
    "compiled",
    "edges_of_plans",
    "empty_axes",
    "far_tensors",
    "functions",
    "gathered_products",
    "golden",
    "guards",
    "kernel_ir",
    "laid",
    "not_finite",
    "patterns",
    "ragged",
    "register_blocks",
    "rolling_buffers",
    "shared_tiles",
    "short_blocks",
    "team",
    "thin_products",
    "together",
    "turned",
    "vector_steps",
    "whole_numbers",
    "wide_steps",
    "window_sums",
    "winners",
)  # what kernels compute, on small arrays


def main(words: list[str]) -> int:
    if platform.machine() == "x86_64":
        print("this is x86-64: `make test` runs these tests")
        return 0
    qemu = which("qemu-x86_64") or which("qemu-x86_64-static")
    if qemu is None:
        print("qemu-x86_64 is not installed (Debian: qemu-user)")
        return 1
    root = made(PLACE)
    python = next((root / "usr/bin").glob("python3.*"))
    runs = [words] if words else [[f"tests/test_{name}.py"] for name in KERNELS]
    with tempfile.TemporaryDirectory() as own, ThreadPoolExecutor(os.cpu_count()) as pool:
        settings = {
            "HOME": own,
            "PATH": os.defpath,
            "PYTHONPATH": f"{TREE}:{root / 'packages'}",
            "QEMU_CPU": "max",
            "TENSORSWAP_CACHE": f"{own}/kernels",
            ADDRESS: f"{own}/compiler",
        }
        emulated = Path(own) / "python"  # what tests start, too
        emulated.write_text(f'#!/bin/sh\nexec {qemu} -L {root} {python} "$@"\n')
        emulated.chmod(0o755)
        settings[PYTHON] = str(emulated)
        pytest = [emulated, "-m", "pytest", "-p", "tests.emulated.plugin", "-p", "no:cacheprovider"]

        def passed(tests: list[str]) -> bool:
            done = subprocess.run([*pytest, *tests], env=settings, cwd=TREE, stdout=subprocess.PIPE, text=True)
            lines = done.stdout.splitlines()
            print(" ".join(tests), lines[-1] if done.returncode == 0 else done.stdout, sep=": ", flush=True)
            return done.returncode == 0

        with serving(settings[ADDRESS]):
            return 0 if all([*pool.map(passed, runs)]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
