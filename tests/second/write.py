"""One integer -> a program in the language, its arrays, and the size of everything in it.

The writer keeps the size of every index and axis, so that what it writes is in bounds by construction and needs no
analysis. It aims at what planners and rules get wrong: products that several statements share, factors over summed,
free and no indices, guards of every make, blocks whose tensors read each other.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tests.second.arrays import Array, Axis, Leaf
from tests.second.blocks import along_rows, block, wide_steps
from tests.second.layouts import dressed
from tests.second.parse import Call, Node, Statement, nodes, parse, statements, walk

BORDERS = (7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129)
SMOOTH = ("tanh", "sin", "cos", "sigmoid", "atan", "gelu", "silu", "softplus", "erf")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")
TYPES = {"float64": ("float64",), "float32": ("float32",), "mixed": ("float64", "float32")}


@dataclass
class Sample:
    """A program and a call of it."""

    seed: int
    text: str
    arguments: dict[str, Any]
    keywords: dict[str, int]  # sizes of indices given at the call
    sizes: dict[str, int]
    shapes: dict[str, tuple[int, ...]]
    batch: tuple[int, ...] = ()
    wrt: tuple[str, ...] = ()
    axes: dict[str, tuple[Axis, ...]] = field(default_factory=dict)

    def call(self) -> dict[str, Any]:
        return {**self.arguments, **self.keywords}


def write(seed: int, points: int = 150, most: int = 6) -> Sample:
    """The program of this seed: at most so many points in a statement, at most so many groups of statements."""
    return Writer(random.Random(seed), points).program(seed, most)


class Writer:
    def __init__(self, random_: random.Random, points: int, prefix: str = "") -> None:
        self.random, self.points, self.prefix = random_, points, prefix
        self.sizes: dict[str, int] = {}
        self.arrays: list[Array] = []
        self.arguments: dict[str, Any] = {}
        self.lines: list[str] = []
        self.head: list[str] = []
        self.statics: dict[str, int] = {}
        self.scalars: list[str] = []
        self.updated: set[str] = set()
        self.batch: tuple[int, ...] | None = None
        self.counter = 0
        self.products: list[list[Leaf]] = []
        self.types = self.pick([TYPES["float64"], TYPES["float64"], TYPES["float32"], TYPES["mixed"]])
        self.smooth = self.chance(0.5)  # values without ties, for differences
        self.whole = self.chance(0.12)  # a program of integers
        self.choose_sizes()

    # Choices

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, of: Any) -> Any:
        return of[self.random.randrange(len(of))]

    def some(self, of: list[str], least: int = 0, most: int = 3) -> list[str]:
        count = min(len(of), self.random.randint(least, most))
        return self.random.sample(of, count)

    def fresh(self, letter: str) -> str:
        self.counter += 1
        return f"{letter}{self.prefix}{self.counter}"

    def choose_sizes(self) -> None:
        names = [*"ijklm"][: self.random.randint(2, 5)]
        profile = self.random.random()
        for name in names:
            self.sizes[name] = self.random.randint(1, 5) if profile < 0.8 else self.pick([1, 2, 3, 5, 7, 11])
        if 0.55 < profile < 0.75:
            self.sizes[self.pick(names)] = self.pick(BORDERS)
        elif 0.75 < profile < 0.85:
            self.sizes[self.pick(names)] = self.pick([0, 1])
        elif profile > 0.93:
            for name in self.some(names, 1, 2):
                self.sizes[name] = self.pick(BORDERS[:6])

    def fitting(self, names: list[str]) -> list[str]:
        """As many of these indices as the number of points allows."""
        kept: list[str] = []
        count = 1
        for name in names:
            count *= max(1, self.sizes[name])
            if count > self.points:
                break
            kept.append(name)
        return kept

    # Arrays

    def new_input(self, axes: tuple[Axis, ...], family: str = "float", batch: bool = False) -> Array:
        array = Array(self.fresh("W" if family == "float" else "N"), axes, family, batch=batch)
        shape = (self.batch or () if batch else ()) + tuple(axis.extent for axis in axes)
        if family == "float":
            kind = self.pick(self.types)
            array.positive = self.chance(0.2)
            values = self.values(shape, array.positive).astype(kind)
        else:
            kind = self.pick(INTEGERS)
            low = 0 if kind[0] in "ub" else -3
            values = self.numbers().integers(low, 2 if kind == "bool" else 4, shape).astype(kind)
            array.family = "bool" if kind == "bool" else "int"
        self.arguments[array.name] = dressed(values, self.random)
        self.arrays.append(array)
        return array

    def numbers(self) -> np.random.Generator:
        return np.random.default_rng(self.random.randrange(2**32))

    def values(self, shape: tuple[int, ...], positive: bool) -> np.ndarray:
        numbers = self.numbers()
        values = numbers.normal(size=shape) if self.smooth or self.chance(0.5) else numbers.integers(-8, 9, shape) / 4
        return np.abs(values) + 0.25 if positive else np.asarray(values)

    def positions(self, axes: tuple[Axis, ...], bound: int, loose: bool = False) -> Array:
        found = [a for a in self.arrays if a.bound and a.bound <= bound and a.axes == axes and not a.written]
        if found and not loose and self.chance(0.6):
            return self.pick(found)
        array = Array(self.fresh("P"), axes, "int", bound=0 if loose else bound)
        shape = tuple(axis.extent for axis in axes)
        low, high = (-1, bound + 1) if loose else (0, bound)
        kind = self.pick(["int64", "int32", "int16"])
        self.arguments[array.name] = dressed(self.numbers().integers(low, high, shape).astype(kind), self.random)
        if not loose:
            self.arrays.append(array)
        return array

    def own(self, indices: list[str]) -> tuple[Axis, ...]:
        return tuple(Axis(self.sizes[index], index) for index in indices)

    def input_over(self, allowed: list[str], family: str = "float") -> Array:
        plain = [index for index in allowed if index != "..."]
        indices = self.some(plain, 0 if self.chance(0.08) else 1, 3)
        axes = list(self.own(indices))
        if axes and self.chance(0.12):
            at = self.random.randrange(len(axes))
            axes[at] = Axis(axes[at].extent + self.random.randint(1, 3))
        batch = "..." in allowed and self.chance(0.6)
        if not axes and not batch:
            return self.new_input((Axis(self.random.randint(1, 3)),), family)
        return self.new_input(tuple(axes), family, batch)

    # Accesses

    def place(self, axis: Axis, allowed: list[str]) -> str | None:
        plain = [index for index in allowed if index != "..."]
        if axis.index in plain and self.chance(0.85):
            return axis.index
        options: list[str] = []
        extent = axis.extent
        for index in plain:
            size = self.sizes[index]
            if size == extent:
                options += [index, index, f"size({index})-1-{index}"]
            if size <= extent:
                options.append(f"{index}+{self.random.randint(0, extent - size)}")
            if size and extent:
                options += [f"min({index}+1,{extent - 1})", f"min({index}, {extent - 1})", f"{index}%{extent}"]
                if (size - 1) // 2 < extent:
                    options.append(f"{index}//2")
                if max(size - 2, 0) < extent:
                    options.append(f"max({index}-1,0)")
                if 2 * (size - 1) < extent:
                    options.append(f"2*{index}")
                for name, value in self.statics.items():
                    if size - 1 + value < extent:
                        options.append(f"{index}+{name}")
                for other in plain:
                    if other != index and size + self.sizes[other] - 2 < extent and self.sizes[other]:
                        options += [f"{index}+{other}", f"{index}-{other}+size({other})-1"]
                if self.chance(0.5):
                    array_ = self.positions(self.own([index]), extent)
                    options.append(f"{array_.name}[{index}]")
        if extent:
            options.append(str(self.random.randrange(extent)))
        if not options:
            return None
        return str(self.pick(options))

    def access(self, array: Array, allowed: list[str]) -> str | None:
        if array.batch and "..." not in allowed:
            return None
        places = ["..."] if array.batch else []
        for axis in array.axes:
            place = self.place(axis, allowed)
            if place is None:
                return None
            places.append(place)
        return f"{array.name}[{','.join(places)}]" if places else array.name

    def read(self, allowed: list[str], family: str = "float") -> str:
        """An access of something that is there, or of a new input."""
        for _ in range(6):
            known = [
                array
                for array in self.arrays
                if array.family == family or (family != "float" and array.family != "float")
            ]
            fits = [a for a in known if all(axis.index in allowed or axis.index is None for axis in a.axes)]
            pool = fits if fits and self.chance(0.8) else known
            if not pool or self.chance(0.25) or len(pool) < 2:
                array = self.input_over(allowed, family)
            elif self.chance(0.5):
                array = pool[-self.random.randint(1, min(3, len(pool)))]
            else:
                array = self.pick(pool)
            text = self.access(array, allowed)
            if text is not None:
                return text
        return "1"

    # Expressions

    def number(self) -> str:
        if self.whole:
            return str(self.pick([0, 1, 2, 3, 1]))
        return str(self.pick(["2", "3", "0.5", "1.5", "0.25", "1", "2.0", "1e-1", "0", ".75"]))

    def scalar(self) -> str:
        if self.scalars and self.chance(0.6):
            return str(self.pick(self.scalars))
        name = self.fresh("c")
        value = round(self.random.uniform(-2, 2), 2)
        if self.whole:
            self.arguments[name] = self.random.randint(-2, 3)
        else:
            self.arguments[name] = value if self.chance(0.6) else np.asarray(value, self.pick(self.types))
        self.scalars.append(name)
        return name

    def leaf(self, allowed: list[str]) -> str:
        draw = self.random.random()
        plain = [index for index in allowed if index != "..."]
        if self.extra and draw < 0.35:
            fits = [text for text, needs in self.extra if needs <= set(allowed)]
            if fits:
                return str(self.pick(fits))
        if draw < 0.78:
            return self.read(allowed, "int" if self.whole or self.chance(0.08) else "float")
        if draw < 0.85:
            return self.number()
        if draw < 0.92:
            return self.scalar()
        if plain and draw < 0.97:
            return str(self.pick(plain))
        if plain and draw < 0.985:
            return f"size({self.pick(plain)})"
        if self.statics:
            return str(self.pick(list(self.statics)))
        return self.read(allowed)

    extra: tuple[Leaf, ...] = ()

    def expression(self, allowed: list[str], depth: int) -> str:
        if depth <= 0 or self.chance(0.15):
            return self.leaf(allowed)
        one, two = self.expression(allowed, depth - 1), self.expression(allowed, depth - 2)
        draw = self.random.random()
        if draw < 0.2:
            return f"({one} + {two})"
        if draw < 0.34:
            return f"({one} - {two})"
        if draw < 0.56:
            return f"{one} * {two}"
        if draw < 0.6:
            return f"(-{one})"
        if draw < 0.66:
            return f"({one} if {self.condition(allowed, 1)} else {two})"
        if draw < 0.69:
            return self.lazy(allowed) or one
        if self.whole:
            return str(
                self.pick(
                    [
                        f"max({one}, {two})",
                        f"min({one}, {two})",
                        f"abs({one})",
                        f"({one}) ** 2",
                        f"({one} > {two})",
                        f"({one}) // 2",
                        f"({one}) % 3",
                        f"sign({one})",
                        f"relu({one})",
                    ]
                )
            )
        if draw < 0.74:
            return str(
                self.pick(
                    [f"{one} / (1 + ({two}) ** 2)", f"{one} / (2 + cos({two}))", f"{one} / 2", f"1 / (1 + exp({one}))"]
                )
            )
        if draw < 0.86:
            return f"{self.pick(SMOOTH)}({one})"
        if draw < 0.9:
            return str(
                self.pick(
                    [
                        f"({one}) ** 2",
                        f"({one}) ** 3",
                        f"sqrt(1 + ({one}) ** 2)",
                        f"exp(-({one}) ** 2)",
                        f"log(1.5 + ({one}) ** 2)",
                        f"(1 + abs({one})) ** 0.5",
                        f"hypot({one}, 1)",
                        f"atan2({one}, 2)",
                    ]
                )
            )
        if draw < 0.96:
            return str(
                self.pick(
                    [
                        f"max({one}, {two})",
                        f"min({one}, {two})",
                        f"relu({one})",
                        f"abs({one})",
                        f"where({self.condition(allowed, 0)}, {one}, {two})",
                        f"stop({one})",
                        f"max({one}, {two}, 0.5)",
                    ]
                )
            )
        return str(
            self.pick([f"floor({one} + 0.3)", f"sign({one})", f"({one} > {two}) * {two}", f"round({one} * 1.7)"])
        )

    def lazy(self, allowed: list[str]) -> str | None:
        """A read of a neighbour that only its condition keeps in bounds."""
        plain = [index for index in allowed if index != "..." and self.sizes[index]]
        if not plain:
            return None
        index = self.pick(plain)
        array = self.new_input(self.own([index])) if self.chance(0.5) else None
        if array is None:
            fits = [
                a
                for a in self.arrays
                if len(a.axes) == 1 and a.axes[0].extent == self.sizes[index] and a.family == "float" and not a.batch
            ]
            if not fits:
                return None
            array = self.pick(fits)
        assert array is not None
        offset = self.random.randint(1, 2)
        other = self.leaf(allowed)
        return str(
            self.pick(
                [
                    f"({array.name}[{index}-{offset}] if {index} >= {offset} else {other})",
                    f"({other} if {index} + {offset} >= size({index}) else {array.name}[{index}+{offset}])",
                    f"({array.name}[{index}+{offset}] if {index} < size({index}) - {offset} else {other})",
                ]
            )
        )

    def condition(self, allowed: list[str], depth: int) -> str:
        if depth > 0 and self.chance(0.5):
            one, two = self.condition(allowed, depth - 1), self.condition(allowed, depth - 1)
            return str(
                self.pick(
                    [
                        f"{one} and {two}",
                        f"{one} or {two}",
                        f"not ({one})",
                        f"({one} or {two}) and not {self.comparison(allowed)}",
                        f"{one} and ({two} or {self.comparison(allowed)})",
                    ]
                )
            )
        return self.comparison(allowed)

    def comparison(self, allowed: list[str]) -> str:
        plain = [index for index in allowed if index != "..."]
        operator = self.pick(["<", "<=", ">", ">=", "==", "!="])
        draw = self.random.random()
        if not plain or draw < 0.25:
            family = "int" if self.whole or self.chance(0.2) else "float"
            value = self.read(allowed, family)
            operator = self.pick(["<", "<=", ">", ">="]) if family == "float" else operator
            return f"{value} {operator} {self.pick(['0', '1', '0.3', '-0.6'] if family == 'float' else ['0', '1'])}"
        one, two = self.pick(plain), self.pick(plain)
        limit = self.random.randint(0, max(1, self.sizes[one]))
        if draw < 0.45:
            return f"{one} {operator} {two}" if one != two else f"{one} {operator} {limit}"
        if draw < 0.6:
            return f"{one} {operator} {limit}"
        return str(
            self.pick(
                [
                    f"{one} + {limit} {operator} 2*{two}",
                    f"{one} % 2 == {self.random.randint(0, 1)}",
                    f"{one} / 2 {operator} {two}",
                    f"0.5*{one} {operator} {two}",
                    f"{one} > 0.5",
                    f"0 <= {one} - 1 < {two}",
                    f"0 < {one} <= {limit}",
                    f"{one} - {two} {operator} -1",
                    f"{one} // 2 {operator} {two}",
                    f"size({one}) - 1 - {one} {operator} {two}",
                    f"{one} == {two}",
                    f"{limit} >= {one}",
                    f"{one} * {two} {operator} {limit}",
                    f"-{one} {operator} -{limit}",
                    f"{one} < {two} + 0.5",
                    f"{one} {operator} {self.pick(list(self.statics) or [limit])}",
                    f"2 * {one} >= {two} >= 0",
                ]
            )
        )

    def guard(self, allowed: list[str], probability: float = 0.3) -> str:
        return f" if {self.condition(allowed, 2)}" if self.chance(probability) else ""

    # Statements

    def target(self, indices: list[str], family: str = "float", batch: bool = False) -> Array:
        return Array(self.fresh("T"), self.own(indices), family, written=True, batch=batch)

    def put(self, array: Array, operator: str, value: str, guard: str = "", indent: str = "") -> None:
        places = (["..."] if array.batch else []) + [str(axis.index) for axis in array.axes]
        head = f"{array.name}[{','.join(places)}]" if places else array.name
        self.lines.append(f"{indent}{head} {operator} {value}{guard}")

    def indices(self) -> list[str]:
        names = list(self.sizes)
        self.random.shuffle(names)
        return self.fitting(names)

    def product(self) -> None:
        """Factors over free, summed, both, and no indices; now and then with factors of an earlier product."""
        names = self.indices()
        cut = self.random.randint(0, len(names))
        free, summed = names[:cut][:3], names[cut:]
        names = free + summed
        factors: list[Leaf] = []
        if self.products and self.chance(0.55):
            earlier = self.pick(self.products)
            needed = frozenset().union(*(needs for _, needs in earlier))
            names = self.fitting(sorted(needed) + [name for name in names if name not in needed])
            if needed <= set(names):
                factors = self.random.sample(earlier, self.random.randint(1, len(earlier)))
                free = self.some(sorted(names), 0, 3)
                summed = [name for name in names if name not in free]
        for _ in range(self.random.randint(0 if len(factors) > 1 else 2, max(2, 6 - len(factors)))):
            kind = self.random.random()
            over = free if kind < 0.3 else summed if kind < 0.6 else names if kind < 0.9 else []
            over = self.some(over, 1, 3)
            if self.chance(0.1):
                text = self.pick([self.number(), self.scalar()])
            elif self.chance(0.18):
                text = f"({self.expression(over, 2)})"
            else:
                text = self.read(over, "int" if self.whole or self.chance(0.06) else "float") if over else self.scalar()
            factors.append((text, frozenset(over)))
            if self.chance(0.08):
                factors.append(factors[-1])
        self.random.shuffle(factors)
        self.products.append(factors)
        text = ""
        for number, (factor, over) in enumerate(factors):
            shown = factor
            if self.chance(0.05):
                shown = f"-{shown}"
            elif self.chance(0.05):
                shown = f"{shown} ** 2"
            if number == 0:
                text = shown
            elif self.chance(0.1) and not self.whole:
                sizes = [f"size({index})" for index in sorted(over) if self.sizes[index]]
                text += f" / (1 + {factor} ** 2)" if self.chance(0.7) else f" / {self.pick(['2', '4.0', *sizes])}"
            else:
                text += f" * {shown}"
            if self.chance(0.1) and number < len(factors) - 1:
                text = f"({text})"
        if self.chance(0.08):
            text = f"({text} + {self.leaf(names)})"
        array = self.target(self.random.sample(free, len(free)))
        if not summed and self.chance(0.6):
            self.put(array, "=", text, self.guard(free))
        else:
            self.put(array, self.pick(["+=", "+=", "+=", "+=", "-="]), text, self.guard(names, 0.2))
            if self.chance(0.15):
                self.put(array, self.pick(["+=", "-="]), self.expression(free, 2), self.guard(free, 0.2))
        self.finish(array)

    def finish(self, array: Array) -> None:
        if self.whole or array.family != "float":
            array.family = "int"
        self.arrays.append(array)

    def elementwise(self) -> None:
        free = self.indices()[:3]
        array = self.target(free)
        self.put(array, "=", self.expression(free, 3), self.guard(free))
        self.finish(array)

    def reduction(self) -> None:
        names = self.indices()
        free = self.some(names, 0, 2)
        array = self.target(free)
        operator = self.pick(["+=", "-=", "max=", "min=", "*=", "max=", "min=", "+="])
        value = self.expression(names, 3)
        if operator == "*=":
            value = self.read(names, "float") if self.whole else f"(1 + 0.3 * sin({value}))"
            array.family = "float"
        guard = self.guard(names)
        self.put(array, operator, value, guard)
        if self.chance(0.3):
            again = value if operator == "*=" else self.expression(names, 2)
            opposite = f" if not ({guard.removeprefix(' if ')})" if guard and self.chance(0.5) else self.guard(names)
            self.put(array, operator, again, opposite)
        if operator in ("max=", "min="):  # an identity may be left, so nothing else reads it raw
            empty = Array(self.fresh("T"), array.axes, array.family, written=True)
            places = f"[{','.join(str(axis.index) for axis in array.axes)}]" if array.axes else ""
            self.put(empty, "=", f"max(min({array.name}{places}, 9), -9)")
            array = empty
        self.finish(array)

    def winner(self) -> None:
        names = self.indices()
        free = self.some(names, 0, 2)
        summed = [name for name in names if name not in free]
        array = self.target(free, "int")
        guard = self.guard(names, 0.25)
        value = self.read(names) if self.chance(0.6) else self.expression(names, 2)
        self.put(array, self.pick(["argmax=", "argmin="]), value, guard)
        if self.chance(0.15):
            self.put(array, self.lines[-1].split()[1], self.read(names), self.guard(names, 0.25))
        elif not guard and len(summed) == 1 and summed[0] in value and self.sizes[summed[0]] and self.chance(0.5):
            array.bound = self.sizes[summed[0]]
            across = self.new_input((Axis(array.bound),))
            picked = self.target(free)
            places = f"[{','.join(free)}]" if free else ""
            if places:
                self.put(picked, "=", f"{across.name}[{array.name}{places}] * {self.leaf(free)}")
                self.finish(picked)
        array.family = "int"
        self.arrays.append(array)

    def scatter(self) -> None:
        names = self.indices()
        if not names:
            return
        index = names[0]
        extent = self.random.randint(1, 6)
        array = Array(self.fresh("T"), (), written=True)
        rest = self.some(names[1:], 0, 1)
        draw = self.random.random()
        if draw < 0.5:
            place, operator = (
                f"{self.positions(self.own([index]), extent).name}[{index}]",
                self.pick(["+=", "+=", "-=", "max=", "min=", "*="]),
            )
        elif draw < 0.65:
            place, operator = f"{index}//2", "+="
            extent = max(extent, (self.sizes[index] + 1) // 2)
        elif draw < 0.75:
            place, operator = f"{index}%{extent}", "+="
        elif draw < 0.9:
            place, operator = f"2*{index}+1", self.pick(["=", "+="])
            extent = 2 * self.sizes[index] + self.random.randint(0, 2)
        else:
            place, operator = f"size({index})-1-{index}", self.pick(["=", "+="])
            extent = self.sizes[index] + self.random.randint(0, 1)
        array.axes = (Axis(extent), *self.own(rest))
        over = [index, *rest] if operator == "=" else names
        value = self.expression(over, 2)
        if operator == "*=":
            value = f"(1 + 0.3 * sin({value}))"
        self.head.append(f"size({array.name}, 0) = {extent}")
        self.lines.append(f"{array.name}[{','.join([place, *rest])}] {operator} {value}{self.guard(over, 0.2)}")
        if operator in ("max=", "min="):
            reader = self.sizes_index(extent)
            empty = Array(self.fresh("T"), (Axis(extent, reader), *self.own(rest)), written=True)
            self.put(empty, "=", f"max(min({array.name}[{','.join([reader, *rest])}], 9), -9)")
            array = empty
        if self.whole and operator == "*=":
            self.arrays.append(array)
        else:
            self.finish(array)

    def sizes_index(self, extent: int) -> str:
        """An index of this size."""
        for name, size in self.sizes.items():
            if size == extent:
                return name
        name = f"q{extent}"
        self.sizes[name] = extent
        return name

    def filled(self) -> None:
        """One tensor by several statements, each at a fixed position."""
        free = self.indices()[:2]
        count = self.random.randint(2, 3)
        array = Array(self.fresh("T"), (*self.own(free), Axis(count)), written=True)
        for position in range(count):
            self.lines.append(
                f"{array.name}[{','.join([*free, str(position)])}] = {self.expression(free, 2)}{self.guard(free, 0.15)}"
            )
        self.finish(array)

    def window(self) -> None:
        names = self.indices()
        if len(names) < 2:
            return
        i, p = names[:2]
        array = self.new_input((Axis(max(1, self.sizes[i] + self.random.randint(-1, 2))),))
        offset = self.random.randint(0, 2)
        place = self.pick([f"{i}+{p}-{offset}", f"{i}-{p}", f"2*{i}+{p}-{offset}", f"{i}-{offset}", f"{i}+{offset}"])
        if self.chance(0.15):
            place = f"{self.positions(self.own([i]), array.axes[0].extent, loose=True).name}[{i}]"
        free = self.some([i, p], 1, 2)
        operator = self.pick(["+=", "+=", "max=", "min="]) if len(free) == 1 else self.pick(["=", "+="])
        value = f"{array.name}[{place}]"
        if self.chance(0.7):
            value = f"{value} * {self.expression([i, p], 1)}"
        extra = f" and {self.condition([i, p], 1)}" if self.chance(0.3) else ""
        extra = extra.replace(" or ", " and ")
        target = self.target(free)
        self.put(target, operator, value, f" if inside{extra}")
        if operator in ("max=", "min="):
            empty = self.target(free)
            self.put(empty, "=", f"max(min({target.name}[{','.join(free)}], 9), -9)")
            target = empty
        target.family = "float"
        self.arrays.append(target)

    def update(self) -> None:
        """An input takes a new value under its own name."""
        plain = [
            a
            for a in self.arrays
            if not a.written
            and a.family == "float"
            and not a.batch
            and a.axes
            and a.name not in self.updated
            and all(axis.index for axis in a.axes)
            and len({axis.index for axis in a.axes}) == len(a.axes)
        ]
        if not plain:
            return
        array = self.pick(plain)
        own = [str(axis.index) for axis in array.axes]
        self.updated.add(array.name)
        head = f"{array.name}[{','.join(own)}]"
        if len({str(np.asarray(v).dtype) for v in self.arguments.values() if not isinstance(v, int | float)}) > 1:
            return
        self.lines.append(f"{head} = {head} - 0.1 * {self.expression(own, 2)}{self.guard(own, 0.2)}")

    # Definitions and leading axes

    def definition(self) -> None:
        inner = Writer(self.random, self.points, prefix=self.fresh("d"))
        inner.types, inner.smooth, inner.whole = self.types, self.smooth, self.whole
        for _ in range(self.random.randint(1, 3)):
            self.pick([inner.product, inner.elementwise, inner.reduction, inner.product])()
        outputs = [a for a in inner.arrays if a.written and all(axis.index for axis in a.axes)]
        if not outputs:
            return
        outputs = self.random.sample(outputs, self.random.randint(1, min(2, len(outputs))))
        used = set(_words("\n".join(inner.lines)))
        parameters, given = [], []
        sized = inner.sized()
        for name, value in inner.arguments.items():
            if name not in used:
                continue
            if name in inner.scalars:
                if isinstance(value, float | int) and self.chance(0.4):
                    parameters.append(f"{name}={value}")
                    continue
                parameters.append(name)
                given.append(self.scalar() if self.chance(0.7) else f"0.5 * {self.scalar()}")
                continue
            shape = np.asarray(value).shape
            letters = []
            array = next(a for a in inner.arrays if a.name == name)
            for axis in array.axes:
                letters.append(axis.index if axis.index and axis.index not in letters else inner.fresh("x"))
            sized.update(letters)
            parameters.append(f"{name}[{','.join(letters)}]")
            fits = [
                a
                for a in self.arrays
                if not a.batch
                and a.family == array.family
                and a.bound == array.bound
                and tuple(x.extent for x in a.axes) == shape
                and a.axes
                and not (a.family != "float" and a.written)
            ]
            if fits and array.family == "float" and not array.positive and self.chance(0.5):
                given.append(self.pick(fits).name)
            else:
                outer = Array(self.fresh("W"), tuple(Axis(extent) for extent in shape), array.family, bound=array.bound)
                self.arguments[outer.name] = value
                self.arrays.append(outer)
                given.append(outer.name)
        parameters.sort(key=lambda text: "=" in text)
        declared = [
            f"    size({name}) = {size}"
            for name, size in inner.sizes.items()
            if name not in sized and inner.mentions(name)
        ]
        name = self.fresh("f")
        heads = [f"{a.name}[{','.join(str(x.index) for x in a.axes)}]" if a.axes else a.name for a in outputs]
        self.head += [
            f"def {name}({', '.join(parameters)}) -> {', '.join(heads)}:",
            *declared,
            *("    " + line for line in inner.lines),
        ]
        results = [
            Array(self.fresh("T"), tuple(Axis(axis.extent) for axis in a.axes), a.family, written=True) for a in outputs
        ]
        self.lines.append(f"{', '.join(r.name for r in results)} = {name}({', '.join(given)})")
        self.arrays += results

    def sized(self) -> set[str]:
        """The indices that stand bare on an input, so that the call sizes them."""
        found: set[str] = set()
        for node in nodes(parse("\n".join(self.lines))):
            if node[0] == "access" and node[1] in self.arguments:
                found.update(place[1] for place in node[2:] if place[0] == "name")
        return found

    def bracketed(self, index: str) -> bool:
        """Whether the text shows that this name is an index; a name that stands in no bracket is a scalar."""
        whole = "\n".join(self.lines)
        return f"size({index})" in whole or any(
            node[0] == "access" and any(("name", index) in walk(place) for place in node[2:])
            for node in nodes(parse(whole))
        )

    @staticmethod
    def reads(item: Statement | Call) -> list[Node]:
        if isinstance(item, Call):
            return list(item.arguments) + [value for _, value in item.keywords]
        parts = [item.value, *item.target[2:]] + ([item.guard] if item.guard else [])
        return [node for part in parts for node in walk(part) if node[0] in ("access", "name")]

    def mentions(self, index: str) -> bool:
        return any(re.search(rf"\b{index}\b", line) for line in self.lines)

    def leading(self) -> None:
        if self.batch is None:
            self.batch = tuple(self.random.randint(1, 3) for _ in range(self.random.randint(0, 2)))
            i = self.pick(list(self.sizes))
            self.new_input(self.own([i]), "float", batch=True)
        names = ["...", *[n for n in self.indices() if self.sizes[n] <= 17][:2]]
        plain = [name for name in names if name != "..."]
        array = self.target(self.some(plain, 0, 2), batch=self.chance(0.8))
        free = [str(axis.index) for axis in array.axes]
        if array.batch and len(free) == len(plain):
            self.put(array, "=", self.expression(names, 2), self.guard(plain, 0.2) if plain else "")
        else:
            self.put(array, "+=", self.expression(names, 2), self.guard(plain, 0.2) if plain else "")
        text = self.lines[-1].split("=", 1)[1]
        if array.batch and "..." not in text:
            self.lines.pop()
            return
        self.finish(array)

    # The whole

    def program(self, seed: int, most: int) -> Sample:
        if self.chance(0.15):
            self.statics[self.fresh("n")] = self.random.randint(0, 2)
        kinds = (
            [self.product] * 8
            + [self.elementwise] * 3
            + [self.reduction] * 3
            + [self.winner, self.scatter, self.filled, self.window]
        )
        kinds += [partial(block, self), partial(block, self), partial(wide_steps, self), partial(along_rows, self)]
        kinds += [self.definition, self.leading]
        for _ in range(min(most, self.pick([1, 2, 2, 3, 3, 4, 5, 6]))):
            self.pick(kinds)()
        if self.chance(0.06):
            self.update()
        if not any(array.written for array in self.arrays):
            self.elementwise()
        for name, value in self.statics.items():
            if self.mentions(name):
                default = self.chance(0.3)
                self.head.append(f"{name}: int" + (f" = {value}" if default else ""))
                if not default:
                    self.arguments[name] = value
        keywords: dict[str, int] = {}
        sized = self.sized()
        for name, size in self.sizes.items():
            if name not in sized and self.mentions(name):
                if self.chance(0.5) or not self.bracketed(name):
                    self.head.append(f"size({name}) = {size}")
                else:
                    keywords[name] = size
        lines = [*self.head, *self.lines]
        written = [array for array in self.arrays if array.written]
        names = {array.name for array in written}
        reads = {node[1] for item in statements(parse("\n".join(self.lines))) for node in self.reads(item)}
        if self.chance(0.5) or names <= reads:
            lines.append(
                "return "
                + ", ".join(sorted(self.random.sample(sorted(names), self.random.randint(1, min(4, len(names))))))
            )
        text = "\n".join(lines)
        used = set(_words(text))
        wrt = tuple(
            a.name
            for a in self.arrays
            if not a.written and a.family == "float" and a.name in used and a.name not in self.updated
        )
        wrt += tuple(name for name in self.scalars if name in used and not self.whole)
        batch = self.batch or ()
        return Sample(
            seed,
            text,
            {name: value for name, value in self.arguments.items() if name in used},
            keywords,
            dict(self.sizes),
            {a.name: (batch if a.batch else ()) + tuple(axis.extent for axis in a.axes) for a in written},
            batch,
            wrt,
            {a.name: a.axes for a in self.arrays},
        )


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", text)
