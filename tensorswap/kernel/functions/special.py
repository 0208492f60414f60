"""The error function and gelu, as straight-line code for float32 and float64."""

from __future__ import annotations

from .elementary import halves, power, reduced
from .real import INF, NAN, Real, polynomial, select

# erf(x) = x + x p(z), z = x², for |x| <= 3/4
ERF = {
    4: (0.128379166, -0.3761262, 0.112833843, -0.0268348269, 0.00511457678, -0.000675042043),
    8: (0.1283791670955126, -0.3761263890318409, 0.11283791670971928, -0.026866170648465006, 0.005223977659169251,
        -0.0008548328948269462, 0.00012055396482900966, -1.492677686405468e-05, 1.6468512290707697e-06,
        -1.6248284329023258e-07, 1.2543226171128395e-08),
}  # fmt: skip

# erfc(a) = exp(-a²) p(a) / q(a), for a > 3/4, as exact as 1 - erfc(a) needs it
ERFC = {
    4: ((1.00042982, 0.728829896, 0.224031675), (1.0, 1.86039211, 1.31247801, 0.395339451)),
    8: ((0.9999999779621008, 1.3563134454861914, 0.9074761040234536, 0.3487626003618215, 0.07653933775901502,
         0.00778184674106365),
        (1.0, 2.4846923433944634, 2.7111527327929217, 1.6755256587984986, 0.6251461346030827, 0.1356565543572154,
         0.013793162447081304)),
}  # fmt: skip

# erfc(a / sqrt(2)) = exp(-a²/2) p(a) / q(a), for every a at which it is not 0
GAUSS = {
    4: ((1.0, 0.876970816, 0.366751223, 0.0813607823, 0.00824651889),
        (1.0, 1.6748558, 1.20308797, 0.469841309, 0.101976999, 0.0103353606)),
    8: ((1.0, 1.5495008019946077, 1.1877358897431434, 0.5784113661988767, 0.19528511712135999, 0.04721026864072837,
         0.008171308747004431, 0.000979780613358284, 7.441301244486219e-05, 2.76718218626781e-06),
        (1.0, 2.3473853627974632, 2.560678428974192, 1.7138059887232198, 0.781679421017771, 0.25480827729122857,
         0.06039033414079997, 0.01033447964216043, 0.0012314410429464578, 9.326288049520694e-05,
         3.4681485545875893e-06)),
}  # fmt: skip
HIGHEST = {4: 14.5, 8: 38.7}


def erf(x: Real) -> Real:
    """1.9 and 2 ulp."""
    a, z = abs(x), x * x
    small = x + x * polynomial(z, ERF[x.size])
    p, n = reduced(-z)
    scale = power(n, x)
    above, below = ERFC[x.size]
    rest = (p * scale + scale) * polynomial(a, above) / polynomial(a, below)
    large = select(a > 6.0, 1.0, x.constant(1.0) - rest).signed(x)
    return select(a > 0.75, large, small)


def gelu(x: Real) -> Real:
    """max(x, 0) - |x| erfc(|x| / sqrt(2)) / 2, which has its digits on the negative side too; 6 and 7 ulp.

    Those are the roundings of two sums, three products, a quotient and exp. At -inf it is NaN, as x times 0 is.
    """
    a = abs(x)
    high = (a.bits() & -(1 << (12 if x.size == 4 else 27))).real()  # its square is exact
    p, n = reduced(high * high * -0.5, (high - a) * (high + a) * 0.5)
    first, second = halves(n - 1, x)
    above, below = GAUSS[x.size]
    y = a * polynomial(a, above) / polynomial(a, below) * first
    y = select(a > HIGHEST[x.size], 0.0, (p * y + y) * second)
    return select(x.equals(-INF), NAN, select(x < 0.0, 0.0, x) - y)
