"""Everything a hostile tenant tries, each against the real sandbox of this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from ouvrage.adapters import seccomp
from ouvrage.agent.escapes import BOMBS, PROBE, TRIES
from ouvrage.agent.isolation import PYTHON, Finding, examine
from tests.support.orders import missing


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    why = missing()
    if why:
        pytest.skip(why)
    return {each.name: each for each in examine()}


@pytest.mark.parametrize(
    "name", [*(t.name for t in TRIES), *(b.name for b in BOMBS), "secrets-outside"]
)
def test_nothing_gets_out(findings: dict[str, Finding], name: str) -> None:
    found = findings[name]
    assert found.holds, f"{found.what}: {found.found}"


@pytest.mark.parametrize(
    "name",
    [
        "host-files", "processes", "devices", "loopback", "sockets", "privileges", "kernel",
        "identity", "cores",
    ],
)  # fmt: skip
def test_the_same_try_gets_somewhere_without_a_sandbox(
    loose: dict[str, list[str]], name: str
) -> None:
    assert loose[name]


@pytest.fixture(scope="module")
def loose() -> dict[str, list[str]]:
    """The tries as an ordinary user of the host, with nothing around them: they bite."""
    if os.geteuid():
        pytest.skip("another user is made by root")
    slow = ("host-writes", "other-tenants", "metadata")
    with tempfile.TemporaryDirectory() as directory, socket.socket() as service:
        service.bind(("127.0.0.1", 0))
        service.listen()
        os.chmod(directory, 0o777)
        told = {
            "tries": [[t.name, t.body] for t in TRIES if t.name not in slow],
            "neighbour": "nobody-is-called-this", "host_paths": ["/tmp"], "host_pids": [1],
            "ports": [service.getsockname()[1]], "abstract": "none", "denied": seccomp.DENIED,
            "host_name": os.uname().nodename, "agent_words": ["PATH"], "cpus": [99],
        }  # fmt: skip
        Path(directory, "told.json").write_text(json.dumps(told))
        done = subprocess.run(
            [PYTHON, "-c", PROBE], cwd=directory, user=2_100_000_002, group=2_100_000_002,
            extra_groups=[], capture_output=True, timeout=60, check=True,
        )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: line["got"] for line in lines}
