"""ts.jax(p): a program as a function of JAX's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import DtypeError
from ...language.options import each_part
from ...program import Program, program_of
from ...rules.activity import integer_uses
from ...run.arguments import merged
from .primitive import Call, Number

NUMBERS = (int, float, bool)


class JaxProgram:
    """A program as a function of JAX's arrays: called as the program is, under jit, grad, jvp and vmap too."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._inputs = frozenset(program.inputs)
        self._integers = frozenset(integer_uses(program.loops))

    def __reduce__(self) -> tuple[Any, ...]:
        return JaxProgram, (self.program,)

    def __repr__(self) -> str:
        return f"<ts.jax of {self.program!r}>"

    def __call__(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any:
        """Runs the program. One output: that array; several: a dict by name."""
        given, numbers = {}, {}
        for name, value in each_part(self.program.loops, merged(mapping, arrays)).items():
            if value is None:  # an optional tensor that is left out
                continue
            if type(value) in NUMBERS or name not in self._inputs:
                numbers[name] = Number.of(name, self._number(name, value))
            else:
                given[name] = _as_jax(name, value)
        given = self._settled(given)
        made = Call(self.program, tuple(given), tuple(numbers.values()))(*given.values())
        return made[0] if len(made) == 1 else dict(zip(self.program.outputs, made, strict=True))

    def _number(self, name: str, value: Any) -> int | float | bool:
        if isinstance(value, jax.core.Tracer):
            if name not in {*self.program.loops.static_names, *self.program.loops.indices}:
                return 0  # the call will tell that there is no such input
            raise DtypeError(
                f"{name} is a part of the program, so it cannot be traced",
                hint=f'name it among the static arguments: jax.jit(f, static_argnames="{name}")',
            )
        if isinstance(value, np.generic | np.ndarray | jax.Array) and not np.ndim(value):
            value = value.item()
        if isinstance(value, NUMBERS):
            return value
        if name in self.program.loops.static_names or name in self.program.loops.indices:
            raise DtypeError(f"{name} must be a whole number, not {type(value).__name__}", hint=f"pass {name}=1")
        return 0  # a name that the program does not know: it tells best

    def _settled(self, given: dict[str, Any]) -> dict[str, Any]:
        """Numbers that JAX traced from plain ones take the type of the arrays, as plain ones do."""
        floats = [a.dtype for a in given.values() if not a.weak_type and a.dtype.kind == "f"]
        if not floats:
            return given
        dtype = np.result_type(*floats)
        return {
            name: jax.lax.convert_element_type(array, dtype)
            if array.weak_type and name not in self._integers
            else array
            for name, array in given.items()
        }


def _as_jax(name: str, value: Any) -> Any:
    if isinstance(value, jax.Array):
        return value
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"{name} cannot be read as an array: {str(error)[:200]}", hint="pass an array") from error


def jax_bridge(source: Program | str) -> JaxProgram:
    """A program, its text or an op of the standard library as a function of JAX's arrays."""
    return JaxProgram(program_of(source, "ts.jax", 'ts.jax("Y[i] = tanh(X[i])") or ts.jax("softmax")'))
