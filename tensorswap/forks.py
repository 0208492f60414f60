"""Forks: a fork waits while another thread imports, plans or compiles. Its child would have locks that nobody opens,
and modules that nobody imports to their end."""

from __future__ import annotations

import logging  # noqa: F401  # it registers before this does, see below
import os
import threading
from contextlib import ContextDecorator


class _NoFork(ContextDecorator):
    """Any number of threads may be inside, each as deep as it likes; a fork waits until all others are outside.

    Who is inside may wait for work of another thread, so nobody is kept out while somebody is inside.
    """

    def __init__(self) -> None:
        self.change = threading.Condition()  # held by a thread that forks, so that nobody comes or goes
        self.depths: dict[int, int] = {}  # of the threads that are inside

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self.change:
            self.depths[me] = self.depths.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self.change:
            self.depths[me] -= 1
            if not self.depths[me]:
                del self.depths[me]
                self.change.notify_all()

    def before_fork(self) -> None:
        self.change.acquire()
        self.change.wait_for(lambda: not self.depths.keys() - {threading.get_ident()})

    def after_fork(self) -> None:
        self.change.release()


NO_FORK = _NoFork()  # stands around what is imported in the middle of a call, plans and compiles
if hasattr(os, "register_at_fork"):  # who registers last is asked first: it waits while logging, which packages use as
    # they are imported, has not locked itself yet
    os.register_at_fork(
        before=NO_FORK.before_fork, after_in_parent=NO_FORK.after_fork, after_in_child=NO_FORK.after_fork
    )
