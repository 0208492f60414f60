"""ts.torch itself: a function with a class in it."""

from __future__ import annotations

from ...program import Program, program_of
from .module import Module
from .torch_program import TorchProgram


class TorchBridge:
    """`ts.torch(p)` is a program, its text or an op of the standard library as a function of PyTorch's tensors, and
    `ts.torch.Module` a layer made of one."""

    Module = Module

    def __call__(self, source: Program | str) -> TorchProgram:
        return TorchProgram(program_of(source, "ts.torch", 'ts.torch("Y[i] = tanh(X[i])") or ts.torch("softmax")'))

    def __repr__(self) -> str:
        return "<ts.torch: programs as operators of PyTorch>"


torch_bridge = TorchBridge()
