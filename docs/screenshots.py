"""Takes the pictures of the playground, of a terminal and of a notebook: `python docs/screenshots.py [KIND ...]`.

They go into docs/drawings. It needs `pip install 'tensorswap[playground]' playwright nbconvert` and a Chromium:
`make playground-pictures` installs them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.browser import chromium

FOLDER = Path(__file__).parent / "drawings"
DESK = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
MISTAKE = "# A sum that was written as an assignment\ny[i] = A[i,k] * x[k]\nloss += y[i] ** 2\n"


@contextmanager
def playground() -> Iterator[str]:
    """The address of a playground that runs meanwhile."""
    command = [sys.executable, "-m", "tensorswap", "playground", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def opened(browser: Browser, address: str, size: dict[str, int], scheme: Any, scale: int = 1) -> Page:
    page = browser.new_page(
        viewport={"width": size["width"], "height": size["height"]}, color_scheme=scheme, device_scale_factor=scale
    )
    page.goto(address)
    page.wait_for_selector("#pane-plan .roofline", state="attached")
    return page


def choose(page: Page, name: str) -> None:
    page.keyboard.press("Alt+e")
    page.click(f'[data-name="{name}"]')
    page.wait_for_timeout(3000)


def run(page: Page) -> None:
    page.click("#run-button")
    page.wait_for_selector(".verdict .passed", timeout=60_000)


def take(page: Page, name: str, whole: bool = False) -> None:
    page.wait_for_timeout(300)  # what fades has faded
    page.screenshot(path=FOLDER / f"{name}.png", full_page=whole)


def pages(browser: Browser) -> None:
    """The playground: dark, light, the plan, a mistake, the examples, on a phone."""
    with playground() as address:
        page = opened(browser, address, DESK, "dark")
        page.hover(".line.backward >> nth=2")
        take(page, "playground-dark")
        page = opened(browser, address, DESK, "light")
        run(page)
        page.hover(".line.backward >> nth=0")
        take(page, "playground-light")
        page.click("#tab-plan")
        take(page, "playground-plan")
        page.click(".cm-content")
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(MISTAKE)
        page.wait_for_selector(".fault-told")
        take(page, "playground-mistake")
        page.keyboard.press("Alt+e")
        take(page, "playground-examples")
        take(opened(browser, address, PHONE, "dark", 2), "playground-phone", whole=True)


# -- a terminal

COMMANDS = {  # what is typed, and how it is called
    "terminal-explain": ["explain", "Y[i,j] += A[i,k] * B[k,j]", "Z[i,j] = tanh(Y[i,j])"],
    "terminal-mistake": ["explain", "y[i] = A[i,k] * x[k]"],
}
COLOURS = {
    "1": "font-weight: bold", "2": "color: #8b949e", "31": "color: #ff7b72", "32": "color: #7ee787",
    "33": "color: #ffa657", "35": "color: #d2a8ff", "36": "color: #76e3ea",
}  # fmt: skip
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #0d1117; }}
pre {{ display: inline-block; margin: 0; padding: 18px 24px; color: #e6edf3;
  font: 14px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }}
</style><pre>{}</pre>"""


def typed(words: list[str]) -> str:
    """The command as somebody types it, and what it prints in colours."""
    shown = " ".join(f"'{word}'" if " " in word else word for word in ("tensorswap", *words))
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "104"}
    line = [sys.executable, "-m", "tensorswap", *words]
    run = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    return f"\x1b[32m$\x1b[0m \x1b[1m{shown}\x1b[0m\n{run.stdout}{run.stderr}"


def coloured(text: str) -> str:
    """Escape sequences as styles."""

    def style(found: re.Match[str]) -> str:
        rules = "; ".join(COLOURS[code] for code in found[1].split(";"))
        return f'<span style="{rules}">{found[2]}</span>'

    return re.sub(r"\x1b\[([\d;]+)m(.*?)\x1b\[0m", style, escape(text, quote=False), flags=re.DOTALL)


def terminals(browser: Browser) -> None:
    """What the command prints."""
    page = browser.new_page(viewport={"width": 1100, "height": 900}, device_scale_factor=1.5)
    for name, words in COMMANDS.items():
        page.set_content(TERMINAL.format(coloured(typed(words)).rstrip()))
        page.locator("pre").screenshot(path=FOLDER / f"{name}.png")


# -- a notebook


def notebooks(browser: Browser) -> None:
    """The first notebook as a browser shows it: its beginning, and its end with the plan and the training."""
    from nbconvert import HTMLExporter

    source = Path(__file__).parent / "notebooks" / "first_adjoint.ipynb"
    text, _ = HTMLExporter().from_filename(str(source))
    page = browser.new_page(viewport={"width": 1100, "height": 1000})
    page.set_content(re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL))  # they would be fetched
    page.locator("summary").first.click()
    take(page, "notebook")
    page.set_viewport_size({"width": 1100, "height": 1450})
    page.locator("h2", has_text="A mistake").evaluate("heading => heading.scrollIntoView()")
    take(page, "notebook-training")


KINDS = {"playground": pages, "terminal": terminals, "notebook": notebooks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all if none is named")
    asked = parser.parse_args().kinds or list(KINDS)
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver, chromium(driver) as browser:
        for kind in asked:
            KINDS[kind](browser)


if __name__ == "__main__":
    main()
