"""The ``ouvrage`` command in an empty home, as a person has it, and runs made to measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_INSTALLED = Path(sys.executable).with_name("ouvrage")
COMMAND = [str(_INSTALLED)] if _INSTALLED.exists() else [sys.executable, "-m", "ouvrage"]


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def first(self) -> str:
        return self.out.splitlines()[0]


@dataclass(frozen=True)
class Home:
    """A home of its own, in which the command runs."""

    path: Path
    environment: Mapping[str, str]

    def __call__(self, *arguments: str, cwd: Path | None = None) -> Said:
        done = subprocess.run(
            [*COMMAND, *arguments],
            env=dict(self.environment),
            cwd=cwd or self.path.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """The same without waiting for its end."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=dict(self.environment),
            cwd=self.path.parent,
            text=True,
            **options,
        )

    def holds(self, lines: str, name: str) -> None:
        """Put a spool where a meter would have left it."""
        place = self.path / "spool" / f"{name}.ndjson"
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.write_text(lines)

    def files(self) -> list[str]:
        """Every file in the home."""
        return sorted(str(p.relative_to(self.path)) for p in self.path.rglob("*") if p.is_file())


@pytest.fixture
def homes(tmp_path: Path) -> Callable[[str], Home]:
    def make(name: str) -> Home:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OUVRAGE_")}
        environment.pop("PYTHONUNBUFFERED", None)
        environment["OUVRAGE_HOME"] = str(tmp_path / name)
        return Home(tmp_path / name, environment)

    return make


@pytest.fixture
def ouvrage(homes: Callable[[str], Home]) -> Home:
    return homes("home")
