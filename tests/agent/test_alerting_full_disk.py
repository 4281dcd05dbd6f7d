"""People are told of a machine although its disk takes nothing more: from the room laid aside, or without having it written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ouvrage.agent.probing.alerting import DESK, RESERVE, desk_in
from ouvrage.agent.probing.now import Now, write_now
from ouvrage.model.health import CRITICAL, OK
from tests.agent.test_alerts import check, view
from tests.faults_platform.test_disk_full import SmallDisk, disk
from tests.support.meter import SOURCES

__all__ = ["disk"]


@dataclass
class Hook:
    port: int = 0
    came: list[str] = field(default_factory=list)


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.came.append(told["id"])
            self.send_response(204)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def _set_up(state: Path, hook: Hook, now: Now) -> None:
    state.mkdir(exist_ok=True)
    write_now(state, now)
    words = f'[alerts]\nwebhook = "http://127.0.0.1:{hook.port}/"\nsecret = "env:HOOK"\n'
    (state / "agent.toml").write_text(words)


def _tell(state: Path, before: Callable[[], None] | None = None) -> int:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "HOOK": "s"}
    words = [sys.executable, "-m", "ouvrage.agent.probing.alerting", "--state", str(state)]
    return subprocess.run(
        words, env=environment, preexec_fn=before, capture_output=True, timeout=30, check=False
    ).returncode


def _no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_what_cannot_be_written_is_told_all_the_same_and_again(tmp_path: Path, hook: Hook) -> None:
    _set_up(tmp_path, hook, view(check(CRITICAL)))
    assert _tell(tmp_path, _no_room) == 1
    assert len(hook.came) == 1
    assert not (tmp_path / DESK).exists()
    assert _tell(tmp_path) == 0
    assert _tell(tmp_path) == 0
    assert len(hook.came) == 2, "once more when it could be written, and no more"
    assert len(set(hook.came)) == 1, "under the same id"


@pytest.mark.slow
def test_a_full_disk_gives_the_room_that_was_laid_aside(disk: SmallDisk, hook: Hook) -> None:
    state = disk.at / "state"
    _set_up(state, hook, view(check(OK)))
    assert _tell(state) == 0
    assert (state / RESERVE).exists()
    write_now(state, view(check(CRITICAL)))
    disk.fill()
    assert (_tell(state), _tell(state)) == (0, 0)
    assert len(hook.came) == 1
    assert desk_in(state).told == {"gpu gpu0": CRITICAL}
