"""Ops of the standard library side by side with PyTorch: `python -m benchmarks.library.bench [--rounds 5] [op ...]`.

Results are compared first; then the peers take turns, and the median of their rounds counts. Writes
results/library.json and results/library.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from .chosen import CHOSEN

ROOT = Path(__file__).parent.parent.parent
RESULTS = Path(__file__).parent.parent / "results"
PEERS = ("tensorswap", "torch")


class Peer:
    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        python = os.environ.get("TENSORSWAP_BENCH_TORCH_PYTHON", sys.executable) if name == "torch" else sys.executable
        counts = {f"{word}_NUM_THREADS": str(threads) for word in ("OMP", "OPENBLAS", "NUMBA", "MKL")}
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.library.worker", name, str(threads)],
            cwd=ROOT,
            env={**os.environ, **counts},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, command: str, value: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps([command, value]), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(
                f"the worker for {self.name} has ended: see above. `make bench` installs what is missing; "
                "TENSORSWAP_BENCH_TORCH_PYTHON names an interpreter that has PyTorch"
            )
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def agree(ours: dict[str, float], theirs: dict[str, float]) -> bool:
    return all(math.isclose(ours[n], theirs[n], rel_tol=2e-3, abs_tol=1e-5) for n in ours.keys() & theirs.keys())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a turn")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    peers = {name: Peer(name, chosen.threads) for name in PEERS}
    found: dict[str, dict[str, Any]] = {}
    for op in chosen.ops or CHOSEN:
        row: dict[str, Any] = {}
        try:
            first = {name: peer.ask("prepare", op) for name, peer in peers.items()}
            row["agree"] = agree(first["tensorswap"], first["torch"])
            rounds = [{n: p.ask("time", chosen.seconds) for n, p in peers.items()} for _ in range(chosen.rounds)]
            row |= {f"{name}_ms": 1000 * statistics.median(r[name] for r in rounds) for name in PEERS}
            row["ratio"] = row["torch_ms"] / row["tensorswap_ms"]
            print(f"{op:34} {row['tensorswap_ms']:9.3f} {row['torch_ms']:9.3f} {row['ratio']:7.2f}", end="")
            print("" if row["agree"] else "  DIFFERENT RESULTS", flush=True)
        except RuntimeError as error:
            row["error"] = str(error)
            print(f"{op:34} FAILED: {error}", flush=True)
        found[op] = row
    for peer in peers.values():
        assert peer.process.stdin is not None
        peer.process.stdin.close()
        peer.process.wait()
    report(found, chosen.threads, write=not chosen.ops)


def report(found: dict[str, dict[str, Any]], threads: int, write: bool) -> None:
    ratios = [row["ratio"] for row in found.values() if row.get("agree")]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else float("nan")
    lines = [
        "# Ops of the standard library against PyTorch",
        "",
        f"Forward and backward pass, float32, {threads} threads each; the median of several rounds, in milliseconds.",
        f"Geometric mean of {len(ratios)} ops: {mean:.2f}.",
        "",
        "| op | tensorswap | torch | torch / tensorswap |",
        "| --- | ---: | ---: | ---: |",
    ]
    for op, row in found.items():
        if "ratio" in row and row["agree"]:
            lines.append(f"| {op} | {row['tensorswap_ms']:.3g} | {row['torch_ms']:.3g} | {row['ratio']:.2f} |")
        else:
            lines.append(f"| {op} | {row.get('error', 'different results')} | | |")
    print("\n".join(lines[2:4]))
    if write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "library.md").write_text("\n".join(lines) + "\n")
        (RESULTS / "library.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
