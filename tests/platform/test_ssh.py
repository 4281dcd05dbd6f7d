"""SSH keys, and OpenSSH's own client and server between a person's terminal and a sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.meter import SOURCES
from tests.support.orders import missing
from tests.support.own_node import OwnNode, own_node
from tests.support.server import Client, Running

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")
ED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


def made_key(at: Path, *words: str) -> str:
    """The public line of a key that is made at a path."""
    words = words or ("-t", "ed25519")
    base = ["ssh-keygen", "-q", "-N", "", "-C", "ann@here", "-f", str(at), *words]
    subprocess.run(base, check=True, stdin=subprocess.DEVNULL)
    return at.with_suffix(".pub").read_text()


def test_keys_are_added_listed_and_removed(either_server: Running, tmp_path: Path) -> None:
    ann, rival = either_server.tenant("acme"), either_server.tenant("rival")
    line = made_key(tmp_path / "id")
    made = ann.post("/v1/keys", {"key": line})
    assert (made["name"], made["line"]) == ("ann@here", line.rsplit(" ", 1)[0])
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(tmp_path / "id.pub")], check=True, capture_output=True, text=True
    ).stdout
    assert made["fingerprint"] == shown.split()[1]
    second = ann.post("/v1/keys", {"key": ED.replace(" ", "  "), "name": "old laptop"})
    assert [each["name"] for each in ann.get("/v1/keys")["items"]] == ["old laptop", "ann@here"]
    assert rival.get("/v1/keys")["items"] == []
    for again in (
        {"key": line, "name": "x"},
        {"key": made_key(tmp_path / "b"), "name": "ann@here"},
    ):
        refused = ann("POST", "/v1/keys", again)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "key/known")
    assert rival("DELETE", f"/v1/keys/{made['key']}").status_code == 404
    assert rival.post("/v1/keys", {"key": line})["fingerprint"] == made["fingerprint"]
    ann("DELETE", "/v1/keys/old%20laptop").raise_for_status()
    ann("DELETE", f"/v1/keys/{made['key']}").raise_for_status()
    assert ann("DELETE", f"/v1/keys/{second['key']}").status_code == 404
    assert ann.get("/v1/keys")["items"] == []
    trail = [each["action"] for each in ann.get("/v1/audit")["items"]]
    assert trail[:4] == ["key.remove", "key.remove", "key.add", "key.add"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "private key"),
        (f"{ED}\n{ED}", "one line"),
        ("ssh-ed25519", "one line"),
        (f'command="sh" {ED}', "no kind of key"),
        ("ssh-dss AAAAB3NzaC1kc3M=", "no kind of key"),
        ("ssh-ed25519 %%%%", "no key's"),
        ("ssh-ed25519  ==", "no key's"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMq", "no key's"),
        (ED.replace("ssh-ed25519", "ssh-rsa"), "another kind"),
        (f"{ED} a\x1b[2Jb", "no text"),
    ],
)
def test_what_is_no_key_is_refused(platform_server: Running, text: str, why: str) -> None:
    refused = platform_server.owner("POST", "/v1/keys", {"key": text})
    assert refused.status_code == 422, refused.text
    assert why in refused.json()["error"]["message"]
    assert refused.json()["error"]["field"] == "key"


def test_weak_keys_are_refused(platform_server: Running, tmp_path: Path) -> None:
    weak = made_key(tmp_path / "weak", "-t", "rsa", "-b", "1024")
    refused = platform_server.owner("POST", "/v1/keys", {"key": weak})
    assert "2048 bits" in refused.json()["error"]["message"]
    for words in (("-t", "rsa", "-b", "2048"), ("-t", "ecdsa")):
        line = made_key(tmp_path / words[1], *words)
        platform_server.owner.post("/v1/keys", {"key": line, "name": words[1]})


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnNode]:
    why = missing() or ("OpenSSH's server is not here" if SSHD is None else None)
    if why:
        pytest.skip(why)
    with own_node(tmp_path_factory.mktemp("ssh")) as made:
        yield made


@pytest.fixture(scope="module")
def ann(node: OwnNode) -> Client:
    return node.server.tenant("acme")


@pytest.fixture
def person(node: OwnNode, ann: Client, tmp_path: Path) -> Any:
    """Somebody at a terminal elsewhere: words that they type, in a home of their own."""
    token = tmp_path / "token"
    token.write_text(f"{ann.token}\n")
    token.chmod(0o600)
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCES), "HOME": str(tmp_path), "LANG": "C.UTF-8",
        "OUVRAGE_URL": node.server.url, "OUVRAGE_TOKEN_FILE": str(token),
        "OUVRAGE_HOME": str(tmp_path / "home"),
    }  # fmt: skip

    def types(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        if words[0] == "ouvrage":
            words = (sys.executable, "-m", *words)
        return subprocess.run(
            words, env=environment, cwd=tmp_path, input=text, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip

    return types


def test_openssh_enters_a_job(node: OwnNode, ann: Client, person: Any, tmp_path: Path) -> None:
    job = node.submit(
        ann, "sh", "-c", "echo found > loss.txt; exec sleep 600", name="work",
        environment={"OWN": "my own", "ODD": 'a"b'},
    )  # fmt: skip
    node.until(ann, job, "running")
    said = person("ouvrage", "ssh-proxy", "work.ouvrage")
    assert said.stderr.startswith("error[ssh/no-key]"), said
    made_key(tmp_path / "id")
    assert person("ouvrage", "key", "add", "id.pub", "--name", "mine").returncode == 0

    told = person("ouvrage", "ssh", "--config").stdout
    (tmp_path / "config").write_text(f"{told}  IdentityFile {tmp_path}/id\n  IdentitiesOnly yes\n")
    with_config = ("-F", str(tmp_path / "config"))
    words = "id -un; pwd; echo $OWN$ODD; grep -E '^(CapEff|NoNewPrivs|Seccomp:)' /proc/self/status; exit 5"
    said = person("ssh", *with_config, "work.ouvrage", words)
    assert said.returncode == 5, said
    lines = said.stdout.split("\n")
    assert lines[:3] == ["job", "/scratch", "my own"], said
    assert [line.split()[1] for line in lines[3:6]] == ["0" * 16, "1", "2"]

    said = person("ssh", "-tt", *with_config, "work.ouvrage", "tty; cat /etc/shadow; ls -A /tmp")
    assert said.stdout.startswith("/dev/pts/"), said
    assert "root:" not in said.stdout
    big = os.urandom(1_000_000)
    (tmp_path / "big.bin").write_bytes(big)
    for words in (("big.bin", "work.ouvrage:"), ("work.ouvrage:big.bin", "back.bin"),
                  ("work.ouvrage:loss.txt", "loss.txt")):  # fmt: skip
        assert person("scp", "-q", *with_config, *words).returncode == 0
    assert (tmp_path / "back.bin").read_bytes() == big
    assert (tmp_path / "loss.txt").read_text() == "found\n"

    left = person("ouvrage", "shell", "work", "--", "sh", "-c", "ls -A /tmp; ps -e | grep -c sshd")
    assert left.stdout.split() in (["0"], ["sh:", "1:", "ps:", "not", "found", "0"]), left
    made_key(tmp_path / "other")
    (tmp_path / "config").write_text(
        f"{told}  IdentityFile {tmp_path}/other\n  IdentitiesOnly yes\n"
    )
    said = person("ssh", *with_config, "work.ouvrage", "true")
    assert (said.returncode, "Permission denied (publickey)" in said.stderr) == (255, True), said
    # A client accepts no host key but the one of its own making.
    known = tmp_path / "home" / "ssh" / "known_hosts"
    known.write_text(f"*.ouvrage {made_key(tmp_path / 'false')}")
    said = person("ssh", *with_config, "work.ouvrage", "true")
    assert "Host key verification failed" in said.stderr, said
    assert person("ouvrage", "key", "remove", "mine").returncode == 0
    assert "ssh/no-key" in person("ssh", *with_config, "work.ouvrage", "true").stderr
    node.cancel(ann, job)


def test_only_its_own_people_and_only_what_is_a_name(
    node: OwnNode, ann: Client, person: Any, tmp_path: Path
) -> None:
    rival = node.server.tenant("rival")
    job = node.submit(rival, "sleep", "600", name="theirs")
    node.until(rival, job, "running")
    made_key(tmp_path / "id")
    person("ouvrage", "key", "add", "id.pub", "--name", "mine")
    said = person("ouvrage", "ssh-proxy", job)
    assert said.stderr.startswith("error[job/unknown]"), said
    for name in ("a;touch x", "$(touch x)", "-oProxyCommand=touch x", "../x", ""):
        said = person("ouvrage", "ssh", "--", name)
        assert "ssh/job" in said.stderr, said
    assert not (tmp_path / "x").exists()
    node.cancel(rival, job)
