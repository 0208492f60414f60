"""Colours: in a terminal, and nowhere else unless they are asked for."""

from __future__ import annotations

import os
from typing import TextIO

from ..explain.paint import Paint


def paint_for(stream: TextIO) -> Paint:
    """NO_COLOR turns colours off, FORCE_COLOR turns them on where there is no terminal."""
    if os.environ.get("NO_COLOR"):
        return Paint(False)
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    return Paint(terminal or bool(os.environ.get("FORCE_COLOR")))


def marked(message: str, paint: Paint) -> str:
    """An error's text, with its carets in colour."""
    return "\n".join(paint("fault", line) if _is_caret(line) else line for line in message.split("\n"))


def _is_caret(line: str) -> bool:
    return "^" in line and not line.strip(" \t^")
