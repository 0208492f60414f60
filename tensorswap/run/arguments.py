"""A call's arguments -> clean arrays with sizes that agree, or an error that says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, DtypeError, Fault, ShapeError
from ..language import ir
from ..language.bound import Bound
from ..language.hints import closest
from ..language.options import each_part
from ..language.render import access as show_access
from ..language.sizes import SizeRules, Sizes, infer, resolve
from ..language.types import Kind
from ..rules.activity import integer_uses
from ..rules.batch import expand_batch
from ..rules.expand import expand

BYTES = 2**46  # a result beyond this is a mistake, and is refused before anything is allocated

POINTS = 2**48  # values of an index, for which a kernel would need days


@dataclass(frozen=True)
class Outline:
    """What is known of an array before there is one. Its sizes may be symbols that compute as integers do."""

    shape: tuple[Any, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)


def outlines(loops: ir.Loops, arguments: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Outline]:
    """The outputs (or the tensors named) of a call with outlines as arrays, and every check that needs no elements."""

    def read(name: str, value: Any) -> Any:
        if not isinstance(value, Outline):
            return as_array(name, value)
        check_dtype(name, value.dtype)
        return value

    bound = bind(loops, arguments, read)
    kinds = {name: bound.types.tensors[name] for name in (loops.outputs if names is None else names)}
    return {
        name: Outline(bound.sizes.shapes[name], bound.dtype if kind.weak and kind.dtype.kind == "f" else kind.dtype)
        for name, kind in kinds.items()
    }


def bind(loops: ir.Loops, arguments: Mapping[str, Any], read: Callable[[str, Any], Array] | None = None) -> Bound:
    """Sorts a call's arguments into arrays, static integers and sizes, and checks all of them."""
    loops = expand(loops)
    arguments = each_part(loops, arguments)
    standing = defaults(loops)
    unknown = [n for n in arguments if n not in {*loops.inputs, *loops.static_names, *loops.indices, *loops.known}]
    missing = [n for n in loops.inputs if n not in arguments and n not in standing]
    statics: dict[str, int] = {}
    faults = [_unknown(loops, name, missing) for name in unknown]
    offered = {name for name in missing for fault in faults if fault.hint == f"did you mean `{name}`?"}
    faults += [
        Fault(f"the input {name} is missing", None, f"pass it: {_usage(loops, name)}")
        for name in missing
        if name not in offered
    ]
    open_names = [n for n in loops.static_names if n not in arguments and n not in loops.static_defaults]
    options = {part: name for name, parts in loops.options.items() for part in parts}
    faults += [
        Fault(f"the static integer {name} is missing", None, f"pass it: p(..., {name}=1)")
        for name in dict.fromkeys(options.get(name, name) for name in open_names)
    ]
    if faults:
        raise ArgumentError(faults)
    given: dict[str, int] = {}
    for name, value in arguments.items():
        if name in loops.static_names:
            statics[name] = _whole(name, value, "static integer")
        elif name in loops.indices:
            given[name] = _whole(name, value, "size of index")
    for name, default in loops.static_defaults.items():  # one that follows another stands behind it
        statics.setdefault(name, statics[default] if isinstance(default, str) else default)
    raw = {name: arguments.get(name, standing.get(name)) for name in loops.inputs}
    outlined, read = read is not None, read or as_array
    arrays = {name: read(name, value) for name, value in raw.items()}
    known = {name: value for name, value in arguments.items() if name in loops.known and name not in arrays}
    everything = {**{n: read(n, v) for n, v in known.items() if loops.known[n] is not None}, **arrays}
    loops = expand_batch(loops, {name: array.ndim for name, array in everything.items()})
    _check_ranks(loops, arrays)
    _check_integers(loops, arrays)
    rules: SizeRules = infer(loops, frozenset(given))
    sizes = resolve(loops, rules, {n: a.shape for n, a in arrays.items()}, statics, given)
    if not outlined:  # nothing is made of an outline, and a symbol for a size is not to be asked how large it is
        _check_extent(loops, sizes)
    plain = {name for name, value in {**raw, **known}.items() if type(value) in (bool, int, float)}
    floats = [a.dtype for name, a in everything.items() if a.dtype.kind == "f" and name not in plain]
    dtype = np.result_type(*floats) if floats else np.dtype(np.float64)
    kinds = {name: Kind(array.dtype, name in plain) for name, array in arrays.items()}
    return Bound(loops, arrays, kinds, sizes, dtype)


def merged(mapping: Mapping[str, Any] | None, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call's arguments, by name: given in a mapping, as keywords, or both."""
    if type(mapping) is dict and not arrays:  # the usual case, where microseconds count
        return mapping
    if mapping is not None and not isinstance(mapping, Mapping):
        raise ArgumentError(
            f"a call takes a mapping of names to arrays, not {type(mapping).__name__}", hint='p(X=x) or p({"X": x})'
        )
    if mapping is None:
        return arrays
    if not arrays:
        return mapping
    merged = dict(mapping)
    double = next((name for name in arrays if name in merged), None)
    if double:
        raise ArgumentError(f"{double} is given twice", hint="give it in the mapping or as a keyword")
    return {**merged, **arrays}


def defaults(loops: ir.Loops) -> dict[str, float]:
    """The scalars that a call may leave out."""
    arguments = loops.header.arguments if loops.header else ()
    return {
        a.name: a.default
        for a in arguments
        if isinstance(a, ir.Argument) and not a.access.indices and a.default is not None
    }


def _usage(loops: ir.Loops, name: str) -> str:
    access = _first_access(loops, name)
    kind = "number" if access is not None and not access.indices else "array"
    call = f'p({{"{name}": {kind}}})' if "." in name else f"p(..., {name}={kind})"
    return f"{call}, read as {show_access(access)}" if access is not None and access.indices else call


def _first_access(loops: ir.Loops, name: str) -> ir.Access | None:
    """Where a program first names a tensor."""
    inner = (a for s in loops.statements for a in (*s.reads, s.target) if a.tensor == name)
    return next((a for a in loops.header_accesses if a.tensor == name), None) or next(inner, None)


def _unknown(loops: ir.Loops, name: object, missing: list[str]) -> Fault:
    if name in loops.written:
        inputs = f"the inputs are {', '.join(loops.inputs)}" if loops.inputs else "the program has no inputs"
        return Fault(f"{name} is computed by the program, not an input", None, f"{inputs}{_how_to_update(loops, name)}")
    known = [*missing, *loops.inputs, *loops.options, *loops.static_names, *loops.indices]
    hint = closest(name, known) if isinstance(name, str) else "names are texts"
    if name == "out":
        hint = "results are arrays of their own, whose memory is used again once they are dropped"
    return Fault(
        f"the program has no input {str(name)[:80]!r}",
        None,
        hint or f"its inputs are {', '.join(loops.inputs) or 'none'}",
    )


def _how_to_update(loops: ir.Loops, name: object) -> str:
    """What makes an input of a tensor that is computed from itself in each step of a block."""
    steps = (s for s, blocks in loops.located if {b.index for b in blocks} & ir.index_names(s.target))
    itself = any(s.target.tensor == name and s.target in s.reads for s in steps)
    return (
        f"; an update of an input, `{name}[i] = {name}[i] * 2`, names no index of the block around it" if itself else ""
    )


def _whole(name: str, value: Any, kind: str) -> int:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        example = int(value) if isinstance(value, float) and value.is_integer() else 1
        raise DtypeError(
            f"the {kind} {name} must be a whole number, not {type(value).__name__}", hint=f"pass {name}={example}"
        )
    if not -(2**62) < value < 2**62:
        raise ArgumentError(f"the {kind} {name} is too large")
    if kind == "size of index" and value < 0:
        raise ShapeError(f"index {name} cannot have the size {value}", hint="a size is 0 or more")
    return int(value)


SCALARS = frozenset(np.dtype(letter).type for letter in "?bBhHiIlLqQfd")  # numpy's own numbers that programs take
FINE = frozenset(np.dtype(letter) for letter in "?bBhHiIlLqQfd")  # types of arrays that need no other look


def as_array(name: str, value: Any) -> Array:
    """Anything array-like, as a numpy array of a type that programs compute with."""
    if type(value) in SCALARS:
        return np.asarray(value)
    if value is None:
        raise DtypeError(f"{name} is None", hint="pass an array or a number")
    subclass = type(value) is not np.ndarray and isinstance(value, np.ndarray)
    if subclass and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):  # an import, if nobody has masks
        raise DtypeError(f"{name} hides elements behind a mask", hint=f"give them values: {name}.filled(0)")
    try:
        array = _read(value)
    except Exception as error:  # whatever a foreign array type raises, the user hears which input it was
        if "inhomogeneous" in str(error):
            raise DtypeError(
                f"{name} is a list whose parts differ in length or depth",
                hint="every row of an array has the same length",
            ) from error
        raise DtypeError(f"{name} cannot be read as an array: {str(error)[:200]}", hint="pass a numpy array") from error
    if array.dtype in FINE:
        return array
    if isinstance(value, int):
        raise DtypeError(f"{name} is a whole number beyond 64 bits", hint=f"pass float({name}), which rounds it")
    check_dtype(name, array.dtype)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _read(value: Any) -> Array:
    if type(value).__module__ == "torch":  # as below, in half the time
        found: Array = value.numpy()
        return found
    if hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    """Refuses an array of a type that programs do not compute with."""
    kind = dtype.kind
    if (kind == "f" and dtype.itemsize in (4, 8)) or kind == "b" or (kind in "iu" and dtype.itemsize <= 8):
        return
    hints = {
        "f": f"convert it: {name}.astype(np.float32)",
        "c": f"pass two inputs, {name}.real and {name}.imag",
        "O": "a ragged list or an object array has no numeric type; pass numbers of one shape",
    }
    raise DtypeError(
        f"{name} has dtype {dtype}, which programs do not compute with",
        hint=hints.get(kind, "use float32, float64, an integer type or bool"),
    )


def _check_ranks(loops: ir.Loops, arrays: Mapping[str, Array]) -> None:
    faults = []
    for name, array in arrays.items():
        rank = loops.ranks.get(name)
        if rank is None or rank == array.ndim:
            continue
        access = _first_access(loops, name)
        assert access is not None, "a tensor with a rank stands somewhere"
        wanted = "a scalar" if rank == 0 else f"an array with {rank} {'axis' if rank == 1 else 'axes'}"
        hint = f"pass {wanted}" if rank else "pass a number, or give it indices in the program"
        faults.append(
            Fault(f"{show_access(access)} needs {wanted}; the array given has shape {array.shape}", access.span, hint)
        )
    if faults:
        raise ShapeError(faults)


def _check_integers(loops: ir.Loops, arrays: Mapping[str, Array]) -> None:
    """What stands inside a bracket, or among the arguments of a random function, holds integers."""
    faults = [
        Fault(
            f"{name} is used as an integer, but has dtype {arrays[name].dtype}",
            access.span,
            f"pass integers: {name}.astype(np.int64)" if access.indices else f"pass a whole number: {name}=1",
        )
        for name, access in integer_uses(loops).items()
        if name in arrays and arrays[name].dtype.kind not in "iu"
    ]
    if faults:
        raise DtypeError(faults)


def _check_extent(loops: ir.Loops, sizes: Sizes) -> None:
    """Refuses what no memory holds and no array has, even if an axis of size 0 leaves nothing of it."""
    for name in loops.written:
        shape = sizes.shapes[name]
        if math.prod(extent for extent in shape if extent) * 8 >= BYTES:
            raise ShapeError(
                f"{name} would have the shape {shape}, more than any memory holds", hint="check the sizes given"
            )
    for name, size in sizes.index.items():
        if size >= POINTS:
            raise ShapeError(f"index {name} would have the size {size}", hint="check the sizes given")
