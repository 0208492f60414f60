"""torch: the value, then autograd; eager, or with the forward and backward passes compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..workload import Arrays, Results, Workload
from .base import split, written


class TorchAutograd:
    def __init__(self, name: str, threads: int) -> None:
        torch.set_num_threads(threads)
        self.versions = {"torch": str(torch.__version__), "numpy": np.__version__}
        self.compiled = name == "torch_compile"
        self.eager = not self.compiled

    def prepare(self, workload: Workload, arrays: Arrays, dtype: str) -> Callable[[], Arrays]:
        function = written(workload.torch_value)
        inputs = split(workload, arrays)
        # copies, because an update changes the parameters in place
        parameters = {name: torch.tensor(array, requires_grad=True) for name, array in inputs.parameters.items()}
        data = {name: torch.tensor(array) for name, array in inputs.data.items()}
        seed = None if inputs.seed is None else torch.tensor(inputs.seed)
        leaves = list(parameters.values())

        def value(tensors: Arrays) -> Any:
            return function(torch, **tensors, **inputs.numbers)

        if self.compiled:
            torch.compiler.reset()
            value = torch.compile(value, dynamic=False)
        tensors = {**parameters, **data}

        def forward() -> Arrays:
            with torch.inference_mode():
                return {workload.output: value(tensors)}

        def gradient() -> Arrays:
            found = value(tensors)
            gradients = torch.autograd.grad(found, leaves, seed)
            return dict(zip(workload.results, (found.detach(), *gradients), strict=True))

        def update() -> Arrays:
            found = value(tensors)
            gradients = torch.autograd.grad(found, leaves)
            with torch.no_grad():
                for leaf, change in zip(leaves, gradients, strict=True):
                    leaf.sub_(change, alpha=workload.rate)
            return {workload.output: found.detach(), **parameters}

        def several() -> Arrays:
            found: Arrays = value(tensors)
            return found

        if workload.outputs:
            return several
        if not workload.wrt:
            return forward
        return update if workload.update else gradient

    def results(self, raw: Arrays) -> Results:
        return {name: tensor.detach().numpy().copy() for name, tensor in raw.items()}


make = TorchAutograd
