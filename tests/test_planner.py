"""Planned equals interpreted: random programs at sizes that meet register tiles, strips, threads and private sums."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.lower import panels
from tensorswap.plan import nest
from tensorswap.program import Program
from tensorswap.run import call, tuning

from .daily import LONG

pytestmark = pytest.mark.compiled

SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 33, 40, 64, 65)
POINTS = 400_000  # of one statement, at most: the interpreter walks them all
SETTINGS = [(64, 2, 0), (4096, 8, 0), (262144, 8, 10_000), (64, 8, 0), (4096, 2, 10_000), (262144, 2, 0)]
SEEDS = range(7, 400 if LONG else 23)

Arrays = dict[str, Any]


@dataclass
class Writer:
    """A program in the making: tensors with bare indices, so that any of them can be read by later statements."""

    choice: random.Random
    sizes: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # inputs whose axes are not bare everywhere
    integers: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)  # axes, and the bound of the values
    written: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)
    bare: set[str] = field(default_factory=set)  # indices that an input sizes
    count: int = 0

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def index(self) -> str:
        name = self.choice.choice("ijklmn")
        self.sizes.setdefault(name, self.choice.choice(SIZES))
        return name

    def indices(self, low: int, high: int) -> tuple[str, ...]:
        """Different indices, in a random order, whose product is not too large."""
        found: list[str] = []
        for _ in range(self.choice.randint(low, high)):
            index = self.index()
            if index not in found and self.volume(*found, index) <= POINTS:
                found.append(index)
        self.choice.shuffle(found)
        return tuple(found)

    def volume(self, *names: str) -> int:
        result = 1
        for name in set(names):
            result *= self.sizes[name]
        return result

    def access(self, within: tuple[str, ...] | None = None, old: float = 0.5) -> tuple[str, tuple[str, ...]]:
        """A read of a new input or, at times, of something there is; `within` are the only indices it may have."""
        there = [*self.written.items(), *self.inputs.items()]
        fitting = [(n, a) for n, a in there if within is None or set(a) <= set(within)]
        if fitting and self.choice.random() < old:
            name, axes = self.choice.choice(fitting)
        elif within is None:
            name, axes = self.name("A"), self.indices(1, 3)
            self.inputs[name] = axes
        else:
            some = [i for i in within if self.choice.random() < 0.7]
            self.choice.shuffle(some)
            name, axes = self.name("A"), tuple(some)
            self.inputs[name] = axes
        return show(name, axes), axes

    def guard(self, indices: tuple[str, ...]) -> str:
        if not indices or self.choice.random() < 0.6:
            return ""
        a, b = self.choice.choice(indices), self.choice.choice(indices)
        c = self.choice.randint(0, 3)
        conditions = [f"{b} <= {a}", f"{a} >= {b} - {c}", f"{a} + {b} < {self.sizes[a]}", f"{a} > {c}", f"{a} != {c}",
                      f"{b} < {a}", f"{a} <= {b} < {a} + 4", f"{a} % 2 == 0", f"{a} - {b} <= {c}"]  # fmt: skip
        chosen = self.choice.sample(conditions, self.choice.choice((1, 1, 2)))
        return " if " + " and ".join(chosen)

    def statement(self, target: str, axes: tuple[str, ...], operator: str, value: str, guard: str = "") -> None:
        self.lines.append(f"{show(target, axes)} {operator} {value}{guard}")
        self.written[target] = axes

    # -- kinds of statements

    def contraction(self) -> None:
        target, axes = None, ()
        for _ in range(self.choice.choice((1, 1, 1, 2))):
            factors, used = self.factors()
            if target is not None and any(f.startswith(f"{target}[") or f == target for f in factors):
                continue  # a sum is complete before it is read
            if target is None:
                target = self.name("Y")
                axes = tuple(self.choice.sample(used, self.choice.randint(min(1, len(used)), min(3, len(used)))))
            if not set(axes) <= set(used):
                continue
            summed = [i for i in used if i not in axes]
            value = " * ".join(factors)
            if summed and self.choice.random() < 0.7:
                value += f" / sqrt(size({summed[0]}))"
            if self.choice.random() < 0.2:
                value = f"0.5 * {value}"
            self.statement(target, axes, self.choice.choice(("+=", "+=", "-=")), value, self.guard(tuple(used)))

    def factors(self) -> tuple[list[str], list[str]]:
        factors: list[str] = []
        used: list[str] = []
        for _ in range(self.choice.choice((2, 2, 2, 3, 4))):
            text, axes = self.access()
            if self.volume(*used, *axes) > POINTS:
                continue
            factors.append(text)
            used += [i for i in axes if i not in used]
        if not factors:
            text, axes = self.access(())
            factors, used = [text], list(axes)
        return factors, used

    def elementwise(self) -> None:
        axes = self.choice.choice([a for a in self.written.values() if a] or [self.indices(1, 3)])
        if self.choice.random() < 0.3:
            axes = tuple(self.choice.sample(axes, len(axes)))
        a, b = self.access(axes, 0.8)[0], self.access(axes, 0.8)[0]
        values = [f"tanh({a}) * {b}", f"exp(-abs({a})) + {b}", f"max({a}, {b})", f"{a} - 0.5 * {b}", f"sigmoid({a})",
                  f"relu({a}) + {b}", f"min({a}, 1) * {b}", f"{a} / (1 + {b} ** 2)", f"silu({a})"]  # fmt: skip
        if axes:
            i = self.choice.choice(axes)
            c = self.choice.randint(0, 2)
            values.append(f"({a} if {i} > {c} else {b})")
            values.append(f"({a} if {i} % 2 == 1 else 0) * {i}")
        shifted = [(n, x) for n, x in self.written.items() if x and set(x) <= set(axes)]
        if shifted:
            name, x = self.choice.choice(shifted)
            i = self.choice.choice(x)
            before = show(name, tuple(f"{e}-1" if e == i else e for e in x))
            after = show(name, tuple(f"{e}+1" if e == i else e for e in x))
            turned = show(name, tuple(f"size({e})-1-{e}" if e == i else e for e in x))
            values += [f"({before} if {i} > 0 else 0) + {b}", f"{b} * ({after} if {i} < size({i}) - 1 else 2)",
                       f"{turned} - {a}", f"tanh({turned})"]  # fmt: skip
        self.statement(self.name("Y"), axes, "=", self.choice.choice(values), self.guard(axes))

    def reduction(self) -> None:
        operator = self.choice.choice(("+=", "max=", "min=", "*=", "argmax=", "argmin=", "-="))
        text, axes = self.access(old=0.0 if operator.startswith("arg") else 0.7)
        kept = tuple(self.choice.sample(axes, self.choice.randint(0, max(len(axes) - 1, 0))))
        value = f"(1 + 0.1 * tanh({text}))" if operator == "*=" else text
        name = self.name("R")
        self.statement(name, kept, operator, value, self.guard(axes))
        if operator.startswith("arg") or "if" in self.lines[-1]:  # an integer; or an infinity where nothing was found
            del self.written[name]

    def softmax(self) -> None:
        text, axes = self.access()
        if not axes:
            return
        row = self.choice.choice(axes)
        kept = tuple(i for i in axes if i != row)
        m, e, z, p = (self.name(x) for x in "MEZP")
        self.statement(m, kept, "max=", text)
        self.statement(e, axes, "=", f"exp({text} - stop({show(m, kept)}))")
        self.statement(z, kept, "+=", show(e, axes))
        self.statement(p, axes, "=", f"{show(e, axes)} / {show(z, kept)}")
        for name in (m, e, z):
            if self.choice.random() < 0.7:
                del self.written[name]

    def window(self) -> None:
        """A convolution: shifted, strided, dilated, turned around, with or without the points outside."""
        i, u = self.index(), self.name("u")
        self.sizes[u] = self.choice.choice((1, 2, 3, 5))
        stride, dilation, shift = (
            self.choice.choice((1, 1, 2, 3)),
            self.choice.choice((1, 1, 2)),
            self.choice.randint(0, 2),
        )
        reach = stride * (self.sizes[i] - 1) + dilation * (self.sizes[u] - 1) + 1
        inside = self.choice.random() < 0.6
        x, w = self.name("X"), self.name("W")
        first = f"{stride}*{i}" if stride > 1 else i
        second = f"{dilation}*{u}" if dilation > 1 else u
        place = f"{first}+{second}-{shift}" if inside and shift else f"{first}+{second}"
        length = max(reach - (self.choice.randint(0, 3) if inside else 0), 1)
        if inside and self.choice.random() < 0.2:
            place = f"{length - 1}-{first}-{second}+{shift}"
        extra = tuple(a for a in self.indices(0, 2) if a not in (i, u))
        others = tuple(o for o in self.indices(0, 2) if o not in (i, u) and o not in extra)
        while self.volume(i, u, *extra, *others) > POINTS:
            extra, others = extra[:-1], others[:-1] if not extra else others
        self.shapes[x] = (*(self.sizes[e] for e in extra), length)
        self.bare |= {*extra, *others, u}
        self.shapes[w] = tuple(self.sizes[o] for o in (*others, *extra, u))
        kept = [o for o in (*others, *extra, i) if self.choice.random() < 0.7 or o in (i, *others)]
        self.choice.shuffle(kept)
        self.choice.shuffle(kept)
        value = f"{show(x, (*extra, place))} * {show(w, (*others, *extra, u))}"
        operator = self.choice.choice(("+=", "+=", "+=", "max="))
        name = self.name("Y")
        self.statement(name, tuple(kept), operator, value, " if inside" if inside else "")
        if operator == "max=":
            del self.written[name]

    def recurrence(self) -> None:
        t = self.name("t")
        self.sizes[t] = self.choice.choice((1, 2, 3, 5, 8))
        b, h, g = self.index(), self.name("h"), self.name("g")
        self.sizes[h] = self.sizes[g] = self.choice.choice((1, 3, 8, 9, 17, 33))
        x, w, p, s = (self.name(n) for n in "XWPS")
        self.inputs[x], self.inputs[w] = (t, b, h), (h, g) if self.choice.random() < 0.5 else (g, h)
        before = self.choice.choice((show(s, (f"{t}-1", b, g)), f"tanh({show(s, (f'{t}-1', b, g))})"))
        start = self.choice.choice(("0", show(self.name("I"), (b, g))))
        if start != "0":
            self.inputs[start.partition("[")[0]] = (b, g)
        down = self.choice.random() < 0.2
        previous = f"({before} if {t} > 0 else {start})"
        if down:
            previous = f"({before.replace(f'{t}-1', f'{t}+1')} if {t} < size({t}) - 1 else {start})"
        self.lines.append(f"{show(p, (t, b, h))} += {show(x, (t, b, h))}")
        self.lines.append(f"for {t}{' down' if down else ''}:")
        weights = show(w, self.inputs[w])
        self.lines.append(f"    {show(p, (t, b, h))} += {weights} * {previous} / size({g})")
        self.lines.append(f"    {show(s, (t, b, h))} = tanh({show(p, (t, b, h))})")
        if self.choice.random() < 0.4:
            q = self.name("Q")
            self.lines.append(f"    {show(q, (b,))} += {show(s, (t, b, h))} ** 2")
            self.written[q] = (b,)
        self.written[s] = (t, b, h)

    def layers(self) -> None:
        """A stack of layers of which only the last one is read, so that a few slices may serve all."""
        t, b, h, g = self.name("t"), self.index(), self.name("h"), self.name("g")
        self.sizes[t] = self.choice.choice((1, 2, 3, 5))
        self.sizes[h] = self.sizes[g] = self.choice.choice((1, 3, 8, 9, 17, 33))
        x, w, p, s, y = (self.name(n) for n in "XWPSY")
        shared = self.choice.random() < 0.3
        self.inputs[x], self.inputs[w] = (b, h), (h, g) if shared else (t, h, g)
        self.bare.add(t)
        if shared:
            self.declared.append(f"size({t}) = {self.sizes[t]}")
        back = self.choice.choice(("", "", f" + 0.5 * ({show(s, (f'{t}-1', b, h))} if {t} > 0 else 0)"))
        self.lines.append(f"{show(s, ('0', b, h))} = {show(x, (b, h))}")
        self.lines.append(f"for {t}:")
        self.lines.append(f"    {show(p, (t, b, h))} += {show(s, (t, b, g))} * {show(w, self.inputs[w])} / size({g})")
        self.lines.append(f"    {show(s, (f'{t}+1', b, h))} = tanh({show(p, (t, b, h))}){back}")
        self.statement(y, self.choice.choice(((b, h), (h, b))), "=", f"{show(s, (f'size({t})', b, h))} * 2")

    def gather(self) -> None:
        i, d = self.index(), self.index()
        if i == d:
            return
        bound = self.choice.choice(SIZES)
        g = self.name("G")
        if self.choice.random() < 0.5:
            self.integers[g] = ((i,), bound)
            e = self.name("E")
            self.shapes[e] = (bound, self.sizes[d])
            self.bare |= {i, d}
            self.statement(self.name("Y"), (i, d), "=", f"{e}[{g}[{i}],{d}] * 2")
        else:
            value, axes = self.access((i, d), 0.8)
            operator = self.choice.choice(("+=", "+=", "max="))
            if i not in axes and operator == "max=":
                operator = "+="
            self.integers[g] = ((i,), bound)
            self.bare.add(i)
            y = self.name("Y")
            self.declared.append(f"size({y}, 0) = {bound}")
            self.lines.append(f"{y}[{g}[{i}],{d}] {operator} {value}")

    def update(self) -> None:
        w = self.name("V")
        value, axes = self.access(old=0.9)
        if not axes:
            return
        self.inputs[w] = axes
        self.lines.append(f"{show(w, axes)} = {show(w, axes)} - 0.1 * {value}{self.guard(axes)}")
        self.written[w] = axes
        del self.inputs[w]
        self.shapes[w] = tuple(self.sizes[i] for i in axes)
        self.bare |= set(axes)

    def total(self) -> None:
        text, _ = self.access(old=0.9)
        self.statement(self.name("s"), (), "+=", self.choice.choice((text, f"{text} ** 2", f"tanh({text})")))

    def program(self) -> str:
        kinds = [self.contraction] * 5 + [self.elementwise] * 4 + [self.reduction] * 2 + [self.window] * 2
        kinds += [self.softmax, self.recurrence, self.layers, self.gather, self.update, self.total]
        for _ in range(self.choice.randint(1, 6)):
            self.choice.choice(kinds)()
        if not self.lines:
            self.contraction()
        written = {line.split("[")[0].split()[0] for line in self.lines if not line.lstrip().startswith("for ")}
        if all(sum(name in line for line in self.lines) > 1 for name in written):
            self.total()  # all may be read again, and something must come out
        text = "\n".join(self.lines)
        for name, axes in self.inputs.items():
            if f"{name}[" in text:
                self.bare |= set(axes)
        sized = [f"size({i}) = {n}" for i, n in self.sizes.items() if i not in self.bare]
        return "\n".join([*self.declared, *sized, text])


def show(name: str, axes: tuple[str, ...]) -> str:
    return f"{name}[{','.join(axes)}]" if axes else name


def case(seed: int) -> tuple[Program, Arrays, list[str]]:
    """A program, its arrays, and the inputs to differentiate by."""
    writer = Writer(random.Random(seed))
    text = writer.program()
    numbers = np.random.default_rng(seed)
    dtype = np.float32 if seed % 3 == 0 else np.float64
    shapes = {n: tuple(writer.sizes[i] for i in axes) for n, axes in writer.inputs.items()}
    used = {n: s for n, s in {**shapes, **writer.shapes}.items() if n in text}
    program = ts.program(text)
    arrays: Arrays = {n: numbers.standard_normal(s).astype(dtype) for n, s in used.items() if n in program.inputs}
    for name, (axes, bound) in writer.integers.items():
        arrays[name] = numbers.integers(0, bound, [writer.sizes[i] for i in axes])
    return program, arrays, [n for n in arrays if n not in writer.integers]


def outputs(program: Program, result: Any) -> dict[str, np.ndarray]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def check(program: Program, arrays: Arrays) -> dict[str, np.ndarray]:
    """Compiled equals interpreted, up to the order of sums; the arrays of the caller stay as they are."""
    before = {k: np.array(v) for k, v in arrays.items()}
    expected = outputs(program, program.run_reference(arrays))
    found = outputs(program, program(arrays))
    for name, array in before.items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=f"{name} was changed")
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        assert found[name].shape == wanted.shape, name
        assert found[name].dtype == wanted.dtype, name
        assert not any(np.shares_memory(found[name], array) for array in arrays.values()), name
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], wanted, err_msg=name)
            continue
        tolerance = 3e-4 if wanted.dtype == np.float32 else 1e-11
        size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1)
        np.testing.assert_allclose(found[name], wanted, rtol=tolerance, atol=tolerance * size, err_msg=name)
    return expected


def run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program and its adjoint, with a setting of the planner that the seed chooses."""
    cache, grain, parallel = SETTINGS[seed % len(SETTINGS)]
    monkeypatch.setattr(nest, "CACHE", cache)
    monkeypatch.setattr(nest, "GRAIN", grain)
    monkeypatch.setattr(tuning, "PARALLEL", parallel)
    monkeypatch.setattr(call, "threads", lambda: 1 + (seed // 2) % 2)
    monkeypatch.setattr(panels, "SHARED", 1 if seed % 3 else panels.SHARED)
    program, arrays, wrt = case(seed)
    results = check(program, arrays)
    of = [name for name, array in results.items() if array.dtype.kind == "f"]
    if not of or set(program.inputs) & set(program.outputs):
        return  # nothing has a derivative; an update has none
    adjoint = program.adjoint(wrt=wrt, of=of)
    numbers = np.random.default_rng(seed + 1)
    dtype = arrays[wrt[0]].dtype
    seeds = {f"{name}.grad": numbers.standard_normal(results[name].shape).astype(dtype) for name in of}
    check(adjoint, {**arrays, **seeds})


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_and_their_adjoints(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, monkeypatch)


# -- values that are no numbers: where the interpreter has them, and nowhere else

PLACES = {
    "product": ("Y[i,j] += A[i,k] * B[k,j]", {"A": (17, 33), "B": (33, 19)}),
    "lower_triangle": ("Y[i,j] += A[i,k] * B[k,j] if j <= i", {"A": (17, 9), "B": (9, 17)}),
    "bounded_sum": ("Y[i,j] += A[i,k] * B[k,j] if k >= i - 2", {"A": (17, 33), "B": (33, 17)}),
    "two_guards": ("Y[i,j] += A[i,k] * B[k,j] if k <= i and j != k", {"A": (17, 33), "B": (33, 17)}),
    "extremes": (
        "m[i] max= A[i,k]\nn[k] min= A[i,k]\nq max= A[i,k]\np argmax= A[i,k]\nr[i] argmin= A[i,k] if k <= i",
        {"A": (17, 33)},
    ),
    "products": ("m[i] *= A[i,k]\nq *= A[i,k]", {"A": (17, 33)}),
    "softmax": (
        "M[i] max= A[i,k]\nE[i,k] = exp(A[i,k] - M[i])\nZ[i] += E[i,k]\nP[i,k] = E[i,k] / Z[i]\n"
        "O[i,j] += P[i,k] * B[k,j]\nreturn O, P",
        {"A": (17, 33), "B": (33, 9)},
    ),
    "causal_attention": (
        "S[i,k] += Q[i,d] * K[k,d] if k <= i\nM[i] max= S[i,k] if k <= i\nE[i,k] = exp(S[i,k] - M[i]) if k <= i\n"
        "Z[i] += E[i,k]\nO[i,j] += E[i,k] * V[k,j] / Z[i]\nreturn O, M, Z",
        {"Q": (17, 8), "K": (17, 8), "V": (17, 9)},
    ),
    "conditions": (
        "Y[i] = X[i-1] if i > 0 else 0\nZ[i] += 2 * X[i] if X[i] > 0\nU[i] = max(X[i], 0.5)\nV[i] = 0 * X[i]",
        {"X": (33,)},
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_number_stands_in_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "threads", lambda: 2)
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    text, shapes = PLACES[name]
    program = ts.program(text)
    for seed, values in enumerate([(np.nan,), (np.inf, -np.inf), (np.nan, np.inf, 0.0, -0.0)]):
        numbers = np.random.default_rng(seed)
        arrays = {k: numbers.standard_normal(shape) for k, shape in shapes.items()}
        for array in arrays.values():
            array.reshape(-1)[numbers.integers(0, array.size, len(values))] = values
        check(program, arrays)


# -- arrays of every kind

CLASSES = {
    "columns_first": np.asfortranarray,
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "one_row": lambda a: np.broadcast_to(a[:1], a.shape),
    "bytes_swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "single": lambda a: a.astype(np.float32),
    "small_integers": lambda a: np.round(a).astype(np.int8),
    "without_sign": lambda a: np.abs(np.round(a)).astype(np.uint16),
    "truths": lambda a: a > 0,
    "list": lambda a: a.tolist(),
    "odd_address": lambda a: odd_address(a),
    "no_rows": lambda a: a[:0],
    "no_columns": lambda a: a[:, :0],
}


def odd_address(array: np.ndarray) -> np.ndarray:
    room = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    room[...] = array
    return room


@pytest.mark.parametrize("kind", CLASSES)
def test_arrays_of_every_kind(kind: str) -> None:
    """The same as the interpreter makes of them; they stay as they are, and no result is a view of them."""
    program = ts.program("Y[i,j] += A[i,k] * B[j,k]\nm[k] max= A[i,k]\nC[k,i] = A[i,k]\ns += A[i,k]")
    A = np.random.default_rng(1).standard_normal((18, 11)) * 3
    given: Any = CLASSES[kind](A)
    if isinstance(given, np.ndarray):
        given.flags.writeable = False
    B = np.asarray(given)
    for _ in range(2):  # the second call skips what the first one checked
        check(program, {"A": given, "B": B})
    update = ts.program("W[i,k] = W[i,k] - rate * A[i,k] if k <= i")
    check(update, {"W": B, "A": B, "rate": 0.5})


@pytest.mark.parametrize(
    "numbers",
    [(1, 2, 3), (1.5, 2, True), (np.float32(1.5), 2, 0.5), (np.array(2, np.float32), 1.0, 1), (np.int8(100), 100, 2)],
)
def test_plain_numbers(numbers: tuple[Any, ...]) -> None:
    program = ts.program("y = a * b + tanh(c)\nz = a\nw[i] = a * i\nreturn y, z, w")
    check(program, {**dict(zip("abc", numbers, strict=True)), "i": 3})


# -- how many kernels

LAYERS = """
H[0,b,i] = X[b,i]
for l:
    Z[l,b,o] += H[l,b,i] * W[l,o,i]
    H[l+1,b,o] = tanh(Z[l,b,o])
loss += (H[size(l),b,i] - T[b,i]) ** 2
"""


def kernels(program: Program) -> int:
    """How many kernels the last call with a new signature has made."""
    last = list(program._caller.prepared.values())[-1].plans
    assert last is not None
    return len(last.executable.kernels)


def test_depth_costs_no_kernels() -> None:
    program = ts.program(LAYERS).grad(of="loss", wrt=["W"])
    numbers = np.random.default_rng(1)
    found = []
    for depth in (2, 24):
        shapes = {"X": (64, 16), "W": (depth, 16, 16), "T": (64, 16)}
        check(program, {k: numbers.standard_normal(shape) / 4 for k, shape in shapes.items()})
        found.append(kernels(program))
    assert found[1] <= found[0]


def test_another_batch_compiles_nothing() -> None:
    from tensorswap.run.known_code import kernels

    model = ts.program(
        "H[b,h] += X[b,i] * W[h,i]\nR[b,h] = relu(H[b,h])\nS[b,o] += R[b,h] * V[o,h]\nM[b] max= S[b,o]\n"
        "E[b,o] = exp(S[b,o] - stop(M[b]))\nN[b] += E[b,o]\nloss += log(N[b]) + M[b] - S[b,t[b]]"
    )
    program = model.grad(of="loss", wrt=["W", "V"])
    numbers = np.random.default_rng(1)
    for batch in (64, 48):
        before = len(kernels)
        shapes = {"X": (batch, 9), "W": (17, 9), "V": (5, 17)}
        arrays = {k: numbers.standard_normal(shape) for k, shape in shapes.items()}
        check(program, {**arrays, "t": numbers.integers(0, 5, batch)})
    assert len(kernels) == before


@pytest.mark.parametrize(
    "text",
    [
        "q += A[i] * B[i] * C[j] * D[j] * E[k]",
        "q[k] += A[i] * B[i] * C[j] * D[j] * E[k]",
        "q += A[i] * B[j] * C[k] * D[l] * E[n]",
        "q += A[i,j] * B[i,j] * C[k,l] * D[k,l] * E[m,n]",
    ],
)
def test_products_of_numbers_that_were_added_up(text: str) -> None:
    program = ts.program(text)
    axes = 2 if "[i,j]" in text else 1
    arrays = {name: np.arange(1.0, 1.0 + 3**axes).reshape((3,) * axes) for name in "ABCDE"}
    np.testing.assert_allclose(program(arrays), program.run_reference(arrays), rtol=1e-12)
