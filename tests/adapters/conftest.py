"""A local server for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.web import Records, serving


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    with serving() as running:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "127.0.0.1,localhost")
        yield running
