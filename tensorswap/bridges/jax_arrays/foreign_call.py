"""XLA's foreign function interface from Python: a handler that reads frames of arguments by their layout in memory.

XLA keeps the layout of these structures from version to version and only adds to their ends, so the parts that stand
here are enough. Arguments and results are plain memory: no array of JAX's is made while XLA waits for the handler, which
could wait for XLA in turn.
"""

from __future__ import annotations

import _thread
import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array

METADATA, EXECUTE, MAJOR = 1, 3, 0
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
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class Buffers(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("items", ctypes.POINTER(ctypes.POINTER(Buffer))),
    )


class Text(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Attributes(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", ctypes.POINTER(ctypes.POINTER(Text))),
        ("items", ctypes.POINTER(ctypes.POINTER(Text))),
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


HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Frame))


class Place:
    """Where an array will be: its shape and type, known when code is compiled."""

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.memory = ctypes.c_char * (math.prod(self.shape) * self.dtype.itemsize)

    def array(self, buffer: Any) -> Array:
        """The memory of a buffer."""
        if not ctypes.sizeof(self.memory):
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, self.memory.from_address(buffer.contents.data))


@dataclass(frozen=True)
class Target:
    """What a frame asks for, by a text among its attributes."""

    run: Callable[[list[Array]], Sequence[Array]]
    arguments: tuple[Place, ...]
    results: tuple[Place, ...]


TARGETS: dict[bytes, Target] = {}


def _handle(pointer: Any) -> int | None:
    frame = pointer.contents
    if frame.extension and frame.extension.contents.type == METADATA:
        return _tell_version(frame)
    if frame.stage != EXECUTE:
        return None
    try:
        named = frame.attributes.items[0].contents
        target = TARGETS[ctypes.string_at(named.start, named.length)]
        given, made = frame.arguments.items, frame.results.items
        results = target.run([place.array(given[k]) for k, place in enumerate(target.arguments)])
        for k, (place, result) in enumerate(zip(target.results, results, strict=True)):
            np.copyto(place.array(made[k]), result, casting="same_kind")
    except KeyboardInterrupt:
        _thread.interrupt_main()  # XLA takes no exceptions: the main thread hears it when XLA has returned
        return _error(frame, CANCELLED, "interrupted")
    except BaseException as error:  # whatever it is, XLA must hear of it
        return _error(frame, INVALID_ARGUMENT, f"{type(error).__name__}: {error}")
    return None


def _tell_version(frame: Any) -> None:
    """The version is that of the caller, as long as its structures begin like those above."""
    told, own = frame.extension.contents.metadata.contents, frame.interface.contents.version
    told.version.major, told.version.minor = (own.major, own.minor) if own.major == MAJOR else (MAJOR, 1)


def _error(frame: Any, code: int, message: str) -> int | None:
    text = message.encode()
    asked = ErrorArguments(ctypes.sizeof(ErrorArguments), None, text, code)
    made: int | None = frame.interface.contents.create_error(ctypes.byref(asked))
    return made


handler = HANDLER(_handle)
