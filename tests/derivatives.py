"""All derivatives of a program at given inputs, each with what it must look like: the shape and type of its primal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tensorswap as ts
from tensorswap.rules.activity import integer_uses

Array = NDArray[Any]


@dataclass(frozen=True)
class Derived:
    """A derivative, what to call it with, and the primal of each of its outputs."""

    path: str
    program: ts.Program
    arguments: dict[str, Any]
    primals: dict[str, Array]

    @property
    def floats(self) -> dict[str, Array]:
        """The arrays that it can be differentiated by."""
        integers = integer_uses(self.program.loops)
        known = {*self.program.inputs, *self.program.loops.known}
        return {
            name: value
            for name, value in self.arguments.items()
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and name in known and name not in integers
        }


def results(program: ts.Program, arguments: Mapping[str, Any]) -> dict[str, Array]:
    found = program.run_reference(arguments)
    return {program.outputs[0]: found} if len(program.outputs) == 1 else found


def start(program: ts.Program, arguments: Mapping[str, Any]) -> Derived:
    """The program itself, as its derivative of order 0."""
    return Derived("", program, dict(arguments), results(program, arguments))


def next_order(derived: Derived, wrt: Sequence[str] | None = None) -> Iterator[Derived]:
    """The adjoint and the tangent of a program by all of its floating-point inputs, or some."""
    program, arguments = derived.program, derived.arguments
    inputs = {name: value for name, value in derived.floats.items() if wrt is None or name in wrt}
    integers = integer_uses(program.loops)
    outputs = {n: v for n, v in derived.primals.items() if v.dtype.kind == "f" and n not in integers}
    if not inputs or not outputs:
        return
    adjoint = program.adjoint(wrt=list(inputs), of=list(outputs))
    suffix = adjoint.outputs[0].rsplit(".", 1)[1]
    seeds = {f"{name}.{suffix}": np.ones_like(value) for name, value in outputs.items()}
    primals = {f"{name}.{suffix}": value for name, value in inputs.items()}
    yield Derived(derived.path + " adjoint", adjoint, {**arguments, **seeds}, primals)
    tangent = program.tangent(wrt=list(inputs))
    suffix = tangent.outputs[0].rsplit(".", 1)[1]
    seeds = {f"{name}.{suffix}": np.ones_like(value) for name, value in inputs.items()}
    primals = {f"{name}.{suffix}": value for name, value in derived.primals.items() if name not in integers}
    yield Derived(derived.path + " tangent", tangent, {**arguments, **seeds}, primals)


def check_like_primals(derived: Derived) -> None:
    """Every result has the shape of its primal, and its type if that is a floating-point one; the text parses back."""
    found = results(derived.program, derived.arguments)
    floats = [v.dtype for v in derived.arguments.values() if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    for name, value in found.items():
        primal = derived.primals[name]
        dtype = primal.dtype if primal.dtype.kind == "f" else floats[0]
        actual, wanted = (value.shape, value.dtype), (primal.shape, dtype)
        assert actual == wanted, f"{derived.path}: {name} is {actual}, not {wanted}\n{derived.program}"
    assert ts.program(str(derived.program)) == derived.program, f"{derived.path}:\n{derived.program}"


def check_text_runs_alike(derived: Derived) -> None:
    """The text alone gives the same results, called with what it asks for."""
    again = ts.program(str(derived.program))
    known = {*again.inputs, *again.loops.static_names, *again.loops.indices}
    found = results(again, {name: value for name, value in derived.arguments.items() if name in known})
    for name, value in results(derived.program, derived.arguments).items():
        np.testing.assert_array_equal(found[name], value, err_msg=f"{derived.path}: {name}\n{derived.program}")
        assert found[name].shape == value.shape, f"{derived.path}: {name}\n{derived.program}"
