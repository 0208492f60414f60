"""Texts for the character models: a file as numbers, windows of it as examples, and samples from a trained model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from ..models import Model
from ..program import Program
from ..rules.inherited_names import pattern


@dataclass(frozen=True)
class Corpus:
    characters: str  # all that occur, in order
    tokens: Array
    length: int
    split: int  # where the part for validation starts

    def windows(self, count: int, seed: int) -> dict[str, Array]:
        """Random windows of the part to train on."""
        last = self.split - self.length - 1
        return {"tokens": self.tokens, "start": _generator(seed).integers(0, last + 1, count)}

    @property
    def training(self) -> dict[str, Array]:
        return self.windows(1, 0)

    @property
    def validation(self) -> dict[str, Array]:
        """Windows side by side over the rest."""
        starts = np.arange(self.split, len(self.tokens) - self.length - 1, self.length)
        return {"tokens": self.tokens, "start": starts[:512]}


def read(path: Path | None, length: int, share: float) -> Corpus:
    if path is None:
        raise ArgumentError("a character model learns from a text", hint="--text FILE")
    if length < 1:
        raise ArgumentError(f"length is a whole number of 1 or more, not {length}", hint="--set length=16")
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}", hint="give a text file in UTF-8") from error
    characters = "".join(sorted(set(content)))
    numbers = {character: number for number, character in enumerate(characters)}
    tokens = np.array([numbers[character] for character in content], np.int64)
    split = int(len(tokens) * (1 - share))
    if split < 2 * length + 2 or len(tokens) - split < length + 2:
        raise ArgumentError(
            f"{path} has {len(tokens)} characters, too few for windows of {length}", hint="--set length=16"
        )
    return Corpus(characters, tokens, length, split)


def sample(
    model: Model, params: dict[str, Array], corpus: Corpus, count: int, seed: int, settings: dict[str, int]
) -> str:
    """Text that the model writes: one character after the other, each drawn from what it expects next."""
    scores = _scores(model)
    generator = _generator(seed)
    written = list(corpus.tokens[: corpus.length])
    static = {n: v for n, v in {**model.settings, **settings}.items() if n in scores.loops.static_names}
    for _ in range(count):
        window = np.array([*written[-corpus.length :], 0], np.int64)
        found = np.asarray(scores({**params, **static, "tokens": window, "start": np.zeros(1, np.int64)}), np.float64)
        last = found[0, -1] if model.name == "gpt" else found[-1, 0]
        chances = np.exp((last - last.max()) / 0.8)
        written.append(int(generator.choice(len(chances), p=chances / chances.sum())))
    return "".join(corpus.characters[token] for token in written[corpus.length :])


def _generator(seed: int) -> np.random.Generator:
    """Any whole number is a seed, as it is for the parameters."""
    return np.random.default_rng(seed & (2**64 - 1))


def _scores(model: Model) -> Program:
    """The program that gives the scores of a character model."""
    loops = model.program.loops
    scores = pattern(loops, "scores")
    assert loops.header is not None
    assert scores is not None
    return Program(replace(loops, header=replace(loops.header, outputs=(scores,))))
