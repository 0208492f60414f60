"""A trial: a text and sizes -> a run with random data, values and gradients as heat maps, and a gradient check."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, GradientMismatch
from ..gradcheck import gradcheck
from ..language.bound import Bound
from ..program import Program
from ..rules.activity import default_wrt
from ..trust.inputs import free_sizes
from .analysis import DRAW
from .kernels_told import inputs, programs, seeds

SIDE, SLICES = 40, 6  # cells of a heat map along an axis, and how many of a tensor with more axes are shown
SECONDS, CALLS = 0.25, 50  # that timing takes at most
SMALL = (6, 5, 4, 3, 2)  # sizes that a check may have, the largest that are quick
POINTS, STEP = 130_000, 2000  # of all loops in one run of a check; a step of a block takes as long as so many of them
ENTRIES, LEAST = 16, 3  # of each input that a check moves, and if that takes long


def run(text: str, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """All outputs and gradients, compiled, for random inputs."""
    made, both, _ = programs(text)
    given = inputs(made, sizes, replace(DRAW, seed=seed))
    generator = np.random.default_rng(1)
    shapes = seeds(both, given).items()
    arguments = {**given.arguments, **{n: generator.standard_normal(s) if s else 1.0 for n, s in shapes}}
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as told:  # a call that is interpreted says so
        warnings.simplefilter("always")
        results = both(arguments)
    first = time.perf_counter() - start
    results = results if isinstance(results, dict) else {both.outputs[0]: results}
    arrays = {name: value for name, value in given.arguments.items() if name in made.inputs}
    return {
        "first": first,
        "median": _median(both, arguments, first),
        "sizes": given.bound.sizes.index,
        "weighted": sorted(name for name in arguments if name not in given.arguments and np.ndim(arguments[name])),
        "warnings": [str(warning.message) for warning in told],
        "tensors": [
            *(heat_map(name, "input", value) for name, value in arrays.items()),
            *(heat_map(name, "output", results[name]) for name in made.outputs),
            *(heat_map(name, "gradient", results[name]) for name in both.outputs if name not in made.outputs),
        ],
    }


def _median(both: Program, arguments: Mapping[str, Any], first: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < CALLS and time.perf_counter() < end:
        start = time.perf_counter()
        both(arguments)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] if times else first


def heat_map(name: str, kind: str, value: Any) -> dict[str, Any]:
    """Cells of a tensor: the last two axes as rows and columns, some slices of the others, every n-th where it is
    large."""
    array: Array = np.asarray(value)
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    flat = numbers.reshape((-1, *((1, 1) + numbers.shape)[-2:])) if numbers.size else numbers.reshape(0, 0, 0)
    steps = [max(1, math.ceil(length / SIDE)) for length in flat.shape[1:]]
    cells = flat[:SLICES, :: steps[0], :: steps[1]]
    return {
        "name": name,
        "kind": kind,
        "shape": array.shape,
        "whole": array.dtype.kind != "f",
        "least": _plain(finite.min()) if finite.size else None,
        "most": _plain(finite.max()) if finite.size else None,
        "norm": _plain(np.sqrt(np.sum(finite**2))) if finite.size else None,
        "strange": int(numbers.size - finite.size),  # NaN and infinite
        "slices": len(flat),
        "steps": steps,
        "cells": [[[_plain(v) for v in row] for row in cut] for cut in cells],
    }


def _plain(value: float) -> float | None:
    """Four digits; none for NaN and infinity, which JSON does not have."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def check(text: str, sizes: Mapping[str, int], seed: int, seconds: float = 2.0) -> dict[str, Any]:
    """`ts.gradcheck` at sizes at which the interpreter is quick, of as many entries as it has seconds for."""
    made, _, _ = programs(text)
    draw = replace(DRAW, seed=seed)
    for most in SMALL:
        given = inputs(made, {**sizes, **{n: min(size, most) for n, size in _of_indices(made, sizes).items()}}, draw)
        index = given.bound.sizes.index
        if _points(given.bound) <= POINTS:
            break
    wrt = [name for name in default_wrt(made.loops) if name in given.arguments]  # defaults may lie on kinks
    if not wrt:
        raise ArgumentError("no input has a derivative here", hint="an input must reach an output smoothly")
    told = {"sizes": {name: index[name] for name in made.loops.indices if name in index}}
    try:
        start = time.perf_counter()
        made.run_reference(given.arguments)
        runs = seconds / (time.perf_counter() - start)
        entries = min(max(int(runs / 2 / len(wrt)), LEAST), ENTRIES)
        report = gradcheck(made, given.arguments, wrt=wrt, entries=entries, random_seed=seed)
    except GradientMismatch as error:
        return {"passed": False, "text": error.faults[0].message, "hint": error.faults[0].hint, **told}
    return {
        "passed": True,
        "text": str(report),
        "entries": report.entries,
        "difference": report.difference_error,
        "product": report.product_error,
        **told,
    }


def _points(bound: Bound) -> int:
    """What a run costs the interpreter, which takes statements whole and blocks step by step."""
    index = bound.sizes.index
    return sum(
        math.prod(index[i] for i in statement.indices) + STEP * math.prod(index[block.index] for block in blocks)
        for statement, blocks in bound.loops.located
    )


def _of_indices(made: Program, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes that a check may make smaller: those of static integers stay as they are."""
    known = {**free_sizes(made.loops, DRAW), **sizes}
    return {name: size for name, size in known.items() if name not in made.loops.static_names}
