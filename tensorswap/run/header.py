"""What the runner reads first."""

from __future__ import annotations

from enum import IntEnum


class Header(IntEnum):
    """The words that the runner reads first."""

    ROWS = 0  # of the table
    LINKS = 1
    WORDS = 2  # the address of the contexts as they are before a call,
    COPY = 3  # and of those that the kernels of this call get
    COUNT = 4  # of their words
    STEPS = 5
    ITEMS = 6  # where a list has the address of its items
    DATA = 7  # where an array has the address of its elements; -1 if the list holds those addresses
    CHECKED = 8  # arrays that are checked
    EXPECTED = 9  # the address of what they must be
    TYPE = 10  # where an object has its type,
    ARRAY = 11  # and the type of arrays
    AXES = 12  # where an array has these
    SHAPE = 13
    STRIDES = 14
    DTYPE = 15
    WRONG = 16  # set by the runner: whether some array is not as expected


EXPECTED = 5  # numbers that tell what one array must be, before those of each axis
