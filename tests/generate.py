"""Random programs for property tests: a Hypothesis strategy for a text, its inputs and what to differentiate by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

INDICES = "ijklm"


@dataclass(frozen=True)
class Case:
    """A program text, the arrays to run it on, and the inputs that have a derivative."""

    text: str
    arrays: dict[str, np.ndarray]
    wrt: list[str]

    def __str__(self) -> str:
        shapes = ", ".join(f"{k}{v.shape}" for k, v in self.arrays.items())
        return f"{self.text}\n# {shapes}"


@dataclass
class Place:
    """One index expression: its text, the greatest value it reaches, and whether it is a bare index."""

    text: str
    reach: int
    used: tuple[str, ...]
    bare: bool = False


@dataclass
class Writer:
    """The program in the making."""

    draw: Callable[[Any], Any]
    limit: int = 4  # how many different indices
    sizes: dict[str, int] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    wrt: list[str] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)
    written: dict[str, list[tuple[int, str | None]]] = field(default_factory=dict)  # axes: extent, bare index

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.draw(st.integers(0, 2**32 - 1)))

    def choose(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def index(self) -> str:
        name = str(self.choose(*INDICES[: self.limit]))
        self.sizes.setdefault(name, self.integer(1, 4))
        return name

    # -- index expressions

    def place(self, shifted: bool = False) -> Place:
        i = self.index()
        n = self.sizes[i]
        kind = self.choose(
            "bare",
            "bare",
            "bare",
            "bare",
            "shift",
            "stride",
            "sum",
            "dilated",
            "reversed",
            "divided",
            "modulo",
            "gathered",
            "three",
            "clamped",
            "constant",
        )
        if shifted and self.integer(0, 1):
            return Place(f"{i}-1", n - 2, (i,))
        if kind == "bare":
            return Place(i, n - 1, (i,), bare=True)
        if kind == "shift":
            c = self.integer(0, 2)
            return Place(f"{i}+{c}", n - 1 + c, (i,))
        if kind == "stride":
            s, c = self.integer(2, 3), self.integer(0, 1)
            return Place(f"{s}*{i}+{c}" if c else f"{s}*{i}", s * (n - 1) + c, (i,))
        if kind == "reversed":
            return Place(f"size({i})-1-{i}", n - 1, (i,))
        if kind == "divided":
            return Place(f"{i}//2", (n - 1) // 2, (i,))
        if kind == "modulo":
            return Place(f"{i}%2", min(1, n - 1), (i,))
        if kind == "clamped":
            return (
                Place(f"min({i},1)", min(1, n - 1), (i,))
                if self.integer(0, 1)
                else Place(f"abs({i}-1)", max(1, n - 2), (i,))
            )
        if kind == "constant":
            return Place("0", 0, ())
        if kind == "gathered":
            reach = self.integer(0, 3)
            return Place(f"{self.gather(i, reach)}[{i}]", reach, (i,))
        j = self.index()
        if kind == "sum":
            return Place(f"{i}+{j}", n - 1 + self.sizes[j] - 1, (i, j))
        if kind == "dilated":
            return Place(f"{i}+2*{j}", n - 1 + 2 * (self.sizes[j] - 1), (i, j))
        k = self.index()
        reach = 2 * (n - 1) + self.sizes[j] + self.sizes[k] - 2
        return Place(f"2*{i}+{j}+{k}", reach, (i, j, k))

    def gather(self, index: str, reach: int) -> str:
        name = f"g{len(self.arrays)}"
        self.arrays[name] = self.random.integers(0, reach + 1, self.sizes[index])
        return name

    # -- accesses

    def operand(self, name: str, cut: bool) -> str:
        """A new input; with `cut` its axes may be too short, for a statement guarded by `inside`."""
        rank = self.choose(0, 1, 1, 2, 2, 2, 3, 3, 4, 5)
        places = [self.place(shifted=cut) for _ in range(rank)]
        shape = []
        for place in places:
            slack = 0 if place.bare else self.integer(-1 if cut else 0, 1)
            shape.append(max(1, place.reach + 1 + slack) if not place.bare else place.reach + 1)
        self.arrays[name] = self.values(tuple(shape))
        self.wrt.append(name)
        return f"{name}[{','.join(p.text for p in places)}]" if places else name

    def values(self, shape: tuple[int, ...]) -> np.ndarray:
        """Away from zero and from each other: ties and kinks are for fixed tests."""
        array = self.random.uniform(0.4, 1.6, shape) * self.random.choice([-1.0, 1.0], shape)
        return np.asarray(array)

    def reading(self, name: str) -> str:
        """An access of a tensor that an earlier statement wrote."""
        places = []
        for extent, bare in self.written[name]:
            i = self.index()
            if bare is not None and self.integer(0, 2):
                places.append(bare)
            elif self.sizes[i] <= extent:
                places.append(f"{i}+0")
            else:
                places.append(f"{i}%{extent}")
        return f"{name}[{','.join(places)}]" if places else name

    # -- expressions

    def expression(self, atoms: list[str], depth: int = 0) -> str:
        """An expression that uses each atom at least once."""
        if len(atoms) > 1:
            cut = self.integer(1, len(atoms) - 1)
            left, right = self.expression(atoms[:cut], depth + 1), self.expression(atoms[cut:], depth + 1)
            form = self.choose(
                "{} * {}",
                "{} * {}",
                "{} * {}",
                "{} + {}",
                "{} - {}",
                "{} / (2 + {} ** 2)",
                "max({}, {})",
                "atan2({}, 2 + {} ** 2)",
                "({} if " + self.condition() + " else {})",
            )
            return f"({form.format(left, right)})"
        atom = atoms[0]
        form = self.choose(
            "{}",
            "{}",
            "{}",
            "tanh({})",
            "sin({})",
            "exp(0.3 * {})",
            "-{}",
            "{} ** 2",
            "sigmoid({})",
            "abs({})",
            "relu({})",
            "gelu({})",
            "sqrt(1 + {} ** 2)",
            "0.5 * {}",
            "log(3 + {})",
            "({} if " + self.condition() + " else 0.7)",
            "softplus({})",
            "hypot({}, 1)",
        )
        return str(form.format(atom))

    def condition(self) -> str:
        i, j = self.index(), self.index()
        return str(
            self.choose(
                f"{i} <= {j}",
                f"{i} > 0",
                f"({i}+{j}) % 2 == 0",
                f"{i} != {j}",
                f"not {i} == 1",
                f"{i} < 2 and {j} > 0",
                f"{i} > 1 or {j} < 1",
            )
        )

    # -- statements

    def statement(self, target: str, names: list[str], cut: bool) -> str:
        atoms = [self.reading(n) if n in self.written else self.operand(n, cut) for n in names]
        value = self.expression(atoms)
        guard = self.choose(None, None, None, "index", "data")
        parts = ["inside"] if cut else []
        if guard == "index":
            parts.append(f"({self.condition()})")
        elif guard == "data":
            parts.append(f"{self.choose(*atoms)} < 0.9")
        used = [i for i in self.sizes if _names(value + " " + " ".join(parts), i)]
        operator = self.choose("=", "=", "+=", "+=", "+=", "-=", "*=", "max=", "min=")
        places = self.target_places(operator, used)
        if cut and not all(p.bare for p in places):
            for axis, place in enumerate(places):
                if not place.bare:
                    self.declarations.append(f"size({target}, {axis}) = {max(1, place.reach + self.integer(0, 2))}")
        shape = f"[{','.join(p.text for p in places)}]" if places else ""
        for axis, place in enumerate(places):
            if place.text.startswith("g") and not (cut and not place.bare):
                self.declarations.append(f"size({target}, {axis}) = {place.reach + 1}")
        declared = {d.split(" = ")[0]: int(d.split(" = ")[1]) for d in self.declarations if "," in d}
        self.written[target] = [
            (declared.get(f"size({target}, {axis})", p.reach + 1), p.text if p.bare else None)
            for axis, p in enumerate(places)
        ]
        condition = f" if {' and '.join(parts)}" if parts else ""
        return f"{target}{shape} {operator} {value}{condition}"

    def target_places(self, operator: str, used: list[str]) -> list[Place]:
        order = list(self.draw(st.permutations(used)))
        if operator == "=":
            places = []
            for i in order:
                kind = self.choose("bare", "bare", "bare", "shift", "stride")
                n = self.sizes[i]
                places.append(
                    {
                        "bare": Place(i, n - 1, (i,), bare=True),
                        "shift": Place(f"{i}+1", n, (i,)),
                        "stride": Place(f"2*{i}", 2 * n - 2, (i,)),
                    }[kind]
                )
            return places
        kept = order[: self.integer(0, len(order))]
        places = []
        for i in kept:
            n = self.sizes[i]
            kind = self.choose("bare", "bare", "bare", "bare", "shift", "divided", "gathered")
            if kind == "bare":
                places.append(Place(i, n - 1, (i,), bare=True))
            elif kind == "shift":
                places.append(Place(f"{i}+1", n, (i,)))
            elif kind == "divided":
                places.append(Place(f"{i}//2", (n - 1) // 2, (i,)))
            else:
                reach = self.integer(0, 2)
                places.append(Place(f"{self.gather(i, reach)}[{i}]", reach, (i,)))
        return places

    def case(self, body: str, returns: str = "") -> Case:
        sizes = [f"size({i}) = {n}" for i, n in self.sizes.items() if _names(body, i)]
        text = "\n".join([*sizes, *self.declarations, body, *([returns] if returns else [])])
        arrays = {name: array for name, array in self.arrays.items() if _names(text, name)}
        return Case(text, arrays, [n for n in self.wrt if n in arrays])


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_.]){name}(?![A-Za-z0-9_])", text) is not None


@st.composite
def statements(draw: Callable[[Any], Any]) -> Case:
    """One to three statements over one to four operands each, the later ones reading the earlier."""
    writer = Writer(draw)
    count = draw(st.sampled_from([1, 1, 1, 2, 2, 3]))
    lines = []
    for number in range(count):
        operands = [f"{letter}{number}" for letter in "ABCD"[: writer.choose(1, 1, 2, 2, 3, 4)]]
        if number:
            operands[0] = f"Y{number - 1}"
        lines.append(writer.statement(f"Y{number}", operands, cut=writer.choose(False, False, False, True)))
    return writer.case("\n".join(lines))


@st.composite
def recurrences(draw: Callable[[Any], Any]) -> Case:
    """A block over t, up or down, whose steps read earlier steps; sometimes within another block."""
    writer = Writer(draw, limit=2)
    steps = writer.integer(1, 4)
    writer.sizes = {"t": steps, "i": writer.integer(1, 3), "j": writer.integer(1, 3)}
    down = bool(writer.integer(0, 1))
    before, first = ("t+1", "t < size(t) - 1") if down else ("t-1", "t > 0")
    distance = writer.integer(1, 2)
    if distance == 2:
        before, first = before.replace("1", "2"), ("t < size(t) - 2" if down else "t > 1")
    n, m = writer.sizes["i"], writer.sizes["j"]
    for name, shape in (("X", (steps, n)), ("W", (n, n)), ("H0", (n,)), ("V", (n, m)), ("c", ())):
        writer.arrays[name] = writer.values(shape) * 0.7
    function = writer.choose("tanh", "sin", "sigmoid", "softplus")
    carried = f"(H[{before},k] if {first} else H0[k])"
    writer.sizes["k"] = n
    kind = writer.choose("matrix", "elementwise", "product", "maximum", "nested", "total", "layers")
    head = f"for t{' down' if down else ''}:"
    returns = "return H"
    if kind == "matrix":
        body = f"P[t,i] += X[t,i]\n{head}\n    P[t,i] += W[i,k] * {carried}\n    H[t,i] = {function}(P[t,i])"
    elif kind == "elementwise":
        body = f"{head}\n    H[t,k] = {function}(X[t,k] * {carried}) + c * {carried}"
    elif kind == "product":
        body = f"{head}\n    P[t,i] *= 1 + 0.5 * W[i,k] * {carried}\n    H[t,i] = X[t,i] * P[t,i]"
    elif kind == "maximum":
        body = f"{head}\n    H[t,i] {writer.choose('max=', 'min=')} W[i,k] * {carried} + X[t,k]"
    elif kind == "nested":
        body = (
            f"{head}\n    for k:\n        H[t,k] = {function}(X[t,k] + c * {carried}"
            " + (H[t,k-1] * W[k,k-1] if k > 0 else 0))"
        )
    elif kind == "total":
        body = (
            f"{head}\n    S[k] += X[t,k] * W[k,k]\n    H[t,k] = S[k] + c * {carried}\n"
            "    loss += (H[t,k] - X[t,k]) ** 2"
        )
        returns = "return H, loss"
    else:
        body = (
            f"Z[0,k] = {function}(H0[k])\nfor t:\n    Z[t+1,k] = Z[t,k] + c * {function}(X[t,k] * Z[t,k])\n"
            "H[k,j] += Z[t+1,k] * V[k,j]"
        )
    writer.wrt = ["X", "W", "H0", "V", "c"]
    return writer.case(body, returns)


programs = st.one_of(*[statements()] * 6, recurrences())
