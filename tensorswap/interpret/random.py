"""The random functions of the language, in numpy: pure functions of their integer arguments."""

from __future__ import annotations

import numpy as np

from ..arrays import Doubles, Integers, Words

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(x: Words) -> Words:
    """The finaliser of splitmix64: every bit of the argument reaches every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def counter(arguments: list[Integers]) -> Words:
    """64 random bits that depend on all of the arguments and on their order."""
    state: Words = np.asarray(GOLDEN)
    for argument in arguments:
        state = mix((state + GOLDEN) ^ mix(argument.astype(np.int64).view(np.uint64) + GOLDEN))
    return state


def _unit(bits: Words) -> Doubles:
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform(arguments: list[Integers]) -> Doubles:
    """In [0, 1), in single precision too: what would be rounded to 1 there is a little less."""
    return np.minimum(_unit(counter(arguments)), 1 - 2.0**-24)


def normal(arguments: list[Integers]) -> Doubles:
    """Standard normal, by Box and Muller."""
    bits = counter(arguments)
    radius = np.sqrt(-2 * np.log(1 - _unit(bits)))
    return np.asarray(radius * np.cos(2 * np.pi * _unit(mix(bits + GOLDEN))))


RANDOM = {"uniform": uniform, "normal": normal}
