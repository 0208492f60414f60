"""Steps per second of ts.fit, of a numpy twin written by hand, of JAX and of PyTorch, from the same start and batches.

Run it with `make bench`, or with one model: `python benchmarks/training/bench.py --only mlp`. Results go to
benchmarks/results: training.json and training.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(FOLDER))  # this is a script, and finds what is beside its folder

from harness import machine, settings  # noqa: E402 (found on the path above)
from harness.process import Refused, Worker  # noqa: E402
from training import BY_NAME  # noqa: E402
from training.problem import Problem, problem  # noqa: E402
from training.process import OURS, PEERS, REFERENCE, TrainingWorker  # noqa: E402
from training.twin import Twin  # noqa: E402

MAIN = ("mlp", "cnn", "lstm", "gpt")
EPOCHS = 4  # whose batches are made; they come again after that
CHECKED = 10  # steps whose losses are held against numpy in float64
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
DTYPE = "float32"


@dataclass
class Measurement:
    """One peer at one model."""

    status: str = "ok"
    reason: str = ""
    error: float | None = None  # the largest relative one of the first losses
    first_seconds: float | None = None  # of the first epoch, with all that is compiled in it
    epochs: int = 1  # of a turn
    rounds: list[float] = field(default_factory=list)  # seconds of a step

    @property
    def speed(self) -> float | None:
        """Steps per second."""
        return 1 / statistics.median(self.rounds) if self.rounds else None


@dataclass
class Row:
    name: str
    title: str
    peers: dict[str, Measurement] = field(default_factory=dict)

    def times(self, *others: str) -> float | None:
        """How many times as fast as the fastest of the others."""
        ours = self.peers[OURS].speed if OURS in self.peers else None
        speeds = [m.speed for name, m in self.peers.items() if m.speed and name in others]
        return ours / max(speeds) if ours and speeds else None


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", nargs="+", choices=list(BY_NAME), default=list(MAIN), metavar="MODEL", help=", ".join(BY_NAME))
    add("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER", help=", ".join(PEERS))
    add("--rounds", type=int, default=7, metavar="N", help="how often each peer has its turn (default: 7)")
    add("--seconds", type=float, default=1.0, metavar="S", help="about so long is a turn (default: 1)")
    add("--quick", action="store_true", help="small sizes and one short round: shows that everything runs")
    add("--output", type=Path, metavar="DIR", help="where the results go (default: benchmarks/results)")
    add("--threads", type=int, default=settings.cores(), metavar="N", help="for every peer (default: all cores)")
    add("--limit", type=float, default=600.0, metavar="SECONDS", help="for a first epoch or a turn (default: 600)")
    add("--cache", type=Path, metavar="DIR", help="keep compiled code there; by default every run starts without any")
    options = parser.parse_args(arguments)
    options.output = options.output or FOLDER / "results" / ("quick" if options.quick else "")
    if options.quick:
        options.rounds, options.seconds = 1, 0.01
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    run: dict[str, Any] = {
        "machine": machine.describe(options.threads),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {"rounds": options.rounds, "seconds": options.seconds, "quick": options.quick, "dtype": DTYPE},
        "versions": {},
        "finished": False,
    }
    rows: list[Row] = []
    with contextlib.suppress(KeyboardInterrupt), team(options, run) as workers:
        for name in options.only:
            row = Row(name, BY_NAME[name].title)
            rows.append(row)
            measure(BY_NAME[name], row, workers, options)
            write(run, rows, options.output)
        run["finished"] = True
    write(run, rows, options.output)
    print(table(run, rows))
    return int(not run["finished"] or any(row.peers[OURS].status != "ok" for row in rows if OURS in row.peers))


@contextlib.contextmanager
def team(options: argparse.Namespace, run: dict[str, Any]) -> Iterator[dict[str, Worker]]:
    """A process for every peer that can be had; they live through the run."""
    with contextlib.ExitStack() as stack:
        empty = stack.enter_context(tempfile.TemporaryDirectory(prefix="tensorswap-bench-", ignore_cleanup_errors=True))
        environment = settings.environment(options.threads, (options.cache or Path(empty)).resolve())
        workers: dict[str, Worker] = {}
        for name in dict.fromkeys([REFERENCE, *options.peers]):
            try:
                workers[name] = stack.enter_context(TrainingWorker(PEERS[name], options.threads, environment))
                run["versions"][name] = workers[name].versions
            except Refused as refusal:
                say(f"{PEERS[name].label} is {refusal.status}: {refusal.reason}")
        yield workers


def measure(twin: Twin, row: Row, workers: dict[str, Worker], options: argparse.Namespace) -> None:
    case = twin.small if options.quick else twin.case
    made = problem(twin, case, DTYPE, EPOCHS)
    expected = workers[REFERENCE].ask("prepare", made.widened(), limit=options.limit)["losses"]
    asked = {name: worker for name, worker in workers.items() if name in options.peers}
    for name, worker in asked.items():
        say(f"{row.name}: first epoch of {PEERS[name].label}")
        row.peers[name] = prepared(made, expected, worker, options)
    for number in range(options.rounds):
        say(f"{row.name}: round {number + 1} of {options.rounds}")
        for name, worker in asked.items():
            turn(row.peers[name], worker, options)
    for worker in asked.values():
        with contextlib.suppress(Refused):
            worker.ask("release", limit=options.limit)
    shown = (f"{name} {m.speed:.4g}" if m.speed else f"{name} {m.status}: {m.reason}" for name, m in row.peers.items())
    say(f"{row.name}, steps/s: {', '.join(shown)}")


def prepared(made: Problem, expected: list[float], worker: Worker, options: argparse.Namespace) -> Measurement:
    """The first epoch, and whether its losses are right. What is wrong gets no time."""
    try:
        answer = worker.ask("prepare", made, limit=options.limit)
        error = max(abs(a - b) / abs(b) for a, b in zip(answer["losses"][:CHECKED], expected, strict=False))
        found = Measurement(error=error, first_seconds=answer["seconds"])
        if not error <= TOLERANCE[DTYPE]:
            found.status, found.reason = "wrong", f"the losses differ by {error:.1e}"
            return found
        seconds = worker.ask("turn", 1, limit=options.limit)["seconds"] * made.steps
        found.epochs = max(1, round(options.seconds / seconds))
        return found
    except Refused as refusal:
        return Measurement(refusal.status, refusal.reason)


def turn(found: Measurement, worker: Worker, options: argparse.Namespace) -> None:
    if found.status != "ok":
        return
    try:
        found.rounds.append(worker.ask("turn", found.epochs, limit=options.limit)["seconds"])
    except Refused as refusal:
        found.status, found.reason = refusal.status, refusal.reason
        found.rounds.clear()


def table(run: dict[str, Any], rows: list[Row]) -> str:
    names = [name for name in PEERS if any(name in row.peers for row in rows)]
    others = [name for name in names if name != OURS]
    head = ["training", *(PEERS[name].label for name in names), "x numpy", "x best peer"]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for row in rows:
        cells = [speed_of(row.peers.get(name)) for name in names]
        ratios = [row.times(REFERENCE), row.times(*(name for name in others if name != REFERENCE))]
        cells += [f"{ratio:.2f}" if ratio else "" for ratio in ratios]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    about, rounds = run["machine"], run["settings"]["rounds"]
    where = f"{about['threads']} threads on {about['cpu']}, {run['started'][:10]}"
    said = f"Steps per second in {DTYPE}, {where}: the median of {rounds} rounds, without compilation."
    return "\n".join([said, "A step is a batch, its forward and backward pass, and the update.", "", *lines])


def speed_of(found: Measurement | None) -> str:
    if found is None:
        return ""
    if not found.speed:
        return found.status
    return f"{found.speed:,.0f}" if found.speed >= 100 else f"{found.speed:.1f}"


def write(run: dict[str, Any], rows: list[Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shown = [{**asdict(row), "speeds": {name: found.speed for name, found in row.peers.items()}} for row in rows]
    (folder / "training.json").write_text(json.dumps({**run, "rows": shown}, indent=1) + "\n")
    (folder / "training.md").write_text(table(run, rows) + "\n")


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the workers as Ctrl-C does
    sys.exit(main())
