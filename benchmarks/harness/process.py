"""The parent's side of a worker: starting it, asking it, ending it."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from .peers import Peer

FOLDER = Path(__file__).resolve().parent.parent
START_LIMIT = 120.0  # seconds for the imports


class Refused(Exception):
    """A worker's answer other than a result. `status` is "failed", "absent" or "not applicable"."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Worker:
    """One peer in a process tree of its own, which lives until it is closed, killed, or has crashed."""

    module = "harness.worker"  # what runs in it

    def __init__(self, peer: Peer, threads: int, environment: Mapping[str, str]) -> None:
        self.peer = peer
        self.alive = True
        self._reason = ""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the worker)
        try:
            # a session of its own, so that Ctrl-C reaches the parent alone, and the whole tree can be ended
            self._process = subprocess.Popen(
                [peer.interpreter, "-m", self.module, peer.name, str(threads)],
                cwd=FOLDER,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            raise Refused("absent", f"{peer.interpreter}: {error.strerror}") from None
        try:
            hello = self._receive(START_LIMIT)
        except BaseException:
            self.close()
            raise
        self.versions: dict[str, str] = hello["versions"]
        self.import_seconds: float = hello["import_seconds"]

    def ask(self, command: str, *arguments: Any, limit: float) -> dict[str, Any]:
        """One command and its answer. After `limit` seconds the worker is killed."""
        if not self.alive:
            raise Refused("failed", "the worker has ended")
        with contextlib.suppress(BrokenPipeError):  # the answer tells why
            pickle.dump((command, arguments), self._commands, protocol=pickle.HIGHEST_PROTOCOL)
            self._commands.flush()
        return self._receive(limit)

    def _receive(self, limit: float) -> dict[str, Any]:
        alarm = threading.Timer(limit, self._too_slow, [limit])
        alarm.daemon = True
        alarm.start()
        try:
            status, answer = pickle.load(self._answers)
        except (EOFError, pickle.UnpicklingError):
            self.kill()
            raise Refused("failed", self._reason or f"the worker died: {self._last_words()}") from None
        finally:
            alarm.cancel()
        if status != "done":
            raise Refused(status, answer)
        result: dict[str, Any] = answer
        return result

    def _too_slow(self, limit: float) -> None:
        self._reason = f"not done after {limit:g} s"
        self.kill()

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.poll()}"

    @property
    def _commands(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _answers(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def kill(self) -> None:
        """Ends the worker and all that it started."""
        self.alive = False
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        with contextlib.suppress(BrokenPipeError):
            self._commands.close()
        self._answers.close()
        self._log.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
