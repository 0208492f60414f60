"""python -m tests.planted [--only NAME] [--jobs 2]: plants every fault in turn, and tells which test finds it."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

from .faults import FAULTS
from .plant import Outcome, copied, run, selections, tried

SANE = 3600.0  # seconds for all tests without a fault


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this fault alone (may be given again)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="faults at a time")
    asked = parser.parse_args(words)
    unknown = sorted(set(asked.only or ()) - {fault.name for fault in FAULTS})
    if unknown:
        parser.error(f"there is no fault {unknown[0]!r}")
    faults = [fault for fault in FAULTS if not asked.only or fault.name in asked.only]
    outcomes: dict[str, Outcome] = {}
    with copied() as sound:
        print(f"first without a fault: {len(selections(faults))} tests must pass", flush=True)
        sane = run(sound, selections(faults), SANE)
        if sane.by != "all tests pass":
            print(f"they do not: {sane.by}")
            return 1
        with ThreadPoolExecutor(max(asked.jobs, 1)) as pool:
            waiting = {pool.submit(tried, fault, sound): fault for fault in faults}
            for number, done in enumerate(as_completed(waiting), 1):
                fault, outcome = waiting[done], done.result()
                outcomes[fault.name] = outcome
                word = "caught by" if outcome.caught else "MISSED:"
                print(f"{number:3} of {len(faults)}  {fault.name}: {word} {outcome.by}", flush=True)
    print(f"\n{'kind':22}  {'file':26}  {'fault':44}  caught by")
    for fault in faults:
        outcome = outcomes[fault.name]
        by = outcome.by if outcome.caught else "MISSED"
        print(f"{fault.kind:22}  {fault.file:26}  {fault.name:44}  {by}")
    missed = [name for name, outcome in outcomes.items() if not outcome.caught]
    print(f"\n{len(faults) - len(missed)} of {len(faults)} planted faults are caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
