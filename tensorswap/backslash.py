"""The public name of teaching/backslash."""

from .teaching.backslash import *  # noqa: F403  # its __all__
