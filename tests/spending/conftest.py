"""Homes in which commands are called inside the test's process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.inside import Inside


@pytest.fixture
def homes(tmp_path: Path) -> Callable[[str], Inside]:
    return lambda name: Inside(tmp_path / name)


@pytest.fixture
def ouvrage(homes: Callable[[str], Inside]) -> Inside:
    return homes("home")
