"""Models: the definitions in kernels/models, with what a training of each needs to know beside its data.

model, chosen = models.get("gpt"), {"width": 64}
ts.fit(model.program, model.params(data, **chosen), data, sizes=model.sizes(data, **chosen), **model.training)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import library
from .arrays import Array
from .errors import ArgumentError
from .language import ir
from .language.hints import closest
from .language.render import access
from .lazy import cached_property
from .program import Program, load
from .training.initial import drawn, index_sizes

Settings = Mapping[str, int]
Start = tuple[str, tuple[int, ...]]  # a word for how a parameter starts, and its shape


class Data:
    """Arrays by name; one that is missing is told by its name."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        if not isinstance(arrays, Mapping):
            raise ArgumentError(f"data is a dict of arrays by name, not {type(arrays).__name__}")
        self.arrays: dict[str, Array] = {name: np.asanyarray(array) for name, array in arrays.items()}

    def __getitem__(self, name: str) -> Array:
        if name not in self.arrays:
            raise ArgumentError(
                f"the data has no array {name}", hint=closest(name, self.arrays) or "the model reads it"
            )
        return self.arrays[name]

    def count(self, name: str) -> int:
        """How many kinds an array of whole numbers tells apart: classes, characters, users."""
        array = self[name]
        if array.dtype.kind not in "iu" or not array.size:
            raise ArgumentError(f"{name} is not an array of whole numbers", hint="number the kinds from 0 on")
        return int(array.max()) + 1


@dataclass(frozen=True)
class Model:
    """How the parameters of a definition start, the numbers that a user may set, and what sizes follow from them."""

    name: str
    starts: Mapping[str, str]
    settings: Settings
    indices: Callable[[Settings, Data], dict[str, int]]  # of the header, as far as the shapes of the data do not tell
    metrics: tuple[str, ...] = ()
    lr: float = 1e-3
    options: Mapping[str, Any] = field(default_factory=dict)  # of ts.fit, where not the usual ones

    @cached_property
    def program(self) -> Program:
        return load(library.models()[self.name])  # by its file: an op may have the same name

    @property
    def training(self) -> dict[str, Any]:
        """The keywords of ts.fit that go well with the model."""
        return {"metrics": self.metrics, "lr": self.lr, **self.options}

    def params(self, data: Mapping[str, Any], **settings: int) -> dict[str, Start]:
        """The parameters as ts.fit takes them: a word and a shape for each."""
        known = self._known(data, settings)
        header = self.program.loops.header
        assert header is not None
        shapes = {
            argument.name: tuple(known[ir.bare(index) or ""] for index in argument.access.indices)
            for argument in header.arguments
            if isinstance(argument, ir.Argument) and argument.name in self.starts
        }
        return {name: (word, shapes[name]) for name, word in self.starts.items()}

    def sizes(self, data: Mapping[str, Any], **settings: int) -> dict[str, int]:
        """The static integers of the definition, as ts.fit takes them."""
        known = self._known(data, settings)
        return {name: known[name] for name in self.program.loops.static_names}

    def initial(
        self, data: Mapping[str, Any], seed: int = 0, dtype: Any = np.float32, **settings: int
    ) -> dict[str, Array]:
        """The parameters as arrays, the same as ts.fit makes of the same seed."""
        return drawn(self.program.loops, self.params(data, **settings), {}, seed, np.dtype(dtype))

    def _known(self, data: Mapping[str, Any], settings: Settings) -> dict[str, int]:
        for name, value in settings.items():
            if name not in self.settings:
                hint = closest(name, self.settings, "it has")
                raise ArgumentError(f"the model {self.name} has no setting {name[:80]!r}", hint=hint)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ArgumentError(f"{name} is a whole number of 1 or more, not {str(value)[:80]}")
        given = Data(data)
        own = self.indices({**self.settings, **settings}, given)
        known = index_sizes(self.program.loops, {n: a.shape for n, a in given.arrays.items()}, {}) | own
        header = self.program.loops.header
        assert header is not None
        arguments = [argument for argument in header.arguments if isinstance(argument, ir.Argument)]
        open_names = {ir.bare(i) or "" for a in arguments if a.name in self.starts for i in a.access.indices} - {*known}
        if open_names:
            read = ", ".join(access(a.access) for a in arguments if a.name not in self.starts)
            names = ", ".join(sorted(open_names))
            raise ArgumentError(f"the data does not tell how large {names} is", hint=f"the model reads {read}")
        return known


def get(name: str) -> Model:
    """The model of that name."""
    if name not in MODELS:
        raise ArgumentError(f"there is no model {str(name)[:80]!r}", hint=closest(name, MODELS, "there are"))
    return MODELS[name]


def _words(names: str, word: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), word)


def _cnn(s: Settings, d: Data) -> dict[str, int]:
    windows = dict.fromkeys(("u", "v", "p", "q"), 3)
    y, x = d["image"].shape[-2:]
    left = {"m": (y + 1) // 2, "n": (x + 1) // 2}
    return {**windows, **left, "f": s["width"], "g": 2 * s["width"], "c": d.count("label")}


def _gpt(s: Settings, d: Data) -> dict[str, int]:
    if s["width"] % s["heads"]:
        raise ArgumentError(f"a width of {s['width']} cannot be shared among {s['heads']} heads", hint="width=128")
    inner = {"h": s["heads"], "e": s["width"] // s["heads"], "f": 4 * s["width"]}
    return {**inner, "v": d.count("tokens"), "d": s["width"], "l": s["layers"], "i": s["length"]}


def _lstm(s: Settings, d: Data) -> dict[str, int]:
    width = dict.fromkeys(("d", "h", "k"), s["width"])
    return {**width, "v": d.count("tokens"), "g": 4, "length": s["length"]}


MODELS = {
    model.name: model
    for model in (
        Model(
            "logistic_regression",
            _words("W bias", "zeros"),
            {},
            lambda s, d: {"c": d.count("label")},
            metrics=("accuracy",),
            lr=0.1,
            options={"optimizer": "sgd"},
        ),
        Model(
            "mlp",
            {**_words("W_in W", "he"), "W_out": "xavier", **_words("b_in bias b_out", "zeros")},
            {"width": 128, "layers": 1},
            lambda s, d: {"h": s["width"], "g": s["width"], "l": s["layers"] - 1, "c": d.count("label")},
            metrics=("accuracy",),
        ),
        Model(
            "cnn",
            {**_words("W1 W2", "he"), "W": "xavier", **_words("b1 b2 bias", "zeros")},
            {"width": 16},
            _cnn,
            metrics=("accuracy",),
        ),
        Model(
            "autoencoder",
            {
                **_words("W1 W3", "he"),
                **_words("W2 W4", "xavier"),
                **_words("b1 b2 b3 b4", "zeros"),
            },
            {"width": 128, "code": 16},
            lambda s, d: {"h": s["width"], "g": s["width"], "k": s["code"]},
        ),
        Model(
            "lstm",
            {**_words("table Wx Wh W", "xavier"), **_words("gates bias", "zeros")},
            {"width": 128, "length": 64},
            _lstm,
            metrics=("accuracy",),
            options={"clip": 1.0},
        ),
        Model(
            "gpt",
            {
                **_words("table position Wq Wk Wv Wo Wu Wd W", "normal"),
                **_words("gain1 gain2 gain", "ones"),
                **_words("bias1 bias2 bu bd bias", "zeros"),
            },
            {"width": 128, "layers": 4, "heads": 4, "length": 64},
            _gpt,
            metrics=("accuracy",),
        ),
        Model(
            "matrix_factorization",
            {**_words("U V", "uniform"), **_words("of_user of_item mean", "zeros")},
            {"rank": 16},
            lambda s, d: {"u": d.count("user"), "i": d.count("item"), "k": s["rank"]},
            metrics=("error",),
            lr=0.01,
        ),
        Model(
            "cp_decomposition",
            _words("A B C", "uniform"),
            {"rank": 8},
            lambda s, d: {"i": d.count("row"), "j": d.count("column"), "k": d.count("tube"), "r": s["rank"]},
            lr=0.01,
        ),
        Model(
            "gaussian_mixture",
            {"share": "zeros", "mean": "xavier", "spread": "zeros"},
            {"components": 8},
            lambda s, d: {"k": s["components"]},
            lr=0.01,
        ),
    )
}
