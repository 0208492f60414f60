"""Stores PyTorch's answers, forward and gradient, in one small .npz file for each family of ops.

Needs numpy and torch and nothing else; the tests that read the files need neither torch nor this script. A file holds,
for each case: `case/op`, `case/option/<name>` (whole numbers), `case/input/<name>`, `case/output/<name>`,
`case/seed/<name>` (the upstream gradient) and `case/grad/<name>` for each floating-point input. A new op is a new row.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)
from numpy.typing import NDArray

Array = NDArray[Any]
Input = tuple[int, ...] | Array  # a shape is filled with random numbers

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One call of one op. `function` takes the inputs and the options by name and returns the output."""

    name: str
    op: str
    function: Callable[..., torch.Tensor]
    inputs: dict[str, Input]
    options: dict[str, int] = field(default_factory=dict)
    output: str = "Y"


def case(
    op: str, function: Callable[..., torch.Tensor], inputs: dict[str, Input], note: str = "", **options: int
) -> Case:
    """A case whose name tells its options: `conv2d.stride2.padding1`."""
    parts = [op, *([note] if note else []), *(f"{name}{value}" for name, value in options.items())]
    return Case(".".join(parts), op, function, inputs, options)


def named(names: str, rows: Iterable[tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """Rows of numbers as options: named("stride padding", [(1, 0), (2, 1)])."""
    for row in rows:
        yield dict(zip(names.split(), row, strict=True))


# -- convolution: images and kernels are not square, so that no axis can pass for another

WINDOW = "stride padding dilation"


def convolution() -> Iterator[Case]:
    grids = {
        1: [(1, 0, 1), (1, 2, 2), (2, 1, 1), (2, 2, 2), (3, 0, 2), (3, 1, 1)],
        2: [
            (1, 0, 1),
            (1, 1, 1),
            (1, 2, 1),
            (1, 1, 2),
            (1, 2, 2),
            (2, 0, 1),
            (2, 1, 1),
            (2, 1, 2),
            (2, 2, 2),
            (3, 0, 1),
            (3, 1, 2),
            (3, 2, 1),
            (3, 2, 2),
        ],
        3: [(1, 0, 1), (1, 1, 2), (2, 1, 1), (2, 2, 2), (3, 0, 1), (3, 2, 1)],
    }
    image, kernel = (8, 7, 6), (3, 2, 3)
    functions = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    for rank, rows in grids.items():
        batch = 2 if rank < 3 else 1
        inputs: dict[str, Input] = {"X": (batch, 2, *image[-rank:]), "W": (3, 2, *kernel[-rank:]), "b": (3,)}
        for options in named(WINDOW, rows):
            yield case(f"conv{rank}d", convolve(functions[rank]), inputs, **options)
    transposed: dict[str, Input] = {"X": (1, 3, 4, 3), "W": (3, 2, 3, 2), "b": (2,)}
    rows = [(1, 0, 1, 0), (2, 0, 1, 0), (2, 1, 1, 1), (3, 1, 1, 2), (2, 2, 2, 1), (1, 1, 2, 1), (3, 0, 2, 0)]
    for options in named(WINDOW + " output_padding", rows):
        yield case("conv_transpose2d", convolve(F.conv_transpose2d), transposed, **options)


def convolve(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda X, W, b, **options: function(X, W, b, **options)


# -- windows

POOL = "kernel_height kernel_width stride padding"


def pooling() -> Iterator[Case]:
    image: dict[str, Input] = {"X": (1, 2, 7, 6)}
    without_ties = np.random.default_rng(0).permutation(2 * 7 * 6).reshape(1, 2, 7, 6) / 16 - 2
    for options in named(POOL, [(3, 2, 1, 0), (3, 3, 2, 0), (3, 2, 1, 1), (3, 3, 2, 1), (2, 3, 3, 1)]):
        yield case("max_pool2d", max_pool2d, {"X": without_ties}, **options)
    for options in named(POOL, [(2, 3, 1, 0), (3, 2, 2, 1), (3, 3, 1, 1), (2, 3, 3, 1)]):
        yield case("avg_pool2d", avg_pool2d(True), image, **options)
        yield case("avg_pool2d_valid", avg_pool2d(False), image, **options)
    names = "kernel_height kernel_width " + WINDOW
    for options in named(names, [(3, 2, 1, 0, 1), (2, 3, 2, 1, 1), (3, 2, 1, 2, 2), (2, 2, 3, 1, 2)]):
        yield case("unfold", unfold, {"X": (1, 2, 5, 6)}, **options)


def max_pool2d(X: torch.Tensor, kernel_height: int, kernel_width: int, stride: int, padding: int) -> torch.Tensor:
    return F.max_pool2d(X, (kernel_height, kernel_width), stride, padding)


def avg_pool2d(count_include_pad: bool) -> Callable[..., torch.Tensor]:
    def pool(X: torch.Tensor, kernel_height: int, kernel_width: int, stride: int, padding: int) -> torch.Tensor:
        return F.avg_pool2d(X, (kernel_height, kernel_width), stride, padding, count_include_pad=count_include_pad)

    return pool


def unfold(
    X: torch.Tensor, kernel_height: int, kernel_width: int, stride: int, padding: int, dilation: int
) -> torch.Tensor:
    """The columns with their axes apart: batch, channel, kernel row and column, window row and column."""
    kernel = (kernel_height, kernel_width)
    windows = [
        (extent + 2 * padding - dilation * (k - 1) - 1) // stride + 1
        for extent, k in zip(X.shape[2:], kernel, strict=True)
    ]
    columns = F.unfold(X, kernel, dilation=dilation, padding=padding, stride=stride)
    return columns.reshape(X.shape[0], X.shape[1], *kernel, *windows)


# -- resampling and padding


def resampling() -> Iterator[Case]:
    image: dict[str, Input] = {"X": (2, 2, 4, 3)}
    for scale in (2, 3):
        yield case(
            "upsample_nearest",
            lambda X, scale: F.interpolate(X, scale_factor=scale, mode="nearest"),
            image,
            scale=scale,
        )
    for op, mode in (("reflection_pad", "reflect"), ("replication_pad", "replicate"), ("circular_pad", "circular")):
        for padding in (1, 2):
            yield case(op, pad(mode), image, padding=padding)


def pad(mode: str) -> Callable[..., torch.Tensor]:
    return lambda X, padding: F.pad(X, (padding,) * 4, mode=mode)


# -- probabilities


def probability() -> Iterator[Case]:
    for shape in ((5,), (3, 4), (2, 3, 4)):
        yield case("softmax", lambda X: F.softmax(X, dim=-1), {"X": shape}, f"rank{len(shape)}")
        yield case("log_softmax", lambda X: F.log_softmax(X, dim=-1), {"X": shape}, f"rank{len(shape)}")
    large = 300.0 * np.array([[1.0, -1.0, 2.5], [0.0, 2.0, -3.0]])
    yield case("softmax", lambda X: F.softmax(X, dim=-1), {"X": large}, "large")
    yield case("log_softmax", lambda X: F.log_softmax(X, dim=-1), {"X": large}, "large")
    labels = np.array([2, 0, 2, 3])
    yield case("cross_entropy", lambda X, t: F.cross_entropy(X, t), {"X": (4, 5), "t": labels})
    ignored = np.array([2, -100, 4, -100, 1])
    yield case(
        "cross_entropy_ignored",
        lambda X, t, ignored: F.cross_entropy(X, t, ignore_index=ignored),
        {"X": (5, 5), "t": ignored},
        ignored=-100,
    )


# -- layers


def layers() -> Iterator[Case]:
    for shape in ((4,), (3, 4), (2, 3, 4)):
        rank = f"rank{len(shape)}"
        yield case("linear", lambda X, W, b: F.linear(X, W, b), {"X": shape, "W": (5, 4), "b": (5,)}, rank)
        yield case(
            "layer_norm",
            lambda X, gain, bias: F.layer_norm(X, X.shape[-1:], gain, bias),
            {"X": shape, "gain": (4,), "bias": (4,)},
            rank,
        )
    tokens = np.array([[1, 0, 1], [4, 1, 2]])
    yield case("embedding", lambda E, t: F.embedding(t, E), {"E": (6, 3), "t": tokens})


# -- attention: more values than keys in depth, more keys than queries where nothing is causal


def attention() -> Iterator[Case]:
    for note, queries, keys in (("square", 4, 4), ("wide", 3, 5)):
        inputs: dict[str, Input] = {"Q": (2, 2, queries, 3), "K": (2, 2, keys, 3), "V": (2, 2, keys, 4)}
        yield case("attention", lambda Q, K, V: F.scaled_dot_product_attention(Q, K, V), inputs, note)
    for length in (1, 4):
        inputs = {"Q": (2, 2, length, 3), "K": (2, 2, length, 3), "V": (2, 2, length, 4)}
        yield case(
            "causal_attention",
            lambda Q, K, V: F.scaled_dot_product_attention(Q, K, V, is_causal=True),
            inputs,
            f"length{length}",
        )


# -- products, whose derivative must not divide by a factor


def product() -> Iterator[Case]:
    row = np.array([1.5, -2.0, 0.5, 3.0, -0.75])
    zeros = {"none": [], "first": [0], "middle": [2], "two": [1, 3], "all": [0, 1, 2, 3, 4]}
    for note, places in zeros.items():
        factors = np.stack([row, row[::-1] + 0.25])
        factors[0, places] = 0.0
        yield case("prod", lambda X: torch.prod(X, dim=-1), {"X": factors}, f"{note}_zero")
        yield case("cumprod", lambda X: torch.cumprod(X, dim=-1), {"X": factors}, f"{note}_zero")


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "attention": attention,
    "convolution": convolution,
    "layers": layers,
    "pooling": pooling,
    "probability": probability,
    "product": product,
    "resampling": resampling,
}


def random(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Normal numbers in steps of 1/256: few bits, so that the files stay small."""
    return np.asarray(np.round(generator.standard_normal(shape) * 256) / 256)


def answers(row: Case) -> dict[str, Array]:
    """Everything a test needs of one case. The seed is the case's own, so that a new row changes no other."""
    generator = np.random.default_rng(zlib.crc32(row.name.encode()))
    arrays = {
        name: random(generator, value) if isinstance(value, tuple) else value for name, value in row.inputs.items()
    }
    tensors = {name: torch.tensor(array, requires_grad=array.dtype.kind == "f") for name, array in arrays.items()}
    output = row.function(**tensors, **row.options)
    seed = random(generator, tuple(output.shape))
    wanted = {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}
    gradients = torch.autograd.grad(output, list(wanted.values()), torch.tensor(seed))
    stored = {"op": np.array(row.op)}
    stored |= {f"option/{name}": np.array(value) for name, value in row.options.items()}
    stored |= {f"input/{name}": array for name, array in arrays.items()}
    stored |= {f"output/{row.output}": output.detach().numpy(), f"seed/{row.output}": seed}
    stored |= {f"grad/{name}": gradient.numpy() for name, gradient in zip(wanted, gradients, strict=True)}
    return {f"{row.name}/{key}": np.asarray(array, order="C") for key, array in stored.items()}


def main() -> None:
    torch.set_num_threads(1)
    for family, rows in FAMILIES.items():
        stored: dict[str, Array] = {}
        cases = list(rows())
        for row in cases:
            new = answers(row)
            assert not stored.keys() & new.keys(), f"two cases are called {row.name}"
            stored |= new
        path = FOLDER / f"{family}.npz"
        np.savez_compressed(path, **stored)
        print(f"{path.name}: {len(cases)} cases, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
