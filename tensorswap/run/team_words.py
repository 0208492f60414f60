"""The words in memory by which threads share kernels, and which stop them: machine code knows them by name."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache

from llvmlite import binding

from ..kernel.names import STOP_WORD, TEAM_WORDS
from .interrupt import STOP
from .objects import for_ever


class Team(IntEnum):
    """Where each word lies: those that a thread asks for at once are beside each other, those that others write far
    away."""

    TICKET = 0
    ADDRESS = 1  # of the kernel
    CONTEXT = 2
    THREADS = 3  # that take part, by their numbers
    DONE = 16  # parts that helpers have run, of all kernels
    ASLEEP = 48  # threads
    MEMBERS = 49  # threads that help, each of which has the number that it found here
    MUTEX = 64  # of the system's
    CONDITION = 96
    END = 128


_words = for_ever((ctypes.c_int64 * (Team.END + 16))())


@cache
def introduce() -> None:
    """Makes the words that stop kernels and hand them out known to LLVM."""
    binding.add_symbol(STOP_WORD, ctypes.addressof(STOP))
    start = ctypes.addressof(_words)
    start += -start % 128
    system = ctypes.CDLL(None)
    system.pthread_mutex_init(ctypes.c_void_p(start + 8 * Team.MUTEX), None)
    system.pthread_cond_init(ctypes.c_void_p(start + 8 * Team.CONDITION), None)
    binding.add_symbol(TEAM_WORDS, start)
