"""The command `tensorswap`: one file for each of its words, imported when the word is used."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from .. import __version__
from ..errors import SwapError
from .colour import marked, paint_for

EXAMPLES = """\
first steps:
  tensorswap explain 'Y[i,j] += A[i,k] * B[k,j]'     see the derivative, and why it is so
  tensorswap playground                              type statements, and see all that follows
  tensorswap ops --search attention                  find an op of the library
  tensorswap bench softmax                           how fast is it here?
  tensorswap doctor                                  is everything there, and right?
  tensorswap COMMAND --help                          examples of each command

exit codes: 0 done, 1 a check failed, 2 it cannot be done as asked (the message says why), 130 interrupted
"""


@dataclass(frozen=True)
class Part:
    """A word of the command. Its module has `describe`, which gives a parser its options, and `run`."""

    word: str
    module: str
    help: str


PARTS = (
    Part("explain", "show", "show a program with its adjoint statements, and the rules that made them"),
    Part("playground", "play", "open a page that shows the derivative of what you type"),
    Part("ops", "ops", "list the ops of the library, or search them"),
    Part("bench", "bench", "time a program and its gradient on random inputs"),
    Part("profile", "profile", "show where the time of a program goes, kernel by kernel"),
    Part("train", "train", "train a model: a live line, then parameters, a plot and a summary"),
    Part("cluster-demo", "cluster_demo", "run programs in shards on the cores of this machine, and lose a worker"),
    Part("cache", "cache", "show, fill or clear the compiled kernels on disk"),
    Part("doctor", "doctor", "check this installation: CPU, packages, compiler, threads, results"),
    Part("completion", "completion", "print a script that completes this command in bash, zsh or fish"),
)


def parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of the command. The options of a word are there if it is among the words, or if those are None."""
    shape = argparse.RawDescriptionHelpFormatter  # examples keep their lines
    told = "Tensor programs as index-loop statements, with derived gradients."
    made = argparse.ArgumentParser(prog="tensorswap", description=told, epilog=EXAMPLES, formatter_class=shape)
    made.add_argument("--version", action="version", version=f"tensorswap {__version__}")
    subparsers = made.add_subparsers(dest="word", required=True, metavar="command")
    for part in PARTS:
        own = subparsers.add_parser(part.word, help=part.help, formatter_class=shape, allow_abbrev=False)
        if words is None or part.word in words:
            module = import_module(f".{part.module}", __package__)
            own.description, own.epilog = f"{part.help[0].upper()}{part.help[1:]}.", module.EXAMPLES
            own.set_defaults(run=module.run)
            module.describe(own)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before we were started: nobody reads it
            setattr(sys, name, io.StringIO())
    given = sys.argv[1:] if arguments is None else list(arguments)
    chosen = parser(given).parse_args(given)
    try:
        code = int(chosen.run(chosen) or 0)
        sys.stdout.flush()
        return code
    except SwapError as error:
        print(f"tensorswap: {marked(str(error), paint_for(sys.stderr))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tensorswap: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has enough, and Python would tell it again at the end
        _end_output()
        return 0
    except OSError as error:  # of our output, which a full disk does not take; files that are read tell their own
        print(f"tensorswap: {error}", file=sys.stderr)
        _end_output()
        return 2


def _end_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    sys.exit(main())
