"""Planting: a copy of the package and its tests with one fault in it, and the tests that ought to find it, run there.

The checkout is never touched. A test that fails finds the fault, and so do a signal and a time-out: a kernel that reads
what is not its own, or never ends, is found by whoever runs it. A run that could not start finds nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .fault import Fault

ROOT = Path(__file__).parent.parent.parent
PARTS = ("tensorswap", "kernels", "tests", "docs", "benchmarks")
SECONDS = 600.0  # for the tests of one fault
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """Whether the tests noticed, and what they said: the test that failed, or why there is no answer."""

    caught: bool
    by: str


@contextmanager
def copied(source: Path = ROOT) -> Iterator[Path]:
    """A copy of the checkout, which goes away."""
    with tempfile.TemporaryDirectory(prefix="tensorswap-planted-") as folder:
        place = Path(folder)
        for part in (*PARTS, "cache"):
            if (source / part).is_dir():
                shutil.copytree(source / part, place / part)
        shutil.copy2(source / "pyproject.toml", place)
        yield place


def plant(place: Path, fault: Fault) -> None:
    """Changes the source in a copy, and forgets what Python compiled of it."""
    path = place / "tensorswap" / fault.file
    path.write_text(fault.planted(path.read_text()))
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def run(place: Path, tests: Iterable[str], seconds: float = SECONDS) -> Outcome:
    """Runs tests in a copy, up to the first that fails. The kernels that they compile stay in the copy."""
    cache = place / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(place), "TENSORSWAP_CACHE": str(cache)}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-x", "-rfE", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    child = subprocess.Popen(
        command, cwd=place, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return Outcome(True, f"time-out after {seconds:.0f} s")
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # with all that the tests have started
            child.wait()
    if child.returncode < 0:
        return Outcome(True, signal.Signals(-child.returncode).name)
    if child.returncode == 0:
        return Outcome(False, "all tests pass")
    found = FAILED.search(said)
    if child.returncode == 1 and found:
        return Outcome(True, found[1])
    return Outcome(False, f"no answer, pytest ended with {child.returncode}:\n{said[-2000:]}")


def tried(fault: Fault, sound: Path) -> Outcome:
    """The outcome of one fault, in a copy of a copy that is sound: its kernels serve where the fault leaves them be."""
    with copied(sound) as place:
        plant(place, fault)
        return run(place, fault.tests)


def selections(faults: Sequence[Fault]) -> list[str]:
    """All tests that the faults name, each once."""
    return list(dict.fromkeys(test for fault in faults for test in fault.tests))
