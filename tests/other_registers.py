"""python -m tests.other_registers [NAME ...]: runs the tests of kernels as if this CPU had the registers of others.

Plans, tiles and panels follow from registers; LLVM makes code for this CPU of what is written for theirs. So one
machine sees what kernels compute on all, save for what LLVM itself would do there. It is a plugin of pytest, too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import pytest

from tensorswap.kernel.registers import Registers, assuming

from .emulated.__main__ import KERNELS, TREE

OTHERS = {
    "NEON": Registers(16, 32, by_lane=True),
    "AVX2": Registers(32, 16, by_lane=False),
    "SSE": Registers(16, 16, by_lane=False),
}
ASKED = "TENSORSWAP_TEST_REGISTERS"
MORE = ("generated", "large_products", "planner", "stencils", "vector_loops")


def pytest_configure(config: pytest.Config) -> None:
    others = assuming(OTHERS[os.environ[ASKED]])
    others.__enter__()
    config.add_cleanup(lambda: others.__exit__(None, None, None))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.other_registers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(OTHERS)}; all, if there is none")
    asked = parser.parse_args(words).names or [*OTHERS]
    unknown = [name for name in asked if name not in OTHERS]
    if unknown:
        parser.error(f"there are no registers {unknown[0]!r}")
    files = [f"tests/test_{name}.py" for name in sorted({*KERNELS, *MORE})]
    command = [sys.executable, "-m", "pytest", "-p", "tests.other_registers", "-n", "2", "-q", *files]
    failed = 0
    for name in asked:
        print(f"registers of {name}", flush=True)
        failed |= subprocess.run(command, cwd=TREE, env={**os.environ, ASKED: name}).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
