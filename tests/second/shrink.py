"""A failing program made small: statements, guards, factors and points go while the same check still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tests.second.arrays import Axis
from tests.second.parse import Block, Definition, Item, Node, Return, Statement, parse, render
from tests.second.write import Sample

Check = Callable[[Sample], str | None]  # the kind of failure, None where all is well or the program is no longer one


def shrink(sample: Sample, check: Check, seconds: float = 60.0) -> Sample:
    """The smallest program found in that time that fails as this one does."""
    end = time.monotonic() + seconds
    kind = check(sample)
    if kind is None:  # it fails in a way that the plain loops cannot follow
        return sample
    going = True
    while going and time.monotonic() < end:
        going = False
        for candidate in _candidates(sample):
            if time.monotonic() > end:
                break
            if check(candidate) == kind:
                sample, going = candidate, True
                break
    return _trimmed(sample)


def _trimmed(sample: Sample) -> Sample:
    words = set(
        sample.text.replace("[", " ").replace("]", " ").replace(",", " ").replace("(", " ").replace(")", " ").split()
    )
    kept = {name: value for name, value in sample.arguments.items() if name in words}
    return replace(sample, arguments=kept)


def _candidates(sample: Sample) -> Iterator[Sample]:
    items = parse(sample.text)
    for smaller in _items(items):
        yield _with(sample, smaller)
    for index, size in sample.sizes.items():
        for less in {1, size // 2, size - 1}:
            if 0 < less < size:
                yield _narrow(sample, index, less)


def _with(sample: Sample, items: tuple[Item, ...]) -> Sample:
    text = render(items)
    made = replace(sample, text=text)
    words = set(_names(text))
    return replace(
        made,
        arguments={name: value for name, value in sample.arguments.items() if name in words},
        keywords={name: value for name, value in sample.keywords.items() if name in words},
        wrt=tuple(name for name in sample.wrt if name in words),
    )


def _names(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


def _narrow(sample: Sample, index: str, size: int) -> Sample:
    axes = {
        name: tuple(Axis(size, axis.index) if axis.index == index else axis for axis in owned)
        for name, owned in sample.axes.items()
    }
    arguments = dict(sample.arguments)
    for name, owned in sample.axes.items():
        if name in arguments and isinstance(arguments[name], np.ndarray):
            lead = (slice(None),) * (arguments[name].ndim - len(owned))
            cut = tuple(slice(0, size) if axis.index == index else slice(None) for axis in owned)
            arguments[name] = arguments[name][lead + cut]
    shapes = {
        name: shape[: len(shape) - len(axes[name])] + tuple(axis.extent for axis in axes[name])
        if name in axes
        else shape
        for name, shape in sample.shapes.items()
    }
    text = sample.text.replace(f"size({index}) = {sample.sizes[index]}\n", f"size({index}) = {size}\n")
    keywords = {name: size if name == index else value for name, value in sample.keywords.items()}
    sizes = {**sample.sizes, index: size}
    return replace(sample, text=text, arguments=arguments, shapes=shapes, keywords=keywords, axes=axes, sizes=sizes)


def _items(items: tuple[Item, ...]) -> Iterator[tuple[Item, ...]]:
    for number, item in enumerate(items):
        before, after = items[:number], items[number + 1 :]
        if len(items) > 1:
            yield (*before, *after)
        for smaller in _item(item):
            yield (*before, *smaller, *after)


def _item(item: Item) -> Iterator[tuple[Item, ...]]:
    if isinstance(item, Block | Definition):
        for body in _items(item.body):
            yield (replace(item, body=body),)
    elif isinstance(item, Return):
        for name in item.names if len(item.names) > 1 else ():
            yield (Return(tuple(other for other in item.names if other != name)),)
    elif isinstance(item, Statement):
        if item.guard is not None:
            yield (replace(item, guard=None),)
            for node in _nodes(item.guard, number=False):
                yield (replace(item, guard=node),)
        for node in _nodes(item.value):
            yield (replace(item, value=node),)


def _nodes(node: Node, number: bool = True) -> Iterator[Node]:
    """The node with one thing less."""
    if node[0] in ("access", "name", "size", "num", "inside", "batch"):
        if node[0] == "access":
            for at, place in enumerate(node[2:], 2):
                if place[0] not in ("name", "num", "batch"):
                    yield (*node[:at], ("num", 0), *node[at + 1 :])
        return
    children = [(at, child) for at, child in enumerate(node) if isinstance(child, tuple)]
    for _, child in children:
        if node[0] != "cmp":
            yield child
    for at, child in children:
        for smaller in _nodes(child):
            yield (*node[:at], smaller, *node[at + 1 :])
