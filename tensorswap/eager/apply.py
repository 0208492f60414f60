"""apply: any program as one step between tensors. Its way back is the adjoint program that the rules derive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..program import Program, program, program_of
from ..rules.activity import default_wrt, names_of
from ..rules.derived_names import next_suffix
from ..run.arguments import merged
from .bundle import bundle
from .make import constant, fitted, is_active, own
from .tensor import Tensor


def apply(
    source: Program | str,
    mapping: Mapping[str, Any] | None = None,
    /,
    *,
    outputs: Sequence[str] | None = None,
    **tensors: Any,
) -> Any:
    """Runs a program, its text or an op of the standard library on tensors; arrays and numbers are constants.

    One output comes back as a tensor, several as a dict of tensors by name; `outputs` chooses them.
    """
    chosen = _program(source, None if outputs is None else tuple(names_of("outputs", outputs)))
    arguments = merged(mapping, tensors)
    values = {name: v.value if isinstance(v, Tensor) else v for name, v in arguments.items()}
    result = chosen(values)
    results: dict[str, Any] = result if len(chosen.outputs) > 1 else {chosen.outputs[0]: result}
    wrt = tuple(name for name in _smooth_inputs(chosen) if name in arguments and is_active(arguments[name]))
    if wrt:  # the way back needs what is in them now
        values = {n: own(v) if isinstance(arguments[n], np.ndarray) else v for n, v in values.items()}
    made = _tensors(chosen, wrt, values, results, tuple(arguments[name] for name in wrt))
    return made if len(made) > 1 else made[chosen.outputs[0]]


@lru_cache(maxsize=1024)
def _program(source: Program | str, outputs: tuple[str, ...] | None) -> Program:
    if outputs is None:
        return program_of(source, "apply", 'ts.apply("Y[i] = tanh(X[i])", X=x) or ts.apply("softmax", input=x)')
    if isinstance(source, str) and "=" in source:
        return program(source, outputs)
    return program(str(_program(source, None)), outputs)


@lru_cache(maxsize=1024)
def _smooth_inputs(chosen: Program) -> tuple[str, ...]:
    return default_wrt(chosen.loops)


@lru_cache(maxsize=1024)
def _adjoint(chosen: Program, wrt: tuple[str, ...], of: tuple[str, ...]) -> Program:
    """The way back from some outputs to the inputs that need a gradient: derived once."""
    return chosen.adjoint(wrt=wrt, of=of)


def _tensors(
    chosen: Program, wrt: tuple[str, ...], values: dict[str, Any], results: dict[str, Any], parents: tuple[Tensor, ...]
) -> dict[str, Tensor]:
    """The results, with the way back through one run of the adjoint program."""
    smooth = [name for name, value in results.items() if value.dtype.kind == "f"] if wrt else []
    suffix = next_suffix(chosen.loops, "grad")

    def back(seeds: Mapping[str, Any]) -> list[Any]:
        of = tuple(name for name in smooth if name in seeds)
        pulled = _adjoint(chosen, wrt, of)({**values, **{f"{name}.{suffix}": np.asarray(seeds[name]) for name in of}})
        gradients = pulled if len(wrt) > 1 else {f"{wrt[0]}.{suffix}": pulled}
        return [fitted(gradients[f"{name}.{suffix}"], values[name]) for name in wrt]

    made = bundle({name: results[name] for name in smooth}, parents, back)
    return {name: made[name] if name in made else constant(value) for name, value in results.items()}
