"""Object code -> an address in memory, by llvmlite alone: who finds its kernels on disk does not wait for Numba."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding

from .cache import ObjectCode
from .objects import for_ever


@cache
def _engine() -> Any:
    """Links object code. What it holds stays in memory for as long as the process lives."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)
    return for_ever(binding.create_mcjit_compiler(binding.parse_assembly(""), machine))


linked: set[str] = set()  # names of objects that are in memory, whichever kernel brought them


def link(made: ObjectCode) -> int:
    """Where a function lies in memory."""
    assert linked.issuperset(made.others), "functions that kernels share are linked first"
    engine = _engine()
    new = [name for name in made.objects if name not in linked]
    for name in new:
        engine.add_object_file(binding.ObjectFileRef.from_data(made.objects[name]))
    engine.finalize_object()
    linked.update(new)
    return int(engine.get_function_address(made.symbol))
