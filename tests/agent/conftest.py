"""A node's directory to execute attempts in; skipped, with the reason, where no sandbox can be made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.orders import Node, missing


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    why = missing()
    if why:
        pytest.skip(why)
    made = Node(tmp_path / "agent")
    yield made
    made.close()
