"""Explanation -> text for a terminal: the loop in the margin, its statement beside it, what explains it below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from .explanation import Adjoint, Explanation, Statement
from .paint import Paint

MARGIN = 24  # columns for a loop; a longer one has a line of its own
NARROW = 60


def shown(made: Explanation, paint: Paint, width: int) -> str:
    """The whole explanation, in lines of that many columns where words can be broken."""
    return "\n".join(_Lines(made, paint, max(width, NARROW)).all())


class _Lines:
    def __init__(self, made: Explanation, paint: Paint, width: int) -> None:
        self.made, self.paint, self.width = made, paint, width
        loops = [*(s.loop for s in made.statements), *(a.loop for a in made.adjoints)]
        self.margin = max([len(loop) for loop in loops if len(loop) <= MARGIN], default=0) + 3

    def all(self) -> Iterator[str]:
        made, paint = self.made, self.paint
        if made.name:
            yield paint("head", made.name) + self._signature()
            yield ""
        blocks: tuple[str, ...] = ()
        for statement in made.statements:
            if statement.blocks != blocks:
                blocks = statement.blocks
                yield from (f"{'    ' * depth}{paint.code(line)}" for depth, line in enumerate(blocks))
            yield from self._statement(statement)
            yield ""
        if made.refused:
            yield made.refused
            return
        if any(line.adjoint is None for line in made.backward):
            yield paint("head", "The whole adjoint program")
            yield from (f"    {paint.code(line.text)}" for line in made.backward)
            yield ""
        yield paint("head", "Cost, loops as they stand")
        yield f"    forward   {made.forward_cost}"
        yield f"    backward  {made.backward_cost}"

    def _signature(self) -> str:
        inputs, outputs = (", ".join(map(str, tensors)) for tensors in (self.made.inputs, self.made.outputs))
        return self.paint.code(f"({inputs}) -> {outputs}")

    def _statement(self, statement: Statement) -> Iterator[str]:
        told = [f"{statement.words} ({statement.cost})"]
        if not statement.adjoints and not self.made.refused:
            told.append("Nothing comes back to it: no path leads from an output to a derivative.")
        yield from self._row(statement, "", "", told)
        for number in statement.adjoints:
            adjoint = self.made.adjoints[number - 1]
            yield from self._row(adjoint, "-> ", f"  # {adjoint.rule}", adjoint.words)

    def _row(self, item: Statement | Adjoint, arrow: str, rule: str, sentences: Sequence[str]) -> Iterator[str]:
        """The loop in the margin, the statement beside it, sentences below."""
        depth, loop = "    " * len(item.blocks), item.loop
        if len(loop) + 3 > self.margin:
            yield depth + self.paint.code(loop)
            loop = ""
        before = f"{depth}{self.paint.code(loop)}{' ' * (self.margin - len(loop))}{arrow}"
        yield f"{before}{self.paint.code(item.text)}{self.paint('faint', rule)}"
        indent = depth + " " * (self.margin + len(arrow))
        for sentence in sentences:
            for line in textwrap.wrap(sentence, self.width, initial_indent=indent, subsequent_indent=indent):
                yield self.paint("faint", line)
