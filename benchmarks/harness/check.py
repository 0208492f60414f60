"""Whether a peer computed the right thing: its results against the reference's in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .workload import Results, Row

SAFETY = 16.0


@dataclass(frozen=True)
class Verdict:
    """The largest error, relative to the largest element of its result, and what is wrong if something is."""

    error: float
    tolerance: float
    wrong: str = ""


def tolerance(row: Row) -> float:
    """Rounding errors of a sum grow with the root of its number of terms, unless they all point one way."""
    return SAFETY * float(np.finfo(row.dtype).eps) * math.sqrt(row.workload.terms(row.sizes))


def compare(row: Row, found: Results, expected: Results) -> Verdict:
    allowed = tolerance(row)
    worst = 0.0
    for name in row.workload.results:
        if name not in found:
            return Verdict(math.inf, allowed, f"{name} is missing")
        actual, right = found[name], expected[name]
        if actual.shape != right.shape:
            return Verdict(math.inf, allowed, f"{name} has shape {actual.shape}, not {right.shape}")
        if actual.dtype != np.dtype(row.dtype):
            return Verdict(math.inf, allowed, f"{name} has type {actual.dtype}, not {row.dtype}")
        error = relative_error(actual, right)
        if not error <= allowed:
            return Verdict(error, allowed, f"{name} is off by {error:.1e} (allowed {allowed:.1e})")
        worst = max(worst, error)
    return Verdict(worst, allowed)


def relative_error(actual: np.ndarray, right: np.ndarray) -> float:
    """NaN and infinity count as an infinite error."""
    difference = np.max(np.abs(actual - right), initial=0.0)
    scale = np.max(np.abs(right), initial=0.0)
    if not np.isfinite(difference):
        return math.inf
    return float(difference / scale) if scale else float(difference)
