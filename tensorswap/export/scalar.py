"""The scalar functions that kernels of an exported file call, as Numba source; a file holds those that it needs.

`real` is the type to compute in: a plain 1 beside a float32 would make it a float64.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..language.functions import FUNCTIONS

NUMPY = {row.name: f"np.{row.numpy}" for row in FUNCTIONS.values() if row.numpy and row.name != "round"}
NUMPY["abs"] = "abs"

SOURCES = {
    "larger": '''
@compiled
def larger(a, b):
    """The larger of two numbers; NaN if one of them is."""
    return a if a > b or a != a else b
''',
    "smaller": '''
@compiled
def smaller(a, b):
    """The smaller of two numbers; NaN if one of them is."""
    return a if a < b or a != a else b
''',
    "above": '''
@compiled
def above(new, best, position, held):
    """Whether a candidate of argmax= beats the one held: a NaN beats all numbers, the first beats its equals."""
    if held < 0:
        return True
    if new != new:
        return best == best or position < held
    return new > best or (new == best and position < held)
''',
    "below": '''
@compiled
def below(new, best, position, held):
    """As `above`, for argmin=."""
    if held < 0:
        return True
    if new != new:
        return best == best or position < held
    return new < best or (new == best and position < held)
''',
    "nearest": '''
@compiled
def nearest(x, real):
    """Rounded, halves to even; whole numbers stay as they are."""
    return real(np.rint(x)) if real(0.5) != 0 else real(x)
''',
    "erf": """
@compiled
def erf(x, real):
    return real(math.erf(real(x)))
""",
    "sigmoid": '''
@compiled
def sigmoid(x, real):
    """Without overflow on either side."""
    one, small = real(1), np.exp(-abs(real(x)))
    return (one if x >= 0 else small) / (one + small)
''',
    "silu": """
@compiled
def silu(x, real):
    return real(x) * sigmoid(x, real)
""",
    "softplus": '''
@compiled
def softplus(x, real):
    """log(1 + exp(x)), without overflow."""
    return larger(real(x), real(0)) + np.log1p(np.exp(-abs(real(x))))
''',
    "gelu": """
@compiled
def gelu(x, real):
    x = real(x)
    return real(0.5) * x * (real(1) + real(math.erf(x * real(math.sqrt(0.5)))))
""",
    "mix": '''
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@compiled
def mix(x):
    """The finaliser of splitmix64: every bit of the argument reaches every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
''',
    "mixed": '''
@compiled
def mixed(state, argument):
    """64 random bits that depend on the state and on one more whole number."""
    return mix((state + GOLDEN) ^ mix(np.uint64(np.int64(argument)) + GOLDEN))
''',
    "uniform": '''
@compiled
def uniform(bits):
    """In [0, 1)."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53
''',
    "normal": '''
@compiled
def normal(bits):
    """Standard normal, by Box and Muller."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(bits)))
    return radius * math.cos(2.0 * math.pi * uniform(mix(bits + GOLDEN)))
''',
}

NEEDS = {
    "silu": ("sigmoid",), "softplus": ("larger",), "mixed": ("mix",), "uniform": ("mix",), "normal": ("mix", "uniform"),
}  # fmt: skip


def sources(names: Iterable[str]) -> list[str]:
    """The source of the functions named and of those that they call, callees first."""
    wanted = set(names)
    for name in list(wanted):
        wanted |= set(NEEDS.get(name, ()))
    return [text.strip("\n") for name, text in SOURCES.items() if name in wanted]
