"""Watch: the interpreter with an eye on every statement. The first number that is none, an access out of bounds, an
element written twice or read too early is an error in index terms.

A NaN is an error where it arises. An infinity is one if an operation on finite numbers made it and it is still there
in an output: on the way it may be right (`1 / (1 + exp(x))`), and so it may where it was given, or where a maximum has
no candidates.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, Mask
from ..errors import BoundsError, Fault, NumberError
from ..language import ir
from ..language.bound import Bound
from ..language.render import statement as show_statement
from .grid import GRID_POINTS, Grid
from .point import Point, number, reason
from .reference import Interpreter
from .state import Tensor

GIVEN, MADE = 1, 2  # where an infinity comes from


@dataclass(frozen=True)
class Event:
    """Points of one statement in one step, and the element of a tensor that each of them has to do with."""

    grid: Grid
    access: ir.Access
    elements: Array
    points: Array
    tensors: dict[str, Tensor]  # as the statement found them

    def indices_of(self, element: int) -> dict[str, int] | None:
        found = np.flatnonzero(self.elements == element)
        return indices_at(self.grid, int(self.points[found[0]])) if found.size else None


def indices_at(grid: Grid, point: int) -> dict[str, int]:
    """The value of each index at a point of a grid."""
    return {**grid.fixed, **{n: int(k) for n, k in zip(grid.names, np.unravel_index(point, grid.shape), strict=True)}}


def run(bound: Bound, nan: bool, bounds: bool, note: Callable[[int], str] = lambda _: "") -> dict[str, Array]:
    """As the interpreter's `run`. `note` tells of the statement of a number where it came from."""
    watcher = Watcher(bound, nan, bounds, note)
    with np.errstate(all="ignore"):
        if not bounds:  # else each access is checked at its read
            watcher.check_accesses(bound.unproven())
        watcher.run(bound.loops.body, {})
        if nan:
            watcher.check_outputs()
    return {name: watcher.result(name, bound.dtype) for name in bound.loops.outputs}


class Watcher(Interpreter):
    def __init__(self, bound: Bound, nan: bool, bounds: bool, note: Callable[[int], str]) -> None:
        super().__init__(bound.loops, bound.arrays, bound.sizes, bound.types)
        self.nan, self.bounds, self.note = nan, bounds, note
        self.numbers = {id(s): k for k, s in enumerate(self.loops.statements, 1)}
        self.infinite: dict[str, Array] = {}  # of tensors with infinities: where each of them comes from
        self.births: list[Event] = []  # of infinities
        self.early: dict[str, list[Event]] = {}  # reads of what nothing had written
        self.writes: dict[str, list[Event]] = {}
        for name, tensor in self.tensors.items():
            if tensor.array.dtype.kind == "f" and np.isinf(tensor.array).any():
                self.infinite[name] = np.where(np.isinf(tensor.array), GIVEN, 0).astype(np.int8).reshape(-1)

    def execute(self, statement: ir.Statement, fixed: dict[str, int]) -> None:
        free = [name for name in statement.indices if name not in fixed]
        if math.prod(self.sizes.index[name] for name in free) > GRID_POINTS:
            self.execute_in_parts(statement, fixed, free)
            return
        WatchedGrid(self, statement, fixed).execute()

    def execute_in_parts(self, statement: ir.Statement, fixed: dict[str, int], free: list[str]) -> None:
        """A statement with more points than one grid holds: for one value of an index after the other, best of one
        that is added up."""
        name = statement.target.tensor
        if statement.operator == "=" and name not in self.loops.updated and name not in self.written:
            self.written[name] = np.zeros(self.sizes.shapes[name], bool)
            self.read_early[name] = np.zeros(self.sizes.shapes[name], bool)
        kept = ir.bare_indices(statement.target)
        index = max(free, key=lambda i: (i not in kept, self.sizes.index[i]))
        for k in range(self.sizes.index[index]):
            self.execute(statement, {**fixed, index: k})

    def called(self, statement: ir.Statement) -> str:
        return f"statement {self.numbers[id(statement)]}"

    # -- numbers

    def check_outputs(self) -> None:
        """No infinity that an operation made has come to an output."""
        for name in self.loops.outputs:
            if name not in self.infinite:
                continue
            found = np.flatnonzero(self.infinite[name] == MADE)
            if found.size:
                born = self.birth(name, int(found[0]), len(self.births))
                assert born is not None, "what was made has a beginning"
                raise self.wrong(born[0], "infinite")

    def birth(self, name: str, element: int, last: int) -> tuple[Point, int] | None:
        """Where an element became infinite, with all tensors as they were, and how many births came before."""
        for place in reversed(range(last)):
            event = self.births[place]
            indices = event.indices_of(element) if event.access.tensor == name else None
            if indices is not None:
                then = copy.copy(self)
                then.tensors = dict(event.tensors)
                return Point(then, event.grid.statement, indices), place
        return None

    def wrong(self, point: Point, kind: str, how: str | None = None) -> NumberError:
        """The error of an element that became NaN or infinite. `how`: by adding up, not by the value of a point."""
        statement = point.statement
        chosen = "a candidate for " if statement.operator.startswith("arg") else ""
        head = f"{chosen}{point.element(statement.target)} is {kind}"
        node = point.innermost(statement.value)
        if how is None and isinstance(node, ir.Access) and not math.isfinite(point.value(node)):
            source = self.origin(point, node)
            if source is None:
                what = f"{self.called(statement)} reads {point.element(node)} = {number(point.value(node))}"
                return self.error(point, node, f"{head}: {what}, which the input {node.tensor} holds")
            point, node = source
        message = f"{head}, first made in {self.called(point.statement)}: {how or self.made(point, node)}"
        infinite = point.infinite_part(node) if how is None else node if math.isinf(point.value(node)) else None
        why = "" if infinite is None else self.infinity(point, infinite)
        return self.error(point, node, message + why, "" if infinite is not None else reason(node))

    def made(self, point: Point, node: ir.Expr) -> str:
        value = point.value(node)
        if not math.isfinite(value):
            return point.told(node)
        operator = point.statement.operator
        dtype = self.types.tensors[point.statement.target.tensor].dtype
        what = "the value" if operator == "=" else f"`{operator}` of finite numbers"
        return f"{what} is too large for {dtype}; one of them is {point.text(node)} = {number(value)}"

    def infinity(self, point: Point, part: ir.Expr) -> str:
        """Where an infinity that an operation took comes from."""
        node = point.innermost(part)
        if not isinstance(node, ir.Access):
            return "" if node is part else f"; {point.told(node)} is infinite"
        element = point.element(node)
        source = self.origin(point, node)
        if source is None:
            known = node.tensor in self.loops.inputs
            return f"; {element} is infinite in the input" if known else f"; {element} had no candidates"
        where, operation = source
        return f"; {element} is infinite, first made in {self.called(where.statement)}: {self.made(where, operation)}"

    def origin(self, point: Point, node: ir.Expr) -> tuple[Point, ir.Expr] | None:
        """The operation behind an infinity that an access read, statement by statement: None if it was given."""
        last = len(self.births)
        while isinstance(node, ir.Access) and not math.isfinite(point.value(node)):
            shape = self.sizes.shapes[node.tensor]
            element = int(np.ravel_multi_index(point.position(node), shape)) if shape else 0
            born = self.birth(node.tensor, element, last)
            if born is None:
                return None
            point, last = born
            node = point.innermost(point.statement.value)
        return point, node

    def error(self, point: Point, node: ir.Expr, message: str, why: str = "") -> NumberError:
        statement = point.statement
        span = node.span if statement.span is not None else None
        shown = f"{self.called(statement)}: {show_statement(statement)}" if span is None else ""
        hints = [shown, self.note(self.numbers[id(statement)]), why]
        return NumberError(message, span, "\n  ".join(hint for hint in hints if hint))


class WatchedGrid(Grid):
    """One statement in one step."""

    interpreter: Watcher

    def __init__(self, watcher: Watcher, statement: ir.Statement, fixed: dict[str, int]) -> None:
        super().__init__(watcher, statement, fixed)
        self.given: Mask = np.zeros((1,) * len(self.shape), bool)  # points that read an infinity that was given

    def execute(self) -> None:
        before = dict(self.interpreter.tensors)
        value, places, mask = self.points()
        if self.interpreter.nan and value.dtype.kind == "f":
            wrong = np.isnan(value) & mask
            if wrong.any():
                raise self.interpreter.wrong(self.point(int(np.argmax(wrong))), "NaN")
        self.write(value, places, mask)
        if self.interpreter.nan:
            self.look(value, places, mask, before)

    def points(self) -> tuple[Array, list[Array], Mask]:
        try:
            return super().points()
        except BoundsError as error:
            called = self.interpreter.called(self.statement)
            raise BoundsError([Fault(f"{called}: {f.message}", f.span, f.hint) for f in error.faults]) from None

    def point(self, number: int) -> Point:
        return Point(self.interpreter, self.statement, indices_at(self, number))

    # -- numbers

    def evaluate(self, node: ir.Expr, mask: Mask) -> Array:
        if isinstance(node, ir.Number) and not math.isfinite(node.value):
            self.given = self.given | mask
        return super().evaluate(node, mask)

    def read(self, access: ir.Access, mask: Mask) -> Array:
        watcher, name = self.interpreter, access.tensor
        value = super().read(access, mask)
        if name in watcher.infinite:
            state = watcher.infinite[name][self.flat(access, self.places(access, mask))]
            self.given = self.given | (mask & (state == GIVEN))
        if watcher.bounds and name in watcher.written:
            points = np.flatnonzero(np.broadcast_to(mask, self.shape))
            at = self.flat(access, self.places(access, mask)).reshape(-1)[points]
            early = ~watcher.written[name].reshape(-1)[at]
            if early.any():
                watcher.early.setdefault(name, []).append(Event(self, access, at[early], points[early], {}))
        return value

    def look(self, value: Array, places: list[Array], mask: Mask, before: dict[str, Tensor]) -> None:
        """What the statement made of its target."""
        watcher, name = self.interpreter, self.statement.target.tensor
        array = watcher.target(name).array
        if array.dtype.kind != "f" or (np.isfinite(array).all() and name not in watcher.infinite):
            return
        held = array.reshape(-1)
        points = np.flatnonzero(mask)
        at = self.flat(self.statement.target, places).reshape(-1)[points]
        terms = value.reshape(-1)[points].astype(array.dtype)
        if np.isnan(held[at]).any():
            element = at[np.argmax(np.isnan(held[at]))]
            raise self.added_up(points[at == element], terms[at == element])
        infinite, known = np.isinf(held), watcher.infinite.get(name, np.zeros(held.size, np.int8))
        touched = np.zeros(held.size, bool)
        touched[at] = True
        state = np.where(infinite, np.where(known > 0, known, np.where(touched, MADE, GIVEN)), 0).astype(np.int8)
        bad = np.isinf(terms)
        given = np.broadcast_to(self.given, self.shape).reshape(-1)[points]
        state[at[bad]] = MADE
        state[at[bad & given]] = GIVEN
        state[~infinite] = 0
        watcher.infinite[name] = state
        new = (state == MADE) & (known != MADE)
        if new.any():
            order = np.argsort(~bad, kind="stable")  # a point that is infinite itself says more than one that is not
            chosen = order[new[at[order]]]
            elements, first = np.unique(at[chosen], return_index=True)
            event = Event(self, self.statement.target, elements, points[chosen[first]], before)
            watcher.births.append(event)

    def added_up(self, points: Array, terms: Array) -> NumberError:
        """The error of a NaN that none of the terms is."""
        operator = self.statement.operator
        order = np.argsort(~np.isinf(terms), kind="stable")
        point = self.point(int(points[order[0]]))
        others = dict.fromkeys(number(float(t)) for t in terms[order])
        others |= {"what the element held": None}
        shown = ", ".join(list(others)[:4])
        return self.interpreter.wrong(point, "NaN", f"`{operator}` of {shown}")

    # -- writing once, reading what was written

    def check_written_once(self, target: Tensor, at: Array) -> None:
        watcher, name = self.interpreter, self.statement.target.tensor
        if not watcher.bounds:
            super().check_written_once(target, at)
            return
        points = np.flatnonzero(self.mask_of_write)
        _, first = np.unique(at, return_index=True)
        again = np.setdiff1d(np.arange(at.size), first)
        if again.size:
            element = int(at[again[0]])
            earlier = Event(self, self.statement.target, at[: again[0]], points[: again[0]], {})
            raise self.written_twice(earlier, element, int(points[again[0]]))
        met = [(event, self.written_twice) for event in watcher.writes.get(name, ())]
        met += [(event, self.read_too_early) for event in watcher.early.get(name, ())]
        for event, error in met:
            touched = np.isin(at, event.elements)
            if touched.any():
                k = int(np.argmax(touched))
                raise error(event, int(at[k]), int(points[k]))
        if name in watcher.written:
            watcher.written[name].reshape(-1)[at] = True
            watcher.writes.setdefault(name, []).append(Event(self, self.statement.target, at, points, {}))

    def write(self, value: Array, places: list[Array], mask: Mask) -> None:
        self.mask_of_write = mask
        name, tensors = self.statement.target.tensor, self.interpreter.tensors
        if name in self.interpreter.loops.updated:  # who looks back finds the tensor as it was
            tensors[name] = Tensor(tensors[name].array.copy())
        super().write(value, places, mask)

    def written_twice(self, event: Event, element: int, point: int) -> BoundsError:
        watcher, now = self.interpreter, self.point(point)
        then = event.indices_of(element)
        assert then is not None, "the element is one of the event's"
        return BoundsError(
            f"{watcher.called(self.statement)} writes {now.element(self.statement.target)}{at_indices(now.indices)}, "
            f"which {watcher.called(event.grid.statement)} has written{at_indices(then)}",
            self.statement.span,
            "`=` writes each element once: write `+=` for a sum, or keep the targets apart with guards",
        )

    def read_too_early(self, event: Event, element: int, point: int) -> BoundsError:
        watcher, now = self.interpreter, self.point(point)
        then = event.indices_of(element)
        assert then is not None, "the element is one of the event's"
        read = Point(watcher, event.grid.statement, then)
        return BoundsError(
            f"{watcher.called(event.grid.statement)} reads {read.element(event.access)}{at_indices(then)}, "
            f"which {watcher.called(self.statement)} writes later{at_indices(now.indices)}",
            event.access.span,
            "a step reads what earlier steps wrote; a block may also run `down`",
        )


def at_indices(indices: Mapping[str, int]) -> str:
    return f" at {', '.join(f'{name}={value}' for name, value in indices.items())}" if indices else ""
