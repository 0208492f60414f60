"""sin and cos, as straight-line code for float32 and float64, right for every argument however large.

An argument x is n quarter turns and a rest: x times 2 / pi is n + f, with |f| <= 1/2. Where x is large, most digits of
that product belong to whole turns. So of the binary digits of 2 / pi, only those are used that leave less than a turn
or a part of one; they come from a table, by the exponent of x. One way serves small arguments and huge ones.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import frexp, ldexp

from ..ir import Table
from .real import Real, Word, entry, polynomial, select

HALF_PI = (1.5707963267948966, 6.123233995736766e-17)

# float32, r = f pi/2: sin(r) = r + r z p(z), cos(r) = 1 + z q(z), z = r², for |f| <= 9/16
# float64: sin(f pi/2) = f pi/2 + f z p(z), cos(f pi/2) = 1 + z q(z), z = f², for |f| <= 1/2
SIN = {
    4: (-0.16666642, 0.008331442, -0.00019427954),
    8: (-0.6459640975062448, 0.07969262624605859, -0.004681754132540398, 0.00016044115198620077,
        -3.5986470889593485e-06, 5.634366328917945e-08),
}  # fmt: skip
COS = {
    4: (-0.5, 0.041666623, -0.0013886341, 2.4333314e-05),
    8: (-1.2337005501361697, 0.2536695079010418, -0.020863480763185904, 0.0009192602727092184,
        -2.5202027995607365e-05, 4.7103524643023977e-07, -6.291736760645731e-09),
}  # fmt: skip


@cache
def inverse_pi() -> Fraction:
    """1 / pi to 1500 binary digits, by Machin's formula."""
    unit = 1 << 1564

    def arctangent(n: int) -> int:
        """Of 1 / n."""
        term, total, k = unit // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    return Fraction(unit, 4 * (4 * arctangent(5) - arctangent(239)))


@cache
def single_table() -> tuple[float, ...]:
    """For each exponent of a float32, two parts of 2 / pi: the product with the first is exact in float64."""
    found = []
    for exponent in range(256):
        rest = 2 * inverse_pi() % Fraction(2) ** (25 - max(exponent - 127, 0))
        fraction, power = frexp(float(rest))
        first = ldexp(round(ldexp(fraction, 29)), power - 29)
        found += [first, float(rest - Fraction(first))]
    return tuple(found)


@cache
def double_table() -> tuple[float, ...]:
    """For each 16 exponents of a float64, four parts of 2 / pi times a power of two that brings x below 2."""
    found = []
    for band in range(128):
        rest = inverse_pi() * Fraction(2) ** (16 * (band - 63) + 1) % 2**69
        parts = [float(round(rest / 2**16) * 2**16)]
        for _ in range(3):
            rest -= Fraction(parts[-1])
            parts.append(float(rest))
        found += parts
    return tuple(found)


def turned(sine: Real, cosine: Real, quarters: Word) -> Real:
    """The sine after some quarter turns."""
    y = select(quarters.odd(), cosine, sine)
    return (y.bits() ^ ((quarters << (8 * y.size - 2)) & (1 << (8 * y.size - 1)))).real()


def single_sine(x: Real, quarters: int) -> Real:
    """The sine of a float32 after some quarter turns."""
    array = Table("quarters_f4", single_table())
    place = ((x.bits() >> 22) & 0x1FE).wide()
    wide = x.double()
    product = wide * entry(array, place)
    shifted = product + wide.magic
    f = (product - (shifted - wide.magic)) + wide * entry(array, place + 1)
    r = (f * HALF_PI[0]).single()
    z = r * r
    sine, cosine = r + r * (z * polynomial(z, SIN[4])), z * polynomial(z, COS[4]) + 1.0
    return turned(sine, cosine, shifted.bits().narrow() + quarters)


def double_sine(x: Real, quarters: int) -> Real:
    """The sine of a float64 after some quarter turns."""
    array = Table("quarters_f8", double_table())
    bits = x.bits()
    place = (bits >> 54) & 0x1FC
    scaled = ((bits & ~(0x7F << 56)) | (63 << 56)).real()
    one, one_lacks = scaled.times(entry(array, place))
    two, two_lacks = scaled.times(entry(array, place + 1))
    three, three_lacks = scaled.times(entry(array, place + 2))
    four = scaled * entry(array, place + 3) + (x - x)  # NaN if x is not finite
    turns = (one - (one * 0.25).call("rint") * 4.0) + one_lacks  # exact: nothing but whole turns is lost
    shifted = (turns + two) + x.magic
    high, low = (turns - (shifted - x.magic)).plus(two)
    middle, middle_lacks = two_lacks.plus(three)
    high, high_lacks = high.plus(middle)
    low = low + (high_lacks + (middle_lacks + (three_lacks + four)))
    f = high + low
    rest = (high - f) + low
    z = f * f
    sine = f * HALF_PI[0] + (f * (z * polynomial(z, SIN[8])) + (f * HALF_PI[1] + rest * HALF_PI[0]))
    return turned(sine, z * polynomial(z, COS[8]) + 1.0, shifted.bits() + quarters)


def sin(x: Real) -> Real:
    """1.7 and 1.5 ulp."""
    y = single_sine(x, 0) if x.size == 4 else double_sine(x, 0)
    return select(abs(x) < 2.0 ** -(x.digits // 2 + 1), x, y)


def cos(x: Real) -> Real:
    """1.7 and 1.5 ulp."""
    return single_sine(x, 1) if x.size == 4 else double_sine(x, 1)
