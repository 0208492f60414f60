"""`tensorswap ops`: the ops of the library, how each is called and what it does."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap

from .. import library
from ..errors import ArgumentError
from ..language.hints import closest
from .colour import paint_for

EXAMPLES = """\
examples:
  tensorswap ops                            all of them, one line each
  tensorswap ops --search pool              those with the word in their name, arguments or description
  tensorswap ops --search loss --long       with their arguments
  tensorswap ops --json                     as data
  tensorswap explain max_pool2d             one of them, with its derivative
"""


def describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--search", metavar="WORD", action="append", help="only those that have this word (and others)")
    parser.add_argument("--long", action="store_true", help="with arguments and outputs")
    parser.add_argument("--names", action="store_true", help="names alone, of ops and models, for scripts")
    parser.add_argument("--json", action="store_true", help="names, arguments and descriptions as data")


def run(chosen: argparse.Namespace) -> None:
    described, signatures = library.ops(), library.signatures()
    words = [word.lower() for word in chosen.search or ()]
    found = {
        name: line
        for name, line in described.items()
        if all(word in f"{signatures[name]} {line}".lower() for word in words)
    }
    if chosen.names:
        print("\n".join([*found, *(f"models/{name}" for name in library.models() if not words)]))
        return
    if chosen.json:
        print(
            json.dumps([{"name": n, "signature": signatures[n], "description": d} for n, d in found.items()], indent=2)
        )
        return
    if not found:
        named = ", ".join(chosen.search)
        hint = closest(chosen.search[0], described) or "`tensorswap ops` lists all of them"
        raise ArgumentError(f"no op has the words {named[:80]!r}", hint=hint)
    paint = paint_for(sys.stdout)
    width = max(map(len, found))
    for name, line in found.items():
        if chosen.long:
            print(textwrap.fill(signatures[name], 110, subsequent_indent=" " * 8).replace(name, paint("head", name), 1))
            print(f"    {paint('faint', line)}")
        else:
            print(f"{paint('head', name)}{' ' * (width - len(name))}  {line}")
    if words and not chosen.long:
        print(paint("faint", f"{len(found)} of {len(described)}; --long shows their arguments"))
