"""Derived programs: what a framework's transformations make of one program, each named by a text.

A form such as `adjoint:X,W:Y batch:X` is a list of steps, from the program that a user gave to the one that runs. It
stands in the graphs that a framework keeps, even on disk, so it means the same in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import ArgumentError, DerivativeError
from ..language import ir, render
from ..program import Program
from ..rules.activity import default_wrt, reached
from ..rules.batch import expand_batch
from ..rules.derived_names import next_suffix
from ..rules.expand import expand
from ..run.arguments import Outline, outlines

MOST = 4096  # programs that are kept


def adjoint_step(wrt: Sequence[str], of: Sequence[str]) -> str:
    return f"adjoint:{','.join(wrt)}:{','.join(of)}"


def tangent_step(wrt: Sequence[str]) -> str:
    return f"tangent:{','.join(wrt)}"


def batch_steps(program: Program, over: Sequence[str], ranks: Mapping[str, int]) -> str:
    """An index more in front of the tensors named. What `...` stands for is written out first."""
    named = [f"{name}={rank}" for name, rank in ranks.items()]
    spelled = [f"ranks:{','.join(named)}"] if ir.BATCH in program.loops.indices else []
    return " ".join([*spelled, f"batch:{','.join(over)}"])


def joined(form: str, steps: str) -> str:
    return f"{form} {steps}".strip()


@lru_cache(maxsize=MOST)
def derived(program: Program, form: str) -> Program:
    """The program at the end of all steps."""
    if not form:
        return program
    before, _, last = form.rpartition(" ")
    origin = derived(program, before)
    kind, *fields = last.split(":")
    names = [field.split(",") for field in fields]
    if kind == "adjoint":
        return origin.adjoint(wrt=names[0], of=names[1])
    if kind == "tangent":
        return origin.tangent(wrt=names[0])
    if kind == "batch":
        return origin.batch(ir.fresh("n", _names(origin)), over=names[0])
    if kind == "ranks":
        return _spelled(origin, {name: int(rank) for name, rank in (each.split("=") for each in names[0])})
    raise ArgumentError(f"{last[:80]!r} is no step from one program to another", hint="adjoint:X:Y or batch:X")


def _names(program: Program | None) -> frozenset[str]:
    """All that a program uses, and the ones that it is derived from."""
    return frozenset() if program is None else _names(program._origin).union(program.loops.names)


def _spelled(program: Program, ranks: Mapping[str, int]) -> Program:
    """With `...` written out, in the program that it is a derivative of too."""
    origin = program._origin
    return Program(expand_batch(program.loops, ranks), None if origin is None else _spelled(origin, ranks))


@dataclass(frozen=True)
class Reach:
    """Which inputs and outputs of a program a derivative or a batch concerns."""

    smooth: tuple[str, ...]  # inputs that some output depends on smoothly
    grad: str  # what the names of adjoints end in
    dot: str  # and of tangents


@lru_cache(maxsize=MOST)
def reach(program: Program) -> Reach:
    loops = program.loops
    return Reach(default_wrt(loops), next_suffix(loops, "grad"), next_suffix(loops, "dot"))


@lru_cache(maxsize=MOST)
def smooth_inputs(program: Program, of: tuple[str, ...]) -> frozenset[str]:
    """The inputs that these outputs depend on smoothly."""
    return frozenset(default_wrt(program.loops, of))


@lru_cache(maxsize=MOST)
def read_on_the_way_back(program: Program, wrt: tuple[str, ...]) -> frozenset[str]:
    """What adjoints by these inputs read, whichever outputs have a gradient: the fewer have one, the more sizes are
    those of inputs."""
    found: set[str] = set()
    for output in program.outputs:
        smooth = [name for name in wrt if name in smooth_inputs(program, (output,))]
        with suppress(DerivativeError):  # told by the one who asks for a gradient
            found |= {*derived(program, adjoint_step(smooth, [output])).inputs} if smooth else set()
    return frozenset(found)


@lru_cache(maxsize=MOST)
def carried(program: Program, over: tuple[str, ...]) -> tuple[bool, ...]:
    """Which outputs depend on the tensors named, and so have the index of a batch over those."""
    found = _reached(program, over)
    return tuple(name in found for name in program.outputs)


@lru_cache(maxsize=MOST)
def updated_with(program: Program, over: tuple[str, ...]) -> frozenset[str]:
    """Further inputs that have the index of a batch: those that are updated with something that has it."""
    return (program.loops.updated & _reached(program, over)).difference(over)


def started_from(
    program: Program, updated: Iterable[str], arguments: Mapping[str, Any], axes: Mapping[str, int]
) -> dict[str, np.dtype[Any]]:
    """The type of each number that is updated: that of its new value. `arguments` are numbers, and outlines, which have
    these axes for the batch."""
    alone = {
        n: Outline((*a.shape[: axes[n]], *a.shape[axes[n] + 1 :]), a.dtype) if n in axes else a
        for n, a in arguments.items()
    }
    return {name: made.dtype for name, made in outlines(program._for_call(alone).loops, alone, updated).items()}


def _reached(program: Program, over: tuple[str, ...]) -> frozenset[str]:
    return reached(over, [(s.target.tensor, ir.tensors_read(s)) for s in program.loops.statements])


@lru_cache(maxsize=MOST)
def digest(program: Program) -> str:
    """The same for equal programs in every process."""
    return hashlib.sha256(render.program(expand(program.loops)).encode()).hexdigest()[:16]
