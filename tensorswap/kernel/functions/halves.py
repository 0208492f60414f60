"""Powers by halves, of square roots and products: 2 to 2.5 ulp, and what C's `pow` gives of zeros and infinities."""

from __future__ import annotations

from .real import INF, Real, select


def root(x: Real) -> Real:
    """x ** 0.5. A square root keeps the sign of -0 and has no value for -infinity; a power is 0 and infinity there."""
    return select(x.equals(-INF), INF, select(x.equals(0.0), 0.0, x.call("sqrt")))


def three_halves(x: Real) -> Real:
    return abs(x) * root(x)


def five_halves(x: Real) -> Real:
    return abs(x) * abs(x) * root(x)


def inverse_root(x: Real) -> Real:
    return x.constant(1.0) / root(x)


def inverse_three_halves(x: Real) -> Real:
    return x.constant(1.0) / abs(x) / root(x)  # in this order nothing grows too large before the whole does


def inverse_five_halves(x: Real) -> Real:
    return x.constant(1.0) / abs(x) / abs(x) / root(x)
