"""Operators of torch.library: two for each program, which serve torch.compile, torch.export and whatever traces.

`tensorswap::linear_<digest>` is the program itself. `tensorswap::linear_<digest>_derived` runs what derivatives and
batches make of it, which the text `form` names: so both exist in any process in which the program does, whatever graph
it takes from a cache.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import torch

from ...errors import DerivativeError
from ...program import Program
from ..derived import digest
from .family import Family, Numbers, Tensors, Work, back_from, batches, keep_for_back

Names = Sequence[str]


class Operators:
    """The operators of one program: `direct` of its inputs in their order, and of numbers with their names; `derived`
    of a list of tensors, names, a form and numbers."""

    def __init__(self, program: Program, key: str) -> None:
        self.program = program
        self.family = Family(program)
        header = program.loops.header
        name = f"tensorswap::{re.sub(r'[^A-Za-z0-9_]', '_', header.name) if header else 'loops'}_{key}"
        self.direct = _direct(self, name)
        self.derived = _derived(self, f"{name}_derived")

    def launch(self, work: Work, tensors: Tensors, numbers: Numbers) -> Sequence[Any]:
        if work.form:
            names = [*work.names, *work.numbered]
            made: Sequence[Any] = self.derived(list(tensors), names, work.form, list(numbers) or None)
            return made
        result = self.call(dict(zip(work.names, tensors, strict=True)), work.numbered, numbers)
        return (result,) if work.single else result

    def call(self, tensors: dict[str, Any], numbered: Names, numbers: Numbers) -> Any:
        """The direct operator, with None for each input that is not among the tensors."""
        behind = (list(numbered), list(numbers)) if numbers else ()
        return self.direct(*[tensors.get(name) for name in self.program.inputs], *behind)


_made: dict[str, Operators] = {}
_lock = threading.Lock()


def operators(program: Program) -> Operators:
    """The operators of a program, made once."""
    key = digest(program)
    with _lock:
        if key not in _made:
            _made[key] = Operators(program, key)
        return _made[key]


def _direct(made: Operators, name: str) -> Any:
    program, family, count = made.program, made.family, len(made.program.inputs)
    inputs = "".join(f"Tensor? t{k}, " for k in range(count))
    results = ", ".join("Tensor" for _ in program.outputs)
    results = f"({results})" if len(program.outputs) > 1 else results
    schema = f"({inputs}str[]? names=None, Scalar[]? numbers=None) -> {results}"

    whole, every = family.work("", program.inputs, count), list(range(count))

    def split(arguments: Sequence[Any]) -> tuple[Work, list[Any], Numbers, list[int]]:
        """The work, its tensors and numbers, and the places of the tensors. PyTorch leaves out what has its default."""
        if len(arguments) == count and all(each is not None for each in arguments):
            return whole, list(arguments), (), every
        given = [k for k in range(count) if arguments[k] is not None]
        names, numbers = arguments[count : count + 2] if len(arguments) > count + 1 else (None, None)
        work = family.work("", (*(program.inputs[k] for k in given), *(names or ())), len(given))
        return work, [arguments[k] for k in given], numbers or (), given

    def run(*arguments: Any) -> Any:
        work, tensors, numbers, _ = split(arguments)
        return _joined(work.values(_unmoved(tensors), numbers))

    def shapes(*arguments: Any) -> Any:
        work, tensors, numbers, _ = split(arguments)
        return _joined(work.shapes(_unmoved(tensors), numbers))

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        work, tensors, numbers, ctx.given = split(inputs)
        keep_for_back(ctx, work, tensors, numbers, tuple(ctx.needs_input_grad[k] for k in ctx.given))

    def back(ctx: Any, *seeds: Any) -> tuple[Any, ...]:
        found = dict(zip(ctx.given, back_from(ctx, made.launch, seeds), strict=True))
        return (*(found.get(k) for k in range(count)), None, None)

    def batch(info: Any, in_dims: Sequence[Any], *arguments: Any) -> Any:
        work, tensors, numbers, given = split(arguments)
        results, places = batches(made.launch, work, tensors, numbers, [in_dims[k] for k in given])
        return _joined(results), _joined(places)

    operator = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
    operator.register_fake(shapes)
    operator.register_autograd(back, setup_context=keep)
    operator.register_vmap(batch)
    return operator


def _derived(made: Operators, name: str) -> Any:
    family = made.family
    schema = "(Tensor[] tensors, str[] names, str form, Scalar[]? numbers) -> Tensor[]"

    def run(tensors: Tensors, names: Names, form: str, numbers: Numbers | None) -> list[Any]:
        return family.work(form, names, len(tensors)).values(_unmoved(tensors), numbers or ())

    def shapes(tensors: Tensors, names: Names, form: str, numbers: Numbers | None) -> list[Any]:
        return family.work(form, names, len(tensors)).shapes(_unmoved(tensors), numbers or ())

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        tensors, names, form, numbers = inputs
        needed = tuple(ctx.needs_input_grad[: len(tensors)])  # of the parts of the list, which come first
        keep_for_back(ctx, family.work(form, names, len(tensors)), tensors, numbers or (), needed)

    def back(ctx: Any, seeds: Sequence[Any]) -> tuple[Any, ...]:
        return back_from(ctx, made.launch, seeds), None, None, None

    def batch(
        info: Any, in_dims: Sequence[Any], tensors: Tensors, names: Names, form: str, numbers: Numbers | None
    ) -> tuple[list[Any], list[int | None]]:
        return batches(made.launch, family.work(form, names, len(tensors)), tensors, numbers or (), in_dims[0])

    operator = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
    operator.register_fake(shapes)
    operator.register_autograd(back, setup_context=keep)
    operator.register_vmap(batch)
    return operator


def _joined(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def _unmoved(tensors: Tensors) -> Tensors:
    """The tensors, unless forward mode is on: torch.library has no rule for tangents, and would take them for zero."""
    if torch.autograd.forward_ad._current_level >= 0:
        raise DerivativeError(
            "an operator of torch.library has no tangents, so forward mode cannot pass through it",
            hint="take torch.func.jvp outside of torch.compile, of the function that ts.torch gave",
        )
    return tensors
