"""tensorswap against numpy, einsum, opt_einsum, jax and torch: forward and backward, checked before they are timed.

Run it with `make bench`. Results go to benchmarks/results: results.json, table.md, relative.png, relative.svg.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import workloads
from harness import machine, plot, plot_sizes, report, settings
from harness.measure import Conditions, Team, measure
from harness.peers import OURS, PEERS, REFERENCE
from harness.process import Refused
from harness.result import RowResult, Run
from harness.workload import Row

FOLDER = Path(__file__).resolve().parent
SUITE_PEERS = {
    "gradbench": ("tensorswap", "jax", "torch", "c"),
    "sizes": ("tensorswap", "numpy", "jax", "torch"),
    "sparse": ("tensorswap", "numpy", "jax", "torch"),
}
INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", nargs="+", metavar="NAME", help="these rows; patterns such as 'attention*' go too")
    add(
        "--suite",
        choices=list(workloads.SUITES),
        default="",
        help="'gradbench': the problems of GradBench; 'sizes': from 8 to 2,048; 'sparse': sparse and ragged sums",
    )
    add("--peers", nargs="+", choices=list(PEERS), metavar="PEER", help=f"of {', '.join(PEERS)}")
    add("--rounds", type=int, metavar="N", help="how often each peer has its turn in a row (default: 7)")
    add(
        "--most-rounds", type=int, metavar="N",
        help="the same, while a 95 %% interval does not tell who is faster (default: 49, or N)",
    )  # fmt: skip
    add("--quick", action="store_true", help="small sizes and one round: shows that everything runs")
    add("--output", type=Path, metavar="DIR", help="where the results go (default: benchmarks/results)")
    add("--threads", type=int, default=settings.cores(), metavar="N", help="for every peer (default: all cores)")
    add("--memory", action=argparse.BooleanOptionalAction, help="measure peak memory (default: unless --quick)")
    add("--limit", type=float, default=300.0, metavar="SECONDS", help="for a first call or a turn (default: 300)")
    add("--cache", type=Path, metavar="DIR", help="keep compiled code there; by default every run starts without any")
    add("--list", action="store_true", help="show the names of all rows, and end")
    options = parser.parse_args(arguments)
    asked = options.rounds
    options.rounds = asked or (1 if options.quick else 7)
    options.most_rounds = options.most_rounds or (options.rounds if asked or options.quick else 49)
    options.memory = not options.quick if options.memory is None else options.memory
    options.output = options.output or FOLDER / "results" / options.suite / ("quick" if options.quick else "")
    options.rows = rows_of(options, parser)
    return options


def rows_of(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Row]:
    rows = workloads.rows(options.quick, options.suite)
    patterns = options.only or ["*"]
    unknown = [pattern for pattern in patterns if not any(fnmatchcase(row.name, pattern) for row in rows)]
    if unknown:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(row.name for row in rows)}")
    return [row for row in rows if any(fnmatchcase(row.name, pattern) for pattern in patterns)]


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    if options.list:
        print("\n".join(f"{row.name:28}{row.title}" for row in options.rows))
        return 0
    run = Run(
        machine=machine.describe(options.threads),
        settings={
            "rounds": options.rounds,
            "most_rounds": options.most_rounds,
            "quick": options.quick,
            "memory": options.memory,
            "cold": options.cache is None,
        },
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    try:
        with conditions(options) as how:
            measure_all(options.rows, run, how, options)
    except KeyboardInterrupt:
        say("ended early; writing what was measured")
    write(run, options.output, options.suite)
    if not run.finished:
        return INTERRUPTED
    return int(any(row.peers[OURS].status in ("wrong", "failed") for row in run.rows if OURS in row.peers))


@contextlib.contextmanager
def conditions(options: argparse.Namespace) -> Iterator[Conditions]:
    with tempfile.TemporaryDirectory(prefix="tensorswap-bench-", ignore_cleanup_errors=True) as empty:
        yield Conditions(
            threads=options.threads,
            rounds=options.rounds,
            most_rounds=options.most_rounds,
            turn_seconds=0.01 if options.quick else 0.15,
            limit_seconds=options.limit,
            memory=options.memory,
            caches=(options.cache or Path(empty)).resolve(),
        )


def measure_all(rows: list[Row], run: Run, how: Conditions, options: argparse.Namespace) -> None:
    chosen = options.peers or list(SUITE_PEERS.get(options.suite, [name for name, p in PEERS.items() if p.default]))
    team = Team([PEERS[name] for name in chosen], how)
    try:
        introduce(team, run, options.limit)
        if any(row.instructions for row in rows):
            say("limits of the machine")
            run.roofline.update(team.worker(REFERENCE).ask("limits", options.quick, limit=options.limit))
        for number, row in enumerate(rows, 1):
            place = f"[{number:2}/{len(rows)}] {row.name}"
            start = time.monotonic()
            result = RowResult(row.name, row.title, row.dtype, dict(row.sizes), row.workload.kind, row.instructions)
            run.rows.append(result)
            measure(row, result, team, how, run.roofline, partial(say, place=f"{place}: "))
            say(f"{place}: {summary(result)} ({time.monotonic() - start:.0f} s)")
            report.write(run, options.output)
        run.finished = True
    finally:
        team.close()


def introduce(team: Team, run: Run, limit: float) -> None:
    """Starts every worker, and notes the versions, or why a peer is absent.

    A first small product lets each library set itself up, which it would otherwise do in the first row.
    """
    for name in team.peers:
        known = run.peers[name] = {"label": PEERS[name].label, "versions": {}, "absent": "", "start_seconds": None}
        try:
            worker = team.worker(name)
            known["versions"] = worker.versions
            first = worker.ask("prepare", workloads.SMALLEST.key, limit=limit)["first_call_seconds"]
            known["start_seconds"] = worker.import_seconds + first
        except Refused as refusal:
            known["absent"] = refusal.reason if refusal.status == "absent" else ""
            if refusal.status != "not applicable":
                say(f"{PEERS[name].label}, {refusal.status}: {report.one_line(refusal.reason)}")


def summary(result: RowResult) -> str:
    parts = []
    for name, found in result.peers.items():
        if found.seconds is not None:
            parts.append(f"{name} {found.seconds * 1e3:.3g} ms")
        elif found.status in ("wrong", "failed"):
            parts.append(f"{name} {found.status.upper()}: {report.one_line(found.reason)}")
    return ", ".join(parts)


def write(run: Run, folder: Path, suite: str) -> None:
    report.write(run, folder)
    trouble = plot.write(run, folder)
    if suite == "sizes":
        trouble = trouble or plot_sizes.write(run, folder, workloads.sizes.FAMILIES)
    say(f"no plot: {trouble}" if trouble else f"results are in {folder}")


def say(line: str, place: str = "") -> None:
    print(f"{place}{line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the workers as Ctrl-C does
    sys.exit(main())
