"""The parts of a soak. Each is cut into pieces that run in a process of their own, by a seed, and raise on a fault.

A piece returns figures, numbers by name, which the report adds up; of those called `peak_` it takes the largest.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Figures = dict[str, float]
Piece = Callable[[int], Figures]  # from the seed of a piece to its figures


@dataclass(frozen=True)
class Part:
    name: str
    what: str
    pieces: int
    run: Piece
    count: int  # cases in a piece


def compiled(seed: int) -> Figures:
    from tests.second.campaign import campaign

    campaign("compiled", seed, 50)
    return {"programs": 50}


def derived(seed: int) -> Figures:
    from tests.second.campaign import campaign

    campaign("derived_compiled", seed, 10)
    campaign("jax", seed, 40)
    return {"programs": 50}


def passes(seed: int) -> Figures:
    from tests.second.campaign import campaign

    campaign("passes", seed, 500)
    return {"programs": 500}


def malformed(seed: int) -> Figures:
    from tests.test_malformed import check_text, mutants

    valid = sum(check_text(text) for text in mutants(seed, 10_000))
    return {"texts": 10_000, "valid": valid}


def damage(seed: int) -> Figures:
    """Kernels and checkpoints with flipped bits, cuts and foreign parts."""
    from tests.damage import checkpoints_survive, kernels_survive

    with tempfile.TemporaryDirectory() as folder:
        os.environ["TENSORSWAP_CACHE"] = f"{folder}/kernels"
        kernels = kernels_survive(50, seed)
        return {"kernels": kernels, "checkpoints": checkpoints_survive(Path(folder), 50, seed)}


def kills(seed: int) -> Figures:
    """A training run killed at random moments goes on to the bits of one that was not."""
    from tests.test_training import killed_and_resumed

    with tempfile.TemporaryDirectory() as folder:
        return {"kills": killed_and_resumed(Path(folder), 10, seed)}


def full_disk(seed: int) -> Figures:
    """Training and compiling on a disk of a few pages: errors or warnings, and what was there before stays whole."""
    code = Path(__file__).with_name("disk.py")
    done = subprocess.run(
        [sys.executable, str(code), str(seed)], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return {"disks": 1}


def memory(seed: int) -> Figures:
    """Five minutes of calls, new programs and training: memory stays flat once all code paths have run."""
    import tensorswap as ts

    numbers = np.random.default_rng(seed)
    model = ts.program("Y[b] += X[b,i] * w[i]\nloss += (Y[b] - y[b]) ** 2 / size(b)")
    call = ts.program("H[b,h] += X[b,i] * W[h,i]\nY[b,h] = tanh(H[b,h])").adjoint(wrt=["W"])
    X = numbers.standard_normal((200, 3))
    data = {"X": X, "y": X @ np.array([1.0, -2.0, 0.5])}
    arrays = {"X": X, "W": numbers.standard_normal((40, 3)), "Y.grad": numbers.standard_normal((200, 40))}
    end, levels, programs = time.monotonic() + 300, [], 0
    while time.monotonic() < end:
        for _ in range(2000):
            call(arrays)
        ts.fit(model, {"w": "zeros"}, data, lr=0.05, batch_size=20, epochs=50, progress=False)
        for _ in range(20):  # parsed and derived anew, run by kernels that are there
            ts.program(f"Y[i] = X[i] * {programs}").adjoint(wrt=["X"]).run_reference({"X": X[0], "Y.grad": X[0]})
            programs += 1
        levels.append(_resident())
    early, late = levels[len(levels) // 4], levels[-1]
    grown = (late - early) / 2**20
    assert grown < 20, f"resident memory grew by {grown:.1f} MiB over {len(levels)} rounds"
    return {"rounds": len(levels), "peak_growth_MiB": max(grown, 0.0)}


def _resident() -> int:
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def processes(seed: int) -> Figures:
    """Cold compiles of the same programs by many processes at once, in a folder that some of them damage or empty."""
    code = (
        "import sys, numpy as np, tensorswap as ts\n"
        "n = int(sys.argv[1])\n"
        "for k in range(6):\n"
        "    p = ts.program(f'Y[i] = X[i] * {k} + {n % 3}')\n"
        "    assert (p(X=np.arange(5.0)) == np.arange(5.0) * k + n % 3).all()\n"
    )
    numbers = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TENSORSWAP_CACHE": folder}
        running = [subprocess.Popen([sys.executable, "-c", code, str(n)], env=environment) for n in range(6)]
        for _ in range(20):
            time.sleep(0.1)
            for path in list(Path(folder).glob("*.kernel"))[:1]:
                if numbers.random() < 0.5:
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(b"damaged")
        codes = [process.wait(timeout=300) for process in running]
    assert codes == [0] * len(running), [signal.Signals(-c).name if c < 0 else c for c in codes]
    return {"processes": len(running)}


PARTS = (
    Part("compiled", "generated programs, compiled against an independent evaluator", 100, compiled, 50),
    Part("derived", "derivatives of generated programs, against JAX and differences", 20, derived, 50),
    Part("passes", "generated programs, every pass of derivation and plan", 100, passes, 500),
    Part("malformed", "malformed texts", 100, malformed, 10_000),
    Part("damage", "damaged kernels and checkpoints", 20, damage, 100),
    Part("kills", "training runs killed and resumed", 20, kills, 10),
    Part("disk", "full disks", 5, full_disk, 1),
    Part("memory", "five minutes of calls and training with flat memory", 6, memory, 1),
    Part("processes", "cold compiles by many processes in a damaged folder", 10, processes, 6),
)
