"""The public name of teaching/compare."""

from .teaching.compare import *  # noqa: F403  # its __all__
