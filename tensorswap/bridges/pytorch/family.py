"""What an operator does: values, shapes, gradients, tangents and batches of one program, each by another program.

Nothing here knows how PyTorch gets at it. `launch` runs what a derivative or a batch asks for: as an operator in a
graph, or as a step of autograd. What can be known before a call is made once and kept, since microseconds count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import SwapError
from ...program import Program
from ...run.arguments import Outline, outlines
from ..derived import (
    adjoint_step,
    batch_steps,
    carried,
    derived,
    joined,
    reach,
    read_on_the_way_back,
    smooth_inputs,
    started_from,
    tangent_step,
    updated_with,
)
from .tensors import BACK, DTYPES, as_numpy, as_torch, check, in_torch_words

SYMBOLS = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}

Tensors = Sequence[Any]
Numbers = Sequence[int | float | bool]
Pairs = list[tuple[str, Any, int | None]]  # names, tensors, and where they have the axis of a batch
Launch = Callable[["Work", Tensors, Numbers], Sequence[Any]]


class Family:
    """A program that was given, and all that is derived from it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.works: dict[tuple[str, tuple[str, ...], int], Work] = {}

    def work(self, form: str, names: Sequence[str], count: int) -> Work:
        """The program of a form, called with these names: the first `count` are tensors, the others plain numbers."""
        key = form, tuple(names), count
        found = self.works.get(key)
        if found is None:
            found = self.works[key] = Work(self, form, key[1][:count], key[1][count:])
        return found


class Work:
    """One program of a family, called with tensors and numbers of these names."""

    def __init__(self, family: Family, form: str, names: tuple[str, ...], numbered: tuple[str, ...]) -> None:
        self.family, self.form, self.names, self.numbered = family, form, names, numbered
        self.program = derived(family.program, form)
        self.single = len(self.program.outputs) == 1
        self.ways: dict[Any, Way | None] = {}
        self.kept: dict[tuple[bool, ...], tuple[bool, ...]] = {}

    def values(self, tensors: Tensors, numbers: Numbers) -> list[Any]:
        """The outputs."""
        arguments: dict[str, Any] = {}
        for name, tensor in zip(self.names, tensors, strict=True):
            try:
                arguments[name] = (tensor.detach() if tensor.requires_grad else tensor).numpy()
            except (TypeError, RuntimeError) as error:
                if all(each.is_meta for each in tensors):
                    return self.shapes(tensors, numbers)
                arguments[name] = as_numpy(name, tensor, error)
        if numbers:
            arguments.update(self.plain(numbers))
        try:
            result = self.program(arguments)
        except SwapError as error:
            raise in_torch_words(error) from error
        if self.single:
            return [as_torch(result)]
        return [as_torch(result[name]) for name in self.program.outputs]

    def plain(self, numbers: Numbers) -> dict[str, Any]:
        """The plain numbers by name. A symbol that stands for one is settled: the program depends on its value."""
        return {
            name: SYMBOLS[type(value)](value) if type(value) in SYMBOLS else value
            for name, value in zip(self.numbered, numbers, strict=True)
        }

    def shapes(self, tensors: Tensors, numbers: Numbers) -> list[Any]:
        """Tensors of the shapes and types of the outputs, without values: nothing is run."""
        arguments: dict[str, Any] = self.plain(numbers)
        for name, tensor in zip(self.names, tensors, strict=True):
            check(name, tensor)
            arguments[name] = Outline(tuple(tensor.shape), DTYPES[tensor.dtype])
        program = self.program._for_call(arguments)
        try:
            made = outlines(program.loops, arguments)
        except SwapError as error:
            raise in_torch_words(error) from error
        device = tensors[0].device if tensors else "cpu"
        return [torch.empty(made[n].shape, dtype=BACK[made[n].dtype], device=device) for n in program.outputs]

    def then(self, steps: str, places: Mapping[str, int]) -> tuple[Work, tuple[int, ...], tuple[int, ...]]:
        """The work of a derived program, and where its tensors and its numbers are among those that there are."""
        form = joined(self.form, steps)
        program = derived(self.family.program, form)
        names = [name for name in places if name in program.inputs]
        loops = program.loops
        taken = [n for n in self.numbered if n in loops.inputs or n in loops.static_names or n in loops.indices]
        work = self.family.work(form, (*names, *taken), len(names))
        return work, tuple(places[n] for n in names), tuple(self.numbered.index(n) for n in taken)

    def keeps(self, needed: tuple[bool, ...]) -> tuple[bool, ...]:
        """Which tensors the way back to those that need a gradient will read."""
        found = self.kept.get(needed)
        if found is None:
            read = read_on_the_way_back(
                self.program, tuple(n for n, need in zip(self.names, needed, strict=True) if need)
            )
            found = self.kept[needed] = tuple(name in read for name in self.names)
        return found

    def back(self, needed: tuple[bool, ...], seeded: tuple[bool, ...]) -> Way | None:
        """The way from outputs that have a gradient to the tensors that need one; None if there is none."""
        if (needed, seeded) not in self.ways:
            self.ways[needed, seeded] = self._back(needed, seeded)
        return self.ways[needed, seeded]

    def _back(self, needed: tuple[bool, ...], seeded: tuple[bool, ...]) -> Way | None:
        of = [name for name, has in zip(self.program.outputs, seeded, strict=True) if has]
        smooth = smooth_inputs(self.program, tuple(of)) if of else frozenset()
        wrt = [name for name, need in zip(self.names, needed, strict=True) if need and name in smooth]
        if not wrt:
            return None
        suffix = reach(self.program).grad
        places = {name: k for k, name in enumerate((*self.names, *(f"{n}.{suffix}" for n in self.program.outputs)))}
        return Way(*self.then(adjoint_step(wrt, of), places), wrt=wrt, suffix=suffix, names=self.names)

    def along(self, moved: tuple[bool, ...]) -> Way | None:
        """The way from tensors that have a tangent to the outputs; None if there is none."""
        wrt = [name for name, has in zip(self.names, moved, strict=True) if has and name in reach(self.program).smooth]
        if not wrt:
            return None
        suffix = reach(self.program).dot
        places = {name: k for k, name in enumerate((*self.names, *(f"{n}.{suffix}" for n in self.names)))}
        step = tangent_step(wrt)
        return Way(*self.then(step, places), wrt=self.program.outputs, suffix=suffix, names=self.program.outputs)


@dataclass(frozen=True, init=False)
class Way:
    """A derivative: the work that it is, where its tensors and numbers are, and where its results go."""

    work: Work
    tensors: tuple[int, ...]
    numbers: tuple[int, ...]
    results: tuple[int | None, ...]

    def __init__(
        self, work: Work, tensors: tuple[int, ...], numbers: tuple[int, ...], wrt: Sequence[str], suffix: str,
        names: Sequence[str],
    ) -> None:  # fmt: skip
        found = {name: k for k, name in enumerate(work.program.outputs)}
        results = tuple(found.get(f"{name}.{suffix}") if name in wrt else None for name in names)
        for field, value in (("work", work), ("tensors", tensors), ("numbers", numbers), ("results", results)):
            object.__setattr__(self, field, value)

    def go(self, launch: Launch, tensors: Tensors, numbers: Numbers) -> list[Any]:
        made = launch(self.work, [tensors[k] for k in self.tensors], [numbers[k] for k in self.numbers])
        return [None if k is None else made[k] for k in self.results]


def keep_for_back(ctx: Any, work: Work, tensors: Tensors, numbers: Numbers, needed: tuple[bool, ...]) -> None:
    """Saves what the way back reads, and nothing else."""
    kept = work.keeps(needed)
    ctx.set_materialize_grads(False)
    ctx.call = work, numbers, needed, kept
    ctx.save_for_backward(*[tensor for tensor, keep in zip(tensors, kept, strict=True) if keep])


def back_from(ctx: Any, launch: Launch, seeds: Sequence[Any]) -> list[Any]:
    """The gradients of the tensors; None where they are zero or not asked for."""
    work, numbers, needed, kept = ctx.call
    way = work.back(needed, tuple([seed is not None for seed in seeds]))
    if way is None:
        return [None] * len(needed)
    saved = iter(ctx.saved_tensors)
    tensors = [next(saved) if keep else None for keep in kept]
    return way.go(launch, (*tensors, *seeds), numbers)  # type: ignore[no-any-return]


def tangents(launch: Launch, work: Work, tensors: Tensors, numbers: Numbers, dots: Sequence[Any]) -> list[Any]:
    """The tangent of each output, from those of the tensors; None where it is zero."""
    way = work.along(tuple(dot is not None for dot in dots))
    return [None] * len(work.program.outputs) if way is None else way.go(launch, (*tensors, *dots), numbers)


def batches(
    launch: Launch, work: Work, tensors: Tensors, numbers: Numbers, axes: Sequence[int | None]
) -> tuple[list[Any], list[int | None]]:
    """The outputs for tensors that have one more axis each, and where the outputs have it."""
    pairs = list(zip(work.names, tensors, axes, strict=True))
    over = tuple(name for name, _, axis in pairs if axis is not None)
    updated = updated_with(work.program, over)
    if updated:  # each of the batch has a new value, and starts from the same old one
        count = next(tensor.size(axis) for _, tensor, axis in pairs if axis is not None)
        pairs += _updated_numbers(work, pairs, numbers, updated)
        pairs = [(n, t.expand(count, *t.shape), 0) if n in updated else (n, t, axis) for n, t, axis in pairs]
        over = tuple(name for name, _, axis in pairs if axis is not None)
    ranks = {name: tensor.dim() - (axis is not None) for name, tensor, axis in pairs}
    form = joined(work.form, batch_steps(work.program, over, ranks))
    moved = [tensor if axis is None else tensor.movedim(axis, 0) for _, tensor, axis in pairs]
    rest = {name: number for name, number in zip(work.numbered, numbers, strict=True) if name not in updated}
    other = work.family.work(form, (*(name for name, _, _ in pairs), *rest), len(moved))
    return list(launch(other, moved, list(rest.values()))), [0 if has else None for has in carried(work.program, over)]


def _updated_numbers(work: Work, pairs: Pairs, numbers: Numbers, updated: Set[str]) -> Pairs:
    """Plain numbers that are updated, as tensors: of the type that their new values have."""
    plain = work.plain(numbers)
    found = [name for name in plain if name in updated]
    if not found:
        return []
    outlined = {name: Outline(tuple(tensor.shape), DTYPES[tensor.dtype]) for name, tensor, _ in pairs}
    axes = {name: axis for name, _, axis in pairs if axis is not None}
    types = started_from(work.program, found, {**outlined, **plain}, axes)
    device = pairs[0][1].device
    return [(name, torch.tensor(plain[name], dtype=BACK[types[name]], device=device), None) for name in found]
