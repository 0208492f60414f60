"""Malformed and hostile texts: a text is a Program that prints and parses back, or a SwapError; nothing else escapes.

`python -m tests.test_malformed` measures instead: it reports the texts that take longest.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorswap as ts
from tensorswap import library
from tensorswap.errors import LimitError

from .daily import LONG

COUNT = 1_000_000 if LONG else 6_000
CHUNKS = 20
LIBRARY = ("softmax", "log_softmax", "linear", "layer_norm", "conv2d", "attention", "causal_attention", "momentum")

SNIPPETS = (
    "Y[h,i,j] += A[h,i,k] * B[h,j,k]",
    "S[h,i,j] += Q[h,i,k] * K[h,j,k] if j <= i",
    "Y[i] += X[i+p-1] * W[p] if inside",
    "size(i) = (size(h) + 2*pad - size(u)) // stride + 1\nY[i] += X[stride*i+u-pad] * W[u] * Z[h] if inside",
    "H[bin[n]] += w[n]\nsize(H, 0) = 8",
    "Y[b,t,d] = E[tok[b,t],d]",
    "m[i] max= X[i,j]\na[i] argmax= X[i,j]\nreturn m, a",
    "for t:\n    C[t] = (C[t-1] if t > 0 else 0) + X[t]",
    "for t down:\n    R[t] = X[t] + (R[t+1] if t < size(t) - 1 else 0.5e-3)",
    "def rnn(X[t,b,d], Wx[h,d], Wh[h,g], H0[b,h]) -> H[t,b,h]:\n    P[t,b,h] += Wx[h,d] * X[t,b,d]\n    for t:\n"
    "        P[t,b,h] += Wh[h,g] * (H[t-1,b,g] if t > 0 else H0[b,g])\n        H[t,b,h]  = tanh(P[t,b,h])",
    "def double(X[i]) -> Y[i]:\n    Y[i] = 2 * X[i]\nZ = double(A)",
    "S[i,j] += Q[i,k] * K[j,k]\nP = softmax(S)",
    "W[i,j] = W[i,j] - lr * g[i,j]",
    "M[...] max= X[...,j]  # the largest\nE[...,j] = exp(X[...,j] - stop(M[...]))",
    "X.grad[s] += Y.grad[(s-p)//2] * W[p] if (s-p) % 2 == 0 and inside\nsize(s) = size(Z, 0)\nQ[s] = Z[s]",
    "k: int = 3\nY[i] = X[i % k] ** -2.5 if not (i == 1 or i >= 4 and i != 6)",
    "Y[i] = where(X[i] > 0, X[i], -X[i]) + min(X[i], 1, 2) - uniform(7, i) * pow(abs(X[i]), 2)",
    "loss += (Y[i] - T[i])**2 / size(i)",
    "D[i] = X[i,i] + inf",
    "Y[i] = (X[i] +\n        Z[i]) \\\n       * 2",
)

WORDS = (
    "+ - * / // % ** = += -= *= max= min= argmax= argmin= == != < <= > >= ( ) [ ] , : -> ... . if else and or not for "
    "def return down inside inf size int 0 1 2.5 1e9 9223372036854775808 i j k X Y A.grad exp sin sum lambda @ ^ & | "
    "! ? ; ' \" { } # \\ $ ~ `"
)
SPACES = ("\t", "\n", "\r", "\r\n", "\n    ", "\n  ", "    ")
CONTROLS = ("\x00", "\x0b", "\x0c", "\x1b[31m", "\x7f", "\x85", "\u2028", "\ufeff")
TOKENS = (*WORDS.split(), *SPACES, *CONTROLS)

# Characters that compatibility normalisation (NFKC) turns into ASCII, and others that only look like it.
LOOK_ALIKES = (
    "\uff39\uff3b\uff49\uff3d\uff1d\uff38\uff0b\uff0a\uff0c\uff08\uff09\uff3f\uff10\uff11\u2460\u00b2\u00b3\u00bd\u2212"
    "\u00d7\u00b7\u2215\u2044\u2264\u2265\u2260\u2192\u2026\u00a0\u2003\u200b\u200d\u202e\u2066\u0406\u0410\u0391\u0131"
    "\u017f\u212a\u2113\ud835\udc00\u0661\u0967\u00aa\u00ba\ufb01\u1d62"
)

HOSTILE_NAMES = (
    "__import__ __builtins__ __class__ __bases__ __subclasses__ __mro__ __globals__ __code__ __dict__ __init__ "
    "__call__ __getattribute__ __reduce__ __loader__ __spec__ __name__ __file__ __doc__ __debug__ __main__ "
    "eval exec compile open input print getattr setattr delattr globals locals vars dir type object help breakpoint "
    "memoryview bytearray id hash iter next map filter super classmethod exit quit copyright True False None self cls "
    "os sys subprocess np numpy numba njit prange range len int float str bytes list dict set tuple bool complex"
)
HOSTILE_EXPRESSIONS = (
    "__import__('os').system('true')", "().__class__.__bases__[0].__subclasses__()", "lambda: 0", "(lambda x: x)(1)",
    "f'{1+1}'", "f\"{open('x')}\"", "(y := 1)", "[x for x in X]", "{x for x in X}", "{1: 2}", "(x for x in X)",
    "eval('1')", "exec('x=1')", "compile('1','','eval')", "open('secret').read()", "getattr(X, 'T')", "X.__class__",
    "X.grad.__class__", "`id`", "$(id)", "${HOME}", "%(name)s", "{0.__class__}", "{X!r}", "'%s' % X", "b'x'",
    "r'\\n'", "u'x'", "'''x'''", '"""x"""', "await X", "yield X", "yield from X", "*X", "**X", "X if", "...",
    "Ellipsis", "X[i].__array__()", "X[i]()", "X()()", "X[i](j)", "exp.__self__", "exp", "exp[i]", "exp(exp)",
    "size", "size(size)", "inside(inside)", "X[__import__]", "X[i:j]", "X[i, *j]", "X[**k]", "0x41", "0b1", "0o7",
    "1_000", "1j", "1e", "1.e", "1..2", "1.2.3", ".e1", "e1", "1e400", "-1e400", "1e-400", "nan", "NaN", "Infinity",
    "inf.grad", "X.grad.dot", "X.grad2.dot3", "X.grad.", "X..grad", "X.gradient", "X.grad0", "X. grad", "X .grad",
    "not", "not not", "- -", "a0", "i0", "njit", "#", "\\", "\\x41", "\\u0041", "\x00", "X\x00", "\\\n", "/*x*/",
    "//", "<!-- -->", "<script>", "'; DROP TABLE x; --", "../../etc/passwd", "%s%s%s%n", "\u202eX", "\u200bX",
    "\ufeffX", "X\u0301", "1" * 5000, "1." + "0" * 5000, "9" * 40, "9" * 41, "-9223372036854775808",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "0" * 39 + "1",
)  # fmt: skip
HOSTILE_LINES = (
    "import os", "from os import system", "import os as X", "from . import *", "global X", "nonlocal X", "del X",
    "pass", "assert X", "raise X", "raise SystemExit", "with X as Y:\n    Z = 1",
    "try:\n    X = 1\nexcept:\n    Y = 2", "class X:\n    Y = 1", "@X\ndef f(X[i]) -> Y[i]:\n    Y[i] = X[i]",
    "async def f(X):\n    Y = 1", "def f():\n    Y = 1", "def f() -> Y:\n    Y = 1",
    "def f(X[i]) -> X[i]:\n    X[i] = X[i]", "def f(f) -> f:\n    f = f", "def f(X[i+1]) -> Y[i]:\n    Y[i] = X[i]",
    "def f(X[i], X[i]) -> Y[i]:\n    Y[i] = X[i]", "def f(X[i]) -> Y[i], Y[i]:\n    Y[i] = X[i]",
    "def exp(X[i]) -> Y[i]:\n    Y[i] = X[i]", "def f(X[i]) -> Y[i]:\n    Y = f(X)",
    "def f(X[i]) -> Y[i]:\n    Y = g(X)\ndef g(X[i]) -> Y[i]:\n    Y = f(X)",
    "def f(n: int = 1.5) -> Y[i]:\n    Y[i] = n", "def f(n: int = -1, X[i]) -> Y[i]:\n    Y[i] = X[i] + n",
    "for t:\n    for t:\n        Y[t] = 1", "for t:\n    def f(X) -> Y:\n        Y = X", "for t:\n    return Y",
    "for t:\n    size(t) = 3", "for i:\nY[i] = 1", "for:\n    Y = 1", "for for:\n    Y = 1",
    "for t up:\n    Y[t] = 1", "return", "return 1", "return Y\nreturn Y", "return Y, Y\nY = 1",
    "Y = 1\nreturn Y, Y", "Y = 1\nreturn X", "size(i) = size(i)\nY[i] = 1",
    "size(i) = size(j)\nsize(j) = size(i)\nY[i,j] = 1", "size(i) = i\nY[i] = 1", "size(i) += 3\nY[i] = 1",
    "size(i) = 1.5\nY[i] = 1", "size(i) = X[0]\nY[i] = 1", "size(Y, 0) = size(Y, 0)\nY[2*i] = X[i]",
    "size(Y, 99999999999999999999) = 3\nY[i] = X[i]", "size(X, 5) = 3\nY[i] = X[i]",
    "size(i) = 3\nsize(i) = 4\nY[i] = 1", "size(...) = 3\nY[...] = 1", "size(i, j) = 3\nY[i] = 1",
    "i: int\nY[i] = X[i]", "Y: int\nY[i] = X[i]", "n: int\nn = 3", "n: int = 1\nn: int = 2\nY = n",
    "n: float\nY = n", "n: int = X\nY = n", "int: int\nY = int", "down: int\nY = down", "Y[] = 1", "Y[,] = 1",
    "Y[i,] = X[i]", "Y[,i] = X[i]", "[i] = X[i]", "Y] = 1", "Y[ = 1", "Y = ", "= 1", "Y", "Y[i]", "1 = Y", "1",
    "Y + 1 = 2", "Y = Z = 1", "Y, Z = 1", "Y, Z = f(X)", "Y, Z += softmax(X)", "Y = softmax()", "Y = softmax(X, X)",
    "Y = softmax(X=X)", "Y = softmax(S=X)", "Y = softmax(X, X=X)", "Y = softmax(1)", "Y = softmax(X + 1)",
    "Y[i] += softmax(X)", "Y = softmax(softmax(X))", "Y = 2 * softmax(X)", "Y = softmax(X) if 1",
    "Y[softmax(X)] = 1", "Y = exp(x=1)", "Y = exp()",
    "Y, Y = f(X)\ndef f(X[i]) -> A[i], B[i]:\n    A[i] = X[i]\n    B[i] = X[i]", "softmax = softmax(softmax)",
    "Y = linear(Y)", "X.grad = softmax(X)", "Y[i] = X.grad[i] + X[i]", "Y.grad[i] = 1", "Y[inside] = 1",
    "Y[i] = inside", "Y[i] = X[i] if inside else 0", "Y[i] = X[i] if not inside", "Y[i] = X[i] if inside or i < 3",
    "Y[...] = X[...,...]", "Y[...+1] = X[...]", "Y[i] = X[...]", "Y[...] = X[...] if ... < 3",
    "Y[i] = X[i] if i < j", "Y[i,i] = X[i]", "Y[i] = X[i] < X[i] < X[i] == 1", "Y[i] = 1 if i else 2 if i",
    "Y[i] = (1 if i) else 2", "Y[i] = 0 / 0", "Y[i] = X[i//0]", "Y[i] = X[i%0]", "Y[0*i] = X[i]", "Y[-i] = X[i]",
    "Y[i-9223372036854775807] = X[i]", "Y[9223372036854775807*i] = X[i]", "Y[-1] = 1", "Y[9223372036854775807] = 1",
    "\tY = 1\n    Z = 2", "  Y = 1\n Z = 2\n", "Y = 1\r\nZ = 2\r\n", "Y = 1\rZ = 2", "\ufeffY = 1", "Y = 1\x0cZ = 2",
    "Y = 1\u2028Z = 2", "Y = 1 # \x00", "#" * 1000, "\n" * 1000, " " * 1000, "\\\n" * 100,
)  # fmt: skip


def injections() -> list[str]:
    """The fixed corpus: hostile names, expressions and lines, each in places where they could do harm."""
    texts = list(HOSTILE_LINES)
    for name in HOSTILE_NAMES.split():
        texts += [
            f"{name}[i] = X[i]",
            f"Y[i] = {name}[i] + {name}[i+1]",
            f"Y[{name}] = X[{name}]",
            f"Y = {name}(X)",
            f"def {name}(X[i]) -> Y[i]:\n    Y[i] = X[i]",
        ]
    for expression in HOSTILE_EXPRESSIONS:
        texts += [f"Y[i] = X[i] * {expression}", f"Y[{expression}] += X[i]", f"Y[i] = X[i] if {expression}", expression]
    return texts


def chains(n: int) -> list[str]:
    """Texts of n tokens or more that the grammar reads to the end."""
    return [
        "Y = " + "(" * n + "x" + ")" * n, "Y = " + "- " * n + "x", "Y = " + "+ " * n + "x", "Y = " + "-" * n + "1",
        "Y[i] = X[i] if " + "not " * n + "i", "Y = " + "x**" * n + "x", "Y = " + "x+" * n + "x",
        "Y = " + "x*" * n + "x", "Y = " + "x-" * n + "x", "Y = " + "x if x else " * n + "x", "Y = " + "x<" * n + "x",
        "Y = " + "x and " * n + "x", "Y = " + "x or not " * n + "x", "Y = max(" + "x," * n + "x)",
        "Y[" + "i," * n + "i] = 1", "Y = f(" + "k=x," * n + "x)", "return " + "x," * n + "x", "def f(" + "X[i]," * n,
    ]  # fmt: skip


def floods(n: int) -> list[str]:
    """Texts of n characters or more that are refused, or skipped, early."""
    return [
        "Y = " + "(" * n, "Y = " + ")" * n, "Y = " + "X[" * n + "i" + "]" * n, "Y = x" + " if x" * n,
        "Y = " + "exp(" * n + "x" + ")" * n, "Y = " + "f(" * n + "x" + ")" * n, "Y = " + "1" * n, "Y = ." + "1" * n,
        "Y = 1e" + "1" * n, "Y = 1" + "e1" * n, "Y = " + "x" * n, "x" * n + " = 1", "Y[" + "x" * n + "] = 1",
        "Y = x" + ".grad" * n, "Y = x" + "." * n, "Y = x" + ".a" * n, "Y[" + "," * n + "]", "Y = x #" + "x" * n,
        "Y = x" + " " * n, "Y = x" + "\\\n" * n, "Y = x" + "\n" * n, "\n" * n + "Y = @", "[" * n, "]" * n,
        "Y = 'x" + "'" * n, "a[" * n, "for i in " * n, "Y = " + "x x " * n, "Y = " + "2x" * n, "Y " + "=" * n,
        "if " * n, "Y = x; " * n, "\x00" * n, "\u0661" * n, "Y = " + "\uff38" * n, "def " * n, ": " * n, "-> " * n,
        "Y = " + "x:=" * n, "Y = " + "size(x," * n, "Y = size(X, " + "1" * n + ")", "Y[i] = X[" + "i:" * n + "]",
        "max " * n + "= 1", "Y = " + "inf." * n, "Y = " + "(x, " * n, "#" * n + "\nY = $", "Y = " + "\t" * n + "$",
    ]  # fmt: skip


def towers(n: int) -> list[str]:
    """Blocks in blocks, definitions that call definitions, and long programs."""
    called = "".join(f"def f{k}(X[i]) -> Y[i]:\n    Y = f{k + 1}(X)\n" for k in range(n))
    twice = "".join(
        f"def f{k}(X[i]) -> Y[i]:\n    A = f{k + 1}(X)\n    B = f{k + 1}(A)\n    Y[i] = B[i]\n" for k in range(n)
    )
    return [
        "".join("    " * k + "for i:\n" for k in range(n)) + "    " * n + "Y[i] = 1",
        "".join("    " * k + f"for i{k}:\n" for k in range(n)) + "    " * n + "Y[i0] = 1",
        "".join(f"Y{k + 1}[i] = Y{k}[i] + Y{k}[i]\n" for k in range(n)),
        "Y[i] += X[i]\n" * n,
        "Y = f(\n" * n,
        called,
        called + f"def f{n}(X[i]) -> Y[i]:\n    Y[i] = X[i]\nZ = f0(Q)",
        twice + f"def f{n}(X[i]) -> Y[i]:\n    Y[i] = X[i]\nZ = f0(Q)",
    ]


def extremes() -> list[str]:
    texts = [text for n in (50, 149, 151, 1000) for text in chains(n)]
    texts += [text for n in (50, 151, 100_000) for text in floods(n)]
    return texts + [text for n in (1, 5, 40, 100) for text in towers(n)]


def seeds() -> list[str]:
    return [*SNIPPETS, *(library.definitions().texts[name].strip() + "\n" for name in LIBRARY)]


Mutation = Callable[[random.Random, str], str]


def _cut(chance: random.Random, text: str) -> tuple[int, int]:
    start = chance.randrange(len(text) + 1)
    return start, min(len(text), start + chance.choice((1, 1, 1, 2, 3, 8)))


def delete(chance: random.Random, text: str) -> str:
    start, end = _cut(chance, text)
    return text[:start] + text[end:]


def duplicate(chance: random.Random, text: str) -> str:
    start, end = _cut(chance, text)
    return text[:end] + text[start:end] * chance.choice((1, 1, 2, 5)) + text[end:]


def swap(chance: random.Random, text: str) -> str:
    a, b = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    return text[:a] + text[b : b + 1] + text[a + 1 : b] + text[a : a + 1] + text[b + 1 :]


def insert_token(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(TOKENS) + text[at:]


def replace_token(chance: random.Random, text: str) -> str:
    start, end = _cut(chance, text)
    return text[:start] + chance.choice(TOKENS) + text[end:]


def insert_character(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    kinds = (chance.randrange(32), chance.randrange(256), chance.randrange(0xD800), chance.randrange(0x10000, 0x110000))
    return text[:at] + chr(chance.choice(kinds)) + text[at:]


def look_alike(chance: random.Random, text: str) -> str:
    start, end = _cut(chance, text)
    return text[:start] + chance.choice(LOOK_ALIKES) + text[end:]


def splice_lines(chance: random.Random, text: str) -> str:
    lines = text.split("\n") + chance.choice(SNIPPETS).split("\n")
    chance.shuffle(lines)
    return "\n".join(lines[: chance.randrange(1, len(lines) + 1)])


def indent_line(chance: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    lines[at] = chance.choice(("", " ", "  ", "\t", "        ")) + lines[at].strip()
    return "\n".join(lines)


def inject(chance: random.Random, text: str) -> str:
    start, end = _cut(chance, text)
    return text[:start] + chance.choice(HOSTILE_EXPRESSIONS) + text[end:]


def random_bytes(chance: random.Random, text: str) -> str:
    return chance.randbytes(chance.randrange(60)).decode("latin-1")


def shuffled_tokens(chance: random.Random, text: str) -> str:
    return chance.choice(("", " ")).join(chance.choices(TOKENS, k=chance.randrange(1, 25)))


MUTATIONS: tuple[Mutation, ...] = (
    delete, delete, duplicate, swap, insert_token, insert_token, replace_token, replace_token, insert_character,
    look_alike, splice_lines, indent_line, inject, random_bytes, shuffled_tokens,
)  # fmt: skip


def mutants(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    originals = seeds()
    for _ in range(count):
        text = chance.choice(originals)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            text = chance.choice(MUTATIONS)(chance, text)
        yield text


def check_message(error: ts.SwapError) -> None:
    assert error.faults
    assert all(fault.message for fault in error.faults)
    assert isinstance(error, LimitError) or all(fault.hint for fault in error.faults), f"no fix: {error}"
    assert len(str(error)) < 20_000, "a hostile text made a hostile message"


def check_text(text: str) -> bool:
    """Whether the text is a program; it then prints and parses back. Any exception but SwapError escapes."""
    try:
        program = ts.program(text)
    except ts.SwapError as error:
        check_message(error)
        return False
    assert ts.program(str(program)) == program, f"{text!r} prints as {str(program)!r}, which is another program"
    return True


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutants(chunk: int) -> None:
    outcomes = [check_text(text) for text in mutants(chunk, COUNT // CHUNKS)]
    assert len(outcomes) == COUNT // CHUNKS
    assert 0.02 < sum(outcomes) / len(outcomes) < 0.9, "mutants should be partly valid, partly not"


@pytest.mark.parametrize("text", seeds(), ids=range(len(seeds())))
def test_originals_are_programs(text: str) -> None:
    assert check_text(text)


def test_injections() -> None:
    texts = injections()
    assert len(set(texts)) >= 200
    outcomes = [check_text(text) for text in texts]
    assert not all(outcomes)


def test_extremes() -> None:
    outcomes = [check_text(text) for text in extremes()]
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.parametrize(
    "value", [None, 1, 1.5, b"Y = 1", ["Y = 1"], object(), SNIPPETS, type], ids=lambda v: type(v).__name__
)
def test_what_is_no_text(value: Any) -> None:
    with pytest.raises(ts.SwapError, match="a program is a text"):
        ts.program(value)


def test_the_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_malformed.ts.program", lambda text: f"{text} and more")
    with pytest.raises(AssertionError, match="another program"):
        check_text("Y = 1")


HARMFUL = ("exec", "compile", "open", "import", "subprocess.", "os.", "socket.", "ctypes.", "shutil.", "pty.")
_seen: list[str] = []
_watching: list[bool] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event.startswith(HARMFUL):
        _seen.append(f"{event} {str(arguments)[:80]}")


def events_during(action: Callable[[], object]) -> list[str]:
    """The audit events of code that runs, files that open and the like, while `action` runs."""
    if not _installed:
        sys.addaudithook(_watch)  # a hook can never be removed, so there is one
        _installed.append(True)
    _seen.clear()
    _watching.append(True)
    try:
        action()
    finally:
        _watching.clear()
    return list(_seen)


_installed: list[bool] = []


def test_parsing_runs_nothing() -> None:
    hostile = [*injections(), *mutants(1000, 500)]
    for text in [*seeds(), *hostile]:  # the grammar, the library and lazy imports are read once
        check_text(text)
    assert events_during(lambda: [check_text(text) for text in hostile]) == []


def test_the_watch_can_fail() -> None:
    assert events_during(lambda: eval(compile("1", "text", "eval")))


def slowest(count: int = 25) -> list[tuple[float, int, str]]:
    """The texts that take longest: seconds, length, and their first characters."""
    times = []
    for text in seeds():
        check_text(text)
    for text in [*extremes(), *injections(), *mutants(0, COUNT)]:
        start = time.perf_counter()
        check_text(text)
        times.append((time.perf_counter() - start, len(text), text[:70]))
    return sorted(times, reverse=True)[:count]


if __name__ == "__main__":
    for seconds, length, beginning in slowest():
        print(f"{seconds * 1000:9.1f} ms {length:9,} characters  {beginning!r}")
