"""The types of arrays, as hints name them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
