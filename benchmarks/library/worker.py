"""One peer in a process of its own: `python -m benchmarks.library.worker tensorswap|torch THREADS`.

A line of standard input is a command, a line of standard output its answer, both in JSON: ["prepare", op] gives sums
over the results, ["time", seconds] the seconds of one call of what was prepared.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.library.rows import all_rows
from tests.library.table import arrays_of, options_of

ROWS = all_rows()
Results = dict[str, Any]


def given(op: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays in float32, and the options."""
    arrays = arrays_of(op, ROWS[op].speed)
    cast = {name: a.astype(np.float32) if a.dtype.kind == "f" else a for name, a in arrays.items()}
    return cast, options_of(ROWS[op].speed)


def seed(shape: tuple[int, ...]) -> np.ndarray:
    """The gradient that comes from above, the same for both: random, because many ops map a constant one to 0."""
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def with_tensorswap(op: str) -> Callable[[], Results]:
    """One program gives the values and all gradients, as a training step has them."""
    import tensorswap as ts
    from tensorswap.rules.adjoint import derive

    arrays, options = given(op)
    first = ts.load(op)({**arrays, **options})
    outputs = first if isinstance(first, dict) else {ts.load(op).outputs[0]: first}
    wrt = [name for name, a in arrays.items() if a.dtype.kind == "f" and name not in ROWS[op].fixed]
    of = [name for name, value in outputs.items() if np.asarray(value).dtype.kind == "f"]
    passed = [f"{name}={name}" for name in arrays] + [f"{name}={value!r}" for name, value in options.items()]
    text = f"{', '.join(outputs)} = {op}({', '.join(passed)})"
    seeds = {f"seed_{name}": seed(np.shape(outputs[name])) for name in of}
    for name in of:
        places = ",".join(f"{name}_{axis}" for axis in range(np.ndim(outputs[name])))
        text += f"\ntotal += {name}[{places}] * seed_{name}[{places}]" if places else f"\ntotal += {name} * seed_{name}"
    plain = ts.program(text, [*outputs, "total"])
    both = plain._derived(lambda loops: derive(loops, wrt, ["total"], unit=True, keep=list(outputs))[0])
    arguments = {**arrays, **{name: value if value.ndim else float(value) for name, value in seeds.items()}}
    return lambda: both(arguments)


def with_torch(op: str) -> Callable[[], Results]:
    import torch
    import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

    import tensorswap as ts
    from tests.library import reference
    from tests.library.make_answers import oracle_values

    arrays, options = given(op)
    row, program = ROWS[op], ts.load(op)
    tensors = {n: torch.tensor(a, requires_grad=a.dtype.kind == "f" and n not in row.fixed) for n, a in arrays.items()}
    values = oracle_values(program, options, tensors)
    code = compile(row.oracle, op, "eval")
    names = {"torch": torch, "F": F, "R": reference}
    leaves = {n: t for n, t in tensors.items() if t.requires_grad}
    seeds: list[Any] = []

    def call() -> Results:
        result = eval(code, names, values)  # the table is our own text
        results = result if isinstance(result, tuple) else (result,)
        found = dict(zip(program.outputs, results, strict=True))
        smooth = [value for value in found.values() if value.requires_grad]
        if leaves and smooth:
            if not seeds:
                seeds.extend(torch.tensor(seed(tuple(value.shape))) for value in smooth)
            gradients = torch.autograd.grad(smooth, list(leaves.values()), seeds, allow_unused=True)
            found |= {f"{name}.grad": g for name, g in zip(leaves, gradients, strict=True) if g is not None}
        return found

    return call


def sums(results: Results) -> dict[str, float]:
    """Two numbers for each result that tell whether two libraries mean the same."""
    told = {}
    for name, value in results.items():
        array = np.asarray(value.detach() if hasattr(value, "detach") else value, np.float64)
        told[name] = float(np.sqrt(np.mean(array[np.isfinite(array)] ** 2))) if array.size else 0.0
    return told


def main(peer: str, threads: int) -> None:
    if peer == "torch":
        import torch

        torch.set_num_threads(threads)
    make = {"tensorswap": with_tensorswap, "torch": with_torch}[peer]
    call: Callable[[], Any] = dict
    answers, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)
    for line in sys.stdin:
        command, value = json.loads(line)
        try:
            if command == "prepare":
                call = make(value)
                answer: Any = sums(call())
            else:
                call()
                count = 0
                start = time.perf_counter()
                while count == 0 or time.perf_counter() - start < value:
                    call()
                    count += 1
                answer = (time.perf_counter() - start) / count
        except Exception as error:  # the parent tells which op it was
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
