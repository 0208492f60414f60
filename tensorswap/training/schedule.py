"""Schedules: the rate of each step, from its number and the number of all steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, SwapError
from ..language.given_numbers import real, shown, whole
from ..language.hints import closest

# steps from 0 on, and how many there are in all, if that is known -> factors
Schedule = Callable[[NDArray[np.float64], int | None], NDArray[np.float64]]


def _constant(steps: NDArray[np.float64], total: int | None) -> NDArray[np.float64]:
    return np.ones_like(steps)


def _cosine(
    steps: NDArray[np.float64], total: int | None, lowest: float = 0.0, warmup: float = 0.0
) -> NDArray[np.float64]:
    """Half a wave from 1 down to `lowest`, after a straight rise over `warmup` (steps, or a part of all if below 1)."""
    rise = _in_steps(warmup, total) if warmup else 0.0
    down = np.clip((steps - rise) / max(_known(total) - rise, 1), 0, 1)
    factors = lowest + (1 - lowest) * 0.5 * (1 + np.cos(math.pi * down))
    return np.where(steps < rise, (steps + 1) / max(rise, 1), factors)


def _warmup(steps: NDArray[np.float64], total: int | None, warmup: float = 0.1) -> NDArray[np.float64]:
    rise = _in_steps(warmup, total)
    return np.minimum(1.0, (steps + 1) / max(rise, 1))


def _step(
    steps: NDArray[np.float64], total: int | None, every: float = 0.33, factor: float = 0.1
) -> NDArray[np.float64]:
    """Times `factor` after each `every` (steps, or a part of all if below 1)."""
    length = _in_steps(every, total)
    return np.asarray(factor ** np.floor(steps / max(length, 1)))


def _in_steps(number: float, total: int | None) -> float:
    """A number of steps, which below 1 is a part of all."""
    return number * _known(total) if number < 1 else number


def _known(total: int | None) -> int:
    if total is None:
        raise ArgumentError(
            "the schedule counts in parts of all steps, and data that comes in parts does not tell how many there are",
            hint='say how many, {"name": "cosine", "steps": 10000}, or count in steps: {"name": "step", "every": 100}',
        )
    return total


NAMED: dict[str, Callable[..., NDArray[np.float64]]] = {
    "constant": _constant, "cosine": _cosine, "warmup": _warmup, "step": _step,
}  # fmt: skip
OPTIONS = {
    "constant": (), "cosine": ("lowest", "warmup", "steps"), "warmup": ("warmup", "steps"),
    "step": ("every", "factor", "steps"),
}  # fmt: skip


def schedule(choice: Any) -> Schedule:
    """A name, a dict with the name and its numbers, or a function from the number of a step to a factor."""
    return _checked(_chosen(choice))


def _checked(made: Schedule) -> Schedule:
    """Refuses what is no factor, whoever gave it."""

    def factors(steps: NDArray[np.float64], total: int | None) -> NDArray[np.float64]:
        found = made(steps, total)
        wrong = ~(np.isfinite(found) & (found >= 0))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ArgumentError(
                f"the schedule gives {found[at]} for step {int(steps[at])}", hint="it gives a factor of 0 or more"
            )
        return found

    return factors


def _own(choice: Callable[[int], Any], step: int) -> float:
    """The caller's own factor for a step; what the call raises is told as an error of the schedule."""
    try:
        found = choice(step)
        if isinstance(found, str | bytes | bool):
            raise TypeError(f"{type(found).__name__} is no number")
        return float(found)
    except SwapError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {str(error)[:200]}"
        raise ArgumentError(
            f"the schedule gives no number for step {step}: {told}",
            hint="a schedule is a function from the number of a step to a factor",
        ) from error


def _chosen(choice: Any) -> Schedule:
    if choice is None:
        return _constant
    if callable(choice):
        return lambda steps, total: np.array([_own(choice, int(s)) for s in steps])
    options = dict(choice) if isinstance(choice, Mapping) else {"name": choice}
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in NAMED:
        raise ArgumentError(
            f"there is no schedule {shown(name)}",
            hint=closest(name, NAMED) or f"there are {', '.join(NAMED)}, or give a function of the step",
        )
    wrong = [key for key in options if key not in OPTIONS[name]]
    if wrong:
        raise ArgumentError(
            f"the schedule {name} has no number {str(wrong[0])[:80]!r}",
            hint=f"it has {', '.join(OPTIONS[name]) or 'none'}",
        )
    all_steps = whole("steps of the schedule", options.pop("steps"), 1) if "steps" in options else None
    made, numbers = NAMED[name], {key: real(f"{key} of the schedule {name}", value) for key, value in options.items()}
    negative = next((key for key, number in numbers.items() if number < 0), None)
    if negative is not None:
        raise ArgumentError(f"{negative} of the schedule {name} is a number of 0 or more, not {numbers[negative]}")
    return lambda steps, total: made(steps, total if all_steps is None else all_steps, **numbers)
