"""A metered command, started as a person would start it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[2] / "src"
PATIENCE_S = 30.0


def until(condition: Callable[[], Any], what: str) -> Any:
    """Look again until the condition gives something true; fail after ``PATIENCE_S``."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        select.select([], [], [], 0.01)
    raise AssertionError(f"waited {PATIENCE_S} s in vain for: {what}")


class Meter:
    """Starts ``ouvrage run`` with a home of its own and reads what it spooled."""

    def __init__(self, home: Path, python: str = sys.executable) -> None:
        self.home = home
        self.python = python
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONUNBUFFERED", "OUVRAGE_SOCKET", "OUVRAGE_STORE")
        } | {"OUVRAGE_HOME": str(home), "PYTHONPATH": str(SOURCES)}

    def words(self, *command: str, options: Sequence[str] = ("--quiet",)) -> list[str]:
        return [self.python, "-m", "ouvrage", "run", *options, "--", *command]

    def run(
        self, *command: str, options: Sequence[str] = ("--quiet",), **choices: Any
    ) -> subprocess.CompletedProcess[bytes]:
        choices.setdefault("stdin", subprocess.DEVNULL)
        choices.setdefault("env", self.environment)
        choices.setdefault("timeout", PATIENCE_S)
        return subprocess.run(
            self.words(*command, options=options), capture_output=True, check=False, **choices
        )

    def ouvrage(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.python, "-m", "ouvrage", *arguments],
            capture_output=True,
            check=False,
            env=self.environment,
            timeout=PATIENCE_S,
        )

    def spools(self) -> list[Path]:
        return sorted((self.home / "spool").glob("*.ndjson"))

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the latest spool."""
        text = self.spools()[-1].read_text()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["k"] == kind]

    def end(self) -> dict[str, Any]:
        return self.of_kind("end")[0]

    def column(self, name: str) -> list[int | None]:
        return [value for line in self.of_kind("samples") for value in line["c"].get(name, [])]

    def times(self) -> list[int]:
        return [t for line in self.of_kind("samples") for t in line["t"]]

    def units(self) -> list[tuple[str, str, int, int | None]]:
        return [
            (line["via"], mark, n, t)
            for line in self.of_kind("marks")
            for mark, n, t in zip(line["mark"], line["n"], line["t"], strict=True)
        ]
