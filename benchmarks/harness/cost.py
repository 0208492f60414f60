"""What a computation must do at least: instructions on vectors, of which a function takes several.

A vector unit that does one multiply-add in a moment does one sum, or one comparison, in that moment too. So all count
the same, and the arithmetic that a large matrix product reaches on a machine, which is multiply-adds, is the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Instructions for one vector of results, in float32 and float64: range reduction, a polynomial just long enough for the
# type, and what puts the result together. A quotient takes so many of the moments of a multiply-add at least.
FUNCTIONS = {
    "exp": (12, 18),
    "log": (14, 20),
    "tanh": (16, 28),
    "erf": (20, 40),
    "divide": (4, 8),
}


@dataclass(frozen=True)
class Cost:
    """Of the best known order, forward and backward."""

    pairs: float = 0  # multiply-adds
    others: float = 0  # sums, products, comparisons
    calls: Mapping[str, float] = field(default_factory=dict)  # of functions

    def instructions(self, dtype: str) -> float:
        """For single numbers: a vector does as many at once as in a matrix product."""
        which = ("float32", "float64").index(dtype)
        return self.pairs + self.others + sum(count * FUNCTIONS[name][which] for name, count in self.calls.items())
