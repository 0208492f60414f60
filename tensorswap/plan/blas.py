"""BLAS where it wins: programs whose statements are all large plain matrix products of inputs.

Measured on two cores of a Neoverse-N1: from about 400 on, numpy's own matrix product is up to 6 % faster than generated
tiles; below that the tiles win, up to twofold at 64. With the registers of AVX-512 tiles win at all sizes, by a tenth
at 1,024, save where the left side lies turned (run/products.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..language import ir
from ..language.sizes import Sizes
from .work import product_of

LARGE = 400


@dataclass(frozen=True)
class MatrixProduct:
    """target = sign * left @ right, with an operand as it lies or turned."""

    target: str
    left: str
    turn_left: bool
    right: str
    turn_right: bool
    sign: int


def matrix_products(loops: ir.Loops, sizes: Sizes) -> list[MatrixProduct] | None:
    """The products that make up a program, or None if it is anything else."""
    found = [_product(statement, sizes, set(loops.inputs)) for statement in loops.body]
    products = [product for product in found if product is not None]
    alone = len({p.target for p in products}) == len(loops.body) and not loops.updated
    return products if products and alone else None


def _product(item: ir.Item, sizes: Sizes, inputs: set[str]) -> MatrixProduct | None:
    if not isinstance(item, ir.Statement) or item.operator not in ir.SUM or item.guard is not None:
        return None
    over, under = product_of(item.value)
    if under or len(over) != 2 or not all(isinstance(f, ir.Access) and f.tensor in inputs for f in over):
        return None
    row_column = [ir.bare(e) for e in item.target.indices]
    if len(row_column) != 2 or None in row_column or len(item.indices) != 3:
        return None
    row, column = (name or "" for name in row_column)
    shape = (sizes.index[row], sizes.index[column])
    summed = [i for i in item.indices if i not in row_column]
    if len(summed) != 1 or sizes.shapes[item.target.tensor] != shape or min(*shape, sizes.index[summed[0]]) < LARGE:
        return None
    k = summed[0]
    sides = {}
    for factor in over:
        assert isinstance(factor, ir.Access)
        names = [ir.bare(e) for e in factor.indices]
        if names in ([row, k], [k, row]):
            sides["left"] = (factor.tensor, names[0] == k)
        elif names in ([k, column], [column, k]):
            sides["right"] = (factor.tensor, names[0] == column)
    if len(sides) != 2:
        return None
    return MatrixProduct(item.target.tensor, *sides["left"], *sides["right"], 1 if item.operator == "+=" else -1)
