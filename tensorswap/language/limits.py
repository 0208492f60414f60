"""Caps on what a text may ask for, checked before anything recursive or expensive sees it."""

from __future__ import annotations

from ..errors import LimitError

TEXT_LENGTH = 1_000_000
LINE_LENGTH = 100_000
NESTING = 64  # brackets within brackets
EXPRESSION_DEPTH = 250  # levels of one expression, `a + a + ...` included
STATEMENTS = 20_000
PARTS = 2_000_000  # numbers, names and operators of a program, however it was derived
NAME_LENGTH = 200
AXES = 64  # of one tensor, as numpy's arrays have
DIGITS = 40


def check_text(text: str) -> None:
    """Refuses a text that is too long or nests its brackets too deeply."""
    if len(text) > TEXT_LENGTH:
        raise LimitError(
            f"the text has {len(text):,} characters; at most {TEXT_LENGTH:,} are read",
            hint="split it into several programs",
        )
    longest = max(map(len, text.split("\n")))
    if longest > LINE_LENGTH:
        raise LimitError(
            f"a line has {longest:,} characters; at most {LINE_LENGTH:,} are read",
            hint="split the expression into several statements",
        )
    nesting = deepest = lines = 0
    for line in text.split("\n"):
        code = line.partition("#")[0]
        lines += nesting == 0 and "=" in code
        for character in code:
            if character in "([":
                nesting += 1
                deepest = max(deepest, nesting)
            elif character in ")]":
                nesting = max(0, nesting - 1)
    if lines > 2 * STATEMENTS:  # declarations among them, which nobody writes by the thousand
        raise LimitError(
            f"the text has {lines:,} statements and declarations; at most {STATEMENTS:,} statements are taken",
            hint="split it into several programs",
        )
    if deepest > NESTING:
        raise LimitError(
            f"brackets nest {deepest} deep; at most {NESTING} levels are read",
            hint="split the expression into several statements",
        )
