"""How a problem of GradBench becomes rows of the table: its functions at each of its sizes, all in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.workload import Arrays, CTwin, Sizes, Workload

TWINS = Path(__file__).parent / "twins"


@dataclass(frozen=True)
class Function:
    """One function of a problem. `shapes` are those of its results, for the twin in C."""

    name: str  # as GradBench calls it
    text: str
    shapes: Callable[[Arrays], Mapping[str, tuple[int, ...]]]
    jax_value: Callable[..., Any]
    torch_value: Callable[..., Any] | None = None
    wrt: tuple[str, ...] = ()
    output: str = "loss"
    outputs: tuple[str, ...] = ()
    derive: Callable[[Any], Any] | None = None


def rows(
    problem: str,
    functions: Sequence[Function],
    sizes: Sequence[Sizes],
    quick: Sizes,
    make_arrays: Callable[..., Arrays],
    c_sizes: Callable[[Arrays], Sequence[int]],
    terms: Callable[[Sizes], int],
    c_inputs: tuple[str, ...] = (),
) -> tuple[Workload, ...]:
    """Every function at every size. Its twin in C is `<problem>_<function>` in twins/<problem>.c."""
    return tuple(
        Workload(
            name="_".join((problem, *map(str, size.values()), function.name)),
            title=f"{problem}{told(size)}, {function.name}",
            kind="problem",
            text=function.text,
            wrt=function.wrt,
            output=function.output,
            outputs=function.outputs,
            derive=function.derive,
            sizes=size,
            quick=quick,
            make_arrays=make_arrays,
            jax_value=function.jax_value,
            torch_value=function.torch_value,
            c=CTwin(TWINS / f"{problem}.c", f"{problem}_{function.name}", function.shapes, c_sizes, c_inputs),
            terms=terms,
            dtypes=("float64",),
        )
        for size in sizes
        for function in functions
    )


def told(sizes: Sizes) -> str:
    return "".join(f", {name} = {value:,}" for name, value in sizes.items())
