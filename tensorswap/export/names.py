"""Names of an exported file's own: no name of a user becomes part of its code."""

from __future__ import annotations

from collections.abc import Iterable

from ..language import ir


class Names:
    """Numbers for tensors, indices and static integers: forward and adjoint of one program share them."""

    def __init__(self, programs: Iterable[ir.Loops]) -> None:
        self.tensors: dict[str, int] = {}
        self.indices: dict[str, int] = {}
        self.statics: dict[str, int] = {}
        for loops in programs:
            for name in (*loops.inputs, *loops.written):
                self.tensors.setdefault(name, len(self.tensors))
            for name in loops.indices:
                self.indices.setdefault(name, len(self.indices))
            for name in loops.static_names:
                self.statics.setdefault(name, len(self.statics))

    def array(self, tensor: str) -> str:
        return f"a{self.tensors[tensor]}"

    def best(self, tensor: str) -> str:
        """The values behind the positions of an argmax= or argmin=."""
        return f"b{self.tensors[tensor]}"

    def mask(self, tensor: str) -> str:
        """Which elements of a tensor have been written."""
        return f"w{self.tensors[tensor]}"

    def index(self, name: str) -> str:
        return f"i{self.indices[name]}"

    def size(self, name: str) -> str:
        return f"n{self.indices[name]}"

    def extent(self, tensor: str, axis: int) -> str:
        return f"d{self.tensors[tensor]}_{axis}" if axis >= 0 else f"d{self.tensors[tensor]}_last{-axis}"

    def static(self, name: str) -> str:
        return f"s{self.statics[name]}"

    def legend(self) -> list[str]:
        """One line for each name: what it stands for."""
        lines = [f"a{number}: {shown(name)}" for name, number in self.tensors.items()]
        for name, number in self.indices.items():
            lines.append(f"i{number}: {shown(name)}, from 0 to n{number} - 1")
        return lines + [f"s{number}: {shown(name)}" for name, number in self.statics.items()]


def shown(text: str) -> str:
    """A text that fits into a comment, whatever it holds: one line of plain characters."""
    return "".join(c if " " <= c <= "~" else "?" for c in text)


def quoted(text: str) -> str:
    """A text that fits into a docstring, whatever it holds."""
    lines = (shown(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return "\n".join(lines)
