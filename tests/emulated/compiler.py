"""A compiler in a process beside the emulated one: modules and settings go there, object code comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Client, Connection, Listener
from threading import Lock, Thread, local
from typing import Any

from llvmlite import binding

from tensorswap.run import machine_code


@contextmanager
def serving(address: str) -> Iterator[None]:
    """Compiles for all who ask at this address."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    with Listener(address, "AF_UNIX") as listener:
        Thread(target=_accept, args=(listener,), daemon=True).start()
        yield


def _accept(listener: Listener) -> None:
    while True:
        try:
            asker = listener.accept()
        except OSError:  # closed
            return
        Thread(target=_serve, args=(asker,), daemon=True).start()


_foreign: dict[str, Any] = {}  # the settings of those who ask


def _serve(asker: Connection) -> None:
    try:
        while True:
            text, settings = asker.recv()
            _foreign.update(settings)
            machine_code.settings = lambda level: {**_foreign, "opt": level}
            try:
                asker.send(machine_code.object_code(text))
            except Exception as problem:  # it is the asker's
                asker.send(problem)
    except EOFError:
        return


def compiling_at(address: str) -> Callable[[str], bytes]:
    """What stands for `machine_code.object_code` in the emulated process."""
    own = local()  # a connection for each thread: LLVM works on all cores
    lock = Lock()

    @cache
    def settings() -> dict[str, Any]:
        return machine_code.settings(0)

    def object_code(text: str) -> bytes:
        if not hasattr(own, "connection"):
            own.connection = Client(address, "AF_UNIX")
        with lock:
            told = settings()
        own.connection.send((text, told))
        made = own.connection.recv()
        if isinstance(made, Exception):
            raise made
        assert isinstance(made, bytes)
        return made

    return object_code
