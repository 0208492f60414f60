"""tensorswap: index-loop statements, and their derivatives as programs of the same language."""

from .einsum import einsum
from .errors import SwapError
from .gradcheck import gradcheck
from .library import ops
from .program import Program, load, program
from .training.fit import fit
from .training.step import step

__all__ = ["Program", "SwapError", "einsum", "fit", "gradcheck", "load", "ops", "program", "step"]
__version__ = "0.1.0"
