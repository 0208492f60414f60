"""tensorswap: ts.fit, timed without what it does before its first step."""

from __future__ import annotations

import time

import numpy as np

import tensorswap as ts
from tensorswap import models

from .problem import Problem

VERSIONS = {"tensorswap": ts.__version__, "numpy": np.__version__}


class Training:
    """Each call trains anew from the start: a run of ts.fit is a whole."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.model = models.get(problem.name)

    def fit(self, epochs: int) -> tuple[list[float], dict[int, float]]:
        """The losses of all steps, and the time at which some of them began."""
        twin, problem = self.problem.twin, self.problem
        begun: dict[int, float] = {}

        def clock(step: int) -> float:
            """A schedule is asked for the rates of the next steps just before they run."""
            begun[step] = time.perf_counter()
            return 1.0

        result = ts.fit(
            self.model.program,
            problem.start,
            problem.data,
            optimizer=twin.optimizer,
            lr=twin.lr,
            batch_size=problem.rows.shape[2],
            epochs=epochs,
            seed=problem.seed,
            sizes=self.model.sizes(problem.data, **problem.settings),
            schedule=clock,
            progress=False,
        )
        return result.history.loss, begun

    def epoch(self, number: int) -> list[float]:
        """The losses of the epochs up to this one."""
        return self.fit(number + 1)[0][number * self.problem.steps :]

    def seconds(self, epochs: int) -> float:
        """Of a step: from the second epoch on, when all is compiled and in its stride."""
        losses, begun = self.fit(1 + epochs)
        end = time.perf_counter()
        return (end - begun[self.problem.steps]) / (len(losses) - self.problem.steps)


def prepare(problem: Problem, threads: int) -> Training:
    return Training(problem)
