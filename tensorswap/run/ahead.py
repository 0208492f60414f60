"""Ahead: other threads compile kernels while this one looks at the plan again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .known_code import Making, Named, begins, ends, keep_all, key_of


@contextmanager
def ahead(wanted: Sequence[Named]) -> Iterator[None]:
    """Compiles functions. At the end those are there that no other thread makes; if an error ends it, none is."""
    making = Making(threading.get_ident(), threading.Event())
    named = {key_of(source): function for source, function in wanted}
    try:
        fresh = {key: function for key, function in named.items() if begins(key, making)}
        if not fresh:
            yield
            return
        from .compile import Batch  # with all that writes LLVM's text: most processes find what it makes on disk

        with Batch(fresh) as batch:
            yield
            keep_all(batch, helping=False)  # this thread may be the one that hears signals
    finally:
        ends(making)
