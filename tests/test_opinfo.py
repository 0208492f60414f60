"""One of PyTorch's own samples for each shared op, where PyTorch is installed; `python -m tests.opinfo` runs all."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: its samples cannot be asked for")
pytest.importorskip("expecttest", reason="PyTorch's table of samples needs the package expecttest")


def test_no_sample_of_torch_is_wrong_or_crashes() -> None:
    from .opinfo.run import report, run

    tallies = list(run([], limit=1, second=1, compiled=0))
    assert len(tallies) >= 184
    assert not [tally for tally in tallies if tally.faults], report(tallies)


def test_a_wrong_value_a_wrong_gradient_and_a_crash_are_noticed() -> None:
    import torch
    from torch.testing import make_tensor

    from .opinfo.case import Case
    from .opinfo.compare import CRASH, REFUSED, RIGHT, SHAPE, VALUE, outcome

    class Sample:
        input = make_tensor((3,), device="cpu", dtype=torch.float64)
        args, kwargs = (), {}

    texts = {
        "Y[i] = tanh(X[i])": RIGHT,
        "Y[i] = tanh(X[i]) + 1e-6": VALUE,
        "Y[i] = tanh(stop(X[i]))": VALUE,
        "Y += tanh(X[i])": SHAPE,
        "Y[i] = tanh(X[i,i])": REFUSED,
    }
    for text, kind in texts.items():
        assert outcome(torch.tanh, lambda input, text=text: Case(text, {"X": input}), Sample()).kind == kind, text
    assert outcome(torch.tanh, lambda input: Case(text, None), Sample()).kind == CRASH  # type: ignore[arg-type]
