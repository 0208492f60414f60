"""The primitive behind ts.jax: one for all programs, with a rule for each of JAX's transformations.

Its parameters are the program, the names of its operands and the plain numbers of the call. Each rule gives a call of
another program: a tangent has the tangent program, its transpose the adjoint, a batch one more index. So they nest as
deeply as JAX wants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ...arrays import Array
from ...errors import DerivativeError
from ...program import Program
from ...run.arguments import Outline, outlines
from ..derived import (
    adjoint_step,
    batch_steps,
    carried,
    derived,
    digest,
    reach,
    read_on_the_way_back,
    smooth_inputs,
    started_from,
    tangent_step,
    updated_with,
)
from .lowering import through_callback, through_foreign_call


@dataclass(frozen=True)
class Number:
    """A plain number of a call. Numbers that compare equal but are not alike, such as 1 and 1.0, are told apart."""

    name: str
    value: int | float | bool
    text: str

    @staticmethod
    def of(name: str, value: int | float | bool) -> Number:
        return Number(name, value, repr(value))


@dataclass(frozen=True)
class Along:
    """The program that a call is the tangent of, by these inputs."""

    program: Program
    wrt: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """What a call is beside its operands: these have names."""

    program: Program
    names: tuple[str, ...]
    numbers: tuple[Number, ...]
    along: Along | None = None

    def __call__(self, *operands: Any) -> list[Any]:
        made: list[Any] = call_p.bind(*operands, call=self)
        return made

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, of arrays of numpy's."""
        arguments: dict[str, Any] = dict(zip(self.names, arrays, strict=True))
        arguments.update({number.name: number.value for number in self.numbers})
        result = self.program(arguments)
        return [result] if len(self.program.outputs) == 1 else [result[name] for name in self.program.outputs]

    def shapes(self, avals: Sequence[Any]) -> list[Any]:
        """The shapes and types of the outputs, as the program tells them without a run."""
        arguments: dict[str, Any] = {number.name: number.value for number in self.numbers}
        for name, aval in zip(self.names, avals, strict=True):
            arguments[name] = Outline(tuple(aval.shape), np.dtype(aval.dtype))
        made = outlines(self.program._for_call(arguments).loops, arguments)
        told = [made[name] for name in self.program.outputs]
        return [ShapedArray(each.shape, jax.dtypes.canonicalize_dtype(each.dtype)) for each in told]

    def of(self, program: Program, operands: Mapping[str, Any], along: Along | None = None) -> dict[str, Any]:
        """Calls another program with those of the operands and numbers that it takes; its outputs by name."""
        loops = program.loops
        taken = {*loops.inputs, *(loops.known if along else ())}
        names = tuple(name for name in operands if name in taken)
        own = {*loops.inputs, *loops.static_names, *loops.indices}
        call = Call(program, names, tuple(n for n in self.numbers if n.name in own), along)
        return dict(zip(program.outputs, call(*(operands[name] for name in names)), strict=True))

    @property
    def identity(self) -> str:
        """The same for the same call in every process."""
        return f"{digest(self.program)} {self.names} {[(number.name, number.text) for number in self.numbers]}"


call_p = Primitive("tensorswap")
call_p.multiple_results = True


def _values(*operands: Any, call: Call) -> list[Any]:
    """Outside of compiled code: on the memory of the operands, and what is made belongs to JAX from then on. Operands
    that were put on a device go where JAX puts the results of compiled code."""
    if any(isinstance(operand, jax.Array) and operand.committed for operand in operands):
        return _compiled(*operands, call=call)  # type: ignore[no-any-return]
    return [jnp.asarray(array) for array in call.run([np.asarray(operand) for operand in operands])]


@partial(jax.jit, static_argnames="call")
def _compiled(*operands: Any, call: Call) -> list[Any]:
    return call(*operands)


def _shapes(*avals: Any, call: Call) -> list[Any]:
    return call.shapes(avals)


def _tangent(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call) -> tuple[list[Any], list[Any]]:
    results = call(*primals)
    found = reach(call.program)
    moved = {n: t for n, t in zip(call.names, tangents, strict=True) if type(t) is not ad.Zero and n in found.smooth}
    if not moved:
        return results, [_zero(result) for result in results]
    wrt = tuple(moved)
    program = derived(call.program, tangent_step(wrt))
    read = {*program.inputs, *read_on_the_way_back(call.program, wrt)}
    operands = {name: primal for name, primal in zip(call.names, primals, strict=True) if name in read}
    operands |= {f"{name}.{found.dot}": tangent for name, tangent in moved.items()}
    made = call.of(program, operands, Along(call.program, wrt))
    dots = [made.get(f"{name}.{found.dot}") for name in call.program.outputs]
    return results, [
        _zero(result) if dot is None else jax.lax.convert_element_type(dot, result.dtype)
        for result, dot in zip(results, dots, strict=True)
    ]


def _zero(result: Any) -> Any:
    """The tangent of an output that does not move."""
    smooth = np.dtype(result.dtype).kind == "f"
    return ad.Zero(ShapedArray(result.shape, result.dtype if smooth else jax.dtypes.float0))


def _transpose(seeds: Sequence[Any], *operands: Any, call: Call) -> list[Any]:
    """The adjoint: of the program whose tangent this call is, or of a call that is linear for another reason."""
    linear = {n: x.aval for n, x in zip(call.names, operands, strict=True) if ad.is_undefined_primal(x)}
    known = {n: x for n, x in zip(call.names, operands, strict=True) if n not in linear}
    given = {n: s for n, s in zip(call.program.outputs, seeds, strict=True) if type(s) is not ad.Zero}
    along = call.along
    dot = "" if along is None else f".{reach(along.program).dot}"
    if along is not None and all(name.endswith(dot) and name.removesuffix(dot) in along.wrt for name in linear):
        program = along.program
        given = {name.removesuffix(dot): seed for name, seed in given.items()}
    else:
        program, dot = call.program, ""
    found = _gradients(call, program, [name.removesuffix(dot) for name in linear], known, linear, given)
    wanted = {name: found.get(name.removesuffix(dot)) for name in linear}
    back = {
        name: ad.Zero(linear[name]) if gradient is None else jax.lax.convert_element_type(gradient, linear[name].dtype)
        for name, gradient in wanted.items()
    }
    return [back.get(name) for name in call.names]


def _gradients(
    call: Call, program: Program, wrt: Sequence[str], known: Mapping[str, Any], linear: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    smooth = smooth_inputs(program, tuple(given)) if given else frozenset()
    wanted = [name for name in wrt if name in smooth]
    if not wanted:
        return {}
    suffix = reach(program).grad
    adjoint = derived(program, adjoint_step(wanted, list(given)))
    operands = {**known, **{f"{name}.{suffix}": seed for name, seed in given.items()}}
    for name, aval in linear.items():
        if name in adjoint.loops.ranks and name in adjoint.inputs:
            raise DerivativeError(f"the program is not linear in {name}, so it has no transpose")
        operands[name] = jnp.zeros(aval.shape, aval.dtype)  # at most its size is asked for
    made = call.of(adjoint, operands)
    return {name: made[f"{name}.{suffix}"] for name in wanted}


def _batch(operands: Sequence[Any], axes: Sequence[Any], *, call: Call) -> tuple[list[Any], list[Any]]:
    read = {*call.program.inputs, *call.program.loops.static_names, *call.program.loops.indices}
    pairs = [
        pair for pair in zip(call.names, operands, axes, strict=True) if pair[0] in read
    ]  # some are for the way back
    over = tuple(name for name, _, axis in pairs if axis is not None)
    if not over:
        made = Call(call.program, tuple(name for name, _, _ in pairs), call.numbers)(*(x for _, x, _ in pairs))
        return made, [None] * len(made)
    updated = updated_with(call.program, over)
    numbers = tuple(number for number in call.numbers if number.name not in updated)
    if updated:  # each of the batch has a new value, and starts from the same old one
        count = next(np.shape(operand)[axis] for _, operand, axis in pairs if axis is not None)
        pairs += _updated_numbers(call, pairs, updated)
        pairs = [(n, jnp.broadcast_to(x, (count, *np.shape(x))), 0) if n in updated else (n, x, a) for n, x, a in pairs]
        over = tuple(name for name, _, axis in pairs if axis is not None)
    ranks = {name: np.ndim(operand) - (name in over) for name, operand, _ in pairs}
    moved = [jnp.moveaxis(operand, axis, 0) if name in over else operand for name, operand, axis in pairs]
    program = derived(call.program, batch_steps(call.program, over, ranks))
    made = Call(program, tuple(name for name, _, _ in pairs), numbers)(*moved)
    return made, [0 if has else None for has in carried(call.program, over)]


def _updated_numbers(
    call: Call, pairs: Sequence[tuple[str, Any, Any]], updated: Set[str]
) -> list[tuple[str, Any, Any]]:
    """Plain numbers that are updated, as arrays: of the type that their new values have."""
    numbers = {number.name: number.value for number in call.numbers}
    found = [name for name in numbers if name in updated]
    if not found:
        return []
    outlined = {n: Outline(np.shape(x), np.dtype(x.dtype)) for n, x, _ in pairs}
    types = started_from(call.program, found, {**outlined, **numbers}, {n: a for n, _, a in pairs if a is not None})
    return [(name, jnp.asarray(numbers[name], types[name]), None) for name in found]


def _on_the_cpu(context: Any, *operands: Any, call: Call) -> Any:
    return through_foreign_call(context, call.run, call.identity, *operands)


def _anywhere(context: Any, *operands: Any, call: Call) -> Any:
    return through_callback(context, call.run, *operands)


call_p.def_impl(_values)
call_p.def_abstract_eval(_shapes)
ad.primitive_jvps[call_p] = _tangent
ad.primitive_transposes[call_p] = _transpose
batching.primitive_batchers[call_p] = _batch
mlir.register_lowering(call_p, _on_the_cpu, platform="cpu")
mlir.register_lowering(call_p, _anywhere)
