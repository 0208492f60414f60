"""Data with something to learn in it, for any sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .twin import Arrays, Sizes

Generator = np.random.Generator


def classes(sizes: Sizes, dtype: np.dtype[Any], generator: Generator) -> Arrays:
    """Points around one centre for each class."""
    label = generator.integers(sizes["classes"], size=sizes["examples"])
    centres = generator.standard_normal((sizes["classes"], sizes["inputs"]))
    x = centres[label] + generator.standard_normal((sizes["examples"], sizes["inputs"]))
    return {"x": x.astype(dtype), "label": label}


def images(sizes: Sizes, dtype: np.dtype[Any], generator: Generator) -> Arrays:
    """A pattern for each class, with noise."""
    shape = (sizes["channels"], sizes["pixels"], sizes["pixels"])
    label = generator.integers(sizes["classes"], size=sizes["examples"])
    patterns = generator.standard_normal((sizes["classes"], *shape))
    image = patterns[label] + generator.standard_normal((sizes["examples"], *shape))
    return {"image": image.astype(dtype), "label": label}


def text(sizes: Sizes, dtype: np.dtype[Any], generator: Generator) -> Arrays:
    """Characters of which each is one of a few that follow the one before, and where the windows start."""
    tokens = np.cumsum(generator.integers(-1, 3, size=sizes["characters"])) % sizes["kinds"]
    start = generator.integers(sizes["characters"] - sizes["length"], size=sizes["examples"])
    return {"tokens": tokens, "start": start}
