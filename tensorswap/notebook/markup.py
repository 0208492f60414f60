"""Markup: texts, code and tables -> a part of a notebook's page.

Colours are those of the notebook's own theme where it tells them (JupyterLab does, by variables), and otherwise such as
can be read on white and on black. A page's preference for dark says nothing about a notebook, so it is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..explain.page import coloured

SHOWN = ".tensorswap-shown" * 3  # so that rules of the notebook's own for tables and code come second
STYLE = """
@ { font: 14px/1.5 system-ui, sans-serif; max-width: 62rem; color: inherit; }
@ h3, @ h4 { font-size: 14px; margin: .2rem 0 .4rem; padding: 0; font-weight: 600; }
@ code, @ pre { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, monospace; background: none; color: inherit;
  padding: 0; border: none; }
@ pre { margin: .2rem 0 .6rem; white-space: pre-wrap; }
@ code { white-space: pre-wrap; }
@ .quiet, @ .loop, @ .words, @ .cost { opacity: .75; }
@ details { margin: .2rem 0; }
@ summary { cursor: pointer; opacity: .85; }
@ table { border-collapse: collapse; margin: .2rem 0 .6rem; }
@ tr { background: none; }
@ th, @ td { text-align: left; vertical-align: top; padding: .15rem .9rem .15rem 0; border: none; background: none;
  border-bottom: 1px solid rgba(128, 128, 128, .3); font-size: 13px; white-space: normal; }
@ th { font-weight: 600; }
@ td.wide { min-width: 15rem; }
@ th.number, @ td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
@ .row { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: 0 1.5rem; }
@ .statement { border-left: 3px solid #3d7ec9; padding-left: .8rem; margin-top: 1rem; }
@ .adjoint { margin-left: 1.5rem; border-left: 3px solid #d9822b; padding-left: .8rem; }
@ ul.words { margin: .2rem 0 .4rem; padding-left: 1.1rem; grid-column: 2; }
@ code .gradient { color: var(--jp-mirror-editor-variable-2-color, #b86000); }
@ code .function { color: var(--jp-mirror-editor-builtin-color, #0d7f92); }
@ code .word { color: var(--jp-mirror-editor-keyword-color, #9a4fbd); }
@ code .number { color: var(--jp-mirror-editor-number-color, #2f8746); }
@ svg { max-width: 100%; height: auto; border-radius: 4px; }
""".replace("@", SHOWN)


def part(*parts: str) -> str:
    """The parts, with the style that they need."""
    return f'<div class="tensorswap-shown"><style>{STYLE}</style>\n' + "\n".join(parts) + "\n</div>"


def head(text: str, quiet: str = "") -> str:
    return f'<h4>{escape(text)} <span class="quiet">{escape(quiet)}</span></h4>'


def note(text: str) -> str:
    return f'<div class="quiet">{escape(text)}</div>'


def code(text: str) -> str:
    """A text of the language, in colours."""
    return f"<code>{coloured(text)}</code>"


def block(text: str) -> str:
    return f"<pre>{code(text)}</pre>"


def folded(title: str, *parts: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n" + "\n".join(parts) + "\n</details>"


def table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), wide: Sequence[int] = ()
) -> str:
    """Cells are markup; those of the columns in `numbers` are set to the right, those in `wide` are not squeezed."""

    def cells(tag: str, row: Sequence[str]) -> str:
        names = ("number" if k in numbers else "wide" if k in wide else "" for k in range(len(row)))
        kinds = (f' class="{name}"' if name else "" for name in names)
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', titles)}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
