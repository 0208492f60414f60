"""Explanation -> HTML: a part of a page for notebooks, or a page of its own; nothing is fetched from anywhere."""

from __future__ import annotations

from html import escape

from .explanation import Adjoint, Explanation, Statement
from .pieces import pieces

STYLE = """
.tensorswap { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 62rem; }
.tensorswap code { font: 14px/1.5 ui-monospace, monospace; white-space: pre-wrap; }
.tensorswap .row { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: 0 1.5rem; }
.tensorswap .adjoint { margin-left: 1.5rem; border-left: 3px solid #d9822b; padding-left: .8rem; }
.tensorswap .statement { border-left: 3px solid #3d7ec9; padding-left: .8rem; margin-top: 1.4rem; }
.tensorswap .loop, .tensorswap .words, .tensorswap .cost { color: #667; }
.tensorswap ul.words { margin: .2rem 0 .4rem; padding-left: 1.1rem; grid-column: 2; }
.tensorswap .gradient { color: #b35900; } .tensorswap .function { color: #0b7285; }
.tensorswap .word { color: #8a3ea8; } .tensorswap .number { color: #2b7a3d; }
@media (prefers-color-scheme: dark) {
  .tensorswap { color: #e6e6e6; } .tensorswap .loop, .tensorswap .words, .tensorswap .cost { color: #9aa; }
  .tensorswap .gradient { color: #ffb35c; } .tensorswap .function { color: #66d9e8; }
  .tensorswap .word { color: #d8a0ef; } .tensorswap .number { color: #8ce99a; }
}
"""
COLOURED = ("gradient", "function", "word", "number")


def document(made: Explanation, title: str = "tensorswap") -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n{fragment(made)}</body>\n</html>\n"
    )


def fragment(made: Explanation) -> str:
    """The part of a page that shows a program and its derivative, with its style."""
    title = [f"<h2>{escape(made.name)}</h2>"] if made.name else []
    return '<div class="tensorswap">\n' + "\n".join([f"<style>{STYLE}</style>", *title, *body(made)]) + "\n</div>\n"


def body(made: Explanation) -> list[str]:
    """Each statement with its adjoint statements, the whole adjoint program and the cost, for any style."""
    parts: list[str] = []
    for statement in made.statements:
        parts.append(_statement(statement))
        parts += [_adjoint(made.adjoints[number - 1]) for number in statement.adjoints]
    if made.refused:
        parts.append(f"<p>{escape(made.refused)}</p>")
    else:
        lines = "\n".join(coloured(line.text) for line in made.backward)
        parts.append(f"<h3>The whole adjoint program</h3>\n<pre><code>{lines}</code></pre>")
        costs = f"forward {made.forward_cost}; backward {made.backward_cost}"
        parts.append(f'<p class="cost">{escape(costs)}</p>')
    return parts


def _statement(item: Statement) -> str:
    told = f'<li>{escape(item.words)} <span class="cost">{escape(str(item.cost))}</span></li>'
    return _row("statement", " ".join((*item.blocks, item.loop)), item.text, told)


def _adjoint(item: Adjoint) -> str:
    told = "".join(f"<li>{escape(sentence)}</li>" for sentence in item.words)
    return _row("adjoint", " ".join((*item.blocks, item.loop)), item.text, told)


def _row(kind: str, loop: str, text: str, told: str) -> str:
    head = f'<code class="loop">{coloured(loop)}</code><code>{coloured(text)}</code>'
    return f'<div class="row {kind}">{head}<ul class="words">{told}</ul></div>'


def coloured(text: str) -> str:
    """A text of the language, in colours: pieces that have none of their own stay plain."""
    return "".join(
        f'<span class="{kind}">{escape(piece)}</span>' if kind in COLOURED else escape(piece)
        for kind, piece in pieces(text)
    )
