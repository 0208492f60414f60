"""A child process: reads jobs, one JSON text a line, and writes an answer to each. Nothing of a text runs elsewhere.

{"job": "analyse", "text": ..., "seconds": 5, ...}  ->  {"answer": ...} | {"faults": [...]} | {"broken": ...}
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ..errors import SwapError
from .analysis import analyse, faults
from .kernels_told import kernels_told
from .limits_of_child import Clock, end_with_parent, limit_memory
from .machine import machine
from .trial import check, run

WARM = "Z[i] += W[i,j] * x[j]\nY[i] = tanh(Z[i])\nloss += Y[i] ** 2\n"  # what is first used is loaded before it is

JOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "analyse": lambda job: analyse(job["text"], job["derivative"]),
    "plan": lambda job: kernels_told(job["text"], job["sizes"]),
    "run": lambda job: run(job["text"], job["sizes"], job["seed"]),
    "check": lambda job: check(job["text"], job["sizes"], job["seed"]),
}


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """What a job gives; a MemoryError is for the caller, who cannot go on."""
    try:
        return {"answer": JOBS[job["job"]](job)}
    except SwapError as error:
        return {"faults": faults(error, job["text"])}
    except MemoryError:
        raise
    except Exception as error:  # a fault of ours: the page says so, and the server's terminal shows where
        return {"broken": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}


def main(memory: int, warm: str) -> None:
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what anything else prints is no answer

    def tell(value: dict[str, Any]) -> None:
        pipe.write(json.dumps(value, allow_nan=False) + "\n")
        pipe.flush()

    end_with_parent()
    limited = limit_memory(memory)
    analyse(WARM, "tangent")
    if warm == "all":
        kernels_told(WARM, {})
        machine()
    gc.collect()
    gc.freeze()  # what is loaded now stays: nothing is gained by looking at it again while somebody types
    tell({"ready": True, "limited": limited})
    for line in sys.stdin:
        job = json.loads(line)
        with Clock(job["seconds"]):
            try:
                told = answer(job)
            except MemoryError:
                told = {"memory": True}
        tell(told)
        if "memory" in told:
            return  # what is left of its memory may be in pieces: another one goes on


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
