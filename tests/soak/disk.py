"""Training and compiling on a full disk, in a mount namespace of its own: python disk.py SEED.

A file system of 256 kB in memory holds cache and checkpoint. What does not fit is said, by an error or a warning; the
results are right all the same, and the last checkpoint that fitted can be loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np


def mounted(folder: Path, kilobytes: int) -> bool:
    """Whether a small file system could be mounted there (it takes the rights to)."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def main(seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not mounted(folder, 256):
            print("no rights to mount a file system here: nothing was tried")
            return
        try:
            run(folder, seed)
        finally:
            subprocess.run(["umount", str(folder)], check=False)


def run(folder: Path, seed: int) -> None:
    os.environ["TENSORSWAP_CACHE"] = str(folder / "kernels")
    import tensorswap as ts
    from tensorswap.training import checkpoint

    numbers = np.random.default_rng(seed)
    model = ts.program("Y[b] += X[b,i] * w[i]\nloss += (Y[b] - y[b]) ** 2 / size(b)")
    X = numbers.standard_normal((100, 3))
    small = {"X": X, "y": X @ np.ones(3)}
    wide = numbers.standard_normal((100, 40_000))
    large = {"X": wide, "y": wide[:, 0]}
    path = folder / "run.safetensors"
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        options = {"lr": 0.01, "batch_size": 20, "epochs": 2, "progress": False, "checkpoint": path}
        ts.fit(model, {"w": "zeros"}, small, **options)
        kept = checkpoint.load(path).arrays["w"]
        for k in range(int(numbers.integers(20, 60))):  # until nothing fits any more
            text = f"Y[i] = exp(X[i] * {k}) + {seed}"
            np.testing.assert_allclose(ts.program(text)(X=X[0]), np.exp(X[0] * k) + seed, rtol=1e-12)
        try:
            result = ts.fit(model, {"w": "zeros"}, large, **{**options, "checkpoint": folder / "wide.safetensors"})
            assert np.isfinite(result.params["w"]).all()
        except ts.SwapError as error:
            print(f"refused: {error}")
        np.testing.assert_array_equal(checkpoint.load(path).arrays["w"], kept)


if __name__ == "__main__":
    main(int(sys.argv[1]))
