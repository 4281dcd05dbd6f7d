"""The ``ouvrage`` command in an empty home, as a person has it, and runs made to measure."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ouvrage.__main__ import main

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

    def inside(self, *arguments: str) -> Said:
        """The same in this process, many times faster; only signals and start-up differ."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
            for name, value in self.environment.items():
                if name.startswith("OUVRAGE_"):
                    patched.setenv(name, value)
            patched.chdir(self.path.parent)
            code = main(arguments)
        return Said(code, out.getvalue(), err.getvalue())

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

    def facts(self) -> list[tuple[object, ...]]:
        """Every fact in the store, read past the command."""
        with closing(sqlite3.connect(self.path / "ouvrage.db")) as store:
            return store.execute("SELECT * FROM facts ORDER BY seq").fetchall()

    def files(self) -> list[str]:
        """Every file in the home."""
        return sorted(str(p.relative_to(self.path)) for p in self.path.rglob("*") if p.is_file())


def home_in(directory: Path, name: str) -> Home:
    """An empty home, and an environment without anybody's settings for it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OUVRAGE_")}
    environment.pop("PYTHONUNBUFFERED", None)
    environment["OUVRAGE_HOME"] = str(directory / name)
    return Home(directory / name, environment)
