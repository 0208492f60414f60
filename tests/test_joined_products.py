"""Products whose loops run through memory as one: they are joined before tiles are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tests.test_planner import check

pytestmark = pytest.mark.compiled

TEXTS = [
    "Y[b,t,o] += X[b,t,i] * W[o,i]",
    "Y[b,t,o] += X[b,t,i] * W[i,o]",
    "Y[n,o,i,j] += X[n,c,i,j] * W[o,c]",
    "Y[n,o,i,j] += X[n,c,i,j] * W[o,c,n]",
    "Y[n,o,i,j] += X[n,c,i+1,j] * W[o,c]",
    "Y[n,o,i,j] += X[n,c,2*i+u,2*j+v] * W[o,c,u,v]",
    "Y[n,o,i,j] += X[n,c,i+u,j+v] * W[o,c,u,v]",
    "Y[i,j] += A[i,k,l] * B[j,k,l]",
    "Y[i,j] += A[k,l,i] * B[k,l,j]",
    "Y[i,j,m] += A[k,i,l] * B[k,j,m,l]",
    "Y[a,b,c,d] += A[a,b,k] * B[k,c,d]",
    "Y[i,r] += A[i,j,k] * P[j,k,r]",
    "P[j,k,r] += A[i,j,k] * Y[i,r]",
]
LONGER = ["size(Y, 1) = 23", "size(Y, 2) = 23", "size(Y, 3) = 23"]  # an axis of the target that its index does not fill


@settings(max_examples=40, deadline=None)  # each compiles
@given(
    st.sampled_from(TEXTS), st.sampled_from(["", "", "", *LONGER]),
    st.lists(st.sampled_from([1, 2, 3, 5, 8, 16, 17, 21]), min_size=12, max_size=12),
    st.sampled_from([np.float32, np.float64]), st.booleans(),
)  # fmt: skip
def test_values_and_gradients(text: str, longer: str, sizes: list[int], dtype: type, derived: bool) -> None:
    indices = dict(zip("abcdijklmnortuv", [*sizes, *sizes], strict=False)) | {"u": 3, "v": sizes[0] % 3 + 1}
    try:
        program = ts.program(f"{longer}\n{text}" if longer else text)
        if derived:
            program = program.adjoint(wrt=list(program.inputs))
        arrays = _arrays(program, text, longer, indices, dtype)
        program.run_reference(arrays)
    except ts.SwapError:
        return  # such an axis is not in this text
    check(program, arrays)


def _arrays(program: ts.Program, text: str, longer: str, indices: dict[str, int], dtype: type) -> dict[str, Any]:
    """As long as the text asks."""
    numbers = np.random.default_rng(sum(indices.values()))
    sides = text.replace(" += ", " * ").split(" * ")
    arrays = {}
    for side in sides:
        name, places = side.rstrip("]").split("[")
        shape = [_extent(place, indices) for place in places.split(",")]
        if longer.startswith(f"size({name},"):
            axis, extent = (int(part) for part in longer.removeprefix(f"size({name},").split(") ="))
            shape[axis] = max(extent, shape[axis])
        for known in (name, f"{name}.grad"):
            if known in program.inputs:
                arrays[known] = numbers.standard_normal(shape).astype(dtype)
    return arrays


def _extent(place: str, indices: dict[str, int]) -> int:
    """One more than the largest place."""
    factor = 2 if place.startswith("2*") else 1
    names = place.removeprefix("2*").split("+")
    last = factor * (indices[names[0]] - 1)
    return 1 + last + sum(int(n) if n.isdigit() else indices[n] - 1 for n in names[1:])


def test_they_are_joined() -> None:
    source = ts.program("Y[n,o,i,j] += X[n,c,i,j] * W[o,c]").source(X=(4, 16, 13, 13), W=(32, 16))
    assert "range(0, 169, " in source
