"""Many written programs through one kind of check; a failure is made small and told with its seed and arrays.

python -m tests.second.campaign compiled 1000 300     # the seeds 1000 to 1299
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tensorswap as ts
from tests.second.check import Tally, Wrong, check_compiled, check_derivative, check_values, expected
from tests.second.evaluate import Notes, Unsuited
from tests.second.passes import passes
from tests.second.shrink import shrink
from tests.second.write import Sample, write


@dataclass(frozen=True)
class Kind:
    """A kind of check and the size of its programs."""

    check: Callable[[Sample, Tally], None]
    points: int
    groups: int


def values(sample: Sample, tally: Tally) -> None:
    _values(sample, tally)


def _values(sample: Sample, tally: Tally) -> tuple[ts.Program, Notes]:
    p = ts.program(sample.text)
    return p, check_values(sample, p, tally)


def compiled(sample: Sample, tally: Tally) -> None:
    p, notes = _values(sample, tally)
    check_compiled(sample, p, notes, tally)


def derived(sample: Sample, tally: Tally) -> None:
    check_derivative(sample, ts.program(sample.text), tally)


def derived_compiled(sample: Sample, tally: Tally) -> None:
    check_derivative(sample, ts.program(sample.text), tally, compiled=True)


def against_jax(sample: Sample, tally: Tally) -> None:
    check_derivative(sample, ts.program(sample.text), tally, jax=True)


KINDS = {
    "values": Kind(values, 150, 6),
    "compiled": Kind(compiled, 100, 2),
    "passes": Kind(passes, 30, 1),
    "derived": Kind(derived, 80, 4),
    "derived_compiled": Kind(derived_compiled, 60, 1),
    "jax": Kind(against_jax, 60, 3),
}


class Found(AssertionError):
    """A program on which the library is wrong, in its smallest form."""


def campaign(kind: str, seed: int, count: int, tally: Tally | None = None, seconds: float = 60.0) -> Tally:
    """The programs of `count` seeds from `seed` on; the first that goes wrong is made small for so long, and raised."""
    tally = Tally() if tally is None else tally
    for number in range(seed, seed + count):
        one(kind, number, tally, seconds)
    return tally


def one(kind: str, seed: int, tally: Tally, seconds: float = 60.0) -> None:
    setting = KINDS[kind]
    sample = write(seed, setting.points, setting.groups)
    try:
        setting.check(sample, tally)
    except Unsuited:
        tally["left to other tests"] += 1
    except Exception as error:
        small = shrink(sample, lambda candidate: failure(setting, candidate), seconds) if seconds else sample
        raise Found(report(kind, sample, small, error)) from error


def failure(setting: Kind, sample: Sample) -> str | None:
    """How this program goes wrong; None where it does not, or where it is no program any more."""
    try:  # shrinking tries texts that mean nothing
        expected(sample)
        if setting.check is not values:
            ts.program(sample.text).run_reference(sample.call())
    except Exception:
        return None
    try:
        setting.check(sample, Tally())
    except Unsuited:
        return None
    except Wrong as error:
        return error.kind
    except Exception as error:
        return type(error).__name__
    return None


def report(kind: str, sample: Sample, small: Sample, error: Exception) -> str:
    again = ""
    try:
        KINDS[kind].check(small, Tally())
    except Exception as smaller:
        again = f"{type(smaller).__name__}: {smaller}"
    lines = [
        f"seed {sample.seed} of the check {kind!r}: {type(error).__name__}: {error}",
        "",
        "the whole program:",
        sample.text,
    ]
    lines += ["", "the smallest that goes wrong the same way:", small.text, again, "", "its call:"]
    for name, value in small.call().items():
        shown = repr(value)
        if isinstance(value, np.ndarray):
            shown = f"{value!r}, shape {value.shape}, strides {value.strides}"
        lines.append(f"  {name} = {shown}")
    return "\n".join(lines)


def main() -> None:
    kind, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tally, wrong = Tally(), 0
    for number in range(seed, seed + count):
        try:
            one(kind, number, tally, 30.0)
        except Found as found:
            wrong += 1
            print(found, end="\n\n", flush=True)
    print(
        f"{wrong} of {count} programs went wrong;",
        ", ".join(f"{what} {times}" for what, times in sorted(tally.items())),
    )


if __name__ == "__main__":
    main()
