"""All samples of the ops that PyTorch and this library share, and a table of what became of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import elementwise, linear, losses, norms, order, reductions, windows  # noqa: F401 (they register adapters)
from .case import ADAPTERS
from .compare import (
    ADAPTER,
    BEYOND,
    CRASH,
    DTYPE,
    OUTCOMES,
    REFUSED,
    RIGHT,
    SHAPE,
    UNEXPRESSED,
    VALUE,
    Outcome,
    outcome,
)

FAULTS = (VALUE, SHAPE, DTYPE, CRASH, ADAPTER)
TYPES = (torch.float64, torch.int64)


@dataclass
class Tally:
    """The samples of one op."""

    name: str
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, found: Outcome) -> None:
        self.kinds[found.kind] += 1
        if found.detail:
            self.reasons[found.kind, found.detail] += 1

    @property
    def faults(self) -> int:
        return sum(self.kinds[kind] for kind in FAULTS)

    def __str__(self) -> str:
        counts = ", ".join(f"{self.kinds[kind]:,} {kind}" for kind in OUTCOMES if self.kinds[kind])
        shown = [f"\n          {kind}: {text}" for (kind, text), _ in self.reasons.items() if kind in FAULTS]
        return f"{self.name}: {counts or 'no samples'}{''.join(shown[:5])}"


def shared() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.name in ADAPTERS]


def run(words: Sequence[str], limit: int, second: int, compiled: int, reference: bool = False) -> Iterator[Tally]:
    torch.set_default_dtype(torch.float64)  # whole numbers become float64, as here
    torch.set_num_threads(1)  # of values that meet in one place the last one wins, not that of the slower thread
    warnings.simplefilter("ignore")
    for op in shared():
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if words and not any(word in name for word in words):
            continue
        tally = Tally(name)
        for dtype in TYPES:
            if dtype not in op.dtypes:
                continue
            chosen = spaced(samples(op, dtype, reference), limit)
            for number, sample in enumerate(chosen):
                tally.add(outcome(op.op, ADAPTERS[op.name], sample, number < second, number < compiled))
        yield tally


def samples(op: Any, dtype: torch.dtype, reference: bool) -> list[Any]:
    torch.manual_seed(0)
    return list((op.reference_inputs if reference else op.sample_inputs)("cpu", dtype, requires_grad=False))


def spaced(items: list[Any], limit: int) -> list[Any]:
    """At most `limit` of them, from the first to the last."""
    if not limit or len(items) <= limit:
        return items
    return [items[k * len(items) // limit] for k in range(limit)]


def report(tallies: Sequence[Tally]) -> str:
    total = Counter[str]()
    reasons = Counter[tuple[str, str]]()
    for tally in tallies:
        total += tally.kinds
        reasons += tally.reasons
    share = 100 * total[RIGHT] / max(sum(total.values()), 1)
    lines = ["", f"{len(tallies)} ops, {sum(total.values()):,} samples, {share:.1f} % of them right"]
    lines += [f"{total[kind]:8,}  {kind}" for kind in OUTCOMES]
    for kind in (UNEXPRESSED, REFUSED, BEYOND, RIGHT, *FAULTS):
        found = [(count, text) for (what, text), count in reasons.most_common() if what == kind]
        title = "right, but the gradient is not compared" if kind == RIGHT else kind
        lines += ["", f"{title}:"] * bool(found) + [f"{count:8,}  {text}" for count, text in found[:60]]
    return "\n".join(lines)
