"""A plugin of pytest for the emulated process: LLVM's work is done elsewhere."""

from __future__ import annotations

import os
import platform
import sys

import pytest

from tensorswap.run import machine_code

from .compiler import compiling_at

ADDRESS, PYTHON = "TENSORSWAP_COMPILES_AT", "TENSORSWAP_EMULATED"


def pytest_configure(config: pytest.Config) -> None:
    machine_code.object_code = compiling_at(os.environ[ADDRESS])
    sys.executable = os.environ[PYTHON]


def pytest_report_header(config: pytest.Config) -> str:
    from tensorswap.kernel.registers import registers

    return f"emulated: {platform.machine()}, {registers()}"
