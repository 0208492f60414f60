"""What the interpreter holds while a program runs: its tensors, and what it needs to know of those that `=` writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, Mask
from ..language import ir
from ..language.sizes import Sizes
from ..language.types import Types, identity


@dataclass
class Tensor:
    array: Array
    best: Array | None = None  # for argmax= and argmin=: the value that stands at the position held


class State:
    """`again`: a plan made the program, which may write an element of `=` once more when its value is used up."""

    def __init__(
        self, loops: ir.Loops, arrays: Mapping[str, Array], sizes: Sizes, types: Types, again: bool = False
    ) -> None:
        self.loops = loops
        self.sizes = sizes
        self.types = types
        self.operators = {s.target.tensor: s.operator for s in reversed(loops.statements)}
        self.tensors = {name: Tensor(array) for name, array in arrays.items()}
        for name in {*loops.updated, *loops.outputs} & arrays.keys():  # the caller's arrays never change
            self.tensors[name] = Tensor(np.array(arrays[name], types.tensors[name].dtype, order="C"))
        self.offsets: dict[int, int] = {}  # where positions of an argmax= start: behind those of statements before it
        used: Counter[str] = Counter()
        for statement in (s for s in loops.statements if s.operator.startswith("arg")):
            self.offsets[id(statement)] = used[statement.target.tensor]
            used[statement.target.tensor] += math.prod(sizes.index[i] for i in ir.candidates(statement))
        self.written: dict[str, Mask] = {}
        self.read_early: dict[str, Mask] = {}
        assigned = [(s.target.tensor, around) for s, around in loops.located if s.operator == "="]
        count = Counter(name for name, _ in assigned)
        several = {name for name, around in assigned if around or count[name] > 1}
        for name in set() if again else several - loops.updated:
            self.written[name] = np.zeros(sizes.shapes[name], bool)
            self.read_early[name] = np.zeros(sizes.shapes[name], bool)

    def target(self, name: str) -> Tensor:
        """A tensor to write into, made of the operator's identity at the first write."""
        if name not in self.tensors:
            dtype = self.types.tensors[name].dtype
            self.tensors[name] = Tensor(np.full(self.sizes.shapes[name], identity(self.operators[name], dtype), dtype))
        return self.tensors[name]
