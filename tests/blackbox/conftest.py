"""A home of its own for every test, and as many more as it asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.blackbox.home import Home, home_in
from tests.support.slurm import lab

__all__ = ["homes", "lab", "ouvrage"]


@pytest.fixture
def homes(tmp_path: Path) -> Callable[[str], Home]:
    return lambda name: home_in(tmp_path, name)


@pytest.fixture
def ouvrage(homes: Callable[[str], Home]) -> Home:
    return homes("home")
