"""Takes the pictures of docs/playground.md in docs/drawings: `python docs/screenshots.py`.

It needs `pip install 'tensorswap[playground]' playwright` and a Chromium: `make playground-browser` installs both.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


def main() -> None:
    with playground() as address, sync_playwright() as driver, chromium(driver) as browser:
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


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    main()
