"""The cache of kernels: kept, found again, shared by many processes, and harmless when damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SESSION = """
import numpy as np, tensorswap as ts
from tensorswap.run import compile as c
program = ts.program("Y[i,j] += A[i,k] * B[k,j]\\nZ[i] max= tanh(Y[i,j])")
A, B = np.arange(12.0).reshape(3, 4), np.ones((4, 9))
found, wanted = program(A=A / 20, B=B / 9), program.run_reference(A=A / 20, B=B / 9)
assert np.allclose(found, wanted), (found, wanted)
made = [c.compiled(k.source).fresh for p in program._caller.prepared.values() for k in p.executable.kernels]
print("fresh" if any(made) else "kept")
"""


FUNCTIONS = """
import numpy as np, tensorswap as ts
from tensorswap.language.functions import FUNCTIONS
from tensorswap.run import compile as c
one = [name for name, (least, most) in FUNCTIONS.items() if most == 1]
text = "".join(f"Y_{name}[i] = {name}(X[i])\\n" for name in one)
text += "P[i] = pow(X[i], Z[i]) + atan2(X[i], Z[i]) + hypot(X[i], Z[i]) + X[i] % 0.3\\nU[i] = normal(3, i)"
program = ts.program(text)
arrays = {"X": np.linspace(0.1, 0.9, 9), "Z": np.linspace(0.3, 1.9, 9)}
found, wanted = program(arrays), program.run_reference(arrays)
assert all(np.allclose(found[name], wanted[name], rtol=1e-12) for name in wanted)
made = [c.compiled(k.source).fresh for p in program._caller.prepared.values() for k in p.executable.kernels]
print("fresh" if any(made) else "kept")
"""


def session(folder: Path, code: str = SESSION) -> subprocess.Popen[str]:
    environment = {**os.environ, "TENSORSWAP_CACHE": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcome(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_kernels_are_kept_and_found_again(tmp_path: Path) -> None:
    assert outcome(session(tmp_path)) == "fresh"
    assert outcome(session(tmp_path)) == "kept"


def test_every_function_is_found_again(tmp_path: Path) -> None:
    """Code from the cache may name functions of Numba's runtime and of the C library, which must be known then."""
    assert outcome(session(tmp_path, FUNCTIONS)) == "fresh"
    assert outcome(session(tmp_path, FUNCTIONS)) == "kept"


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "swapped", "text"])
def test_a_damaged_file_is_compiled_again(tmp_path: Path, damage: str) -> None:
    assert outcome(session(tmp_path)) == "fresh"
    files = sorted(tmp_path.glob("*.kernel"))
    assert len(files) >= 2
    contents = [file.read_bytes() for file in files]
    for position, (file, content) in enumerate(zip(files, contents, strict=True)):
        middle = len(content) // 2
        file.write_bytes({
            "truncated": content[:middle],
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "emptied": b"",
            "swapped": contents[position - 1],
            "text": b"not a kernel\n",
        }[damage])  # fmt: skip
    assert outcome(session(tmp_path)) == "fresh"
    assert outcome(session(tmp_path)) == "kept"


def test_many_processes_compile_at_once(tmp_path: Path) -> None:
    processes = [session(tmp_path) for _ in range(6)]
    assert all(outcome(process) in ("fresh", "kept") for process in processes)
    assert outcome(session(tmp_path)) == "kept"
    assert not [file for file in tmp_path.iterdir() if file.suffix != ".kernel"]


def test_a_folder_that_cannot_be_used_is_no_reason_to_fail(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert outcome(session(blocked)) == "fresh"
    link = tmp_path / "link"
    link.symlink_to(tmp_path, target_is_directory=True)
    assert outcome(session(link)) == "fresh"
    assert not list(tmp_path.glob("*.kernel"))
