"""Golden files for a dozen programs: canonical text, adjoint and tangent. Comparing never writes.

`python -m tests.test_golden` writes them anew, for a change that is meant.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorswap as ts

FOLDER = Path(__file__).parent / "golden"

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
    "softmax": ["X"],
    "conv2d": ["X", "W", "b"],
    "attention": ["Q", "K", "V"],
    "layer_norm": ["X", "gain", "bias"],
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


@pytest.mark.parametrize("name", [*PROGRAMS, *LIBRARY])
def test_stages_are_as_recorded(name: str) -> None:
    assert stages(name) == (FOLDER / f"{name}.txt").read_text()


if __name__ == "__main__":
    for name in (*PROGRAMS, *LIBRARY):
        (FOLDER / f"{name}.txt").write_text(stages(name))
