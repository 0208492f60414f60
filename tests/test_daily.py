"""Days share what takes long: nothing is left out, and what the list names is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import daily

LINES = [line.split() for line in daily.FILE.read_text().splitlines()]


def test_every_case_has_its_day(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [f"{family}[{number}]" for family, _ in LINES for number in range(9)] + ["tests/test_daily.py::test_other"]
    seen: dict[str, int] = dict.fromkeys(cases, 0)
    for day in range(12):
        monkeypatch.setattr(daily, "DAY", day)
        others = daily.not_today(cases)
        assert others < set(cases)
        for case in set(cases) - others:
            seen[case] += 1
    days = {family: int(count) for family, count in LINES}
    assert seen == {case: 12 // days.get(case.partition("[")[0], 1) for case in cases}


def test_families_of_the_list_are_there() -> None:
    root = Path(__file__).parent.parent
    for family, count in LINES:
        file, _, name = family.partition("::")
        assert f"def {name}(" in (root / file).read_text(encoding="utf-8"), family
        assert 12 % int(count) == 0, "days repeat themselves after twelve"


def test_times_become_days(tmp_path: Path) -> None:
    times = tmp_path / "times.xml"
    cases = "".join(f'<testcase classname="tests.test_a" name="test_long[{k}]" time="2.5"/>' for k in range(5))
    times.write_text(f'<testsuite>{cases}<testcase classname="tests.test_a" name="test_one" time="90"/></testsuite>')
    assert daily.shared_out(times) == "tests/test_a.py::test_long 4\n"
