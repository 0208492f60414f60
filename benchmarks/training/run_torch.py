"""PyTorch: eager, with autograd and its own optimisers in their fused form."""

from __future__ import annotations

import numpy as np
import torch

from .problem import BETA1, BETA2, EPS, Problem

VERSIONS = {"torch": str(torch.__version__), "numpy": np.__version__}


class Training:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.params = {name: torch.tensor(array, requires_grad=True) for name, array in problem.start.items()}
        self.data = {name: torch.tensor(array) for name, array in problem.data.items()}
        self.rows = torch.tensor(problem.rows)
        leaves = [tensor for tensor in self.params.values() if tensor.numel()]
        self.optimizer: torch.optim.Optimizer
        if problem.twin.optimizer == "sgd":
            self.optimizer = torch.optim.SGD(leaves, problem.twin.lr, fused=True)
        else:
            self.optimizer = torch.optim.Adam(leaves, problem.twin.lr, (BETA1, BETA2), EPS, fused=True)

    def epoch(self, number: int) -> list[float]:
        losses = []
        for rows in self.rows[number]:
            self.optimizer.zero_grad()
            loss = self.problem.twin.torch_loss(torch, self.params, self.problem.batch(self.data, rows))
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).tolist()


def prepare(problem: Problem, threads: int) -> Training:
    torch.set_num_threads(threads)
    return Training(problem)
