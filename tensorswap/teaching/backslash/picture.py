"""Pictures of a system: its block matrix as text, and as SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape

from .equations import Equations
from .operators import Composition, Hadamard, Identity, Kronecker, Left, Operator, Restricted, Right, Scale, Sum, Trace
from .operators import Transposed as TransposedOperator

WIDEST = 28  # characters of a label in the text

COLOURS: tuple[tuple[type[Operator], str], ...] = (
    (Identity, "#eeeeee"), (Scale, "#eeeeee"), (Hadamard, "#f6e3b4"), (Left, "#bcd4f0"), (Right, "#c7e6c3"),
    (Kronecker, "#bfe3e0"), (Trace, "#f3c6c6"), (Composition, "#dccbf0"), (Sum, "#e8d5c4"),
)  # fmt: skip
OTHER = "#d9d9d9"


def _label(entry: Operator | None) -> str:
    if entry is None:
        return "."
    return entry.label if len(entry.label) <= WIDEST else f"{entry.label[: WIDEST - 3]}..."


def text_picture(system: Equations) -> str:
    """dx = L dx + D dp: a row for each node, a column for each node and each parameter."""
    nodes, parameters = list(system.nodes), list(system.parameters)
    left = [[f"d{name}" for name in nodes]] + [[_label(system.L.get((y, z))) for z in nodes] for y in nodes]
    right = [[f"d{name}" for name in parameters]]
    right += [[_label(system.D.get((y, p))) for p in parameters] for y in nodes]
    names = ["", *(f"d{name}" for name in nodes)]
    width = max(map(len, names))
    lines = [f"{name:<{width}} | {a} | {b}" for name, a, b in zip(names, _columns(left), _columns(right), strict=True)]
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(["dx = L dx + D dp", "", *(line.rstrip() for line in lines)])


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  ".join(f"{text:<{w}}" for text, w in zip(row, widths, strict=True)) for row in rows]


def _colour(entry: Operator) -> str:
    while isinstance(entry, TransposedOperator | Restricted):
        entry = entry.inner
    return next((colour for kind, colour in COLOURS if isinstance(entry, kind)), OTHER)


def svg_picture(system: Equations) -> str:
    """The same picture: I - L and D as squares, coloured by the kind of operator; a tooltip shows each in full."""
    nodes, parameters = list(system.nodes), list(system.parameters)
    longest = max([len(_label(e)) for e in (*system.L.values(), *system.D.values())] + [6])
    wide, high, margin, gap = max(54, 7 * longest + 12), 30, 12 + 8 * max(map(len, [*nodes, "dx"])), 36
    start = margin + wide * len(nodes) + gap
    width, height = start + wide * len(parameters) + 12, 48 + high * len(nodes) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(margin + wide * len(nodes) / 2, 16, "I - L"),
        _text(start + wide * len(parameters) / 2, 16, "D"),
    ]
    parts += [_text(margin + wide * (k + 0.5), 36, f"d{name}") for k, name in enumerate(nodes)]
    parts += [_text(start + wide * (k + 0.5), 36, f"d{name}") for k, name in enumerate(parameters)]
    for row, y in enumerate(nodes):
        top = 44 + high * row
        parts.append(_text(margin - 8, top + 20, f"d{y}", "end"))
        cells = [(margin + wide * k, system.L.get((y, z)), "-") for k, z in enumerate(nodes)]
        cells += [(start + wide * k, system.D.get((y, p)), "") for k, p in enumerate(parameters)]
        for column, (x, entry, sign) in enumerate(cells):
            look = ("none", "", "zero") if entry is None else (_colour(entry), f"{sign}{_label(entry)}", entry.label)
            parts.append(_block(x, top, wide, high, *(("#cccccc", "I", "the identity") if column == row else look)))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _block(x: float, y: float, width: float, height: float, fill: str, label: str, title: str) -> str:
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="#999999"/>'
    return f"<g><title>{escape(title)}</title>{box}{_text(x + width / 2, y + height / 2 + 4, label)}</g>"
