"""The stand-in library, built once, and a meter that finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.meter import Meter
from tests.support.nvml import Cards, build, compiler


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if compiler() is None:
        pytest.skip("no C compiler here to build the stand-in for libnvidia-ml.so.1")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def cards(library: Path, tmp_path: Path) -> Cards:
    return Cards(library, tmp_path / "nvml-state")


@pytest.fixture
def meter(cards: Cards, tmp_path: Path) -> Meter:
    made = Meter(tmp_path / "home")
    made.environment |= cards.environment
    return made
