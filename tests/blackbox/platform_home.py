"""A platform that its owner started with ``ouvrage up``, and a home whose commands are that owner's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.support.orders import missing


@contextmanager
def platform_of(home: Home, state: Path, *more: str) -> Iterator[Home]:
    """The owner of a platform that is up in ``state``, and down at the end whatever happens; skips where sandboxes cannot be made."""
    why = missing()
    if why:
        pytest.skip(why)
    started = home("up", "--state", str(state), "--listen", "127.0.0.1:0", "--detach", *more)
    assert started.code == 0, started.err
    names = {
        "OUVRAGE_URL": (state / "server.url").read_text().strip(),
        "OUVRAGE_TOKEN_FILE": str(state / "owner.token"),
    }
    try:
        yield replace(home, environment={**home.environment, **names})
    finally:
        if home("down", "--state", str(state)).code:
            os.kill(int((state / "server.pid").read_text()), signal.SIGKILL)
