"""Turned copies, as machine code of their own: every shape against a transpose of numpy's."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tensorswap.kernel import ir
from tensorswap.kernel.registers import Registers, assuming, registers
from tensorswap.run.known_code import functions

STEPS = (0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 70)
KNOWN = (7, 17, 64)  # those that code is also made for
LANES = (1, 2, 3, 4, 5, 6, 8, 12, 14, 16, 28, 30, 32)


def turning(kind: ir.Type, lanes: int, known: int | None) -> tuple[list[ir.Memory], ir.Body]:
    """A function of target, source, and of how far rows are apart and how many steps there are."""
    target, source, numbers = ir.Memory("target", kind), ir.Memory("source", kind), ir.Memory("numbers", ir.WORD)
    apart, steps = ir.Variable("apart", ir.WORD), ir.Variable("steps", ir.WORD)
    told = steps if known is None else ir.word(known)
    body = (
        ir.Set(apart, ir.Load(numbers, ir.ZERO)),
        ir.Set(steps, ir.Load(numbers, ir.ONE)),
        ir.Turn(target, ir.word(2), ir.word(lanes), source, ir.word(1), apart, told, lanes),
    )
    return [target, source, numbers], body


@pytest.mark.parametrize(
    ("lanes", "wide"), [*((lanes, False) for lanes in LANES), *((lanes, True) for lanes in (6, 8, 16, 28))]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_turned_copy_is_a_transpose(dtype: Any, lanes: int, wide: bool) -> None:
    """By registers of this machine, and by wide ones, which LLVM makes of several where a machine has none."""
    kind = ir.type_of(np.dtype(dtype))
    with assuming(Registers(64, 32, by_lane=False) if wide else registers()):
        made = functions(
            [
                (f"turned {kind} {lanes} {known} {wide}", lambda known=known: turning(kind, lanes, known))
                for known in (None, *KNOWN)
            ]
        )
    code = {
        known: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(function.address)
        for known, function in zip((None, *KNOWN), made, strict=True)
    }
    for steps in STEPS:
        for known in {None, steps} & code.keys():
            numbers = np.array([steps + 3, steps], np.int64)
            apart = int(numbers[0])
            source = np.arange(lanes * apart + 8, dtype=dtype)
            target = np.full(steps * lanes + 8, -1, dtype)
            rows = source[1 : 1 + lanes * apart].reshape(lanes, apart)[:, :steps]
            expected = target.copy()
            expected[2 : 2 + steps * lanes] = rows.T.ravel()
            code[known](target.ctypes.data, source.ctypes.data, numbers.ctypes.data)
            np.testing.assert_array_equal(target, expected, err_msg=f"{lanes} lanes, {steps} steps")
