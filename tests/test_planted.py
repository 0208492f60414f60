"""The table of planted faults is up to date, and its script tells a fault that is found from one that is not.

All of them are planted by `make planted`, which takes some minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tensorswap

from .planted.fault import Fault
from .planted.faults import FAULTS
from .planted.plant import Outcome, copied, run, selections, tried

PACKAGE = Path(tensorswap.__file__).parent
PLANTED = {fault.name: fault for fault in FAULTS}
QUICK = (
    "the adjoint of a difference adds",
    "the opposite of more is less",
    "the third statement counts from the second",
)


@pytest.fixture(scope="module")
def sound() -> Iterator[Path]:
    with copied() as place:
        yield place


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_row_applies_once_and_compiles(fault: Fault) -> None:
    source = (PACKAGE / fault.file).read_text()
    planted = fault.planted(source)
    assert planted != source
    compile(planted, fault.file, "exec")
    for test in fault.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (PACKAGE.parent / file).read_text(), test


def test_every_test_that_a_row_names_is_there(sound: Path) -> None:
    found = run(sound, ["--collect-only", "-q", *selections(FAULTS)])
    assert found == Outcome(False, "all tests pass"), found.by


def test_there_are_sixty_of_many_kinds() -> None:
    assert len(PLANTED) == len(FAULTS) >= 60
    assert len({fault.kind for fault in FAULTS}) >= 8
    folders = {fault.file.partition("/")[0] for fault in FAULTS}
    assert folders >= {"rules", "plan", "kernel", "lower", "language", "interpret", "run", "trust", "training", "eager"}


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_fault_is_found(name: str, sound: Path) -> None:
    found = tried(PLANTED[name], sound)
    assert found.caught, found.by
    assert "test_edges_of_rules.py" in found.by


def test_validation_of_passes_finds_the_factor_that_was_dropped(sound: Path) -> None:
    test = "tests/test_trust.py::test_every_pass_of_a_plan_keeps_shared_products"
    found = tried(replace(PLANTED["a shared product drops the sum"], tests=(test,)), sound)
    assert found == Outcome(True, test)


def test_a_fault_that_no_test_looks_at_is_missed(sound: Path) -> None:
    fault = PLANTED[QUICK[0]]
    other = replace(fault, tests=("tests/test_edges_of_rules.py::test_batch_counts_axes_behind_the_new_one",))
    assert tried(other, sound) == Outcome(False, "all tests pass")


def test_a_row_that_is_out_of_date_is_refused() -> None:
    fault = PLANTED[QUICK[0]]
    with pytest.raises(LookupError, match="stands 0 times"):
        fault.planted("")
