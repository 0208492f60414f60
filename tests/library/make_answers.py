"""Stores PyTorch's answers for the table: `python -m tests.library.make_answers [family ...]`.

One file for each family. A case is `op/number` (a text: the row as it was) with `input/<name>`, `output/<name>`,
`seed/<name>` (the upstream gradient), `grad/<name>`, and where the op is smooth `along/<name>` and `second/<name>`: the
gradient of the inner product of `grad` and `along`. The tests read these files and need no torch.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

import tensorswap as ts
from tensorswap.language import ir
from tensorswap.language.options import each_part

from . import reference
from .rows import FAMILIES, rows_of
from .store import save
from .table import Array, Op, arrays_of, options_of

FOLDER = Path(__file__).parent / "answers"


def defaults(program: ts.Program) -> dict[str, Any]:
    """What a call may leave out: numbers, static integers (perhaps named after others), and None for a tensor."""
    header = program.loops.header
    assert header is not None
    found: dict[str, Any] = {}
    for argument in header.arguments:
        if argument.default is not None:
            optional = isinstance(argument, ir.Argument) and argument.access.indices
            found[argument.name] = None if optional else argument.default
    return found


def oracle_values(program: ts.Program, options: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """What an oracle may name: all arguments, those with parts as tuples."""
    values = {**defaults(program), **each_part(program.loops, options), **tensors}
    for name, value in values.items():
        if isinstance(value, str):  # it follows another, which stands before it
            values[name] = values[value]
    return values | {name: tuple(values[part] for part in parts) for name, parts in program.loops.options.items()}


def answer(row: Op, case: str) -> dict[str, Array]:
    program = ts.load(row.name)
    arrays, options = arrays_of(row.name, case), options_of(case)
    tensors = {n: torch.tensor(a, requires_grad=a.dtype.kind == "f" and n not in row.fixed) for n, a in arrays.items()}
    values = oracle_values(program, options, tensors)
    result = eval(row.oracle, {"torch": torch, "F": F, "R": reference}, values)  # the table is our own text
    results = result if isinstance(result, tuple) else (result,)
    assert len(results) == len(program.outputs), f"{row.name}: {len(results)} answers for {program.outputs}"
    outputs = dict(zip(program.outputs, results, strict=True))
    generator = np.random.default_rng(zlib.crc32(case.encode()))
    wanted = {n: t for n, t in tensors.items() if t.requires_grad}
    stored: dict[str, Any] = {f"input/{name}": array for name, array in arrays.items()}
    stored |= {f"output/{name}": output.detach().numpy() for name, output in outputs.items()}
    smooth = {name: output for name, output in outputs.items() if output.requires_grad}
    seeds = {
        n: torch.tensor(np.round(generator.standard_normal(tuple(o.shape)) * 256) / 256) for n, o in smooth.items()
    }
    stored |= {f"seed/{name}": seed.numpy() for name, seed in seeds.items()}
    total = sum((output * seeds[name]).sum() for name, output in smooth.items())
    if isinstance(total, torch.Tensor) and wanted:
        gradients = torch.autograd.grad(
            total, list(wanted.values()), create_graph=row.smooth, allow_unused=True, materialize_grads=True
        )
        stored |= {f"grad/{name}": g.detach().numpy() for name, g in zip(wanted, gradients, strict=True)}
        if row.smooth:
            along = [torch.tensor(np.round(generator.standard_normal(tuple(g.shape)) * 16) / 16) for g in gradients]
            inner = sum(((g * a).sum() for g, a in zip(gradients, along, strict=True)), torch.zeros(()))
            linear = not inner.requires_grad
            second = (
                [torch.zeros_like(t) for t in wanted.values()]
                if linear
                else torch.autograd.grad(inner, list(wanted.values()), allow_unused=True, materialize_grads=True)
            )
            stored |= {f"along/{name}": a.numpy() for name, a in zip(wanted, along, strict=True)}
            stored |= {f"second/{name}": s.detach().numpy(force=True) for name, s in zip(wanted, second, strict=True)}
    return {key: np.asarray(value, order="C") for key, value in stored.items()}


def main(families: list[str]) -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    for family in families or FAMILIES:
        stored: dict[str, Array] = {}
        texts: dict[str, str] = {}
        for row in rows_of(family):
            for number, case in enumerate(row.cases):
                try:
                    found = answer(row, case)
                except Exception as error:
                    raise RuntimeError(f"{row.name}, case {number}: {case}") from error
                stored |= {f"{row.name}/{number}/{key}": value for key, value in found.items()}
                texts[f"{row.name}/{number}"] = f"{row.oracle} | {case}"
        path = FOLDER / f"{family}.npz"
        save(path, stored, texts)
        print(f"{path.name}: {len(rows_of(family))} ops, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
