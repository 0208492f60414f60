"""Text -> a tree of tuples and small records; a recursive descent from the language page, not the library's parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Node = tuple[Any, ...]

TOKEN = re.compile(
    r"\s*(?:(\d+\.\d*(?:e[+-]?\d+)?|\.\d+|\d+(?:e[+-]?\d+)?)|([A-Za-z_]\w*)|(\.\.\.|\*\*|//|[<>=!]=|[-+*/%<>()\[\],:=]))"
)
COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
OPERATORS = ("argmax=", "argmin=", "max=", "min=", "+=", "-=", "*=", "=")


@dataclass(frozen=True)
class Statement:
    target: Node
    operator: str
    value: Node
    guard: Node | None = None


@dataclass(frozen=True)
class Block:
    index: str
    down: bool
    body: tuple[Item, ...]


@dataclass(frozen=True)
class Call:
    targets: tuple[Node, ...]
    name: str
    arguments: tuple[Node, ...]
    keywords: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Size:
    of: Node
    value: Node


@dataclass(frozen=True)
class Static:
    name: str
    default: int | None


@dataclass(frozen=True)
class Definition:
    name: str
    parameters: tuple[tuple[Node, Node | None, bool], ...]  # access, default, whether it is a static integer
    outputs: tuple[Node, ...]
    body: tuple[Item, ...]


@dataclass(frozen=True)
class Return:
    names: tuple[str, ...]


Item = Statement | Block | Call | Size | Static | Definition | Return


@dataclass
class Tokens:
    words: list[str]
    place: int = 0

    @property
    def next(self) -> str:
        return self.words[self.place] if self.place < len(self.words) else ""

    def take(self, *expected: str) -> str:
        word = self.next
        if expected and word not in expected:
            raise ValueError(f"expected {expected}, found {word!r} in {' '.join(self.words)}")
        self.place += 1
        return word

    def took(self, *words: str) -> bool:
        if self.next in words and self.next:
            self.place += 1
            return True
        return False


def tokens(line: str) -> Tokens:
    words, position = [], 0
    while line[position:].strip():
        match = TOKEN.match(line, position)
        if match is None:
            raise ValueError(f"cannot read {line[position:]!r}")
        words.append(match.group().strip())
        position = match.end()
    return Tokens(words)


def parse(text: str) -> tuple[Item, ...]:
    lines = [line for line in text.splitlines() if line.strip()]
    items, rest = _body(lines, 0, 0)
    assert rest == len(lines)
    return items


def _body(lines: list[str], start: int, depth: int) -> tuple[tuple[Item, ...], int]:
    items: list[Item] = []
    while start < len(lines):
        line = lines[start]
        indent = len(line) - len(line.lstrip())
        if indent < depth:
            break
        start += 1
        words = line.split()
        if words[0] in ("for", "def"):
            inner = len(lines[start]) - len(lines[start].lstrip())
            body, start = _body(lines, start, inner)
            if words[0] == "for":
                items.append(Block(words[1].rstrip(":"), "down" in line, body))
            else:
                items.append(_definition(tokens(line), body))
        else:
            items.append(_line(line))
    return tuple(items), start


def _line(line: str) -> Item:
    if line.strip().startswith("return"):
        return Return(tuple(name.strip() for name in line.strip()[6:].split(",")))
    if re.fullmatch(r"\s*\w+\s*:\s*int(\s*=.*)?", line):
        name, rest = line.split(":")
        return Static(name.strip(), int(rest.split("=")[1]) if "=" in rest else None)
    at = _operator(line)
    left, operator, right = line[: at[0]], line[at[0] : at[1]].strip(), line[at[1] :]
    heads = tokens(left)
    targets = [_atom(heads)]
    while heads.took(","):
        targets.append(_atom(heads))
    assert not heads.next, line
    if targets[0][0] == "size":
        return Size(targets[0], _test(tokens(right)))
    words = tokens(right)
    if re.match(r"\s*[A-Za-z_]\w*\(", right) and words.next not in FUNCTIONS | {"size"} and operator == "=":
        arguments, keywords = _arguments(words)
        return Call(tuple(targets), words.words[0], arguments, keywords)
    value = _or(words)
    guard = None
    while words.took("if"):
        condition = _or(words)
        if words.took("else"):
            value = _branch(value, condition, words)
            if value[0] == "guarded":
                _, value, guard = value
        else:
            guard = condition
    assert not words.next, (line, words.words[words.place :])
    return Statement(targets[0], operator, value, guard)


def _branch(value: Node, condition: Node, words: Tokens) -> Node:
    """Behind `else` of a whole right side: a further conditional, or a value with the statement's guard behind it."""
    other = _or(words)
    if not words.took("if"):
        return ("cond", value, condition, other)
    second = _or(words)
    if not words.took("else"):
        return ("guarded", ("cond", value, condition, other), second)
    inner = _branch(other, second, words)
    if inner[0] == "guarded":
        return ("guarded", ("cond", value, condition, inner[1]), inner[2])
    return ("cond", value, condition, inner)


def _operator(line: str) -> tuple[int, int]:
    depth = 0
    for position, letter in enumerate(line):
        depth += (letter in "[(") - (letter in "])")
        if depth == 0 and letter in "+-*=mas " and position:
            for operator in OPERATORS:
                if line.startswith(operator, position) and (letter not in "ma" or line[position - 1] == " "):
                    return position, position + len(operator)
    raise ValueError(f"no operator in {line!r}")


def _arguments(words: Tokens) -> tuple[tuple[Node, ...], tuple[tuple[str, Node], ...]]:
    words.take()
    words.take("(")
    arguments, keywords = [], []
    while not words.took(")"):
        if words.words[words.place + 1 : words.place + 2] == ["="]:
            name = words.take()
            words.take("=")
            keywords.append((name, _test(words)))
        else:
            arguments.append(_test(words))
        words.took(",")
    return tuple(arguments), tuple(keywords)


def _definition(words: Tokens, body: tuple[Item, ...]) -> Definition:
    words.take("def")
    name = words.take()
    words.take("(")
    parameters: list[tuple[Node, Node | None, bool]] = []
    while not words.took(")"):
        access = _atom(words)
        static = words.took(":")
        if static:
            words.take("int")
        default = _signed(words) if words.took("=") else None
        parameters.append((access, default, static))
        words.took(",")
    words.take("-")
    words.take(">")
    outputs = [_atom(words)]
    while words.took(","):
        outputs.append(_atom(words))
    words.take(":")
    return Definition(name, tuple(parameters), tuple(outputs), body)


def _test(words: Tokens) -> Node:
    value = _or(words)
    if words.took("if"):
        condition = _or(words)
        words.take("else")
        return ("cond", value, condition, _test(words))
    return value


def _or(words: Tokens) -> Node:
    left = _and(words)
    while words.took("or"):
        left = ("or", left, _and(words))
    return left


def _and(words: Tokens) -> Node:
    left = _not(words)
    while words.took("and"):
        left = ("and", left, _not(words))
    return left


def _not(words: Tokens) -> Node:
    return ("not", _not(words)) if words.took("not") else _comparison(words)


def _comparison(words: Tokens) -> Node:
    left = _sum(words)
    parts: list[Node] = []
    while words.next in COMPARISONS:
        operator, right = words.take(), _sum(words)
        parts.append(("cmp", operator, left, right))
        left = right
    if not parts:
        return left
    whole = parts[0]
    for part in parts[1:]:
        whole = ("and", whole, part)
    return whole


def _sum(words: Tokens) -> Node:
    left = _product(words)
    while words.next in ("+", "-"):
        left = ("bin", words.take(), left, _product(words))
    return left


def _product(words: Tokens) -> Node:
    left = _signed(words)
    while words.next in ("*", "/", "//", "%"):
        left = ("bin", words.take(), left, _signed(words))
    return left


def _signed(words: Tokens) -> Node:
    if words.took("-"):
        return ("neg", _signed(words))
    if words.took("+"):
        return _signed(words)
    base = _atom(words)
    return ("bin", "**", base, _signed(words)) if words.took("**") else base


def _atom(words: Tokens) -> Node:
    word = words.take()
    if word == "(":
        inner = _test(words)
        words.take(")")
        return inner
    if word == "...":
        return ("batch",)
    if word[0].isdigit() or word[0] == ".":
        return ("num", int(word) if word.isdigit() else float(word))
    if word == "inf":
        return ("num", float("inf"))
    if word == "inside":
        return ("inside",)
    if word == "size":
        words.take("(")
        name = words.take()
        axis = None
        if words.took(","):
            axis = -int(words.take()) if words.took("-") else int(words.take())
        words.take(")")
        return ("size", name, axis)
    if words.next == "(":
        words.place -= 1
        arguments, _ = _arguments(words)
        return ("call", word, *arguments)
    if words.took("["):
        places = []
        while not words.took("]"):
            places.append(_test(words))
            words.took(",")
        return ("access", word, *places)
    return ("name", word)


FUNCTIONS = frozenset(
    [
        "abs",
        "sign",
        "sqrt",
        "exp",
        "log",
        "log1p",
        "expm1",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "sigmoid",
        "relu",
        "gelu",
        "silu",
        "softplus",
        "erf",
        "floor",
        "ceil",
        "round",
        "min",
        "max",
        "pow",
        "atan2",
        "hypot",
        "where",
        "stop",
        "uniform",
        "normal",
    ]
)


def render(items: tuple[Item, ...], depth: int = 0) -> str:
    """The text of a tree, with every inner operation in parentheses."""
    lines = []
    for item in items:
        lines += ["    " * depth + line for line in _lines(item)]
    return "\n".join(lines)


def _lines(item: Item) -> list[str]:
    match item:
        case Statement(target, operator, value, guard):
            head = f"{show(target)} {operator} {show(value, guard is None)}"
            return [head + (f" if {show(guard, True)}" if guard is not None else "")]
        case Block(index, down, body):
            return [f"for {index}{' down' if down else ''}:", *render(body, 1).splitlines()]
        case Call(targets, name, arguments, keywords):
            given = [show(argument) for argument in arguments] + [f"{key}={show(value)}" for key, value in keywords]
            return [f"{', '.join(map(show, targets))} = {name}({', '.join(given)})"]
        case Size(of, value):
            return [f"{show(of)} = {show(value, True)}"]
        case Static(name, default):
            return [f"{name}: int" + (f" = {default}" if default is not None else "")]
        case Return(names):
            return ["return " + ", ".join(names)]
        case Definition(name, parameters, outputs, body):
            heads = [
                show(access) + (": int" if static else "") + (f"={show(default, True)}" if default is not None else "")
                for access, default, static in parameters
            ]
            head = f"def {name}({', '.join(heads)}) -> {', '.join(map(show, outputs))}:"
            return [head, *render(body, 1).splitlines()]
    raise AssertionError(item)


def show(node: Node, bare: bool = False) -> str:
    match node:
        case ("num", value):
            return "inf" if value == float("inf") else repr(value)
        case ("name", name):
            return str(name)
        case ("batch",):
            return "..."
        case ("inside",):
            return "inside"
        case ("size", name, axis):
            return f"size({name})" if axis is None else f"size({name}, {axis})"
        case ("access", name, *places):
            return f"{name}[{','.join(show(place, True) for place in places)}]"
        case ("call", name, *arguments):
            return f"{name}({', '.join(show(argument, True) for argument in arguments)})"
        case ("neg", inner):
            text = f"-{show(inner)}"
        case ("not", inner):
            text = f"not {show(inner)}"
        case ("bin" | "cmp", operator, left, right):
            text = f"{show(left)} {operator} {show(right)}"
        case ("and" | "or" as word, left, right):
            text = f"{show(left)} {word} {show(right)}"
        case ("cond", value, condition, other):
            text = f"{show(value)} if {show(condition)} else {show(other)}"
        case _:
            raise AssertionError(node)
    return text if bare else f"({text})"


def walk(node: Node) -> list[Node]:
    """The node and all below it, from left to right in the text."""
    if node[0] == "cond":
        return [node, *walk(node[1]), *walk(node[2]), *walk(node[3])]
    found = [node]
    for child in node[1:]:
        if isinstance(child, tuple):
            found += walk(child)
    return found


def statements(items: tuple[Item, ...]) -> Iterator[Statement | Call]:
    """Those of a body and of the blocks in it, in order."""
    for item in items:
        if isinstance(item, Block):
            yield from statements(item.body)
        elif isinstance(item, Statement | Call):
            yield item


def nodes(items: tuple[Item, ...]) -> Iterator[Node]:
    """Every node of every statement, in the order of the text."""
    for item in statements(items):
        if isinstance(item, Statement):
            for part in (item.target, item.value, item.guard):
                if part is not None:
                    yield from walk(part)
