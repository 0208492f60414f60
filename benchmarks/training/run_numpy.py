"""numpy: gradients and updates by hand, in place where that is faster."""

from __future__ import annotations

import numpy as np

from .problem import BETA1, BETA2, EPS, Problem
from .twin import Array, Arrays

VERSIONS = {"numpy": np.__version__}


class Training:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.params: Arrays = {name: array.copy() for name, array in problem.start.items()}
        self.moments = {name: (np.zeros_like(array), np.zeros_like(array)) for name, array in problem.start.items()}
        self.count = 0
        self.update = {"adam": self.adam, "sgd": self.sgd}[problem.twin.optimizer]

    def epoch(self, number: int) -> list[float]:
        """The losses of an epoch's steps."""
        losses = []
        for rows in self.problem.rows[number]:
            loss, grads = self.problem.twin.numpy_gradient(self.params, self.problem.batch(self.problem.data, rows))
            self.count += 1
            for name, grad in grads.items():
                if self.params[name].size:
                    self.update(name, grad)
            losses.append(float(loss))
        return losses

    def sgd(self, name: str, grad: Array) -> None:
        self.params[name] -= self.problem.twin.lr * grad

    def adam(self, name: str, grad: Array) -> None:
        m, v = self.moments[name]
        m *= BETA1
        m += (1 - BETA1) * grad
        v *= BETA2
        v += (1 - BETA2) * np.square(grad)
        rate, root = self.problem.twin.lr / (1 - BETA1**self.count), (1 - BETA2**self.count) ** 0.5
        self.params[name] -= rate * m / (np.sqrt(v) / root + EPS)


def prepare(problem: Problem, threads: int) -> Training:
    return Training(problem)
