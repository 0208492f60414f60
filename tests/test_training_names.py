"""Parameters may have any names: those that a training step makes for itself keep out of their way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

MODEL = "Y[b] += X[b,i] * W[i]\nY[b] += X[b,i] * OTHER[i]\nloss += (Y[b] - T[b]) ** 2 / size(b)"
MADE = ["W_gradient", "W_clipped", "W_0", "W_m", "W_v", "clip_square", "clip_scale", "adamw_param", "param", "grad"]


def learned(other: str) -> list[Any]:
    numbers = np.random.default_rng(1)
    params = {"W": numbers.standard_normal(4), other: numbers.standard_normal(4)}
    batch = {"X": numbers.standard_normal((8, 4)), "T": numbers.standard_normal(8)}
    program = ts.program(MODEL.replace("OTHER", other))
    found = ts.fit(program, params, batch, optimizer="adam", clip=0.5, lr=0.1, epochs=3, batch_size=4, progress=False)
    step = ts.step(program, params, optimizer="adam", clip=0.5, lr=0.1)
    return [found.params["W"], found.params[other], found.history.loss, step(**batch)]


@pytest.mark.parametrize("other", MADE)
def test_a_second_parameter_with_a_name_that_a_step_would_make(other: str) -> None:
    for found, wanted in zip(learned(other), learned("V"), strict=True):
        np.testing.assert_array_equal(found, wanted)
