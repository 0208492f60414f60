"""Draws the graphs and plots of the documentation into docs/drawings: `python docs/draw.py`.

A graph of docs/patterns.md and docs/seeds.md is a program with one operation a statement. Each edge carries its value
above the line, in green, and the gradient that comes back along it below the line, in red. Below an input is the sum of
what comes back to it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

import tensorswap as ts
from tensorswap.backslash import System, backslash
from tensorswap.language import ir
from tensorswap.language.render import expression as show
from tensorswap.pictures.curves import curves_svg, loss_curves
from tensorswap.pictures.drawn import dataflow_svg
from tensorswap.pictures.zero_pattern import sparsity_svg
from tensorswap.rules.activity import active
from tensorswap.rules.differentiate import contributions

FOLDER = Path(__file__).parent / "drawings"
ACROSS, DOWN, RADIUS, MARGIN = 120, 80, 19, 44
GREEN, RED = "#1a7f37", "#cf222e"


@dataclass(frozen=True)
class Edge:
    """From a value to an operation that reads it, or from an output to the right margin."""

    source: str
    target: str | None
    value: float
    gradient: float


@dataclass(frozen=True)
class Graph:
    """Operations with their labels and places, and the edges between them."""

    labels: dict[str, str]
    places: dict[str, tuple[float, float]]
    edges: list[Edge]


def graph(text: str, point: Mapping[str, float], upstream: Mapping[str, float]) -> Graph:
    """The graph of a program at a point, for given gradients of its outputs."""
    program = ts.program(text, outputs=list(upstream))
    loops = program.loops
    whole = ts.program(text, outputs=loops.written).run_reference(point)
    values = {**point, **(whole if isinstance(whole, dict) else {loops.written[0]: whole})}
    moving = active(loops, loops.inputs, loops.outputs)
    gradient = dict.fromkeys((*loops.inputs, *loops.written), 0.0) | dict(upstream)
    edges = [Edge(name, None, float(values[name]), gradient[name]) for name in upstream]
    for statement in reversed(loops.statements):
        name = statement.target.tensor
        for found in contributions(statement.value, moving):
            part = _number(found.value(ir.Access("upstream")), found.conditions, values, gradient[name])
            part = -part if found.negative else part
            source = found.access.tensor
            gradient[source] += part
            edges.append(Edge(source, name, float(values[source]), part))
    labels = {name: name for name in loops.inputs} | {s.target.tensor: _label(s.value) for s in loops.statements}
    return Graph(labels, _places(loops), edges)


def _number(node: ir.Expr, conditions: tuple[ir.Expr, ...], values: Mapping[str, Any], upstream: float) -> float:
    guard = "".join(f" if {show(condition)}" for condition in conditions[:1])
    program = ts.program(f"result = {show(node)}{guard}")
    known = {**values, "upstream": upstream}
    return float(program.run_reference({name: float(known[name]) for name in program.inputs}))


def _label(value: ir.Expr) -> str:
    match value:
        case ir.Binary(operator=operator):
            return operator
        case ir.Unary():
            return "*-1"
        case ir.Call(function=function):
            return function
        case ir.Access():
            return "copy"
    return show(value)


def _places(loops: ir.Loops) -> dict[str, tuple[float, float]]:
    """Inputs one below the other; an operation right of all that it reads, at their middle height."""
    column: dict[str, float] = {}
    row: dict[str, float] = {name: float(k) for k, name in enumerate(loops.inputs)}
    for statement in loops.statements:
        name, reads = statement.target.tensor, [a.tensor for a in statement.reads]
        column[name] = 1 + max(column.get(read, 0) for read in reads)
        wanted = sum(row[read] for read in reads) / len(reads)
        others = [row[other] for other in column if other != name and column[other] == column[name]]
        while any(abs(wanted - other) < 0.9 for other in others):
            wanted += 0.5
        row[name] = wanted
    for name in loops.inputs:
        column[name] = min(column[s.target.tensor] for s in loops.statements if name in ir.tensors_read(s)) - 1
    return {name: (MARGIN + ACROSS * column[name], MARGIN + DOWN * row[name]) for name in column}


def svg(drawn: Graph) -> str:
    width = max(x for x, _ in drawn.places.values()) + ACROSS
    height = max(y for _, y in drawn.places.values()) + MARGIN
    return _page(width, height, [*_lines(drawn), *_circles(drawn.labels, drawn.places)])


def _lines(drawn: Graph) -> Iterator[str]:
    for edge in drawn.edges:
        x, y = drawn.places[edge.source]
        to_x, to_y = drawn.places[edge.target] if edge.target else (x + ACROSS - MARGIN, y)
        yield _line((x, y), (to_x, to_y), RADIUS if edge.target else 0)
        middle_x, middle_y = x + 0.45 * (to_x - x), y + 0.45 * (to_y - y)
        yield _text(middle_x, middle_y - 6, _shown(edge.value), GREEN)
        yield _text(middle_x, middle_y + 16, _shown(edge.gradient), RED)
    for name in {edge.source: None for edge in drawn.edges if drawn.labels[edge.source] == edge.source}:
        x, y = drawn.places[name]  # an input: what comes back along all of its edges
        yield _text(x, y + RADIUS + 15, _shown(sum(e.gradient for e in drawn.edges if e.source == name)), RED)


def _shown(value: float) -> str:
    return f"{value:.3g}" if value else "0"


def _circles(labels: Mapping[str, str], places: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    for name, (x, y) in places.items():
        yield f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="white" stroke="#57606a"/>'
        yield _text(x, y + 4, labels[name], "#24292f")


def _line(start: tuple[float, float], end: tuple[float, float], short: float) -> str:
    """An arrow that ends at the rim of a circle."""
    length = max(1.0, float(np.hypot(end[0] - start[0], end[1] - start[1])))
    x, y = (end[k] - (end[k] - start[k]) * short / length for k in (0, 1))
    ends = f'x1="{start[0]:g}" y1="{start[1]:g}" x2="{x:.1f}" y2="{y:.1f}"'
    return f'<line {ends} stroke="#57606a" marker-end="url(#arrow)"/>'


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'


def _page(width: float, height: float, parts: list[str]) -> str:
    arrow = (
        '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#57606a"/></marker>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" font-family="sans-serif"'
    rest = f'{head} font-size="13">\n<defs>{arrow}</defs>\n<rect width="{width:g}" height="{height:g}" fill="white"/>'
    return "\n".join([rest, *parts, "</svg>", ""])


def path_graph() -> str:
    """The weighted graph of the first document: sources 1 and 2, sink 5."""
    places = {"1": (44.0, 36.0), "2": (44.0, 116.0), "3": (164.0, 76.0), "4": (284.0, 76.0), "5": (404.0, 76.0)}
    edges = {("1", "3"): "a", ("2", "3"): "b", ("3", "4"): "c", ("4", "5"): "d"}
    parts = []
    for (i, j), weight in edges.items():
        (x, y), (to_x, to_y) = places[i], places[j]
        parts += [_line((x, y), (to_x, to_y), RADIUS), _text((x + to_x) / 2, (y + to_y) / 2 - 6, weight, "#24292f")]
    return _page(448, 152, [*parts, *_circles({name: name for name in places}, places)])


MLP = """
Z1[i,k] += W1[i,j] * X0[j,k]
Z1[i,k] += B1[i,k]
X1[i,k] = tanh(Z1[i,k])
Z2[l,k] += W2[l,i] * X1[i,k]
Z2[l,k] += B2[l,k]
X2[l,k] = tanh(Z2[l,k])
"""


def matrix_mlp() -> System:
    """Two layers of the first document's matrix MLP, the sums Z eliminated."""
    shapes = {"W1": (3, 4), "X0": (4, 2), "B1": (3, 2), "W2": (5, 3), "B2": (5, 2)}
    random = np.random.default_rng(0)
    values = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    return backslash(ts.program(MLP), values, nodes=["X1", "X2"])


SIGMOID = "a = w1 * x1\nb1 = w2 * x2\nc = a + b1\nd = c + b\ne = -d\ng = exp(e)\nh = 1 + g\nf = 1 / h"
GRAPHS: dict[str, tuple[str, dict[str, float], dict[str, float]]] = {
    "simple": ("q = x + y\nf = q * z", {"x": -2, "y": 5, "z": -4}, {"f": 1}),
    "add": ("f = x + y", {"x": 3, "y": 4}, {"f": 2}),
    "multiply": ("f = x * y", {"x": 2, "y": 3}, {"f": 5}),
    "copy": ("a = x\nb = x", {"x": 7}, {"a": 4, "b": 2}),
    "max": ("f = max(x, y)", {"x": 4, "y": 5}, {"f": 9}),
    "sigmoid": (SIGMOID, {"w1": 2, "x1": -1, "w2": -3, "x2": -2, "b": -3}, {"f": 1}),
    "expression": (
        "v1 = log(x1)\nv2 = x1 * x2\nv3 = sin(x2)\nv4 = v1 + v2\nv5 = v4 - v3", {"x1": 2, "x2": 5}, {"v5": 1},
    ),
}  # fmt: skip


ATTENTION = """
S[i,j] += Q[i,k] * K[j,k] / sqrt(size(k)) if j <= i
top[i] max= S[i,j] if j <= i
E[i,j] = exp(S[i,j] - stop(top[i])) if j <= i
total[i] += E[i,j] if j <= i
Y[i,d] += E[i,j] / total[i] * V[j,d] if j <= i
"""


def pattern() -> str:
    """The Jacobian of a convolution with stride 2 and zero padding."""
    conv = ts.program("size(i) = size(X, 0) // 2\nY[i] += X[2*i+p-1] * W[p] if inside")
    jacobian = conv.jacobian("Y", "X").run_reference(X=np.ones(40), W=np.ones(5))
    return sparsity_svg(jacobian, "dY/dX of a convolution with stride 2")


def loss() -> str:
    """Gradient descent with batches, through the interpreter: so it is the same on every machine."""
    line = ts.program("Y[b] += X[b,i] * w[i]\nloss += (Y[b] - y[b]) ** 2 / size(b)")
    gradient, random = line.grad(wrt=["w"]), np.random.default_rng(0)
    w, losses = np.zeros(4), []
    for _ in range(200):
        X = random.standard_normal((16, 4))
        y = X @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.2 * random.standard_normal(16)
        result = gradient.run_reference(X=X, y=y, w=w)
        w = w - 0.01 * result["w.grad"]
        losses.append(float(result["loss"]))
    return curves_svg(loss_curves(losses), "step", "loss")


RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "results.json"
FASTER, SLOWER = "#0072B2", "#D55E00"  # blue and vermilion of Okabe and Ito: they differ to every kind of eyes
OURS = "tensorswap"


def speed() -> str:
    """The published benchmark: a bar for each row, the time of the fastest other library over ours."""
    run = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [(row["title"], *_fastest(row["peers"])) for row in run["rows"]]
    high, left, right, line = 15, 365.0, 740.0, 30.0
    ratios = [1.0, *(ratio for _, _, ratio in rows)]
    least, most = min(ratios), max(ratios)

    def place(ratio: float) -> float:
        return left + (right - left - 90) * math.log(ratio / least) / math.log(most / least)

    parts = [
        _text(left, 18, "times as fast as the fastest of numpy, JAX, PyTorch, einsum (logarithmic)", "#57606a"),
    ]
    for mark in (mark for mark in (0.5, 1, 2, 5, 10, 20, 50) if least <= mark <= most):
        x = place(mark)
        bottom = line + high * len(rows) + 4
        parts.append(f'<line x1="{x:.1f}" y1="{line:g}" x2="{x:.1f}" y2="{bottom:g}" stroke="#d0d7de"/>')
        parts.append(_text(x, bottom + 14, f"{mark:g}", "#57606a"))
    for k, (title, peer, ratio) in enumerate(rows):
        y = line + high * k + 3
        start, end = sorted((place(1.0), place(ratio)))
        colour = FASTER if ratio >= 1 else SLOWER
        parts.append(
            f'<rect x="{start:.1f}" y="{y:g}" width="{end - start:.1f}" height="{high - 4}" fill="{colour}"/>'
            f'<text x="{left - 8:g}" y="{y + 9:g}" text-anchor="end" fill="#24292f">{escape(title)}</text>'
            f'<text x="{end + 5:.1f}" y="{y + 9:g}" fill="#57606a">{ratio:.2f} {peer}</text>'
        )
    machine = run["machine"]
    told = f"{machine['cpu']}, {machine['threads']} threads; forward and backward pass unless a row says otherwise"
    parts.append(_text(left, line + high * len(rows) + 38, told, "#57606a"))
    return _page(right, line + high * len(rows) + 50, parts).replace('font-size="13"', 'font-size="11"')


def _fastest(peers: Mapping[str, Any]) -> tuple[str, float]:
    """The fastest other library with a right result, and its time over ours."""
    times = {name: peer["seconds"] for name, peer in peers.items() if peer["status"] == "ok" and name != OURS}
    best = min(times, key=lambda name: times[name])
    return best, times[best] / peers[OURS]["seconds"]


def drawings() -> dict[str, str]:
    """Every drawing by the name of its file."""
    drawn = {f"{name}.svg": svg(graph(*parts)) for name, parts in GRAPHS.items()}
    plots = {"speed.svg": speed(), "loss.svg": loss(), "pattern.svg": pattern()}
    flow = {"attention.svg": dataflow_svg(ts.program(ATTENTION).loops)}
    return {**drawn, **plots, **flow, "paths.svg": path_graph(), "backslash.svg": matrix_mlp().to_svg()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in drawings().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
