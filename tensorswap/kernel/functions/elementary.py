"""exp, log and what is made of them, as straight-line code for float32 and float64.

Arguments that need another answer (overflow, negative arguments of log, ...) get it from a `select` at the end, which
costs less time than one at the beginning: the long chain of operations starts earlier. NaN passes through all of it.
The errors that the docstrings name are the largest ones found, for float32 and float64, in units in the last place
(ulp), for results that are denormal too.
"""

from __future__ import annotations

from .real import INF, NAN, Real, Word, polynomial, select

LOWEST = {4: -110.0, 8: -760.0}  # exp is 0 below, even times such a number,
HIGHEST = {4: 89.0, 8: 710.0}  # and inf above

LN2 = {4: (0.693359375, -2.12194440e-4), 8: (0.6931471803691238, 1.9082149292705877e-10)}  # n times the first is exact
SQRT_HALF = {4: 0x3F3504F3, 8: 0x3FE6A09E667F3BCD}  # its bits

# exp(r) = 1 + r + r² p(r), for 2 |r| <= log 2
EXP = {
    4: (0.5, 0.16666542, 0.041666478, 0.008366736, 0.0013933751),
    8: (0.5000000000000006, 0.16666666666666682, 0.041666666666572795, 0.008333333333317011, 0.0013888888932798668,
        0.0001984126989764409, 2.480150382003475e-05, 2.7557232846872215e-06, 2.7626611782298194e-07,
        2.5112908693170092e-08),
}  # fmt: skip

# log((1 + s) / (1 - s)) = 2 s + s z p(z), z = s²: for s of a number between sqrt(1/2) and sqrt(2), and for s <= 1/3
LOG = {
    4: (0.66666776, 0.39977562, 0.29871795),
    8: (0.6666666666666731, 0.39999999999432384, 0.2857142873941117, 0.222221988086982, 0.18183554879316674,
        0.15314234280591646, 0.14794600012470777),
}  # fmt: skip
LOG_WIDE = {
    4: (0.66666675, 0.3999895, 0.2861521, 0.21443954, 0.24244875),
    8: (0.6666666666666632, 0.40000000000152947, 0.2857142854831106, 0.222222239448394, 0.18181744712312423,
        0.15386544608864727, 0.13301159407660895, 0.12104715028663729, 0.08345732040737515, 0.17008708896196878),
}  # fmt: skip

# tanh(x) = x + x z p(z) / q(z), z = x², for |x| < 5/8
TANH = {
    4: ((-0.33333307941220497, -0.0015415665673224), (1.0, 0.4046122549772637)),
    8: ((-0.33333333333333326, -0.02049678937449894, -0.00019908905453688868),
        (1.0, 0.4614903681234817, 0.023288652508500377, 0.0002064384374264447)),
}  # fmt: skip


def reduced(x: Real, low: Real | None = None, exact: bool = False) -> tuple[Real, Word]:
    """p, n with exp(x + low) = (1 + p) 2^n. Exact: p has what its rounding lost. Of the word for n only the low bits
    count, and they hold twice the bias of exponents more than n."""
    magic = x.magic + 2 * x.bias
    shifted = x * 1.4426950408889634 + magic
    n = shifted - magic
    high_part, low_part = LN2[x.size]
    most = x - n * high_part
    r = most - n * low_part
    if low is not None:
        r = r + low
    more = r * r * polynomial(r, EXP[x.size])
    if exact:
        more = more + ((most - r) - n * low_part)
    return r + more, shifted.bits()


def power(n: Word, like: Real) -> Real:
    """2^n, a normal number, for n as `reduced` has it."""
    return ((n << like.digits) - like.one).real()


def halves(n: Word, like: Real) -> tuple[Real, Real]:
    """2^n in two factors, so that neither leaves the range of normal numbers, for n as `reduced` has it: half of it is
    the exponent of each, with its bias."""
    half = (n << (like.digits - 1)) & -(1 << like.digits)
    return half.real(), ((n << like.digits) - half).real()


def exp(x: Real) -> Real:
    """1.1 and 1.1 ulp."""
    p, n = reduced(x)
    first, second = halves(n, x)
    y = (p * first + first) * second
    return select(x > HIGHEST[x.size], INF, select(x < LOWEST[x.size], 0.0, y))


def expm1(x: Real) -> Real:
    """1.7 and 1.9 ulp."""
    p, n = reduced(x, exact=True)
    half = power(n - 1, x)  # 2^n itself may be too large
    y = (p * half + (half - 0.5)) * 2.0
    y = select(abs(x) < 2.0 ** -(x.digits + 2), x, y)
    return select(x > HIGHEST[x.size], INF, select(x < -44.0, -1.0, y))


def tanh(x: Real) -> Real:
    """1 - 2 y / (y + 1) with y = exp(-2 |x|), or a rational function where |x| is small; 1.5 and 1.5 ulp."""
    a = abs(x)
    p, n = reduced(a * -2.0)
    scale = power(n, x)
    y = select(a > 22.0, 0.0, p * scale + scale)
    small, z = a < 0.625, x * x
    above, below = TANH[x.size]
    above_part = select(small, a * (z * polynomial(z, above)), y * -2.0)
    below_part = select(small, polynomial(z, below), y + 1.0)
    return (select(small, a, x.constant(1.0)) + above_part / below_part).signed(x)


def decay(x: Real, *factors: Real) -> list[Real]:
    """exp(-|x|), and factors times it: those have all their digits where exp(-|x|) is too small to have them."""
    z = -abs(x)
    p, n = reduced(z)
    first, second = halves(n, x)
    most = p * first + first
    return [select(z < LOWEST[x.size], factor * 0.0, most * factor * second) for factor in (x.constant(1.0), *factors)]


def sigmoid(x: Real) -> Real:
    """2.4 and 2.4 ulp: of exp, of a sum and of a quotient."""
    (e,) = decay(x)
    return select(x < 0.0, e, x.constant(1.0)) / (e + 1.0)


def silu(x: Real) -> Real:
    """3.3 and 3 ulp: a product more than sigmoid. At -inf it is NaN, as x * sigmoid(x) is."""
    e, product = decay(x, x)
    return select(x < 0.0, product, x) / (e + 1.0)


def softplus(x: Real) -> Real:
    """max(x, 0) + log(1 + exp(-|x|)); 2.1 and 2 ulp."""
    (e,) = decay(x)
    return select(x < 0.0, 0.0, x) + logarithm(e, LOG_WIDE)


def parts(x: Real) -> tuple[Real, Word]:
    """m, n for a normal x = m 2^n with m between sqrt(1/2) and sqrt(2); n stands in the place of the exponent."""
    root = SQRT_HALF[x.size]
    moved = x.bits() + (x.one - root)
    mask = (1 << x.digits) - 1
    return ((moved & mask) + root).real(), moved & ~mask


def logarithm(f: Real, coefficients: dict[int, tuple[float, ...]], n: Real | None = None) -> Real:
    """log(1 + f) + n log(2)"""
    s = f / (f + 2.0)
    z, half = s * s, f * f * 0.5
    y = s * (half + z * polynomial(z, coefficients[f.size]))
    if n is None:
        return f - (half - y)
    high, low = LN2[f.size]
    return n * high - ((half - (y + n * low)) - f)


def whole(n: Word, like: Real) -> Real:
    """2^digits + bias + n, for n in the place of the exponent: a conversion that every machine has for vectors."""
    return ((n >> like.digits) | ((like.bias + like.digits) << like.digits)).real()


def log(x: Real) -> Real:
    """0.9 and 0.9 ulp."""
    denormal, more = x < 2.0 ** (1 - x.bias), 2.0**x.digits + x.bias
    m, n = parts(select(denormal, x * 2.0**x.digits, x))
    y = logarithm(m - 1.0, LOG, whole(n, x) - select(denormal, more + x.digits, x.constant(more)))
    y = select(x < INF, y, x)
    y = select(x > 0.0, y, x.constant(NAN))
    return select(x.equals(0.0), -INF, y)


def log1p(x: Real) -> Real:
    """1.4 and 1.4 ulp."""
    one, large = x.constant(1.0), x > 1.0
    high, low = select(large, x, one), select(large, one, x)
    total = high + low
    missing = low - (total - high)
    m, n = parts(total)
    scale = (x.constant(2.0).bits() + x.one - n).real()  # 2^(1-n): 2^-n itself may be too small
    y = logarithm((m - 1.0) + missing * 0.5 * scale, LOG, whole(n, x) - (2.0**x.digits + x.bias))
    y = select(abs(x) < 2.0 ** -(x.digits + 2), x, y)
    y = select(x < INF, y, x)
    y = select(x > -1.0, y, x.constant(NAN))
    return select(x.equals(-1.0), -INF, y)
