"""The benchmarks at small sizes: every peer computes the same, what is wrong gets no time, and the report comes out."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .daily import share

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))  # bench.py is a script, and finds what is beside it

import workloads  # noqa: E402 (found on the path above)
from harness import check, interval, memory, report  # noqa: E402
from harness.measure import Conditions, Team, contenders  # noqa: E402
from harness.peers import PEERS  # noqa: E402
from harness.process import Refused  # noqa: E402
from harness.result import Measurement, RowResult  # noqa: E402
from harness.runners.numpy_twin import NumpyTwin  # noqa: E402
from harness.runners.tensorswap_program import TensorswapProgram  # noqa: E402
from harness.worker import widened  # noqa: E402
from harness.workload import Results, Row  # noqa: E402

ROWS = {row.name: row for row in workloads.rows(quick=True) if row.workload.kind == "operation"}
TODAY = share(ROWS, 6)
LINUX = Path("/proc/self/clear_refs").exists()


def bench(output: Path, *arguments: str, **variables: str) -> tuple[int, str, dict[str, Any]]:
    """Runs the command. Gives its exit code, its messages, and results.json."""
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--quick", "--output", str(output), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    written = output / "results.json"
    return done.returncode, done.stderr, json.loads(written.read_text()) if written.exists() else {}


def cache() -> list[str]:
    """Kernels that an earlier test has compiled need not be compiled again."""
    return ["--cache", str(Path(os.environ["TENSORSWAP_CACHE"]) / "benchmarks")]


def reference(row: Row) -> Results:
    twin = NumpyTwin("numpy", 1)
    return twin.results(twin.prepare(row.workload, widened(row.arrays()), "float64")())


def troubles(results: dict[str, Any]) -> list[str]:
    """Every measurement that has no time, and why."""
    return [
        f"{row['name']}, {name}: {found['status']}, {found['reason']}"
        for row in results["rows"]
        for name, found in row["peers"].items()
        if found["status"] != "ok" or not found["rounds"]
    ]


@pytest.mark.parametrize("name", ROWS)
def test_interpreter_agrees_with_numpy(name: str) -> None:
    row = ROWS[name]
    runner = TensorswapProgram("interpreter", 1)
    found = runner.results(runner.prepare(row.workload, row.arrays(), row.dtype)())
    assert check.compare(row, found, reference(row)).wrong == ""


@pytest.mark.compiled
def test_workloads_agree_and_are_reported(tmp_path: Path) -> None:
    names = TODAY
    code, messages, results = bench(tmp_path, "--peers", "tensorswap", "numpy", "jax", "--only", *names, *cache())
    assert troubles(results) == [], messages
    assert code == 0, messages
    assert [row["name"] for row in results["rows"]] == names
    assert all(f"[{number:2}/{len(names)}] {name}: " in messages for number, name in enumerate(names, 1))
    assert results["finished"]
    assert results["roofline"].keys() == {"float32", "float64", "bandwidth"}
    table = (tmp_path / "table.md").read_text()
    assert all(f"| {ROWS[name].title} " in table for name in names)
    assert "the best other peer of each row" in table
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "relative.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (tmp_path / "relative.svg").read_text()
    else:
        assert "no plot: matplotlib is not installed" in messages


def test_torch_agrees(tmp_path: Path) -> None:
    interpreter = PEERS["torch"].interpreter
    if subprocess.run([interpreter, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip(f"{interpreter} cannot import torch; TENSORSWAP_BENCH_TORCH_PYTHON may name one that can")
    code, messages, results = bench(tmp_path, "--peers", "numpy", "torch", "--only", *ROWS)
    assert (code, troubles(results)) == (0, []), messages


def test_contractions_agree(tmp_path: Path) -> None:
    names = [row.name for row in ROWS.values() if row.workload.einsum]
    code, messages, results = bench(tmp_path, "--peers", "numpy", "einsum", "opt_einsum", "--only", *names)
    absent = [name for name, peer in results["peers"].items() if peer["absent"]]
    assert absent in ([], ["opt_einsum"])
    assert code == 0, messages
    assert [line for line in troubles(results) if not any(f", {name}: " in line for name in absent)] == []


@pytest.mark.parametrize("name", ["mlp_step", "attention_256_float64", "tensor_network"])
def test_check_finds_every_wrong_result(name: str) -> None:
    row = ROWS[name]
    right = {result: array.astype(row.dtype) for result, array in reference(row).items()}
    assert check.compare(row, right, right).wrong == ""
    for result, array in right.items():
        slightly = np.array(array)
        slightly.flat[-1] += 3 * check.tolerance(row) * np.max(np.abs(array))
        assert check.compare(row, {**right, result: slightly}, right).wrong.startswith(f"{result} is off by")
        undefined = np.full_like(array, np.nan)
        assert check.compare(row, {**right, result: undefined}, right).wrong.startswith(f"{result} is off by inf")
        other = array.astype(np.float64 if row.dtype == "float32" else np.float32)
        assert "has type" in check.compare(row, {**right, result: other}, right).wrong
        assert "has shape" in check.compare(row, {**right, result: array[None]}, right).wrong
        without = {key: value for key, value in right.items() if key != result}
        assert check.compare(row, without, right).wrong == f"{result} is missing"


def test_absent_peer_is_reported(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "python")
    chosen = ["--only", "matmul_64", "--peers", "numpy", "torch"]
    code, messages, results = bench(tmp_path, *chosen, TENSORSWAP_BENCH_TORCH_PYTHON=nowhere)
    assert code == 0, messages
    assert nowhere in results["peers"]["torch"]["absent"]
    assert results["rows"][0]["peers"]["torch"]["status"] == "absent"
    assert results["rows"][0]["peers"]["numpy"]["rounds"]
    assert f"- torch: {nowhere}" in (tmp_path / "table.md").read_text()


@pytest.mark.skipif(not LINUX, reason="peak memory is read from /proc")
def test_memory_is_reported(tmp_path: Path) -> None:
    code, messages, results = bench(tmp_path, "--only", "matmul_64", "--peers", "numpy", "--memory")
    assert code == 0, messages
    found = results["rows"][0]["peers"]["numpy"]
    assert found["peak_bytes"] == found["kept_bytes"] + found["call_bytes"]
    assert "## Peak memory" in (tmp_path / "table.md").read_text()


@pytest.mark.skipif(not LINUX, reason="peak memory is read from /proc")
def test_memory_counts_what_is_kept_and_what_a_call_needs() -> None:
    size = 2**27
    workspace: list[np.ndarray] = []

    def call() -> None:
        if not workspace:
            workspace.append(np.ones(size // 2, np.uint8))
        np.ones(size, np.uint8)

    found = memory.footprint(call)
    assert found is not None
    assert found.kept == pytest.approx(size // 2, rel=0.1)
    assert found.call == pytest.approx(size, rel=0.1)


@pytest.mark.skipif(not LINUX, reason="the children of a process are read from /proc")
def test_interrupt_ends_the_workers_and_keeps_what_was_measured(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--quick", "--output", str(tmp_path)]
    chosen = ["--peers", "numpy", "einsum", "--rounds", "1000000", "--only", "matmul_64", "matmul_1024"]
    with subprocess.Popen([*command, *chosen], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = ""
        while line != "[ 1/2] matmul_64: 1000000 rounds\n":
            line = process.stderr.readline()
            assert line, "it ended before the rounds"
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read()
        assert process.wait() == 130, messages
    assert "ended early" in messages
    assert len(workers) == 2
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    results = json.loads((tmp_path / "results.json").read_text())
    assert not results["finished"]
    assert results["rows"][0]["peers"]["numpy"]["rounds"]
    assert "ended early" in (tmp_path / "table.md").read_text()


def test_worker_that_takes_too_long_is_ended_and_started_again(tmp_path: Path) -> None:
    patient = 120.0
    how = Conditions(threads=1, rounds=1, turn_seconds=0.01, limit_seconds=patient, memory=False, caches=tmp_path)
    team = Team([PEERS["numpy"]], how)
    try:
        first = team.worker("numpy")
        first.ask("prepare", workloads.SMALLEST.key, limit=patient)
        assert first.ask("turn", 3, limit=patient)["seconds"] > 0
        with pytest.raises(Refused, match=r"^not done after 0.3 s$"):
            first.ask("turn", 10**12, limit=0.3)
        assert not first.alive
        second = team.worker("numpy")
        assert second is not first
        with pytest.raises(Refused, match="has nothing prepared"):
            second.ask("turn", 3, limit=patient)
    finally:
        team.close()


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    code, messages, _ = bench(tmp_path, "--only", "matmul_65")
    assert code == 2
    assert "no row is called matmul_65; there are mlp_step" in messages


def test_columns_of_a_table_line_up() -> None:
    lines = report.markdown(["a", "long"], [["longer", "1"], ["b", "22"]]).splitlines()
    assert lines == ["| a      | long |", "| ------ | ---: |", "| longer |    1 |", "| b      |   22 |"]


@pytest.mark.parametrize(("count", "kept"), [(5, 0), (6, 6), (7, 7), (9, 7), (12, 8), (20, 10), (49, 15)])
def test_interval_of_a_median(count: int, kept: int) -> None:
    """By the table of the binomial distribution: so many values at least lie between its ends."""
    values = [float(k) for k in range(1, count + 1)]
    low, high = interval.of_median(values)
    assert (low, high) == ((0.0, math.inf) if not kept else (low, count + 1 - low))
    assert not kept or high - low + 1 == kept
    assert interval.is_clear(values, [0.5] * count) == bool(kept)
    assert not interval.is_clear([1.0, 2.0, 3.0] * 9, [2.0] * 27)


def test_rounds_go_on_while_two_are_close() -> None:
    def of(*rounds: float) -> Measurement:
        return Measurement(rounds=list(rounds))

    def row(**peers: Measurement) -> RowResult:
        return RowResult("row", "row", "float32", {}, "", None, peers=peers)

    near = [1.1, 0.9] * 5
    three = row(tensorswap=of(*[1.0] * 10), numpy=of(*near), jax=of(*[1.05] * 10), torch=of(*[2.0] * 10))
    assert contenders(three) == ["tensorswap", "numpy", "jax"]
    assert not contenders(row(tensorswap=of(*[1.0] * 10), numpy=of(*[1.2] * 10), torch=of(*[2.0] * 10)))
    assert not contenders(row(tensorswap=of(*[1.0] * 10), numpy=of(*[0.9] * 10)))
    assert not contenders(row(numpy=of(*near), torch=of(*near)))
    assert not contenders(row(tensorswap=of(*near)))
