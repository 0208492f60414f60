"""Drawn: a program -> its dataflow as SVG. Values flow down in green, gradients come back up in red.

Groups carry what they stand for: `data-tensor`, and `data-statement` with the numbers of the statements, so that a page
can link them. Colours are attributes, so that the picture looks right alone and a style sheet may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

from ..errors import LimitError
from ..language import ir
from .dataflow import Dataflow, Flow, Tensor, dataflow
from .layers import Placed, place

MOST = 160  # tensors: more of them are no picture any more
BOX, LAYER, MARGIN = 30.0, 66.0, 18.0
LETTER, LONGEST = 7.7, 30  # width of a letter, and letters of a label
APART = 5.0  # between a value's arrow and its gradient's
GREEN, RED, INK, QUIET, PAPER = "#1a7f37", "#cf222e", "#24292f", "#57606a", "#ffffff"
FILLS = {"input": "#f6f8fa", "whole": "#f6f8fa", "inner": PAPER, "output": "#ddf4e4"}


def dataflow_svg(loops: ir.Loops, wrt: Sequence[str] | None = None) -> str:
    """The picture of a program, with the gradients that come back to `wrt`: to all inputs that have one if None."""
    count = len({*loops.inputs, *loops.written})
    if count > MOST:
        raise LimitError(f"the program has {count} tensors; up to {MOST} are drawn", hint="draw a part of it")
    return _drawn(dataflow(loops, wrt))


@lru_cache(maxsize=8)  # while one types within an expression, the picture stays
def _drawn(graph: Dataflow) -> str:
    labels = {tensor.name: _label(tensor) for tensor in graph.tensors}
    widths = {name: LETTER * sum(map(len, label)) + 26 for name, label in labels.items()}
    placed = place(widths, [(flow.source, flow.target) for flow in graph.flows if not flow.earlier])
    return _Drawing(graph, labels, widths, placed).text()


def _label(tensor: Tensor) -> tuple[str, str]:
    """The name and its brackets, cut where they are long."""
    name = tensor.name if len(tensor.name) <= LONGEST else f"{tensor.name[: LONGEST - 1]}…"
    indices = f"[{tensor.indices}]" if tensor.indices else ""
    room = max(LONGEST - len(name), 4)
    return name, indices if len(indices) <= room else f"{indices[: room - 2]}…]"


class _Drawing:
    def __init__(
        self, graph: Dataflow, labels: dict[str, tuple[str, str]], widths: dict[str, float], placed: Placed
    ) -> None:
        self.graph, self.labels, self.widths, self.placed = graph, labels, widths, placed
        loops = any(flow.earlier for flow in graph.flows)  # their arrows need room at the right
        self.width = placed.width + 2 * MARGIN + (2 * MARGIN if loops else 0)
        self.height = LAYER * (placed.depth - 1) + BOX + 2 * MARGIN

    def text(self) -> str:
        told = f"Dataflow of {len(self.graph.tensors)} tensors: values flow down, gradients come back up"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="dataflow" role="img" aria-label={quoteattr(told)} '
            f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="12.5">'
        )
        paper = f'<rect class="paper" width="100%" height="100%" fill="{PAPER}"/>'
        flows = [part for flow in self.graph.flows for part in self.flow(flow)]
        tensors = [part for tensor in self.graph.tensors for part in self.tensor(tensor)]
        return "\n".join([head, paper, *flows, *tensors, "</svg>", ""])

    def middle(self, name: str) -> tuple[float, float]:
        return MARGIN + self.placed.middles[name], MARGIN + LAYER * self.placed.layers[name] + BOX / 2

    def tensor(self, tensor: Tensor) -> Iterator[str]:
        x, y = self.middle(tensor.name)
        wide = self.widths[tensor.name]
        name, indices = self.labels[tensor.name]
        numbers = " ".join(map(str, tensor.statements))
        yield f'<g class="tensor {tensor.kind}" data-tensor={quoteattr(tensor.name)} data-statement="{numbers}">'
        yield f"<title>{escape(self.told(tensor))}</title>"
        dashes = ' stroke-dasharray="3 3"' if tensor.kind == "whole" else ""
        thick = 1.8 if tensor.kind == "output" else 1.2
        yield (
            f'<rect x="{x - wide / 2:.1f}" y="{y - BOX / 2:.1f}" width="{wide:.1f}" height="{BOX:g}" rx="9" '
            f'fill="{FILLS[tensor.kind]}" stroke="{QUIET}" stroke-width="{thick}"{dashes}/>'
        )
        shown = f'<tspan class="name" font-weight="600">{escape(name)}</tspan>'
        shown += f'<tspan class="indices" fill="{QUIET}">{escape(indices)}</tspan>' if indices else ""
        yield f'<text x="{x:.1f}" y="{y + 4.3:.1f}" text-anchor="middle" fill="{INK}">{shown}</text>'
        yield "</g>"

    def told(self, tensor: Tensor) -> str:
        kinds = {"input": "an input", "whole": "an input of whole numbers", "inner": "computed", "output": "an output"}
        reached = "" if tensor.moves else "; no gradient comes back to it"
        written = f" by statement {', '.join(map(str, tensor.statements))}" if tensor.statements else ""
        return f"{tensor.name}: {kinds[tensor.kind]}{written}{reached}"

    def flow(self, flow: Flow) -> Iterator[str]:
        numbers = " ".join(map(str, flow.statements))
        yield (
            f'<g class="flow{" earlier" if flow.earlier else ""}" data-source={quoteattr(flow.source)} '
            f'data-target={quoteattr(flow.target)} data-statement="{numbers}">'
        )
        shift = APART / 2 if flow.returns else 0.0
        draw = self.around if flow.earlier else self.down
        yield draw(flow, "forward", GREEN, -shift)
        if flow.returns:
            yield draw(flow, "backward", RED, shift)
        yield "</g>"

    def down(self, flow: Flow, way: str, colour: str, shift: float) -> str:
        """From the lower edge of one box to the upper edge of another, straight past the layers between."""
        x, y = self.middle(flow.source)
        to_x, to_y = self.middle(flow.target)
        x, y = x + self.start(flow) + shift, y + BOX / 2
        to_x, to_y = to_x + self.end(flow) + shift, to_y - BOX / 2
        head = way == "forward"
        end = to_y - (6 if head else 0)
        begin = y + (0 if head else 6)
        path = f"M{x:.1f} {begin:.1f}"
        for k, bend in enumerate(self.placed.bends[flow.source, flow.target], 1):
            bend_x = MARGIN + bend + shift
            top = MARGIN + LAYER * (self.placed.layers[flow.source] + k)
            path += _curve(x, begin, bend_x, top) + f" L{bend_x:.1f} {top + BOX:.1f}"
            x, begin = bend_x, top + BOX
        path += _curve(x, begin, to_x, end)
        x, _ = self.middle(flow.source)
        tip = (to_x, to_y, 1) if head else (x + self.start(flow) + shift, y, -1)
        return _arrow(way, colour, path, *tip)

    def start(self, flow: Flow) -> float:
        """Where an arrow leaves its box: as those that leave it lie, so that they do not cross at once."""
        others = [f for f in self.graph.flows if f.source == flow.source and not f.earlier]
        return self.share(others, flow, flow.source, lambda f: self.toward(f, True))

    def end(self, flow: Flow) -> float:
        others = [f for f in self.graph.flows if f.target == flow.target and not f.earlier]
        return self.share(others, flow, flow.target, lambda f: self.toward(f, False))

    def toward(self, flow: Flow, leaving: bool) -> float:
        bends = self.placed.bends[flow.source, flow.target]
        if bends:
            return bends[0 if leaving else -1]
        return self.placed.middles[flow.target if leaving else flow.source]

    def share(self, flows: list[Flow], flow: Flow, name: str, key: Callable[[Flow], float]) -> float:
        ordered = sorted(flows, key=key)
        room = min(20.0, (self.widths[name] - 24) / max(len(ordered), 1))
        return room * (ordered.index(flow) - (len(ordered) - 1) / 2)

    def around(self, flow: Flow, way: str, colour: str, shift: float) -> str:
        """From the right side of a box back to the right side of the same, or of one above it."""
        x, y = self.middle(flow.source)
        to_x, to_y = self.middle(flow.target)
        x += self.widths[flow.source] / 2
        to_x += self.widths[flow.target] / 2
        y, to_y = y + 9, to_y - 9
        far = max(x, to_x) + 26 + shift + 6 * abs(self.placed.layers[flow.source] - self.placed.layers[flow.target])
        y, to_y = y + shift, to_y - shift
        head = way == "forward"
        begin, end = x + (0 if head else 6), to_x + (6 if head else 0)
        path = f"M{begin:.1f} {y:.1f} C{far:.1f} {y:.1f} {far:.1f} {to_y:.1f} {end:.1f} {to_y:.1f}"
        tip = (to_x, to_y) if head else (x, y)
        return _arrow(way, colour, path, *tip, 0, ' stroke-dasharray="5 3"')


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (y + to_y) / 2
    return f" C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"


def _arrow(way: str, colour: str, path: str, x: float, y: float, down: int, dashes: str = "") -> str:
    """A line and its head: down, up (-1), or to the left (0)."""
    if down:
        head = f"M{x - 4:.1f} {y - 8 * down:.1f} L{x:.1f} {y:.1f} L{x + 4:.1f} {y - 8 * down:.1f} z"
    else:
        head = f"M{x + 8:.1f} {y - 4:.1f} L{x:.1f} {y:.1f} L{x + 8:.1f} {y + 4:.1f} z"
    line = f'<path class="line" d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>'
    return f'<g class="{way}">{line}<path class="head" d="{head}" fill="{colour}"/></g>'
