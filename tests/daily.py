"""Daily: what takes long is shared out among days. Each day runs another share, the long run (TENSORSWAP_LONG) all.

Some tests share out their own cases. Of families that take long all the same, shared_among_days.txt tells among how
many days: `python -m tests.daily times.xml` writes it, from what `pytest -n 2 --junitxml=times.xml tests` has found.
Who names files or tests to run gets all that they would run.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree

Thing = TypeVar("Thing")

LONG = bool(os.environ.get("TENSORSWAP_LONG"))
DAY = int(os.environ.setdefault("TENSORSWAP_DAY", str(date.today().toordinal())))  # the workers of a run agree
FILE = Path(__file__).with_name("shared_among_days.txt")
SECONDS, CASES, SHARE, MOST = 4.0, 4, 3.0, 4  # what a family takes to be shared out; of each share; and days


def share(things: Iterable[Thing], days: int) -> list[Thing]:
    """Of things that are all seen within some days, those of today."""
    found = list(things)
    return found if LONG else found[DAY % days :: days]


def not_today(cases: Iterable[str]) -> set[str]:
    """Of cases by their ids, `file::family[case]`, those that other days run."""
    days = {family: int(count) for family, count in (line.split() for line in FILE.read_text().splitlines())}
    met: Counter[str] = Counter()
    found = set()
    for case in cases:
        family = case.partition("[")[0]
        if family in days and met[family] % days[family] != DAY % days[family]:
            found.add(case)
        met[family] += 1
    return found


def shared_out(times: Path) -> str:
    """The lines of that file."""
    families: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(times).getroot().iter("testcase"):
        file = case.get("classname", "").replace(".", "/")
        families[f"{file}.py::{case.get('name', '').partition('[')[0]}"].append(float(case.get("time", 0)))
    long = {name: took for name, took in families.items() if sum(took) >= SECONDS and len(took) >= CASES}
    days = {name: min(MOST, max(2, math.ceil(sum(took) / SHARE))) for name, took in long.items()}
    return "".join(f"{name} {days[name]}\n" for name in sorted(days))


if __name__ == "__main__":
    FILE.write_text(shared_out(Path(sys.argv[1])))
