"""numpy's own tests of einsum on ts.einsum, in processes of their own: np.einsum is another function there."""

from __future__ import annotations

import subprocess
import sys

QUICK = "(not sums and not test_complex and not test_einsum_broadcast) or sums_int8 or sums_float16"


def numpys_tests(*options: str) -> str:
    command = [sys.executable, "-m", "tests.numpy_einsum", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def test_most_of_them_interpreted() -> None:
    """`make numpy-einsum` runs all of them, compiled."""
    told = numpys_tests("--interpreted", "-k", QUICK)
    passed, _, tests, *_ = told.split("\n")[-3].split()
    assert passed == tests
    assert int(passed) >= 50


def test_some_of_them_compiled() -> None:
    assert " by kernels" in numpys_tests("-k", "test_overlap or test_output_order or test_small_boolean_arrays")
