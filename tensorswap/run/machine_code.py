"""LLVM's text -> object code, on all cores at once, by Numba's code generator.

llvmlite lets one thread at a time call LLVM. What has a context and a target machine of its own needs no such lock, so
the two calls that take long, optimising and emitting, go around it. Numba would optimise everything three times; here
it is once. Numba is imported when a module is first compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import binding
from llvmlite.binding import ffi

from ..errors import TrustError
from ..kernel.effort import Effort, effort_of
from ..kernel.modules import Target
from . import tuning
from .objects import for_ever

# Loads and stores at places of their own, not as one instruction: that takes many times as long on AMD's CPUs, and on
# those of Intel whose microcode guards it, as all from Skylake to Tiger Lake do. Elsewhere it saves next to nothing.
ONE_BY_ONE = "+prefer-no-gather", "+prefer-no-scatter"
OBJECT = 1  # what LLVM emits: 0 would be assembly


@cache
def codegen() -> Any:
    """Numba's code generator: its target and its settings."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        return cpu_target.target_context.codegen()


def settings(level: int) -> dict[str, Any]:
    """Numba's settings of a target machine at one of LLVM's levels: what it runs on, and for which CPU."""
    options: dict[str, Any] = {"opt": level}
    codegen()._customize_tm_options(options)
    triple = binding.get_process_triple()
    if triple.startswith("x86_64"):
        options["features"] = ",".join(filter(None, (options.get("features"), *ONE_BY_ONE)))
    return {"triple": triple, **options}


def target_machine(triple: str, **options: Any) -> Any:
    """A target machine with these settings."""
    return binding.Target.from_triple(triple).create_target_machine(**options)


def target() -> Target:
    """What modules are compiled for here."""
    return Target(str(binding.get_process_triple()), str(codegen().target_data), f"level {tuning.level}")


_idle: dict[int, list[Any]] = {}  # target machines that no thread has, by their level


@contextmanager
def machine(effort: Effort = Effort.LOOPS) -> Iterator[Any]:
    """A target machine with Numba's settings, which no other thread has meanwhile. None is ever given up: that would
    take llvmlite's lock where a thread ends, and a fork does not wait for it."""
    wanted = 0 if effort in AT_ONCE else tuning.level
    idle = _idle.setdefault(wanted, [])
    try:
        taken = idle.pop()
    except IndexError:
        taken = for_ever(target_machine(**settings(wanted)))
    try:
        yield taken
    finally:
        idle.append(taken)


def _unlocked(name: str) -> Callable[..., Any]:
    """A function of llvmlite's library without its lock."""
    function: Callable[..., Any] = getattr(ffi.lib._lib, name)
    return function


def _check(module: Any) -> None:
    """LLVM's passes end the process where a module makes no sense. It takes a hundredth of their time to ask before."""
    try:
        module.verify()
    except RuntimeError as error:
        raise TrustError(
            f"a kernel makes no sense: {str(error)[:300]}",
            hint="this is a fault of tensorswap: please report it with the program's text",
        ) from error


@contextmanager
def optimised(text: str) -> Iterator[Any]:
    """A module of llvmlite's, after LLVM's passes."""
    context = binding.create_context()
    module = binding.parse_assembly(text, context)
    try:
        _check(module)
        options = binding.create_pipeline_tuning_options(speed_level=tuning.level)
        options.slp_vectorization = False
        with machine() as own:
            passes = binding.create_pass_builder(own, options)
            _unlocked("LLVMPY_RunNewModulePassManager")(pass_manager(passes, effort_of(text)), module, passes)
        yield module
    finally:
        module.close()  # before its context


FEW = (
    "sroa",
    "simplify_cfg",
    "instruction_combine",
    "loop_rotate",
    "new_gvn",
    "instruction_combine",
    "simplify_cfg",
    "dead_code_elimination",
)  # passes for functions whose loops are written in vectors: they stay as they are
PASSES = {
    Effort.COMMON: ("instruction_combine",),  # its loads and stores stand as they should; the rest are places
    Effort.VECTORS: FEW,
    Effort.PROMPT: ("instruction_combine",),
    Effort.PLACES: ("instruction_combine",),
    Effort.ONCE: (),
}
AT_ONCE = (Effort.PLACES, Effort.ONCE)  # machine code takes a fifth of the time without LLVM's passes over it


def pass_manager(passes: Any, effort: Effort) -> Any:
    """What LLVM does with a module."""
    if tuning.level == 0 or effort not in PASSES:
        return passes.getModulePassManager()
    manager = binding.create_new_module_pass_manager()
    for name in PASSES[effort]:
        getattr(manager, f"add_{name}_pass")()
    return manager


def object_code(text: str) -> bytes:
    """The machine code of a module."""
    with optimised(text) as module, machine(effort_of(text)) as own, ffi.OutputString() as problem:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(own, module, OBJECT, problem)
        if not buffer:
            raise RuntimeError(str(problem))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)
