"""Object code -> an address in memory, by llvmlite alone: who finds its kernels on disk does not wait for Numba."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding


@cache
def _engine() -> Any:
    """Links object code. What it holds stays in memory for as long as the process lives."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


def link(objects: list[bytes], symbol: str) -> int:
    """Where a function of these objects lies in memory."""
    engine = _engine()
    for code in objects:
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return int(engine.get_function_address(symbol))
