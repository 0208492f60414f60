"""How long the playground's page takes from a key to what follows from it: `python benchmarks/playground.py`.

Each text is typed at its end, one key after the other, in Chromium. A time is what passes between the key event and the
moment at which the page shows the adjoint, the graph and the sizes of the new text. "processor" is what the analysis in
the child process takes of one core. It needs what `make playground-browser` installs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent))
from tensorswap.playground.analysis import analyse
from tensorswap.playground.examples import examples
from tests.browser import chromium
from tests.playground_client import running

TEXTS = ("matmul", "mlp", "cross_entropy", "conv2d", "attention", "lstm", "gru", "kalman", "ctc")
MOST = 150.0  # milliseconds that the page may take
RESULT = Path(__file__).parent / "results" / "playground.json"

WATCH = """() => {
    window.keyed = [];
    window.times = [];
    let heard = () => {};
    window.next = () => new Promise((resolve) => { heard = resolve; });  // polling would cost what is measured
    document.addEventListener("keydown", () => window.keyed.push(performance.now()), true);
    new MutationObserver(() => {
        const shown = performance.now();
        if (window.keyed.length) window.times.push(shown - window.keyed.pop());
        window.keyed = [];
        heard();
    }).observe(document.body, {attributes: true, attributeFilter: ["data-shown"]});
}"""


def typed(page: Page, text: str, keys: int) -> list[float]:
    """Milliseconds of each key at the end of a text: digits of a number in one more statement, so that each key makes
    another program that is right, and all of it is derived anew."""
    text += "more = 1."
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    page.wait_for_function("text => document.body.dataset.shown === text", arg=text)
    page.wait_for_function(
        "text => JSON.parse(document.body.dataset.planned ?? '[]')[0] === text", arg=text, timeout=120_000
    )
    page.evaluate("() => { window.times = []; window.keyed = []; }")
    for k in range(keys):
        page.evaluate("() => { window.shown = window.next(); }")
        page.keyboard.press("1234567890"[k % 10])
        page.evaluate("() => window.shown")
        page.wait_for_timeout(50)  # a hand takes longer
    found: list[float] = page.evaluate("() => window.times")
    return found


def processor(text: str) -> float:
    """Milliseconds of one core that the analysis of a text takes at best: other work on the machine does not count."""
    found = []
    for k in range(20):
        start = time.process_time()
        analyse(f"{text}more = 1.{k}")
        found.append(1e3 * (time.process_time() - start))
    return min(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=30, help="that are typed into each text (default: 30)")
    parser.add_argument("--write", action="store_true", help=f"into {RESULT.name}")
    chosen = parser.parse_args()
    known = {example.name: example.text for example in examples()}
    rows: dict[str, dict[str, Any]] = {}
    with running() as client, sync_playwright() as driver, chromium(driver) as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(client.playground.address)
        page.wait_for_selector("#pane-plan .roofline", state="attached", timeout=120_000)
        page.evaluate(WATCH)
        print(f"{'text':<16}{'lines':>6}{'processor':>10}{'least':>10}{'median':>10}{'90 %':>10}{'most':>10}")
        for name in TEXTS:
            times = sorted(typed(page, known[name], chosen.keys))
            median, late = statistics.median(times), times[int(0.9 * len(times))]
            count = sum(bool(line) and not line.startswith("#") for line in known[name].splitlines())
            found = {
                "processor": processor(known[name]),
                "least": times[0],
                "median": median,
                "late": late,
                "most": times[-1],
            }
            rows[name] = {"lines": count, **{kind: round(value, 1) for kind, value in found.items()}}
            print(f"{name:<16}{count:>6}{''.join(f'{value:>7.1f} ms' for value in found.values())}", flush=True)
    worst = max(row["median"] for row in rows.values())
    print(f"worst median {worst:.1f} ms, {'below' if worst < MOST else 'ABOVE'} {MOST:g} ms")
    if chosen.write:
        RESULT.write_text(json.dumps(rows, indent=2) + "\n")
    return 0 if worst < MOST else 1


if __name__ == "__main__":
    sys.exit(main())
