"""Colours for texts of the language, on the site."""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Text, _TokenType

from tensorswap.explain.pieces import pieces

KINDS = {
    "operator": Operator,
    "comparison": Operator,
    "gradient": Name.Variable,
    "word": Keyword,
    "function": Name.Function,
    "name": Name,
    "number": Number,
    "other": Text,
}


class LoopsLexer(Lexer):
    """The pieces that the command colours, and comments."""

    name = "tensorswap"
    aliases = ("loops",)

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        at = 0
        for line in text.splitlines(keepends=True):
            code, mark, comment = line.partition("#")
            for kind, piece in pieces(code):
                yield at, KINDS[kind], piece
                at += len(piece)
            if mark:
                yield at, Comment, mark + comment
                at += len(mark + comment)
