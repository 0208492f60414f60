"""What a busy core costs: workloads alone, and beside a process that spins; `python benchmarks/busy.py`.

Every thread of a kernel waits for the slowest. On two cores, one of which has something else to do, half of the speed
is left if parts are dealt out and none is taken over; two thirds is what the system could give to two threads of three.
Rounds alternate: one alone, one with the spinning process, for each peer in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]  # a folder of scripts is not installed

import workloads  # noqa: E402
from harness.measure import Conditions, Team  # noqa: E402
from harness.peers import PEERS  # noqa: E402
from harness.process import Refused  # noqa: E402
from harness.settings import cores  # noqa: E402

ROWS = (
    "matmul_1024",
    "attention_256",
    "conv2d_stride1",
    "layer_norm_gelu",
    "cross_entropy",
    "mlp_step",
    "lstm",
    "gpt_block",
)
PEER_NAMES = ("tensorswap", "jax", "torch")
LIMIT = 300.0  # seconds for one answer
WARM = 0.1  # seconds until the spinning process spins
RESULT = FOLDER / "results" / "busy.md"


@contextlib.contextmanager
def spinning() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(WARM)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measured(team: Team, name: str, key: tuple[str, str, bool], rounds: int) -> tuple[float, float] | None:
    """Milliseconds of a call alone, and beside the spinning process: medians."""
    try:
        worker = team.worker(name)
        worker.ask("prepare", key, limit=LIMIT)
        count = worker.ask("repetitions", 0.2, limit=LIMIT)["repetitions"]
        alone, beside = [], []
        for _ in range(rounds):
            alone.append(worker.ask("turn", count, limit=LIMIT)["seconds"])
            with spinning():
                beside.append(worker.ask("turn", count, limit=LIMIT)["seconds"])
        worker.ask("release", limit=LIMIT)
    except Refused as refusal:
        print(f"{key[0]}, {name}: {refusal.reason}", file=sys.stderr)
        return None
    return 1000 * statistics.median(alone), 1000 * statistics.median(beside)


def table(found: dict[str, dict[str, tuple[float, float] | None]], peers: list[str]) -> str:
    """Of each peer the two times, and which share of its speed is left."""
    heads = [f"{PEERS[peer].label}: alone | busy | left" for peer in peers]
    lines = [f"| workload | {' | '.join(heads)} |", "| --- |" + " ---: | ---: | ---: |" * len(peers)]
    for row, by_peer in found.items():
        cells = []
        for peer in peers:
            times = by_peer[peer]
            cells += ["", "", ""] if times is None else [f"{t:.3g}" for t in times] + [f"{times[0] / times[1]:.2f}"]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    for peer in peers:
        left = [times[0] / times[1] for by_peer in found.values() if (times := by_peer[peer]) is not None]
        if left:
            mean, least = statistics.geometric_mean(left), min(left)
            lines.append(f"\n{PEERS[peer].label}: {mean:.2f} of its speed is left in the mean, {least:.2f} at least.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    parser.add_argument("--peers", nargs="*", default=list(PEER_NAMES))
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--write", action="store_true", help=f"keep the table in {RESULT.relative_to(FOLDER.parent)}")
    asked = parser.parse_args()
    found: dict[str, dict[str, tuple[float, float] | None]] = {}
    with tempfile.TemporaryDirectory(prefix="tensorswap-bench-", ignore_cleanup_errors=True) as caches:
        how = Conditions(cores(), asked.rounds, 0.2, LIMIT, memory=False, caches=Path(caches))
        team = Team([PEERS[name] for name in asked.peers], how)
        try:
            for name in asked.rows:
                dtype = workloads.BY_NAME[name].dtypes[0]
                print(name, file=sys.stderr)
                found[name] = {p: measured(team, p, (name, dtype, asked.quick), asked.rounds) for p in asked.peers}
        finally:
            team.close()
    told = f"One of {cores()} cores spins; milliseconds, medians of {asked.rounds} rounds."
    text = f"{told}\n\n{table(found, asked.peers)}"
    print(text)
    if asked.write:
        RESULT.write_text(f"# A busy core\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
