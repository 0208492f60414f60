"""Which lines of generated source come from which statement of a plan, and which statement of the text that is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..explain.explanation import Explanation
from ..kernel import ir as kernel
from ..language import ir
from ..language.render import statement as show_statement
from ..lower.kernel import Lowered
from ..run.execute import Executable

STEP = re.compile(r"def step(\d+)_(\d+)\(")


@dataclass(frozen=True)
class Part:
    """Lines of the source, counted from 1, and the statements of the text and of its adjoint that they run."""

    first: int
    last: int
    statements: tuple[int, ...]
    adjoints: tuple[int, ...]


class Links:
    """From statements of a plan to the numbers of statements and adjoint statements."""

    def __init__(self, plan: ir.Loops, told: Explanation) -> None:
        self.plan, self.told = plan, told
        self.forward = {statement.text: statement.number for statement in told.statements}
        self.backward = {adjoint.text: adjoint.number for adjoint in told.adjoints}
        self.readers: dict[str, list[str]] = {}
        for statement in plan.statements:
            for read in statement.reads:
                self.readers.setdefault(read.tensor, []).append(statement.target.tensor)

    def of(self, statement: ir.Statement) -> tuple[set[int], set[int]]:
        """By what the statement says, or else by what it writes, or by what reads that."""
        text = show_statement(statement)
        if text in self.forward:
            return {self.forward[text]}, set()
        if text in self.backward:
            return set(), {self.backward[text]}
        return self.of_tensor(statement.target.tensor, frozenset())

    def of_tensor(self, name: str, above: frozenset[str]) -> tuple[set[int], set[int]]:
        forward = {statement.number for statement in self.told.statements if statement.target == name}
        backward = {adjoint.number for adjoint in self.told.adjoints if adjoint.target == name}
        if not forward and not backward:
            for reader in self.readers.get(name, ()):
                if reader not in above:
                    more = self.of_tensor(reader, above | {name})
                    forward, backward = forward | more[0], backward | more[1]
        return forward, backward


def parts(source: str, made: Executable, told: Explanation) -> list[Part]:
    """Each step's function, with its statements."""
    links = Links(made.loops, told)
    steps = [_steps(lowered) for lowered in made.kernels]
    found: list[Part] = []
    lines = source.splitlines()
    for number, line in enumerate(lines):
        step = STEP.match(line)
        if step is None:
            continue
        last = next((k for k in range(number + 1, len(lines)) if not lines[k].startswith(" ")), len(lines))
        pairs = [links.of(statement) for statement in steps[int(step[1])].get(int(step[2]), ())]
        forward, backward = (sorted(set().union(*(pair[k] for pair in pairs))) for k in (0, 1))
        found.append(Part(number + 1, last, tuple(forward), tuple(backward)))
    return found


def _steps(lowered: Lowered) -> dict[int, list[ir.Statement]]:
    """The statements behind each step: its comment names their targets as the kernel does, and steps come in the order
    of the statements."""
    names = {word.place.name: str(word.item) for word in lowered.kernel.words}
    left: dict[str, list[ir.Statement]] = {}
    for statement in lowered.nest.statements:
        left.setdefault(statement.target.tensor, []).append(statement)
    steps = [node for node in kernel.walk(lowered.kernel.body) if isinstance(node, kernel.Step)]
    found: dict[int, list[ir.Statement]] = {}
    for step in sorted(steps, key=lambda node: node.number):
        tensors = [names.get(place, "") for place in _targets(step.comment)]
        found[step.number] = [left[tensor].pop(0) for tensor in tensors if left.get(tensor)]
    return found


def _targets(comment: str) -> Iterator[str]:
    for part in comment.split("; "):
        yield part.partition("[")[0].partition(" ")[0]
