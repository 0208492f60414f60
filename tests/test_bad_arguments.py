"""Arguments that are wrong or unusual: the result of the plain copy with inputs unchanged, or a SwapError."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorswap as ts

Array = NDArray[Any]


def label(value: object) -> str:
    """The name of a test: the same in every run, so without the address of an object."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:30]


@dataclass(frozen=True)
class Case:
    """A program with the shapes of its inputs; `free` names the axes that may be one shorter or longer."""

    text: str
    shapes: dict[str, tuple[int, ...]]
    free: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    def arrays(self) -> dict[str, Any]:
        generator = np.random.default_rng(7)
        made = {name: generator.standard_normal(shape) for name, shape in self.shapes.items()}
        return {**made, **self.values}


CASES = {
    "product": Case("Y[i,j] += A[i,k] * B[k,j]", {"A": (2, 3), "B": (3, 4)}, "A0- A0+ B1- B1+"),
    "batched_product": Case("Y[h,i,j] += A[h,i,k] * B[h,j,k]", {"A": (2, 3, 4), "B": (2, 5, 4)}, "A1- A1+ B1- B1+"),
    "bias": Case("Y[i,o] += X[i,k] * W[o,k]\nY[i,o] += b[o]", {"X": (3, 2), "W": (4, 2), "b": (4,)}, "X0- X0+"),
    "causal": Case("S[i,j] += Q[i,k] * K[j,k] if j <= i", {"Q": (4, 3), "K": (4, 3)}, "Q0- Q0+ K0- K0+"),
    "convolution": Case("Y[i] += X[i+p] * W[p] + 0*Z[i]", {"X": (6,), "W": (3,), "Z": (4,)}, "X0+ W0- Z0-"),
    "diagonal": Case("Y[i] = X[i,i] * v[i]", {"X": (3, 3), "v": (3,)}),
    "gather": Case(
        "Y[n,d] = E[tok[n],d] * s[d]", {"E": (4, 3), "s": (3,)}, "E0+ tok0- tok0+", {"tok": np.array([3, 0, 1])}
    ),
    "reductions": Case("m[i] max= X[i,j]\nE[i,j] = exp(X[i,j] - m[i]) * w[i,j]", {"X": (3, 4), "w": (3, 4)}),
    "recurrence": Case(
        "for t:\n    H[t,b] = tanh(X[t,b] + (H[t-1,b] if t > 0 else h0[b]))", {"X": (4, 2), "h0": (2,)}, "X0- X0+"
    ),
    "update": Case("W[i,j] = W[i,j] - lr * g[i,j]", {"W": (2, 3), "g": (2, 3), "lr": ()}),
    "loss": Case("loss += (X[i,j] - T[i,j])**2 / size(i)", {"X": (3, 4), "T": (3, 4)}),
    "mixture": Case("Y[i] += a[i] * b[i] * c[i] + d[i,i]", {"a": (3,), "b": (3,), "c": (3,), "d": (3, 3)}),
    "softmax": Case("P = softmax(S)\nY[i,d] += P[i,j] * V[j,d]", {"S": (3, 4), "V": (4, 2)}, "S0- S0+ V1- V1+"),
}


def same(left: Any, right: Any) -> None:
    """Two results are bitwise equal, dtypes and shapes too."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name in left:
            same(left[name], right[name])
        return
    assert left.dtype == right.dtype
    assert left.shape == right.shape
    assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_cases_run(name: str) -> None:
    case = CASES[name]
    same(ts.program(case.text)(case.arrays()), ts.program(case.text)(**case.arrays()))


# -- shapes


@pytest.mark.parametrize("step", ["-", "+"])
@pytest.mark.parametrize(
    ("name", "tensor", "axis"),
    [(n, t, a) for n, c in CASES.items() for t, v in c.arrays().items() for a in range(np.ndim(v))],
)
def test_axis_off_by_one(name: str, tensor: str, axis: int, step: str) -> None:
    case = CASES[name]
    arrays = case.arrays()
    old = arrays[tensor]
    shorter = np.delete(old, -1, axis)
    arrays[tensor] = shorter if step == "-" else np.insert(old, 0, 0, axis)
    program = ts.program(case.text)
    if f"{tensor}{axis}{step}" in case.free.split():
        program(arrays)
        return
    with pytest.raises(ts.SwapError, match=r"has size \d"):
        program(arrays)


@pytest.mark.parametrize("shape", [(), (3,), (3, 4, 5), (0, 3), (3, 0), (0, 0), (1, 3), (3, 1)])
def test_ranks_and_empty_axes(shape: tuple[int, ...]) -> None:
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    other = np.ones((3, 2))
    if len(shape) == 2 and shape[1] == 3:
        assert program(A=np.ones(shape), B=other).shape == (shape[0], 2)
    else:
        with pytest.raises(ts.SwapError, match=r"axes|size"):
            program(A=np.ones(shape), B=other)


def test_empty_sums_are_the_identity() -> None:
    program = ts.program("s[i] += X[i,j]\nm[i] max= X[i,j]\np[i] *= X[i,j]")
    result = program(X=np.ones((2, 0)))
    assert result["s"].tolist() == [0, 0]
    assert result["m"].tolist() == [-np.inf, -np.inf]
    assert result["p"].tolist() == [1, 1]


# -- dtypes

REFUSED: dict[str, Any] = {
    "float16": np.ones(3, np.float16),
    "complex64": np.ones(3, np.complex64),
    "complex128": np.ones(3, np.complex128),
    "longdouble": np.ones(3, np.longdouble),
    "object": np.array([1, 2, 3], object),
    "fractions": np.array([Fraction(1, 2)] * 3, object),
    "text": np.array(["a", "b", "c"]),
    "bytes": np.array([b"a", b"b", b"c"]),
    "datetime": np.array(["2020-01-01"] * 3, "datetime64[D]"),
    "timedelta": np.array([1, 2, 3], "timedelta64[s]"),
    "structured": np.zeros(3, [("x", float), ("y", int)]),
    "void": np.zeros(3, "V4"),
    "none": None,
    "list_of_none": [None, None, None],
    "ragged": [[1, 2], [3], 4],
    "nested": [1, [2, 3], 4],
    "dictionary": {"a": 1},
    "set": {1.0, 2.0},
    "generator": (float(k) for k in range(3)),
    "function": len,
    "class": float,
    "text_itself": "abc",
    "bytes_itself": b"abc",
    "huge_integers": [2**70, 1, 2],
    "complex_numbers": [1j, 2, 3],
    "ellipsis": ...,
    "slice": slice(3),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_types(kind: str) -> None:
    with pytest.raises(ts.SwapError, match="X"):
        ts.program("Y[i] = X[i]")(X=REFUSED[kind])


@pytest.mark.parametrize(
    "value", [1j, "a", b"a", None, [1, 2], np.float16(1), np.complex64(1), 2**70, object()], ids=label
)
def test_refused_scalars(value: Any) -> None:
    with pytest.raises(ts.SwapError, match="x"):
        ts.program("Y = 2 * x")(x=value)


@pytest.mark.parametrize(
    "value",
    [1, 1.5, True, np.float32(1.5), np.float64(2), np.int8(3), np.uint64(4), np.array(5.0), np.bool_(1)],
    ids=label,
)
def test_accepted_scalars(value: Any) -> None:
    assert float(ts.program("Y = 2 * x")(x=value)) == 2 * float(value)


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("kind", ["float32", "float64", "bool", *INTEGERS])
def test_accepted_types_keep_their_values(kind: str) -> None:
    X = np.array([1, 0, 1], kind)
    result = ts.program("Y[i] = X[i]")(X=X)
    assert result.dtype == X.dtype
    assert result.tolist() == X.tolist()


# -- layouts


class OnlyArray:
    """Something that is no numpy array, but can become one."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array


class OnlyDlpack:
    """Something that hands over its memory by DLPack, and in no other way."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Marked(np.ndarray[Any, np.dtype[Any]]):
    """A subclass of numpy's array."""


def _strided(array: Array) -> Array:
    wide = np.full(tuple(2 * n for n in array.shape), 99, array.dtype)
    view = wide[(*(slice(None, None, 2) for _ in array.shape), ...)]
    view[...] = array
    return view


def _reversed(array: Array) -> Array:
    flip = tuple(slice(None, None, -1) for _ in array.shape)
    return array[flip].copy()[flip]


def _read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


def _unaligned(array: Array) -> Array:
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
    view = raw.view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "fortran": lambda a: np.array(a, order="F"),
    "strided": _strided,
    "reversed": _reversed,
    "read_only": _read_only,
    "unaligned": _unaligned,
    "transposed": lambda a: a.T.copy().T,
    "big_endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "subclass": lambda a: a.copy().view(Marked),
    "masked": lambda a: np.ma.array(a),
    "list": lambda a: a.tolist(),
    "tuples": lambda a: _tuples(a.tolist()),
    "array_protocol": OnlyArray,
    "dlpack": lambda a: OnlyDlpack(a.copy()),
    "memoryview": lambda a: memoryview(a.copy()),
}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_layouts(name: str, layout: str) -> None:
    case = CASES[name]
    program = ts.program(case.text)
    plain = case.arrays()
    expected = program(plain)
    given = {key: LAYOUTS[layout](np.asarray(value)) for key, value in plain.items()}
    before = {key: np.array(value.array if hasattr(value, "array") else value) for key, value in given.items()}
    same(program(given), expected)
    for key, value in given.items():
        same(np.array(value.array if hasattr(value, "array") else value), before[key])


@pytest.mark.parametrize("name", CASES)
def test_zero_strides(name: str) -> None:
    case = CASES[name]
    program = ts.program(case.text)
    broadcast = {key: np.broadcast_to(np.float64(0.5), shape) for key, shape in case.shapes.items()}
    plain = {key: value.copy() for key, value in broadcast.items()}
    same(program({**broadcast, **case.values}), program({**plain, **case.values}))
    assert all((value == 0.5).all() for value in broadcast.values())


def test_a_matrix() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # numpy would like to see np.matrix go
        X = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    same(ts.program("Y[i,j] = 2 * X[i,j]")(X=X), 2 * np.asarray(X))
    with pytest.raises(ts.SwapError, match="needs an array with 1 axis"):
        ts.program("Y[i] = X[i]")(X=X)


def test_a_mask_that_hides_something() -> None:
    """A hidden element has no value, so it must not count silently."""
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    with pytest.raises(ts.SwapError, match="X"):
        ts.program("s += X[i]")(X=masked)


def test_results_do_not_share_memory() -> None:
    X = np.arange(3.0)
    for text in ("Y[i] = X[i]", "X[i] = X[i] * 1"):
        assert not np.shares_memory(ts.program(text)(X=X), X)


class BadArray:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        raise RuntimeError("no array today")


class BadDlpack:
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("no memory today")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class NotAnArray:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return "text"


class BadLength:
    def __len__(self) -> int:
        raise ZeroDivisionError

    def __getitem__(self, key: int) -> float:
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", [BadArray, BadDlpack, NotAnArray, BadLength])
def test_foreign_arrays_that_fail(kind: type[Any]) -> None:
    with pytest.raises(ts.SwapError, match="X"):
        ts.program("Y[i] = X[i]")(X=kind())


# -- index arrays

GATHER = "Y[n,d] = E[tok[n],d]"
SCATTER = "size(H, 0) = 4\nH[tok[n]] += w[n]"


@pytest.mark.parametrize("text", [GATHER, SCATTER], ids=["gather", "scatter"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_index_types(text: str, kind: str) -> None:
    arrays = {"E": np.arange(8.0).reshape(4, 2)} if text == GATHER else {"w": np.array([1.0, 2.0, 4.0])}
    same(ts.program(text)(tok=np.array([3, 0, 3], kind), **arrays), ts.program(text)(tok=np.array([3, 0, 3]), **arrays))


@pytest.mark.parametrize("text", [GATHER, SCATTER], ids=["gather", "scatter"])
@pytest.mark.parametrize("bad", [-1, 4, -4, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63)])
def test_index_out_of_range(text: str, bad: int) -> None:
    arrays = {"E": np.ones((4, 2))} if text == GATHER else {"w": np.ones(3)}
    with pytest.raises(ts.SwapError, match=f"position {bad} of axis 0, which has size 4"):
        ts.program(text)(tok=np.array([0, bad, 1]), **arrays)


@pytest.mark.parametrize("text", [GATHER, SCATTER], ids=["gather", "scatter"])
@pytest.mark.parametrize("bad", [4, 2**32, 2**63, 2**63 + 1, 2**64 - 1])
def test_unsigned_index_out_of_range(text: str, bad: int) -> None:
    arrays = {"E": np.ones((4, 2))} if text == GATHER else {"w": np.ones(3)}
    with pytest.raises(ts.SwapError, match="of axis 0, which has size 4"):
        ts.program(text)(tok=np.array([0, bad, 1], np.uint64), **arrays)


def test_unsigned_arithmetic_does_not_wrap() -> None:
    with pytest.raises(ts.SwapError, match="of axis 0, which has size 4"):
        ts.program("Y[n] = E[tok[n]+1]")(E=np.ones(4), tok=np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize("text", [GATHER, SCATTER], ids=["gather", "scatter"])
@pytest.mark.parametrize("kind", ["float32", "float64", "bool"])
def test_index_is_no_integer(text: str, kind: str) -> None:
    arrays = {"E": np.ones((4, 2))} if text == GATHER else {"w": np.ones(3)}
    with pytest.raises(ts.SwapError, match="tok is used as an integer"):
        ts.program(text)(tok=np.array([0, 1, 1], kind), **arrays)


@pytest.mark.parametrize("factor", [-1, 1, 2, 3, 4])
@pytest.mark.parametrize("shift", [-1, 0, 1])
@pytest.mark.parametrize("value", [-1, 1, 4, 2**62, 2**63 - 1, -(2**63)])
def test_index_arithmetic_does_not_wrap(factor: int, shift: int, value: int) -> None:
    """A position beyond 64 bits must not come out inside."""
    program = ts.program(f"Y[n] = E[{factor}*tok[n]+{shift}]")
    position = factor * value + shift
    if 0 <= position < 4:
        assert program(E=np.arange(4.0), tok=np.array([value]))[0] == position
    else:
        with pytest.raises(ts.SwapError, match="axis 0, which has size 4"):
            program(E=np.arange(4.0), tok=np.array([value]))


@pytest.mark.parametrize("bad", [-1, 4, 2**63 - 1, -(2**63)])
def test_inside_leaves_bad_indices_out(bad: int) -> None:
    result = ts.program(f"{GATHER} if inside")(E=np.ones((4, 2)), tok=np.array([0, bad]))
    assert result.tolist() == [[1, 1], [0, 0]]


def test_empty_index_array() -> None:
    assert ts.program(GATHER)(E=np.ones((4, 2)), tok=np.zeros(0, np.int64)).shape == (0, 2)
    with pytest.raises(ts.SwapError, match="which has size 0"):
        ts.program(GATHER)(E=np.ones((0, 2)), tok=np.zeros(1, np.int64))


# -- static integers and sizes

STRIDED = "stride: int\nsize(i) = size(X, 0) // stride\nY[i] = X[stride*i]"


@pytest.mark.parametrize(
    "value",
    [
        2.0,
        2.5,
        True,
        "2",
        None,
        [2],
        np.float64(2),
        np.bool_(1),
        1j,
        np.array([2]),
        2**62,
        2**100,
        -(2**100),
        np.uint64(2**63),
        0,
        float("nan"),
        Fraction(2),
        object(),
    ],
    ids=label,
)
def test_wrong_static_integer(value: Any) -> None:
    with pytest.raises(ts.SwapError, match=r"stride|negative size"):
        ts.program(STRIDED)(X=np.ones(6), stride=value)


@pytest.mark.parametrize("value", [2, np.int8(2), np.uint64(2), np.array(2)], ids=label)
def test_right_static_integer(value: Any) -> None:
    assert ts.program(STRIDED)(X=np.arange(6.0), stride=value).tolist() == [0, 2, 4]


@pytest.mark.parametrize("value", [-1, -6, -(2**61), 2**61])
def test_static_integer_out_of_place(value: int) -> None:
    """A negative stride asks for negative sizes; a huge one leaves no element."""
    if value > 0:
        assert ts.program(STRIDED)(X=np.ones(6), stride=value).shape == (0,)
    else:
        with pytest.raises(ts.SwapError, match="negative size"):
            ts.program(STRIDED)(X=np.ones(6), stride=value)


@pytest.mark.parametrize("text", ["Y[i] = X[i//k]", "Y[i] = X[i%k]", "size(j) = 6 % k + 1\nY[i,j] = X[i]"])
def test_division_by_a_static_zero(text: str) -> None:
    program = ts.program(f"k: int\n{text}")
    assert program(X=np.ones(6), k=4, i=6).shape[0] == 6
    with pytest.raises(ts.SwapError, match="divides by zero"):
        program(X=np.ones(6), k=0, i=6)


@pytest.mark.parametrize("value", [-1, -(2**40), 2**62, 2**100, 2.0, True, None, "3", [3], np.float32(3)], ids=label)
def test_wrong_size_by_keyword(value: Any) -> None:
    with pytest.raises(ts.SwapError, match=r"\bi\b"):
        ts.program("Y[i] = 1.5")(i=value)


@pytest.mark.parametrize("value", [2**40, 2**50, 2**61])
def test_huge_sizes_are_refused_before_anything_is_allocated(value: int) -> None:
    for text in ("Y[i] = 1.5", "s += i + size(i)", "Y[i,j] = i + j", "Y[2*i] = 1"):
        with pytest.raises(ts.SwapError):
            ts.program(text)({"i": value, **({"j": value} if "j" in text else {})})


def test_sizes_by_keyword() -> None:
    program = ts.program("Y[i] = 2 * i")
    assert program(i=3).tolist() == [0, 2, 4]
    assert program(i=np.int64(0)).tolist() == []
    with pytest.raises(ts.SwapError, match="size 4 as given at the call but 3 on X"):
        ts.program("Y[i] = X[i]")(X=np.ones(3), i=4)


# -- names


@pytest.mark.parametrize("run", ["__call__", "run_reference"])
def test_names(run: str) -> None:
    call = getattr(ts.program("Y[i] = A[i] * B[i]"), run)
    X = np.ones(3)
    for arguments, match in [
        ({"A": X}, "the input B is missing"),
        ({}, "the input A is missing"),
        ({"A": X, "B": X, "C": X}, "no input 'C'"),
        ({"A": X, "B": X, "Y": X}, "Y is computed"),
        ({"A": X, "b": X}, "no input 'b'"),
        ({"A": X, "B": X, "": X}, "no input ''"),
        ({"A": X, "B": X, 1: X}, "no input '1'"),
        ({"A": X, "B": X, None: X}, "no input 'None'"),
        ({"A": X, "B": X, ("A",): X}, "no input"),
        ({"A": X, "B": X, "x" * 10_000: X}, "no input 'xxx"),
    ]:
        with pytest.raises(ts.SwapError, match=match):
            call(arguments)
    with pytest.raises(ts.SwapError, match="A is given twice"):
        call({"A": X}, A=X, B=X)


@pytest.mark.parametrize(
    "value", [[1, 2], (1,), 3, "A", np.ones(3), {"A"}, [("A", 1)], object(), lambda: None, True], ids=label
)
def test_not_a_mapping(value: Any) -> None:
    with pytest.raises(ts.SwapError, match="mapping"):
        ts.program("Y[i] = A[i]")(value)


# -- derivations and the rest of the surface

LOSS = "Y[i] += W[i,k] * x[k]\nloss += (Y[i] - T[i])**2\nreturn loss, Y"
NAMES: list[Any] = [
    "Q",
    "w",
    "Y.grad",
    "",
    " ",
    "i",
    "W[i]",
    "W, x",
    "W\n",
    1,
    None,
    1.5,
    b"W",
    ["W"],
    ("W",),
    object(),
    "x" * 5000,
    "loss",
]


@pytest.mark.parametrize(
    "wrt", [*([name] for name in NAMES), *NAMES, [], (), {}, ["W", 3], ["W", "Q"], [["W"]]], ids=label
)
def test_wrong_wrt(wrt: Any) -> None:
    program = ts.program(LOSS)
    if wrt is not None and wrt != ["W"] and wrt != ("W",):
        for derive in (
            program.adjoint,
            program.tangent,
            lambda wrt: program.grad("loss", wrt),
            lambda wrt: program.hessian_vector("loss", wrt),
        ):
            with pytest.raises(ts.SwapError):
                derive(wrt)
        with pytest.raises(ts.SwapError):
            ts.gradcheck(program, wrt=wrt, W=np.ones((2, 3)), x=np.ones(3), T=np.ones(2))
    else:
        assert program.grad("loss", wrt).outputs


def test_wrt_is_needed() -> None:
    for derive in (ts.program(LOSS).adjoint, ts.program(LOSS).tangent):
        with pytest.raises(ts.SwapError, match="wrt"):
            derive(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("of", [*NAMES[:-1], "W", "x", "Y", [], ["Y"], ["loss", "Q"], ["Y", None]], ids=label)
def test_wrong_of(of: Any) -> None:
    program = ts.program(LOSS)
    with pytest.raises(ts.SwapError):
        program.grad(of, ["W"])
    with pytest.raises(ts.SwapError):
        program.hessian_vector(of, ["W"])
    if of is not None and of not in ("Y", ["Y"]):
        with pytest.raises(ts.SwapError):
            program.adjoint(["W"], of)


@pytest.mark.parametrize(
    "index",
    [
        "",
        " ",
        "i",
        "k",
        "W",
        "loss",
        "n n",
        "1n",
        "n+1",
        "n,m",
        "exp",
        "for",
        "size",
        "n[0]",
        "...",
        "n\n",
        "ｎ",
        "x" * 5000,
        "n.grad",
        1,
        None,
        b"n",
        ["n"],
    ],
    ids=label,
)
def test_wrong_batch_index(index: Any) -> None:
    with pytest.raises(ts.SwapError):
        ts.program(LOSS).batch(index, ["x"])


@pytest.mark.parametrize(
    "over", [["Q"], "Q", [], ["Y"], ["loss"], [1], 1, None, [None], [["x"]], ["x", "Q"], ["i"], {}], ids=label
)
def test_wrong_batch_over(over: Any) -> None:
    with pytest.raises(ts.SwapError):
        ts.program(LOSS).batch("n", over)


@pytest.mark.parametrize(
    "outputs", [["Q"], "Q", [], [1], 1, ["W"], ["loss", "Q"], [None], {}, [["loss"]], ["loss", 1], ["i"], ""], ids=label
)
def test_wrong_outputs(outputs: Any) -> None:
    with pytest.raises(ts.SwapError):
        ts.program(LOSS, outputs)
    with pytest.raises(ts.SwapError):
        ts.program("def f(X[i]) -> Y[i]:\n    Y[i] = X[i]", outputs)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "no_such_op",
        "no/such/file.loop",
        ".loop",
        "x" * 5000,
        "x" * 5000 + ".loop",
        "\x00.loop",
        "\x00",
        1,
        None,
        b"softmax",
        ["softmax"],
        Path("softmax"),
        Path("none.loop"),
        Path(),
        "../softmax",
        "softmax.loop",
        object(),
    ],
    ids=label,
)
def test_wrong_load(name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name == Path("softmax"):
        assert ts.load(name).inputs
        return
    with pytest.raises(ts.SwapError):
        ts.load(name)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"Y[i] = ", b"# nothing", b"def f(X[i]):\n    Y[i] = X[i]\n", b"\x00"]
)
def test_wrong_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "op.loop"
    path.write_bytes(content)
    with pytest.raises(ts.SwapError):
        ts.load(path)
    with pytest.raises(ts.SwapError):
        ts.load(tmp_path / "folder.loop")
    (tmp_path / "folder.loop").mkdir()
    with pytest.raises(ts.SwapError):
        ts.load(tmp_path / "folder.loop")


A, B = np.ones((2, 3)), np.ones((3, 4))


@pytest.mark.parametrize(
    ("subscripts", "operands"),
    [
        ("ij,jk->ik", ()), ("ij,jk->ik", (A,)), ("ij,jk->ik", (A, B, A)), ("ij,jk->ik", (A, A)), ("ij,jk->il", (A, B)),
        ("ij,jk->ii", (A, B)), ("ij,jk->i->k", (A, B)), ("ij;jk->ik", (A, B)), ("i1,1k->ik", (A, B)), ("ij,jk->",
            (A, 3)),
        ("ijk,jk->i", (A, B)), ("i,jk->ik", (A, B)), ("...ij...->ij", (A,)), ("..ij->ij", (A,)), ("....ij->ij", (A,)),
        ("ij->...ij...", (A,)), ("", (A,)), ("->", (A,)), (",", (A, B)), ("ij", ("ab",)), ("ij", (None,)),
        ("ii", (A,)), ("i...,i...->...", (A, B)), ("ij,ij->i\x00", (A, A)), ("é", (A,)), ("a_b", (A,)),
        ("ij,", (A,)), ("ij->i j k", (A,)), (None, (A,)), (1, (A,)), (b"i", (A,)), (["ij"], (A,)), (A, (A,)),
            ("ij->j", (np.array([["a"]]),)), ("ij" * 5000, (A,)),
        ("ij->" + "i" * 5000, (A,)), ("ij,jk->ik", ([[1], [2, 3]], B)), ("-> ij", (A,)), ("ij-ij", (A,)), ("i>j", (A,)),
    ],
    ids=label,
)  # fmt: skip
def test_wrong_einsum(subscripts: Any, operands: tuple[Any, ...]) -> None:
    with pytest.raises(ts.SwapError):
        ts.einsum(subscripts, *operands)


def test_gradcheck_arguments() -> None:
    program = ts.program("Y[i] = sin(X[i]) * c[i]")
    X = np.ones(3)
    assert ts.gradcheck(program, X=X, c=X).entries == 6
    for arguments in (
        {},
        {"X": X},
        {"X": X, "c": np.ones(4)},
        {"X": X, "c": X, "Q": X},
        {"X": None, "c": X},
        {"X": "abc", "c": X},
    ):
        with pytest.raises(ts.SwapError):
            ts.gradcheck(program, **arguments)
    with pytest.raises(ts.SwapError):
        ts.gradcheck(program, [1], X=X, c=X)
    with pytest.raises(ts.SwapError):
        ts.gradcheck("Y[i] = X[i]", X=X)
    with pytest.raises(ts.SwapError):
        ts.gradcheck(ts.program("a argmax= X[i]"), X=X)
    with pytest.raises(ts.SwapError):
        ts.gradcheck(program, X=np.array([1, 2, 3]), c=X, wrt=["X"])


def test_gradcheck_names_a_wrong_derivative() -> None:
    """A kink has no derivative: central differences disagree there."""
    with pytest.raises(ts.SwapError, match="central differences"):
        ts.gradcheck(ts.program("Y[i] = relu(X[i])"), X=np.array([1e-9, 1.0]))
