"""One written program before and after every pass of its plan and its derivatives, in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorswap as ts
from tensorswap.errors import DerivativeError, TrustError
from tensorswap.language.bound import Bound
from tensorswap.run.arguments import bind
from tensorswap.trust.validate import changed_by_derivation, changed_by_plan, derivation_stages
from tests.second.check import Tally, Wrong, expected, results
from tests.second.write import Sample


def passes(sample: Sample, tally: Tally) -> None:
    """No pass may change what the program computes."""
    try:
        check_passes(sample, ts.program(sample.text), tally)
    except (Wrong, TrustError):
        if not expected(sample)[1].fragile:  # there another order of a sum turns a comparison
            raise
        tally["passes: near a tie"] += 1


def check_passes(sample: Sample, p: ts.Program, tally: Tally) -> None:
    """The program before and after every pass of its plan, at its own sizes or as if they were large; no compiling.

    One program in 50 also has each pass of its adjoint and tangent and of their plans looked at.
    """
    call = {name: _double(value) for name, value in sample.call().items()}
    _watch(bind(p._loops, call), sample.seed % 2 == 1, tally)
    if sample.seed % 50 == 0:
        value = results(p, p.run_reference(call))
        of = [name for name in p.outputs if value[name].dtype.kind == "f"]
        wrt = [name for name in sample.wrt if name in p.inputs]
        if of and wrt:
            seeds = {f"{name}.grad": np.ones(value[name].shape) for name in of}
            dots = {f"{name}.dot": np.ones(np.shape(call[name])) for name in wrt}
            _watch_derivation(p, lambda: p.adjoint(wrt=wrt, of=of), {**call, **seeds}, tally)
            _watch_derivation(p, lambda: p.tangent(wrt=wrt), {**call, **dots}, tally)


def _double(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


def _watch(bound: Bound, large: bool, tally: Tally) -> None:
    times = 16 if large else 1
    change = changed_by_plan(bound, {index: times * max(size, 1) for index, size in bound.sizes.index.items()})
    if change is not None:
        raise Wrong("pass", str(change.error()))
    tally["passes of a plan"] += 1


def _watch_derivation(p: ts.Program, derive: Callable[[], ts.Program], call: dict[str, Any], tally: Tally) -> None:
    try:
        derived = derive()
    except DerivativeError:
        tally["passes: refused"] += 1
        return
    assert derived._derivation is not None
    change = changed_by_derivation(derivation_stages(p._loops, derived._derivation), call)
    if change is not None:
        raise Wrong("pass", str(change.error()))
    known = {
        name: value for name, value in call.items() if name in derived._loops.names or name in derived._loops.known
    }
    _watch(bind(derived._loops, known), True, tally)
    tally["passes of a derivative"] += 1
