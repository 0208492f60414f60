"""Other ways to a derivative, for comparison: differences of values, and the rules of calculus on whole expressions."""

from .accuracy import ErrorTable, error_table
from .numerical import METHODS, Difference, numerical
from .swell import SwellTable, swell
from .symbolic import Symbolic, symbolic

__all__ = [
    "METHODS", "Difference", "ErrorTable", "SwellTable", "Symbolic", "error_table", "numerical", "swell", "symbolic",
]  # fmt: skip
