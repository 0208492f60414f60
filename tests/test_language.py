"""Text <-> IR: kinds of names, precedence, spans, and text that parses back."""

from __future__ import annotations

import pytest

import tensorswap as ts
from tensorswap.errors import LimitError, SyntaxFault
from tensorswap.language import ir, limits
from tensorswap.language.parse import parse_expression
from tensorswap.language.render import expression

ROUND_TRIPS = [
    "Y[h,i,j] += A[h,i,k] * B[h,j,k]",
    "y = -x ** 2 - (a - b) * -2 ** -2 + --2 - -x + -2",
    "y = (a - b) - (c - d) / (e / f) / g * (h * 2)",
    "y = (a if c else b) * 2 if not (a and b) or not a",
    "y = a if (b if c else d) else e if f else g",
    "y = (a < b) < c and (a or b) and not not c",
    "y = (-a) ** b ** -c",
    "y = 1e-07 + 0.5 + 3 + 1e+30 + inf",
    "y = where(a > 0, b, c)",
    "Y[i] = X[-i+3,(i+1)//2%3,min(i,2),max(0,i-1),abs(i-2)]",
    "Y[i] max= X[i+j] if 0 <= i-1 < 3 and inside",
    "A[i] argmax= X[i,j]\nB[i] argmin= X[i,j]",
    "H[bin[n]] += w[n]\nsize(H, 0) = bins",
    "size(i) = (size(h) + 2*pad - size(u)) // stride + 1\nY[i] += X[stride*i+u-pad] * W[u] if inside",
    "stride: int = 2\nY[i] = X[stride*i]",
    "for t:\n    for s down:\n        H[t,s] = H[t-1,s+1] if t > 0 and s < 3 else X[t,s]",
    "Y[...,i] += X[...,k] * W[i,k]\nN = size(...)",
    "X.grad[s] += Y.grad[(s-p)//2] * W[p] if (s-p) % 2 == 0 and inside",
    "Y[i] = uniform(seed, i, 3) + normal(seed, i)\nZ[i] = Y[i]\nreturn Y, Z",
    "def f(X[i,j], rate=0.1, k: int, m: int = 2) -> Y[i], z:\n    Y[i] += rate * X[i,j] * k\n    z += Y[i] ** m",
    "W[i] = W[i] - rate * g[i]",
    "loss[] += x[i]",
]


@pytest.mark.parametrize("text", ROUND_TRIPS)
def test_text_parses_back(text: str) -> None:
    program = ts.program(text)
    assert ts.program(str(program)) == program
    assert str(ts.program(str(program))) == str(program)


def test_statement_prints_as_written() -> None:
    text = "Y[h,i,j] += A[h,i,k] * B[h,j,k] if j <= i"
    assert str(ts.program(text)) == text


def test_contract_line_prints_as_written() -> None:
    text = "X.grad[s] += Y.grad[(s-p)//2] * W[p] if (s-p) % 2 == 0 and inside"
    assert str(ts.program(text)) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", "2 + 3 * 4"),
        ("(2 + 3) * 4", "(2+3) * 4"),
        ("-x ** 2", "-x ** 2"),
        ("(-x) ** 2", "(-x) ** 2"),
        ("a - (b - c)", "a - (b - c)"),
        ("a * (b / c)", "a * (b / c)"),
        ("not a == b", "not a == b"),
        ("a ** b ** c", "a ** b ** c"),
        ("(a ** b) ** c", "(a ** b) ** c"),
    ],
)
def test_precedence(text: str, value: str) -> None:
    assert expression(parse_expression(text)) == value


def test_minus_binds_like_python() -> None:
    assert parse_expression("-x ** 2") == ir.Unary("-", ir.Binary("**", ir.Access("x"), ir.Number(2)))
    assert parse_expression("a - b - c") == ir.Binary(
        "-", ir.Binary("-", ir.Access("a"), ir.Access("b")), ir.Access("c")
    )


def test_kinds_of_names() -> None:
    program = ts.program("size(i) = n\nY[i] += scale * X[stride*i+k] * i\nstride: int")
    value = program.loops.statements[0].nodes
    assert {n.name for n in value if isinstance(n, ir.Index)} == {"i", "k"}
    assert {n.name for n in value if isinstance(n, ir.Static)} == {"stride"}
    assert program.inputs == ("scale", "X")
    assert program.loops.static_names == ("stride", "n")


def test_inputs_and_outputs() -> None:
    program = ts.program("H[i] = X[i] * 2\nY[i] = H[i] + b\nZ += Y[i]")
    assert (program.inputs, program.outputs) == (("X", "b"), ("Z",))
    named = ts.program("H[i] = X[i] * 2\nY[i] = H[i] + b\nZ += Y[i]", outputs=["H", "Z"])
    assert named.outputs == ("H", "Z")
    assert ts.program(str(named)) == named


def test_recurrence_is_an_output_though_it_reads_itself() -> None:
    assert ts.program("for t:\n    S[t] = (S[t-1] if t > 0 else 0) + X[t]").outputs == ("S",)


def test_update_is_input_and_output() -> None:
    program = ts.program("W[i] = W[i] - 0.1 * g[i]")
    assert program.inputs == ("W", "g")
    assert program.outputs == ("W",)


def test_spans_are_exact() -> None:
    text = "Y[i] = X[i]\nZ[i] += A[i,k] * B[k]  # sum"
    second = ts.program(text).loops.statements[1]
    assert second.span is not None
    assert (second.span.line, second.span.column) == (2, 1)
    assert text[second.span.start : second.span.end] == "Z[i] += A[i,k] * B[k]"
    access = second.reads[1]
    assert access.span is not None
    assert text[access.span.start : access.span.end] == "B[k]"


def test_comments_blank_lines_and_continuations() -> None:
    text = "# first\n\nY[i] = X[i] \\\n    + 1  # one more\n\n   # indented comment\nZ[i] = (Y[i]\n  * 2)\n"
    assert str(ts.program(text)) == "Y[i] = X[i] + 1\nZ[i] = Y[i] * 2"


def test_indented_text_is_dedented() -> None:
    assert str(ts.program("\n        for t:\n            Y[t] = X[t]\n    ")) == "for t:\n    Y[t] = X[t]"


def test_caps_are_checked_before_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitError, match="characters"):
        ts.program("x" * (limits.TEXT_LENGTH + 1))
    with pytest.raises(LimitError, match="nest"):
        ts.program("y = " + "(" * 100 + "x" + ")" * 100)
    with pytest.raises(LimitError, match="levels"):
        ts.program("y = " + "x + " * 500 + "x")
    with pytest.raises(LimitError, match="64-bit"):
        ts.program("y = 99999999999999999999")
    with pytest.raises(LimitError, match="200,000 statements and declarations"):  # at once
        ts.program("y=x\n" * 200_000)
    assert ts.program("y = x  # " + "(" * 100)(x=1.0) == 1.0
    monkeypatch.setattr(limits, "STATEMENTS", 200)
    with pytest.raises(LimitError, match="the program has 201 statements; at most 200 are taken"):
        ts.program("\n".join(f"y{n} = x" for n in range(201)))


def test_equal_texts_give_equal_programs() -> None:
    assert ts.program("Y[i]=X[i]*2") == ts.program("Y[i]  =  X[i] * 2  # the same")
    assert ts.program("Y[i]=X[i]*2") != ts.program("Y[i]=X[i]*3")
    assert hash(ts.program("Y[i]=X[i]")) == hash(ts.program("Y[i] = X[i]"))


def test_all_faults_are_collected() -> None:
    with pytest.raises(ts.SwapError) as caught:
        ts.program("Y[i] = A[i,k] * B[k]\nZ[i] = Y[i,j]\nW = inside")
    assert len(caught.value.faults) >= 3


def test_function_names_are_reserved() -> None:
    with pytest.raises(SyntaxFault, match="function"):
        ts.program("exp[i] = X[i]")
