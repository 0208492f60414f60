"""A program's text evaluated point by point with Python numbers: the language page, and no line of the library.

Floating point is computed in float64 and integers without limit; `Notes` says what a machine of fewer bits may see
otherwise: comparisons of nearly equal computed values, values that are not finite.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.second.parse import (
    Block,
    Call,
    Definition,
    Item,
    Node,
    Return,
    Size,
    Statement,
    Static,
    nodes,
    parse,
    statements,
)

LIMIT = 2**53  # integers beyond are left to other tests
IDENTITY = {"=": 0, "+=": 0, "-=": 0, "*=": 1, "max=": -math.inf, "min=": math.inf, "argmax=": -1, "argmin=": -1}


class Outside(Exception):
    """An access beyond its axis."""


class Unsuited(Exception):
    """A program that this evaluator leaves alone, such as one whose integers grow beyond all types."""


@dataclass
class Notes:
    fragile: bool = False  # a comparison or a rounding that a little noise would turn
    wild: bool = False  # a value that is not finite
    cancelled: bool = False  # a sum whose terms all but cancel: what is left is rounding, whatever reads it
    scale: dict[str, float] = field(default_factory=dict)  # of each tensor the largest term that went into it

    def room(self, name: str) -> float:
        """The size of what a tensor's rounding is measured by."""
        return max(self.scale.values(), default=0.0) if self.cancelled else self.scale.get(name, 0.0)


class Tensor:
    def __init__(self, shape: tuple[int, ...], kind: str, fill: Any = 0, written: bool = True) -> None:
        self.shape, self.kind, self.written = shape, kind, written
        self.data: list[Any] = [fill] * math.prod(shape)

    @classmethod
    def of(cls, value: Any) -> Tensor:
        array = np.asarray(value)
        made = cls(array.shape, kind_of(value), written=False)
        made.data = array.ravel().tolist()
        return made

    def place(self, places: tuple[int, ...]) -> int:
        offset = 0
        for place, extent in zip(places, self.shape, strict=True):
            if not 0 <= place < extent:
                raise Outside(f"{place} of {extent}")
            offset = offset * extent + place
        return offset

    def __call__(self, *places: int) -> Any:
        return self.data[self.place(places)]

    def array(self) -> np.ndarray:
        kinds = {"float": np.float64, "bool": np.bool_, "int": np.int64}
        return np.array(self.data, dtype=kinds[family(self.kind)]).reshape(self.shape)


def kind_of(value: Any) -> str:
    """The type of an argument; plain numbers are weak, they take the type of what they meet."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "weak int"
    return "weak float" if isinstance(value, float) else str(np.asarray(value).dtype)


def family(kind: str) -> str:
    return "bool" if kind == "bool" else "float" if "float" in kind else "int"


@dataclass
class Scope:
    tensors: dict[str, Tensor]
    sizes: dict[str, int]
    batch: tuple[int, ...]
    notes: Notes
    shapes: dict[str, tuple[int, ...]]
    definitions: dict[str, Definition]
    extents: dict[tuple[str, int], int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    best: dict[str, list[Any]] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)  # the block indices' present values


def evaluate(
    text: str,
    arguments: dict[str, Any],
    sizes: dict[str, int],
    shapes: dict[str, tuple[int, ...]],
    batch: tuple[int, ...] = (),
) -> tuple[dict[str, Tensor], Notes]:
    """Every tensor of the program when it ends."""
    items, scope = prepared(text, arguments, sizes, shapes, batch)
    _run(items, scope)
    return scope.tensors, scope.notes


def prepared(
    text: str,
    arguments: dict[str, Any],
    sizes: dict[str, int],
    shapes: dict[str, tuple[int, ...]],
    batch: tuple[int, ...],
) -> tuple[tuple[Item, ...], Scope]:
    """The tree, and all tensors before its first statement."""
    items = parse(text)
    definitions = {item.name: item for item in items if isinstance(item, Definition)}
    tensors = {name: Tensor.of(value) for name, value in arguments.items()}
    scope = Scope(tensors, dict(sizes), batch, Notes(), shapes, definitions)
    for item in items:
        if isinstance(item, Static) and item.name not in tensors:
            assert item.default is not None
            tensors[item.name] = Tensor.of(item.default)
    _prepare(items, scope)
    return items, scope


def _prepare(items: tuple[Item, ...], scope: Scope) -> None:
    """Sizes from bare uses on inputs and from declarations; then an empty tensor for each that is written."""
    for node in nodes(items):
        if node[0] == "access" and node[1] in scope.tensors:
            shape = scope.tensors[node[1]].shape
            for place, extent in zip(spread(node[2:], scope), shape, strict=True):
                if place[0] == "name" and scope.sizes.setdefault(place[1], extent) != extent:
                    raise Unsuited(f"{place[1]} has two sizes")
    for item in items:
        if isinstance(item, Size):
            value = _function(item.value, scope)()
            if item.of[2] is None:
                if scope.sizes.setdefault(item.of[1], value) != value:
                    raise Unsuited(f"{item.of[1]} has two sizes")
            else:
                scope.extents[item.of[1], item.of[2]] = value
    _types(items, scope)


def _types(items: tuple[Item, ...], scope: Scope) -> None:
    for _ in range(4):  # they go around in a block whose tensors read each other
        for item in statements(items):
            if isinstance(item, Statement):
                _make(item, scope)


def _make(item: Statement, scope: Scope) -> None:
    name = item.target[1]
    present = scope.tensors.get(name)
    kind = "int64" if item.operator.startswith("arg") else kind_after(item, scope)
    if present is not None:
        if present.written:
            present.kind = kind if present.kind == "unknown" else join(present.kind, kind)
            if present.kind != "unknown" and None in present.data:
                present.data = [identity(item.operator, present.kind)] * len(present.data)
        return
    shape = []
    for axis, place in enumerate(spread(item.target[2:], scope)):
        extent = scope.extents.get((name, axis))
        if extent is None and place[0] == "name":
            extent = scope.sizes[place[1]]
        if extent is None:
            extent = scope.shapes[name][axis]
        shape.append(extent)
    scope.tensors[name] = Tensor(tuple(shape), kind, None if kind == "unknown" else identity(item.operator, kind))


def identity(operator: str, kind: str) -> Any:
    fill: Any = IDENTITY[operator]
    if family(kind) == "int" and isinstance(fill, float):
        limits = np.iinfo(kind) if "weak" not in kind else np.iinfo(np.int64)
        return int(limits.min if fill < 0 else limits.max)
    return fill


def spread(places: tuple[Node, ...], scope: Scope) -> list[Node]:
    """`...` written out as the hidden indices ...0, ...1."""
    spread: list[Node] = []
    for place in places:
        if place == ("batch",):
            for axis, extent in enumerate(scope.batch):
                scope.sizes[f"...{axis}"] = extent
                spread.append(("name", f"...{axis}"))
        else:
            spread.append(place)
    return spread


def _run(items: tuple[Item, ...], scope: Scope) -> None:
    for item in items:
        if isinstance(item, Statement):
            _statement(item, scope)
        elif isinstance(item, Block):
            steps = range(scope.sizes[item.index])
            for step in reversed(steps) if item.down else steps:
                scope.steps[item.index] = step
                _run(item.body, scope)
            scope.steps.pop(item.index, None)
        elif isinstance(item, Call):
            _call(item, scope)
            _types(items, scope)
        else:
            assert isinstance(item, Size | Static | Definition | Return)


def _call(item: Call, scope: Scope) -> None:
    definition = scope.definitions[item.name]
    tensors: dict[str, Tensor] = {}
    given = dict(zip([access[1] for access, _, _ in definition.parameters], item.arguments, strict=False))
    given.update(dict(item.keywords))
    for access, default, _ in definition.parameters:
        name = access[1]
        if name not in given:
            assert default is not None
            assert access[0] == "name"
            tensors[name] = Tensor.of(_function(default, scope)())
        elif access[0] == "name":
            tensors[name] = Tensor.of(_function(given[name], scope)())
            tensors[name].kind = kind_of_node(given[name], scope)
        else:
            tensors[name] = _view(given[name], scope)
    batch: tuple[int, ...] = ()
    for access, _, _ in definition.parameters:
        if access[0] == "access" and ("batch",) in access[2:]:
            batch = tensors[access[1]].shape[: len(tensors[access[1]].shape) - len(access) + 3]
    inner = Scope(tensors, {}, batch, scope.notes, {}, scope.definitions)
    for access, _, _ in definition.parameters:
        if access[0] == "access":
            for place, extent in zip(spread(access[2:], inner), tensors[access[1]].shape, strict=True):
                assert inner.sizes.setdefault(place[1], extent) == extent
    _prepare(definition.body, inner)
    _run(definition.body, inner)
    for target, output in zip(item.targets, definition.outputs, strict=True):
        made = inner.tensors[output[1]]
        places = tuple(_function(place, scope)() for place in target[2:])
        if not places:
            scope.tensors[target[1]] = made
            continue
        whole = scope.tensors.setdefault(target[1], Tensor(scope.shapes[target[1]], made.kind))
        for inside in itertools.product(*map(range, made.shape)):
            whole.data[whole.place(places + inside)] = made(*inside)


def _view(argument: Node, scope: Scope) -> Tensor:
    whole = scope.tensors[argument[1]]
    places = tuple(_function(place, scope)() for place in argument[2:])
    part = Tensor(whole.shape[len(places) :], whole.kind, written=False)
    part.data = [whole(*places, *rest) for rest in itertools.product(*map(range, part.shape))]
    return part


def order_of(item: Statement, scope: Scope) -> list[str]:
    """The statement's indices as they first appear in its text, without those of the blocks around it."""
    names: list[str] = []
    for node in nodes((item,)):
        for place in spread((node,), scope):  # `...` is several
            if (
                place[0] == "name"
                and place[1] in scope.sizes
                and place[1] not in names
                and place[1] not in scope.tensors
            ):
                names.append(place[1])
    return [name for name in names if name not in scope.steps]


def _statement(item: Statement, scope: Scope) -> None:
    indices = order_of(item, scope)
    operator, target = item.operator, scope.tensors[item.target[1]]
    places = [_function(place, scope, indices) for place in spread(item.target[2:], scope)]
    conditions, inside = _conditions(item.guard)
    guards = [_function(condition, scope, indices) for condition in conditions]
    value = _function(item.value, scope, indices)
    bare = {place[1] for place in item.target[2:] if place[0] == "name"} | {
        place[1] for place in spread(item.target[2:], scope) if place[0] == "name"
    }
    counted = [index not in bare for index in indices]
    start = scope.counts.get(item.target[1], 0)
    extent = math.prod(scope.sizes[index] for index, counts in zip(indices, counted, strict=True) if counts)
    found: list[tuple[int, Any, int]] = []
    for point in itertools.product(*(range(scope.sizes[index]) for index in indices)):
        try:
            if inside:
                where = tuple(place(*point) for place in places)
                offset = target.place(where)
                if not all(guard(*point) for guard in guards):
                    continue
            else:
                if not all(guard(*point) for guard in guards):
                    continue
                offset = target.place(tuple(place(*point) for place in places))
            result = value(*point)
        except Outside:
            if inside:
                continue
            raise
        position = 0
        if operator.startswith("arg"):
            for index, place, counts in zip(indices, point, counted, strict=True):
                if counts:
                    position = position * scope.sizes[index] + place
        found.append((offset, result, start + position))
    _store(item, target, found, scope)
    if operator.startswith("arg"):
        scope.counts[item.target[1]] = start + extent


def _store(item: Statement, target: Tensor, found: list[tuple[int, Any, int]], scope: Scope) -> None:
    notes, operator, data = scope.notes, item.operator, target.data
    largest = notes.scale.get(item.target[1], 0.0)
    met: set[int] = set()
    best = scope.best.setdefault(item.target[1], [None] * len(data)) if operator.startswith("arg") else []
    for offset, result, position in found:
        if isinstance(result, float) and not math.isfinite(result):
            notes.wild = True
        else:
            largest = max(largest, abs(result))
        if operator == "=":
            if offset in met:
                raise Unsuited("= meets an element twice")
            met.add(offset)
            data[offset] = result
        elif operator == "+=":
            data[offset] = data[offset] + result
        elif operator == "-=":
            data[offset] = data[offset] - result
        elif operator == "*=":
            data[offset] = data[offset] * result
        elif operator == "max=":
            data[offset] = _maximum(data[offset], result)
        elif operator == "min=":
            data[offset] = _minimum(data[offset], result)
        else:
            present = best[offset]
            wins = present is None or (not _nan(present) and (_nan(result) or _beats(operator, result, present, notes)))
            if wins:
                best[offset], data[offset] = result, position
        if isinstance(data[offset], int) and operator not in ("max=", "min=") and abs(data[offset]) > LIMIT:
            raise Unsuited("an integer beyond 2**53")
    notes.scale[item.target[1]] = largest
    if family(target.kind) == "float":
        for offset, _, _ in found:
            data[offset] = float(data[offset])
            if not math.isfinite(data[offset]):
                notes.wild = True
            elif abs(data[offset]) < 1e-9 * largest and operator in ("+=", "-="):
                notes.cancelled = True


def _beats(operator: str, result: Any, present: Any, notes: Notes) -> bool:
    if (isinstance(result, float) or isinstance(present, float)) and result != present and _close(result, present):
        notes.fragile = True
    return bool(result > present if operator == "argmax=" else result < present)


def _nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= 1e-5 * max(1.0, abs(a), abs(b))) if math.isfinite(a) and math.isfinite(b) else False


def _maximum(*values: Any) -> Any:
    return math.nan if any(map(_nan, values)) else max(values)


def _minimum(*values: Any) -> Any:
    return math.nan if any(map(_nan, values)) else min(values)


def _conditions(guard: Node | None) -> tuple[list[Node], bool]:
    if guard is None:
        return [], False
    if guard[0] == "and":
        left, right = _conditions(guard[1]), _conditions(guard[2])
        return left[0] + right[0], left[1] or right[1]
    return ([], True) if guard == ("inside",) else ([guard], False)


def _function(node: Node, scope: Scope, indices: list[str] | None = None) -> Callable[..., Any]:
    """A node as a Python function of the statement's indices."""
    names = {index: f"v{number}" for number, index in enumerate(indices or [])}
    world: dict[str, Any] = {**_world(scope.notes), "tensors": scope.tensors, "steps": scope.steps}
    source = f"lambda {', '.join(names.values())}: {_source(node, scope, names, world)}"
    made: Callable[..., Any] = eval(source, world)  # made of names and numbers of this file only
    return made


def _raw(node: Node, scope: Scope) -> bool:
    """Whether a value stands as it came, so that no rounding is in it."""
    if node[0] == "access":
        return not scope.tensors[node[1]].written
    return node[0] in ("num", "size", "name") or (node[0] == "neg" and _raw(node[1], scope))


def _source(node: Node, scope: Scope, names: dict[str, str], world: dict[str, Any]) -> str:
    def go(child: Node) -> str:
        return _source(child, scope, names, world)

    match node:
        case ("num", value):
            return f"({value!r})" if value != math.inf else "inf"
        case ("name", name):
            if name in names:
                return names[name]
            if name in scope.steps:
                return f"steps[{name!r}]"
            return f"tensors[{name!r}]()"
        case ("size", name, axis):
            if name == "...":
                return str(math.prod(scope.batch))
            if axis is not None and name not in scope.tensors:
                return str(scope.shapes[name][axis])
            return str(scope.sizes[name] if axis is None else scope.tensors[name].shape[axis])
        case ("access", name, *places):
            return f"tensors[{name!r}]({', '.join(go(place) for place in spread(tuple(places), scope))})"
        case ("neg", inner):
            return f"(-{go(inner)})"
        case ("not", inner):
            return f"(not {go(inner)})"
        case ("and" | "or" as word, left, right):
            return f"bool({go(left)} {word} {go(right)})"
        case ("cond", value, condition, other):
            return f"({go(value)} if {go(condition)} else {go(other)})"
        case ("cmp", operator, left, right):
            if _raw(left, scope) and _raw(right, scope):
                return f"({go(left)} {operator} {go(right)})"
            return f"compare({operator!r}, {go(left)}, {go(right)})"
        case ("bin", "+" | "-" as operator, left, right):
            return f"({go(left)} {operator} {go(right)})"
        case ("bin", operator, left, right):
            word = {"*": "times", "/": "divide", "//": "floor_divide", "%": "modulo", "**": "power"}[operator]
            return f"{word}({go(left)}, {go(right)})"
        case ("call", "where", condition, value, other):
            return f"({go(value)} if {go(condition)} else {go(other)})"
        case ("call", name, *arguments):
            return f"f_{name}({', '.join(map(go, arguments))})"
    raise Unsuited(f"{node[0]} is not evaluated here")


def _world(notes: Notes) -> dict[str, Any]:
    def compare(operator: str, a: Any, b: Any) -> bool:
        if (isinstance(a, float) or isinstance(b, float)) and _close(a, b):
            notes.fragile = True
        return bool(
            {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[operator],
        )

    def times(a: Any, b: Any) -> Any:
        result = a * b
        if isinstance(result, int) and abs(result) > LIMIT:
            raise Unsuited("an integer beyond 2**53")
        return result

    def divide(a: Any, b: Any) -> float:
        a, b = float(a), float(b)
        if b == 0:
            notes.wild = True
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
        return a / b

    def edge(value: Any) -> None:
        if (
            isinstance(value, float)
            and math.isfinite(value)
            and abs(value - round(value)) < 1e-5 * max(1.0, abs(value))
        ):
            notes.fragile = notes.fragile or value != int(value) or abs(value) > 1e5
            notes.fragile = notes.fragile or value == int(value)

    def floor_divide(a: Any, b: Any) -> Any:
        if b == 0:
            raise Unsuited("floor division by 0")
        if isinstance(a, float) or isinstance(b, float):
            edge(a / b)
            return float(np.floor_divide(a, b))
        return a // b

    def modulo(a: Any, b: Any) -> Any:
        if b == 0:
            raise Unsuited("remainder by 0")
        if isinstance(a, float) or isinstance(b, float):
            edge(a / b)
            return float(np.mod(a, b))
        return a % b

    def power(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int) and b >= 0:
            return times(int(a) ** b, 1)
        with np.errstate(all="ignore"):
            return float(np.power(np.float64(a), np.float64(b)))

    def plain(function: Callable[..., Any]) -> Callable[..., float]:
        def call(*arguments: Any) -> float:
            with np.errstate(all="ignore"):
                result = float(function(*map(np.float64, arguments)))
            if not math.isfinite(result):
                notes.wild = True
            return result

        return call

    def rounding(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(value: Any) -> Any:
            if not isinstance(value, float):
                return int(value)
            edge(value if function is not np.round else value + 0.5)
            return float(function(value))

        return call

    def sign(value: Any) -> Any:
        if isinstance(value, float):
            if value != 0 and abs(value) < 1e-5:
                notes.fragile = True
            return float(np.sign(value))
        return (value > 0) - (value < 0)

    def sigmoid(x: float) -> Any:
        return 1 / (1 + np.exp(-x)) if x > -700 else np.exp(x)

    def gelu(x: float) -> Any:
        if x < -4:
            notes.cancelled = True  # 1 + erf(x) is what rounding leaves of it
        return x * 0.5 * math.erfc(-x / math.sqrt(2))

    world: dict[str, Any] = {
        "inf": math.inf,
        "compare": compare,
        "times": times,
        "divide": divide,
        "floor_divide": floor_divide,
        "modulo": modulo,
        "power": power,
        "f_pow": power,
        "f_abs": lambda value: abs(value),
        "f_stop": lambda value: value,
        "f_sign": sign,
        "f_relu": lambda value: _maximum(value, 0.0 if isinstance(value, float) else 0),
        "f_max": _maximum,
        "f_min": _minimum,
        "f_floor": rounding(np.floor),
        "f_ceil": rounding(np.ceil),
        "f_round": rounding(np.round),
        "f_sigmoid": plain(sigmoid),
        "f_silu": plain(lambda x: x * sigmoid(x)),
        "f_softplus": plain(lambda x: max(x, 0) + np.log1p(np.exp(-abs(x)))),
        "f_erf": plain(math.erf),
        "f_gelu": plain(gelu),
        "f_atan2": plain(np.arctan2),
        "f_hypot": plain(np.hypot),
        "f_asin": plain(np.arcsin),
        "f_acos": plain(np.arccos),
        "f_atan": plain(np.arctan),
    }
    for name in ["sqrt", "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"]:
        world[f"f_{name}"] = plain(getattr(np, name))
    return world


# Types, as the language page has them.

INTEGRAL = frozenset(["abs", "sign", "floor", "ceil", "round", "min", "max", "relu", "stop"])


def join(a: str, b: str) -> str:
    """The type where two values meet in one operation; "some float" where the page leaves 32 or 64 bits open."""
    if "unknown" in (a, b):
        return b if a == "unknown" else a
    if "some float" in (a, b):
        return "float64" if "float64" in (a, b) else "some float"
    if a == b and "float" in a:
        return a
    if "weak" in a and "weak" in b:
        return "weak float" if "float" in a + b else "weak int"
    if "float" in a and "float" in b:
        if "weak" in a or "weak" in b:
            return b if "weak" in a else a
        return "float64" if "64" in a + b else "float32"
    if "float" in a or "float" in b:
        floating, other = (a, b) if "float" in a else (b, a)
        if "weak" in floating:
            return "some float"
        if "weak" in other or other == "bool" or floating == "float64":
            return floating
        return "some float"
    return "int64" if (a, b) != ("bool", "bool") else "bool"


def kind_after(item: Statement, scope: Scope) -> str:
    kind = kind_of_node(item.value, scope)
    if kind == "unknown":
        return kind
    if kind == "weak float":
        return "some float"
    if item.operator in ("+=", "-=", "*=") and family(kind) != "float":
        return "int64"
    if kind == "weak int":
        return "int64"
    return kind


def kind_of_node(node: Node, scope: Scope) -> str:
    def go(child: Node) -> str:
        return kind_of_node(child, scope)

    def wide(kind: str) -> str:
        return kind if family(kind) == "float" or "weak" in kind or kind == "unknown" else "int64"

    match node:
        case ("num", value):
            return "weak int" if isinstance(value, int) else "weak float"
        case ("size", *_):
            return "weak int"
        case ("name", name):
            return (
                scope.tensors[name].kind if name in scope.tensors else "weak int" if name in scope.sizes else "unknown"
            )
        case ("access", name, *_):
            return scope.tensors[name].kind if name in scope.tensors else "unknown"
        case ("not" | "and" | "or" | "cmp", *_):
            return "bool"
        case ("neg", inner):
            return wide(go(inner))
        case ("cond", value, _, other) | ("call", "where", _, value, other):
            return join(go(value), go(other))
        case ("bin", "/", left, right):
            return floating(join(wide(go(left)), wide(go(right))))
        case ("bin", "**", left, right):
            whole = right[0] == "num" and isinstance(right[1], int)
            both = join(wide(go(left)), wide(go(right)))
            return both if whole or family(both) == "float" else "some float"
        case ("bin", _, left, right):
            return join(wide(go(left)), wide(go(right)))
        case ("call", name, *arguments):
            kind = wide(go(arguments[0]))
            for argument in arguments[1:]:
                kind = join(kind, wide(go(argument)))
            if name == "relu":
                kind = join(kind, "weak int")
            return kind if name in INTEGRAL else floating(kind)
    raise Unsuited(f"{node[0]} has no type here")


def floating(kind: str) -> str:
    return kind if "float" in kind or kind == "unknown" else "some float" if "weak" not in kind else "weak float"
