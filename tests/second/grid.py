"""The tree of a program in JAX: each statement on the whole grid of its points, with masks for guards and branches.

jax.vjp of it is an adjoint that shares nothing with the rules of the library. What it cannot say is `Unsuited`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.second.evaluate import INTEGRAL, Scope, Unsuited, family, order_of, prepared, spread
from tests.second.parse import Block, Call, Item, Node, Statement
from tests.second.write import Sample

jax.config.update("jax_enable_x64", True)
FUNCTIONS: dict[str, Any] = {
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": jnp.arctan,
    "atan2": jnp.arctan2,
    "hypot": lambda a, b: jnp.sqrt(a * a + b * b),
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "erf": jax.scipy.special.erf,
    "relu": lambda x: jnp.where(x > 0, x, 0),
    "abs": lambda x: jnp.where(x >= 0, x, -x),
    "sign": lambda x: jax.lax.stop_gradient(jnp.sign(x)),
    "floor": lambda x: jnp.floor(x) if x.dtype.kind == "f" else x,
    "ceil": lambda x: jnp.ceil(x) if x.dtype.kind == "f" else x,
    "round": lambda x: jnp.round(x) if x.dtype.kind == "f" else x,
    "stop": jax.lax.stop_gradient,
    "pow": jnp.power,
    "where": lambda c, a, b: jnp.where(c, a, b),
    **{
        name: getattr(jnp, name)
        for name in ["sqrt", "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
    },
}


def adjoint(
    sample: Sample, call: dict[str, Any], wrt: list[str], of: list[str], seeds: dict[str, Any]
) -> dict[str, np.ndarray]:
    """X.grad of each name in `wrt`, by JAX."""

    def forward(inputs: dict[str, Any]) -> dict[str, Any]:
        values = run(sample, {**call, **inputs}, call)
        return {name: values[name] for name in of}

    @jax.jit  # one compilation for the program instead of one for every operation
    def backward(inputs: dict[str, Any], given: dict[str, Any]) -> Any:
        return jax.vjp(forward, inputs)[1](given)[0]

    inputs = {name: jnp.asarray(call[name], jnp.float64) for name in wrt}
    gradients = backward(inputs, {name: jnp.asarray(seeds[f"{name}.grad"]) for name in of})
    return {name: np.asarray(value) for name, value in gradients.items()}


def run(sample: Sample, call: dict[str, Any], concrete: dict[str, Any]) -> dict[str, Any]:
    items, scope = prepared(
        sample.text, {n: concrete[n] for n in sample.arguments}, sample.sizes, sample.shapes, sample.batch
    )
    if any(tensor.kind == "unknown" for tensor in scope.tensors.values()):
        raise Unsuited("a call, whose results have no type before it has run")
    values: dict[str, Any] = {}
    for name, tensor in scope.tensors.items():
        if tensor.written:
            kind = jnp.float64 if family(tensor.kind) == "float" else jnp.bool_ if tensor.kind == "bool" else jnp.int64
            values[name] = jnp.asarray(tensor.array(), kind)
        else:
            value = jnp.asarray(call[name] if name in call else tensor.array())
            values[name] = value.astype(jnp.float64) if value.dtype.kind == "f" else value.astype(jnp.int64)
    _items(items, scope, values)
    return values


def _items(items: tuple[Item, ...], scope: Scope, values: dict[str, Any]) -> None:
    for item in items:
        if isinstance(item, Statement):
            _statement(item, scope, values)
        elif isinstance(item, Block):
            steps = range(scope.sizes[item.index])
            for step in reversed(steps) if item.down else steps:
                scope.steps[item.index] = step
                _items(item.body, scope, values)
            scope.steps.pop(item.index, None)
        elif isinstance(item, Call):
            raise Unsuited("a call")


def _statement(item: Statement, scope: Scope, values: dict[str, Any]) -> None:
    name, operator = item.target[1], item.operator
    places = spread(item.target[2:], scope)
    indices = order_of(item, scope)
    bare = [place[1] for place in places if place[0] == "name" and place[1] in indices]
    indices = [index for index in indices if index in bare] + [index for index in indices if index not in bare]
    shape = tuple(scope.sizes[index] for index in indices)
    grid = {
        index: jnp.arange(size).reshape([-1 if axis == number else 1 for axis in range(len(shape))])
        for number, (index, size) in enumerate(zip(indices, shape, strict=True))
    }
    bounds: list[Any] = []
    value = jnp.broadcast_to(_value(item.value, scope, values, grid, bounds), shape)
    mask = jnp.asarray(True)
    if item.guard is not None:
        mask = _truth(_value(item.guard, scope, values, grid, bounds))
        if any(node == ("inside",) for node in _all(item.guard)):
            for bound in bounds:
                mask = mask & bound
    mask = jnp.broadcast_to(mask, shape)
    target = values[name]
    where = [jnp.broadcast_to(_value(place, scope, values, grid, []), shape) for place in places]
    for place, extent in zip(where, target.shape, strict=True):
        mask = mask & (place >= 0) & (place < extent)
    if operator in ("=", "+=", "-="):
        if target.dtype.kind == "f":
            value = value.astype(jnp.float64)
        if not places:
            kept = jnp.sum(jnp.where(mask, value, 0))
            values[name] = (
                jnp.where(mask, value, target)
                if operator == "="
                else target + kept
                if operator == "+="
                else target - kept
            )
            return
        where[0] = jnp.where(mask, where[0], target.shape[0])
        at = target.at[tuple(where)]
        kept = jnp.where(mask, value, 0)
        values[name] = (
            at.set(kept, mode="drop") if operator == "=" else at.add(kept if operator == "+=" else -kept, mode="drop")
        )
        return
    if operator.startswith("arg"):
        raise Unsuited("argmax has no derivative, and its position may be read")
    if len(bare) != len(places) or len(set(bare)) != len(bare):
        raise Unsuited("a scatter of products or extremes")
    own = tuple(scope.sizes[index] for index in indices[: len(set(bare))])
    rest = int(np.prod(shape[len(own) :], dtype=np.int64))
    flat_value, flat_mask = value.reshape((*own, rest)), mask.reshape((*own, rest))
    turn = [indices.index(index) for index in bare]  # the grid has them as they appear, the target as it names them
    if operator == "*=":
        made = jnp.prod(jnp.where(flat_mask, flat_value, 1), axis=-1)
        values[name] = target * jnp.transpose(made, turn)
        return
    sign = 1 if operator == "max=" else -1
    keys = jnp.where(flat_mask, sign * jax.lax.stop_gradient(flat_value.astype(jnp.float64)), -jnp.inf)
    if rest == 0:
        return
    first = jnp.argmax(keys, axis=-1, keepdims=True)
    found = jnp.take_along_axis(flat_mask, first, -1)[..., 0]
    best = jnp.transpose(jnp.take_along_axis(flat_value, first, -1)[..., 0], turn)
    found = jnp.transpose(found, turn)
    keep = sign * target >= sign * best
    values[name] = jnp.where(found & ~keep, best, target)


def _all(node: Node) -> list[Node]:
    found = [node]
    for child in node[1:]:
        if isinstance(child, tuple):
            found += _all(child)
    return found


def _truth(value: Any) -> Any:
    return value if value.dtype == jnp.bool_ else value != 0


def _value(node: Node, scope: Scope, values: dict[str, Any], grid: dict[str, Any], bounds: list[Any]) -> Any:
    def go(child: Node) -> Any:
        return jnp.asarray(_value(child, scope, values, grid, bounds))

    match node:
        case ("num", value):
            return jnp.asarray(value)
        case ("inside",):
            return jnp.asarray(True)
        case ("name", name):
            return (
                grid[name] if name in grid else jnp.asarray(scope.steps[name]) if name in scope.steps else values[name]
            )
        case ("size", name, axis):
            return jnp.asarray(scope.sizes[name] if axis is None else scope.tensors[name].shape[axis])
        case ("access", name, *places):
            whole = values[name]
            where = []
            for place, extent in zip(spread(tuple(places), scope), whole.shape, strict=True):
                position = go(place)
                bounds.append((position >= 0) & (position < extent))
                where.append(jnp.clip(position, 0, max(extent - 1, 0)))
            if 0 in whole.shape:
                return jnp.zeros(jnp.broadcast_shapes(*(place.shape for place in where)), whole.dtype)
            return whole[tuple(jnp.broadcast_arrays(*where))] if where else whole
        case ("neg", inner):
            return -_number(go(inner))
        case ("not", inner):
            return ~_truth(go(inner))
        case ("and", left, right):
            return _truth(go(left)) & _truth(go(right))
        case ("or", left, right):
            return _truth(go(left)) | _truth(go(right))
        case ("cond", value, condition, other):
            taken = _truth(go(condition))
            branches = []
            for branch, untaken in ((value, ~taken), (other, taken)):
                start = len(bounds)
                branches.append(_number(go(branch)))
                bounds[start:] = [bound | untaken for bound in bounds[start:]]  # a point evaluates one of them
            return jnp.where(taken, *branches)
        case ("cmp", operator, left, right):
            a, b = go(left), go(right)
            return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[operator]
        case ("bin", operator, left, right):
            return _binary(operator, _number(go(left)), _number(go(right)), right)
        case ("call", "max", *arguments):
            return _fold(arguments, go, lambda a, b: jnp.where(a >= b, a, b))
        case ("call", "min", *arguments):
            return _fold(arguments, go, lambda a, b: jnp.where(a <= b, a, b))
        case ("call", name, *arguments):
            numbers = [_number(go(argument)) for argument in arguments]
            if name not in INTEGRAL:  # some of JAX's own take no whole numbers
                numbers = [n if n.dtype.kind == "f" else n.astype(jnp.float64) for n in numbers]
            return FUNCTIONS[name](*numbers)
    raise Unsuited(f"{node[0]} in JAX")


def _fold(arguments: list[Node], go: Any, choose: Any) -> Any:
    whole = _number(go(arguments[0]))
    for argument in arguments[1:]:
        whole = choose(whole, _number(go(argument)))
    return whole


def _number(value: Any) -> Any:
    return value.astype(jnp.int64) if value.dtype == jnp.bool_ else value


def _binary(operator: str, a: Any, b: Any, right: Node) -> Any:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if operator == "/":
        return a / b
    if operator == "//":
        return jnp.floor_divide(a, b) if a.dtype.kind == b.dtype.kind == "i" else jnp.floor(a / b)
    if operator == "%":
        return jnp.mod(a, b) if a.dtype.kind == b.dtype.kind == "i" else a - b * jnp.floor(a / b)
    return a ** right[1] if right[0] == "num" else jnp.power(a, b)
