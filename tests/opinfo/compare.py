"""One sample: what our op gives for it, held against PyTorch's value, gradient and second derivative."""

from __future__ import annotations

import inspect
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._pytree import tree_flatten, tree_unflatten

import tensorswap as ts
from tensorswap.errors import LimitError, SwapError

from .case import Adapter, Case, Tensor, Unexpressed

Array = NDArray[Any]
ROUGH = 1e-5  # where float32 takes part
TOLERANCE = 1e-8  # of the largest element: both sides sum in float64, in other orders

NUMPY = {
    torch.float32,
    torch.float64,
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
}

RIGHT, UNEXPRESSED, REFUSED = "right", "cannot be expressed", "refused"
VALUE, SHAPE, DTYPE, CRASH, BEYOND = "wrong value", "wrong shape", "wrong dtype", "crash", "PyTorch refuses"
ADAPTER = "the adapter fails"
OUTCOMES = (RIGHT, UNEXPRESSED, REFUSED, VALUE, SHAPE, DTYPE, CRASH, ADAPTER, BEYOND)


@dataclass(frozen=True)
class Outcome:
    kind: str
    detail: str = ""


class Differs(Exception):
    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(frozen=True)
class Sample:
    """The tensors of a sample as PyTorch's leaves, and how to put them back among the other arguments."""

    op: Callable[..., Any]
    adapter: Adapter
    leaves: list[Any]
    structure: Any

    @classmethod
    def of(cls, op: Callable[..., Any], adapter: Adapter, sample: Any) -> Sample:
        flat, structure = tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
        return cls(op, adapter, [leaf(value) for value in flat], structure)

    @property
    def wanted(self) -> list[Tensor]:
        return [x for x in self.leaves if isinstance(x, Tensor) and x.requires_grad]

    def arguments(self, leaves: Sequence[Any] | None = None) -> Any:
        return tree_unflatten(list(self.leaves if leaves is None else leaves), self.structure)

    def case(self, leaves: Sequence[Any] | None = None) -> Case:
        ordered, named = self.arguments(leaves)
        try:
            bound = inspect.signature(self.adapter).bind(*ordered, **named)
        except TypeError as error:
            raise Unexpressed(f"an argument that our op lacks: {error}") from error
        return self.adapter(*bound.args, **bound.kwargs)

    def expected(self) -> Any:
        ordered, named = self.arguments()
        return self.op(*ordered, **named)


def leaf(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.detach().clone().requires_grad_(value.is_floating_point())


@cache
def program(text: str) -> ts.Program:
    return ts.program(text) if "=" in text else ts.load(text)


@cache
def adjoint(text: str, wrt: tuple[str, ...], of: tuple[str, ...]) -> ts.Program:
    return program(text).adjoint(wrt=list(wrt), of=list(of))


@cache
def second_adjoint(text: str, wrt: tuple[str, ...], of: tuple[str, ...]) -> ts.Program:
    return adjoint(text, wrt, of).adjoint(wrt=list(wrt), of=[f"{name}.grad" for name in wrt])


def results(p: ts.Program, arguments: dict[str, Any], compiled: bool) -> dict[str, Array]:
    chosen = {name: value for name, value in arguments.items() if p.loops.header or name in p.loops.names}
    try:
        found = p(chosen) if compiled else p.run_reference(chosen)
    except LimitError:
        if compiled:
            raise
        found = p(chosen)  # more points than the interpreter holds
    return {p.outputs[0]: found} if len(p.outputs) == 1 else found


def outcome(
    op: Callable[..., Any], adapter: Adapter, given: Any, second: bool = False, compiled: bool = False
) -> Outcome:
    """What became of one sample. What is neither a result nor a SwapError is a crash."""
    sample = Sample.of(op, adapter, given)
    if strange := {str(x.dtype) for x in sample.leaves if isinstance(x, Tensor) and x.dtype not in NUMPY}:
        return Outcome(UNEXPRESSED, f"numbers of the type {' and '.join(sorted(strange))}")
    try:
        case = sample.case()
    except Unexpressed as reason:
        return Outcome(UNEXPRESSED, str(reason))
    except Exception as error:  # a fault of this script must not end it
        return Outcome(ADAPTER, f"{type(error).__name__}: {error}")
    try:
        expected = (case.oracle or sample.expected)()
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        return Outcome(BEYOND, str(error).splitlines()[0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Comparison(sample, case, expected).run(second, compiled)
    except Differs as difference:
        return Outcome(difference.kind, f"{case.program} {difference}")
    except SwapError as error:
        return Outcome(REFUSED, f"{case.program}: {str(error).splitlines()[0]}")
    except Exception as error:  # what this script is there to find
        return Outcome(CRASH, f"{case.program}: {type(error).__name__}: {str(error).splitlines()[:1]}")
    return Outcome(RIGHT, case.gradient)


@dataclass(frozen=True)
class Comparison:
    sample: Sample
    case: Case
    result: Any

    def run(self, second: bool, compiled: bool) -> None:
        self.values(compiled=False)
        if compiled:
            self.values(compiled=True)
        if self.case.gradient or self.undefined or not self.wrt or not self.smooth:
            return
        self.gradients(compiled=False)
        if compiled:
            self.gradients(compiled=True)
        if second and not self.case.second:
            self.second_derivatives()

    @property
    def mixed(self) -> bool:
        """Whether float32 meets float64. PyTorch then has rules of its own, such as for tensors without axes."""
        return len({x.dtype for x in self.case.tensors.values() if x.is_floating_point()}) > 1

    @property
    def tolerance(self) -> float:
        return ROUGH if self.mixed else TOLERANCE

    @property
    def program(self) -> ts.Program:
        return program(self.case.program)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.case.outputs or self.program.outputs

    @property
    def expected(self) -> dict[str, Tensor]:
        arranged = self.case.arrange(self.result)
        parts = [arranged] if isinstance(arranged, Tensor) else list(arranged)
        return dict(zip(self.outputs, parts, strict=True))

    @property
    def smooth(self) -> dict[str, Tensor]:
        return {name: x for name, x in self.expected.items() if x.requires_grad}

    @property
    def wrt(self) -> tuple[str, ...]:
        return tuple(name for name, x in self.case.tensors.items() if x.requires_grad)

    @property
    def arguments(self) -> dict[str, Any]:
        arrays = {name: x.detach().numpy() for name, x in self.case.tensors.items()}
        return {**arrays, **self.case.options}

    @property
    def undefined(self) -> bool:
        """At NaN and infinity there is no derivative, and PyTorch's formulas give this or that: NaN for 0 * inf."""
        return not all(bool(x.isfinite().all()) for x in self.sample.wanted)

    def values(self, compiled: bool) -> None:
        found = results(self.program, self.arguments, compiled)
        for name, expected in self.expected.items():
            self.check(np.asarray(found[name]), expected.detach(), f"{name}{' (compiled)' if compiled else ''}")

    def seeds(self, round_: int = 0) -> dict[str, Tensor]:
        return {name: random_like(x, f"{name} {round_}") for name, x in self.smooth.items()}

    def gradients(self, compiled: bool) -> None:
        seeds = self.seeds()
        try:
            expected = self.pulled(list(self.smooth.values()), list(seeds.values()))
        except RuntimeError as error:
            if "not implemented" in str(error):
                return  # PyTorch has no derivative here
            raise
        p = adjoint(self.case.program, self.wrt, tuple(seeds))
        arguments = self.arguments | {f"{name}.grad": seed.numpy() for name, seed in seeds.items()}
        found = results(p, arguments, compiled)
        self.check_leaves({name: found[f"{name}.grad"] for name in self.wrt}, expected, "gradient")

    def second_derivatives(self) -> None:
        """The gradient of <gradient, direction>; the direction goes through the same views as the tensors."""
        wanted, seeds = self.sample.wanted, self.seeds()
        try:
            first = torch.autograd.grad(
                list(self.smooth.values()),
                wanted,
                list(seeds.values()),
                create_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
        except RuntimeError:
            return  # PyTorch has no second derivative here
        along = [random_like(x, f"along {number}") for number, x in enumerate(wanted)]
        inner = sum(((g * a).sum() for g, a in zip(first, along, strict=True)), torch.zeros((), dtype=torch.float64))
        if inner.requires_grad:
            try:
                expected = self.pulled([inner], [torch.ones_like(inner)])
            except RuntimeError:
                return
            if not all(bool(x.isfinite().all()) for x in expected):
                return  # nor has it one where its formula divides by 0
        else:
            expected = [torch.zeros_like(x) for x in wanted]
        numbers = iter(along)
        leaves = [next(numbers) if isinstance(x, Tensor) and x.requires_grad else x for x in self.sample.leaves]
        directions = self.sample.case(leaves).tensors
        p = second_adjoint(self.case.program, self.wrt, tuple(seeds))
        arguments = self.arguments | {f"{name}.grad": seed.numpy() for name, seed in seeds.items()}
        arguments |= {f"{name}.grad.grad2": directions[name].detach().numpy() for name in self.wrt}
        found = results(p, {n: a for n, a in arguments.items() if n in p.loops.names}, compiled=False)
        self.check_leaves({name: found[f"{name}.grad2"] for name in self.wrt}, expected, "second derivative")

    def pulled(self, outputs: list[Tensor], seeds: list[Tensor]) -> list[Tensor]:
        found = torch.autograd.grad(
            outputs, self.sample.wanted, seeds, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return [x.to_dense() for x in found]

    def check_leaves(self, found: dict[str, Array], expected: list[Tensor], what: str) -> None:
        """Our gradients, carried back through the views to PyTorch's own tensors."""
        tensors = [self.case.tensors[name] for name in self.wrt]
        for name, tensor in zip(self.wrt, tensors, strict=True):
            if found[name].shape != tuple(tensor.shape):
                raise Differs(SHAPE, f"{what} of {name}: {found[name].shape}, not {tuple(tensor.shape)}")
            if not self.mixed and found[name].dtype != np.dtype(str(tensor.dtype).removeprefix("torch.")):
                raise Differs(DTYPE, f"{what} of {name}: {found[name].dtype}, not {tensor.dtype}")
        seeds = [
            torch.from_numpy(np.ascontiguousarray(found[name])).to(t.dtype).reshape(t.shape)
            for name, t in zip(self.wrt, tensors, strict=True)
        ]
        for number, (ours, theirs) in enumerate(zip(self.pulled(tensors, seeds), expected, strict=True)):
            if not any(self.sample.wanted[number] is x for x in self.case.fixed):
                self.check(ours.numpy(force=True), theirs, f"{what} of argument {number}")

    def check(self, found: Array, expected: Tensor, what: str) -> None:
        right = expected.detach().numpy(force=True)
        if found.shape != right.shape:
            raise Differs(SHAPE, f"{what}: {found.shape}, not {right.shape}")
        if found.dtype != right.dtype and not self.mixed:
            raise Differs(DTYPE, f"{what}: {found.dtype}, not {right.dtype}")
        if right.dtype.kind not in "f":
            close = found == right
        else:
            finite = np.abs(right[np.isfinite(right)])
            scale = max(1.0, float(finite.max())) if finite.size else 1.0
            close = np.isclose(found, right, rtol=self.tolerance, atol=self.tolerance * scale, equal_nan=True)
        if not close.all():
            place = tuple(int(k) for k in np.argwhere(~close)[0])
            raise Differs(VALUE, f"{what}{list(place)}: {found[place]!r}, not {right[place]!r}")


def random_like(x: Tensor, name: str) -> Tensor:
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    return torch.from_numpy(np.asarray(generator.standard_normal(tuple(x.shape)))).to(x.dtype)
