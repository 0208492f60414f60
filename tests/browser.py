"""A browser for tests and screenshots: Debian's Chromium, or the one that Playwright installs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser")
SWITCHES = ["--no-sandbox"]  # the page is our own, and a sandbox needs rights that containers lack


@contextmanager
def chromium(driver: Playwright) -> Iterator[Browser]:
    """The browser of the system if there is one, else Playwright's own."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    browser = driver.chromium.launch(executable_path=found, args=SWITCHES)
    try:
        yield browser
    finally:
        browser.close()
