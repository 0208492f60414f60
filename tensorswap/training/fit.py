"""`ts.fit`: trains a program. Batches, forward, backward and update run in compiled code, many steps at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, SwapError, SwapWarning, TrainingError
from ..language.given_numbers import counts, positive, real, shown, truth, whole
from ..lazy import method
from ..program import Program
from ..room import bytes_of
from . import checkpoint as files
from .checkpoint import Checkpoint, Position
from .data import Data, read, with_examples
from .diagnose import first_nan
from .history import History
from .initial import flattened
from .noise import noises, refuse_steady
from .optimizers import optimizer as chosen_optimizer
from .progress import Progress
from .schedule import schedule as chosen_schedule
from .shuffle import Rows, shuffled
from .source import Source
from .step import prepared
from .stopping import listening
from .training_loop import Loop, UndecidedStep, stretches
from .update import Update, shapes_of_state, update

AWAY = 0.5  # seconds that compiled steps run before Python comes in
FAR_AWAY = 2.0  # and those on a cluster, where it takes longer to begin
SAVE_SECONDS = 30.0  # between checkpoints
EVALUATED = 256  # examples that validation takes at a time, at least


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

    def _repr_html_(self) -> str:
        """The parameters and the history, for a notebook."""
        page: str = method("result_page")(self)
        return page


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
    sizes: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = SAVE_SECONDS,
    resume: bool | str | Path = False,
    progress: bool = True,
    same_noise: bool = False,
    cluster: Any = None,
    shards: int | None = None,
    average_every: int | None = None,
    memory: str | int | None = None,
) -> Result:
    """Trains the parameters of a program, and gives them with a history.

    `data` is a dict of arrays (or mapped files) by name, an iterable of such dicts, or a function that gives one for
    each epoch; `batch` names the index of examples. Parameters are arrays, or words: "he", "xavier", "normal",
    "uniform", "zeros", "ones". An input `step` of the program is the number of the step. `resume=True` goes on from
    `checkpoint` if there is one. Ctrl-C ends the run after the steps at hand, with what it has learned.

    With `shards`, each batch is cut into so many parts, on the workers of `cluster`, a client of Dask's, if there is
    one: the numbers depend on the parts, not on who computes them. With `average_every=k`, each part makes k steps by
    itself before all take the mean of their parameters and state: for networks that are slow. With `memory`, such as
    "64 MB", a step that would need more is computed in so many parts, one after the other, that each needs less.
    """
    if memory is not None and (cluster is not None or shards is not None):
        raise ArgumentError(
            "memory chooses the number of shards itself", hint="leave out shards and cluster, or memory"
        )
    if average_every is not None and cluster is None and shards is None:
        raise ArgumentError("average_every is for a training in shards", hint="shards=2, average_every=10")
    settings = _Settings(
        loss,
        positive("lr", lr),
        batch,
        whole("batch_size", batch_size, 1),
        whole("epochs", epochs, 1),
        whole("seed", seed),
        truth("shuffle", shuffle),
        truth("same_noise", same_noise),
    )
    path = None if checkpoint is None else _path("checkpoint", checkpoint)
    seconds = real("checkpoint_seconds", checkpoint_seconds)
    if seconds < 0:
        raise ArgumentError(f"checkpoint_seconds is 0 or more, not {seconds:g}", hint="checkpoint_seconds=30")
    run = _Run(
        program,
        params,
        data,
        settings,
        counts("sizes", sizes or {}, getattr(program, "loops", None)),
        metrics,
        optimizer,
        clip,
        schedule,
        None
        if cluster is None and shards is None
        else Parts(cluster, shards, None if average_every is None else whole("average_every", average_every, 1)),
    )
    if memory is not None:
        run.keep_to(bytes_of("memory", memory))
    run.validate_with(validation)
    run.resume(resume, path)
    if path is not None:  # a place that cannot be written is told before time is spent on training
        files.refuse_place(path)
    run.path, run.seconds = path, seconds
    return run.train(truth("progress", progress))


@dataclass(frozen=True)
class Parts:
    """How a batch is cut, and who computes its parts."""

    cluster: Any
    shards: int | None
    average_every: int | None = None


@dataclass(frozen=True)
class _Settings:
    loss: str
    lr: float
    batch: str
    batch_size: int
    epochs: int
    seed: int
    shuffle: bool
    same_noise: bool


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
        parts: Parts | None = None,
    ) -> None:
        named = flattened(params)
        self.settings = settings
        self.schedule = chosen_schedule(schedule)
        if not isinstance(program, Program):
            raise ArgumentError(f"what is trained is a program, not {shown(program)}", hint="ts.program(text)")
        self.source = Source(data, settings.epochs)
        first = self.source.first
        program = with_examples(program, first, settings.batch)
        sample = read(program.loops, first, settings.batch, settings.batch_size, None, named)
        shapes = {name: array.shape for name, array in sample.examples.items()}
        shapes |= {name: np.shape(value) for name, value in sample.fixed.items()}
        model, arrays = prepared(program, named, set(first), shapes, settings.seed, sizes, _dtype(named, sample))
        missing = [name for name in model.inputs if name not in {*named, *first, "step"}]
        if missing:
            raise ArgumentError(
                f"the input {missing[0]} is neither among the parameters nor in the data",
                hint=f'add it: params={{..., "{missing[0]}": "he"}} or data={{..., "{missing[0]}": array}}',
            )
        self.update: Update = update(model, settings.loss, list(named), chosen_optimizer(optimizer), clip, metrics)
        self.elsewhere: Any = None
        if parts is not None:
            self.elsewhere = method("train")(
                self.update.program, settings.batch, parts.cluster, parts.shards, parts.average_every
            )
        self.noises = [] if settings.same_noise else noises(model.loops)
        self.seeds: dict[str, Array] = {}  # what one chunk gave to random functions beside its examples
        self.params = arrays
        self.dtype = next(iter(arrays.values())).dtype
        own = shapes_of_state(self.update, {name: array.shape for name, array in arrays.items()})
        self.state = {name: np.zeros(shape, self.dtype) for name, shape in own.items()}
        self.position = Position()
        self.history = History()
        self.validation: Data | None = None
        self.path: Path | None = None
        self.seconds = SAVE_SECONDS
        self.away = AWAY if parts is None else FAR_AWAY
        self.saved = time.monotonic()
        apart = parts.average_every if parts is not None and parts.average_every is not None else 1
        self.pace = settings.batch_size * apart  # examples between two means of what shards have learned
        self.length = self.pace  # of the next steps, in examples: first few, then as many as take their time
        self.asked: list[bool] = []  # whether Ctrl-C was pressed
        self.begun: Loop | None = self.loop(first)  # what is wrong with the data is told before anything else happens
        self.schedule(np.zeros(1), self.total)

    def keep_to(self, memory: int) -> None:
        """Steps in as many parts as a limit of memory asks for."""
        assert self.begun is not None
        data = self.begun.data
        rows = np.arange(min(self.settings.batch_size, data.count))
        shards = method("shards_of_step")(
            self.update.program, self.settings.batch, self.begun.arguments(data.batch(rows)), memory
        )
        if shards > 1:
            self.elsewhere = method("train")(self.update.program, self.settings.batch, None, shards, None)
            self.begun = self.loop(self.source.first)

    # -- data

    def parts(self) -> Iterator[tuple[int, Loop]]:
        """The chunks of an epoch from the position on, each ready to be trained on."""
        number = -1
        for number, part in enumerate(self.source.epoch()):
            if number < self.position.chunk:
                continue
            loop = self.begun if part is self.source.first and self.begun is not None else self.loop(part)
            self.begun = loop if self.source.whole else None
            yield number, loop
        if number + 1 < self.position.chunk:
            raise TrainingError(
                f"the data ends after {number + 1} chunks; the run goes on from chunk {self.position.chunk + 1}",
                hint="resume with the data that the checkpoint was made with",
            )

    def loop(self, part: Any) -> Loop:
        data = self.read(part, self.settings.batch_size)
        self.refuse_same_noise(data)
        made = Loop(self.update, data, self.settings.batch, {**self.params, **self.state}, self.elsewhere)
        made.check(self.settings.batch_size)
        return made

    def read(self, part: Any, size: int) -> Data:
        data = read(self.update.model.loops, part, self.settings.batch, size, self.dtype, self.params)
        have = {*self.params, *data.examples, *data.fixed, "step"}
        missing = [name for name in self.update.model.inputs if name not in have]
        if missing:
            raise ArgumentError(f"the data lacks {missing[0]}", hint="every part of the data has the same names")
        return data

    def refuse_same_noise(self, data: Data) -> None:
        """A seed that serves all examples may change from chunk to chunk, if each chunk is one step."""
        changing = {"step", *data.examples, *self.params}
        given = {name: np.asarray(value) for name, value in data.fixed.items()}
        if not self.source.whole and data.count <= self.settings.batch_size:
            before = self.seeds
            changing |= {n for n, a in given.items() if n not in before or not np.array_equal(a, before[n])}
        self.seeds = given
        refuse_steady(self.noises, changing)

    @property
    def total(self) -> int | None:
        """All steps of the run, if the data tells."""
        if not self.source.whole or self.begun is None:
            return None
        return self.settings.epochs * self.steps_of(self.begun.data)

    def steps_of(self, data: Data) -> int:
        return -(-data.count // self.settings.batch_size)

    def validate_with(self, given: Any) -> None:
        """Checks the data of validation before time is spent on training."""
        if given is None:
            return
        size = max(self.settings.batch_size, EVALUATED)
        self.validation = self.read(given, size)
        Loop(self.update, self.validation, self.settings.batch, {**self.params, **self.state}).check(size)

    def rows(self, data: Data, epoch: int, start: int, stop: int) -> Rows:
        positions = np.arange(start, stop)
        return shuffled(positions, data.count, self.settings.seed, epoch) if self.settings.shuffle else positions

    # -- the run

    def train(self, visible: bool) -> Result:
        total, begun = self.total, self.position.step
        progress = Progress(total or 0, bool(visible))
        progress.first = begun
        try:
            with listening() as self.asked:
                for epoch in range(self.position.epoch, self.settings.epochs):
                    self.epoch(epoch, total, progress)
                    if self.asked:
                        break
        except SwapError as error:
            if self.position.step > begun and error.result is None:  # between two steps: it can go on from here
                error.result = self.result()
                self.save()
            raise
        self.save()
        progress.tell(self.position.step, self.last(), last=True)
        return self.result()

    def result(self) -> Result:
        return Result(self.params, self.history, self.state, self.position.step, bool(self.asked))

    def epoch(self, epoch: int, total: int | None, progress: Progress) -> None:
        size = self.settings.batch_size
        for number, loop in self.parts():
            start = self.position.example if number == self.position.chunk else 0
            if start and (start % size or start >= loop.data.count):
                raise TrainingError(f"the run cannot go on from example {start} of {loop.data.count}")
            while start < loop.data.count:
                reach = min(self.length, loop.data.window)
                stop = min(start + (reach // self.pace * self.pace or reach), loop.data.count)
                before = time.monotonic()
                self.steps(loop, replace(self.position, epoch=epoch, chunk=number, example=start), stop, total)
                made, start = stop - start, stop
                spent = max(time.monotonic() - before, 1e-6)
                self.length = max(int(made * min(self.away / spent, 8.0)) // self.pace * self.pace, self.pace)
                progress.tell(self.position.step, self.last())
                if time.monotonic() - self.saved >= self.seconds:
                    self.save()
                if self.asked:
                    return
        self.position = replace(self.position, epoch=epoch + 1, chunk=0, example=0)
        self.close(epoch)

    def steps(self, loop: Loop, begun: Position, stop: int, total: int | None) -> None:
        """The batches of some examples. If a loss is no number, says where that came from."""
        size, at = self.settings.batch_size, begun.example
        for batches in stretches(loop.fill(self.rows(loop.data, begun.epoch, at, stop), size), size):
            first = self.position.step
            numbers = np.arange(first, first + len(batches), dtype=np.float64)
            factors = self.schedule(numbers, total)
            before = {name: array.copy() for name, array in loop.arrays.items()}
            try:
                told = self.made(loop, batches, factors * self.settings.lr, first, before)
            except SwapError as error:
                if error.result is None:  # a cluster is gone: back to where the position says that the run stands
                    for name, array in before.items():
                        loop.arrays[name][...] = array
                raise
            wrong = ~np.isfinite(told[self.settings.loss])
            if wrong.any():
                at = int(np.argmax(wrong))
                self.stop(loop, batches, before, factors * self.settings.lr, first, at)
            for name, values in told.items():
                self.history.add(name, values)
            at += batches.size
            done = at >= loop.data.count
            self.position = replace(
                begun, step=first + len(batches), chunk=begun.chunk + done, example=0 if done else at
            )

    def made(self, loop: Loop, batches: Rows, rates: Array, first: int, before: dict[str, Array]) -> dict[str, Array]:
        """Makes steps. One that kernels cannot decide is made by the interpreter, which says what is wrong with it."""
        try:
            return loop.run(batches, rates, first)
        except UndecidedStep as step:
            at = step.at
        for name, array in before.items():
            loop.arrays[name][...] = array
        parts = [loop.run(batches[:at], rates[:at], first)] if at else []
        try:
            parts.append(loop.watched(batches[at : at + 1], rates[at : at + 1], first + at))
        except SwapError as error:
            error.result = replace(self.result(), step=first + at)
            raise
        if at + 1 < len(batches):
            now = {name: array.copy() for name, array in loop.arrays.items()}
            parts.append(self.made(loop, batches[at + 1 :], rates[at + 1 :], first + at + 1, now))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def stop(self, loop: Loop, rows: Rows, before: dict[str, Array], rates: Array, first: int, at: int) -> None:
        """Goes back to the step whose loss is no number, and raises with the statement that made it so."""
        for name, array in before.items():
            loop.arrays[name][...] = array
        if at:
            for name, values in loop.run(rows[:at], rates[:at], first).items():
                self.history.add(name, values)
        arguments = loop.arguments(loop.data.batch(rows[at])) | self.update.numbers(rates[at], first + at + 1)
        found = first_nan(self.update.program, arguments)
        stopped = TrainingError(
            f"the loss of step {first + at + 1} is no finite number: {found}",
            hint="a smaller lr, clip=1.0, or a guard against log(0) and division by 0 may help",
        )
        stopped.result = replace(self.result(), step=first + at)
        raise stopped

    def last(self) -> dict[str, float]:
        """The latest loss and metrics, as a mean of a few steps."""
        return {name: float(np.mean(values[-20:])) for name, values in self.history.steps.items() if values}

    def close(self, epoch: int) -> None:
        """The row of an epoch in the history."""
        begun = int(self.history.epochs[-1]["step"]) if self.history.epochs else 0
        row = {"epoch": float(epoch + 1), "step": float(self.position.step)}
        for name, values in self.history.steps.items():
            row[name] = float(np.mean(values[begun:]))
        if self.validation is not None:
            row |= {f"validation {name}": value for name, value in self.evaluate(self.validation).items()}
        self.history.epochs.append(row)

    def evaluate(self, data: Data) -> dict[str, float]:
        """The means of loss and metrics over all examples, weighted by batch."""
        sums: dict[str, float] = dict.fromkeys(self.update.results, 0.0)
        model = self.update.model
        numbers = self.update.numbers(self.settings.lr, max(self.position.step, 1))
        for batch in data.batches(max(self.settings.batch_size, EVALUATED)):
            arguments = {**self.params, **numbers, **data.fixed, **batch}
            found = model({name: value for name, value in arguments.items() if name in model.inputs})
            found = found if isinstance(found, dict) else {model.outputs[0]: found}
            for name in sums:
                sums[name] += float(found[name]) * batch[next(iter(batch))].shape[data.axes[next(iter(batch))]]
        return {name: value / data.count for name, value in sums.items()}

    # -- checkpoints

    @property
    def decisive(self) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        s = self.settings
        examples = self.begun.data.count if self.source.whole and self.begun is not None else None
        return {
            "seed": s.seed,
            "batch_size": s.batch_size,
            "shuffle": s.shuffle,
            "dtype": str(self.dtype),
            "number of examples": examples,
            "shards": None if self.elsewhere is None else self.elsewhere.shards,
            "average_every": None if self.elsewhere is None else self.elsewhere.average_every,
        }

    def save(self) -> None:
        """Keeps the run, if that was asked for; what has been learned is not lost for want of a place."""
        if self.path is None:
            return
        arrays = {**self.params, **self.state}
        text = str(self.update.program)
        try:
            files.save(self.path, Checkpoint(text, self.decisive, self.position, arrays, self.history.to_dict()))
        except SwapError as error:
            warnings.warn(f"{error}\n  the training goes on without it", SwapWarning, stacklevel=2)
        self.saved = time.monotonic()

    def resume(self, choice: Any, checkpoint: Path | None) -> None:
        if choice is False or choice is None:
            return
        if choice is True:
            if checkpoint is None:
                raise ArgumentError(
                    "resume=True goes on from the checkpoint, and there is none", hint="checkpoint=path"
                )
            path = checkpoint
            if not path.exists():
                return
        else:
            path = _path("resume", choice)
        found = files.load(path)
        arrays = {**self.params, **self.state}
        files.refuse_foreign(found, path, str(self.update.program), self.decisive, arrays, self.update.results)
        self.refuse_position(found.position, path)
        for name, array in arrays.items():
            array[...] = found.arrays[name]
        self.position = found.position
        steps = found.history["steps"]
        kept = {name: steps[name] for name in self.update.results if name in steps}
        self.history = History.from_dict({**found.history, "steps": kept})

    def refuse_position(self, position: Position, path: Path) -> None:
        """Raises for a place where no run on this data stands."""
        right = position.epoch <= position.step and not position.example % self.settings.batch_size
        if self.source.whole and self.begun is not None:
            each, count = self.steps_of(self.begun.data), self.begun.data.count
            done = position.chunk * each + position.example // self.settings.batch_size
            within = position.example < count and position.chunk <= 1 and not (position.chunk and position.example)
            right = right and within and position.step == position.epoch * each + done
        if not right:
            raise ArgumentError(f"the checkpoint {path} stands where no run on this data does: {position}")


def _dtype(params: Mapping[str, Any], data: Data) -> np.dtype[Any] | None:
    """The type to train in: that of the parameters that are arrays, or else of the data."""
    arrays = [value for value in params.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    floats = arrays or [array for array in data.examples.values() if array.dtype.kind == "f"]
    return np.result_type(*(array.dtype for array in floats)) if floats else None


def _path(name: str, given: Any) -> Path:
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given):
        raise ArgumentError(f"{name} is the path of a file, not {shown(given)}", hint=f'{name}="run.safetensors"')
    return Path(given)
