"""The soak: all parts, piece by piece, two at a time; it can be stopped at any moment and goes on where it was.

python -m tests.soak [--minutes 180] [--only PART ...] [--jobs 2] [--fresh] [--folder .soak]

What is done is kept in the folder, with a report. A piece that fails is kept with its output and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.parts import PARTS, Part

LONGEST = 1800  # seconds that a piece may take


@dataclass
class State:
    """The pieces that ran: their figures, or what went wrong. The seed of a soak makes its pieces other ones."""

    folder: Path
    seed: int = 0
    done: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path, fresh: bool) -> State:
        file = folder / "state.json"
        folder.mkdir(parents=True, exist_ok=True)
        if file.exists() and not fresh:
            kept = json.loads(file.read_text())
            return cls(folder, kept["seed"], kept["done"])
        return cls(folder, time.time_ns() % 10**9)

    def save(self) -> None:
        part = self.folder / "state.part"
        part.write_text(json.dumps({"seed": self.seed, "done": self.done}, indent=1))
        part.replace(self.folder / "state.json")

    def of(self, part: Part) -> list[dict[str, Any]]:
        return [piece for name, piece in self.done.items() if name.partition(" ")[0] == part.name]


@dataclass
class Running:
    part: Part
    name: str
    process: subprocess.Popen[str]
    started: float


def start(part: Part, number: int, state: State) -> Running:
    seed = state.seed + 1_000_000 * (1 + PARTS.index(part)) + number * max(part.count, 1)
    code = f"import json; from tests.soak.parts import PARTS; print(json.dumps(PARTS[{PARTS.index(part)}].run({seed})))"
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    log = (state.folder / f"{part.name}-{number}.log").open("w")
    with log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    return Running(part, f"{part.name} {number}", process, time.monotonic())


def finish(running: Running, state: State) -> None:
    """Keeps the outcome of a piece that has ended, or is ended because it takes too long."""
    seconds = time.monotonic() - running.started
    late = running.process.poll() is None
    if late:
        running.process.kill()
    output, _ = running.process.communicate()
    code = running.process.returncode
    log = state.folder / f"{running.name.replace(' ', '-')}.log"
    if code == 0:
        figures = json.loads(output.splitlines()[-1])
        state.done[running.name] = {"seconds": round(seconds, 1), "figures": figures}
        log.unlink(missing_ok=True)
    else:
        why = f"no end after {LONGEST} s" if late else f"exit code {code}"
        state.done[running.name] = {"seconds": round(seconds, 1), "fault": why, "log": log.name}
        print(f"\nFAULT in {running.name}: {why}; see {log}\n{log.read_text()[-1500:]}", flush=True)
    state.save()


def report(state: State, parts: tuple[Part, ...]) -> str:
    """A table: what ran, how often, what was wrong."""
    lines = [f"Soak of seed {state.seed} on {platform.machine()}, Python {platform.python_version()}.", ""]
    lines += ["| part | pieces | cases | faults | minutes | figures |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for part in parts:
        pieces = state.of(part)
        faults = sum("fault" in piece for piece in pieces)
        figures: dict[str, float] = {}
        for piece in pieces:
            for name, value in piece.get("figures", {}).items():
                figures[name] = (
                    max(figures.get(name, 0), value) if name.startswith("peak_") else figures.get(name, 0) + value
                )
        shown = ", ".join(f"{name.removeprefix('peak_')} {value:,.4g}" for name, value in figures.items())
        minutes = sum(piece["seconds"] for piece in pieces) / 60
        cases = (len(pieces) - faults) * part.count
        lines.append(
            f"| {part.what} | {len(pieces)} of {part.pieces} | {cases:,} | {faults} | {minutes:.1f} | {shown} |"
        )
    return "\n".join(lines) + "\n"


def soak(state: State, parts: tuple[Part, ...], jobs: int, seconds: float) -> None:
    """Takes the pieces of all parts in turn, so that a short run has seen a bit of each."""
    open_pieces = [
        (number / part.pieces, part, number)
        for part in parts
        for number in range(part.pieces)
        if f"{part.name} {number}" not in state.done
    ]
    open_pieces.sort(key=lambda piece: piece[0])
    total, end = sum(part.pieces for part in parts), time.monotonic() + seconds
    running: list[Running] = []
    told = 0.0
    try:
        while running or (open_pieces and time.monotonic() < end):
            while open_pieces and len(running) < jobs and time.monotonic() < end:
                _, part, number = open_pieces.pop(0)
                running.append(start(part, number, state))
            for one in [r for r in running if r.process.poll() is not None or time.monotonic() - r.started > LONGEST]:
                running.remove(one)
                finish(one, state)
            if time.monotonic() - told > 15:
                told = time.monotonic()
                faults = sum("fault" in piece for piece in state.done.values())
                names = ", ".join(r.name for r in running)
                left = max(0.0, end - told) / 60
                print(
                    f"{len(state.done)} of {total} pieces, {faults} faults, {left:.0f} min left; now {names}",
                    flush=True,
                )
            time.sleep(0.1)
    finally:  # Ctrl-C: what is not finished runs again the next time
        for one in running:
            one.process.kill()
            one.process.communicate()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=180, help="stop taking new pieces after so long")
    parser.add_argument("--only", nargs="+", choices=[part.name for part in PARTS], help="some parts")
    parser.add_argument("--jobs", type=int, default=2, help="pieces at the same time")
    parser.add_argument("--fresh", action="store_true", help="forget what was done, take another seed")
    parser.add_argument("--folder", type=Path, default=Path(".soak"))
    chosen = parser.parse_args()
    parts = tuple(part for part in PARTS if not chosen.only or part.name in chosen.only)
    state = State.load(chosen.folder, chosen.fresh)
    print(
        f"soak of seed {state.seed}, {len(state.done)} pieces done before; {chosen.folder} keeps what is done",
        flush=True,
    )
    try:
        soak(state, parts, chosen.jobs, 60 * chosen.minutes)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", flush=True)
    text = report(state, parts)
    (chosen.folder / "report.md").write_text(text)
    print(text)
    return int(any("fault" in piece for piece in state.done.values()))


if __name__ == "__main__":
    sys.exit(main())
