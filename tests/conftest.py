"""The reference interpreter is the oracle of the language and its rules, so tests of those run p(...) through it.

Compiling thousands of small programs would take an hour and prove nothing about the rules. Tests marked `compiled`
call p(...) as a user does, and hold it against the interpreter.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

# Every other worker compiles without LLVM's passes: that is quicker, and finds code that only seems right with them.
# What a test starts has the level of its worker, since bits differ.
if int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2 and not os.environ.get("TENSORSWAP_LONG"):
    os.environ.setdefault("TENSORSWAP_LEVEL", "0")

from tensorswap.kernel.ir import Kernel
from tensorswap.kernel.verify import verify
from tensorswap.program import Program
from tensorswap.run import machine_code

os.environ.setdefault("TENSORSWAP_CACHE", str(Path(tempfile.gettempdir()) / f"tensorswap-tests-{os.getuid()}"))

os.environ.setdefault("TENSORSWAP_DAY", str(date.today().toordinal()))  # which share of a rota runs: all workers agree

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell: what tests start must hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def every_kernel_is_verified() -> Iterator[None]:
    from tensorswap.run import compile as compiler

    def verified(kernels: list[Kernel]) -> list[compiler.Compiled]:
        for kernel in kernels:
            verify(kernel)
        return compiled(kernels)

    compiled, compiler.compiled = compiler.compiled, verified
    yield
    compiler.compiled = compiled


@pytest.fixture(autouse=True)
def optimised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("optimised") is not None:
        monkeypatch.setattr(machine_code, "level", machine_code.FULL)


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("compiled") is None:
        monkeypatch.setattr(Program, "__call__", Program.run_reference)
