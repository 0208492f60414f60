"""The kernels of a call as a Python file that Numba compiles: `run(arrays)` takes inputs in order and gives outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernel import python
from ..kernel.ir import Role, Word, type_in_memory, type_of
from ..lower.layout import BestOf, CopiesOf
from .execute import Executable

STEP = "step"  # of a block, whose kernels are called in each


def source(made: Executable) -> str:
    kernels = [kernel.kernel for kernel in made.kernels]
    parts = [python.HEAD, *python.DEFINITIONS.of(kernels)]
    parts += [python.kernel(kernel, number) for number, kernel in enumerate(kernels)]
    return "\n\n".join([*parts, "\n".join(PythonHost(made).lines()) + "\n"])


@dataclass(frozen=True)
class Memory:
    """Memory that is no input: its shape and type, and the value that it starts from, if there is one."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: float | int | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.itemsize

    def __str__(self) -> str:
        kind = python.NUMPY[type_in_memory(self.dtype)]
        if self.start is None:
            return f"np.empty({self.shape}, {kind})"
        start = f"{'-' if self.start < 0 else ''}np.inf" if math.isinf(self.start) else repr(self.start)
        return f"np.full({self.shape}, {start}, {kind})"


class Host:
    """What the function around the kernels of a call needs to know. Tensors go by number: no name of a user's stands in
    generated source."""

    def __init__(self, made: Executable) -> None:
        self.made = made
        self.names: dict[Any, str] = {}

    def name(self, tensor: Any) -> str:
        return self.names.setdefault(tensor, f"t{len(self.names)}")

    def arrays(self) -> dict[Any, Memory]:
        """All memory that is no input, save what the parts of a kernel have to themselves."""
        made = self.made
        found: dict[Any, Memory] = {}
        for number, kernel in enumerate(made.kernels):
            for word in kernel.kernel.words:
                item, layout = word.item, kernel.layout
                if word.role is Role.COPY:
                    copies = (max(made.parts[number] - 1, 1), layout.elements(item))
                    found[CopiesOf(item), number] = Memory(copies, layout.stored(item))
                elif word.role in (Role.TENSOR, Role.OWN) and not isinstance(item, CopiesOf):
                    start = 0 if isinstance(item, BestOf) else made.filled.get(item)
                    found.setdefault(item, Memory((layout.elements(item),), layout.stored(item), start))
        for name in made.loops.outputs:
            shape = (math.prod(made.sizes.shapes[name]),)
            found.setdefault(name, Memory(shape, made.stored(name), made.filled.get(name, 0)))
        return {tensor: memory for tensor, memory in found.items() if tensor not in made.loops.inputs}


class PythonHost(Host):
    """The function that allocates memory and calls the kernels, in Python."""

    def lines(self) -> Iterator[str]:
        made = self.made
        yield "def run(arrays):"
        for position, (name, dtype) in enumerate(made.inputs):
            array = f"np.ascontiguousarray(arrays[{position}], {python.NUMPY[type_of(dtype)]}).reshape(-1)"
            view = ".view(np.uint8)" if dtype.kind == "b" else ""
            copy = ".copy()" if name in made.loops.updated else ""
            yield f"    {self.name(name)} = {array}{view}{copy}"
        for tensor, memory in self.arrays().items():
            yield f"    {self.name(tensor)} = {memory}"
        for number, kernel in enumerate(made.kernels):
            rounds = made.rounds_of(number)
            if rounds is not None and number == rounds.first:
                yield f"    for {STEP} in range({rounds.begin}, {rounds.past}, {rounds.way}):"
            if number not in made.producer or made.copies(number):
                arguments = [str(made.parts[number]), *(self.argument(number, word) for word in kernel.kernel.words)]
                yield f"{'    ' if rounds else ''}    kernel{number}({', '.join(arguments)})"
        if made.scalars:
            wrong = " or ".join(f"{self.name(name)}[0] > 0" for name in made.scalars)
            yield f"    if {wrong}:"
            yield '        raise IndexError("an index, a divisor, or an element that is written twice")'
        yield f"    return [{', '.join(self.result(name) for name in made.results)}]"

    def argument(self, number: int, word: Word) -> str:
        made, kernel = self.made, self.made.kernels[number]
        match word.role:
            case Role.SIZE:
                return str(word.item)
            case Role.STEP:
                return STEP
            case Role.COPIES:
                return str(made.copies(number))
            case Role.LOCAL:
                shape = (made.parts[number], kernel.layout.elements(word.item))
                return str(Memory(shape, kernel.layout.stored(word.item)))
            case Role.COPY:
                return self.name((CopiesOf(word.item), number))
        if isinstance(word.item, CopiesOf):
            return f"{self.name((word.item, made.producer[number]))}.reshape(-1)"
        return self.name(word.item)

    def result(self, name: str) -> str:
        shape, kind = self.made.sizes.shapes[name], python.NUMPY[type_of(self.made.stored(name))]
        return f"{self.name(name)}.view({kind}).reshape({shape})"
