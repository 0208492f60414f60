"""The tables of grammar.json are those of grammar.lark. `python -m tests.test_grammar` writes them anew."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

import lark
import pytest
from lark.grammar import Rule
from lark.lexer import TerminalDef

import tensorswap as ts
from tensorswap import library
from tensorswap.language import grammar, parse
from tensorswap.language.functions import KEYWORDS
from tensorswap.language.grammar import Indentation, built, loaded, parser

from . import daily

TEXT, STORED = Path(grammar.TEXT), Path(grammar.TABLES)
PROGRAMS = [path.read_text("utf-8") for path in sorted(library.folder().rglob("*.loop"))]


def tables() -> str:
    """What the file holds: the tables, with the grammar and the version of Lark that they were made of."""
    text = TEXT.read_text("utf-8")
    data, memo = built(text, Indentation()).memo_serialize([TerminalDef, Rule])
    data["parser"]["parser"] = in_order(data["parser"]["parser"])
    options = {name: value for name, value in data["options"].items() if name != "postlex"}
    known = {"lark": lark.__version__, "grammar": text, "data": {**data, "options": options}, "memo": memo}
    return json.dumps(known, separators=(",", ":")) + "\n"


def in_order(table: dict[str, Any]) -> dict[str, Any]:
    """The same automaton with its tokens by name and its states as they are first reached: Lark numbers them by the
    hashes of names, which are others in each process."""
    tokens = sorted(table["tokens"].values())
    number = {token: k for k, token in enumerate(tokens)}
    actions = {
        state: sorted(((number[table["tokens"][t]], action) for t, action in row.items()), key=itemgetter(0))
        for state, row in table["states"].items()
    }
    reached = dict.fromkeys(table["start_states"][name] for name in sorted(table["start_states"]))
    todo = list(reached)
    for state in todo:  # which grows on the way
        new = [target for _, (reduces, target) in actions[state] if not reduces and target not in reached]
        reached |= dict.fromkeys(new)
        todo += dict.fromkeys(new)
    place = {state: k for k, state in enumerate(reached)}
    return {
        "tokens": dict(enumerate(tokens)),
        "states": {
            place[state]: {t: (reduces, to if reduces else place[to]) for t, (reduces, to) in actions[state]}
            for state in reached
        },
        "start_states": {name: place[state] for name, state in sorted(table["start_states"].items())},
        "end_states": {name: place[state] for name, state in sorted(table["end_states"].items())},
    }


def test_the_tables_are_those_of_the_grammar() -> None:
    stored = json.loads(STORED.read_text("utf-8"))
    assert stored["grammar"] == TEXT.read_text("utf-8"), "run python -m tests.test_grammar"
    if stored["lark"] == lark.__version__:  # another version makes its own, see below
        assert stored == json.loads(tables()), "run python -m tests.test_grammar"


def test_stored_tables_parse_as_those_that_are_made() -> None:
    ours = loaded(json.loads(tables()), Indentation())
    larks = built(TEXT.read_text("utf-8"), Indentation())
    assert len(PROGRAMS) > 10
    for text in PROGRAMS:
        assert ours.parse(text, start="start") == larks.parse(text, start="start")
    assert ours.parse("a if b < c else -d ** 2", start="test") == larks.parse("a if b < c else -d ** 2", start="test")


@pytest.mark.parametrize("change", [{"lark": "0.1"}, {"grammar": "start: NAME"}])
def test_tables_of_another_grammar_or_version_are_not_used(
    change: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "grammar.json"
    other.write_text(json.dumps({**json.loads(STORED.read_text("utf-8")), **change, "data": None}), "utf-8")
    monkeypatch.setattr(grammar, "TABLES", str(other))
    tree = parser(Indentation()).parse("Y[i] = X[i]\n", start="start")
    assert tree.data == "start"


def test_a_first_program_is_read_by_the_stored_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    if json.loads(STORED.read_text("utf-8"))["lark"] != lark.__version__:
        pytest.skip("the tables are of another version of Lark than the one installed here")
    monkeypatch.delattr(grammar, "built")
    assert parser(Indentation()).parse("Y[i] = X[i]\n", start="start")
    assert ts.program("Y[i] = X[i]").inputs == ("X",)


BY_RULES = "".join(line for line in TEXT.read_text("utf-8").splitlines(keepends=True) if "PLAIN" not in line)
CHARACTERS = "[],.()=+:ij 7\n\\#"
WORDS = (
    "exp[i]",
    "X[exp]",
    "X[inside]",
    "if[i]",
    "for[i]",
    "size[i]",
    "def[i]",
    "not[i]",
    "return[i]",
    "inf[i]",
    "inside[i]",
    "X[size]",
    "X[not]",
    "X[for]",
    "X[i,]",
    "X[i]: array",
    "X[ i ,\tj ]",
    "X[True]",
    "Y.grad[i]",
    "X[i] [j]",
)


def test_words_of_the_language_are_no_plain_accesses() -> None:
    plain = next(line for line in TEXT.read_text("utf-8").splitlines() if line.startswith("PLAIN"))
    listed = [set(words.split("|")) for words in re.findall(r"\(\?!\(\?:([a-z|]+)\)", plain)]
    assert listed == [set(KEYWORDS)] * 3


@pytest.fixture(scope="module")
def by_rules() -> Any:
    """The parser that knows `X[i]` by its rules alone."""
    return built(BY_RULES, Indentation())


def read(text: str, made: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a parser makes of a text, with all places in it; or what is said of the text, and of which part."""
    with monkeypatch.context() as patch:
        patch.setattr(parse, "_grammar", lambda: made)
        try:
            source = parse.parse(text)
        except ts.SwapError as error:
            return type(error), [(fault.message, fault.hint, fault.span) for fault in error.faults]
    programs = [*source.definitions.values(), *([source.main] if source.main else [])]
    nodes = [n for loops in programs for s in loops.statements for n in (s.target, *s.nodes)]
    return source, [(type(node), node.span) for node in nodes]


def test_plain_accesses_are_read_as_by_their_rules(by_rules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in texts with a fault, which is told with the same words."""
    random = Random(daily.DAY)
    ours, refused = parser(Indentation()), 0
    short = [text for text in PROGRAMS if len(text) < 900] + [
        "X[i,j]: array\nY[i,j] = X[i,j]\nZ[i] += X[i, j] * Y[i,j+1]"
    ]
    written = [
        text
        for word in WORDS
        for text in (
            f"Y[i] = {word} * 2",
            f"{word} = X[i]",
            f"Y[i] = {word} \\",
            f"Y[i] = X[i] + {word}\\\n",
            f"{word} max= X[i] if {word} < 2",
        )
    ]
    for text in (*PROGRAMS, *written):
        assert read(text, ours, monkeypatch) == read(text, by_rules, monkeypatch)
    for _ in range(1500 if daily.LONG else 300):
        text = random.choice(short)
        for _ in range(random.randint(1, 3)):
            place = random.randrange(len(text) + 1)
            word = random.choice((random.choice(CHARACTERS), random.choice(WORDS), ""))
            text = text[:place] + word + text[place + random.randint(0, 2) :]
        found, wanted = read(text, ours, monkeypatch), read(text, by_rules, monkeypatch)
        refused += isinstance(found[0], type)
        assert found == wanted, text
    assert refused > 100


if __name__ == "__main__":
    STORED.write_text(tables(), "utf-8")
