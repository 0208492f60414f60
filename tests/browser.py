"""A browser for tests, benchmarks and screenshots: Debian's Chromium, or the one that Playwright installs.

`python -m tests.browser` installs one where there is none: with apt where that may be done, else with Playwright.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser")
SWITCHES = ["--no-sandbox"]  # the page is our own, and a sandbox needs rights that containers lack
MISSING = "no Chromium: `make playground-test` installs it"


def path_of(driver: Playwright) -> str | None:
    """The browser of the system if there is one, else Playwright's own, if it was installed."""
    system = next(filter(None, map(shutil.which, NAMES)), None)
    own = driver.chromium.executable_path
    return system or (own if Path(own).exists() else None)


@contextmanager
def chromium(driver: Playwright) -> Iterator[Browser]:
    path = path_of(driver)
    if path is None:
        raise FileNotFoundError(MISSING)
    browser = driver.chromium.launch(executable_path=path, args=SWITCHES)
    try:
        yield browser
    finally:
        browser.close()


def install() -> None:
    from playwright.sync_api import sync_playwright  # tests without a browser do without it

    with sync_playwright() as driver:
        if path_of(driver) is not None:
            return
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        done = subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], check=False)
        if done.returncode == 0 and shutil.which("chromium"):
            return
    subprocess.run([sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"], check=True)


if __name__ == "__main__":
    install()
