"""The reference interpreter: IR and arrays -> arrays, statement by statement, in plain numpy. Slow and obviously right.

A statement is evaluated on the grid of its indices: an array with one axis for each index. A mask says at which
points an expression is evaluated at all, so that a guard or a branch not taken does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BoundsError, DtypeError, LimitError
from ..language import ir
from ..language.affine import is_constant
from ..language.bounds import unproven
from ..language.build import conjuncts
from ..language.render import access as show_access
from ..language.render import expression as show
from ..language.render import statement as show_statement
from ..language.sizes import Sizes
from .functions import FUNCTIONS, RANDOM
from .values import OPERATIONS, Value, as_number, binary, call, compare, extreme, promote, wide_type, widen

GRID_POINTS = 2**27
HUGE = 2**40  # no axis is so long, and index arithmetic beyond it might wrap around

Array = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass
class Tensor:
    array: Array
    weak: bool = False
    best: Array | None = None  # for argmax= and argmin=: the value that stands at the position held
    candidates: int = 0  # for argmax= and argmin=: how many positions earlier statements have used


def run(loops: ir.Loops, arrays: Mapping[str, Tensor], sizes: Sizes, default: np.dtype[Any]) -> dict[str, Array]:
    """The outputs of a program whose calls are inlined, whose batch indices are expanded and whose sizes agree."""
    with np.errstate(all="ignore"):
        interpreter = Interpreter(loops, dict(arrays), sizes)
        interpreter.run(loops.body, {})
    return {name: interpreter.result(name, default) for name in loops.outputs}


class Interpreter:
    def __init__(self, loops: ir.Loops, tensors: dict[str, Tensor], sizes: Sizes) -> None:
        self.loops = loops
        self.sizes = sizes
        self.tensors = tensors
        for name in loops.updated:  # the caller's arrays never change
            self.tensors[name] = replace(tensors[name], array=tensors[name].array.copy())
        self.offsets = argument_offsets(loops, sizes)
        self.written: dict[str, Mask] = {}
        self.read_early: dict[str, Mask] = {}
        assigned = [(s.target.tensor, around) for s, around in loops.located if s.operator == "="]
        several = {name for name, around in assigned if around or [n for n, _ in assigned].count(name) > 1}
        for name in several - loops.updated:
            self.written[name] = np.zeros(sizes.shapes[name], bool)
            self.read_early[name] = np.zeros(sizes.shapes[name], bool)

    def run(self, body: tuple[ir.Item, ...], fixed: dict[str, int]) -> None:
        for item in body:
            if isinstance(item, ir.Block):
                steps = range(self.sizes.index[item.index])
                for step in reversed(steps) if item.down else steps:
                    self.run(item.body, {**fixed, item.index: step})
            else:
                assert isinstance(item, ir.Statement), "calls are inlined before a program runs"
                Grid(self, item, fixed).execute()

    def result(self, name: str, default: np.dtype[Any]) -> Array:
        tensor = self.tensors.get(name)
        if tensor is None:  # it is written in a block without steps
            operator = next(s.operator for s in self.loops.statements if s.target.tensor == name)
            dtype = np.dtype(np.int64) if operator.startswith("arg") else default
            return np.full(self.sizes.shapes[name], IDENTITY[operator], dtype)
        floating = np.issubdtype(tensor.array.dtype, np.floating)
        return tensor.array.astype(default) if tensor.weak and floating else tensor.array


def argument_offsets(loops: ir.Loops, sizes: Sizes) -> dict[int, int]:
    """Where the positions of each argmax= statement start: behind those of the statements before it."""
    used: dict[str, int] = {}
    offsets = {}
    for statement in loops.statements:
        if statement.operator in ("argmax=", "argmin="):
            name = statement.target.tensor
            offsets[id(statement)] = used.get(name, 0)
            count = math.prod(sizes.index[i] for i in ir.candidates(statement))
            used[name] = used.get(name, 0) + count
    return offsets


IDENTITY = {"=": 0, "+=": 0, "-=": 0, "*=": 1, "max=": -math.inf, "min=": math.inf, "argmax=": -1, "argmin=": -1}
UFUNC = {"+=": np.add, "-=": np.subtract, "*=": np.multiply, "max=": np.maximum, "min=": np.minimum}


class Grid:
    """One statement at given values of its block indices."""

    def __init__(self, interpreter: Interpreter, statement: ir.Statement, fixed: dict[str, int]) -> None:
        self.interpreter = interpreter
        self.sizes = interpreter.sizes
        self.statement = statement
        self.names = [name for name in statement.indices if name not in fixed]
        self.fixed = fixed
        self.shape = tuple(self.sizes.index[name] for name in self.names)
        if math.prod(self.shape) > GRID_POINTS:
            raise LimitError(
                f"`{show_statement(statement)}` has {math.prod(self.shape):,} points; the reference "
                f"interpreter holds at most {GRID_POINTS:,} at once",
                statement.span,
            )

    # -- writing

    def execute(self) -> None:
        statement = self.statement
        mask = self.guard_mask()
        value = self.evaluate(statement.value, mask)
        places = self.places(statement.target, mask)
        mask = np.broadcast_to(mask, self.shape)
        value = Value(np.broadcast_to(value.array, self.shape), value.weak)
        target = self.prepare(value)
        if statement.operator in ("argmax=", "argmin="):
            self.argument(target, value.array, places, mask)
        elif statement.operator == "=":
            at = self.flat(statement.target, places)[mask]
            self.check_written_once(target, at)
            target.array.reshape(-1)[at] = value.array[mask]
        else:
            self.accumulate(target, value.array, places, mask)

    def flat(self, access: ir.Access, places: list[Array]) -> Array:
        """The position of each point's element in the flattened tensor."""
        position: Array = np.zeros(self.shape, np.int64)
        for place, extent in zip(places, self.sizes.shapes[access.tensor], strict=True):
            position = position * extent + place
        return position

    def prepare(self, value: Value) -> Tensor:
        """The target, made at its first write, of a type that holds the value."""
        name, operator = self.statement.target.tensor, self.statement.operator
        tensors = self.interpreter.tensors
        dtype: np.dtype[Any] = value.array.dtype
        small = operator in ("+=", "-=", "*=") and dtype.kind in "bi"  # would overflow: numpy's sum widens it too
        if small or operator.startswith("arg") or (dtype == np.bool_ and operator != "="):
            dtype = np.dtype(np.int64)
        old = tensors.get(name)
        if old is None:
            identity: float | int = IDENTITY[operator]
            if operator in ("max=", "min=") and np.issubdtype(dtype, np.integer):
                identity = np.iinfo(dtype).min if operator == "max=" else np.iinfo(dtype).max
            array = np.full(self.sizes.shapes[name], identity, dtype)
            tensors[name] = Tensor(array, value.weak)
        elif not operator.startswith("arg"):
            joined = promote(Value(old.array, old.weak), value)
            if joined.dtype != old.array.dtype:
                tensors[name] = Tensor(widen(old.array, joined.dtype), joined.weak)
            elif old.weak and not value.weak:
                tensors[name].weak = False
        return tensors[name]

    def check_written_once(self, target: Tensor, at: Array) -> None:
        """`=` writes each element once: within the statement, and over the steps of a block."""
        statement, name = self.statement, self.statement.target.tensor
        elements, counts = np.unique(at, return_counts=True)
        if (counts > 1).any():
            double = np.unravel_index(elements[counts > 1][0], target.array.shape)
            raise BoundsError(
                f"`=` writes {name}[{','.join(str(int(d)) for d in double)}] more than once",
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
        value = value.astype(target.array.dtype)
        if all(name in self.names for name in bare) and len(set(bare)) == len(bare):
            # reduce the grid over the indices that are not in the target, then order the rest as the target has them
            start = IDENTITY[statement.operator]
            if not mask.all():
                identity = target.array.dtype.type(start) if math.isfinite(start) else extreme(target.array, start)
                value = np.where(mask, value, identity)
            reduced = tuple(k for k, name in enumerate(self.names) if name not in bare)
            kept = [name for name in self.names if name in bare]
            joined = np.add if statement.operator == "-=" else ufunc
            if any(self.shape[k] == 0 for k in reduced):
                return  # no candidates: the identity stays
            summed = joined.reduce(value, axis=reduced, dtype=wide_type(value)) if reduced else value
            summed = np.transpose(summed, [kept.index(str(name)) for name in bare])
            target.array[...] = ufunc(target.array, summed)
        else:
            wide = target.array.reshape(-1).astype(wide_type(value))
            ufunc.at(wide, self.flat(statement.target, places)[mask], value[mask])
            target.array.reshape(-1)[:] = wide

    def argument(self, target: Tensor, value: Array, places: list[Array], mask: Mask) -> None:
        """argmax= and argmin=: the first position of the best value; a NaN is better than any number."""
        statement = self.statement
        interpreter = self.interpreter
        at = self.flat(statement.target, places)[mask]
        candidates = value[mask]
        if candidates.dtype.kind in "bu":
            candidates = candidates.astype(np.int64)
        better = np.greater if statement.operator == "argmax=" else np.less
        worst = extreme(candidates, -math.inf if better is np.greater else math.inf)
        position: Array = np.zeros(self.shape, np.int64)
        for name in ir.candidates(statement):
            position = position * self.sizes.index[name] + self.index(name)
        where = (position + interpreter.offsets[id(statement)])[mask]
        if target.best is None:
            target.best = np.full(target.array.size, worst, candidates.dtype)
        best, held = target.best.astype(np.result_type(target.best, candidates)), target.array.reshape(-1)
        (np.maximum if better is np.greater else np.minimum).at(best, at, candidates)
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
        return self.evaluate(node, mask).array.astype(bool)

    def inside_statement(self, mask: Mask) -> Mask:
        statement = self.statement
        for node in (statement.target, *conjuncts(statement.guard), statement.value):
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

    # -- values

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
        """An index expression, in 64-bit integers."""
        if is_constant(node):
            return self.constant(self.sizes.value(node))
        array = self.evaluate(node, mask).array
        if not np.issubdtype(array.dtype, np.integer):
            raise DtypeError(
                f"an index must be an integer, not {array.dtype}",
                node.span,
                "an index is an integer: pass an integer array, or compute one with // or argmax=",
            )
        if self.is_huge(node, mask):
            exact = self.exact(node, mask)
            limits = np.iinfo(np.int64)
            return np.clip(exact, limits.min, limits.max).astype(np.int64)
        return array.astype(np.int64)

    def is_huge(self, node: ir.Expr, mask: Mask) -> bool:
        """Whether an index expression holds numbers so large that arithmetic with them might wrap around."""
        for part in ir.walk(node):
            if isinstance(part, ir.Access):
                value = self.read(part, mask).array
                if ((value > HUGE) | (value < -HUGE)).any():
                    return True
            elif is_constant(part) and abs(self.sizes.value(part)) > HUGE:
                return True
        return False

    def exact(self, node: ir.Expr, mask: Mask) -> Array:
        """An index expression in Python's own integers, which never wrap around."""
        if is_constant(node):
            return np.full((1,) * len(self.shape), self.sizes.value(node), object)
        match node:
            case ir.Unary(operand=operand):
                return -self.exact(operand, mask)
            case ir.Binary(operator=operator, left=left, right=right):
                return np.asarray(OPERATIONS[operator](self.exact(left, mask), self.exact(right, mask)))
            case ir.Call(function=function, arguments=arguments):
                return FUNCTIONS[function](*(self.exact(a, mask) for a in arguments))
        return self.evaluate(node, mask).array.astype(object)

    def places(self, access: ir.Access, mask: Mask) -> list[Array]:
        """The position on each axis, broadcast to the grid; out of bounds is an error where the mask holds."""
        places = []
        for axis, (node, extent) in enumerate(zip(access.indices, self.sizes.shapes[access.tensor], strict=True)):
            place = np.broadcast_to(self.integer(node, mask), self.shape)
            bad = np.broadcast_to(mask, self.shape) & ((place < 0) | (place >= extent))
            if bad.any():
                raise self.out_of_bounds(access, axis, place, bad)
            places.append(np.where(bad | ~np.broadcast_to(mask, self.shape), 0, place))
        return places

    def out_of_bounds(self, access: ir.Access, axis: int, place: Array, bad: Mask) -> BoundsError:
        point = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
        values = {**self.fixed, **dict(zip(self.names, point, strict=True))}
        used = list(dict.fromkeys(n.name for e in access.indices for n in ir.walk(e) if isinstance(n, ir.Index)))
        at = ", ".join(f"{name}={values[name]}" for name in used if name in values)
        extent = self.sizes.shapes[access.tensor][axis]
        return BoundsError(
            f"{show_access(access)}{' at ' + at if at else ''} asks for position {int(place[point])} of axis {axis}, "
            f"which has size {extent}",
            access.span,
            "keep to the points in bounds with `if inside`, or declare a smaller size for the index",
        )

    def read(self, access: ir.Access, mask: Mask) -> Value:
        interpreter = self.interpreter
        places = self.places(access, mask)
        tensor = interpreter.tensors.get(access.tensor)
        if access.tensor in interpreter.written:
            at = self.flat(access, places)[np.broadcast_to(mask, self.shape)]
            early = at[~interpreter.written[access.tensor].reshape(-1)[at]]
            interpreter.read_early[access.tensor].reshape(-1)[early] = True
        if tensor is None:  # nothing was written yet
            operator = next(s.operator for s in interpreter.loops.statements if s.target.tensor == access.tensor)
            value = IDENTITY[operator]
            return Value(self.constant(value if math.isfinite(value) else float(value)), weak=True)
        if tensor.array.size == 0:
            return Value(np.zeros((1,) * len(self.shape), tensor.array.dtype), tensor.weak)
        array = tensor.array[tuple(places)] if places else tensor.array.reshape((1,) * len(self.shape))
        return Value(array, tensor.weak)

    def evaluate(self, node: ir.Expr, mask: Mask) -> Value:
        match node:
            case ir.Number(value=value):
                return Value(self.constant(value), weak=True)
            case ir.Index(name=name):
                return Value(self.index(name), weak=True)
            case ir.Static() | ir.Size() | ir.AxisSize():
                return Value(self.constant(self.sizes.value(node)), weak=True)
            case ir.Access():
                return self.read(node, mask)
            case ir.Inside():
                return Value(self.inside_statement(mask))
            case ir.Unary(operator="not", operand=operand):
                return Value(~self.truth(operand, mask))
            case ir.Unary(operand=operand):
                number = as_number(self.evaluate(operand, mask))
                return Value(-number.array, number.weak)
            case ir.Binary(operator=operator, left=left, right=right):
                divisor = self.evaluate(right, mask)
                if operator in ("//", "%") and divisor.array.dtype.kind in "iu" and (mask & (divisor.array == 0)).any():
                    raise BoundsError(f"`{show(node)}` divides by zero", node.span, "keep zero out with a guard")
                return binary(operator, self.evaluate(left, mask), divisor)
            case ir.Compare(operator=operator, left=left, right=right):
                return compare(operator, self.evaluate(left, mask), self.evaluate(right, mask))
            case ir.Logic(operator=operator, left=left, right=right):
                first = self.truth(left, mask)
                second = self.truth(right, mask & (first if operator == "and" else ~first))
                return Value(first & second if operator == "and" else first | second)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                holds = self.truth(condition, mask)
                a, b = self.evaluate(then, mask & holds), self.evaluate(otherwise, mask & ~holds)
                kind = promote(a, b)
                return Value(np.where(holds, a.array.astype(kind.dtype), b.array.astype(kind.dtype)), kind.weak)
            case ir.Call(function=function, arguments=arguments) if function in RANDOM:
                numbers = [self.integer(a, mask) for a in arguments]
                return Value(RANDOM[function](numbers), weak=True)
            case ir.Call(function=function, arguments=arguments):
                return call(function, [as_number(self.evaluate(a, mask)) for a in arguments])
        raise AssertionError(f"no value for {type(node).__name__}")


def check_accesses(loops: ir.Loops, arrays: Mapping[str, Tensor], sizes: Sizes) -> None:
    """Checks every access before anything runs: by intervals where they suffice, point by point where they do not.

    An access whose condition depends on a computed value can only be checked when that value is there: at its read.
    """
    gathered = {}
    for name, tensor in arrays.items():
        if np.issubdtype(tensor.array.dtype, np.integer) and tensor.array.size and name not in loops.updated:
            gathered[name] = (ir.Number(int(tensor.array.min())), ir.Number(int(tensor.array.max())))
    interpreter = Interpreter(loops, dict(arrays), sizes)
    computed = set(loops.written)
    with np.errstate(all="ignore"):
        for use in unproven(loops, sizes, gathered):
            parts = [*use.access.indices, *use.conditions]
            if any(isinstance(n, ir.Access) and n.tensor in computed for part in parts for n in ir.walk(part)):
                continue
            grid = Grid(interpreter, use.statement, {})
            mask = np.ones((1,) * len(grid.shape), bool)
            for condition in use.conditions:
                mask = mask & grid.truth(condition, mask)
            grid.places(use.access, mask)
