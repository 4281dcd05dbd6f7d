"""A real Chromium, Debian's own, driven by Playwright; without one the tests say so and are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.platform.working import Working, working_on

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture
def working(tmp_path: Path) -> Iterator[Working]:
    with working_on(tmp_path / "state") as work:
        yield work
