"""`ts.fit`: trains a program. Batches, forward, backward and update run in compiled code, many steps at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, SwapError
from ..program import Program
from . import checkpoint as files
from .checkpoint import Checkpoint, Position
from .data import Data, chunks, read
from .diagnose import first_nan
from .history import History
from .initial import flattened
from .interrupt import listening
from .loop import Loop, Stretch, inputs_missing, stretches
from .optimizers import optimizer as chosen_optimizer
from .order import Rows, shuffled
from .progress import Progress
from .schedule import schedule as chosen_schedule
from .step import positive, prepared
from .update import Update, shapes_of_state, update

Array = NDArray[Any]

AWAY = 0.5  # seconds that compiled steps run before Python comes in
SAVE_SECONDS = 30.0  # between checkpoints


@dataclass(frozen=True)
class Result:
    """What a training gives."""

    params: dict[str, Array]
    history: History
    state: dict[str, Array]
    step: int
    interrupted: bool = False

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(array.shape)}" for name, array in self.params.items())
        last = f", loss {self.history.loss[-1]:.4g}" if self.history.loss else ""
        return f"<trained for {self.step} steps{last}: {shapes}>"


def fit(
    program: Program,
    params: Mapping[str, Any],
    data: Any,
    *,
    loss: str = "loss",
    optimizer: Any = "adam",
    lr: float = 1e-3,
    batch: str = "b",
    batch_size: int = 64,
    epochs: int = 1,
    seed: int = 0,
    shuffle: bool = True,
    validation: Mapping[str, Any] | None = None,
    metrics: Sequence[str] = (),
    schedule: Any = None,
    clip: float | None = None,
    sizes: Mapping[str, int] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = SAVE_SECONDS,
    resume: bool | str | Path = False,
    progress: bool = True,
) -> Result:
    """Trains the parameters of a program, and gives them with a history.

    `data` is a dict of arrays (or mapped files) by name, or an iterable of such dicts; `batch` names the index of
    examples. Parameters are arrays, or words: "he", "xavier", "normal", "uniform", "zeros", "ones". `resume=True`
    goes on from `checkpoint` if there is one. Ctrl-C ends the run after the steps at hand, with what it has learned.
    """
    settings = _Settings(loss, lr, batch, _count("batch_size", batch_size), _count("epochs", epochs), seed, shuffle)
    positive("lr", lr)
    run = _Run(program, params, data, settings, sizes or {}, metrics, optimizer, clip, schedule)
    run.validation = validation
    run.path = None if checkpoint is None else Path(checkpoint)
    run.seconds = checkpoint_seconds
    run.resume(resume)
    return run.train(progress)


@dataclass(frozen=True)
class _Settings:
    loss: str
    lr: float
    batch: str
    batch_size: int
    epochs: int
    seed: int
    shuffle: bool


class _Run:
    def __init__(
        self,
        program: Program,
        params: Mapping[str, Any],
        data: Any,
        settings: _Settings,
        sizes: Mapping[str, int],
        metrics: Sequence[str],
        optimizer: Any,
        clip: float | None,
        schedule: Any,
    ) -> None:
        named = flattened(params)
        self.settings = settings
        self.source = data
        self.schedule = chosen_schedule(schedule)
        first = data if isinstance(data, Mapping) else next(iter(chunks(data)), None)
        if first is None:
            raise ArgumentError("the iterator of data gives nothing")
        sample = read(program.loops, first, settings.batch, None)
        shapes = {name: array.shape for name, array in sample.examples.items()}
        shapes |= {name: np.shape(value) for name, value in sample.fixed.items()}
        model, arrays = prepared(program, named, set(first), shapes, settings.seed, sizes, _dtype(named, sample))
        missing = inputs_missing(model.loops, {*named, *first})
        if missing:
            raise ArgumentError(
                f"the input {missing[0]} is neither among the parameters nor in the data",
                hint=f'add it: params={{..., "{missing[0]}": "he"}} or data={{..., "{missing[0]}": array}}',
            )
        self.update: Update = update(model, settings.loss, list(named), chosen_optimizer(optimizer), clip, metrics)
        self.params = arrays
        self.dtype = next(iter(arrays.values())).dtype
        own = shapes_of_state(self.update, {name: array.shape for name, array in arrays.items()})
        self.state = {name: np.zeros(shape, self.dtype) for name, shape in own.items()}
        self.position = Position()
        self.history = History()
        self.validation: Mapping[str, Any] | None = None
        self.path: Path | None = None
        self.seconds = SAVE_SECONDS
        self.saved = time.monotonic()
        self.length = settings.batch_size  # of the next steps, in examples: first few, then as many as take their time
        self.asked: list[bool] = []  # whether Ctrl-C was pressed

    # -- data

    def parts(self) -> Iterator[tuple[int, Loop]]:
        """The chunks of the data, each ready to be trained on."""
        if isinstance(self.source, Mapping):
            if not hasattr(self, "only"):
                self.only = self.loop(self.source)
            yield 0, self.only
            return
        for number, part in enumerate(chunks(self.source)):
            yield number, self.loop(part)

    def loop(self, part: Any) -> Loop:
        data = read(self.update.model.loops, part, self.settings.batch, self.dtype)
        made = Loop(self.update, data, self.settings.batch, {**self.params, **self.state})
        made.check(min(self.settings.batch_size, data.count))
        return made

    @property
    def total(self) -> int | None:
        """All steps of the run, if the data tells."""
        if not isinstance(self.source, Mapping):
            return None
        count = next(iter(self.parts()))[1].data.count
        return self.settings.epochs * -(-count // self.settings.batch_size)

    def rows(self, data: Data, epoch: int, start: int, stop: int) -> Rows:
        positions = np.arange(start, stop)
        return shuffled(positions, data.count, self.settings.seed, epoch) if self.settings.shuffle else positions

    # -- the run

    def train(self, shown: bool) -> Result:
        total = self.total
        progress = Progress(total or 0, shown)
        progress.first = self.position.step
        with listening() as self.asked:
            for epoch in range(self.position.epoch, self.settings.epochs):
                self.epoch(epoch, total, progress)
                if self.asked:
                    break
        if self.path is not None:
            self.save()
        progress.tell(self.position.step, self.last(), last=True)
        return Result(self.params, self.history, self.state, self.position.step, bool(self.asked))

    def epoch(self, epoch: int, total: int | None, progress: Progress) -> None:
        begun, size = self.position.step, self.settings.batch_size
        for number, loop in self.parts():
            if number < self.position.chunk:
                continue
            start = self.position.example if number == self.position.chunk else 0
            while start < loop.data.count:
                stop = min(start + self.length, loop.data.count)
                before = time.monotonic()
                self.steps(loop, epoch, start, stop, total)
                made, start = stop - start, stop
                done = start >= loop.data.count
                self.position = replace(self.position, epoch=epoch, chunk=number + done, example=0 if done else start)
                spent = max(time.monotonic() - before, 1e-6)
                self.length = max(int(made * min(AWAY / spent, 8.0)) // size * size, size)
                progress.tell(self.position.step, self.last())
                self.save_in_time()
                loop.data.forget()
                if self.asked:
                    return
        self.position = replace(self.position, epoch=epoch + 1, chunk=0, example=0)
        self.close(epoch, begun)

    def steps(self, loop: Loop, epoch: int, start: int, stop: int, total: int | None) -> None:
        """The batches of some examples. If a loss is no number, says where that came from."""
        for stretch in stretches(self.rows(loop.data, epoch, start, stop), self.settings.batch_size):
            first = self.position.step
            numbers = np.arange(first, first + stretch.steps, dtype=np.float64)
            factors = self.schedule(numbers, total or max(first + stretch.steps, 1))
            before = {name: array.copy() for name, array in loop.arrays.items()}
            told = loop.run(stretch, factors * self.settings.lr, first)
            wrong = ~np.isfinite(told[self.settings.loss])
            if wrong.any():
                at = int(np.argmax(wrong))
                self.stop(loop, stretch.rows, before, factors * self.settings.lr, first, at)
            for name, values in told.items():
                self.history.add(name, values)
            self.position = replace(self.position, step=first + stretch.steps)

    def stop(self, loop: Loop, rows: Rows, before: dict[str, Array], rates: Array, first: int, at: int) -> None:
        """Goes back to the step whose loss is no number, and raises with the statement that made it so."""
        for name, array in before.items():
            loop.arrays[name][...] = array
        if at:
            loop.run(Stretch(rows[:at]), rates[:at], first)
        arguments = {**loop.arrays, **self.update.numbers(rates[at], first + at + 1), **loop.data.fixed}
        arguments |= loop.data.batch(rows[at])
        found = first_nan(self.update.program, arguments)
        raise TrainingError(
            f"the loss of step {first + at + 1} is no finite number: {found}",
            hint="a smaller lr, clip=1.0, or a guard against log(0) and division by 0 may help",
        )

    def last(self) -> dict[str, float]:
        """The latest loss and metrics, as a mean of a few steps."""
        return {name: float(np.mean(values[-20:])) for name, values in self.history.steps.items() if values}

    def close(self, epoch: int, begun: int) -> None:
        """The row of an epoch in the history."""
        row = {"epoch": float(epoch + 1), "step": float(self.position.step)}
        for name, values in self.history.steps.items():
            row[name] = float(np.mean(values[begun - self.position.step :]))
        if self.validation is not None:
            row |= {f"validation {name}": value for name, value in self.evaluate(self.validation).items()}
        self.history.epochs.append(row)

    def evaluate(self, given: Mapping[str, Any]) -> dict[str, float]:
        """The means of loss and metrics over all examples, weighted by batch."""
        data = read(self.update.model.loops, given, self.settings.batch, self.dtype)
        sums: dict[str, float] = dict.fromkeys(self.update.results, 0.0)
        size = max(self.settings.batch_size, 256)
        model = self.update.model
        for start in range(0, data.count, size):
            rows = np.arange(start, min(start + size, data.count))
            arguments = {**self.params, **data.fixed, **data.batch(rows)}
            found = model({name: value for name, value in arguments.items() if name in model.inputs})
            found = found if isinstance(found, dict) else {model.outputs[0]: found}
            for name in sums:
                sums[name] += float(found[name]) * len(rows)
        return {name: value / data.count for name, value in sums.items()}

    # -- checkpoints

    @property
    def decisive(self) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        s = self.settings
        return {"seed": s.seed, "batch_size": s.batch_size, "shuffle": s.shuffle, "dtype": str(self.dtype)}

    def save_in_time(self) -> None:
        if self.path is not None and time.monotonic() - self.saved >= self.seconds:
            self.save()

    def save(self) -> None:
        assert self.path is not None
        arrays = {**self.params, **self.state}
        text = str(self.update.program)
        files.save(self.path, Checkpoint(text, self.decisive, self.position, arrays, self.history.to_dict()))
        self.saved = time.monotonic()

    def resume(self, choice: bool | str | Path) -> None:
        if choice is False:
            return
        if choice is True:
            if self.path is None:
                raise ArgumentError(
                    "resume=True goes on from the checkpoint, and there is none", hint="checkpoint=path"
                )
            path = self.path
            if not path.exists():
                return
        else:
            path = Path(choice)
        found = files.load(path)
        shapes = {name: array.shape for name, array in {**self.params, **self.state}.items()}
        files.refuse_foreign(found, path, str(self.update.program), self.decisive, shapes)
        for name, array in {**self.params, **self.state}.items():
            array[...] = found.arrays[name]
        self.position = found.position
        self.history = History.from_dict(found.history)


class TrainingError(SwapError):
    """A run that went wrong on its way."""


def _dtype(params: Mapping[str, Any], data: Data) -> np.dtype[Any] | None:
    """The type to train in: that of the parameters that are arrays, or else of the data."""
    arrays = [value for value in params.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    floats = arrays or [array for array in data.examples.values() if array.dtype.kind == "f"]
    return np.result_type(*(array.dtype for array in floats)) if floats else None


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ArgumentError(f"{name} is a whole number of 1 or more, not {str(value)[:80]}")
    return int(value)
