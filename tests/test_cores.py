"""How many threads share a kernel: as many as the process may keep busy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tensorswap.run import cores as module
from tensorswap.run.cores import cores, quota


def machine(tmp_path: Path, own: str, files: dict[str, str]) -> int:
    """The quota of a process in these groups."""
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "own").write_text(own)
    return quota(tmp_path / "groups", tmp_path / "own")


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "700000 100000\n", "a/cpu.max": "300000 100000\n"}, 3),
        (
            "3:cpu,cpuacct:/c\n2:memory:/\n",
            {"cpu,cpuacct/c/cpu.cfs_quota_us": "500000\n", "cpu,cpuacct/c/cpu.cfs_period_us": "100000\n"},
            5,
        ),
    ],
)
def test_share_of_a_container(tmp_path: Path, own: str, files: dict[str, str], expected: int) -> None:
    assert machine(tmp_path, own, files) == expected


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("", {}),
        ("0::/\n", {"cpu.max": "max 100000\n"}),
        ("0::/\n", {"cpu.max": "a word\n"}),
        ("0::/\n", {"cpu.max": "\n"}),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}),
        ("2:memory:/\n", {"cpu.max": "100000 100000\n"}),
    ],
)
def test_no_share(tmp_path: Path, own: str, files: dict[str, str]) -> None:
    assert machine(tmp_path, own, files) == (os.cpu_count() or 1)


def test_threads_are_no_more_than_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(module, "quota", lambda: 1)
    assert cores() == 1
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert cores() == 3
