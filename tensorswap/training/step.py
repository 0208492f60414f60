"""`ts.step`: one compiled training step, for people who write their own loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from ..language.given_numbers import counts, positive, shown, whole
from ..language.hints import closest
from ..program import Program
from ..run.arguments import merged
from .initial import drawn, flattened, index_sizes, is_word, own_array
from .noise import noises, refuse_steady
from .optimizers import optimizer as chosen_optimizer
from .update import Update, shapes_of_state, update
from .without_header import plain


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
        own = {*self.params, *self.state, "lr", "step"}
        taken = [name for name in given if isinstance(name, str) and name in own]
        if taken:
            raise ArgumentError(
                f"{taken[0]} belongs to the training step, not to a batch",
                hint="it stands in .params, .state, .lr or .count, and may be changed there",
            )
        self.count += 1
        numbers = self.update.numbers(self.lr, self.count)
        try:
            held = {**self.params, **self.state}  # an option of 0 may leave a state that is only written
            results = self.program({**{n: a for n, a in held.items() if n in self.program.inputs}, **numbers, **given})
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
    same_noise: bool = False,
) -> Step:
    """One training step of a program. Parameters are arrays, or words such as "he" with all sizes given."""
    named = flattened(params)
    rate = positive("lr", lr)
    model, arrays = prepared(
        program,
        named,
        None,
        {},
        whole("seed", seed),
        counts("sizes", sizes or {}, getattr(program, "loops", None)),
        None,
    )
    if not same_noise:
        refuse_steady(noises(model.loops), set(model.inputs))
    return Step(update(model, loss, list(named), chosen_optimizer(optimizer), clip, metrics), arrays, rate)


def prepared(
    program: Program,
    params: Mapping[str, Any],
    given: set[str] | None,
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
    sizes: Mapping[str, int],
    dtype: np.dtype[Any] | None,
) -> tuple[Program, dict[str, Array]]:
    """The model as bare statements, and arrays for its parameters. `given` are the inputs that are no parameters,
    if not all others are."""
    if not isinstance(program, Program):
        raise ArgumentError(f"what is trained is a program, not {shown(program)}", hint="make one: ts.program(text)")
    unknown = [name for name in sizes if name not in {*program.loops.indices, *program.loops.static_names}]
    if unknown:
        known_names = [*program.loops.static_names, *program.loops.indices]
        hint = closest(unknown[0], known_names) or f"its indices are {', '.join(program.loops.indices)}"
        raise ArgumentError(f"the program has no index {unknown[0][:80]!r} to give a size", hint=hint)
    for name in params:
        if name not in program.inputs:
            hint = closest(name, program.inputs, "its inputs are")
            raise ArgumentError(f"the program has no input {name!r} to train", hint=hint)
    if not params:
        raise ArgumentError("there is no parameter to train", hint=f"params names some of {', '.join(program.inputs)}")
    given = set(program.inputs) if given is None else given
    model = plain(program, {*params, *given, "step"}, sizes)
    _refuse_taken_names(model, params)
    own = {name: own_array(name, value) for name, value in params.items() if not is_word(value)}
    if dtype is None:
        types = [array.dtype for array in own.values()]
        dtype = np.result_type(*types) if types else np.dtype(np.float32)
    dtype = dtype if dtype in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)
    known = index_sizes(program.loops, {**shapes, **{name: array.shape for name, array in own.items()}}, sizes)
    arrays = drawn(program.loops, {**params, **own}, known, seed, dtype)
    for name, array in arrays.items():
        rank = model.loops.ranks.get(name, array.ndim)
        if rank != array.ndim:
            raise ArgumentError(f"the parameter {name} has {array.ndim} axes, the program reads {rank}")
        if np.isnan(array).any():
            raise ArgumentError(f"the parameter {name} holds NaN", hint="start from numbers")
    return model, arrays


def _refuse_taken_names(model: Program, params: Mapping[str, Any]) -> None:
    """`lr` is the rate; `step` is the number of the step, which a model may read as a whole number."""
    if "lr" in model.loops.names:
        raise ArgumentError("the program uses the name lr, which a training step needs", hint="call it otherwise")
    is_input = "step" in model.inputs and not model.loops.ranks.get("step") and "step" not in model.loops.written
    if "step" in model.loops.names and ("step" in params or not is_input):
        raise ArgumentError(
            "the program uses the name step, which is the number of a training step", hint="call it otherwise"
        )
