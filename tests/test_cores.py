"""How many threads share a kernel: as many as the process may keep busy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tensorswap.run import cores as module
from tensorswap.run.cores import cores, quota


def share(tmp_path: Path, files: dict[str, str]) -> int:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return quota(tmp_path)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ],
)
def test_share_of_a_container(
    tmp_path: Path, files: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert share(tmp_path, files) == expected


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"cpu.max": "max 100000\n"},
        {"cpu.max": "a word\n"},
        {"cpu.max": "\n"},
        {"cpu.max": "100000 0\n"},
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
    ],
)
def test_no_share(tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert share(tmp_path, files) == 64


def test_threads_are_no_more_than_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(module, "quota", lambda: 1)
    assert cores() == 1
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert cores() == 3
