"""Powers by halves, of square roots and products: 0.5 to 3.5 ulp, and what C's `pow` gives of zeros and infinities.

A square root keeps the sign of -0, which no power by halves has, and it has no value for -infinity, which they have.
"""

from __future__ import annotations

from .real import INF, Real, select


def root(x: Real) -> Real:
    return select(x.equals(-INF), INF, abs(x.call("sqrt")))


def three_halves(x: Real) -> Real:
    return select(x.equals(-INF), INF, x * x.call("sqrt"))


def five_halves(x: Real) -> Real:
    return select(x.equals(-INF), INF, abs(x) * (x * x.call("sqrt")))


def inverse_root(x: Real) -> Real:
    return select(x.equals(-INF), 0.0, abs(x.constant(1.0) / x.call("sqrt")))


def inverse_three_halves(x: Real) -> Real:
    """In this order nothing grows too large before the whole does."""
    return select(x.equals(-INF), 0.0, x.constant(1.0) / x / x.call("sqrt"))


def inverse_five_halves(x: Real) -> Real:
    """Of the one above, which derivatives have beside it."""
    part = x.constant(1.0) / x
    return select(x.equals(-INF), 0.0, abs(part * (part / x.call("sqrt"))))
