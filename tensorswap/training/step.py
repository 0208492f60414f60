"""`ts.step`: one compiled training step, for people who write their own loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..language.hints import closest
from ..program import Program, merged
from .initial import drawn, flattened, index_sizes
from .optimizers import optimizer as chosen_optimizer
from .plain import plain
from .update import Update, shapes_of_state, update

Array = NDArray[Any]


class Step:
    """Holds parameters and optimiser state; each call takes a batch, changes them, and gives the loss.

    `.program` is the whole step, forward, backward and update, as a program that prints.
    """

    def __init__(self, made: Update, params: dict[str, Array], lr: float) -> None:
        self.update = made
        self.program = made.program
        self.params = params
        shapes = {name: array.shape for name, array in params.items()}
        dtype = next(iter(params.values())).dtype
        self.state = {name: np.zeros(shape, dtype) for name, shape in shapes_of_state(made, shapes).items()}
        self.lr = lr
        self.count = 0

    def __call__(self, mapping: Mapping[str, Any] | None = None, /, **batch: Any) -> Any:
        """The loss of the batch before the update, or a dict with the metrics too."""
        given = merged(mapping, batch)
        self.count += 1
        numbers = self.update.numbers(self.lr, self.count)
        try:
            results = self.program({**self.params, **self.state, **numbers, **given})
        except BaseException:
            self.count -= 1
            raise
        self.params = {name: results[name] for name in self.params}
        self.state = {name: results[name] for name in self.state}
        told = {name: float(results[name]) for name in self.update.results}
        return told if self.update.metrics else told[self.update.loss]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(array.shape)}" for name, array in self.params.items())
        return f"<Step {self.count} of {self.update.optimizer.name}: {shapes}>"


def step(
    program: Program,
    params: Mapping[str, Any],
    *,
    loss: str = "loss",
    optimizer: Any = "adam",
    lr: float = 1e-3,
    clip: float | None = None,
    metrics: Sequence[str] = (),
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
) -> Step:
    """One training step of a program. Parameters are arrays, or words such as "he" with all sizes given."""
    named = flattened(params)
    model, arrays = prepared(program, named, set(program.inputs) - set(named), {}, seed, sizes or {}, None)
    return Step(
        update(model, loss, list(named), chosen_optimizer(optimizer), clip, metrics), arrays, positive("lr", lr)
    )


def prepared(
    program: Program,
    params: Mapping[str, Any],
    given: set[str],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
    sizes: Mapping[str, int],
    dtype: np.dtype[Any] | None,
) -> tuple[Program, dict[str, Array]]:
    """The model as bare statements, and arrays for its parameters. `given` are the inputs that are no parameters."""
    for name in params:
        if name not in program.inputs:
            hint = closest(name, list(program.inputs)) or f"its inputs are {', '.join(program.inputs)}"
            raise ArgumentError(f"the program has no input {name!r} to train", hint=hint)
    if not params:
        raise ArgumentError("there is no parameter to train", hint=f"params names some of {', '.join(program.inputs)}")
    model = plain(program, {*params, *given}, sizes)
    for name in ("lr", "step"):
        if name in model.loops.names:
            raise ArgumentError(
                f"the program uses the name {name}, which a training step needs", hint="call it otherwise"
            )
    own = {name: np.shape(value) for name, value in params.items() if not _is_word(value)}
    if dtype is None:
        types = [np.asarray(value).dtype for value in params.values() if not _is_word(value)]
        dtype = np.result_type(*types) if types else np.dtype(np.float32)
        dtype = dtype if dtype in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)
    known = index_sizes(program.loops, {**shapes, **own}, sizes)
    arrays = drawn(program.loops, params, known, seed, dtype)
    for name, array in arrays.items():
        rank = model.loops.ranks.get(name, array.ndim)
        if rank != array.ndim:
            raise ArgumentError(f"the parameter {name} has {array.ndim} axes, the program reads {rank}")
        if np.isnan(array).any():
            raise ArgumentError(f"the parameter {name} holds NaN", hint="start from numbers")
    return model, arrays


def positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value > 0:
        raise ArgumentError(f"{name} is a positive number, not {str(value)[:80]}", hint=f"{name}=0.001")
    return float(value)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str))
