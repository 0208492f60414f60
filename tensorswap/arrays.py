"""The types of arrays, as hints name them. They are numpy.typing's, whose import costs more than it says."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]
Integers = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
Mask = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
Words = np.ndarray[tuple[Any, ...], np.dtype[np.uint64]]
Doubles = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
