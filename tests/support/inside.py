"""The ``ouvrage`` command called inside the test's own process: a home of its own, and quick.

For everything but ``ouvrage run``, whose signals and children need a process. The black-box tests
run the installed command; these hold what it says in many cases.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ouvrage.__main__ import main
from tests.blackbox.home import Said


@dataclass(frozen=True)
class Inside:
    """A home in which commands are called; relative paths are below its parent."""

    path: Path

    def __call__(self, *arguments: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        with (
            _home(self.path),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(arguments)
        return Said(code, out.getvalue(), err.getvalue())

    def holds(self, lines: str, name: str) -> None:
        """Put a spool where a meter would have left it."""
        place = self.path / "spool" / f"{name}.ndjson"
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.write_text(lines)


@contextmanager
def _home(path: Path) -> Iterator[None]:
    held, where = dict(os.environ), os.getcwd()
    for name in [name for name in held if name.startswith("OUVRAGE_")]:
        del os.environ[name]
    os.environ["OUVRAGE_HOME"] = str(path)
    os.chdir(path.parent)
    try:
        yield
    finally:
        os.chdir(where)
        os.environ.clear()
        os.environ.update(held)
