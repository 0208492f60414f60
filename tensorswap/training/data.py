"""Data: arrays with an axis of examples, checked before any time is spent on them."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, DtypeError, ShapeError
from ..language import ir
from ..language.hints import closest
from ..program import Program, program
from ..run.arguments import as_array

Array = NDArray[Any]
BLOCK = 1 << 24  # elements that are looked at in one go


@dataclass(frozen=True)
class Data:
    """Arrays by name: those with an axis of examples, and those that serve every batch as they are."""

    examples: dict[str, Array]
    axes: dict[str, int]
    fixed: dict[str, Any]
    count: int

    def batch(self, rows: Array) -> dict[str, Array]:
        """Some of the examples."""
        return {name: np.take(array, rows, axis=self.axes[name]) for name, array in self.examples.items()}

    def forget(self) -> None:
        """Lets the system drop the pages of files that were read: a file is not to fill the memory."""
        for array in self.examples.values():
            mapped = getattr(array, "_mmap", None) if isinstance(array, np.memmap) else None
            if mapped is not None and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)


def axis_of(loops: ir.Loops, name: str, batch: str) -> int | None:
    """The axis of a tensor that the batch index runs over."""
    accesses = [*loops.header_accesses, *(a for s in loops.statements for a in s.reads)]
    for access in accesses:
        if access.tensor == name and ir.Index(batch) in access.indices:
            return access.indices.index(ir.Index(batch))
    return None


def read(loops: ir.Loops, given: Any, batch: str, dtype: np.dtype[Any] | None) -> Data:
    """Sorts the arrays and checks them: names, numbers of axes and examples, and that nothing is NaN."""
    if not isinstance(given, Mapping):
        raise ArgumentError("data is a dict of arrays by name, or an iterator of such dicts", hint='{"X": x, "t": t}')
    if batch not in loops.indices:
        raise ArgumentError(
            f"the batch index {str(batch)[:80]!r} does not stand in the program",
            hint=closest(str(batch), list(loops.indices)) or f"its indices are {', '.join(loops.indices)}",
        )
    examples: dict[str, Array] = {}
    axes: dict[str, int] = {}
    fixed: dict[str, Any] = {}
    for name, value in given.items():
        if name not in loops.inputs:
            raise ArgumentError(
                f"the program has no input {str(name)[:80]!r}",
                hint=closest(str(name), list(loops.inputs)) or f"its inputs are {', '.join(loops.inputs)}",
            )
        axis = axis_of(loops, name, batch)
        if axis is None:
            fixed[name] = value
            continue
        array = value if isinstance(value, np.memmap) else as_array(name, value)
        rank = loops.ranks.get(name)
        if rank is not None and array.ndim != rank:
            raise ShapeError(
                f"{name} has {array.ndim} axes, the program reads {rank}", hint=f"its shape is {array.shape}"
            )
        examples[name], axes[name] = _typed(array, dtype), axis
    counts = {name: array.shape[axes[name]] for name, array in examples.items()}
    if not counts:
        raise ArgumentError(
            f"no array of the data has the batch index {batch}", hint=f"pass arrays with an axis {batch}"
        )
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{count} in {name}" for name, count in counts.items())
        raise ShapeError(f"the arrays differ in the number of examples: {shown}", hint="one row of each is one example")
    count = next(iter(counts.values()))
    if not count:
        raise ShapeError("the data holds no example")
    data = Data(examples, axes, fixed, count)
    for name, array in examples.items():
        _refuse_nan(name, array, data)
    return data


def _typed(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """Floats of the type that is trained in; a file that is mapped stays as it is."""
    if array.dtype.kind != "f" or dtype is None or array.dtype == dtype:
        return array if isinstance(array, np.memmap) and array.flags.c_contiguous else np.ascontiguousarray(array)
    if isinstance(array, np.memmap):
        raise DtypeError(
            f"a mapped file of {array.dtype} cannot be trained in {dtype}", hint="pass parameters of its type"
        )
    return np.ascontiguousarray(array, dtype)


def _refuse_nan(name: str, array: Array, data: Data) -> None:
    if array.dtype.kind != "f":
        return
    flat = array.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        wrong = np.isnan(flat[start : start + BLOCK])
        if wrong.any():
            place = np.unravel_index(start + int(np.argmax(wrong)), array.shape)
            at = ", ".join(str(int(p)) for p in place)
            raise ArgumentError(f"{name}[{at}] is NaN", hint="clean the data first: nothing can be learned from it")
        data.forget()


def picker(loops: ir.Loops, data: Data, batch: str) -> Program:
    """The program that picks a batch out of the data: `X[b,i] = X_all[rows[b],i]` for every array."""
    taken = set(loops.names)
    lines = []
    for name, array in data.examples.items():
        places = [batch if k == data.axes[name] else ir.fresh(f"axis{k}_{name}", taken) for k in range(array.ndim)]
        whole = [f"rows[{batch}]" if k == data.axes[name] else place for k, place in enumerate(places)]
        lines.append(f"{name}[{','.join(places)}] = {name}_all[{','.join(whole)}]")
    return program("\n".join(lines), list(data.examples))


def chunks(given: Any) -> Iterator[Any]:
    """The parts of the data: one if it is a dict, or those that an iterator gives."""
    if isinstance(given, Mapping):
        yield given
    else:
        try:
            yield from given
        except TypeError as error:
            if "iterable" not in str(error):
                raise
            raise ArgumentError("data is a dict of arrays by name, or an iterator of such dicts") from error
