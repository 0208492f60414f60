"""Golden files for a dozen programs: canonical text, adjoint, tangent, plan and source. Comparing never writes.

`python -m tests.test_golden` writes them anew, for a change that is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorswap as ts
from tensorswap.kernel.registers import Registers, assuming
from tensorswap.run import call

FOLDER = Path(__file__).parent / "golden"
SMALL = Registers(16, 32, by_lane=True)

RECURRENCE = """
P[t,h] += X[t,h]
for t:
    P[t,h] += Wh[h,g] * (H[t-1,g] if t > 0 else H0[g])
    H[t,h] = tanh(P[t,h])
return H
"""

PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "contraction": ("Y[h,i,j] += A[h,i,k] * B[h,j,k]", ["A", "B"]),
    "strided_convolution": ("Y[b,o,i] += X[b,c,2*i+u-1] * W[o,c,u] if inside\nsize(i) = size(X, 2) // 2", ["X", "W"]),
    "reversal": ("Y[i] = X[size(i)-1-i] * i", ["X"]),
    "upsampling": ("size(i) = 2 * size(X, 0)\nY[i] = X[i//2]", ["X"]),
    "embedding": ("Y[b,t,d] = E[tok[b,t],d] if tok[b,t] >= 0", ["E"]),
    "scatter": ("size(H, 0) = bins\nH[bin[n]] += w[n] ** 2", ["w"]),
    "max_pooling": ("size(p) = 3\nY[c,i] max= X[c,2*i+p]", ["X"]),
    "product": ("Y[i] *= X[i,j]", ["X"]),
    "branches": ("Y[i] = log(X[i]) if X[i] > 1 else max(X[i], c) - 1", ["X", "c"]),
    "recurrence": (RECURRENCE, ["X", "Wh", "H0"]),
    "layers": ("Z[0,i] = X[i]\nfor l:\n    Z[l+1,i] = Z[l,i] + a[l] * sin(Z[l,i])\nY[i] = Z[size(l),i]", ["X", "a"]),
    "batch_marker": ("Y[...,o] += X[...,k] * W[o,k]\nY[...,o] += b[o]", ["X", "W", "b"]),
}  # fmt: skip

LIBRARY = {
    "softmax": ["input"],
    "conv2d": ["input", "weight", "bias"],
    "attention": ["Q", "K", "V"],
    "layer_norm": ["input", "weight", "bias"],
}


def stages(name: str) -> str:
    """Everything that is derived from one program, as a text."""
    if name in PROGRAMS:
        text, wrt = PROGRAMS[name]
        program = ts.program(text)
    else:
        program, wrt = ts.load(name), LIBRARY[name]
    parts = {"program": program, "adjoint": program.adjoint(wrt=wrt), "tangent": program.tangent(wrt=wrt)}
    return "\n\n".join(f"# {title}\n{part}" for title, part in parts.items()) + "\n"


# what `plan` and `source` of the adjoint are shown for: shapes, and integers where they are needed
SHAPES: dict[str, dict[str, Any]] = {
    "contraction": {"A": (4, 64, 32), "B": (4, 48, 32), "Y.grad": (4, 64, 48)},
    "strided_convolution": {"X": (8, 4, 32), "W": (16, 4, 3), "Y.grad": (8, 16, 16)},
    "reversal": {"X": (100,), "Y.grad": (100,)},
    "upsampling": {"X": (50,), "Y.grad": (100,)},
    "max_pooling": {"X": (8, 33), "Y.grad": (8, 16)},
    "product": {"X": (40, 6), "Y.grad": (40,)},
    "recurrence": {"X": (10, 24), "Wh": (24, 24), "H0": (24,), "H.grad": (10, 24)},
    "layers": {"X": (32,), "a": (6,), "Y.grad": (32,)},
    "batch_marker": {"X": (64, 32), "W": (16, 32), "b": (16,), "Y.grad": (64, 16)},
    "softmax": {"input": (64, 100), "out.grad": (64, 100)},
    "attention": {"Q": (2, 4, 64, 32), "K": (2, 4, 64, 32), "V": (2, 4, 64, 32), "O.grad": (2, 4, 64, 32)},
    "layer_norm": {"input": (64, 128), "weight": (128,), "bias": (128,), "out.grad": (64, 128)},
}


def kernels(name: str) -> str:
    """The plan of the adjoint and its source, for a machine with vectors of 16 bytes and two threads."""
    if name in PROGRAMS:
        text, wrt = PROGRAMS[name]
        adjoint = ts.program(text).adjoint(wrt=wrt)
    else:
        adjoint = ts.load(name).adjoint(wrt=LIBRARY[name])
    return f"# plan\n{adjoint.plan(SHAPES[name])}\n\n# source\n{adjoint.source(SHAPES[name])}"


@pytest.fixture
def one_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans and sources follow the machine: here they are those of one with 16-byte vectors and two threads."""
    monkeypatch.setattr(call, "threads", lambda: 2)
    with assuming(SMALL):
        yield


@pytest.mark.usefixtures("one_machine")
@pytest.mark.parametrize("name", SHAPES)
def test_plans_and_sources_are_as_recorded(name: str) -> None:
    assert kernels(name) == (FOLDER / f"{name}.kernels.txt").read_text()


@pytest.mark.parametrize("name", [*PROGRAMS, *LIBRARY])
def test_stages_are_as_recorded(name: str) -> None:
    assert stages(name) == (FOLDER / f"{name}.txt").read_text()


if __name__ == "__main__":
    call.threads = lambda: 2
    for name in (*PROGRAMS, *LIBRARY):
        (FOLDER / f"{name}.txt").write_text(stages(name))
    with assuming(SMALL):
        for name in SHAPES:
            (FOLDER / f"{name}.kernels.txt").write_text(kernels(name))
