"""Forks: a fork waits while another thread imports, plans or compiles. Its child would have locks that nobody opens,
and modules that nobody imports to their end."""

from __future__ import annotations

import _thread
import logging  # noqa: F401  # it registers before this does, see below
import os
import threading
from contextlib import ContextDecorator


class _NoFork(ContextDecorator):
    """Any number of threads may be inside, each as deep as it likes; a fork waits until all others are outside.

    Who is inside may wait for work of another thread, so nobody is kept out while a fork still waits. And a thread that
    forks inside, in a handler of signals, waits for nobody: others may wait for it.
    """

    def __init__(self) -> None:
        self.change = threading.Condition()
        self.depths: dict[int, int] = {}  # of the threads that are inside
        self.forking: int | None = None  # the thread that forks now: in hooks of others it does all work itself
        self.interrupted = False  # by Ctrl-C, while a fork waited: it is heard afterwards

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self.change:
            self.change.wait_for(lambda: self.forking in (None, me) or me in self.depths)
            self.depths[me] = self.depths.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self.change:
            self.depths[me] -= 1
            if not self.depths[me]:
                del self.depths[me]
                self.change.notify_all()

    def before_fork(self) -> None:
        me = threading.get_ident()
        while self.forking != me:
            try:
                with self.change:
                    self.change.wait_for(lambda: self.forking is None and (me in self.depths or not self.depths))
                    self.forking = me
            except KeyboardInterrupt:
                self.interrupted = True

    def after_fork_in_parent(self) -> None:
        with self.change:
            self.forking = None
            self.change.notify_all()
        if self.interrupted:
            self.interrupted = False
            _thread.start_new_thread(_thread.interrupt_main, ())  # what a hook raises is lost, and this comes after it

    def after_fork_in_child(self) -> None:
        me = threading.get_ident()
        self.change = threading.Condition()  # another thread may have had the old one
        self.depths = {me: self.depths[me]} if me in self.depths else {}
        self.forking = None
        self.interrupted = False


NO_FORK = _NoFork()  # stands around what is imported in the middle of a call, plans and compiles
if hasattr(os, "register_at_fork"):  # who registers last is asked first: it waits while logging, which packages use as
    # they are imported, has not locked itself yet
    os.register_at_fork(
        before=NO_FORK.before_fork,
        after_in_parent=NO_FORK.after_fork_in_parent,
        after_in_child=NO_FORK.after_fork_in_child,
    )
