"""Scope: what stands around the next line of a kernel, and so what bounds the loops that are written there."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero
from ..language.build import add, negate
from ..language.ir import Expr, Number
from .expression import Expressions, joined


@dataclass
class Scope:
    """The lines of a kernel so far, and the loops around them. All that write parts of one kernel share it."""

    write: Expressions
    lines: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)  # indices that a loop around the statement already runs over
    strips: dict[str, tuple[str, str]] = field(default_factory=dict)  # indices of which a loop around runs over strips
    count: int = 0  # of the local variables so far

    def add(self, indent: str, *texts: str) -> None:
        self.lines.extend(indent + text for text in texts)

    def loop(self, indent: str, index: str, low: str, high: str) -> str:
        """Begins a loop, and gives the indent of what stands in it."""
        self.add(indent, f"for {self.write.layout.index(index)} in range({low}, {high}):")
        return indent + "    "

    def range(self, index: str, atoms: list[Expr], outer: list[str]) -> tuple[str, str, list[Expr]]:
        """The bounds of a loop: those of the index, its strip, and the guards that bound it by outer indices."""
        first, last = self.strips.get(index) or ("0", self.write.layout.size(index))
        lows, highs, used = self.bounds(index, atoms, outer)
        return joined("max", [first, *lows]), joined("min", [last, *highs]), used

    def bounds(self, index: str, atoms: list[Expr], outer: list[str]) -> tuple[list[str], list[str], list[Expr]]:
        """Lower bounds of an index and upper ones (which it does not reach) by outer indices; and whence they are."""
        lows: list[str] = []
        highs: list[str] = []
        known = {*outer, *self.fixed}
        used: list[Expr] = []
        for atom in atoms:
            if not isinstance(atom, ir.Compare) or index not in ir.index_names(atom):
                continue
            bounds = at_least_zero(atom)
            forms = [affine(self.write.layout.known(b)) for b in bounds]
            if not bounds or any(
                f is None or f.terms.get(index) not in (Number(1), Number(-1)) or not set(f.terms) <= known | {index}
                for f in forms
            ):
                continue
            for form in forms:
                assert form is not None
                rest = form.without(index).expression()
                if form.terms[index] == Number(1):  # index + rest >= 0
                    lows.append(self.write.integer(negate(rest)))
                else:  # rest - index >= 0
                    highs.append(self.write.integer(add(rest, Number(1))))
            used.append(atom)
        return lows, highs, used

    def hold(self, values: list[Expr], indent: str) -> None:
        """Local variables for values that are needed more than once."""
        for value in values:
            dtype = self.write.own(value)
            text = self.write.value(value, dtype)
            self.count += 1
            name = f"c{self.count}"
            self.add(indent, f"{name} = {text}")
            self.write.held[value] = (name, dtype)
