"""Ahead: other threads compile kernels while this one plans further ones, and looks at the plan again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from .known_code import Making, Named, begins, ends, keep_all, key_of

Begin = Callable[[Named], None]  # takes a function that will be wanted; more than once does no harm


def ignored(_: Named) -> None:
    """Does nothing with a function that will be wanted."""


@contextmanager
def ahead() -> Iterator[Begin]:
    """Compiles functions from when they are told. At the end those are there that no other thread makes; if an error
    ends it, none is."""
    making = Making(threading.get_ident(), threading.Event())
    told: set[str] = set()
    try:
        with ExitStack() as stack:
            batch = None

            def begin(wanted: Named) -> None:
                nonlocal batch
                source, function = wanted
                key = key_of(source)
                if key in told or not begins(key, making):
                    return
                told.add(key)
                if batch is None:
                    from .compile import Batch  # with all that writes LLVM's text: most processes find code on disk

                    batch = stack.enter_context(Batch())
                batch.add(key, function)

            yield begin
            if batch is not None:
                keep_all(batch, helping=False)  # this thread may be the one that hears signals
    finally:
        ends(making)
