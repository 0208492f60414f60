"""What a child process may use, set by itself before it reads anything."""

from __future__ import annotations

import faulthandler
import os
import threading
import time

try:
    import resource
except ImportError:  # Windows has no such limits: there the parent's clock is the only one
    resource = None  # type: ignore[assignment]

WATCH = 1.0  # seconds between two looks at the parent
GRACE = 5.0  # that a parent has to end a child which takes too long, before it ends itself


def limit_memory(size: int) -> bool:
    """No more address space than this, and no core file; False where the system cannot limit it."""
    if resource is None:
        return False
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    except (ValueError, OSError):  # macOS refuses it
        return False
    return True


def end_with_parent() -> None:
    """A child whose parent is gone ends, though it may be in the middle of something."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Clock:
    """Ends the process if a job takes longer than it may, even inside machine code."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        faulthandler.dump_traceback_later(self.seconds + GRACE, exit=True)

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()
