"""Teaching: other ways to see a derivative, and to get one. They stand on the core, which knows nothing of them: a
program gets the methods `flat` and `jacobian` from here."""

from ..program import METHODS
from .flat import flat
from .jacobian import jacobian

METHODS |= {"flat": flat, "jacobian": jacobian}
