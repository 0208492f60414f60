"""One row of the table: every peer prepares and is checked, then the rounds go from peer to peer, then memory."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import check, memory, settings
from .interval import is_clear
from .peers import OURS, PEERS, Peer
from .process import Refused, Worker
from .result import SUCCEEDED, Measurement, RowResult
from .workload import Results, Row

Say = Callable[[str], None]
CLOSE = 1.25  # times as long as the fastest other peer may take who could be that in further rounds


@dataclass(frozen=True)
class Conditions:
    """How it is measured, the same for all."""

    threads: int
    rounds: int
    turn_seconds: float
    limit_seconds: float
    memory: bool
    caches: Path
    most_rounds: int = 0  # of tensorswap and who comes near, while it is not clear who is faster


class Team:
    """The workers, one for each peer. One that died is started again when it is next asked for."""

    def __init__(self, peers: Sequence[Peer], conditions: Conditions) -> None:
        self.peers = [peer.name for peer in peers]
        self.absent: dict[str, str] = {}
        self._conditions = conditions
        self._workers: dict[str, Worker] = {}

    def worker(self, name: str) -> Worker:
        if name in self.absent:
            raise Refused("absent", self.absent[name])
        found = self._workers.get(name)
        if found is None or not found.alive:
            if found is not None:
                found.close()
            try:
                self._workers[name] = self.start(name)
            except Refused as refusal:
                if refusal.status == "absent":
                    self.absent[name] = refusal.reason
                raise
        return self._workers[name]

    def start(self, name: str, extra: Mapping[str, str] | None = None) -> Worker:
        """A new process, apart from the one that lives through the run."""
        shared = settings.environment(self._conditions.threads, self._conditions.caches)
        return Worker(PEERS[name], self._conditions.threads, {**shared, **(extra or {})})

    def release(self, name: str) -> None:
        """Lets a worker drop its arrays and code, if it lives."""
        found = self._workers.get(name)
        if found is not None and found.alive:
            with contextlib.suppress(Refused):
                found.ask("release", limit=self._conditions.limit_seconds)

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


def measure(
    row: Row, result: RowResult, team: Team, conditions: Conditions, limits: Mapping[str, float], say: Say
) -> None:
    """Fills the result in step by step, so that what is measured stays if the run is ended early."""
    say("reference")
    try:
        expected = reference(row, result, team, conditions, limits)
    except Refused as refusal:
        reason = f"there is no reference: {refusal.reason}"
        result.peers |= {name: Measurement(status="failed", reason=reason) for name in team.peers}
        return
    for name in team.peers:
        if name not in team.absent:
            say(f"first call and check of {PEERS[name].label}")
        result.peers[name] = prepare(row, name, expected, team, conditions)
    runners = [name for name in team.peers if result.peers[name].status == SUCCEEDED]
    say(f"{conditions.rounds} rounds")
    for number in range(conditions.rounds):
        for name in runners:
            turn(name, result.peers[name], team, conditions, first=number == 0)
    for number in range(conditions.rounds, conditions.most_rounds):
        close = contenders(result)
        if close and number == conditions.rounds:
            say(f"up to {conditions.most_rounds} rounds: {', '.join(PEERS[name].label for name in close)} are close")
        for name in close:
            turn(name, result.peers[name], team, conditions, first=False)
    for name in runners:
        team.release(name)
    if conditions.memory:
        say("memory")
        for name in runners:
            footprint(row, name, result.peers[name], team, conditions)


def contenders(result: RowResult) -> list[str]:
    """Tensorswap and those that may be faster or slower, if more rounds would show which of the two it is."""
    ours, best = result.peers.get(OURS), result.best_peer
    if ours is None or best is None or not ours.rounds:
        return []
    seconds, rounds = result.seconds(best) or 0.0, len(ours.rounds)
    others = [n for n, found in result.others.items() if found.seconds and found.seconds <= CLOSE * seconds]
    others = [n for n in others if len(result.peers[n].rounds) == rounds]  # those of all rounds
    if best not in others or is_clear(result.peers[best].rounds, ours.rounds):
        return []
    return [OURS, *others]


def reference(row: Row, result: RowResult, team: Team, conditions: Conditions, limits: Mapping[str, float]) -> Results:
    answer = team.worker(row.workload.reference).ask("reference", row.key, limit=conditions.limit_seconds)
    result.bytes = answer["bytes"]
    if result.instructions is not None:
        arithmetic = result.instructions / (limits[row.dtype] / 2)  # a multiply-add counts two there
        result.limit_seconds = max(arithmetic, result.bytes / limits["bandwidth"])
    results: Results = answer["results"]
    return results


def prepare(row: Row, name: str, expected: Results, team: Team, conditions: Conditions) -> Measurement:
    """The first call, and whether its results are right. What is wrong gets no time."""
    try:
        answer = team.worker(name).ask("prepare", row.key, limit=conditions.limit_seconds)
    except Refused as refusal:
        return Measurement(status=refusal.status, reason=refusal.reason)
    verdict = check.compare(row, answer["results"], expected)
    if verdict.wrong:
        team.release(name)
    return Measurement(
        status="wrong" if verdict.wrong else SUCCEEDED,
        reason=verdict.wrong,
        error=verdict.error if math.isfinite(verdict.error) else None,
        tolerance=verdict.tolerance,
        build_seconds=answer["build_seconds"],
        first_call_seconds=answer["first_call_seconds"],
    )


def turn(name: str, found: Measurement, team: Team, conditions: Conditions, first: bool) -> None:
    if found.status != SUCCEEDED:  # it failed in an earlier round
        return
    try:
        worker = team.worker(name)
        if first:
            answer = worker.ask("repetitions", conditions.turn_seconds, limit=conditions.limit_seconds)
            found.repetitions = answer["repetitions"]
        answer = worker.ask("turn", found.repetitions, limit=conditions.limit_seconds)
        found.rounds.append(answer["seconds"])
    except Refused as refusal:
        found.status, found.reason = refusal.status, refusal.reason
        found.rounds.clear()


def footprint(row: Row, name: str, found: Measurement, team: Team, conditions: Conditions) -> None:
    """In a new process. That it fails there is no reason to doubt the times."""
    if found.status != SUCCEEDED:
        return
    try:
        with team.start(name, memory.ALLOCATOR) as worker:
            answer = worker.ask("footprint", row.key, limit=conditions.limit_seconds)
    except Refused:
        return
    found.kept_bytes, found.call_bytes = answer["kept_bytes"], answer["call_bytes"]
    found.cached_first_call_seconds = answer["first_call_seconds"]
