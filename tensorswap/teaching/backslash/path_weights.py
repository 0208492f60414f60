"""Path weights: the products of edge weights along all paths of a directed acyclic graph, added up.

Forward from the sources, backward from the sinks, or all at once as the inverse of I - W, where W[i, j] is the weight
of the edge from i to j. Weights are anything that multiplies and adds: numbers, or symbols.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, LimitError

Node = Hashable
Edge = tuple[Node, Node]

NODES = 2000  # of a graph: the matrix has as many rows


@dataclass(frozen=True)
class PathWeights:
    """The weights from each source to each sink, three times, and the multiplications that each way took."""

    sources: tuple[Node, ...]
    sinks: tuple[Node, ...]
    forward: dict[Edge, Any]
    backward: dict[Edge, Any]
    matrix: dict[Edge, Any]  # from every node to every node that it reaches: the entries of the inverse of I - W
    forward_multiplications: int
    backward_multiplications: int

    def __str__(self) -> str:
        lines = [f"{source} -> {sink}: {weight}" for (source, sink), weight in self.forward.items()]
        return "\n".join(
            [
                *lines,
                f"forward: {self.forward_multiplications} multiplications, "
                f"backward: {self.backward_multiplications} multiplications",
            ]
        )


def path_weights(
    edges: Mapping[Edge, Any], sources: Sequence[Node] | None = None, sinks: Sequence[Node] | None = None
) -> PathWeights:
    """Weights of paths in a graph given by its edges: {(1, 3): a, (3, 4): c, ...}.

    Without `sources` and `sinks`, they are the nodes that no edge enters, and that none leaves.
    """
    order = _topological(edges)
    entered, left = {j for _, j in edges}, {i for i, _ in edges}
    first = tuple(n for n in order if n not in entered) if sources is None else tuple(sources)
    last = tuple(n for n in order if n not in left) if sinks is None else tuple(sinks)
    unknown = next((n for n in (*first, *last) if n not in order), None)
    if unknown is not None:
        raise ArgumentError(f"{unknown} is no node of the graph", hint=f"the nodes are {', '.join(map(str, order))}")
    forward, backward, counted = {}, {}, [0, 0]
    for source in first:
        reached, multiplications = _substituted(edges, order, source)
        counted[0] += multiplications
        forward.update({(source, sink): reached[sink] for sink in last if sink in reached})
    turned = {(j, i): weight for (i, j), weight in edges.items()}
    for sink in last:
        reached, multiplications = _substituted(turned, order[::-1], sink)
        counted[1] += multiplications
        backward.update({(source, sink): reached[source] for source in first if source in reached})
    matrix = {}
    for node in order:
        matrix.update({(node, other): weight for other, weight in _substituted(edges, order, node)[0].items()})
    return PathWeights(first, last, forward, backward, matrix, counted[0], counted[1])


def _substituted(edges: Mapping[Edge, Any], order: Sequence[Node], start: Node) -> tuple[dict[Node, Any], int]:
    """One row of the inverse of I - W by substitution; a product with 1, at the start itself, is not counted."""
    found: dict[Node, Any] = {start: 1}
    count = 0
    for node in order:
        if node not in found:
            continue
        for (i, j), weight in edges.items():
            if i == node:
                product = weight if node == start else found[node] * weight
                count += node != start
                found[j] = product if j not in found else found[j] + product
    return found, count


def _topological(edges: Mapping[Edge, Any]) -> list[Node]:
    """The nodes in an order in which every edge goes forward; as they were named, where that is one."""
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    if len(nodes) > NODES:
        raise LimitError(f"the graph has {len(nodes):,} nodes; at most {NODES:,} are taken")
    entering = {node: {i for i, j in edges if j == node} for node in nodes}
    order: list[Node] = []
    while entering:
        free = [node for node in entering if not entering[node]]
        if not free:
            raise ArgumentError(
                f"the edges run in a circle through {next(iter(entering))}", hint="a path must come to an end"
            )
        for node in free:
            order.append(node)
            del entering[node]
        for before in entering.values():
            before.difference_update(free)
    return order
