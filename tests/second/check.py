"""One written program through the library, each answer against another that shares no code with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tensorswap as ts
from tensorswap.errors import DerivativeError
from tensorswap.run import call as calling
from tensorswap.run import tuning
from tests.second.evaluate import Notes, Tensor, Unsuited, evaluate, family
from tests.second.write import Sample

TOLERANCE = 1e-8
ROUNDED = 1e-13 / TOLERANCE  # of 1, a few hundred roundings of which are no difference
Tally = Counter[str]  # how many programs a check saw, and how many it had to leave aside and why


class Wrong(AssertionError):
    """The library's answer is not the right one; `kind` tells the check that found it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


def results(p: ts.Program, value: Any) -> dict[str, np.ndarray]:
    return dict(value) if isinstance(value, dict) else {p.outputs[0]: value}


def expected(sample: Sample) -> tuple[dict[str, Tensor], Notes]:
    return evaluate(sample.text, sample.arguments, sample.sizes, sample.shapes, sample.batch)


def same(kind: str, name: str, got: np.ndarray, want: np.ndarray, scale: float, tolerance: float) -> None:
    """Equal shape and NaN mask, and values that differ by rounding only."""
    got = np.asarray(got)
    if got.shape != want.shape:
        raise Wrong(kind, f"{name} has shape {got.shape}, not {want.shape}")
    if want.dtype.kind in "iub" and got.dtype.kind in "iub":
        if not np.array_equal(got, want):
            raise Wrong(kind, f"{name} is\n{got}\nnot\n{want}")
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        raise Wrong(kind, f"{name} has NaN at other places:\n{got}\nnot\n{want}")
    infinite = np.isinf(b)
    if not np.array_equal(a[infinite], b[infinite]):
        raise Wrong(kind, f"{name} has other infinities:\n{got}\nnot\n{want}")
    finite = np.isfinite(b)
    if finite.any():
        room = tolerance * max(scale, float(np.abs(b[finite]).max()), 1e-30)
        error = float(np.abs(a[finite] - b[finite]).max())
        if not error <= room:
            raise Wrong(kind, f"{name} is\n{got}\nnot\n{want}\n(error {error:.3g})")


def single(sample: Sample) -> bool:
    """Whether float32 takes part."""
    return any(str(getattr(value, "dtype", "")) == "float32" for value in sample.arguments.values())


def check_values(sample: Sample, p: ts.Program, tally: Tally) -> Notes:
    """The interpreter against plain Python loops: values, NaN, types. Gives what the loops noticed."""
    right, notes = expected(sample)
    for name, array in results(p, p.run_reference(sample.call())).items():
        if name not in right:
            tally["values: a local of a definition"] += 1
            continue
        kind = right[name].kind
        open_width = bool(p.loops.updated)  # the page leaves open whether an input that is updated may become wider
        exact = kind in ("float32", "float64") and not open_width
        if family(str(array.dtype)) != family(kind) or (exact and str(array.dtype) != kind):
            raise Wrong("type", f"{name} is {array.dtype}, not {kind}")
        if notes.fragile or (single(sample) and notes.wild):
            tally["values: near a tie"] += 1
            continue
        same("value", name, array, right[name].array(), notes.room(name), 2e-3 if single(sample) else 1e-8)
    tally["values"] += 1
    return notes


def check_compiled(sample: Sample, p: ts.Program, notes: Notes, tally: Tally) -> None:
    """A compiled call against the interpreter, of every other program on several threads."""
    with threads(sample.seed):
        _compare("compiled", p, sample.call(), 3e-3 if single(sample) else 1e-8, notes, tally)


@contextmanager
def threads(seed: int) -> Iterator[None]:
    """As if the help of other threads cost nothing."""
    count = (1, 2, 1, 3, 1, 7)[seed % 6]
    before = tuning.PARALLEL, calling.threads
    if count > 1:
        tuning.PARALLEL, calling.threads = 0, lambda: count
    try:
        yield
    finally:
        tuning.PARALLEL, calling.threads = before


def _compare(kind: str, p: ts.Program, call: dict[str, Any], tolerance: float, notes: Notes, tally: Tally) -> None:
    for _ in range(2):  # the third call goes the short way
        p._way(call)
    interpreted, compiled = results(p, p.run_reference(call)), results(p, p._way(call))
    for name, right in interpreted.items():
        if compiled[name].dtype != right.dtype:
            raise Wrong(kind + " type", f"{name} is {compiled[name].dtype}, not {right.dtype}")
        if notes.fragile:
            tally[f"{kind}: near a tie"] += 1
        elif notes.wild and not np.isfinite(right.astype(np.float64)).all():
            tally[f"{kind}: not finite"] += 1  # another order of a sum may give another infinity
        else:
            same(kind, name, compiled[name], right, notes.room(name), tolerance)
    tally[kind] += 1


def check_derivative(sample: Sample, p: ts.Program, tally: Tally, compiled: bool = False, jax: bool = False) -> None:
    """The adjoint against the tangent and central differences; also against JAX and its own compiled form."""
    wrt = [name for name in sample.wrt if name in p.inputs]
    numbers = np.random.default_rng(sample.seed)
    call = dict(sample.call())
    for name in wrt:  # float64, and off the ties
        value = np.asarray(call[name], np.float64)
        call[name] = value + 0.05 * numbers.normal(size=value.shape)
    value = results(p, p.run_reference(call))
    of = [name for name in p.outputs if value[name].dtype.kind == "f"]
    if not wrt or not of:
        tally["derivative: nothing to derive"] += 1
        return
    if not all(np.isfinite(value[name]).all() for name in of):
        tally["derivative: not finite"] += 1
        return
    try:
        adjoint, tangent = p.adjoint(wrt=wrt, of=of), p.tangent(wrt=wrt)
    except DerivativeError:
        tally["derivative: refused"] += 1
        return
    seeds = {f"{name}.grad": numbers.normal(size=value[name].shape) for name in of}
    dots = {f"{name}.dot": numbers.normal(size=np.shape(call[name])) for name in wrt}
    backward = results(adjoint, adjoint.run_reference({**call, **seeds}))
    forward = results(tangent, tangent.run_reference({**call, **dots}))
    for name in wrt:
        if backward[f"{name}.grad"].shape != np.shape(call[name]):
            raise Wrong("adjoint shape", f"{name}.grad has shape {backward[f'{name}.grad'].shape}")
    left = [float(np.sum(seeds[f"{name}.grad"] * forward[f"{name}.dot"])) for name in of]
    right = [float(np.sum(backward[f"{name}.grad"] * dots[f"{name}.dot"])) for name in wrt]
    size = sum(float(np.sum(np.abs(backward[f"{name}.grad"] * dots[f"{name}.dot"]))) for name in wrt)
    size += sum(float(np.sum(np.abs(seeds[f"{name}.grad"] * forward[f"{name}.dot"]))) for name in of)
    if not abs(sum(left) - sum(right)) <= 1e-8 * max(size, 1e-6):
        raise Wrong("adjoint and tangent", f"<u, Jv> is {sum(left)!r}, <J'u, v> is {sum(right)!r}")
    tally["derivative: adjoint and tangent"] += 1

    def at(step: float) -> float:
        moved = {**call, **{name: call[name] + step * dots[f"{name}.dot"] for name in wrt}}
        there = results(p, p.run_reference(moved))
        return sum(float(np.sum(seeds[f"{name}.grad"] * there[name])) for name in of)

    if "stop(" not in sample.text:  # differences know of no stop
        tally[f"derivative: {_differences(at, sum(left), size)}"] += 1
    if jax:
        _against_jax(sample, call, wrt, of, seeds, backward, tally)
    if compiled:
        # 1 - tanh(x)**2 of a large x is what rounding leaves of it, however small: as much as of 1
        largest = max(float(np.abs(seed).max(initial=0)) for seed in seeds.values())
        rounded = Notes(wild=True, scale=dict.fromkeys(adjoint.outputs, ROUNDED * largest))
        with threads(sample.seed):
            _compare("compiled adjoint", adjoint, {**call, **seeds}, TOLERANCE, rounded, tally)


def _differences(at: Any, slope: float, size: float) -> str:
    """Whether central differences agree; at a kink, or where two steps disagree, they have no say."""
    middle = at(0.0)
    room = 1e-4 * max(size, abs(middle), 1e-3)
    found: list[float] = []
    for step in (1e-5, 1e-6, 1e-7):
        up, down = at(step), at(-step)
        found.append((up - down) / (2 * step))
        if abs(found[-1] - slope) <= room:
            return "differences"
        if abs((up - middle) - (middle - down)) > 0.1 * step * room / 1e-4:
            return "a kink"
    if max(found) - min(found) > room:
        return "too steep for differences"
    raise Wrong("differences", f"the slope is {found[-1]!r}, the derivative says {slope!r}")


def _against_jax(
    sample: Sample,
    call: dict[str, Any],
    wrt: list[str],
    of: list[str],
    seeds: dict[str, Any],
    backward: dict[str, Any],
    tally: Tally,
) -> None:
    from tests.second.grid import adjoint  # not above: the other checks run without JAX

    try:
        right = adjoint(sample, call, wrt, of, seeds)
    except Unsuited:
        tally["JAX: unsuited"] += 1
        return
    for name in wrt:
        if not np.isfinite(right[name]).all():
            tally["JAX: not finite in a branch not taken"] += 1
            continue
        same("JAX", f"{name}.grad", backward[f"{name}.grad"], right[name], 1e-5, 1e-7)  # terms may cancel to nothing
    tally["JAX"] += 1
