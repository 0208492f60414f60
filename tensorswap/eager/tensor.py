"""Values as objects: each holds its value, its gradient once `backward` has run, and what it was computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ..errors import ArgumentError, ShapeError

# What `uses` says of a tensor outside of a backward pass; during one it counts the uses that are still to come.
OPEN = 0  # computed from others: backward goes on through it
LEAF = -1  # made by a user: its gradient is kept and added to
SPENT = -2  # backward has been through it, and what it was computed from is forgotten
CONSTANT = -3  # integers, and what `detach` gives: no gradient

# What tensors can do, by name. The functions are made of tensors and come after them: dispatch.py has the table.
OPERATIONS: dict[str, Callable[..., Any]] = {}

Pull = Callable[[Any], Sequence[Any]]


def _method(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *arguments: Any, **settings: Any) -> Any:
        return OPERATIONS[name](self, *arguments, **settings)

    method.__name__ = name
    return method


def _operator(name: str) -> Callable[[Tensor, Any], Tensor]:
    return lambda self, other: OPERATIONS[name](self, other)


def _reflected(name: str) -> Callable[[Tensor, Any], Tensor]:
    """The operator for a tensor on the right of something else."""
    return lambda self, other: OPERATIONS[name](other, self)


class Tensor:
    """A number or an array that remembers how it was computed. Made by `ts.tensor`, and by computing with tensors.

    Of the two kinds `Scalar` is one Python float, and fast; `Array` is everything else. `parents` and `pull` of an
    Array, and the links of a Scalar, lead back to the tensors that it was computed from.
    """

    __slots__ = ("grad", "uses", "value")

    value: Any  # an ndarray, a numpy number, or a Python float
    grad: Any  # None until backward has reached it; then like the value
    uses: int

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.value)

    @property
    def ndim(self) -> int:
        return np.ndim(self.value)

    @property
    def size(self) -> int:
        return int(np.size(self.value))

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(self.value)

    def backward(self, seed: Any = None) -> None:
        """Fills `.grad` of everything that this was computed from; adds to it on tensors made by `ts.tensor`.

        The seed is the gradient of this tensor itself: 1 for a single number, and needed for any other shape. The way
        back is forgotten as it is gone, so that memory becomes free; compute again to go again.
        """
        OPERATIONS["backward"](self, seed)

    def zero_grad(self) -> None:
        self.grad = None

    def detach(self) -> Tensor:
        """The same value as a constant: no gradient goes through it."""
        made: Tensor = OPERATIONS["constant"](self.value)
        return made

    def item(self) -> float | int | bool:
        """The value as a plain Python number."""
        if self.size != 1:
            raise ShapeError(f"a tensor of shape {self.shape} is not one number", hint="choose an element: t[0].item()")
        number: float | int | bool = np.asarray(self.value).item()
        return number

    def __float__(self) -> float:
        return float(self._single("float"))

    def __bool__(self) -> bool:
        return bool(self._single("bool"))

    def _single(self, wanted: str) -> Any:
        if self.shape:
            hint = "compare it, then ask numpy: (t > 0).all()" if wanted == "bool" else "choose an element: t[0]"
            raise ShapeError(f"a tensor of shape {self.shape} is not one number, as {wanted}(...) needs", hint=hint)
        return self.value

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a single number has no length", hint="tensors of one or more axes have one")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        value = self.value
        text = (
            repr(value)
            if type(value) is float
            else np.array2string(np.asarray(value), separator=", ", prefix="tensor(")
        )
        kind = "" if self.dtype == np.float64 else f", dtype={self.dtype}"
        grad = f", grad={float(self.grad)!r}" if not self.shape and self.grad is not None else ""
        return f"tensor({text}{kind}{grad})"

    def __reduce__(self) -> tuple[Any, ...]:  # a copy has the value, not the way back
        return OPERATIONS["constant" if self.uses == CONSTANT else "tensor"], (self.value,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ArgumentError("a tensor is no plain array", hint="use t.value, through which no gradient goes")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        return OPERATIONS["ufunc"](ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        return OPERATIONS["function"](function, arguments, settings)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise ArgumentError("a tensor keeps its elements", hint="compute another: np.where, np.concatenate or ts.apply")

    def __pos__(self) -> Tensor:
        return self

    @property
    def T(self) -> Tensor:  # noqa: N802  # numpy's name
        turned: Tensor = OPERATIONS["transpose"](self)
        return turned

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _operator("remainder"), _reflected("remainder")
    __pow__, __rpow__ = _operator("power"), _reflected("power")
    __matmul__, __rmatmul__ = _operator("matmul"), _reflected("matmul")
    __getitem__, __neg__, __abs__ = _operator("getitem"), _method("negative"), _method("absolute")

    # A comparison has no derivative: it gives a plain truth value, or an array of them.
    __lt__, __le__ = _method("less"), _method("less_equal")
    __gt__, __ge__ = _method("greater"), _method("greater_equal")

    def __eq__(self, other: object) -> Any:
        return OPERATIONS["equal"](self, other)

    def __ne__(self, other: object) -> Any:
        return OPERATIONS["not_equal"](self, other)

    __hash__ = object.__hash__  # `==` compares values, a set or a dict still tells tensors apart

    # The functions that are most used; numpy's own (np.sin(t)) and those of `tensorswap.eager` do the same.
    exp, log, sqrt, sin, cos = _method("exp"), _method("log"), _method("sqrt"), _method("sin"), _method("cos")
    tanh, relu, sigmoid, gelu = _method("tanh"), _method("relu"), _method("sigmoid"), _method("gelu")
    sum, mean, prod = _method("sum"), _method("mean"), _method("prod")
    max, min = _method("max"), _method("min")

    def reshape(self, *shape: Any) -> Tensor:
        made: Tensor = OPERATIONS["reshape"](self, shape[0] if len(shape) == 1 else shape)
        return made

    def transpose(self, *axes: Any) -> Tensor:
        made: Tensor = OPERATIONS["transpose"](self, (axes[0] if len(axes) == 1 else axes) or None)
        return made


class Array(Tensor):
    """A tensor computed by a numpy call or a program. `pull` turns its gradient into those of its parents."""

    __slots__ = ("parents", "pull")

    parents: tuple[Tensor, ...]
    pull: Pull | None
