"""Checkpoints: going back over a chain of stretches with few of its states kept, computing the least of it again.

With s places for states, a chain of C(s + r, s) stretches is gone back over while each is computed r times at most: the
binomial schedule of Griewank and Walther.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import TypeVar

S = TypeVar("S")


def go_back(
    stretches: int, places: int, start: S, forward: Callable[[int, S], S], backward: Callable[[int, S], None]
) -> None:
    """Calls `backward` for each stretch, the last one first, with the state before it. `forward` gives the state behind
    a stretch. No more than `places` states are kept, that at the start among them."""
    still = [(0, stretches, start, places)] if stretches else []
    while still:
        first, behind, state, left = still.pop()
        if behind - first == 1:
            backward(first, state)
            continue
        step = until_next(behind - first, left)
        later = state
        for number in range(first, first + step):
            later = forward(number, later)
        if left > 1:
            still += [(first, first + step, state, left), (first + step, behind, later, left - 1)]
        else:
            backward(behind - 1, later)
            still.append((first, behind - 1, state, left))


def until_next(stretches: int, places: int) -> int:
    """How many stretches to compute before the next state is kept."""
    if places == 1:
        return stretches - 1
    rounds = 1
    while comb(places + rounds, places) < stretches:
        rounds += 1
    rest = comb(places + rounds - 1, places - 1)  # as many can be gone back over with the other places
    least = comb(places + rounds - 2, places)
    return min(max(stretches - rest, least, 1), stretches - 1)


def computed(stretches: int, places: int) -> int:
    """How many stretches `forward` computes in all."""
    rounds = 0
    while comb(places + rounds, places) < stretches:
        rounds += 1
    return rounds * stretches - comb(places + rounds, places + 1)
