"""The grammar: grammar.lark as a parser, from the tables of grammar.json where they are of this grammar and this Lark.

Lark takes a tenth of a second to make the tables, which is most of what the first program of a process would cost. The
file is data, not a pickle: it can hold nothing but tables. `python -m tests.test_grammar` writes it anew after a change
of grammar.lark; with another version of Lark than the one that made it, the tables are made on the spot.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, ClassVar

import lark
from lark import Lark, Token
from lark.indenter import DedentError, Indenter

HERE = os.path.dirname(__file__)  # importlib's resources would import much more than it is worth
TEXT = os.path.join(HERE, "grammar.lark")
TABLES = os.path.join(HERE, "grammar.json")


class Indentation(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar[list[str]] = ["LPAR", "LSQB"]
    CLOSE_PAREN_types: ClassVar[list[str]] = ["RPAR", "RSQB"]
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Each text has an object of its own that counts for it: threads parse at the same time."""
        counted: Iterator[Token] = Indenter.process(Indentation(), stream)  # type: ignore[no-untyped-call]  # lark's own
        return counted

    def handle_NL(self, token: Token) -> Iterator[Token]:  # noqa: N802  # lark's own name
        try:
            yield from super().handle_NL(token)
        except DedentError as error:
            raise LostIndentation(token.end_pos or 0) from error


class LostIndentation(Exception):  # becomes a SyntaxFault where the text is at hand
    """A line is indented like no line above it."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def parser(indentation: Indenter) -> Lark:
    """The parser of programs (`start`) and of single expressions (`test`)."""
    text = _read(TEXT)
    known = json.loads(_read(TABLES))
    if known["grammar"] != text or known["lark"] != lark.__version__:
        return built(text, indentation)
    return loaded(known, indentation)


def built(text: str, indentation: Indenter) -> Lark:
    return Lark(
        text,
        parser="lalr",
        postlex=indentation,
        propagate_positions=True,
        maybe_placeholders=True,
        start=["start", "test"],
    )


def loaded(known: dict[str, Any], indentation: Indenter) -> Lark:
    """The parser of stored tables. JSON has texts for keys, where Lark has numbers."""
    table = known["data"]["parser"]["parser"]
    table["states"] = {int(state): actions for state, actions in table["states"].items()}
    memo = {int(number): item for number, item in known["memo"].items()}
    made: Lark = Lark._load_from_dict(known["data"], memo, postlex=indentation)  # type: ignore[no-untyped-call]
    return made


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
