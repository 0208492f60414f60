"""jacobian: a program -> the program of the derivatives of every element of one tensor by every element of another."""

from __future__ import annotations

from ...errors import ArgumentError, DerivativeError, ProgramError
from ...language import ir
from ...language.ir import Expr
from ...program import Program
from ...rules.activity import check_of, check_wrt, names_of
from ...rules.adjoint import derive
from ...rules.derived_names import next_suffix
from ...rules.shapes import Shapes
from ...rules.tangent import tangent
from .linear import Linear

MODES = ("tangent", "adjoint")


def jacobian(program: Program, of: str, wrt: str, mode: str | None = None) -> Program:
    """The Jacobian as a program: gives J[axes of `of`..., axes of `wrt`...].

    It is made of the tangent at every unit direction, or of the adjoint; without `mode`, of the adjoint where `of` has
    fewer axes than `wrt`.
    """
    checked(program.loops, of, wrt, mode)
    return program._derived(lambda loops: linear(loops, of, wrt, mode)[1])


def checked(loops: ir.Loops, of: str, wrt: str, mode: str | None) -> tuple[str, str]:
    """One name each, of a tensor that has a derivative."""
    for what, value in (("of", of), ("wrt", wrt)):
        if len(names_of(what, value)) != 1:
            raise ArgumentError(f"a Jacobian has one `{what}`", hint=f'write {what}="Y"; make a Jacobian for each')
    if mode is not None and mode not in MODES:
        raise ArgumentError(f"mode is {' or '.join(map(repr, MODES))}, not {mode!r}", hint="leave it out to choose")
    if ir.BATCH in loops.indices:
        raise ProgramError("a Jacobian has a fixed number of axes, `...` has none", hint="write the indices out")
    return check_of(loops, names_of("of", of))[0], check_wrt(loops, names_of("wrt", wrt))[0]


def linear(loops: ir.Loops, of: str, wrt: str, mode: str | None) -> tuple[Linear, ir.Loops]:
    """The linear program at every unit seed, and its loops."""
    of, wrt = checked(loops, of, wrt, mode)
    ranks = loops.ranks
    fewer = ranks.get(of, 0) < ranks.get(wrt, 0)
    if mode is not None:
        modes = [mode]
    else:
        modes = ["adjoint", "tangent"] if fewer else ["tangent", "adjoint"]
    refused: DerivativeError | None = None
    for chosen in modes:
        try:
            made = _along_seeds(loops, of, wrt, chosen)
            return made, made.loops()
        except DerivativeError as error:  # one of the two may be refused in a block where the other is not
            refused = refused or error
    assert refused is not None
    raise refused


def _along_seeds(loops: ir.Loops, of: str, wrt: str, mode: str) -> Linear:
    if mode == "tangent":
        seed = f"{wrt}.{next_suffix(loops, 'dot')}"
        return Linear(tangent(loops, [wrt], only=[of]), seed, _extents(loops, wrt), False, loops.names)
    seed = f"{of}.{next_suffix(loops, 'grad')}"
    return Linear(derive(loops, [wrt], [of])[0], seed, _extents(loops, of), True, loops.names)


def _extents(loops: ir.Loops, tensor: str) -> tuple[Expr, ...]:
    """The size of each axis, in terms of inputs: a derivative may no longer compute the tensor."""
    shapes = Shapes(loops)
    known = loops.known.get(tensor)
    rank = loops.ranks.get(tensor, len(known.indices) if known else 0)

    def close(node: Expr) -> Expr:
        if isinstance(node, ir.Size) and node.index in shapes.rules.index:
            return ir.transform(shapes.rules.index[node.index], close)
        if isinstance(node, ir.AxisSize) and (node.tensor, node.axis) in shapes.rules.axis:
            return ir.transform(shapes.rules.axis[node.tensor, node.axis], close)
        return node

    return tuple(ir.transform(shapes.extent(tensor, axis), close) for axis in range(rank))
