"""What an exported file does before and behind its kernels: the file holds the text of this module.

`RULES` of `write` come before it: `Kind` and the functions that join kinds, as tensorswap itself has them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..language.types import DOUBLE, INT, WEAK_FLOAT, WEAK_INT, Kind, join

# -- everything below is copied

BYTES = 2**46  # a result beyond this is a mistake, and is refused before anything is allocated


@dataclass(frozen=True)
class Signature:
    """What a call takes: `needed` and `sizes` are indices, `known` tensors tell a type, `ignored` names nothing."""

    inputs: tuple[str, ...]
    defaults: dict[str, float]
    statics: dict[str, int | None]
    needed: tuple[str, ...]
    sizes: tuple[str, ...]
    known: tuple[str, ...]
    ignored: tuple[str, ...]

    def sufficient(self, values: Mapping[str, Any]) -> bool:
        """Whether the values hold all that a call needs."""
        open_statics = [name for name, value in self.statics.items() if value is None]
        return all(name in values or name in self.defaults for name in (*self.inputs, *open_statics, *self.needed))

    def own(self, values: Mapping[str, Any]) -> dict[str, Any]:
        taken = {*self.inputs, *self.statics, *self.needed, *self.sizes}
        return {name: value for name, value in values.items() if name in taken}


def merged(mapping: Mapping[str, Any] | None, arrays: Mapping[str, Any]) -> dict[str, Any]:
    if mapping is not None and not isinstance(mapping, Mapping):
        raise ValueError(f"a call takes a mapping of names to arrays, not {type(mapping).__name__}")
    values = dict(mapping or {})
    double = next((name for name in arrays if name in values), None)
    if double is not None:
        raise ValueError(f"{double} is given twice: in the mapping and as a keyword")
    return {**values, **arrays}


class Arguments:
    """The arguments of one call, sorted and checked by name and type."""

    def __init__(self, signature: Signature, values: Mapping[str, Any]) -> None:
        check_names(signature, values)
        raw = {name: values.get(name, signature.defaults.get(name)) for name in signature.inputs}
        raw |= {name: values[name] for name in signature.known if name in values}
        self.arrays = {name: as_array(name, value) for name, value in raw.items()}
        self.plain = {name for name, value in raw.items() if type(value) in (bool, int, float)}
        self.statics = {
            name: whole(name, values[name], "static integer") if name in values else default
            for name, default in signature.statics.items()
        }
        sizes = (*signature.needed, *signature.sizes)
        self.sizes = {name: whole(name, values[name], "size of index") for name in sizes if name in values}

    @property
    def real(self) -> np.dtype[Any]:
        """The type of results that no array decides."""
        floats = [a.dtype for name, a in self.arrays.items() if a.dtype.kind == "f" and name not in self.plain]
        return np.result_type(*floats) if floats else DOUBLE

    def kind(self, name: str) -> Kind:
        return Kind(self.arrays[name].dtype, name in self.plain)

    def array(self, name: str, access: str, rank: int | None, integer: bool = False) -> Any:
        """An input that has `rank` axes (None: any number), and an integer type where it stands in brackets."""
        array = self.arrays[name]
        if rank is not None and array.ndim != rank:
            wanted = "a scalar" if rank == 0 else f"an array with {rank} {'axis' if rank == 1 else 'axes'}"
            raise ValueError(f"{access} needs {wanted}; the array given has shape {array.shape}")
        if integer and array.dtype.kind not in "iu":
            raise ValueError(f"{name} is used as an integer, but has dtype {array.dtype}")
        return array

    def leading(self, beside: Mapping[str, int]) -> tuple[int, ...]:
        """The axes that `...` stands for, given how many each tensor has beside them."""
        shapes = {}
        for name, count in beside.items():
            if name in self.arrays:
                shape = self.arrays[name].shape
                if len(shape) < count:
                    raise ValueError(f"{name} has {len(shape)} axes, fewer than its {count} beside `...`")
                shapes[name] = shape[: len(shape) - count]
        if not shapes:
            raise ValueError(f"no array shows what `...` stands for: pass {' or '.join(beside)}")
        if len(set(shapes.values())) > 1:
            told = ", ".join(f"{shape} on {name}" for name, shape in shapes.items())
            raise ValueError(f"`...` stands for the same axes everywhere, but here for {told}")
        return next(iter(shapes.values()))


def check_names(signature: Signature, values: Mapping[str, Any]) -> None:
    sizes = (*signature.needed, *signature.sizes, *signature.ignored)
    known = {*signature.inputs, *signature.statics, *sizes, *signature.known}
    takes = ", ".join(signature.inputs) or "none"
    faults = [f"there is no input {str(name)[:80]!r}; the inputs are {takes}" for name in values if name not in known]
    faults += [
        f"the input {name} is missing"
        for name in signature.inputs
        if name not in values and name not in signature.defaults
    ]
    faults += [
        f"the static integer {name} is missing"
        for name, default in signature.statics.items()
        if name not in values and default is None
    ]
    faults += [
        f"the size of index {name} is missing: nothing else tells it" for name in signature.needed if name not in values
    ]
    if faults:
        raise ValueError("\n".join(faults))


def whole(name: str, value: Any, what: str) -> int:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"the {what} {name} must be a whole number, not {type(value).__name__}")
    if not -(2**62) < value < 2**62:
        raise ValueError(f"the {what} {name} is too large")
    if what == "size of index" and not 0 <= value < BYTES:
        raise ValueError(f"index {name} cannot have the size {value}")
    return int(value)


def as_array(name: str, value: Any) -> Any:
    """Anything array-like, as a numpy array of a type that programs compute with."""
    if value is None:
        raise ValueError(f"{name} is None: pass an array or a number")
    if np.ma.is_masked(value):
        raise ValueError(f"{name} hides elements behind a mask: give them values")
    try:
        if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            array = np.from_dlpack(value)
        else:
            array = np.asarray(value)
    except Exception as error:  # whatever a foreign array type raises, the user hears which input it was
        raise ValueError(f"{name} cannot be read as an array: {str(error)[:200]}") from error
    kind, width = array.dtype.kind, array.dtype.itemsize
    if kind == "b" or (kind == "f" and width in (4, 8)) or (kind in "iu" and width <= 8):
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    raise ValueError(f"{name} has dtype {array.dtype}; use float32, float64, an integer type or bool")


# Sizes.


def axis(name: str, array: Any, place: int) -> int:
    if not -array.ndim <= place < array.ndim:
        raise ValueError(f"{name} has {array.ndim} axes; size({name}, {place}) asks for another")
    return int(array.shape[place])


def quotient(a: int, b: int, text: str) -> int:
    if b == 0:
        raise ValueError(f"`{text}` divides by zero")
    return a // b


def remainder(a: int, b: int, text: str) -> int:
    if b == 0:
        raise ValueError(f"`{text}` divides by zero")
    return a % b


def check_size(name: str, size: int) -> None:
    if size < 0:
        raise ValueError(f"index {name} would have the negative size {size}")


def check_shape(name: str, shape: tuple[int, ...]) -> None:
    if any(extent < 0 for extent in shape):
        raise ValueError(f"{name} would have the shape {shape}")
    if math.prod(shape) * 8 >= BYTES:
        raise ValueError(f"{name} would have the shape {shape}, more than any memory holds")


def check_agreement(index: str, size: int, *uses: tuple[str, int, int]) -> None:
    """One index is one range: `uses` are the tensors and axes on which it stands alone, with their extents."""
    anchor = next((f" on {name} (axis {place})" for name, place, extent in uses if extent == size), "")
    for name, place, extent in uses:
        if extent != size:
            raise ValueError(f"index {index} has size {size}{anchor} but {extent} on {name} (axis {place})")


def check_declared(text: str, actual: int, wanted: int) -> None:
    if actual != wanted:
        raise ValueError(f"{text} is {actual}, but is declared as {wanted}")


def check_range(text: str, place: int, low: int, high: int, extent: int, *loops: int) -> None:
    """The positions from `low` to `high` that an access reaches on an axis, if its loops have any point."""
    if min(loops, default=1) > 0 and not (low >= 0 and high < extent):
        raise IndexError(
            f"{text} asks for position {low if low < 0 else high} of axis {place}, which has size {extent}"
        )


def check_magnitude(text: str, most: int) -> None:
    if most >= 2**62:
        raise ValueError(f"`{text}` is computed with numbers that are too large")


def check_found(found: tuple[int, int], *faults: tuple[str, int, int]) -> None:
    """What a kernel found: 0, or the number of a fault and the position that it met there."""
    number, position = found
    if number:
        text, place, extent = faults[number - 1]
        if place == -1:
            raise ValueError(f"`{text}` divides by zero")
        if place == -2:
            raise ValueError(f"`=` writes an element of {text} more than once")
        raise IndexError(f"{text} asks for position {position} of axis {place}, which has size {extent}")


# Types.


class Kinds(dict[str, Kind]):
    """The kinds of tensors; one that nothing has written yet is a whole number."""

    def __missing__(self, name: str) -> Kind:
        return WEAK_INT

    def fill(self, name: str, kind: Kind, derivative: bool = False) -> None:
        """A statement writes values of a kind into a tensor. A derivative is a floating-point number, even if whole."""
        if derivative and kind.weak and kind.dtype.kind != "f":
            kind = WEAK_FLOAT
        self[name] = join(self[name], kind) if name in self else kind


def check_whole(text: str, kind: Kind) -> None:
    if kind.dtype.kind not in "iu":
        raise ValueError(f"{text} is used as an integer, but has dtype {kind.dtype}")


def computed(kind: Kind, real: np.dtype[Any]) -> Any:
    """The type that kernels compute numbers of a kind in: whole numbers and truth values in 64 bits."""
    if kind.dtype.kind != "f":
        return INT.type
    return real.type if kind.weak else kind.dtype.type


# Arrays for kernels, which read and write C-ordered float32, float64 and int64.


def held(array: Any) -> Any:
    wanted = array.dtype if array.dtype.kind == "f" else INT
    return np.require(array, wanted, ["C", "A"])


def updated(array: Any, kind: Kind, real: np.dtype[Any]) -> Any:
    """A copy that a program may change."""
    return np.array(array, computed(kind, real), order="C")


def started(shape: tuple[int, ...], operator: str, kind: Kind, real: np.dtype[Any]) -> Any:
    """A tensor of the identity of its operator; for whole numbers the least or greatest stands for the infinite."""
    start: float = {"*=": 1, "max=": -math.inf, "min=": math.inf, "argmax=": -1, "argmin=": -1}.get(operator, 0)
    if math.isinf(start) and kind.dtype.kind != "f":
        limits = np.iinfo(kind.dtype)
        start = limits.min if start < 0 else min(limits.max, np.iinfo(INT).max)
    return np.full(shape, start, computed(kind, real))


def finished(array: Any, kind: Kind, real: np.dtype[Any], leading: tuple[int, ...] | None = None) -> Any:
    """A tensor as the caller gets it: in its own type, with the axes that `...` stands for."""
    dtype = real if kind.weak and kind.dtype.kind == "f" else kind.dtype
    array = array.astype(dtype, copy=False)
    return array if leading is None else array.reshape(leading + array.shape[1:])


def flattened(array: Any, leading: tuple[int, ...]) -> Any:
    """The axes that `...` stands for, as one."""
    return array.reshape((math.prod(leading), *array.shape[len(leading) :]))
