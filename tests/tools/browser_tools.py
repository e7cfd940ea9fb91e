"""Pages in Chromium: on a desk, on a phone and in the dark."""

import contextlib
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"
LOOKS = {"wide": (1280, 900, "light"), "narrow": (390, 850, "light"), "dark": (1280, 900, "dark")}


@contextlib.contextmanager
def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("NO BROWSER: A PAGE WAS NOT OPENED; install chromium (apt-get install chromium)")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()
