"""The public name of teaching/jacobian."""

from .teaching.jacobian import *  # noqa: F403  # its __all__
