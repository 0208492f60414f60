"""The reference interpreter is the oracle of the language and its rules, so tests of those run p(...) through it.

Compiling thousands of small programs would take an hour and prove nothing about the rules. Tests marked `compiled`
call p(...) as a user does, and hold it against the interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tensorswap.kernel.ir import Kernel
from tensorswap.kernel.verify import verify
from tensorswap.program import Program
from tensorswap.run import chunk, execute, kept, ready, tuning
from tensorswap.run.kernel_code import named
from tensorswap.run.known_code import Named
from tensorswap.run.memory import lines

from . import daily
from .running_command import Command

os.environ.setdefault("TENSORSWAP_CACHE", str(Path(tempfile.gettempdir()) / f"tensorswap-tests-{os.getuid()}"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell: what tests start must hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Whether all tests run, of which days have shares: the workers are told."""
    if not hasattr(config, "workerinput"):
        whole = config.args_source is not pytest.Config.ArgsSource.ARGS and not daily.LONG
        os.environ["TENSORSWAP_SHARED"] = "yes" if whole else ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ["TENSORSWAP_SHARED"]:
        others = daily.not_today(item.nodeid for item in items)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in others])
        items[:] = [item for item in items if item.nodeid not in others]


@pytest.fixture(autouse=True, scope="session")
def every_kernel_is_verified() -> Iterator[None]:
    def verified(kernel: Kernel) -> Named:
        verify(kernel)
        return named(kernel)

    with pytest.MonkeyPatch.context() as patch:
        for module in (execute, chunk):
            patch.setattr(module, "named", verified)
        yield


@pytest.fixture(autouse=True, scope="session")
def every_plan_is_new() -> Iterator[None]:
    """Tests change what plans depend on in places of which keys of plans on disk know nothing. Processes of their own
    find plans there, as those of users do. What they would find is looked at here for every program."""

    def plain(made: ready.Ready) -> str:
        text = written(made)
        found = kept._from_plain(json.loads(text))
        for field in fields(ready.Ready):
            before, after = getattr(made, field.name), getattr(found, field.name)
            same = np.array_equal(before, after) if field.name in ("words", "links") else repr(before) == repr(after)
            assert same, (field.name, before, after)
        return text

    written = kept._plain
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "_load", lambda name: None)
        patch.setattr(kept, "_plain", plain)
        yield


@pytest.fixture(autouse=True, scope="session")
def memory_holds_no_zeros_by_chance() -> Iterator[None]:
    """What kernels make in between lies in memory that new processes find empty, and others do not: here it is full of
    what is no number."""

    def full(size: int) -> Any:
        memory = lines(size)
        memory[:] = 255
        return memory

    with pytest.MonkeyPatch.context() as patch:
        for module in (ready, chunk):
            patch.setattr(module, "lines", full)
        yield


@pytest.fixture(autouse=True, scope="module")
def level(request: pytest.FixtureRequest) -> Iterator[None]:
    """Three files of four compile without LLVM's passes, each day others: that is quicker, and finds code that only
    seems right with them. What a test starts has its level, since bits differ, and files whose names begin alike, which
    share programs, have the same."""
    family = "_".join(request.path.stem.split("_")[:2])
    chosen = tuning.FULL if daily.LONG or (crc32(family.encode()) + daily.DAY) % 4 == 0 else 0
    with pytest.MonkeyPatch.context() as patch:
        if "TENSORSWAP_LEVEL" not in os.environ:
            patch.setenv("TENSORSWAP_LEVEL", str(chosen))
            patch.setattr(tuning, "level", chosen)
        yield


@pytest.fixture(autouse=True)
def optimised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("optimised") is not None:
        monkeypatch.setattr(tuning, "level", tuning.FULL)


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("compiled") is None:
        monkeypatch.setattr(Program, "__call__", Program.run_reference)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command `tensorswap`, as a user runs it."""
    return Command(capsys)
