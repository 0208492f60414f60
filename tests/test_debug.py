"""ts.debug: switches that hold from the call on, or within `with`."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.debug import Switches, switches


def test_switches_hold_within_the_with() -> None:
    with ts.debug(nan=True) as inside:
        assert inside.nan
        with ts.debug(validate=True, nan=False):
            assert switches() == Switches(validate=True)
        assert switches() == Switches(nan=True)
    assert switches() == Switches()


def test_switches_stay_without_a_with() -> None:
    before = ts.debug(bounds=True)
    assert switches().bounds
    before.__exit__(None, None, None)
    assert not switches().bounds


def test_a_truth_of_numpy_is_a_truth() -> None:
    with ts.debug(nan=np.bool_(True)) as seen:
        assert seen.nan is True


def test_unknown_switches_are_refused() -> None:
    with pytest.raises(ts.SwapError, match="did you mean `nan`"):
        ts.debug(nans=True)
    with pytest.raises(ts.SwapError, match="True or False"):
        ts.debug(nan=1)  # type: ignore[arg-type]


def test_a_switch_is_used_in_one_with() -> None:
    once = ts.debug(nan=True)
    with once:
        assert switches().nan
    with pytest.raises(ts.SwapError, match="anew"), once:
        pass
    with pytest.raises(ts.SwapError, match="by name"):
        ts.debug(True)
