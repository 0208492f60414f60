"""Workers: children that do one job at a time within limits. One that takes too long is killed, and another starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from typing import Any

LINE = 64 * 1024 * 1024  # bytes of an answer, at most
START = 120.0  # seconds until a child must be ready


class Busy(Exception):
    """More jobs wait than anybody would wait for."""


class NotStarted(Exception):
    """A child ended, or did nothing, before it was ready."""


@dataclass
class Worker:
    """One child. `waiting` are jobs that may queue for it."""

    memory: int
    warm: str
    waiting: int = 8
    limited: bool = True
    queued: int = 0
    restarts: int = -1
    process: asyncio.subprocess.Process | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """A new child, ready for a job."""
        self.restarts += 1
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tensorswap.playground.child", str(self.memory), self.warm,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True, limit=LINE,
        )  # fmt: skip
        try:
            told = await self._read(self.process, START)
            if not isinstance(told, dict) or "ready" not in told:
                raise NotStarted
        except BaseException:  # also if nobody waits any more: what it would say yet is no answer to a job
            await self.stop()
            raise
        self.limited = bool(told["limited"])

    def start_soon(self) -> None:
        """The next child starts while nobody waits for it."""
        self.starting = asyncio.create_task(self.start())

    async def ask(self, job: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to a job, or why there is none."""
        if self.queued >= self.waiting:
            raise Busy
        self.queued += 1
        try:
            async with self.lock:
                return await self._ask({**job, "seconds": seconds}, seconds)
        finally:
            self.queued -= 1

    async def _ask(self, job: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            await self._ready()
        except (NotStarted, OSError):
            return {"stopped": "start", "seconds": seconds, "memory": self.memory}
        process = self.process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            await process.stdin.drain()
            told = await self._read(process, seconds)
        except (BrokenPipeError, ConnectionResetError):
            told = "ended"
        except asyncio.CancelledError:  # an answer that nobody reads must not be the next job's
            await self.stop()
            raise
        if isinstance(told, dict) and "memory" not in told:
            return told
        await self.stop()
        self.start_soon()
        if isinstance(told, dict):
            told = "memory"
        return {"stopped": told, "seconds": seconds, "memory": self.memory}

    async def _ready(self) -> None:
        """Waits for the child that is starting; if there is none, or it failed, another starts."""
        starting, self.starting = self.starting, None
        if starting is not None:
            with contextlib.suppress(NotStarted, OSError):
                await starting
        if self.process is None or self.process.returncode is not None:
            await self.start()

    async def _read(self, process: asyncio.subprocess.Process, seconds: float) -> dict[str, Any] | str:
        """The next answer; `time` if there is none yet, `ended` if there will be none."""
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), seconds)
        except TimeoutError:
            return "time"
        if not line.endswith(b"\n"):
            return "ended"
        told: dict[str, Any] = json.loads(line)
        return told

    async def stop(self) -> None:
        """Kills the child and all that it started."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    async def close(self) -> None:
        if self.starting is not None:
            self.starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, NotStarted, OSError):
                await self.starting
        await self.stop()
