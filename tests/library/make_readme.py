"""Writes kernels/README.md: every op with its size, its oracle and its speed. `python -m tests.library.make_readme`."""

from __future__ import annotations

import csv
import json
import math
import statistics
from pathlib import Path

from tensorswap import library
from tensorswap.language.render import header as show_header

from .rows import FAMILIES, all_rows, rows_of

ROOT = Path(__file__).parent.parent.parent
TARGET = ROOT / "kernels" / "README.md"
SPEEDS = ROOT / "benchmarks" / "results" / "library.json"

HEAD = """# The standard library

Every op is a definition in a `.loop` file: load one with `ts.load("conv2d")`, call it in a text with
`Y = conv2d(X, W, padding=1)`, list all with `ts.ops()`. Backward passes are derived, not written. Names and order of
arguments follow `torch.nn.functional` where there is such a function; what is a `dim` there is the last axis here. An
op named like a function of the language ends in `_layer`: `ts.load("relu")` finds it, too. Losses give the mean; `_sum`
and `_none` are the other reductions. `models/` holds whole models.

`make test` compares values and gradients with what PyTorch computed ({cases:,} cases, float64 to 1e-9 and float32), and
second derivatives where there are any. The tables below are made by `python -m tests.library.make_readme`.

**Axes.** A signature shows them in their order; `...` are any leading (batch) axes. Sequences are as in PyTorch: time
first, then the batch, `[t,b,d]`, in recurrent layers, conditional random fields, hidden Markov models and CTC; the
batch first, `[b,t,d]`, in attention, scans and convolutions. A tensor in another order has the same number of axes, so
no op can tell: write `X[t,b,d] = Y[b,t,d]` in front.

**Options** are whole numbers known before a call is compiled (`: int`), or plain numbers. An option with parts,
`stride: int[stride_h,stride_w]`, is one number for all axes or one for each: `stride=2` or `stride=(2, 1)`. A tensor
with a default, `bias[o]=0`, may be left out.

- **op**: its signature, `name(arguments) -> results`.
- **lines**: statements and header of the definition, comments and empty lines not counted.
- **C lines**: those of the files that it replaces from THNN, PyTorch's old C library of forward and backward passes.
- **second**: whether second derivatives are compared as well.
- **speed**: the time of PyTorch over ours, forward and backward pass, float32 (benchmarks/results/library.md).

{ops} ops in {lines:,} lines. The 55 operators of THNN: {thnn_lines} lines here, {c_lines:,} there ({share:.1f} %).
{mean}
"""


def lines_of(text: str) -> int:
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.splitlines())


def readme() -> str:
    counts = {name: lines_of(text) for name, text in library.definitions().texts.items()}
    with (Path(__file__).parent / "thnn.csv").open() as file:
        c_lines = {row["file"]: int(row["lines"] or 0) for row in csv.DictReader(file)}
    speeds = json.loads(SPEEDS.read_text()) if SPEEDS.exists() else {}
    ratios = {name: row["ratio"] for name, row in speeds.items() if row.get("agree")}
    rows = all_rows()
    served = [row for row in rows.values() if row.thnn]
    needed = with_callees({row.name for row in served})
    thnn_lines = sum(counts[name] for name in needed)
    total = sum(c_lines.values())
    mean = ""
    if ratios:
        value = math.exp(statistics.fmean(map(math.log, ratios.values())))
        mean = f"Geometric mean of the speeds of {len(ratios)} ops: {value:.2f}."
    parts = [
        HEAD.format(
            cases=sum(len(row.cases) for row in rows.values()),
            ops=len(rows),
            lines=sum(counts.values()),
            thnn_lines=thnn_lines,
            c_lines=total,
            share=100 * thnn_lines / total,
            mean=mean,
        ).rstrip()
    ]
    described = library.ops()
    for family in FAMILIES:
        parts += [f"\n## {family.capitalize()}\n", "| op | what it does | lines | C lines | oracle | second | speed |"]
        parts.append("| --- | --- | ---: | ---: | --- | --- | ---: |")
        for row in rows_of(family):
            c = sum(c_lines[name] for name in row.thnn)
            oracle = row.oracle.replace("|", "\\|")
            cells = [
                f"`{signature(row.name)}`",
                described[row.name].replace("|", "\\|"),
                str(counts[row.name]),
                str(c) if row.thnn and c else "",
                f"`{oracle}`" if len(oracle) < 100 else f"`{oracle[:90]}...`",
                "yes" if row.smooth else "",
                f"{ratios[row.name]:.2f}" if row.name in ratios else "",
            ]
            parts.append("| " + " | ".join(cells) + " |")
    return "\n".join(parts) + "\n"


def signature(name: str) -> str:
    header = library.definitions()[name].header
    assert header is not None
    return show_header(header).removeprefix("def ").removesuffix(":").replace("|", "\\|")


def with_callees(names: set[str]) -> set[str]:
    """The definitions, and all that they call."""
    from tensorswap.language import ir
    from tensorswap.language.name_kinds import flat_items

    found, left = set(names), list(names)
    while left:
        for item in flat_items(library.definitions()[left.pop()].body):
            if isinstance(item, ir.CallStatement) and item.function not in found:
                found.add(item.function)
                left.append(item.function)
    return found


if __name__ == "__main__":
    TARGET.write_text(readme(), encoding="utf-8")
