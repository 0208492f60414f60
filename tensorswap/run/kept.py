"""Kept: what runs a program is found on disk, or planned and compiled now, and kept there for the next process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..forks import NO_FORK
from ..language import ir
from ..language.bound import Bound
from ..lazy import cached_property
from ..room import Needed
from . import cache as disk
from . import tuning
from .ahead import Begin, ahead
from .known_code import kept
from .ready import Fill, Ready, Result, Row
from .runner import RUNNER
from .team import HELPS

if TYPE_CHECKING:
    from .execute import Executable


@dataclass(frozen=True)
class Plans:
    """What the kernels of a call are made of."""

    bound: Bound  # the program, with its checks
    threads: int
    scalars: tuple[str, ...] = ()  # outputs that say, above zero, that the others may be wrong
    order: tuple[str, ...] = ()  # of its inputs, as the caller has them
    certified: bool = False

    @NO_FORK
    def ready(self, certify: Callable[[ir.Loops | None], None]) -> Ready:
        """All that runs need. A plan that is new is certified; None: there is none."""
        name = f"{self.key}.plan"
        found = _load(name)
        if found is not None:
            certify(None)
            return found
        from .words import ready  # with all that plans: most processes find what it makes on disk

        with ahead() as begin:
            made = self.planned(begin)
            begin(RUNNER)
            if max(made.crews, default=1) > 1:
                begin(HELPS)
            certify(made.loops)
        found = ready(made)
        disk.write(name, _plain(found).encode())
        return found

    @cached_property
    @NO_FORK
    def executable(self) -> Executable:
        """The kernels, planned now."""
        from .execute import Executable  # as above

        return Executable(self.bound, self.threads, self.scalars, self.order)

    def planned(self, begin: Begin) -> Executable:
        """The same, and tells of each of its functions, if it is planned now as soon as it can."""
        from .execute import Executable  # as above

        if "executable" not in vars(self):
            vars(self)["executable"] = Executable(self.bound, self.threads, self.scalars, self.order, begin=begin)
        for function in self.executable.functions:
            begin(function)
        return self.executable

    @property
    def key(self) -> str:
        """Tells a plan apart from all others. Values of arrays play no part in it. What users define stands for what it
        means since the call was bound."""
        bound = self.bound
        types = {name: array.dtype for name, array in bound.arrays.items()}
        program = (bound.loops, bound.kinds, bound.sizes, bound.dtype, types)
        asked = (self.threads, self.scalars, self.order, self.certified, tuning.level, tuning.PARALLEL)
        return hashlib.sha256(f"{disk.planners()}\n{program!r}\n{asked!r}".encode()).hexdigest()


def _load(name: str) -> Ready | None:
    content = disk.read(name)
    if content is None:
        return None
    try:
        found = _from_plain(json.loads(content))
    except (ValueError, KeyError, TypeError, RecursionError):  # whole, but of another making
        return None
    return found if kept([row.code for row in found.rows]) else None


def _plain(made: Ready) -> str:
    """As lists, texts and numbers."""
    return json.dumps(
        {
            "inputs": [(name, dtype.str) for name, dtype in made.inputs],
            "outputs": made.outputs,
            "work": made.work,
            "made": [(m.name, m.best, m.old, m.shape, m.dtype.str, m.start) for m in made.made],
            "scalars": made.scalars,
            "rows": [(row.code, row.words) for row in made.rows],
            "words": made.words.tolist(),
            "links": made.links.tolist(),
            "size": made.size,
            "zeros": made.zeros,
            "fills": [(f.place, f.shape, f.dtype.str, f.value) for f in made.fills],
            "between": made.between.name,
        }
    )


def _from_plain(found: dict[str, Any]) -> Ready:
    return Ready(
        inputs=tuple((name, np.dtype(dtype)) for name, dtype in found["inputs"]),
        outputs=tuple(found["outputs"]),
        work=found["work"],
        made=tuple(
            Result(name, best, old, tuple(shape), np.dtype(dtype), start)
            for name, best, old, shape, dtype, start in found["made"]
        ),
        scalars=tuple(found["scalars"]),
        rows=tuple(Row(code, tuple(words)) for code, words in found["rows"]),
        words=np.array(found["words"], np.int64),
        links=np.array(found["links"], np.int64).reshape(-1, 4),
        size=found["size"],
        zeros=tuple((first, past) for first, past in found["zeros"]),
        fills=tuple(Fill(place, tuple(shape), np.dtype(dtype), value) for place, shape, dtype, value in found["fills"]),
        between=Needed(found["between"], found["size"]),
    )
