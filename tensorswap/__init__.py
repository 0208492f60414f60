"""tensorswap: index-loop statements, and their derivatives as programs of the same language."""

from typing import TYPE_CHECKING

from .lazy import METHODS, import_when_asked

if TYPE_CHECKING:
    from .backslash import backslash, path_weights
    from .bridges import jax as jax
    from .bridges import torch as torch
    from .debug import debug
    from .eager.apply import apply
    from .eager.custom import Function, register
    from .eager.define import define
    from .eager.make import tensor
    from .eager.products import einsum
    from .eager.tensor import Tensor
    from .errors import SwapError, SwapWarning
    from .gradcheck import gradcheck
    from .library import ops
    from .notebook.loop_magic import load_ipython_extension as load_ipython_extension
    from .program import Program, load, program
    from .training.fit import fit
    from .training.step import step

__all__ = [
    "Function",
    "Program",
    "SwapError",
    "SwapWarning",
    "Tensor",
    "apply",
    "backslash",
    "debug",
    "define",
    "einsum",
    "fit",
    "gradcheck",
    "load",
    "ops",
    "path_weights",
    "program",
    "register",
    "step",
    "tensor",
]
__version__ = "0.2.0"

_PLACES = {  # the same as above, for those who run it: a name costs its import when it is first used
    "backslash": "backslash path_weights",
    "bridges": "jax torch",
    "debug": "debug",
    "eager.apply": "apply",
    "eager.custom": "Function register",
    "eager.define": "define",
    "eager.make": "tensor",
    "eager.products": "einsum",
    "eager.tensor": "Tensor",
    "errors": "SwapError SwapWarning",
    "gradcheck": "gradcheck",
    "library": "ops",
    "notebook.loop_magic": "load_ipython_extension",
    "program": "Program load program",
    "training.fit": "fit",
    "training.step": "step",
}
METHODS |= {
    name: (f"{__name__}.{place}", name)
    for name, place in {
        "flat": "teaching.flat",
        "jacobian": "teaching.jacobian",
        "shard": "cluster.sharded",
        "train": "cluster.steps_in_shards",
        "within": "budget.within",
        "shards_of_step": "budget.training_steps",
        "program_page": "notebook.shown_program",
        "plan_page": "notebook.shown_plan",
        "history_page": "notebook.shown_training",
        "result_page": "notebook.shown_training",
    }.items()
}
import_when_asked(__name__, {name: place for place, names in _PLACES.items() for name in names.split()})
