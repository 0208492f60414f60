"""Laid copies, as machine code of their own: every shape against slices of numpy's."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tensorswap.kernel import ir
from tensorswap.kernel.registers import Registers, assuming, registers
from tensorswap.run.known_code import functions

STEPS = (0, 1, 2, 7, 47, 48, 70)
KNOWN = (7, 70)  # those that code is also made for
SHAPES = ((1, 1), (1, 3), (1, 8), (2, 4), (2, 7), (3, 5), (4, 8), (4, 4), (2, 16), (1, 30))  # panels and lanes


def laying(kind: ir.Type, panels: int, lanes: int, known: int | None) -> tuple[list[ir.Memory], ir.Body]:
    """A function of target, source, and of how far panels and rows are apart and how many steps there are."""
    target, source, numbers = ir.Memory("target", kind), ir.Memory("source", kind), ir.Memory("numbers", ir.WORD)
    far, apart, steps = (ir.Variable(name, ir.WORD) for name in ("far", "apart", "steps"))
    told = steps if known is None else ir.word(known)
    body = (
        *(ir.Set(variable, ir.Load(numbers, ir.word(k))) for k, variable in enumerate((far, apart, steps))),
        ir.Lay(target, ir.word(2), far, source, ir.word(1), apart, told, panels, lanes),
    )
    return [target, source, numbers], body


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("panels", "lanes"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pieces_of_rows_stand_one_below_the_other(dtype: Any, panels: int, lanes: int, wide: bool) -> None:
    """By registers of this machine, and by wide ones, which LLVM makes of several where a machine has none."""
    kind = ir.type_of(np.dtype(dtype))
    with assuming(Registers(64, 32, by_lane=False) if wide else registers()):
        made = functions(
            [
                (f"laid {kind} {panels} {lanes} {known} {wide}", lambda known=known: laying(kind, panels, lanes, known))
                for known in (None, *KNOWN)
            ]
        )
    code = {
        known: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(function.address)
        for known, function in zip((None, *KNOWN), made, strict=True)
    }
    for steps in STEPS:
        far, apart = steps * lanes + 3, panels * lanes + 5
        source = np.arange(steps * apart + 8, dtype=dtype)
        rows = source[1 : 1 + steps * apart].reshape(steps, apart)
        expected = np.full(panels * far + 8, -1, dtype)
        for panel in range(panels):
            begin = 2 + panel * far
            expected[begin : begin + steps * lanes] = rows[:, panel * lanes : (panel + 1) * lanes].ravel()
        for known in {None, steps} & code.keys():
            target = np.full(panels * far + 8, -1, dtype)
            numbers = np.array([far, apart, steps], np.int64)
            code[known](target.ctypes.data, source.ctypes.data, numbers.ctypes.data)
            np.testing.assert_array_equal(target, expected, err_msg=f"{panels} panels, {lanes} lanes, {steps} steps")
