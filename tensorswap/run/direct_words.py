"""What a direct call reads: words that `direct` writes and the machine code of `direct_code` looks up."""

from __future__ import annotations

from enum import IntEnum

LARGEST = 2**31  # whole numbers that every type takes as they are
CALLED = (  # functions of Python's, and of the system's library
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
    "memset",
    "memcpy",
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
    DATA = 18  # where an array has the address of its elements
    BEGUN = 19  # places in the memory that begin with something,
    STARTS = 20  # and the address of a row of Start for each
    DECIDING = 21  # results that are zero, or the others may be wrong,
    BYTES = 22  # and the address of a row of Decides for each
    SHARED = 23  # not zero: kernels run while other threads of Python do, so
    ALONE = 24  # the address of a word that is not zero in a process without the threads of its parent's,
    ACQUIRE = 25  # a callable that takes the lock of all kernels, or says that it cannot,
    ACQUIRED = 26  # what it says if it can,
    RELEASE = 27  # and one that gives it back
    EMPTY = 28  # arguments of a callable that takes none
    ARRAY = 29  # the type of arrays,
    DTYPE = 30  # and where one has the type of its elements


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

    MAKE = 0  # numpy's function, which makes one, or copies another
    AXES = 1
    SHAPE = 2
    DTYPE = 3
    LIKE = 4  # the address of what it begins with, or 0
    SIZE = 5  # bytes of that
    COPIED = 6  # the number of an argument that it begins as, or -1


class Start(IntEnum):
    """A row for a place in memory."""

    PLACE = 0  # an address
    LIKE = 1  # the address of what it begins with; 0 stands for zeros
    SIZE = 2  # bytes


class Decides(IntEnum):
    """A row for a result that decides."""

    SLOT = 0
    SIZE = 1  # bytes


class Gives(IntEnum):
    """A row for an output."""

    NAME = 0
    SLOT = 1
