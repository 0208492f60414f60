"""Many small arrays in one file: an array in an .npz of its own costs more than its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FLAT = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}


def save(path: Path, arrays: dict[str, Array], texts: dict[str, str]) -> None:
    kinds = {name: "f" if array.dtype.kind == "f" else "i" for name, array in arrays.items()}
    flat = {
        kind: np.concatenate([np.zeros(0), *(a.ravel() for n, a in arrays.items() if kinds[n] == kind)]).astype(dtype)
        for kind, dtype in FLAT.items()
    }
    index = {name: [kinds[name], *array.shape] for name, array in arrays.items()}
    np.savez_compressed(path, index=np.array(json.dumps({"arrays": index, "texts": texts})), **flat)


def load(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    with np.load(path) as stored:
        index = json.loads(str(stored["index"]))
        flat = {kind: stored[kind] for kind in FLAT}
    start = dict.fromkeys(FLAT, 0)
    arrays = {}
    for name, (kind, *shape) in index["arrays"].items():
        end = start[kind] + int(np.prod(shape))
        arrays[name] = flat[kind][start[kind] : end].reshape(shape)
        start[kind] = end
    return arrays, index["texts"]
