"""Products of tensors that are too large for the caches: tiles stay at rows of one and run through the other, by pieces
of the sum. Here what counts as large is small, so that the interpreter can tell what is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.kernel.registers import registers
from tensorswap.lower import roles, tiling
from tests.test_planner import check

pytestmark = pytest.mark.compiled

LANE = "turned_lane"  # that of a panel
TEXTS = {
    "Y[b,o,i,j] += X[b,c,i+u,j+v] * W[o,c,u,v]": ("X:bcpq", "W:ocuv"),
    "Y[b,o,i,j] += X[b,c,2*i+u,2*j+v] * W[o,c,u,v]": ("X:bcpq", "W:ocuv"),
    "Y[b,o,i,j] += X[b,c,i+2*u,j+v] * W[o,c,u,v]": ("X:bcpq", "W:ocuv"),
    "Y[b,i,j,o] += X[b,i+u,j+v,c] * W[u,v,c,o]": ("X:bpqc", "W:uvco"),
    "Y[b,i,o] -= X[b,i+u,c] * W[u,c,o] * s": ("X:bpc", "W:uco", "s:"),
    "Y[b,o,i,j,k] += X[b,c,i+u,j+v,k+w] * W[o,c,u,v,w]": ("X:bcvpq", "W:ocuvw"),
    "Y[b,o,i] += X[b,c,i] * W[o,c]": ("X:bcp", "W:oc"),
    "Y[b,g,o,i] += X[b,g,c,i+u] * W[g,o,c,u]": ("X:bgcp", "W:gocu"),
    "Y[o,b] += X[b,c,u,v] * W[o,c,u,v]": ("X:bcuv", "W:ocuv"),
}


@pytest.mark.parametrize("text", TEXTS)
@given(st.data())
@settings(max_examples=6, deadline=None)
def test_values_and_gradients(text: str, data: st.DataObject) -> None:
    small = st.integers(1, 3)
    sizes = {
        "b": data.draw(small, "b"), "g": data.draw(small, "g"), "u": data.draw(small, "u"), "v": data.draw(small, "v"),
        "w": data.draw(small, "w"),
        "c": data.draw(st.integers(1, 20), "c"), "o": data.draw(st.integers(1, 21), "o"),
        "p": data.draw(st.integers(7, 20), "p"), "q": data.draw(st.integers(7, 20), "q"),
    }  # fmt: skip
    numbers = np.random.default_rng(3)
    arrays = {}
    for given_tensor in TEXTS[text]:
        name, axes = given_tensor.split(":")
        arrays[name] = numbers.standard_normal([sizes[i] for i in axes])
    program = ts.program(f"{text}\nloss += sin(Y{text[1 : text.index(']') + 1]})\nreturn loss, Y")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roles, "FAR", 1)
        patch.setattr(roles, "LONG", data.draw(st.sampled_from([2, 16]), "long"))
        patch.setattr(roles, "REUSE", data.draw(st.sampled_from([2, 13]), "reuse"))
        cache = data.draw(st.sampled_from([0, 1 << 20]), "cache")
        for module in (roles, tiling):
            patch.setattr(module, "registers", lambda: replace(registers(), cache=cache))
        patch.setattr(tiling, "STEPS", data.draw(st.sampled_from([4, 256]), "steps"))
        patch.setattr(tiling, "COLUMNS", data.draw(st.sampled_from([32, 256]), "columns"))
        patch.setattr(tiling, "NEAR", data.draw(st.sampled_from([64, 24 * 1024]), "near"))
        check(program, arrays)
        check(program.grad(of="loss", wrt=["X", "W"]), arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_panels_of_all_steps_and_of_some(dtype: type) -> None:
    """One tensor is packed before the kernel, with all steps of the sum; the other by pieces of the sum, in blocks of
    panels and a rest of them."""
    numbers = np.random.default_rng(5)
    arrays = {
        "X": numbers.standard_normal((2, 600, 72)).astype(dtype),
        "W": numbers.standard_normal((600, 72)).astype(dtype),
    }
    program = ts.program("Y[b,i,j] += X[b,k,i] * W[k,j]")
    source = program.source(arrays)
    assert "packed ahead" in source
    assert "for chunk in range(0, 600," in source
    assert "split = rows +" in source
    check(program, arrays)


def test_tiles_stay_at_their_rows_of_large_weights() -> None:
    """Panels of rows are packed once, before the loops over pictures and their lines."""
    program = ts.program("Y[b,o,i,j] += X[b,c,i+u,j+v] * W[o,c,u,v]")
    shapes = {"X": np.ones((4, 256, 9, 9), "float32"), "W": np.ones((256, 256, 3, 3), "float32")}
    source = program.source(shapes)
    lines = [line.strip() for line in source[source.index("def step") :].splitlines()]
    row, packed, column = (
        next(k for k, line in enumerate(lines) if line.startswith(f"for {name} in")) for name in ("row", LANE, "column")
    )
    assert row < packed < column
    assert any(line.startswith("for i0 in range(n0)") for line in lines[packed:column])
