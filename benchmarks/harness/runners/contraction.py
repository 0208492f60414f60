"""numpy's einsum and opt_einsum: the value and each gradient is a contraction of its own, ordered beforehand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..workload import Arrays, Results, Workload
from .base import NotApplicable


class Contraction:
    def __init__(self, name: str, threads: int) -> None:
        self.versions = {"numpy": np.__version__}
        self.eager = True
        self.plan: Callable[..., Callable[..., Any]] = planned_by_numpy
        if name == "opt_einsum":
            import opt_einsum

            self.versions["opt_einsum"] = opt_einsum.__version__
            self.plan = lambda subscripts, *operands: opt_einsum.contract_expression(
                subscripts, *(operand.shape for operand in operands)
            )

    def prepare(self, workload: Workload, arrays: Arrays, dtype: str) -> Callable[[], Results]:
        if not workload.einsum:
            raise NotApplicable("not a single contraction")
        made = {}
        for result, (subscripts, names) in contractions(workload).items():
            operands = [arrays[name] for name in names]
            made[result] = partial(self.plan(subscripts, *operands), *operands)
        return lambda: {result: contract() for result, contract in made.items()}

    def results(self, raw: Results) -> Results:
        return {name: np.asarray(value) for name, value in raw.items()}


def contractions(workload: Workload) -> dict[str, tuple[str, list[str]]]:
    """The swap rule on subscripts: in each gradient an operand and the output change places."""
    labels, output = workload.einsum.split("->")
    terms = dict(zip(workload.operands, labels.split(","), strict=True))
    found = {workload.output: (workload.einsum, list(terms))}
    for wanted in workload.wrt:
        sources = {name: term for name, term in terms.items() if name != wanted}
        if workload.seed:
            sources[workload.seed] = output
        found[f"{wanted}.grad"] = (f"{','.join(sources.values())}->{terms[wanted]}", list(sources))
    return found


def planned_by_numpy(subscripts: str, *operands: Any) -> Callable[..., Any]:
    order = np.einsum_path(subscripts, *operands, optimize=True)[0]
    return partial(np.einsum, subscripts, optimize=order)


make = Contraction
