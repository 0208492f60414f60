"""One statement on the grid of its indices: an array with one axis for each index.

A mask says at which points an expression is evaluated at all, so that a guard or a branch not taken does no harm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import Array, Mask
from ..errors import BoundsError, DtypeError, LimitError
from ..language import ir
from ..language.build import asked_inside, conjuncts, is_integer
from ..language.formula import OPERATIONS, of_arrays
from ..language.functions import INDEX_FUNCTIONS
from ..language.render import access as show_access
from ..language.render import expression as show
from ..language.render import statement as show_statement
from ..language.types import identity, number, promote
from ..language.word import WORD, combined
from .random import RANDOM
from .state import State, Tensor

GRID_POINTS = 2**27


UFUNC = {"+=": np.add, "-=": np.subtract, "*=": np.multiply, "max=": np.maximum, "min=": np.minimum}


class Grid:
    """One statement at given values of its block indices."""

    def __init__(self, interpreter: State, statement: ir.Statement, fixed: dict[str, int]) -> None:
        self.interpreter = interpreter
        self.sizes = interpreter.sizes
        self.types = interpreter.types
        self.statement = statement
        self.names = [name for name in statement.indices if name not in fixed]
        self.fixed = fixed
        self.shape = tuple(self.sizes.index[name] for name in self.names)
        if math.prod(self.shape) > GRID_POINTS:
            raise LimitError(
                f"`{show_statement(statement)}` has {math.prod(self.shape):,} points; the reference "
                f"interpreter holds at most {GRID_POINTS:,} at once",
                statement.span,
                "run it on smaller arrays",
            )

    # -- writing

    def execute(self) -> None:
        value, places, mask = self.points()
        self.write(value, places, mask)

    def points(self) -> tuple[Array, list[Array], Mask]:
        """What the statement says of each point: its value, its place in the target, and whether it takes part."""
        mask = self.guard_mask()
        value = self.evaluate(self.statement.value, mask)
        places = self.places(self.statement.target, mask)
        return np.broadcast_to(value, self.shape), places, np.broadcast_to(mask, self.shape)

    def write(self, value: Array, places: list[Array], mask: Mask) -> None:
        statement = self.statement
        target = self.interpreter.target(statement.target.tensor)
        if statement.operator in ("argmax=", "argmin="):
            self.argument(target, value, places, mask)
        elif statement.operator == "=":
            at = self.flat(statement.target, places)[mask]
            self.check_written_once(target, at)
            target.array.reshape(-1)[at] = value[mask]
        else:
            self.accumulate(target, value.astype(target.array.dtype), places, mask)

    def flat(self, access: ir.Access, places: list[Array]) -> Array:
        """The position of each point's element in the flattened tensor."""
        position: Array = np.zeros(self.shape, np.int64)
        for place, extent in zip(places, self.sizes.shapes[access.tensor], strict=True):
            position = position * extent + place
        return position

    def check_written_once(self, target: Tensor, at: Array) -> None:
        """`=` writes each element once: within the statement, and over the steps of a block."""
        statement, name = self.statement, self.statement.target.tensor
        elements, counts = np.unique(at, return_counts=True)
        if (counts > 1).any():
            double = ",".join(str(int(d)) for d in np.unravel_index(elements[counts > 1][0], target.array.shape))
            raise BoundsError(
                f"`=` writes {name}[{double}] more than once",
                statement.span,
                "write `+=` for a sum, or a target that differs at every point",
            )
        if name in self.interpreter.written:
            written = self.interpreter.written[name].reshape(-1)
            if written[at].any():
                raise BoundsError(
                    f"`=` writes elements of {name} that were written before",
                    statement.span,
                    "write `+=` for a sum, or keep the targets apart with guards",
                )
            if self.interpreter.read_early[name].reshape(-1)[at].any():
                raise BoundsError(
                    f"a step reads an element of {name} that a later step writes",
                    statement.span,
                    f"read what earlier steps wrote, such as {name}[t-1], or run the block `down`",
                )
            written[at] = True

    def accumulate(self, target: Tensor, value: Array, places: list[Array], mask: Mask) -> None:
        statement = self.statement
        ufunc = UFUNC[statement.operator]
        bare = [ir.bare(e) for e in statement.target.indices]
        wide = np.dtype(np.float64) if value.dtype == np.float32 else value.dtype  # whatever the order of the terms
        if all(name in self.names for name in bare) and len(set(bare)) == len(bare):
            # reduce the grid over the indices that are not in the target, then order the rest as the target has them
            value = np.where(mask, value, value.dtype.type(identity(statement.operator, value.dtype)))
            reduced = tuple(k for k, name in enumerate(self.names) if name not in bare)
            if any(self.shape[k] == 0 for k in reduced):
                return  # no candidates: the identity stays
            kept = [name for name in self.names if name in bare]
            joined = np.add if statement.operator == "-=" else ufunc
            summed = joined.reduce(value, axis=reduced, dtype=wide) if reduced else value
            summed = np.transpose(summed, [kept.index(str(name)) for name in bare])
            at = tuple(slice(0, self.sizes.index[str(name)]) for name in bare)
            part = target.array[at or ...]
            inside = tuple(slice(0, extent) for extent in target.array.shape)  # no point beyond takes part
            part[...] = ufunc(part, summed[inside or ...])
        else:
            whole = target.array.reshape(-1).astype(wide)
            ufunc.at(whole, self.flat(statement.target, places)[mask], value[mask])
            target.array.reshape(-1)[:] = whole

    def argument(self, target: Tensor, value: Array, places: list[Array], mask: Mask) -> None:
        """argmax= and argmin=: the first position of the best value; a NaN is better than any number."""
        statement = self.statement
        at = self.flat(statement.target, places)[mask]
        candidates = value[mask]
        if candidates.dtype == np.bool_:
            candidates = candidates.astype(np.int64)
        largest = statement.operator == "argmax="
        better, best_of = (np.greater, np.maximum) if largest else (np.less, np.minimum)
        position: Array = np.zeros(self.shape, np.int64)
        for name in ir.candidates(statement):
            position = position * self.sizes.index[name] + self.index(name)
        where = (position + self.interpreter.offsets[id(statement)])[mask]
        if target.best is None:
            worst = identity("max=" if largest else "min=", candidates.dtype)
            target.best = np.full(target.array.size, worst, candidates.dtype)
        best = target.best.astype(np.result_type(target.best, candidates))
        held = target.array.reshape(-1)
        best_of.at(best, at, candidates)
        improved = better(best, target.best) | (np.isnan(best) & ~np.isnan(target.best))
        none = np.iinfo(np.int64).max
        first = np.where(improved | (held < 0), none, held)
        wins = (candidates == best[at]) | (np.isnan(candidates) & np.isnan(best[at]))
        np.minimum.at(first, at[wins], where[wins])
        held[:] = np.where(first == none, held, first)
        target.best = best

    # -- masks

    def guard_mask(self) -> Mask:
        """The points that take part: `inside` first, so that the rest of the guard is evaluated in bounds."""
        mask = np.ones((1,) * len(self.shape), bool)
        atoms = conjuncts(self.statement.guard)
        if any(isinstance(atom, ir.Inside) for atom in atoms):
            mask = mask & self.inside_statement(mask)
        for atom in atoms:
            if not isinstance(atom, ir.Inside):
                mask = mask & self.truth(atom, mask)
        return mask

    def truth(self, node: ir.Expr, mask: Mask) -> Mask:
        return self.evaluate(node, mask).astype(bool)

    def inside_statement(self, mask: Mask) -> Mask:
        for node in asked_inside(self.statement):
            mask = mask & self.inside(node, mask)
        return mask

    def inside(self, node: ir.Expr, mask: Mask) -> Mask:
        """Where every access that evaluating `node` needs is in bounds."""
        if isinstance(node, ir.Access):
            for place in node.indices:
                mask = mask & self.inside(place, mask)
            for place, extent in zip(node.indices, self.sizes.shapes[node.tensor], strict=True):
                value = self.integer(place, mask)
                mask = mask & (value >= 0) & (value < extent)
        elif isinstance(node, ir.Conditional):
            mask = mask & self.inside(node.condition, mask)
            holds = self.truth(node.condition, mask)
            then, otherwise = self.inside(node.then, mask & holds), self.inside(node.otherwise, mask & ~holds)
            mask = (then & holds) | (otherwise & ~holds)
        elif isinstance(node, ir.Logic):
            mask = mask & self.inside(node.left, mask)
            holds = self.truth(node.left, mask)
            needed = holds if node.operator == "and" else ~holds
            mask = (mask & ~needed) | self.inside(node.right, mask & needed)
        else:
            for part in ir.children(node):
                mask = mask & self.inside(part, mask)
        return mask

    # -- whole numbers

    def index(self, name: str) -> Array:
        """The values of an index, along its own axis of the grid."""
        if name in self.fixed:
            return np.full((1,) * len(self.shape), self.fixed[name], np.int64)
        axis = self.names.index(name)
        shape = tuple(self.shape[axis] if k == axis else 1 for k in range(len(self.shape)))
        return np.arange(self.shape[axis], dtype=np.int64).reshape(shape)

    def constant(self, value: float) -> Array:
        return np.full((1,) * len(self.shape), value, np.int64 if isinstance(value, int) else np.float64)

    def integer(self, node: ir.Expr, mask: Mask) -> Array:
        """An index expression, whatever the types of the arrays in it: in Python's own integers, which never wrap
        around, if a part of it needs more than 64 bits."""
        fits = self.reach(node, mask) is not None
        return self.whole(node, mask, np.dtype(np.int64 if fits else object))

    def reach(self, node: ir.Expr, mask: Mask) -> tuple[int, int] | None:
        """Numbers between which an index expression lies; None if it, or a part of it, may need more than 64 bits."""
        low: int
        high: int
        match node:
            case ir.Number() | ir.Static() | ir.Size() | ir.AxisSize():
                low = high = self.sizes.value(node)
            case ir.Index(name=name):
                low, high = (self.fixed[name],) * 2 if name in self.fixed else (0, self.sizes.index[name])
            case ir.Unary() | ir.Binary() | ir.Call():
                parts = [self.reach(part, mask) for part in ir.children(node)]
                known = [part for part in parts if part is not None]
                if len(known) < len(parts):
                    return None
                low, high = combined(node, known)
            case _:
                value = self.evaluate(node, mask)
                low, high = (int(value.min()), int(value.max())) if value.size and value.dtype.kind in "iu" else (0, 0)
        return (low, high) if low >= -WORD and high <= WORD else None

    def whole(self, node: ir.Expr, mask: Mask, dtype: np.dtype[Any]) -> Array:
        match node:
            case ir.Number() | ir.Static() | ir.Size() | ir.AxisSize():
                return np.full((1,) * len(self.shape), self.sizes.value(node), dtype)
            case ir.Unary(operator="-", operand=operand):
                return np.asarray(-self.whole(operand, mask, dtype))
            case ir.Binary(operator=operator, left=left, right=right):
                divisor = self.whole(right, mask, dtype)
                self.check_divisor(node, divisor, mask)
                if operator in ("//", "%"):
                    divisor = np.where(divisor == 0, 1, divisor)  # at points that are not evaluated
                return np.asarray(OPERATIONS[operator](self.whole(left, mask, dtype), divisor))
            case ir.Call(function=function, arguments=arguments) if function in INDEX_FUNCTIONS:
                return np.asarray(of_arrays(function)(*(self.whole(a, mask, dtype) for a in arguments)))
        value = self.evaluate(node, mask)
        if value.dtype.kind not in "iu":
            raise DtypeError(
                f"an index must be an integer, not {value.dtype}",
                node.span,
                "an index is an integer: pass an integer array, or compute one with // or argmax=",
            )
        return value.astype(dtype)

    def check_divisor(self, node: ir.Binary, divisor: Array, mask: Mask) -> None:
        if node.operator not in ("//", "%") or divisor.dtype.kind not in "iuO":
            return
        if np.broadcast_to(mask & (divisor == 0), self.shape).any():  # a grid without points divides nothing
            raise BoundsError(f"`{show(node)}` divides by zero", node.span, "keep zero out with a guard")

    def places(self, access: ir.Access, mask: Mask) -> list[Array]:
        """The position on each axis, to be broadcast to the grid; out of bounds is an error where the mask holds."""
        places = []
        for axis, (node, extent) in enumerate(zip(access.indices, self.sizes.shapes[access.tensor], strict=True)):
            if isinstance(node, ir.Index) and node.name not in self.fixed and self.sizes.index[node.name] <= extent:
                places.append(self.index(node.name))  # all of its range is in bounds
                continue
            everywhere = np.broadcast_to(mask, self.shape)
            place = np.broadcast_to(self.integer(node, mask), self.shape)
            bad = everywhere & ((place < 0) | (place >= extent))
            if bad.any():
                raise self.out_of_bounds(access, axis, place, bad)
            places.append(np.where(everywhere, place, 0).astype(np.int64))
        return places

    def out_of_bounds(self, access: ir.Access, axis: int, place: Array, bad: Mask) -> BoundsError:
        point = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
        values = {**self.fixed, **dict(zip(self.names, point, strict=True))}
        at = ", ".join(f"{name}={values[name]}" for name in ir.ordered_indices(access) if name in values)
        extent = self.sizes.shapes[access.tensor][axis]
        return BoundsError(
            f"{show_access(access)}{' at ' + at if at else ''} asks for position {int(place[point])} of axis {axis}, "
            f"which has size {extent}",
            access.span,
            self.way_inside(access, axis, int(place[point]) >= extent),
        )

    def way_inside(self, access: ir.Access, axis: int, beyond: bool) -> str:
        """What would keep an access in bounds. An index by itself elsewhere claims all of the axis."""
        others = [a for a in self.statement.reads if a.tensor == access.tensor]
        alone = {ir.bare(other.indices[axis]): other for other in others}
        declared = {declaration.subject for declaration in self.interpreter.loops.sizes}
        for index in ir.ordered_indices(access.indices[axis]) if beyond else ():
            if index in alone and ir.Size(index) not in declared:
                where = show_access(alone[index])
                return f"write `{index}+0` for {index} in {where}: then it runs only as far as all reads are in bounds"
        return "keep to the points in bounds with `if inside`, or declare a smaller size for the index"

    # -- values

    def read(self, access: ir.Access, mask: Mask) -> Array:
        interpreter, name = self.interpreter, access.tensor
        places = self.places(access, mask)
        if name in interpreter.written:
            at = self.flat(access, places)[np.broadcast_to(mask, self.shape)]
            early = at[~interpreter.written[name].reshape(-1)[at]]
            interpreter.read_early[name].reshape(-1)[early] = True
        array = interpreter.target(name).array
        if array.size == 0:  # only where the mask holds nowhere
            return np.zeros((1,) * len(self.shape), array.dtype)
        return array[tuple(places)] if places else array.reshape((1,) * len(self.shape))

    def evaluate(self, node: ir.Expr, mask: Mask) -> Array:
        """The values of an expression, in its own type."""
        match node:
            case ir.Number(value=value):
                return self.constant(value)
            case ir.Index(name=name):
                return self.index(name)
            case ir.Static() | ir.Size() | ir.AxisSize():
                return self.constant(self.sizes.value(node))
            case ir.Access():
                return self.read(node, mask)
            case ir.Inside():
                return self.inside_statement(mask)
            case ir.Unary(operator="not", operand=operand):
                return ~self.truth(operand, mask)
            case ir.Logic(operator=operator, left=left, right=right):
                first = self.truth(left, mask)
                second = self.truth(right, mask & (first if operator == "and" else ~first))
                return first & second if operator == "and" else first | second
            case ir.Compare(operator=operator, left=left, right=right) if is_integer(left) and is_integer(right):
                return np.asarray(OPERATIONS[operator](self.integer(left, mask), self.integer(right, mask)))
            case ir.Compare(operator=operator, left=left, right=right):
                dtype = promote(number(self.types.of(left)), number(self.types.of(right))).dtype
                a, b = self.evaluate(left, mask).astype(dtype), self.evaluate(right, mask).astype(dtype)
                return np.asarray(OPERATIONS[operator](a, b))
            case ir.Call(function=function, arguments=arguments) if function in RANDOM:
                return RANDOM[function]([self.whole(a, mask, np.dtype(np.int64)) for a in arguments])
        dtype = self.types.of(node).dtype
        match node:
            case ir.Unary(operand=operand):
                return np.asarray(-self.evaluate(operand, mask).astype(dtype))
            case ir.Binary(operator=operator, left=left, right=right):
                divisor = self.evaluate(right, mask).astype(dtype)
                self.check_divisor(node, divisor, mask)
                return np.asarray(OPERATIONS[operator](self.evaluate(left, mask).astype(dtype), divisor))
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                holds = self.truth(condition, mask)
                a, b = self.evaluate(then, mask & holds), self.evaluate(otherwise, mask & ~holds)
                return np.where(holds, a.astype(dtype), b.astype(dtype))
            case ir.Call(function=function, arguments=arguments):
                return np.asarray(of_arrays(function)(*(self.evaluate(a, mask).astype(dtype) for a in arguments)))
        raise AssertionError(f"no value for {type(node).__name__}")
