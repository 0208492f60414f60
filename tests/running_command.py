"""The command `tensorswap` for tests: in this process, or in one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tensorswap.command.main import main

MATMUL = "Y[i,j] += A[i,k] * B[k,j]"


class Command:
    """Runs the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and messages."""
        try:
            code = main(words)
        except SystemExit as end:  # argparse ends so
            code = int(end.code or 0)
        return code, *self.capsys.readouterr()

    def prints(self, *words: str) -> str:
        """The output of a run that succeeds."""
        code, output, messages = self(*words)
        assert code == 0, messages
        return output

    def refuses(self, *words: str) -> str:
        """The message of a run that is refused: one for people, on standard error."""
        code, _, messages = self(*words)
        assert code == 2
        assert messages.startswith("tensorswap: ")
        return messages


# The second is Python's own way to end, if Ctrl-C came while it ran a text, as named tuples and imports do: it ends by
# the signal then, which a shell tells as 130 too.
INTERRUPTED = (130, -signal.SIGINT)


def started(*words: str, **variables: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    line = [sys.executable, "-m", "tensorswap", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **variables}
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
