"""Events that cannot be brought to the disk get no number, so that none is ever given twice."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ouvrage.agent import outbox
from ouvrage.agent.outbox import Outbox


@pytest.mark.parametrize("fails", ["write", "fdatasync"])
def test_a_full_disk_costs_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    box = Outbox(tmp_path / "outbox.ndjson")
    box.add([{"event": "began", "attempt": "a"}])

    def full(fd: int, *data: bytes) -> int:
        if data:
            os.pwrite(fd, data[0][:3], os.fstat(fd).st_size)
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(outbox.os, fails, full)
        with pytest.raises(OSError, match="no room"):
            box.add([{"event": "ended", "attempt": "a"}])
    assert not box.told("a", "ended")
    box.add([{"event": "progress", "attempt": "b"}, {"event": "ended", "attempt": "a"}])
    box.close()
    again = Outbox(tmp_path / "outbox.ndjson")
    told = [(event["sequence"], event["event"]) for event in again.waiting()]
    assert told == [(1, "began"), (2, "progress"), (3, "ended")]
    again.close()
