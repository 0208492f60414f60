"""Random statements on rows of few and of many elements, which read what those before them make: the compiled program
and its gradient are the interpreter's. Loops along rows are written out, run on, or become vectors, by their length."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import SwapError
from tensorswap.run import tuning
from tests.test_planner import check

from .daily import LONG

pytestmark = pytest.mark.compiled

INPUTS = {"A": "ix", "B": "ix", "C": "kx", "n": "i", "v": "x", "w": "k", "E": "ikx", "F": "kix", "G": "xi"}
HEADER = "".join(f"size({index}) = size(E, {axis})\n" for axis, index in enumerate("ikx"))
CALLS = ["exp(-abs({}))", "tanh({})", "sigmoid({})", "relu({})", "sin({})", "sqrt(abs({}) + 0.1)", "log1p(abs({}))"]
OPERATORS = ["=", "=", "=", "+=", "+=", "-=", "max=", "min="]
ORDERS = ["ix", "ix", "ikx", "kix", "kx", "ix", "xi"]
ROWS, COLUMNS = [1, 2, 5, 16, 17, 33, 64, 70], [*range(1, 13), 15, 16, 17, 20, 31, 33, 48, 63, 64, 65]


class Writer:
    """A program of some statements; values stay of a size at which rounding does not grow."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tensors = dict(INPUTS)
        self.lines = [self.statement(f"R{number}") for number in range(self.random.randint(1, 4))]

    def statement(self, name: str) -> str:
        named = self.random.choice(ORDERS)
        operator = self.random.choice(OPERATORS)
        left_out = "" if operator == "=" else self.random.choice(["", "i", "x", "k", "ix", "x", "i"])
        target = "".join(index for index in named if index not in left_out)
        value = self.value(named, self.random.randint(1, 3))
        guard = self.random.choice(["", "", "", " if i > 2", " if x <= i"])
        guard = guard if "i" in named and ("x" not in guard or "x" in named) else ""
        line = f"{_access(name, target)} {operator} {value}{guard}"
        self.tensors[name] = target
        return line

    def leaf(self, named: str) -> str:
        fitting = [name for name, own in self.tensors.items() if set(own) <= set(named)]
        made_before = [name for name in fitting if name not in INPUTS]
        name = self.random.choice(made_before if made_before and self.random.random() < 0.5 else fitting)
        made = _access(name, self.tensors[name])
        return made if name in INPUTS else f"tanh({made})"

    def value(self, named: str, depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.2:
            return self.leaf(named)
        if kind < 0.5:
            return self.random.choice(CALLS).format(self.value(named, depth - 1))
        first, second = self.value(named, depth - 1), self.value(named, depth - 1)
        if kind < 0.6:
            return f"({first} if v[x] > 0.1 else {second})" if "x" in named else f"max({first}, {second})"
        return f"({first} {self.random.choice('+-**')} {second})"


def _access(name: str, indices: str) -> str:
    return f"{name}[{','.join(indices)}]" if indices else name


def run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program, and every other time its gradient, on one or several threads."""
    writer = Writer(seed)
    choose, numbers = writer.random, np.random.default_rng(seed)
    sizes = {"i": choose.choice(ROWS), "k": choose.choice([1, 2, 3, 5]), "x": choose.choice(COLUMNS)}
    monkeypatch.setattr(tuning, "PARALLEL", choose.choice([0, 20_000]))
    text = HEADER + "\n".join(writer.lines)
    programs = [ts.program(text)]
    last = f"R{len(writer.lines) - 1}"
    if seed % 2:
        try:
            value = _access(last, writer.tensors[last])
            programs.append(ts.program(f"{text}\nloss += 0.5 * {value}").grad(of="loss"))
        except SwapError:
            pass  # nothing that has a derivative
    dtype = choose.choice(["float64", "float32"])
    for program in programs:
        check(program, {
            name: numbers.standard_normal([sizes[index] for index in INPUTS[name]]).astype(dtype)
            for name in program.inputs
        })  # fmt: skip


@pytest.mark.parametrize("seed", range(1000 if LONG else 80))
def test_as_the_interpreter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, monkeypatch)
