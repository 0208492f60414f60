"""XLA's foreign function interface from Python: a handler that reads frames of arguments by their layout in memory.

XLA keeps the layout of these structures from version to version and only adds to their ends, so the first parts of them
are enough. Arguments and results are plain memory: no array of JAX's is made while XLA waits for the handler, since its
maker could wait for XLA in turn.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import ArgumentError

METADATA, EXECUTE = 1, 3
MAJOR, FIRST = 0, 1  # the version of the interface, and the first of its additions that handlers were asked for
INVALID_ARGUMENT, CANCELLED = 3, 1


class Version(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    )


class Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", Version), ("traits", ctypes.c_uint32))


class Extension(ctypes.Structure):
    """Of all extensions, the one that asks for the version that a handler is made for."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(Metadata)),
    )


class ErrorArguments(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    )


CREATE_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ErrorArguments))


class Interface(ctypes.Structure):
    """The first of the functions that XLA offers."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("version", Version),
        ("internal", ctypes.c_void_p),
        ("create_error", CREATE_ERROR),
    )


class Buffer(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
    )


class Buffers(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("items", ctypes.c_void_p),  # of the addresses of buffers
    )


class Text(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Attributes(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("items", ctypes.c_void_p),  # of the address of a text: there is but one attribute
    )


class Frame(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.POINTER(Extension)),
        ("interface", ctypes.POINTER(Interface)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", Buffers),
        ("results", Buffers),
        ("attributes", Attributes),
    )


HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
DATA = Buffer.data.offset

address_at = ctypes.c_size_t.from_address


class Place:
    """Where an array will be: its shape and type, known when code is compiled."""

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.memory = ctypes.c_char * (math.prod(self.shape) * self.dtype.itemsize)

    def array(self, buffer: int) -> Array:
        """The memory of the buffer at an address."""
        if not ctypes.sizeof(self.memory):
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, self.memory.from_address(address_at(buffer + DATA).value))


@dataclass(frozen=True)
class Target:
    """What a frame asks for, by a text among its attributes."""

    run: Callable[[list[Array]], Sequence[Array]]
    arguments: tuple[Place, ...]
    results: tuple[Place, ...]


TARGETS: dict[bytes, Target] = {}


def _handle(address: int) -> int | None:
    """Whatever goes wrong, XLA must hear of it as an error of its own: no exception may leave this function."""
    frame = Frame.from_address(address)
    try:
        if frame.extension and frame.extension.contents.type == METADATA:
            _tell_version(frame)
        elif frame.stage == EXECUTE:
            _execute(frame)
    except KeyboardInterrupt:
        return _error(frame, CANCELLED, "interrupted")
    except BaseException as error:
        return _error(frame, INVALID_ARGUMENT, f"{type(error).__name__}: {error}")
    return None


def _execute(frame: Any) -> None:
    named = Text.from_address(address_at(frame.attributes.items).value)
    target = _target(ctypes.string_at(named.start, named.length))
    results = target.run(_arrays(target.arguments, frame.arguments.items))
    for array, result in zip(_arrays(target.results, frame.results.items), results, strict=True):
        np.copyto(array, result, casting="same_kind")


def _target(key: bytes) -> Target:
    if key not in TARGETS:
        raise ArgumentError(
            "compiled code of another process calls a program that this one has not seen",
            hint="run the function that calls it through jax.jit here, too",
        )
    return TARGETS[key]


def _arrays(places: Sequence[Place], items: int) -> list[Array]:
    buffers = (ctypes.c_size_t * len(places)).from_address(items) if places else ()
    return [place.array(buffer) for place, buffer in zip(places, buffers, strict=True)]


def _tell_version(frame: Any) -> None:
    """The version of the caller, as long as its structures begin like those above; an early caller does not tell."""
    told = frame.extension.contents.metadata.contents.version
    own = frame.interface.contents.version if frame.interface else None
    told.major, told.minor = (own.major, own.minor) if own is not None and own.major == MAJOR else (MAJOR, FIRST)


def _error(frame: Any, code: int, message: str) -> int | None:
    text = message.encode()
    asked = ErrorArguments(ctypes.sizeof(ErrorArguments), None, text, code)
    made: int | None = frame.interface.contents.create_error(ctypes.byref(asked))
    return made


handler = HANDLER(_handle)
