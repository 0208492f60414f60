"""`tensorswap explain`: a program with the statements that its derivative is made of, down to the machine code."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from .. import library
from ..debug import debug
from ..errors import ArgumentError
from ..explain import latex, page, terminal
from ..explain.explanation import explanation
from ..language.hints import closest
from ..program import Program, load, program
from ..rules.activity import default_wrt
from .colour import paint_for

if TYPE_CHECKING:
    from pathlib import Path

    from ..plan.table import PlanTable
    from ..trust.inputs import Inputs

EXAMPLES = """\
examples:
  tensorswap explain 'Y[i,j] += A[i,k] * B[k,j]'
  tensorswap explain 'Z[i] += W[i,j] * x[j]' 'Y[i] = tanh(Z[i])'      several statements
  tensorswap explain softmax                                          an op of the library (tensorswap ops)
  tensorswap explain models/mlp                                       a model of the library
  tensorswap explain layer.loop --wrt W                               a file; the derivative by W alone
  tensorswap explain softmax --size j=1000 --size ...=64              with costs as numbers, and the plan
  tensorswap explain softmax --stage adjoint                          the adjoint program alone: it parses back
  tensorswap explain softmax --stage asm --gradient                   machine code of forward and backward
  tensorswap explain softmax --html > softmax.html                    also --latex, --json

Colours are for terminals; NO_COLOR=1 turns them off.
"""
MORE = "    --size NAME=NUMBER shows the plan, --stage source (or llvm, asm) the code of the kernels"
CODE = ("source", "llvm", "asm")
STAGES = ("adjoint", "plan", *CODE)


def describe(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument("--wrt", action="append", metavar="NAME", help="differentiate by this input (default: by all)")
    parser.add_argument("--of", action="append", metavar="NAME", help="differentiate this output (default: all)")
    parser.add_argument("--stage", choices=STAGES, help="one stage alone: the adjoint program, the plan, or code")
    parser.add_argument("--gradient", action="store_true", help="code of forward and backward, not of forward alone")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--latex", action="store_const", dest="form", const="latex", help="formulas for amsmath")
    form.add_argument("--json", action="store_const", dest="form", const="json", help="all of it as data")
    form.add_argument("--html", action="store_const", dest="form", const="html", help="a page of its own")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=NUMBER",
        help="size of an index or a static integer: gives costs as numbers, and the plan",
    )  # fmt: skip
    parser.add_argument("--shape", action="append", default=[], metavar="X=3,4", help="shape of an input, likewise")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")


def add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="+", metavar="PROGRAM",
        help="statements, a .loop file, the name of an op or a model, or `-` for standard input",
    )  # fmt: skip


def run(chosen: argparse.Namespace) -> None:
    shown = read_all(chosen.source)
    if chosen.stage is None or chosen.form in ("latex", "html"):
        _check(chosen)
        print(_explained(shown, chosen), end="")
    elif chosen.stage in CODE:
        print(_stage(_code(shown, chosen), chosen))
    elif chosen.stage == "plan":
        plans = _plans(shown, _inputs(shown, chosen), chosen)
        print(json.dumps(_plans_as_data(plans), indent=2) if chosen.form == "json" else _plans_as_text(plans))
    else:
        print(_stage(_adjoint(shown, chosen), chosen))


def _stage(text: str, chosen: argparse.Namespace) -> str:
    return json.dumps({"stage": chosen.stage, "text": text}) if chosen.form == "json" else text


def read_all(sources: Sequence[str]) -> Program:
    """Several are the statements of one program."""
    if len(sources) == 1:
        return read(sources[0])
    for source in sources:
        if source.endswith(library.SUFFIX) or not any(character in source for character in " =[:#\n"):
            raise ArgumentError(
                f"{source[:200]!r} stands beside others, and is no statement",
                hint="give a file, an op or a model alone, or statements, each in quotes",
            )
    return program("\n".join(sources))


def read(source: str) -> Program:
    """The program of a file, an op, a model, standard input, or of statements."""
    if source == "-":
        return program(sys.stdin.read())
    if any(character in source for character in "=[\n"):
        return program(source)
    if source.startswith("models/"):
        return load(_model(source.removeprefix("models/")))
    if os.path.splitext(source)[1] in (".loop", ""):
        return load(source)
    try:
        with open(source, encoding="utf-8-sig") as file:
            return program(file.read())
    except (OSError, ValueError) as error:  # a name with a NUL byte, a file that is no text
        raise ArgumentError(
            f"{source[:200]} cannot be read: {error}", hint="give statements such as 'Y[i] = X[i]', a file, or an op"
        ) from error


def _model(name: str) -> Path:
    """The file of a model: an op may have the same name."""
    known = library.models()
    if name not in known:
        raise ArgumentError(f"there is no model {name[:80]!r}", hint=closest(name, known, "there are"))
    return known[name]


def _check(chosen: argparse.Namespace) -> None:
    if chosen.stage is not None:
        raise ArgumentError(f"--{chosen.form} shows the whole explanation, not a stage", hint="leave --stage out")


def _explained(shown: Program, chosen: argparse.Namespace) -> str:
    made = _inputs(shown, chosen) if chosen.size or chosen.shape else None
    numbers = _numbers(shown, made) if made is not None else {}
    told = explanation(shown.loops, chosen.wrt, chosen.of, numbers)
    plans = _plans(shown, made, chosen) if made is not None else {}
    if chosen.form == "json":
        return json.dumps(told.as_json() | ({"plans": _plans_as_data(plans)} if plans else {}), indent=2) + "\n"
    if chosen.form == "latex":
        return latex.document(told)
    if chosen.form == "html":
        return page.document(told, told.name or told.text.partition("\n")[0])
    paint = paint_for(sys.stdout)
    text = terminal.shown(told, paint, get_terminal_size((100, 24)).columns) + "\n"
    if plans:
        return f"{text}\n{_plans_as_text(plans, paint('head', 'Plan'))}\n"
    return text + (paint("faint", MORE) + "\n" if paint.on else "")


def _inputs(shown: Program, chosen: argparse.Namespace) -> Inputs:
    """Shapes are all that plans and code need, and whole numbers that are in bounds."""
    from .given_sizes import inputs_for

    return inputs_for(shown, chosen, shapes_alone=True)


def _numbers(shown: Program, made: Inputs) -> dict[str, int]:
    """The size of each index, and of each axis that is read at computed places."""
    sizes = made.bound.sizes
    batch = prod(size for name, size in sizes.index.items() if name not in shown.loops.indices)
    axes = {f"{tensor}:{axis}": size for tensor, shape in sizes.shapes.items() for axis, size in enumerate(shape)}
    return {**axes, **sizes.index, "...": batch}


def _adjoint(shown: Program, chosen: argparse.Namespace) -> str:
    wrt = chosen.wrt or default_wrt(shown.loops, chosen.of)
    if not wrt:
        raise ArgumentError("no input has a derivative here", hint="an output must depend smoothly on an input")
    return str(shown.adjoint(wrt, chosen.of))


def _both(shown: Program, made: Inputs, chosen: argparse.Namespace) -> tuple[Program | None, dict[str, Any]]:
    """Forward and backward in one program, and its arguments."""
    from .with_gradient import seeds_without_memory, with_gradient

    both, _ = with_gradient(shown, made, chosen.wrt)
    return both, {} if both is None else {**made.arguments, **seeds_without_memory(both, made, chosen.dtype)}


def _plans(shown: Program, made: Inputs, chosen: argparse.Namespace) -> dict[str, PlanTable]:
    both, arguments = _both(shown, made, chosen)
    with debug(certify=False):  # which would ask for compiled code; a call looks again
        plans = {"forward": shown.plan(made.arguments)}
        return plans if both is None else {**plans, "forward and backward": both.plan(arguments)}


def _plans_as_text(plans: dict[str, PlanTable], head: str = "") -> str:
    parts = [f"{head}{', ' if head else ''}{name}\n{plan}" for name, plan in plans.items()]
    return "\n\n".join(parts)


def _plans_as_data(plans: dict[str, PlanTable]) -> dict[str, Any]:
    return {name: asdict(plan) for name, plan in plans.items()}


def _code(shown: Program, chosen: argparse.Namespace) -> str:
    made = _inputs(shown, chosen)
    arguments: dict[str, Any] = made.arguments
    if chosen.gradient:
        both, arguments = _both(shown, made, chosen)
        if both is None:
            raise ArgumentError("no input has a derivative here", hint="leave --gradient out")
        shown = both
    if chosen.stage == "source":
        with debug(certify=False):
            return shown.source(arguments)
    from ..run.machine_text import machine_text

    return machine_text(shown.executable(arguments), chosen.stage)
