"""Words: what each kernel of a program is told: sizes, and the addresses of arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..kernel.ir import Role, Word
from ..lower.layout import CopiesOf, Tensor
from .execute import Executable
from .memory import spans
from .ready import Fill, Ready, Result


def ready(made: Executable) -> Ready:
    """All that runs need; the kernels are compiled."""
    return _Words(made).ready()


class _Words:
    """The words that kernels get: which of them hold the address of which array."""

    def __init__(self, made: Executable) -> None:
        self.made = made
        self.places, self.size = made.buffers
        names = [name for name, _ in made.inputs]
        slots: dict[Tensor, int] = {name: k for k, name in enumerate(names)}
        self.results: list[Result] = []
        for name in made.loops.written:
            if name in made.loops.outputs or name in made.loops.updated:
                old = names.index(name) if name in names else None
                slots[name] = len(names) + len(self.results)
                shape, start = made.sizes.shapes[name], made.filled.get(name)
                self.results.append(Result(name, False, old, shape, _plain(made.stored(name)), start))
        for best in dict.fromkeys(made.winners):
            slots[best] = len(names) + len(self.results)
            dtype = _plain(made.best(made.loops, best.tensor))
            self.results.append(Result(best.tensor, True, None, made.sizes.shapes[best.tensor], dtype, 0))
        self.slots, self.memory = slots, len(names) + len(self.results)
        self.words: list[int] = []
        self.links: list[tuple[int, int, int, int]] = []
        for position, kernel in enumerate(made.kernels):
            own, each = made.scratch(kernel)
            self.words += [made.parts[position], each]
            for word in kernel.kernel.words:
                self.add(word, position, own)

    def add(self, word: Word, position: int, own: Mapping[Hashable, int]) -> None:
        """A word of the kernel at a position, whose parts have tensors of their own."""
        number = 0
        match word.role:
            case Role.STEP:
                pass  # the runner tells it
            case Role.SIZE:
                number = int(word.item)
            case Role.COPIES:
                number = self.made.copies(position)
            case Role.LOCAL:
                self.link(self.memory, self.places["scratch", position] + own[word.item])
            case Role.COPY:
                self.link(self.memory, self.places[CopiesOf(word.item), position])
            case _ if isinstance(word.item, CopiesOf):
                self.link(self.memory, self.places[word.item, self.made.producer[position]])
            case _ if word.item in self.slots:
                self.link(self.slots[word.item], 0)
            case _:
                self.link(self.memory, self.places[word.item])
        self.words.append(number)

    def link(self, array: int, place: int) -> None:
        """The next word has the address of a place in an array."""
        self.links.append((len(self.words), array, place, 0))

    def ready(self) -> Ready:
        made = self.made
        starts = [
            Fill(self.places[name], made.sizes.shapes[name], _plain(made.stored(name)), start)
            for name, start in made.filled.items()
            if name in self.places
        ]
        return Ready(
            inputs=tuple((name, _plain(dtype)) for name, dtype in made.inputs),
            outputs=made.loops.outputs,
            work=made.work,
            made=tuple(self.results),
            scalars=made.scalars,
            rows=tuple(made.rows),
            words=np.array(self.words, np.int64),
            links=np.array(self.links, np.int64).reshape(-1, 4),
            size=self.size,
            zeros=tuple(spans((fill.place, fill.place + fill.size) for fill in starts if not fill.value)),
            fills=tuple(fill for fill in starts if fill.value),
            between=made.memory,
        )


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The usual one of those that are equal: of several names for words, and without what users note in one."""
    return np.dtype(dtype.str)
