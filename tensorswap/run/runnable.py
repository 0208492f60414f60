"""A program that is called: what of its arguments are checked and which kernels run. It knows no text."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from ..arrays import Array
from ..errors import ArgumentError
from ..forks import NO_FORK
from ..language import ir
from ..language.bound import Bound
from ..language.options import each_part
from ..language.sizes import infer
from ..lazy import cached_property
from ..rules.derivation import Derivation, Without
from ..rules.optional import optional_tensors, without
from .arguments import bind, defaults, merged

if TYPE_CHECKING:
    from .call import Caller, Prepared


class _SignatureOfCalls:
    """What a program takes, for those who ask `inspect`, which sees a slot."""

    def __get__(self, program: Runnable | None, owner: type) -> Any:
        if program is None:
            raise AttributeError("__signature__")  # a class has its own
        from inspect import Parameter, signature

        called = signature(program._called)
        told = [p for p in called.parameters.values() if p.kind is not Parameter.VAR_POSITIONAL]
        return called.replace(parameters=told)


class _Calls(property):
    """A call of a program: Python finds what a property gives without a function in between. Of the class, it is a
    function of a program and its arguments."""

    def __call__(self, program: Any, /, *given: Any, **arrays: Any) -> Any:
        return program._way(*given, **arrays)


class Runnable:
    """Loops, compiled for a call's arrays on first use.

    A call is whatever `_way` holds: the method `_called` at first, and a direct call for arguments like earlier ones.
    """

    __slots__ = ("__dict__", "__weakref__", "_way")
    _watched = ctypes.c_int64(0)  # not zero: calls look closer than direct ones do
    __signature__ = _SignatureOfCalls()
    if TYPE_CHECKING:

        def __call__(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any: ...

    else:
        __call__ = _Calls(attrgetter("_way"), doc="Runs the program. One output: that array; several: a dict by name.")

    def __init__(self, loops: ir.Loops, origin: Runnable | None = None, derivation: Derivation | None = None) -> None:
        self._way: Callable[..., Any] = self._called
        self._loops = loops
        self._origin = origin  # a derivative is refused where its program would be, though it may run none of it
        self._derivation = derivation  # how the origin's loops became these

    @property
    def loops(self) -> ir.Loops:
        """The IR."""
        return self._loops

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._loops.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._loops.outputs

    def _called(self, mapping: Mapping[str, Any] | None = None, /, *more: Any, **arrays: Any) -> Any:
        """Runs the program, compiled on first use. One output: that array; several: a dict by name."""
        self._check_named(more)
        arguments = arrays if mapping is None and not self._loops.options else self._arguments(mapping, arrays)
        program = self._for_call(arguments) if self._optional else self
        results = program._results(arguments)
        if program is self and not self._loops.options:
            self._way = self._caller.way(self._called, self._single is not None, self._watched)
        return results if self._single is None else results[self._single]

    def _check_named(self, more: tuple[Any, ...]) -> None:
        """Refuses what a call passes behind a mapping."""
        if more:
            named = ", ".join(f"{name}=..." for name in self.inputs)
            raise ArgumentError(f"a call takes one mapping, or names: {1 + len(more)} came without", hint=f"p({named})")

    def _results(self, arguments: Mapping[str, Any]) -> dict[str, Array]:
        return self._caller(arguments)

    def _arguments(self, mapping: Mapping[str, Any] | None, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a call passes, with a number for each part of its options."""
        arguments = merged(mapping, arrays)
        return each_part(self._loops, arguments) if self._loops.options else arguments

    @cached_property
    def _single(self) -> str | None:
        """The output, if there is but one."""
        return self.outputs[0] if len(self.outputs) == 1 else None

    @cached_property
    def _optional(self) -> frozenset[str]:
        return frozenset(optional_tensors(self._loops))

    def _for_call(self, arguments: Mapping[str, Any]) -> Self:
        """The program for a call that leaves optional tensors out."""
        missing = frozenset(self._optional.difference(arguments))
        if not missing:
            return self
        if missing not in self._shorter:
            again = None if self._derivation is None else Without(self._derivation, missing)
            self._shorter[missing] = type(self)(without(self._loops, missing), self._origin, again)
        shorter: Self = self._shorter[missing]
        return shorter

    @cached_property
    def _shorter(self) -> dict[frozenset[str], Self]:
        """The programs without some of the optional tensors."""
        return {}

    @cached_property
    def _caller(self) -> Caller:
        with NO_FORK:
            from .call import Caller  # with all that runs: a program that is only looked at needs none of it

        return Caller(self._loops, self._bound_origin, self._in_steps, self.certify, lambda: self.certifies)

    def direct_or_nothing(self) -> Callable[..., Any] | None:
        """A direct call for arguments like the last ones, which gives None for others; None if there is none yet."""
        return self._caller.direct_or_nothing(self._single is not None, self._watched)

    def _release(self) -> None:
        """Gives up the memory that waits for the next calls."""
        self._way = self._called
        self._caller.release()

    def prepared(self, arguments: Mapping[str, Any]) -> Prepared:
        """What would run a call with these arguments: kernels, or the reason why there are none."""
        program = self._for_call(arguments)
        return program._caller.prepare(bind(program._loops, {**program._caller.standing, **arguments}), looking=True)

    @NO_FORK
    def _in_steps(self, bound: Bound) -> Bound:
        """The same derivative, of the program with long products taken in steps of two: those are differentiated, so
        that forward and backward pass share them."""
        if self._origin is None or self._derivation is None:
            return bound
        from .steps import derived_in_steps

        return derived_in_steps(self._origin.loops, self._derivation, bound)

    @property
    def certifies(self) -> bool:
        """Whether somebody can tell, and is asked to."""
        return False

    def certify(self, bound: Bound, plan: ir.Loops | None) -> None:
        """Raises if this derivative, or the plan of a call, is wrong: for those who can tell."""

    def _bound_origin(self, arguments: Mapping[str, Any]) -> Bound | None:
        """The program that this one is a derivative of, bound to the same call if its arguments suffice: where that
        would be refused, so is this."""
        return None if self._origin is None else self._origin._bound_to(arguments)

    def _bound_to(self, arguments: Mapping[str, Any]) -> Bound | None:
        """The program bound to those of the arguments that are its own, if they suffice."""
        own = {name: value for name, value in arguments.items() if name in self._loops.names}
        return bind(self._for_call(own)._loops, own) if self._is_complete(own) else None

    def _interpreted(self, arguments: Mapping[str, Any]) -> dict[str, Array]:
        with NO_FORK:
            from ..interpret import reference
            from .call import check_origin

        origin = self._bound_origin(arguments)
        if origin is not None:
            check_origin(origin)
        return reference.run(bind(self._loops, arguments))

    def _is_complete(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the arguments of a derivative suffice for a call."""
        own = {name: value for name, value in arguments.items() if name in self._loops.names}
        missing = set(self.inputs) - self._optional - {*own, *defaults(self._loops)}
        return not missing and not infer(self._for_call(own)._loops, frozenset(own)).missing
