"""Text -> IR: a Lark grammar, built into nodes with exact spans. Names get their kind here; check.py asks for sense."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from lark import Lark, ParseTree, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput

from ..errors import LimitError, ProgramError, Span, SyntaxFault
from . import hints, ir, limits
from .functions import KEYWORDS, KNOWN, Known
from .grammar import Indentation, LostIndentation, parser
from .name_kinds import flat_items, resolve_names
from .nested_calls import Arguments, Hoist, Lines, UserCall, in_each_step

NAMES = re.compile(r"[\w.]+")


@dataclass(frozen=True)
class Source:
    """A parsed text: its definitions by name, and the statements outside of them, if there are any."""

    definitions: dict[str, ir.Loops]
    main: ir.Loops | None


@dataclass(frozen=True)
class _Returns:
    names: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class _Array:
    """`X[i,j]: array`."""

    access: ir.Access


def _node(kind: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """A rule whose parts are those of a node as they stand."""
    return lambda self, meta, items: kind(*first, *items, span=self._span(meta))


class _Build:
    """One method for each rule of the grammar."""

    def __init__(self, text: str, functions: Known) -> None:
        self.text, self.functions = text, functions
        self.made: set[str] = set()  # names of what nested calls give

    def of(self, tree: ParseTree) -> Any:
        """What the tree says, from its leaves up; not recursive, so that a deep tree is no danger."""
        pending: list[Any] = [tree]
        order: list[Any] = []
        while pending:
            part = pending.pop()
            order.append(part)
            if isinstance(part, Tree):
                pending += part.children
        made: list[Any] = []
        for part in reversed(order):
            if isinstance(part, Tree):
                first = len(made) - len(part.children)
                made[first:] = [getattr(self, part.data)(part.meta, made[first:])]
            else:
                made.append(part)
        return made[0]

    def _span(self, meta: Any) -> Span:
        return Span(self.text, meta.start_pos, meta.end_pos)

    def _name(self, token: Token) -> str:
        name = str(token)
        span = Span(self.text, token.start_pos or 0, token.end_pos or 0)
        if name in self.functions:
            raise SyntaxFault(
                f"`{name}` is a function and cannot name a tensor or an index",
                span,
                f"use another name, such as `{name}_value`; the function is called with parentheses",
            )
        if name in hints.WORDS:
            raise SyntaxFault(f"there is no `{name}` here", span, hints.WORDS[name])
        if name in KEYWORDS:
            raise SyntaxFault(
                f"`{name}` is a word of the language and cannot name a tensor or an index",
                span,
                f"use another name, such as `{name}_`",
            )
        if len(name) > limits.NAME_LENGTH:
            raise LimitError(f"a name has at most {limits.NAME_LENGTH} characters", span, "shorten it")
        return name

    inside, negation, tensor_parameter = _node(ir.Inside), _node(ir.Unary, "not"), _node(ir.Argument)
    logic_and, logic_or = _node(ir.Logic, "and"), _node(ir.Logic, "or")

    def number(self, meta: Any, items: list[Token]) -> ir.Number:
        return ir.Number(_number(items[0], self._span(meta)), span=self._span(meta))

    def infinity(self, meta: Any, items: list[Any]) -> ir.Number:
        return ir.Number(float("inf"), span=self._span(meta))

    def parenthesis(self, meta: Any, items: list[ir.Expr]) -> ir.Expr:
        return items[0]

    def binary(self, meta: Any, items: list[Any]) -> ir.Binary:
        left, operator, right = items
        return ir.Binary(str(operator), left, right, span=self._span(meta))

    def minus(self, meta: Any, items: list[Any]) -> ir.Expr:
        operand: ir.Expr = items[1]
        bare = self.text[meta.start_pos + 1 : meta.end_pos].lstrip()[:1] not in ("-", "(")
        if isinstance(operand, ir.Number) and bare:
            return ir.Number(-operand.value, span=self._span(meta))
        return ir.Unary("-", operand, span=self._span(meta))

    def plus(self, meta: Any, items: list[Any]) -> Any:
        return items[1]

    def compared(self, meta: Any, items: list[Any]) -> ir.Expr:
        span = self._span(meta)
        pairs = [ir.Compare(str(items[k + 1]), items[k], items[k + 2], span=span) for k in range(0, len(items) - 1, 2)]
        result: ir.Expr = pairs[0]
        for pair in pairs[1:]:  # a < b < c means a < b and b < c
            result = ir.Logic("and", result, pair, span=span)
        return result

    def conditional(self, meta: Any, items: list[ir.Expr]) -> ir.Conditional:
        then, condition, otherwise = items
        return ir.Conditional(condition, then, otherwise, span=self._span(meta))

    def keyword(self, meta: Any, items: list[Any]) -> tuple[str, ir.Expr]:
        return str(items[0]), items[1]

    def several(self, meta: Any, items: list[ir.Expr]) -> ir.Several:
        return ir.Several(tuple(items), span=self._span(meta))

    def arguments(self, meta: Any, items: list[Any]) -> Arguments:
        positional = tuple(item for item in items if item is not None and not isinstance(item, tuple))
        return Arguments(positional, tuple(item for item in items if isinstance(item, tuple)))

    def call(self, meta: Any, items: list[Any]) -> Any:
        name, arguments = str(items[0]), items[1] or Arguments()
        span = self._span(meta)
        if name not in self.functions:
            return UserCall(name, arguments, span=span)
        for item in arguments.positional:
            if isinstance(item, ir.Several):
                raise SyntaxFault(f"`{name}` takes single values", item.span, f"write {name}(x)")
        if arguments.keywords:
            raise SyntaxFault(f"`{name}` takes no keywords", span, f"write {name}(x)")
        low, high = self.functions[name].least, self.functions[name].most
        count = len(arguments.positional)
        if not low <= count <= high:
            wanted = f"{low}" if low == high else f"{low} or more"
            plural = "" if wanted == "1" else "s"
            raise SyntaxFault(f"`{name}` takes {wanted} argument{plural}, not {count}", span, hints.call(name))
        if name == "where":
            return ir.Conditional(*arguments.positional, span=span)
        return ir.Call(name, arguments.positional, span=span)

    def index_size(self, meta: Any, items: list[Token]) -> ir.Size:
        return ir.Size(self._name(items[0]), span=self._span(meta))

    def batch_size(self, meta: Any, items: list[Token]) -> ir.Size:
        return ir.Size(ir.BATCH, span=self._span(meta))

    def axis_size(self, meta: Any, items: list[Token]) -> ir.AxisSize:
        span = self._span(meta)
        digits = str(items[1])
        axis = int(_number(Token("NUMBER", digits.lstrip("-")), span))
        return ir.AxisSize(self._name(items[0]), -axis if digits.startswith("-") else axis, span=span)

    def scalar(self, meta: Any, items: list[Token]) -> ir.Access:
        return ir.Access(self._name(items[0]), span=self._span(meta))

    empty_access = scalar

    def batch(self, meta: Any, items: list[Token]) -> ir.Index:
        return ir.Index(ir.BATCH, span=self._span(meta))

    def tensor(self, meta: Any, items: list[Any]) -> ir.Access:
        name, *places = items
        for place in places:
            _check(place)
        return ir.Access(self._name(name), tuple(ir.transform(p, _as_index) for p in places), span=self._span(meta))

    def plain_tensor(self, meta: Any, items: list[Token]) -> ir.Access:
        first = items[0].start_pos or 0
        name, *places = (
            Token("NAME", part.group(), first + part.start(), end_pos=first + part.end())
            for part in NAMES.finditer(items[0])
        )
        indices = tuple(self.index_line(place, [place]) for place in places)
        return ir.Access(self._name(name), indices, span=self._span(meta))

    def plain_array_line(self, meta: Any, items: list[Token]) -> _Array:
        return _Array(self.plain_tensor(meta, items))

    def signed(self, meta: Any, items: list[Any]) -> int | float:
        minus, digits = items
        value = _number(digits, self._span(meta))
        return -value if minus else value

    def default_parameter(self, meta: Any, items: list[Any]) -> ir.Argument:
        access, operator, default = items
        if operator != "=":
            raise SyntaxFault(f"`{operator}` does not belong here", self._span(meta), "a default is `name = 1`")
        return ir.Argument(access, default, span=self._span(meta))

    def static_parameter(self, meta: Any, items: list[Any]) -> ir.StaticDeclaration:
        span = self._span(meta)
        default = items[1] if len(items) > 1 else None
        if isinstance(default, Token):
            default = self._name(default)
        if isinstance(default, float):
            raise SyntaxFault(f"`{items[0]}` is an integer, its default is not", span, "write a whole number")
        return ir.StaticDeclaration(self._name(items[0]), default, span=span)

    static_line = static_parameter

    def parts(self, meta: Any, items: list[Token]) -> list[Token]:
        return items

    def parted_parameter(self, meta: Any, items: list[Any]) -> list[ir.StaticDeclaration]:
        name, parts, *default = items
        self._name(name)
        made = [self.static_parameter(meta, [part, *default]) for part in parts]
        return [replace(part, option=str(name)) for part in made]

    def array_line(self, meta: Any, items: list[Any]) -> _Array:
        return _Array(self.tensor(meta, items))

    def index_line(self, meta: Any, items: list[Token]) -> ir.Index:
        return ir.Index(self._name(items[0]), span=self._span(meta))

    def parameters(self, meta: Any, items: list[Any]) -> list[Any]:
        found = [item if isinstance(item, list) else [item] for item in items if item is not None]
        options = {parts[0].option: [part.name for part in parts] for parts in found if len(parts) > 1}
        return [_with_own_default(parts, place, options) for parts in found for place in range(len(parts))]

    def outputs(self, meta: Any, items: list[ir.Access]) -> tuple[ir.Access, ...]:
        return tuple(items)

    def returns(self, meta: Any, items: list[Token]) -> _Returns:
        return _Returns(tuple(self._name(item) for item in items), self._span(meta))

    def size_declaration(self, meta: Any, items: list[Any]) -> ir.SizeDeclaration:
        subject, operator, value = items
        span = self._span(meta)
        if operator != "=":
            raise SyntaxFault(f"a size is declared with `=`, not `{operator}`", span, "write `size(i) = ...`")
        _check(value)
        return ir.SizeDeclaration(subject, value, span=span)

    def plain(self, meta: Any, items: list[Any]) -> tuple[Any, None]:
        return items[0], None

    def guarded(self, meta: Any, items: list[Any]) -> tuple[Any, Any]:
        return items[0], items[1]

    def branched(self, meta: Any, items: list[Any]) -> tuple[Any, Any]:
        then, condition, (otherwise, guard) = items
        start = then.span.start if then.span else meta.start_pos
        end = otherwise.span.end if otherwise.span else meta.end_pos
        return ir.Conditional(condition, then, otherwise, span=Span(self.text, start, end)), guard

    def _fresh(self, function: str) -> str:
        """A name for what a nested call gives, which stands nowhere in the text."""
        name = next(
            name for n in itertools.count(1) if (name := f"{function}_{n}") not in self.made and name not in self.text
        )
        self.made.add(name)
        return name

    def statement(self, meta: Any, items: list[Any]) -> ir.Item | Lines:
        target, operator, (value, guard) = items
        span = Span(self.text, meta.start_pos, _end(items, meta))
        hoist = Hoist(self._fresh, _limit)
        if isinstance(value, UserCall):
            if operator != "=" or guard is not None:
                raise SyntaxFault(
                    f"`{value.function}(...)` is a call of a definition: it stands alone on the right of `=`",
                    value.span,
                    f"write `{target.tensor} = {value.function}(...)`",
                )
            call = hoist.call((target,), value)
            return Lines((*hoist.calls, call)) if hoist.calls else call
        if operator == "=" and guard is None and not target.indices:
            value = hoist.value(value)
        for part in (value, guard):
            if part is not None:
                _check(part)
        made = ir.Statement(target, str(operator), value, guard, span=span)
        return Lines((*hoist.calls, made)) if hoist.calls else made

    def call_statement(self, meta: Any, items: list[Any]) -> ir.Item | Lines:
        *targets, operator, name, arguments = items
        span = Span(self.text, name.start_pos, meta.end_pos)
        if operator != "=":
            raise SyntaxFault(f"a call gives its results with `=`, not `{operator}`", span, "write `A, B = op(X)`")
        hoist = Hoist(self._fresh, _limit)
        call = hoist.call(tuple(targets), UserCall(str(name), arguments or Arguments(), span=span))
        return Lines((*hoist.calls, call)) if hoist.calls else call

    def block(self, meta: Any, items: list[Any]) -> ir.Block:
        name, down, *lines = items
        body = _flat(lines)
        if self.made:
            body = [in_each_step(item, str(name), self.made) for item in body]
        for item in body:
            if not isinstance(item, ir.Statement | ir.Block | ir.CallStatement):
                raise SyntaxFault(
                    "only statements and blocks stand inside `for`",
                    self._span(meta),
                    "move sizes, definitions and `return` out of the block",
                )
        return ir.Block(self._name(name), tuple(body), down is not None, span=self._span(meta))

    def definition(self, meta: Any, items: list[Any]) -> ir.Loops:
        name, parameters, outputs, *lines = items
        span = Span(self.text, meta.start_pos, outputs[-1].span.end)
        header = ir.Header(self._name(name), tuple(parameters or ()), outputs, span=span)
        return _assemble(_flat(lines), header)

    def start(self, meta: Any, items: list[Any]) -> Source:
        definitions: dict[str, ir.Loops] = {}
        rest = []
        for item in _flat(items):
            if not isinstance(item, ir.Loops):
                rest.append(item)
                continue
            assert item.header
            if item.header.name in definitions:
                raise SyntaxFault(f"`{item.header.name}` is defined twice", item.header.span, "give one another name")
            definitions[item.header.name] = item
        return Source(definitions, _assemble(rest, None) if rest else None)


def _end(items: list[Any], meta: Any) -> int:
    """The end of a statement without the newline that closes it."""
    value, guard = items[2]
    last = guard if guard is not None else value
    return int(last.span.end if last.span else meta.end_pos)


def _with_own_default(parts: list[Any], place: int, options: dict[str, list[str]]) -> Any:
    """`stride: int[stride_h,stride_w] = kernel_size`: each part follows its own part of the other option."""
    default = parts[place].default if len(parts) > 1 else None
    followed = options.get(default, []) if isinstance(default, str) else []
    return replace(parts[place], default=followed[place]) if len(followed) == len(parts) else parts[place]


def _flat(lines: list[Any]) -> list[Any]:
    return [item for line in lines for item in (line.items if isinstance(line, Lines) else (line,))]


def _number(token: Token, span: Span) -> int | float:
    text = str(token)
    if len(text) > limits.DIGITS:
        raise LimitError(f"a number has at most {limits.DIGITS} digits", span, "round it: 17 digits are all that count")
    if not text.isdigit():
        return float(text)  # `inf` too
    value = int(text)
    if value >= 2**63:
        raise LimitError(f"{text} does not fit a 64-bit integer", span, f"write {text}.0 for a floating-point number")
    return value


def _as_index(node: ir.Expr) -> ir.Expr:
    """Inside brackets a bare name is an index (or a static integer: that is settled once all names are known)."""
    if isinstance(node, ir.Access) and not node.indices:
        return ir.Index(node.tensor, span=node.span)
    return node


def _refuse_user_call(node: Any) -> None:
    """A call of a definition inside an expression of single numbers."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, UserCall):
            bare = [a.tensor if isinstance(a, ir.Access) and not a.indices else "i" for a in item.arguments.positional]
            raise SyntaxFault(
                f"`{item.function}` is not a function of the language",
                item.span,
                hints.unknown_function(item.function, ",".join(bare) or "i"),
            )
        stack.extend(ir.children(item))


def _check(node: ir.Expr) -> None:
    """Refuses what is no expression of the language, or nests too deep."""
    _refuse_user_call(node)
    _limit(node)


def _limit(node: ir.Expr) -> None:
    if ir.depth(node) > limits.EXPRESSION_DEPTH:
        raise LimitError(
            f"the expression nests more than {limits.EXPRESSION_DEPTH} levels deep",
            node.span,
            "split it into several statements",
        )


def _assemble(items: list[Any], header: ir.Header | None) -> ir.Loops:
    """A program from its lines, every name with its kind."""
    returns = [item for item in items if isinstance(item, _Returns)]
    nested = next((item for item in items if isinstance(item, ir.Loops)), None)
    if nested and nested.header:
        raise SyntaxFault("a definition cannot stand inside another", nested.header.span, "move it to the top level")
    if returns and (header or len(returns) > 1 or items[-1] is not returns[0]):
        raise SyntaxFault(
            "`return` stands once, at the end of a program without `def`",
            returns[-1].span,
            "a `def` names its outputs behind `->`: remove the line" if header else "keep the last one",
        )
    body = tuple(i for i in items if isinstance(i, ir.Statement | ir.Block | ir.CallStatement))
    if returns:
        _refuse_unwritten(returns[0], body)
    loops = ir.Loops(
        body=body,
        sizes=tuple(item for item in items if isinstance(item, ir.SizeDeclaration)),
        statics=tuple(item for item in items if isinstance(item, ir.StaticDeclaration)),
        returns=returns[0].names if returns else None,
        header=header,
        arrays=tuple(item.access for item in items if isinstance(item, _Array)),
        ranges=tuple(item for item in items if isinstance(item, ir.Index)),
    )
    declared = next((node for node in (*loops.arrays, *loops.ranges)), None)
    if header and declared:
        raise SyntaxFault(
            "inside a `def`, arrays stand among its arguments, which show its indices",
            declared.span,
            f"write `def {header.name}(X[i], ...)`",
        )
    if header and loops.statics:
        raise SyntaxFault(
            "inside a `def`, static integers stand among its arguments",
            loops.statics[0].span,
            f"write `def {header.name}(..., {loops.statics[0].name}: int)`",
        )
    return resolve_names(loops)


def _refuse_unwritten(returns: _Returns, body: tuple[ir.Item, ...]) -> None:
    """Outputs that no statement writes: said here, where their place is known."""
    written: list[str] = []
    for item in flat_items(body):
        if isinstance(item, ir.Statement):
            written.append(item.target.tensor)
        elif isinstance(item, ir.CallStatement):
            written += [target.tensor for target in item.targets]
    for name in returns.names:
        if name not in written:
            raise ProgramError(
                f"the output {name} is never written",
                returns.span,
                hints.closest(name, written) or f"add a statement `{name} = ...`",
            )


@cache
def _grammar() -> Lark:
    return parser(Indentation())


def parse(text: str, functions: Known = KNOWN) -> Source:
    """The definitions and statements of a text. Raises a SwapError that shows the first thing it cannot read."""
    source = _read(text, "start", functions)
    assert isinstance(source, Source)
    return source


def parse_expression(text: str, functions: Known = KNOWN) -> ir.Expr:
    """One expression, for tables of rules; its bare names are scalars."""
    expression: ir.Expr = _read(text, "test", functions)
    _check(expression)
    return expression


def _read(text: str, start: str, functions: Known) -> Any:
    if not isinstance(text, str):
        raise SyntaxFault(f"a program is a text, not {type(text).__name__}", hint='write ts.program("Y[i] = X[i]")')
    limits.check_text(text)
    text = textwrap.dedent(text)
    if start == "start" and not text.endswith("\n"):
        text += "\n"
    try:
        return _Build(text, functions).of(_grammar().parse(text, start=start))
    except LostIndentation as lost:
        raise SyntaxFault(
            "this line is indented like no line above it",
            Span(text, lost.position, lost.position + 1),
            "indent the lines of a block alike",
        ) from None
    except UnexpectedInput as error:
        raise _syntax_fault(text, error) from None


def _syntax_fault(text: str, error: UnexpectedInput) -> SyntaxFault:
    start = getattr(error, "pos_in_stream", None)
    token = getattr(error, "token", None)
    start = len(text) - 1 if start is None or start < 0 or isinstance(error, UnexpectedEOF) else start
    word = str(token).partition("[")[0] or "["  # of `X[i]`, it is the name that is not expected
    end = getattr(token, "end_pos", 0)
    if getattr(token, "type", None) == "$END" and text[start:end].endswith("]"):
        start, word = end - 1, "]"  # of `X[i]`, it is the bracket that nothing follows
    length = len(word) if token is not None and not isinstance(error, UnexpectedCharacters) else 1
    end = start + max(1, length)
    message, hint, at = hints.syntax(text, start, end, getattr(token, "type", None) == "_INDENT")
    return SyntaxFault(message, Span(text, *at), hint)
