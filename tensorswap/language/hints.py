"""What a newcomer probably meant: a table of patterns for lines that do not parse, and the fix for each."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache

from .functions import KEYWORDS, KNOWN

LINE_LENGTH = 400  # no pattern looks further: some take quadratic time

TARGET = r"^\s*[A-Za-z_][\w.]*(?:\[[^\]]*\])?\s*"
DERIVED = "grad|dot|arg|others|shared|total|adjoint|tangent|batch"  # what may stand behind the dot of a name

# Each row: a pattern searched in the faulty line, what is wrong, what would be right. The first match speaks. The
# caret stands under the group `at`, or under all of the match; the texts may use the groups of the pattern.
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (
        r"\bfor\s+(?P<index>\w+)\s+(?P<at>in\b.*?)\s*:?\s*$",
        "`for` names an index and nothing else",
        "write `for {index}:`; its range comes from the tensors, or from `size({index}) = ...`",
    ),
    (r"^\s*for\s+\w+\s*(?P<at>,)", "a `for` block has one index", "put one `for` block inside the other"),
    (r"^\s*(?P<head>for\s+\w+(?:\s+down)?)(?P<at>)\s*$", "a `for` line ends with a colon", "write `{head}:`"),
    (r"^\s*(?P<head>def\b.*->.*\S)(?P<at>)(?<!:)\s*$", "a `def` line ends with a colon", "write `{head}:`"),
    (
        r"(?P<name>[A-Za-z_]\w*)\s*\[(?P<a>[^\[\]]*)(?P<at>\]\s*\[)(?P<b>[^\[\]]*)\]",
        "indices stand in one bracket",
        "write `{name}[{a},{b}]`",
    ),
    (
        r"\[[^\[\]]*(?P<at>:)[^\[\]]*\]",
        "slices are not part of the language: an index runs over a whole range",
        "name an index, `X[i]`, shift it, `X[i+1]`, or guard it, `if i < 3`",
    ),
    (r"^\s*@\s*\w+(?:\(.*\))?\s*$", "there are no decorators", "remove the line"),
    (r"@", "`@` is not an operator here", "write the sum: `Y[i,j] += A[i,k] * B[k,j]`"),
    (r"\^", "`^` is not an operator here", "write `x ** 2` for a power"),
    (r"(?P<sign>&&?)", "`{sign}` is not an operator here", "write `and`"),
    (r"(?P<sign>\|\|?)", "`{sign}` is not an operator here", "write `or`"),
    (r":=", "`:=` is not an operator here", "write `=` (each element once) or `+=` (a sum)"),
    (TARGET + r"(?P<at><-)", "an arrow does not assign", "write `=` (each element once) or `+=` (a sum)"),
    (TARGET + r"(?P<at>(?P<sign>\+|-)(?P=sign))\s*$", "`{sign}{sign}` is not an operator here", "write `{sign}= 1`"),
    (r"(?P<sign>//|\*\*|/|%)=", "there is no `{sign}=`", "the operators are = += -= *= max= min= argmax= argmin="),
    (
        TARGET + r"(?P<at>(?P<sign>max|min|argmax|argmin|[-+*])\s+=)",
        "an operator has no space before its `=`",
        "write `{sign}=`",
    ),
    (TARGET + r"(?P<at>==)", "`==` compares; it does not assign", "write `=` (each element once) or `+=` (a sum)"),
    (r"^\s*(?P<at>if)\b", "a guard stands behind its statement", "write `Y[i] = X[i] if i < 3`"),
    (r"\bif\b[^=]*[^=<>!+*-](?P<at>=)(?!=)", "`=` assigns; it does not compare", "write `==`"),
    (r"!(?!=)", "`!` is not an operator here", "write `not`"),
    (r"\?", "`?` is not an operator here", "write `a if condition else b`"),
    (r"\b(?:np|numpy|jnp|torch|tf|math)\.(?P<function>\w+)", "functions have no module in front", ""),
    (
        r"(?P<name>[A-Za-z_]\w*)(?:\[[^\]]*\])?(?P<at>\.T\b)",
        "a transpose is an order of indices",
        "write `{name}[j,i]` for the transpose of `{name}[i,j]`",
    ),
    (
        r"(?P<name>[A-Za-z_]\w*)(?P<at>\.(?:shape|size)\b)",
        "a size has a name of its own",
        "write `size(i)` for an index or `size({name}, 0)` for an axis",
    ),
    (
        r"[\w\])](?P<at>\.(?:sum|mean|max|min|prod)\s*\()",
        "tensors have no methods",
        "write the reduction as an operator: `s[i] += X[i,j]`, `m[i] max= X[i,j]`",
    ),
    (r"\](?P<at>\.[A-Za-z_]\w*)", "tensors have no attributes", "write the loop itself: `Y[i] = X[i]`"),
    (
        rf"(?P<before>[A-Za-z_]\w*)(?P<at>\.(?!(?:{DERIVED})[0-9]*\b)(?P<after>[A-Za-z_]\w*))",
        "a name has no dot, save the derivative's own `.grad` and `.dot`",
        "write `{before}_{after}`",
    ),
    (r"\blambda\b", "there is no `lambda`", "write the expression itself, or `def name(X[i]) -> Y[i]:`"),
    (
        r"^\s*(?P<at>import|from)\b",
        "this is not Python: a program is index-loop statements only",
        "remove the line; functions such as `exp` need no import",
    ),
    (
        r"^\s*(?P<at>while|class|with|try|except|raise|assert|yield|async|await|global|del|pass|break|continue|print)\b"
        r"(?![\[\w])(?!\s*[-+*]?=)",
        "this is not Python: a program is index-loop statements only",
        "write `Y[i] = exp(X[i])`; `for t:` is the loop that runs in order",
    ),
    (r"\belif\b", "there is no `elif`", "write `a if p else b if q else c`"),
    (r"^(?!.*\bif\b).*?(?P<at>\belse\b)", "`else` has no `if` before it", "write `a if condition else b`"),
    (r"^\s*(?P<head>def\s+\w+\(.*\))(?P<at>\s*:)\s*$", "a definition names its outputs", "write `{head} -> Y[i]:`"),
    (r"^\s*(?P<at>def)\b(?!\s+\w+\()", "a definition has a name and arguments", "write `def name(X[i]) -> Y[i]:`"),
    (
        rf"(?P<at>\b(?P<word>{'|'.join(sorted(KEYWORDS))})\b)\s*(?:\[|[-+*]?=(?!=))",
        "`{word}` is a word of the language and cannot name a tensor",
        "use another name",
    ),
    (
        r"(?P<at>//|/\*)\s*[A-Za-z]+\s+(?!(?:if|else|and|or|not)\b)[A-Za-z]",
        "a comment starts with `#`",
        "write `# ...`",
    ),
    (r";", "one statement stands on one line", "end the line here; the next statement goes on its own line"),
    (
        r"(?<![\w.])(?P<number>[0-9]+\.?[0-9]*)(?![eE][-+]?[0-9])(?P<name>[A-Za-z_]\w*)",
        "a product needs its `*`",
        "write `{number}*{name}`",
    ),
    (r"['\"][^'\"]*['\"]?", "there are no texts in an expression", "use names, numbers and indices"),
    (r"[{}]", "braces have no meaning here", "use parentheses, or brackets for indices"),
    (
        r"^\s*(?P<name>[A-Za-z_]\w*)(?P<at>\((?P<inner>[^()]*)\))\s*(?:\+|-|\*|max|min|argmax|argmin)?=",
        "indices stand in square brackets",
        "write `{name}[{inner}]`",
    ),
    (
        r"^\s*(?P<value>[A-Za-z_][\w.]*(?:\[[^\]]*\]|\(.*\))?)\s*$",
        "a statement assigns something",
        "write `Y[i] = {value}`",
    ),
    (r"\bsize\s*\([^)]*,(?P<at>[^)0-9]*)\)", "the axis of `size` is a number", "write `size(X, 0)`"),
)

LOOK_ALIKES = {
    "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u00f7": "/",
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u2190": "=", "\u2192": "->", "\u00b2": "**2", "\u00b3": "**3",
    "\u221e": "inf", "\u2211": "+=", "\u2026": "...", "\u201c": '"', "\u201d": '"', "\uff3b": "[", "\uff3d": "]",
    "\uff08": "(", "\uff09": ")", "\uff1d": "=", "\uff0b": "+", "\uff0c": ",", "\u00a0": "a plain space",
}  # fmt: skip

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "η": "eta", "θ": "theta", "λ": "lambda",
    "μ": "mu", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega",
}  # fmt: skip

WORDS = {  # what Python knows as values, and a program does not
    "True": "write 1",
    "False": "write 0",
    "None": "an axis more is an index more: `Y[i,j] = X[i] * Z[j]`",
}

NEAR = {
    "sum": "write the sum as an operator: `s[i] += X[i,j]`",
    "mean": "write the mean as a sum: `m[i] += X[i,j] / size(j)`",
    "prod": "write the product as an operator: `p[i] *= X[i,j]`",
    "argmax": "write the reduction as an operator: `a[i] argmax= X[i,j]`",
    "argmin": "write the reduction as an operator: `a[i] argmin= X[i,j]`",
    "len": "write `size(i)` for an index or `size(X, 0)` for an axis",
    "range": "the range of an index comes from the tensors, or from `size(i) = ...`",
    "dot": "write the sum: `y[i] += A[i,k] * x[k]`",
    "matmul": "write the sum: `Y[i,j] += A[i,k] * B[k,j]`",
    "einsum": "write the sum: `Y[i,j] += A[i,k] * B[k,j]`",
    "transpose": "a transpose is an order of indices: `Y[i,j] = A[j,i]`",
    "zeros": "elements that no statement writes are 0",
    "maximum": "write `max(a, b)`",
    "minimum": "write `min(a, b)`",
    "power": "write `pow(a, b)` or `a ** b`",
    "square": "write `x ** 2`",
    "arctan": "write `atan(x)`",
    "arcsin": "write `asin(x)`",
    "arccos": "write `acos(x)`",
    "arctan2": "write `atan2(y, x)`",
    "ln": "write `log(x)`",
    "random": "write `uniform(seed, i)`: a pure function of its integer arguments",
    "rand": "write `uniform(seed, i)`: a pure function of its integer arguments",
    "randn": "write `normal(seed, i)`: a pure function of its integer arguments",
    "softmax": "call an op as a whole statement: `P = softmax(S)`",
    "stop_gradient": "write `stop(x)`",
}


def call(name: str) -> str:
    """How a function is written."""
    written = f"write `{name}({', '.join('xyz'[: KNOWN[name].least])})`"
    return f"{written}, or reduce over an index: `m[i] {name}= X[i,j]`" if name in ("max", "min") else written


def unknown_function(name: str, arguments: str = "i") -> str:
    """What to write instead of a call, inside an expression, of a name that is no function."""
    if name in NEAR:
        return NEAR[name]
    close = difflib.get_close_matches(name[:80], KNOWN, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return (
        f"a tensor takes square brackets, `{name}[{arguments}]`; a definition is called where the target has none, "
        f"`Y = {name}(X)`"
    )


def unknown_call(name: str, known: list[str]) -> str:
    """What to write instead of a whole-statement call of a name that is neither a function nor among `known`."""
    return (
        NEAR.get(name)
        or closest(name, [*known, *KNOWN])
        or (f"define it, `def {name}(X[i]) -> Y[i]:`; the standard library is listed by ts.ops()")
    )


def closest(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean ...` for a misspelt name; else what there is, if `otherwise` says how to begin."""
    names = tuple(known)
    return _closest(str(name)[:80], names) or (otherwise and f"{otherwise} {', '.join(names) or 'none'}")


@lru_cache(4096)
def _closest(name: str, known: tuple[str, ...]) -> str:
    letters = set(name)
    similar = [  # a quick look, because the real one takes long for hundreds of names
        k for k in known if 0.4 < len(name) / max(len(k), 1) < 2.5 and 2 * len(letters & set(k)) >= len(letters)
    ]
    close = difflib.get_close_matches(name, similar, n=1)
    return f"did you mean `{close[0]}`?" if close else ""


def shown(token: str) -> str:
    """A piece of text for a message: short, and with no character that a terminal would obey."""
    cut = token[:40] + "..." if len(token) > 40 else token
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


Place = tuple[int, int]


def syntax(text: str, start: int, end: int, indent: bool = False) -> tuple[str, str, Place]:
    """Message, hint and the place of the caret, for a text that stops parsing at `start`.

    `indent` says that it stops at a line that is indented more than the one before.
    """
    stripped = text.rstrip()
    if start >= len(stripped):  # the fault is the end of the text: look at the last line
        start, end = len(stripped), len(stripped) + 1
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", first)
    last = len(text) if last < 0 else last
    code = text[first:last].split("#")[0][:LINE_LENGTH]
    if indent:
        start = len(text) - len(text[start:].lstrip())
        return "this line is indented, but stands in no block", "begin it below the line before", (start, start + 1)
    above = text[:first].rstrip().rpartition("\n")[2].split("#")[0].strip()
    if above.endswith(":") and re.match(r"(?:for|def)\b", above) and not code[:1].isspace() and start == first:
        return (
            "the lines of a block are indented",
            f"put four spaces before this line: it belongs to `{shown(above)}`",
            (start, end),
        )
    found = _brackets(text, last) or _pattern(code, first)
    if found:
        return found
    token, before = text[start:end].strip(), code[: start - first].rstrip()
    if not token:
        unfinished = before and not before[-1].isalnum()
        message = f"the line ends after `{before[-1]}`" if unfinished else "the line ends too early"
        return message, "add what is missing, or put a longer expression in parentheses", (start, end)
    if before.endswith(":") and re.match(r"\s*(?:for|def)\b", before):
        return (
            "a block begins on the line below",
            f"put what follows `{shown(before.strip())}` there, with four spaces before it",
            (start, end),
        )
    if re.fullmatch(r"\s*[A-Za-z_]\w*\s*:", before):
        return (
            f"`{shown(token)}` is no type that is declared",
            "whole numbers that are known before a call are: `n: int`; tensors and other numbers need no line",
            (start, end),
        )
    if token[0] in GREEK:
        return f"`{token[0]}` is not an ASCII letter", f"write `{GREEK[token[0]]}`", (start, start + 1)
    if token[0] in LOOK_ALIKES:
        return f"`{shown(token[0])}` is not an ASCII character", f"write `{LOOK_ALIKES[token[0]]}`", (start, start + 1)
    if not token[0].isascii():
        return (
            f"`{shown(token[0])}` is not an ASCII character",
            "names are made of the letters A to Z, digits and _",
            (start, start + 1),
        )
    if (
        token[0].isalnum()
        and token not in KEYWORDS
        and before
        and (before[-1].isalnum() or before[-1] in ")]")
        and before.split()[-1] not in KEYWORDS
    ):
        return (
            f"an operator is missing before `{shown(token)}`",
            "write `Y[i] = X[i]` to assign, `a * b` for a product",
            (start, end),
        )
    return (
        f"`{shown(token)}` does not belong here",
        "a statement is `target OP expression [if guard]`, with OP one of = += -= *= max= min= argmax= argmin=",
        (start, end),
    )


def _pattern(code: str, first: int) -> tuple[str, str, Place] | None:
    """The first row of the table that matches a line, which begins at `first`."""
    for pattern, message, hint in PATTERNS:
        found = re.search(pattern, code)
        if found:
            groups = {name: shown(value or "") for name, value in found.groupdict().items()}
            if "function" in groups:
                name = groups["function"]
                hint = call(name) if name in KNOWN else unknown_function(name)
            low, high = found.span("at") if "at" in groups else found.span()
            return message.format(**groups), hint.format(**groups), (first + low, first + max(high, low + 1))
    return None


CLOSES = {")": "(", "]": "["}
OPENS = {"(": ")", "[": "]"}


def _brackets(text: str, last: int) -> tuple[str, str, Place] | None:
    """The bracket that is not closed, closed by another, or never opened, up to the end `last` of the faulty line."""
    opened: list[int] = []
    for found in re.finditer(r"#[^\n]*|[()\[\]]", text):
        at, sign = found.start(), found[0]
        if at >= last and not opened:
            return None
        if sign in OPENS:
            opened.append(at)
        elif sign in CLOSES and opened and text[opened[-1]] == CLOSES[sign]:
            opened.pop()
        elif sign in CLOSES:
            if at >= last:
                break  # another fault, further down
            if opened:
                there = text[opened[-1]]
                return f"`{there}` is closed by `{sign}`", f"write `{OPENS[there]}`", (at, at + 1)
            return f"`{sign}` closes nothing", f"remove it, or add the missing `{CLOSES[sign]}`", (at, at + 1)
    unclosed = max((at for at in opened if at < last), default=None)
    if unclosed is None:
        return None
    sign = text[unclosed]
    kind = "bracket" if sign == "[" else "parenthesis"
    return f"this {kind} is not closed", f"add the missing `{OPENS[sign]}`", (unclosed, unclosed + 1)
