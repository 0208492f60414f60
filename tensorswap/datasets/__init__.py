"""Data that comes with the package: enough to train on without a download."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..arrays import Array

FOLDER = Path(__file__).parent
TEST = 360  # images of the digits that are kept for the test


def digits() -> tuple[dict[str, Array], dict[str, Array]]:
    """Handwritten digits, 8 x 8 pixels between 0 and 1, with their labels: 1,437 to train on and 360 to test with.

    They are the test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (1998), from the
    UCI Machine Learning Repository, doi 10.24432/C50P49, under the licence CC BY 4.0; see digits.txt.
    """
    with np.load(FOLDER / "digits.npz") as stored:
        order = np.random.default_rng(0).permutation(len(stored["label"]))  # those of one writer stand together
        image = (stored["image"][order] / 16).astype(np.float32)[:, None]
        label = stored["label"][order].astype(np.int64)
    return {"image": image[:-TEST], "label": label[:-TEST]}, {"image": image[-TEST:], "label": label[-TEST:]}
