"""Data: arrays with an axis of examples, checked before any time is spent on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, ShapeError
from ..language import ir
from ..language.given_numbers import shown
from ..language.hints import closest
from ..program import Program
from ..rules.batch import expand_batch
from ..run.arguments import as_array
from .mapped import Mapped, mapped, private
from .shuffle import Rows

BLOCK = 1 << 24  # elements that are looked at in one go
WHOLE = 1 << 26  # bytes of a file that is read once, and then held
WINDOW = 1 << 26  # bytes of examples that are read at a time, of a larger one


@dataclass(frozen=True)
class Data:
    """Arrays by name: those with an axis of examples, and those that serve every batch as they are.

    Where a file is too large to be held, `examples` are a window that is filled with those asked for, and `sources`
    say where they come from.
    """

    examples: dict[str, Array]
    axes: dict[str, int]
    fixed: dict[str, Any]
    count: int
    sources: dict[str, Array | Mapped] = field(default_factory=dict)

    @property
    def window(self) -> int:
        """How many examples steps can read at a time."""
        return next(int(array.shape[self.axes[name]]) for name, array in self.examples.items())

    def fill(self, rows: Rows) -> Rows:
        """Brings examples in, if they are not all there; tells where they stand."""
        if not self.sources:
            return rows
        for name, source in self.sources.items():
            axis = self.axes[name]
            found = source.take(rows, axis)
            np.moveaxis(self.examples[name], axis, 0)[: len(rows)] = np.moveaxis(found, axis, 0)
        here = np.arange(len(rows))
        for name in self.examples:
            refuse_nan(name, self.batch(here, [name])[name], rows, self.axes[name])
        return here

    def batch(self, rows: Array, names: Iterable[str] | None = None) -> dict[str, Array]:
        """Some of the examples that are there."""
        return {
            name: np.take(self.examples[name], rows, axis=self.axes[name])
            for name in (self.examples if names is None else names)
        }

    def batches(self, size: int) -> Iterator[dict[str, Array]]:
        """All examples in order."""
        length = max(self.window // size * size, 1)
        for start in range(0, self.count, length):
            here = self.fill(np.arange(start, min(start + length, self.count)))
            for first in range(0, len(here), size):
                yield self.batch(here[first : first + size])

    def ranges(self) -> dict[str, tuple[int, int]]:
        """The least and greatest number of each array of whole numbers; a file is gone through, and NaN refused."""
        found: dict[str, tuple[int, int]] = {}
        for start in range(0, self.count, self.window):
            here = self.fill(np.arange(start, min(start + self.window, self.count)))
            for name, array in self.examples.items():
                if array.dtype.kind in "iu" and array.size:
                    part = np.moveaxis(array, self.axes[name], 0)[: len(here)]
                    low, high = found.get(name, (int(part.min()), int(part.max())))
                    found[name] = min(low, int(part.min())), max(high, int(part.max()))
        return found


def with_examples(program: Program, given: Any, batch: Any) -> Program:
    """The program with the first of the axes that `...` stands for named as the index of examples, if no index is: ops
    leave the axes ahead of their own to `...`, and so data that enters through calls alone has no other name for it."""
    loops = program.loops
    if not isinstance(batch, str) or batch in loops.names or ir.BATCH not in loops.indices:
        return program
    batched = {a.tensor for a in loops.accesses if a.batched}
    arrays = {name: given[name] for name in batched if isinstance(given, Mapping) and name in given}
    ranks = {name: len(v.shape) if hasattr(v, "shape") else np.ndim(v) for name, v in arrays.items()}
    if not ranks:
        return program
    written_out = expand_batch(loops, ranks)
    ahead = next((n for n in written_out.indices if n not in loops.indices), None)
    if ahead is None:
        return program
    named: dict[ir.Expr, ir.Expr] = {ir.Index(ahead): ir.Index(batch), ir.Size(ahead): ir.Size(batch)}
    return Program(ir.map_loops(written_out, lambda node: named.get(node, node)))


def axis_of(loops: ir.Loops, name: str, batch: str) -> int | None:
    """The axis of a tensor that the batch index runs over."""
    accesses = [*loops.header_accesses, *(a for s in loops.statements for a in s.reads)]
    for access in accesses:
        if access.tensor == name and ir.Index(batch) in access.indices:
            return access.indices.index(ir.Index(batch))
    return None


def read(
    loops: ir.Loops,
    given: Any,
    batch: str,
    size: int,
    dtype: np.dtype[Any] | None,
    parameters: Iterable[str] = (),
) -> Data:
    """Sorts the arrays and checks them: names, numbers of axes and examples, and that nothing is NaN."""
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"data is a dict of arrays by name, or an iterable of such dicts, not {shown(type(given))}",
            hint='{"X": x, "t": t}',
        )
    if not isinstance(batch, str) or batch not in loops.indices:
        hint = closest(batch, loops.indices, "its indices are")
        raise ArgumentError(f"the batch index {shown(batch)} does not stand in the program", hint=hint)
    sources: dict[str, Array | Mapped] = {}
    axes: dict[str, int] = {}
    fixed: dict[str, Any] = {}
    for name, value in given.items():
        _refuse_name(loops, name, parameters)
        axis = axis_of(loops, name, batch)
        if axis is None:
            held = private(name, value)
            array = as_array(name, held)
            fixed[name] = held if type(held) in (bool, int, float) else np.array(array, _typed(array.dtype, dtype))
            refuse_nan(name, array)
            continue
        sources[name], axes[name] = _source(name, value, dtype), axis
        rank = loops.ranks.get(name)
        if rank is not None and len(sources[name].shape) != rank:
            shape = sources[name].shape
            raise ShapeError(f"{name} has {len(shape)} axes, the program reads {rank}", hint=f"its shape is {shape}")
    count = _count(sources, axes, batch)
    if not any(isinstance(source, Mapped) for source in sources.values()):
        examples = {name: np.asarray(source) for name, source in sources.items()}
        for name, array in examples.items():
            refuse_nan(name, array)
        return Data(examples, axes, fixed, count)
    width = sum(_typed(s.dtype, dtype).itemsize * int(np.prod(s.shape)) // count for s in sources.values())
    window = min(max(WINDOW // max(width, 1) // size, 1) * size, count)
    examples = {
        name: np.zeros((*s.shape[: axes[name]], window, *s.shape[axes[name] + 1 :]), _typed(s.dtype, dtype))
        for name, s in sources.items()
    }
    return Data(examples, axes, fixed, count, sources)


def _refuse_name(loops: ir.Loops, name: Any, parameters: Iterable[str]) -> None:
    if name in set(parameters):
        raise ArgumentError(
            f"{name} is among the parameters and in the data", hint="leave it out of one of them: it cannot be both"
        )
    if name not in loops.inputs:
        hint = closest(name, loops.inputs, "its inputs are")
        raise ArgumentError(f"the program has no input {shown(name)}", hint=hint)
    if name == "step":
        raise ArgumentError("step is the number of a training step, which is filled in", hint="leave it out")


def _source(name: str, value: Any, dtype: np.dtype[Any] | None) -> Array | Mapped:
    """A large file as it is; anything else in memory, in the type that is trained in. Whole numbers are copied: what
    was checked must not change any more."""
    file = mapped(name, value)
    if file is not None and file.nbytes > WHOLE:
        as_array(name, np.empty(0, file.dtype))  # refuses types that programs do not compute with
        return file
    array = as_array(name, private(name, value))
    copied = np.array if array.dtype.kind in "iu" else np.ascontiguousarray
    return np.ascontiguousarray(copied(array, _typed(array.dtype, dtype)))


def _typed(own: np.dtype[Any], dtype: np.dtype[Any] | None) -> np.dtype[Any]:
    """Floats of the type that is trained in."""
    return dtype if own.kind == "f" and dtype is not None else own.newbyteorder("=")


def _count(sources: Mapping[str, Array | Mapped], axes: Mapping[str, int], batch: str) -> int:
    counts = {name: source.shape[axes[name]] for name, source in sources.items()}
    if not counts:
        raise ArgumentError(
            f"no array of the data has the batch index {batch}", hint=f"pass arrays with an axis {batch}"
        )
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} in {name}" for name, count in counts.items())
        raise ShapeError(f"the arrays differ in the number of examples: {told}", hint="one row of each is one example")
    count = next(iter(counts.values()))
    if not count:
        raise ShapeError("the data holds no example")
    return count


def refuse_nan(name: str, array: Array, rows: Array | None = None, axis: int = 0) -> None:
    """Raises for an element that is NaN; `rows` are the examples that the array holds, if not all."""
    if array.dtype.kind != "f":
        return
    flat = array.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        wrong = np.isnan(flat[start : start + BLOCK])
        if wrong.any():
            place = [int(p) for p in np.unravel_index(start + int(np.argmax(wrong)), array.shape)]
            if rows is not None:
                place[axis] = int(rows[place[axis]])
            at = ", ".join(map(str, place))
            raise ArgumentError(f"{name}[{at}] is NaN", hint="clean the data first: nothing can be learned from it")


@dataclass(frozen=True)
class Picker:
    """The program that picks a batch out of the data: `X[b,i] = X_all[rows[b],i]` for every array."""

    program: Program
    whole: dict[str, str]  # how it calls all of an array
    rows: str


def picker(names: Set[str], data: Data, batch: str) -> Picker:
    """`names` are those of the training step: its tensors and the picker's lie side by side."""
    taken = set(names)
    rows = ir.claim("rows", taken)
    whole = {name: ir.claim(f"{name}_all", taken) for name in data.examples}
    row = ir.Access(rows, (ir.Index(batch),))
    body = []
    for name, array in data.examples.items():
        axis = data.axes[name]
        own = [batch if k == axis else ir.claim(f"axis{k}_{name}", taken) for k in range(array.ndim)]
        places = tuple(ir.Index(place) for place in own)
        picked = ir.Access(whole[name], (*places[:axis], row, *places[axis + 1 :]))
        body.append(ir.Statement(ir.Access(name, places), "=", picked))
    return Picker(Program(ir.Loops(tuple(body))), whole, rows)
