"""Pieces of a statement's text, each with its kind, for those who colour them."""

from __future__ import annotations

import re
from collections.abc import Iterator

KINDS = {  # the first that fits
    "operator": r"\b(?:arg)?(?:max|min)=|[-+*]?=(?!=)|->",
    "comparison": r"[<>=!]=",
    "gradient": r"[A-Za-z_]\w*(?:\.\w+)*\.(?:grad|dot)\w*(?:\.\w+)*",
    "word": r"\b(?:for|down|if|else|and|or|not|inside|def|return|int|array|index)\b",
    "function": r"[A-Za-z_]\w*(?=\()",
    "name": r"[A-Za-z_]\w*(?:\.\w+)*",
    "number": r"\d+(?:\.\d+)?(?:e[+-]?\d+)?",
    "other": r"\s+|.",
}
PIECE = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()), re.DOTALL)


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text; all texts together are the whole text."""
    for found in PIECE.finditer(text):
        yield found.lastgroup or "other", found[0]
