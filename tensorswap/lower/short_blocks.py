"""Short blocks: a block whose step is a few plain assignments is one function.

Each statement is a function of its own elsewhere. Here that would cost more than the statements do: a step would store
all that it makes, and the next one wait for it to come back from memory. In one function LLVM keeps it in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..kernel import ir
from ..kernel.ir import Body, For, If, Set, Statement, Step, Store, Type

MOST = 48  # assignments: compilers take longer for one long function than for many
ROUNDS = 8  # of a loop that is written out


def as_one(loop: For) -> For | None:
    """The loop with all that its steps do in its own body, if that is short."""
    pieces: list[Statement] = []
    comments: list[str] = []
    for statement in loop.body:
        pieces += statement.body if isinstance(statement, Step) else [statement]
        comments += [statement.comment] if isinstance(statement, Step) else []
    body = tuple(pieces)
    if not comments or not _plain(body) or _assignments(body) > MOST or _names_clash(body):
        return None
    return replace(loop, body=body, plain=True)


def comment_of(loop: For) -> str:
    return "; ".join(statement.comment for statement in loop.body if isinstance(statement, Step))


def _plain(body: Body) -> bool:
    """Whether nothing but assignments stands there, in branches or in loops of a few rounds."""
    for statement in body:
        match statement:
            case Set() | Store():
                continue
            case If(then=then, otherwise=otherwise) if _plain(then) and _plain(otherwise):
                continue
            case For(body=inner, rounds=range() as rounds) if len(rounds) <= ROUNDS and _plain(inner):
                continue
        return False
    return True


def _assignments(body: Body) -> int:
    """Of a body whose loops have rounds that are known."""
    total = 0
    for statement in body:
        match statement:
            case If(then=then, otherwise=otherwise):
                total += _assignments(then) + _assignments(otherwise)
            case For(body=inner, rounds=range() as rounds):
                total += len(rounds) * _assignments(inner)
            case _:
                total += 1
    return total


def _names_clash(body: Body) -> bool:
    """Whether two pieces have variables of one name and two types."""
    types: dict[str, Type] = {}
    return any(types.setdefault(v.name, v.type) != v.type for v in _made(body))


def _made(body: Body) -> Iterator[ir.Variable]:
    for node in ir.walk(body):
        if isinstance(node, Set | For):
            yield node.variable
