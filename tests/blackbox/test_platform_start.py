"""From an empty directory to a platform with a tenant on it, as its owner and the tenant type it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.blackbox.home import Home, Said

PASSWORD = re.compile(r"with ([a-z2-7]{6}(?:-[a-z2-7]{6}){3})    \(shown this once\)")


def _stop(state: Path) -> None:
    """End a server that a failed test left behind."""
    file = state / "server.pid"
    if file.exists():
        os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "state"
    yield directory
    _stop(directory)


Up = Callable[..., Said]


@pytest.fixture
def up(ouvrage: Home, state: Path) -> Up:
    def start(*more: str, listen: str = "127.0.0.1:0") -> Said:
        return ouvrage(
            "up", "--state", str(state), "--listen", listen, "--detach", "--no-runner", *more
        )

    return start


def _owner(ouvrage: Home, state: Path, **more: str) -> Home:
    """The command as the owner has it, by what `up` prints."""
    url = (state / "server.url").read_text().strip()
    names = {"OUVRAGE_URL": url, "OUVRAGE_TOKEN_FILE": str(state / "owner.token"), **more}
    return replace(ouvrage, environment={**ouvrage.environment, **names})


def test_from_an_empty_directory_to_a_tenant_who_works_there(
    ouvrage: Home, homes: Callable[[str], Home], up: Up, state: Path
) -> None:
    started = up()
    url = (state / "server.url").read_text().strip()
    assert started.code == 0, started.err
    assert started.first == f"Ouvrage runs at {url}, with its state in {state}"
    first = PASSWORD.search(started.out)
    assert first
    process = Path("/proc", (state / "server.pid").read_text().strip())
    shown = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    for secret in (first[1], (state / "owner.token").read_text().strip()):
        assert secret.encode() not in shown
    assert state.stat().st_mode & 0o777 == 0o700
    owner = _owner(ouvrage, state)
    assert owner.inside("whoami").out.splitlines()[:2] == [f"admin at {url}", "  owner in owner"]
    now = owner.inside("today")
    assert now.first == "Nothing needs you; 0 running, 0 waiting", now
    assert owner.inside("today", "--json").json["needs"] == []

    made = owner.inside("tenant", "create", "acme", "--admin", "ann")
    assert (
        made.first == "The tenant acme is there, with the project main; it pays in advance, in EUR"
    )
    password = PASSWORD.search(made.out)
    assert password

    ann = homes("ann")
    signed = subprocess.run(
        [*_command(ann), "login", url, "--login", "ann@acme", "--password-stdin"],
        input=f"{password[1]}\n", env=dict(ann.environment), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert signed.stdout.splitlines()[0].startswith(f"Signed in to {url} as ann@acme, until ")
    kept = ann.path / "servers.toml"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert ann.inside("project", "create", "vision").first == "The project acme/vision is there."
    added = ann.inside("member", "add", "bob", "--role", "tenant-user", "--project", "vision")
    assert added.first == "bob@acme is tenant-user in acme/vision alone"
    made = ann.inside(
        "token", "create", "ci", "--scope", "work", "--machine", "ci", "--role", "tenant-user",
        "--into", "ci.token",
    )  # fmt: skip
    assert made.first.startswith("A token for ci@acme.machine: work, until ")
    assert (ann.path.parent / "ci.token").stat().st_mode & 0o777 == 0o600
    assert "2 projects" in ann.inside("project", "list").first
    assert "3 members" in ann.inside("member", "list").first
    assert [line["action"] for line in ann.inside("audit", "--json").json][:3] == [
        "token.create", "member.create", "project.create",
    ]  # fmt: skip

    refused = ann.inside("tenant", "create", "mine")
    assert refused.code == 2
    assert (
        refused.err.splitlines()[0]
        == "error[right/missing]: you may not do this: organisation.create"
    )
    assert ann.inside("tenant", "show", "owner").err.startswith("error[organisation/unknown]")
    assert "2 tenants" not in owner.inside("tenant", "list").first

    out = ann.inside("logout")
    assert out.first == f"Signed out of {url}; the token of ann@acme is revoked."
    assert ann.inside("whoami").err.startswith("error[server/none]")

    held = replace(ouvrage, environment={**ouvrage.environment, "OUVRAGE_HOME": str(state)})
    assert held.inside("verify").first.startswith("The books hold: ")
    down = ouvrage.inside("down", "--state", str(state))
    assert down.first == f"Stopped the server on {state}."
    assert sorted(path.name for path in state.iterdir() if path.name.startswith("server")) == [
        "server.lock",
        "server.log",
    ]
    assert (state / "server.log").read_text() == ""


def _command(home: Home) -> list[str]:
    from tests.blackbox.home import COMMAND

    return COMMAND


def test_a_stopped_or_killed_server_starts_again_with_all_that_it_had(
    ouvrage: Home, up: Up, state: Path
) -> None:
    up()
    owner = _owner(ouvrage, state)
    owner.inside("tenant", "create", "acme")
    port = (state / "server.url").read_text().strip().rpartition(":")[2]
    os.kill(int((state / "server.pid").read_text()), signal.SIGKILL)
    again = up(listen=f"127.0.0.1:{port}")
    assert again.code == 0, again.err
    assert "shown this once" not in again.out
    assert "1 tenant here" in owner.inside("tenant", "list").first
    second = up()
    assert second.code == 2
    assert second.err.startswith(
        f"error[server/running]: a server runs on {state} already, as process "
    )
    assert ouvrage.inside("down", "--state", str(state)).code == 0
    nothing = ouvrage.inside("down", "--state", str(state))
    assert (nothing.code, nothing.first) == (0, f"No server runs on {state}.")
    gone = owner.inside("whoami")
    assert (gone.code, gone.err.split(":")[0]) == (1, "error[server/unreachable]")


def test_a_server_in_the_foreground_ends_with_ctrl_c(ouvrage: Home, state: Path) -> None:
    arguments = ("up", "--state", str(state), "--listen", "127.0.0.1:0", "--no-runner")
    with ouvrage.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            assert server.stdout
            assert server.stdout.readline().startswith("Ouvrage runs at http://127.0.0.1:")
            server.send_signal(signal.SIGINT)  # whether it serves already or is about to
            _, errors = server.communicate(timeout=30)
        finally:
            server.kill()
    assert (server.returncode, errors) == (0, "")
    assert not (state / "server.pid").exists()


def test_tls_with_an_authority_of_its_own(ouvrage: Home, up: Up, state: Path) -> None:
    started = up("--tls", "own")
    ca = state / "tls" / "ca.pem"
    assert f"OUVRAGE_CA={ca}" in started.out
    trusting = _owner(ouvrage, state, OUVRAGE_CA=str(ca))
    assert trusting.inside("whoami").first.startswith("admin at https://")
    refused = _owner(ouvrage, state).inside("whoami")
    assert (refused.code, refused.err.split(":")[0]) == (1, "error[server/unreachable]")
    assert "CERTIFICATE_VERIFY_FAILED" in refused.err
    assert (state / "tls" / "ca.key").stat().st_mode & 0o777 == 0o600
    ouvrage.inside("down", "--state", str(state))


def test_a_start_that_cannot_be_is_refused_and_leaves_nothing(
    ouvrage: Home, up: Up, state: Path
) -> None:
    for words, code in (
        (["--listen", "0.0.0.0:0"], "server/no-tls"),
        (["--listen", "[::]:0"], "server/no-tls"),
        (["--listen", "nowhere"], "server/listen"),
        (["--listen", "127.0.0.1:99999"], "server/listen"),
        (["--tls-certificate", __file__], "tls/pair"),
        (["--tls", "own", "--tls-key", __file__], "tls/which"),
    ):
        said = ouvrage.inside("up", "--state", str(state), *words)
        assert said.err.startswith(f"error[{code}]"), said.err
        assert said.err.endswith("nothing was written\n")
        assert not state.exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = up(listen=f"127.0.0.1:{taken.getsockname()[1]}")
    assert said.err.startswith("error[server/listen]"), said.err
    for url in ("http://gpu.example.org", "ftp://127.0.0.1", "http://ann:pw@127.0.0.1", "x"):
        said = ouvrage.inside("login", url, "--login", "ann")
        assert said.err.split("]")[0] in ("error[server/no-tls", "error[server/address"), said.err
