"""Explanations: the data, its links and words, and the forms that it is shown in."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, seed, settings

import tensorswap as ts
from tensorswap.explain import latex, page, terminal
from tensorswap.explain.explanation import Explanation, explanation
from tensorswap.explain.paint import Paint
from tensorswap.explain.pieces import pieces
from tensorswap.patterns import flows
from tensorswap.rules.activity import default_wrt

from .generate import Case, programs

MATMUL = "Y[i,j] += A[i,k] * B[k,j]"
SEVERAL = """
Y[i] += X[2*i+p] * W[p]
for t:
    H[t] = a * (H[t-1] if t > 0 else 0) + relu(Y[t])
m max= H[t]
z[b] = m * W[k[b]] / size(b)
"""


def explained(text: str, **sizes: int) -> Explanation:
    return explanation(ts.program(text).loops, sizes=sizes, source=text)


# -- the data


def test_a_product() -> None:
    made = explained(MATMUL, i=3, j=4, k=5)
    (statement,) = made.statements
    assert (statement.loop, statement.target, statement.reads) == ("for i, j, k", "Y", ("A", "B"))
    assert (statement.where and (statement.where.start, statement.where.end)) == (0, len(MATMUL))
    assert statement.adjoints == (1, 2)
    first, second = made.adjoints
    assert (first.text, first.read, first.rule) == ("A.grad[i,k] += Y.grad[i,j] * B[k,j]", "A[i,k]", "swap")
    assert (second.forward, second.target, second.loop) == (1, "B.grad", "for k, j, i")
    assert (made.forward_cost.operations, made.forward_cost.operation_count) == ("2*i*j*k", 120)
    assert (statement.cost.elements, statement.cost.element_count) == ("i*j + i*k + j*k", 12 + 15 + 20)
    assert [str(tensor) for tensor in (*made.inputs, *made.outputs)] == ["A[i,k]", "B[k,j]", "Y[i,j]"]
    assert made.sizes == {"i": "size(A, 0)", "k": "size(A, 1)", "j": "size(B, 1)"}
    assert [(line.text, line.adjoint) for line in made.backward] == [(first.text, 1), (second.text, 2)]


def test_the_arithmetic_of_indices_is_no_operation() -> None:
    assert explained("Y[i] += X[2*i+p] * W[p]").forward_cost.operations == "2*i*p"
    assert explained("Y[i] = -X[i-1] * exp(2*i) if i > 0").forward_cost.operations == "4*i"


def test_links_lead_both_ways() -> None:
    made = explained(SEVERAL)
    assert [statement.number for statement in made.statements] == [1, 2, 3, 4]
    for adjoint in made.adjoints:
        assert adjoint.number in made.statements[adjoint.forward - 1].adjoints
    for statement in made.statements:
        assert all(made.adjoints[number - 1].forward == statement.number for number in statement.adjoints)
    linked = [line.adjoint for line in made.backward if line.adjoint is not None]
    assert sorted(linked) == sorted(set(linked))
    assert "\n".join(line.text for line in made.backward) == str(ts.program(SEVERAL).adjoint(made.wrt))


def test_places_are_those_of_the_text() -> None:
    for text in (SEVERAL, SEVERAL.lstrip(), SEVERAL.strip()):
        for statement in explained(text).statements:
            assert statement.where is not None
            shown = text[statement.where.start : statement.where.end]
            assert shown.startswith(f"{statement.text.split('[')[0]}")
            assert text.splitlines()[statement.where.line - 1].lstrip() == shown


def test_what_is_of_the_library_has_the_place_of_its_call() -> None:
    text = "S[i,j] = X[i,j]\nP = softmax(S)"
    places = [statement.where for statement in explained(text).statements]
    assert [place and text[place.start : place.end] for place in places] == ["S[i,j] = X[i,j]", *["softmax(S)"] * 4]
    assert all(statement.where is None for statement in explanation(ts.load("softmax").loops, source=text).statements)
    assert all(statement.where is None for statement in explanation(ts.program(MATMUL).loops).statements)


def test_blocks_run_in_reverse() -> None:
    made = explained(SEVERAL)
    step = made.statements[1]
    assert (step.blocks, step.indices) == (("for t:",), ())
    assert {made.adjoints[number - 1].blocks for number in step.adjoints} == {("for t down:",)}


def test_what_is_asked_for() -> None:
    loops = ts.program(SEVERAL).loops
    made = explanation(loops, wrt=["W"], of=["z"])
    assert (made.wrt, made.of) == (("W",), ("z",))
    assert not any(adjoint.target == "X.grad" for adjoint in made.adjoints)
    with pytest.raises(ts.SwapError, match="Q is not an input"):
        explanation(loops, wrt=["Q"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a argmax= X[i]", "no input has a derivative here"),
        ("W[i] = W[i] - 0.1 * g[i]", "the derivative is refused: line 1, column 1: W is updated in place"),
    ],
)
def test_no_derivative(text: str, reason: str) -> None:
    made = explained(text)
    assert made.refused.startswith(reason)
    assert (made.adjoints, made.backward) == ((), ())
    assert len(made.statements) == 1
    assert reason in ts.program(text).explain()


def test_whole_numbers_are_told_apart() -> None:
    made = explained("Y[b,d] = E[tok[b],d]")
    assert {tensor.name: tensor.whole_numbers for tensor in made.inputs} == {"E": False, "tok": True}


def test_a_deep_expression_is_explained_in_steps() -> None:
    text = "y[i] = " + "sin(" * 30 + "x[i]" + ")" * 30
    made = explained(text)
    assert len(made.statements) > 1
    assert all(statement.adjoints for statement in made.statements)
    assert "nothing" not in ts.program(text).explain()


def test_data_is_plain() -> None:
    made = explained(SEVERAL, i=3).as_json()
    again = json.loads(json.dumps(made))
    assert again == made
    assert again["statements"][0]["loop"] == "for i, p"
    assert again["numbers"] == {"i": 3}


@seed(0)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs)
def test_every_adjoint_statement_is_explained(case: Case) -> None:
    loops = ts.program(case.text).loops
    made = explanation(loops, source=case.text)
    json.dumps(made.as_json())
    if not made.refused:
        assert len(made.adjoints) == len(flows(loops, default_wrt(loops)))
    for adjoint in made.adjoints:
        assert adjoint.words
        assert all(re.fullmatch(r"[A-Z`\w].*\.", sentence, re.DOTALL) for sentence in adjoint.words), adjoint.words
    plain = terminal.shown(made, Paint(), 100)
    assert all(adjoint.text in plain for adjoint in made.adjoints)
    latex.document(made)
    page.document(made)


# -- words


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (MATMUL, "The swap rule: A[i,k] and Y[i,j] change places, and the other factors stay."),
        (MATMUL, "Y[i,j] adds up over k: each term of the sum gets the same gradient."),
        (MATMUL, "A[i,k] is used once for every j, so what comes back is added up over j."),
        ("y = x", "The value is passed on as it is, and so is its gradient."),
        ("y = tanh(x)", "derivative of tanh(x), which is 1 - y * y, where y is its value."),
        ("y = sin(x)", "derivative of sin(x), which is cos(x)."),
        ("y = atan2(x, z)", "which is b / (a * a + b * b) by a, -a / (a * a + b * b) by b."),
        ("y = hypot(x, z)", "which is a / y by a, b / y by b, where y is its value."),
        ("y = relu(x)", "relu passes the gradient on where it passes its argument on: its derivative is 1 if x > 0"),
        ("y = max(x, z)", "max passes the gradient to the argument that it takes, the first of equals."),
        ("y max= x[i]", "Only the largest value, the first of equals, moves y: it gets the whole gradient."),
        ("y min= x[i]", "Only the smallest value, the first of equals, moves y"),
        ("y *= x[i]", "x[i] gets the gradient of y times the product of all other factors."),
        ("y max= a * x[i]", "The swap rule: a and y change places"),
        ("y = x - z", "What is subtracted gets the gradient with a minus sign."),
        ("y = -x", "A minus sign on the way forward is a minus sign on the way back."),
        ("y = x / z", "A numerator gets the gradient divided by the same denominator."),
        ("y = x / z", "A denominator gets the gradient times -(x / y) / y"),
        ("y = x ** 3", "The power rule: "),
        ("y = x if c > 0 else z", "Only the branch that is taken gets the gradient."),
        ("y = x * x", "x is read at 2 places; each adds its part to the gradient."),
        ("Y[b] = E[tok[b]]", "E[tok[b]] is read where an array says, so the adjoint adds into the places"),
        ("Y[i] += X[2*i+p] * W[p]", "`X.grad[2*i+p] += Y.grad[i] * W[p]`. Solved for the place"),
        ("for t:\n    H[t] = a * (H[t-1] if t > 0 else 0)", "The steps of the block run in reverse"),
    ],
)
def test_a_rule_in_words(text: str, sentence: str) -> None:
    told = [words for adjoint in explained(text).adjoints for words in adjoint.words]
    assert any(sentence in words for words in told), told


def test_a_function_of_ones_own_is_told() -> None:
    ts.define("cube_for_words(x)", "x ** 3", "3 * x ** 2")
    told = explained("y = cube_for_words(x)").adjoints[0].words
    assert any("the derivative of cube_for_words, as it was defined" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MATMUL, "Y[i,j] is a sum over k for each i, j."),
        ("Y[i] = 2 * X[i]", "Y[i] is set for each i."),
        ("y max= X[i]", "y is the largest value over i."),
        ("y argmin= X[i]", "y is the place of the smallest value over i: a whole number, which has no derivative."),
        ("Y[i] += X[i,j] if j <= i", "Y[i] is a sum over j for each i, where the condition holds."),
        ("y = x", "y is set."),
    ],
)
def test_a_statement_in_words(text: str, words: str) -> None:
    assert explained(text).statements[0].words == words


# -- forms


def test_pieces_are_the_whole_text() -> None:
    text = "def f(X[i], n: int = 2) -> Y[i]:\n    Y[i] max= exp(X.grad[i]) ** 1.5e-3 if i <= n and inside"
    found = list(pieces(text))
    assert "".join(piece for _, piece in found) == text
    kinds = {piece: kind for kind, piece in found}
    assert kinds["max="] == kinds["->"] == "operator"
    assert kinds["<="] == "comparison"
    assert (kinds["X.grad"], kinds["exp"], kinds["inside"], kinds["1.5e-3"]) == (
        "gradient", "function", "word", "number",
    )  # fmt: skip


def test_paint_changes_nothing_but_colours() -> None:
    made = explained(SEVERAL)
    coloured = terminal.shown(made, Paint(True), 90)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == terminal.shown(made, Paint(False), 90)
    assert "\x1b[33mX.grad\x1b[0m" in coloured


def test_lines_fit_the_terminal() -> None:
    made = explained(SEVERAL)
    for line in terminal.shown(made, Paint(), 80).splitlines():
        assert len(line) <= 80 or "->" in line or "=" in line  # statements are not broken


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        (MATMUL, r"Y_{i,j} &\mathrel{+}= \sum_{k} A_{i,k} \, B_{k,j}"),
        ("y = x ** 2 / (1 + x)", r"y &= \frac{x^{2}}{1 + x}"),
        ("y = (a + b) * c", r"y &= \left(a + b\right) \, c"),
        ("y += a[i] + b[i]", r"y &\mathrel{+}= \sum_{i} \left(a_{i} + b_{i}\right)"),
        ("y[i] -= x[i,j]", r"y_{i} &\mathrel{-}= \sum_{j} x_{i,j}"),
        ("y max= x[i]", r"y &= \max_{i} x_{i}"),
        ("k argmax= x[i]", r"k &= \operatorname*{arg\,max}_{i} x_{i}"),
        ("y *= x[i]", r"y &= \prod_{i} x_{i}"),
        (
            "y = sqrt(abs(beta)) * gelu(w_in)",
            r"y &= \sqrt{\left|\beta\right|} \, \operatorname{gelu}\left(\mathrm{w\_in}\right)",
        ),
        (
            "y = x if x > 0 and x <= 1 else -x",
            r"y &= \begin{cases} x & \text{if } x > 0 \land x \le 1 \\ -x & \text{else} \end{cases}",
        ),
        (
            "A.grad[i] += Y.grad[i//2] if i % 2 == 0",
            r"\overline{A}_{i} &\mathrel{+}= \overline{Y}_{\left\lfloor \frac{i}{2} \right\rfloor} "
            r"\quad \text{where } i \bmod 2 = 0",
        ),
        ("y = 1e-5 * x", r"y &= 1 \cdot 10^{-5} \, x"),
        ("y[i] = size(i) * x[i]", r"y_{i} &= \operatorname{size}(i) \, x_{i}"),
        ("Y[...,j] = exp(X[...,j])", r"Y_{\ldots,j} &= \exp\left(X_{\ldots,j}\right)"),
    ],
)  # fmt: skip
def test_a_formula(text: str, formula: str) -> None:
    assert latex.formula(text) == formula


class Tags(HTMLParser):
    """That every tag which is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_is_whole_and_escaped() -> None:
    made = explained("Y[i] = X[i] if X[i] < 3 and X[i] > 1 else 0")
    tags = Tags()
    tags.feed(page.document(made, "<script>"))
    assert tags.open == []
    assert "<script>" not in page.document(made, "<script>")
    assert all(adjoint.text in tags.text for adjoint in made.adjoints)
    assert "http" not in page.document(made)
