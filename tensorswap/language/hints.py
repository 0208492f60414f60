"""What a newcomer probably meant: a table of patterns for lines that do not parse, and the fix for each."""

from __future__ import annotations

import difflib
import re

from .functions import FUNCTIONS

# Each row: a pattern searched in the faulty line, what is wrong, what would be right. The first match speaks.
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (r"\bfor\s+\w+\s+in\b", "`for` names an index and nothing else",
     "write `for t:`; the range of t comes from the tensors, or from `size(t) = ...`"),
    (r"[A-Za-z_]\w*\s*\[[^\]]*\]\s*\[", "indices stand in one bracket", "write `A[i,j]` for `A[i][j]`"),
    (r"\[[^\]]*:[^\]]*\]", "slices are not part of the language: an index runs over a whole range",
     "name an index, `X[i]`, shift it, `X[i+1]`, or guard it, `if i < 3`"),
    (r"@", "`@` is not an operator here", "write the sum: `Y[i,j] += A[i,k] * B[k,j]`"),
    (r"\^", "`^` is not an operator here", "write `x ** 2` for a power"),
    (r"&&|(?<![&])&(?!&)", "`&` is not an operator here", "write `and`"),
    (r"\|\|?", "`|` is not an operator here", "write `or`"),
    (r":=", "`:=` is not an operator here", "write `=` (each element once) or `+=` (a sum)"),
    (r"<-|←", "an arrow does not assign", "write `=` (each element once) or `+=` (a sum)"),
    (r"\+\+|--$", "`++` is not an operator here", "write `+= 1`"),
    (r"/=|//=|%=|\*\*=", "there is no such accumulation", "the operators are = += -= *= max= min= argmax= argmin="),
    (r"\b(max|min|argmax|argmin)\s+=", "no space stands between a reduction and its `=`", "write `max=`"),
    (r"^\s*[A-Za-z_]\w*(\[[^\]]*\])?\s*==", "`==` compares; it does not assign", "write `=` or `+=`"),
    (r"!(?!=)", "`!` is not an operator here", "write `not`"),
    (r"\?", "`?` is not an operator here", "write `a if condition else b`"),
    (r"\bnp\.|\bnumpy\.|\bjnp\.|\btorch\.|\bmath\.", "functions have no module in front", "write `exp(x)` for `np.exp(x)`"),
    (r"\.T\b", "a transpose is an order of indices", "write `A[j,i]` for the transpose of `A[i,j]`"),
    (r"\.shape\b", "sizes have a name of their own", "write `size(i)` for an index or `size(X, 0)` for an axis"),
    (r"\.(sum|mean|max|min|prod)\s*\(", "tensors have no methods",
     "write the reduction as an operator: `s[i] += X[i,j]`, `m[i] max= X[i,j]`"),
    (r"\.\w", "a name has no dot, save the derivative's own `.grad` and `.dot`", "use an underscore"),
    (r"\blambda\b|\bimport\b|\bexec\b|\beval\b|__", "this is not Python: a program is index-loop statements only",
     "write `Y[i] = exp(X[i])`"),
    (r"^\s*if\b", "a guard stands behind its statement", "write `Y[i] = X[i] if i < 3`"),
    (r"\bdef\b[^>]*:\s*$", "a definition names its outputs", "write `def name(X[i]) -> Y[i]:`"),
    (r"\bwhile\b", "there is no `while`", "write `for t:`, with a guard for the steps that count"),
    (r"\belif\b", "there is no `elif`", "write `a if p else b if q else c`"),
    (r";", "one statement stands on one line", "put the next statement on its own line"),
    (r"[0-9][A-Za-z_]", "a product needs its `*`", "write `2*i` for `2i`"),
    (r"[\u2212\u00d7\u00b7\u2264\u2265\u2260]", "operators are ASCII", "write - * <= >= !="),
    (r"['\"]", "there are no texts in an expression", "use names, numbers and indices"),
    (r"[{}]", "braces have no meaning here", "use parentheses"),
    (r"^\s*[A-Za-z_]\w*\([^)]*\)\s*(\+|-|\*|max|min|argmax|argmin)?=", "indices stand in square brackets",
     "write `Y[i,j]` for `Y(i,j)`"),
    (r"^\s*[A-Za-z_][\w.]*(\[[^\]]*\])?\s*$", "a statement assigns something", "write `Y[i] = X[i]`"),
    (r"\bsize\s*\([^)]*,[^)0-9]*\)", "the axis of `size` is a number", "write `size(X, 0)`"),
)

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
    "maximum": "write `max(a, b)`",
    "minimum": "write `min(a, b)`",
    "power": "write `pow(a, b)` or `a ** b`",
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
    low, _ = FUNCTIONS[name]
    return f"write `{name}({', '.join('xyz'[:low])})`"


def unknown_function(name: str) -> str:
    if name in NEAR:
        return NEAR[name]
    close = difflib.get_close_matches(name, FUNCTIONS, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"a tensor takes square brackets, `{name}[i]`; a definition is called as a whole statement, `Y = {name}(X)`"


def closest(name: str, known: list[str]) -> str:
    """`did you mean ...` for a misspelt name, or nothing."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{close[0]}`?" if close else ""


def syntax(text: str, start: int, end: int) -> tuple[str, str, tuple[int, int] | None]:
    """Message, hint and perhaps a better place for the caret, for a text that stops parsing at `start`."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    line = text[first : len(text) if last < 0 else last]
    code = line.split("#")[0]
    if not code.strip() and start >= len(text.rstrip()):  # the fault is the end of the text: look at the last line
        stripped = text.rstrip()
        first = stripped.rfind("\n") + 1
        code = stripped[first:]
        start, end = len(stripped), len(stripped) + 1
    code = code[:400]
    opened = code.count("[") - code.count("]"), code.count("(") - code.count(")")
    if opened[0] > 0:
        at = first + code.rfind("[")
        return "a bracket is not closed", "add the missing `]`", (at, at + 1)
    if opened[1] > 0:
        at = first + code.rfind("(")
        return "a parenthesis is not closed", "add the missing `)`", (at, at + 1)
    for pattern, message, hint in PATTERNS:
        found = re.search(pattern, code)
        if found:
            return message, hint, (first + found.start(), first + max(found.end(), found.start() + 1))
    if opened[0] < 0 or opened[1] < 0:
        return "a bracket is closed that was never opened", "remove it, or open it", (start, end)
    token = text[start:end].strip()
    if not token:
        return ("the line ends too early", "a statement is `target OP expression [if guard]`; the lines of a block "
                "are indented", None)
    if len(token) > 40:
        token = token[:40] + "..."
    return (f"`{token}` does not belong here",
            "a statement is `target OP expression [if guard]`, with OP one of = += -= *= max= min= argmax= argmin=", None)
