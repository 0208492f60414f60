"""`%load_ext tensorswap`, then `%%loop layer`: the cell holds statements, and `layer` becomes their program.

    %%loop [NAME] [--outputs Y,Z] [--quiet]

Without a name the program is shown, and is the value of the cell (`_`). A mistake in the text is shown with its caret
and nothing else: lines are counted as the notebook counts them, the line of the magic included.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import ArgumentError, SwapError
from ..program import Program, program

USAGE = "%%loop [NAME] [--outputs Y,Z] [--quiet]"


class Shell(Protocol):
    """What is asked of IPython."""

    user_ns: dict[str, Any]

    def register_magic_function(self, func: Any, magic_kind: str = ..., magic_name: str | None = ...) -> None: ...


@dataclass(frozen=True)
class Asked:
    """What the line of the magic says."""

    name: str = ""
    outputs: tuple[str, ...] | None = None
    quiet: bool = False


def load_ipython_extension(shell: Shell) -> None:
    """For `%load_ext tensorswap`."""

    def loop(line: str, cell: str) -> Program | None:
        try:
            asked = read(line)
            made = program("\n" + cell, asked.outputs)
        except SwapError as error:
            told = rendered(error)
            error._render_traceback_ = lambda: told  # type: ignore[attr-defined]  # IPython asks for it
            raise
        if asked.name:
            shell.user_ns[asked.name] = made
        return None if asked.quiet else made

    loop.__doc__ = __doc__
    shell.register_magic_function(loop, "cell", "loop")


def read(line: str) -> Asked:
    """`layer --outputs Y,Z` -> what it asks for."""
    asked = Asked()
    words = line.split()
    while words:
        word = words.pop(0)
        if word == "--quiet":
            asked = Asked(asked.name, asked.outputs, True)
        elif word == "--outputs" and words:
            asked = Asked(asked.name, tuple(filter(None, words.pop(0).split(","))), asked.quiet)
        elif word.isidentifier() and not keyword.iskeyword(word) and not asked.name:
            asked = Asked(word, asked.outputs, asked.quiet)
        else:
            raise ArgumentError(f"%%loop does not know {word[:80]!r}", hint=f"write {USAGE}; statements begin below it")
    return asked


def rendered(error: SwapError) -> list[str]:
    """The message, carets in red, in the place of a traceback through the parser."""
    lines = f"\x1b[31m{type(error).__name__}\x1b[0m: {error}".splitlines()
    return [f"\x1b[31m{line}\x1b[0m" if line.strip() and not line.strip("^ \t") else line for line in lines]
