"""Fixtures of the meter's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.meter import Meter


@pytest.fixture
def meter(tmp_path: Path) -> Meter:
    """A meter with a home that does not exist yet."""
    return Meter(tmp_path / "home")


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Write a Python program and give its path."""

    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(text)
        return str(path)

    return write
