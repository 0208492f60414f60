"""Kernels as texts for people: LLVM's code after its passes, and assembly."""

from __future__ import annotations

from ..kernel import llvm
from ..kernel.effort import effort_of
from ..language.render import statement as show
from ..lower.kernel import Lowered
from . import machine_code
from .execute import Executable
from .launch import launch


def machine_text(made: Executable, stage: str) -> str:
    """`llvm` or `asm`, kernel after kernel, each under the statements that it runs."""
    comment = "; " if stage == "llvm" else "# "
    note = f"{comment}at these sizes numpy's matrix product runs instead\n\n" if made.products else ""
    return note + "\n".join(_kernel(number, kernel, stage, comment) for number, kernel in enumerate(made.kernels, 1))


def _kernel(number: int, kernel: Lowered, stage: str, comment: str) -> str:
    head = [f"kernel {number}", *(show(statement) for statement in kernel.nest.statements)]
    texts = []
    for text in llvm.texts(*llvm.entry(kernel.kernel), launch, machine_code.target()):
        with machine_code.optimised(text) as best, machine_code.machine(effort_of(text)) as machine:
            texts.append(str(best) if stage == "llvm" else machine.emit_assembly(best))
    return "\n".join([*(comment + line for line in head), *texts])
