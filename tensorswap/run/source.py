"""The kernels of a call as a Python file that Numba compiles: `run(arrays)` takes inputs and gives outputs, in order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..kernel import python
from ..kernel.ir import Role, Word, type_in_memory
from ..lower.kernel import Lowered
from ..lower.layout import BestOf, CopiesOf, Tensor
from .execute import Executable


def source(made: Executable) -> str:
    kernels = [kernel.kernel for kernel in made.kernels]
    parts = [python.HEAD, *python.definitions(kernels)]
    parts += [python.kernel(kernel, number) for number, kernel in enumerate(kernels)]
    return "\n\n".join([*parts, "\n".join(_host(made)) + "\n"])


def _host(made: Executable) -> Iterator[str]:
    """The function that allocates memory, gives it first values, and calls the kernels."""
    names = _Names()
    inputs = [names.of(name) for name in made.loops.inputs]
    yield "def run(arrays):"
    if inputs:
        yield f"    {', '.join(inputs)}, = (np.ascontiguousarray(array).reshape(-1) for array in arrays)"
    for name, dtype in made.inputs:
        kind = type_in_memory(dtype)
        change = ".copy()" if name in made.loops.updated else ""
        if dtype.kind == "b" or change:
            yield f"    {names.of(name)} = {names.of(name)}.view({python.NUMPY[kind]}){change}"
    for tensor, elements, dtype, start in _memories(made):
        filled = f"np.full({elements}, {start!r}, {dtype})".replace("-inf", "-np.inf").replace(" inf", " np.inf")
        yield f"    {names.of(tensor)} = {f'np.empty({elements}, {dtype})' if start is None else filled}"
    for number, kernel in enumerate(made.kernels):
        if number in made.producer and not made.copies(number):
            continue
        count = made.parts(kernel)
        arguments = [_argument(made, number, kernel, word, names, count) for word in kernel.kernel.words]
        yield f"    kernel{number}({', '.join([str(count), *arguments])})"
    results = [
        f"{names.of(name)}.view({python.NUMPY[_type(made, name)]}).reshape({made.sizes.shapes[name]})"
        for name in made.loops.outputs
    ]
    yield f"    return [{', '.join(results)}]"


class _Names:
    """Tensors by number: no name of a user's stands in generated source."""

    def __init__(self) -> None:
        self.known: dict[Any, str] = {}

    def of(self, tensor: Any) -> str:
        return self.known.setdefault(tensor, f"t{len(self.known)}")


def _type(made: Executable, name: str) -> Any:
    from ..kernel.ir import type_of

    return type_of(made.stored(name))


def _memories(made: Executable) -> Iterator[tuple[Any, int, str, float | int | None]]:
    """All memory that is no input: what it is for, its elements, their type, and the first value if there is one."""
    done: set[Any] = set(made.loops.inputs)
    for number, kernel in enumerate(made.kernels):
        for word in kernel.kernel.words:
            tensor: Tensor | tuple[Any, int] = word.item
            if word.role is Role.COPY:
                copies = max(made.parts(kernel) - 1, 1)
                elements, dtype = (copies, kernel.layout.elements(word.item)), kernel.layout.stored(word.item)
                yield (CopiesOf(word.item), number), elements, python.NUMPY[type_in_memory(dtype)], None  # type: ignore[misc]
                continue
            if word.role not in (Role.TENSOR, Role.OWN) or tensor in done or isinstance(tensor, CopiesOf):
                continue
            done.add(tensor)
            start = 0 if isinstance(tensor, BestOf) else made.filled.get(tensor) if isinstance(tensor, str) else None
            dtype = kernel.layout.stored(tensor)  # type: ignore[arg-type]
            yield tensor, kernel.layout.elements(tensor), python.NUMPY[type_in_memory(dtype)], start  # type: ignore[arg-type]
    for name in made.loops.outputs:
        if name not in done:
            elements = math.prod(made.sizes.shapes[name])
            yield name, elements, python.NUMPY[type_in_memory(made.stored(name))], made.filled.get(name, 0)


def _argument(made: Executable, number: int, kernel: Lowered, word: Word, names: _Names, parts: int) -> str:
    match word.role:
        case Role.SIZE:
            return str(word.item)
        case Role.COPIES:
            return str(made.copies(number))
        case Role.LOCAL:
            kind = python.NUMPY[type_in_memory(kernel.layout.stored(word.item))]
            return f"np.empty(({parts}, {kernel.layout.elements(word.item)}), {kind})"
        case Role.COPY:
            return names.of((CopiesOf(word.item), number))
    if isinstance(word.item, CopiesOf):
        return f"{names.of((word.item, made.producer[number]))}.reshape(-1)"
    return names.of(word.item)
