"""Program: the one object a user holds. It parses, derives, prints and runs; the work is done by the layers below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import library
from .arrays import Array
from .debug import WATCHED, switches
from .errors import ArgumentError, DerivativeError, ProgramError
from .forks import NO_FORK
from .language import ir, render
from .language.bound import Bound
from .language.check import check
from .language.options import each_part
from .language.parse import Source, parse
from .language.printable import check_printable
from .lazy import cached_property, method
from .rules.activity import check_of, check_wrt, default_wrt, names_of
from .rules.batch import batch
from .rules.derivation import Adjoint, Derivation, Gradient, HessianVector, Tangent
from .rules.derived_names import next_suffix
from .rules.inline import inline
from .run.arguments import bind
from .run.runnable import Runnable

if TYPE_CHECKING:
    from pathlib import Path

    from .plan.table import PlanTable
    from .run.execute import Executable
    from .run.kernel_times import KernelTime

    Sharded = Any  # of a package above, which needs programs
    Within = Any  # likewise


class Program(Runnable):
    """Index-loop statements that run, print, and differentiate into programs of the same kind."""

    _origin: Program | None
    _watched = WATCHED

    def __init__(self, loops: ir.Loops, origin: Program | None = None, derivation: Derivation | None = None) -> None:
        check(loops)
        super().__init__(loops, origin, derivation)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return render.program(self._loops)

    def __repr__(self) -> str:
        return f"<Program {', '.join(self.inputs)} -> {', '.join(self.outputs)}>\n{self}"

    def _repr_html_(self) -> str:
        """The text in colours, with its derivative and its dataflow folded below it, for a notebook."""
        page: str = method("program_page")(self)
        return page

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self._loops == other._loops

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without what its calls have compiled: that is found in the cache again."""
        return Program, (self._loops, self._origin, self._derivation)

    def __copy__(self) -> Program:
        """Nothing in a program changes, so it is its own copy."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        return self

    def _results(self, arguments: Mapping[str, Any]) -> dict[str, Array]:
        seen = switches()
        if seen.validate:
            self._validate(arguments)
        return self._looked_at(arguments) if seen.looking else self._caller(arguments)

    def _validate(self, arguments: Mapping[str, Any]) -> None:
        """Each pass that leads to a call, before and after, through the interpreter."""
        with NO_FORK:
            from .trust.validate import validate

        origin = None if self._origin is None else self._origin.loops
        validate(origin, self._derivation, bind(self._loops, arguments), arguments)

    @property
    def certifies(self) -> bool:
        return switches().certify

    @NO_FORK
    def certify(self, bound: Bound, plan: ir.Loops | None) -> None:
        """Raises if this derivative, or the plan of a call, is wrong: each is looked at once, at tiny sizes. A plan of
        the same statements as one before, for other sizes, is not looked at again."""
        if not self.certifies:
            return
        from .trust.verdicts import certified

        statics = tuple(sorted(bound.sizes.statics.items()))
        types = {name: array.dtype for name, array in bound.arrays.items()}
        kinds = tuple((name, dtype.str) for name, dtype in sorted(types.items()))
        origin = None if self._origin is None else self._origin.loops
        derivation = self._derivation
        if self._origin is not None and origin is not None and derivation is not None:
            loops = origin
            self._origin.certify(bound, None)
            certified(
                ("derivative", str(self._origin), derivation, str(self), statics, kinds),
                lambda: _certificates().certify_derivative(loops, derivation, self._loops, dict(statics), types),
            )
        if plan is not None:
            texts = [render.statement(statement) for loops in (bound.loops, plan) for statement in loops.statements]
            certified(
                ("plan", texts, derivation, statics, kinds),
                lambda: _certificates().certify_plan(bound, origin, derivation),
            )

    def run_reference(self, mapping: Mapping[str, Any] | None = None, /, *more: Any, **arrays: Any) -> Any:
        """The same call through the plain interpreter."""
        self._check_named(more)
        arguments = self._arguments(mapping, arrays)
        program = self._for_call(arguments)
        results = program._looked_at(arguments) if switches().looking else program._interpreted(arguments)
        return results if self._single is None else results[self._single]

    def _looked_at(
        self, arguments: Mapping[str, Any], nan: bool | None = None, bounds: bool | None = None
    ) -> dict[str, Array]:
        """The same call through the interpreter, which looks at each statement: as `ts.debug` says, if not told."""
        with NO_FORK:
            from .interpret import watch
            from .run.call import check_origin

        nan = switches().nan if nan is None else nan
        bounds = switches().bounds if bounds is None else bounds
        origin = None if bounds else self._bound_origin(arguments)
        if origin is not None:
            check_origin(origin)
        elif bounds and self._origin is not None and self._origin._is_complete(arguments):
            own = {name: value for name, value in arguments.items() if name in self._origin._loops.names}
            self._origin._for_call(own)._looked_at(own, nan, bounds)
        return watch.run(bind(self._loops, arguments), nan, bounds, self._note)

    def _note(self, number: int) -> str:
        """Which rule made the statement of a number of which statement, if this is an adjoint."""
        if self._origin is None or not isinstance(self._derivation, Adjoint | Gradient):
            return ""
        statement, forward = self._loops.statements[number - 1], self._origin._loops.statements
        notes = self._derivation.notes(self._origin._loops)
        found = [note for note in notes if note.adjoint == statement]
        found = found or [note for note in notes if note.adjoint.target == statement.target]  # passes have changed it
        if not found:
            return ""
        place = next((k for k, s in enumerate(forward, 1) if s is found[0].forward), 0)
        return (
            f"by the rule {found[0].rule}, from statement {place} of the program: {render.statement(found[0].forward)}"
        )

    def adjoint(self, wrt: Sequence[str], of: Sequence[str] | None = None) -> Program:
        """Takes the inputs and `Y.grad` for each output in `of`; gives `X.grad` for each in `wrt`."""
        outputs = None if of is None else check_of(self._loops, of)
        return self._derived(Adjoint(check_wrt(self._loops, wrt), outputs))

    def _derived(self, derivation: Derivation) -> Program:
        loops = derivation(self._loops)
        check_printable(loops)
        return Program(loops, self, derivation)

    @overload
    def grad(self, of: str = ..., wrt: Sequence[str] | None = ..., memory: None = ...) -> Program: ...

    @overload
    def grad(self, of: str = ..., wrt: Sequence[str] | None = ..., *, memory: str | int) -> Within: ...

    def grad(
        self, of: str = "loss", wrt: Sequence[str] | None = None, memory: str | int | None = None
    ) -> Program | Within:
        """For a scalar output: gives it, and `X.grad` for each in `wrt` (all that it depends on if None). Calls keep to
        the limit `memory`, such as "64 MB", if there is one: see `within`."""
        derived = self._derived(self._gradient(of, wrt))
        return derived if memory is None else derived.within(memory)

    def _gradient(self, of: str, wrt: Sequence[str] | None) -> Gradient:
        names = names_of("of", of)
        of = names[0] if len(names) == 1 else ""
        if not of:
            raise ArgumentError("grad is for one scalar", hint="use p.adjoint for several outputs")
        rank = self._loops.ranks.get(of)
        if of in self._loops.written and rank != 0:
            raise ArgumentError(
                f"{of} has {rank} axes; grad is for a scalar",
                hint=f'use p.adjoint(wrt=[...], of=["{of}"]), which takes {of}.grad',
            )
        check_of(self._loops, [of])
        return Gradient(of, check_wrt(self._loops, default_wrt(self._loops, [of]) if wrt is None else wrt))

    def tangent(self, wrt: Sequence[str]) -> Program:
        """Takes the inputs and `X.dot` for each in `wrt`; gives `Y.dot` for each output."""
        return self._derived(Tangent(check_wrt(self._loops, wrt)))

    def hessian_vector(self, of: str = "loss", wrt: Sequence[str] | None = None) -> Program:
        """The tangent of the gradient: takes `X.dot`, gives `X.grad.dot`."""
        gradient = self._gradient(of, wrt)
        along = default_wrt(self._loops, names_of("of", of)) if wrt is None else wrt
        return self._derived(HessianVector(gradient, check_wrt(self._loops, along)))

    def batch(self, index: str, over: Sequence[str]) -> Program:
        """The program with `index` in front of the tensors named, and of all that depends on them."""
        _check_name(index)
        origin = None if self._origin is None else self._origin._batched(index, over)
        return Program(batch(self._loops, index, over), origin)

    def _batched(self, index: str, over: Sequence[str]) -> Program | None:
        """The same batch of the program behind a derivative, which may have fewer of the inputs."""
        own = [name for name in over if name in self.inputs]
        return self.batch(index, own) if own else self

    def plan(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> PlanTable:
        """The kernels of a call with these arrays (or shapes): loops, parallel index and why it is safe, cost."""
        arguments = shapes_as_arrays(self._arguments(mapping, arrays))
        return self._for_call(arguments)._caller.plan(arguments)

    def source(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> str:
        """The kernels of a call with these arrays (or shapes) as a Python file that needs numpy and Numba alone. Its
        `run` takes a list of the inputs, and gives a list of the outputs."""
        arguments = shapes_as_arrays(self._arguments(mapping, arrays))
        return self._for_call(arguments)._caller.source(arguments)

    def executable(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Executable:
        """The kernels of a call with these arrays (or shapes), for those who look at them closely."""
        arguments = shapes_as_arrays(self._arguments(mapping, arrays))
        return self._for_call(arguments)._caller.executable(arguments)

    def kernel_times(self, mapping: Mapping[str, Any], seconds: float = 1.0) -> list[KernelTime]:
        """How long each kernel of a call with these arrays takes, the median of as many runs as the seconds allow."""
        arguments = self._arguments(mapping, {})
        return self._for_call(arguments)._caller.kernel_times(arguments, seconds)

    @NO_FORK
    def export(self, path: str | Path, wrt: Sequence[str] | None = None, like: Mapping[str, Any] | None = None) -> None:
        """Writes one file with `forward` and `adjoint` (by all inputs that have one if `wrt` is None). `model.py` can
        be imported and needs numpy and numba, not tensorswap; it does what a call does, for arrays of any types and
        sizes. `model.c`, with `model.h` beside it, needs a C compiler; it is for arrays of the types and shapes of
        those in `like`, which may be shapes alone, or of those of the last call."""
        if str(path).endswith(".c"):
            from .export.c_file import c_file

            c_file(path, self._c_calls(wrt, like))
        else:
            from .export.python_file import python_file

            python_file(path, self, *self._exported_adjoint(wrt))

    def _exported_adjoint(self, wrt: Sequence[str] | None) -> tuple[Program | None, str]:
        """The adjoint by the inputs named, or by all that have one; or why there is none."""
        if wrt is not None:
            return self.adjoint(wrt), ""
        inputs = default_wrt(self._loops)
        if not inputs:
            return None, "No output depends smoothly on an input, so there is no adjoint."
        try:
            return self.adjoint(inputs), ""
        except DerivativeError as error:
            return None, f"There is no adjoint: {error.faults[0].message}."

    def _c_calls(self, wrt: Sequence[str] | None, like: Mapping[str, Any] | None) -> dict[str, Executable]:
        """Forward and adjoint for arrays like some."""
        if like is None:
            called = [p._caller.last for p in (self, *self._shorter.values()) if p._caller.last is not None]
            if not called:
                raise ArgumentError(
                    "a C file is for arrays of given types and shapes, and the program has not been called with any",
                    hint='p.export("model.c", like={"X": (64, 32)})',
                )
            like = called[-1]
        arguments = shapes_as_arrays(each_part(self._loops, like))
        program = self._for_call(arguments)
        calls = {"forward": program._caller.for_export(arguments)}
        names = default_wrt(self._loops) if wrt is None else check_wrt(self._loops, wrt)
        names = tuple(name for name in names if name in program.inputs)
        if names and not self._loops.updated:
            made = calls["forward"]
            of = [name for name in program.outputs if made.stored(name).kind == "f"]
            if not of and wrt is None:
                return calls
            ones = {name: np.ones((), made.stored(name)) for name in of}
            suffix = next_suffix(program._loops, "grad")
            seeds = {f"{name}.{suffix}": np.broadcast_to(ones[name], made.sizes.shapes[name]) for name in of}
            adjoint = program.adjoint(wrt=names, of=of)
            given = {name: array for name, array in {**arguments, **seeds}.items() if name in adjoint._loops.names}
            calls["adjoint"] = adjoint._caller.for_export(given)
        return calls

    def flat(self, of: str | None = None, wrt: Sequence[str] | None = None) -> str:
        """A scalar program as straight-line Python, forward and then backward."""
        text: str = method("flat")(self, of, wrt)
        return text

    def jacobian(self, of: str, wrt: str, mode: str | None = None) -> Program:
        """The program of a whole Jacobian, for those who want one: the axes of `of`, then those of `wrt`."""
        derived: Program = method("jacobian")(self, of, wrt, mode)
        return derived

    def shard(
        self, index: str | Sequence[str], client: Any = None, shards: int | Sequence[int] | None = None,
        memory: str | int | None = None, out: str | Path | None = None,
    ) -> Sharded:  # fmt: skip
        """The program cut along an index, or several: called as it is, and run as shards on the workers of a client of
        Dask's (those of this machine if there is none). Its results depend on the number of shards, not on who runs
        them. With `memory`, shards run here, one after the other, each within so much; large outputs go to files, in
        the folder `out` if it is given. With `out="dask"`, outputs are Dask arrays, and stay on the workers."""
        made: Sharded = method("shard")(self, index, client, shards, memory, out)
        return made

    def within(self, memory: str | int) -> Within:
        """The program with a limit of memory for what a call makes: its results, and what is kept in between. What does
        not fit is computed in parts: the derivative of a recurrence in stretches of steps, of which some are computed
        again; anything else in shards of an index."""
        made: Within = method("within")(self, memory)
        return made

    @NO_FORK
    def explain(self) -> str:
        """Each statement, with the rule that made each of its adjoint statements."""
        from .explain.plainly import explain

        return explain(self._loops)


def shapes_as_arrays(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A shape stands for an array of that shape, without its memory."""
    return {
        name: np.broadcast_to(np.float64(1), value) if isinstance(value, tuple) else value
        for name, value in arguments.items()
    }


def _check_name(name: str) -> None:
    """A name that a text could hold: so that what a derivation prints parses back."""
    source = parse(f"Y[{name}] = 0") if isinstance(name, str) and name.isidentifier() else None
    if source is None or source.main is None or source.main.indices != (name,):
        raise ArgumentError(f"{str(name)[:80]!r} cannot name an index", hint='use a plain name, such as "n"')


def program(text: str, outputs: Sequence[str] | None = None) -> Program:
    """Parses and checks a text. Outputs are the names never read again, unless they are named."""
    source = parse(text)
    for name, definition in source.definitions.items():
        check(inline(definition, source.definitions, library.definitions, (name,)))
    if source.main is None:
        if not source.definitions:
            raise ProgramError("the text holds no statement", hint="write `Y[i] = X[i]`")
        return _of_definition(source, list(source.definitions)[-1], outputs)
    loops = inline(source.main, source.definitions, library.definitions)
    names = loops.returns if outputs is None else _output_names(outputs)
    return Program(loops if names is None else _with_named_outputs(loops, names))


def _output_names(outputs: Sequence[str]) -> tuple[str, ...]:
    names = names_of("outputs", outputs)
    if not names:
        raise ArgumentError("outputs names nothing", hint='outputs=["Y"]')
    return tuple(dict.fromkeys(names))


def _with_named_outputs(loops: ir.Loops, names: tuple[str, ...]) -> ir.Loops:
    return replace(loops, returns=None if replace(loops, returns=None).outputs == names else names)


def _of_definition(source: Source, name: str, outputs: Sequence[str] | None = None) -> Program:
    loops = inline(source.definitions[name], source.definitions, library.definitions, (name,))
    if outputs is not None:
        assert loops.header is not None
        chosen = {o.tensor: o for o in loops.header.outputs}
        unknown = [n for n in _output_names(outputs) if n not in chosen]
        if unknown:
            raise ArgumentError(f"{unknown[0]} is not an output of {name}", hint=f"its outputs are {', '.join(chosen)}")
        header = replace(loops.header, outputs=tuple(chosen[n] for n in _output_names(outputs)))
        loops = replace(loops, header=header)
    return Program(loops)


def program_of(source: Program | str, asked_by: str, example: str = "ts.program(text)") -> Program:
    """A program, or that of a text or of an op of the standard library, for a function that takes any of them."""
    if isinstance(source, Program):
        return source
    if not isinstance(source, str):
        kind = type(source).__name__
        raise ArgumentError(f"{asked_by} takes a program, its text or the name of an op, not {kind}", hint=example)
    return program(source) if "=" in source else load(source.strip())


def load(path_or_name: str | Path) -> Program:
    """The program of a `.loop` file's definition, or of an op of the standard library."""
    source, name = library.source_of(path_or_name)
    if not name:
        if source.main is None:
            raise ProgramError(f"{path_or_name} holds no statement", hint="write `Y[i] = X[i]` into it")
        return Program(inline(source.main, source.definitions, library.definitions))
    return _of_definition(source, name)


__all__ = ["Program", "load", "program"]


@NO_FORK
def _certificates() -> Any:
    from .trust import certify  # where none is known yet

    return certify
