"""From an empty home into a job that runs (OpenSSH, directories both ways) and to word of its end, as a person types it."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.home import Home
from tests.blackbox.platform_home import platform_of
from tests.support.meter import until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")


@pytest.fixture
def told() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    came: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/told", came
    server.shutdown()
    server.server_close()


@pytest.fixture
def owner(ouvrage: Home, tmp_path: Path) -> Iterator[Home]:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "server.toml").write_text('[webhooks]\nallow = ["127.0.0.0/8"]\n')
    with platform_of(ouvrage, state, "--no-agent") as made:
        yield made


@pytest.mark.skipif(SSHD is None, reason="OpenSSH's server is not installed")
def test_a_job_is_entered_read_and_its_end_is_told(
    owner: Home, tmp_path: Path, told: tuple[str, list[dict[str, Any]]]
) -> None:
    url, came = told
    made = owner.inside("offer", "create", "small", "--price", "0.30/h", "--cpus", "1", "--memory", "256MiB",
                        "--disk", "64MiB", "--audience", "own")  # fmt: skip
    assert made.code == 0, made.err
    hook = owner.inside("webhook", "add", url, "--event", "job.ended")
    assert (hook.code, hook.first) == (0, f"{url} is told of job.ended"), hook.err
    until(lambda: "here" in owner.inside("node", "list").out, "the machine's own runner")
    script = "mkdir -p out/deep; echo 0.5 > out/deep/loss; echo ready; while [ ! -e in/go ]; do sleep 0.2; done"
    begun = owner.inside(
        "job", "submit", "--offer", "small", "--name", "work", "--", "sh", "-c", script
    )
    assert begun.code == 0, begun.err
    until(lambda: "ready" in owner("job", "logs", "work").out, "the job")

    subprocess.run(
        ["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", str(tmp_path / "id")],
        check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    added = owner.inside("key", "add", str(tmp_path / "id.pub"))
    assert added.code == 0, added.err
    config = tmp_path / "ssh_config"
    config.write_text(owner.inside("ssh", "--config").out)
    entered = subprocess.run(
        ["ssh", "-F", str(config), "-i", str(tmp_path / "id"), "work.ouvrage", "cat", "out/deep/loss"],
        env=dict(owner.environment), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (entered.returncode, entered.stdout) == (0, "0.5\n"), entered.stderr

    fetched = owner("cp", "-r", "work:out", "results")
    assert fetched.code == 0, fetched.err
    assert (owner.path.parent / "results/deep/loss").read_text() == "0.5\n"
    (owner.path.parent / "in").mkdir()
    (owner.path.parent / "in/go").touch()
    sent = owner("cp", "-r", "in", "work:in")
    assert sent.code == 0, sent.err
    until(lambda: bool(came), "the word of its end")
    assert (came[0]["event"], came[0]["data"]["state"]) == ("job.ended", "done")
    assert "arrived" in owner.inside("webhook", "deliveries", hook.out.split()[-1]).out
    assert owner.inside("verify").code == 0
