"""What a direct call reads: words that `direct` writes and the machine code of `direct_code` looks up."""

from __future__ import annotations

from enum import IntEnum

PYTHON = (  # functions of Python's that are called
    "PyTuple_GetItem",
    "PyTuple_Size",
    "PyLong_AsVoidPtr",
    "PyLong_AsLongLongAndOverflow",
    "PyFloat_AsDouble",
    "PyDict_Size",
    "PyDict_GetItemWithError",
    "PyDict_New",
    "PyDict_SetItem",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyObject_Call",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "Py_IncRef",
    "Py_DecRef",
)


class State(IntEnum):
    """The words that a direct call reads: what a call must be like, and what runs it."""

    WATCHED = 0  # the address of a word that is not zero while calls look closer
    OTHERWISE = 1  # the callable for calls of another kind
    TYPE = 2  # where an object has its type,
    DICT = 3  # and the type of dicts
    COUNT = 4  # of arguments,
    TAKEN = 5  # and the address of a row of Taken for each
    INPUTS = 6  # those of them that kernels see
    MADE = 7  # results,
    MAKES = 8  # and the address of a row of Makes for each
    MEMORY = 9  # an array for what is kept in between
    GIVES = 10  # outputs, or 0 if there is one, given without its name,
    NAMES = 11  # and the address of a row of Gives for each
    SLOTS = 12  # arrays that the runner sees
    RUNNER = 13
    TABLE = 14
    HEADER = 15
    LINKS = 16
    ITEMS = 17  # bytes from where the runner is told to look to the address of those arrays
    SHARED = 18  # not zero: kernels run while other threads of Python do, so
    ALONE = 19  # the address of a word that is not zero in a process without the threads of its parent's,
    ACQUIRE = 20  # a callable that takes the lock of all kernels, or says that it cannot,
    ACQUIRED = 21  # what it says if it can,
    RELEASE = 22  # and one that gives it back
    EMPTY = 23  # arguments of a callable that takes none


class Taken(IntEnum):
    """A row for an argument."""

    NAME = 0
    KIND = 1
    TYPE = 2  # of a number
    SLOT = 3
    CELL = 4  # the array that a number is written to, or the number that it must be
    PLACE = 5  # where that has its element


class Kind(IntEnum):
    """What an argument is, and what becomes of a number."""

    ARRAY = 0
    FIXED = 1  # part of the program
    WORD = 2
    DOUBLE = 3
    SINGLE = 4
    WHOLE_DOUBLE = 5
    WHOLE_SINGLE = 6


class Makes(IntEnum):
    """A row for a result."""

    MAKE = 0  # numpy's function
    AXES = 1
    SHAPE = 2
    DTYPE = 3


class Gives(IntEnum):
    """A row for an output."""

    NAME = 0
    SLOT = 1
