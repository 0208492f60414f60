"""Paint: texts in colours, or not."""

from __future__ import annotations

from dataclasses import dataclass

from .pieces import pieces

STYLES = {  # SGR codes
    "gradient": "33", "function": "36", "word": "35", "number": "32", "operator": "1", "head": "1", "faint": "2",
    "fault": "1;31",
}  # fmt: skip


@dataclass(frozen=True)
class Paint:
    """Colours, or none."""

    on: bool = False

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self.on and text.strip() and style in STYLES else text

    def code(self, text: str) -> str:
        """A text of the language."""
        return "".join(self(kind, piece) for kind, piece in pieces(text)) if self.on else text
