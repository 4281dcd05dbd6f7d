"""OCI images: the same tries against a container, and what an attempt in one records."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.podman import Podman, registry_of
from ouvrage.adapters.sandbox_cgroup import standing
from ouvrage.agent.enclosure import group_prefix
from ouvrage.agent.escapes import BOMBS, TRIES
from ouvrage.agent.files import RESULT
from ouvrage.agent.isolation import Finding, examine
from ouvrage.base.errors import OuvrageError
from ouvrage.wire.runner import Start
from tests.support.meter import until
from tests.support.orders import Node, an_order, missing

IMAGE = "localhost/links:1"
CDI = Path("/var/run/cdi/ouvrage-test.json")


def skip_without_podman() -> None:
    why = missing() or ", ".join(Podman.missing())
    if why:
        pytest.skip(why)


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    skip_without_podman()
    chosen = [bomb for bomb in BOMBS if bomb.name in ("memory-bomb", "orphans")]
    return {each.name: each for each in examine("podman", chosen)}


@pytest.mark.parametrize("name", [*(t.name for t in TRIES), "memory-bomb", "orphans"])
def test_nothing_gets_out_of_a_container(findings: dict[str, Finding], name: str) -> None:
    found = findings[name]
    assert found.holds, f"{found.what}: {found.found}"


def linked(archive: Path, files: dict[str, str]) -> Path:
    """An image's archive: links into /usr, and these files."""
    with tarfile.open(archive, "w") as tar:
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
        for name in ("usr", "etc", "proc", "dev", "sys", "tmp", "run"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(directory)
        for name, text in files.items():
            file = tarfile.TarInfo(name)
            file.size = len(text)
            tar.addfile(file, io.BytesIO(text.encode()))
    return archive


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with an image of links into /usr: made here, from no registry."""
    skip_without_podman()
    made = Node(tmp_path_factory.mktemp("podman") / "agent")
    podman = Podman(made.state)
    podman.set_up()
    podman.make_image(IMAGE, linked(made.state / "image.tar", {}))
    yield made
    made.close()
    podman.tear_down()


def contained(*command: str, **changed: object) -> Start:
    return an_order(*command, isolation="podman", **{"image": IMAGE, **changed})


def test_what_a_container_records(node: Node) -> None:
    secret = [{"name": "KEY", "value": "s3cret"}]
    script = "echo $KEY; id -u; touch here /tmp/there; echo out > result; exit 5"
    outputs = [{"path": "result", "name": "result"}]
    start = contained("sh", "-c", script, secrets=secret, outputs=outputs)
    ended = node.run(start, see=("/usr",))
    assert (ended["outcome"], ended["exit_code"], ended["isolation"]) == ("failed", 5, "podman")
    assert ended["scrub"] == "clean"
    assert node.log(start) == "s3cret\n1000\n"
    assert (node.files(start) / "outputs" / "result").read_text() == "out\n"
    assert 0 < ended["used"]["memory_bytes"] < 64 << 20
    assert ended["used"]["cpu_us"] > 0
    assert not standing(group_prefix(node.state))
    assert Podman(node.state).standing() == []


def test_a_container_is_asked_to_end_and_may_save(node: Node) -> None:
    start = contained(
        "sh", "-c", "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    )
    files = node.begin(start, see=("/usr",))
    until(lambda: (files / "log").exists() and "up" in node.log(start), "it runs")
    files.ask_to_stop({"why": "preempted", "reason": "x", "grace_us": 20_000_000})
    until((files / RESULT).exists, "a result")
    ended = json.loads((files / RESULT).read_text())
    assert (ended["outcome"], ended["exit_code"]) == ("preempted", 0)
    assert "saved" in node.log(start)


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [({"image": "localhost/none:1"}, "never started"), ({"command": ["/no/such"]}, "failed")],
)
def test_what_cannot_be_started(node: Node, changed: dict[str, object], outcome: str) -> None:
    start = contained("true").model_copy(update=changed)
    ended = node.run(start, see=("/usr",))
    assert ended["outcome"] == outcome, ended
    assert ended["scrub"] == "clean"


def test_a_card_is_handed_in_as_the_vendor_describes_it(node: Node) -> None:
    """CDI: a made-up node in the place of a card's, described as NVIDIA's toolkit would."""
    path = Path(f"/dev/ouvrage-card-{os.getpid()}")
    try:
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 7))
    except PermissionError:
        pytest.skip("device nodes cannot be made here")
    edits = {
        "deviceNodes": [{"path": str(path)}],
        "env": ["CARD=handed"],
    }
    told = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
            "devices": [{"name": "GPU-test", "containerEdits": edits}]}  # fmt: skip
    CDI.parent.mkdir(exist_ok=True)
    CDI.write_text(json.dumps(told))
    try:
        start = contained("sh", "-c", "echo $CARD; ls /dev/ouvrage*", devices=["GPU-test"])
        ended = node.run(start, see=("/usr",))
    finally:
        CDI.unlink()
        path.unlink()
    assert node.log(start) == f"handed\n{path}\n", ended
    assert ended["scrub"] == "failed"  # no driver here that says the card's memory is empty


def test_images_come_from_where_the_owner_says(node: Node) -> None:
    podman = Podman(node.state)
    podman.pull(IMAGE, ())
    for image in ("169.254.169.254/x:1", "localhost/none:1", "internal.example:5000/a/b"):
        with pytest.raises(OuvrageError, match="not taken"):
            podman.pull(image, ("docker.io",))


@pytest.mark.parametrize(
    "wrong", ["python", "--privileged", "a b", "docker.io/../x", "HTTP://x/y", ""]
)
def test_a_name_that_is_none(wrong: str) -> None:
    with pytest.raises(OuvrageError) as refused:
        registry_of(wrong)
    assert refused.value.code == "image/name"


def test_a_container_goes_with_its_attempt_when_the_supervisor_was_killed(node: Node) -> None:
    from ouvrage.agent.watched import Watched

    start = contained("sleep", "600")
    files = node.begin(start, see=("/usr",))
    until(lambda: Podman(node.state).standing(), "a container")
    lock = (files / "lock").stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        if line.split()[5].endswith(f":{lock}"):
            os.kill(int(line.split()[4]), signal.SIGKILL)
    watched = Watched.found(node.state, files, lambda: None)

    def lost() -> bool:
        watched._look_at = 0
        watched.look_after()
        return watched.ended

    until(lost, "it is found lost")
    ended = json.loads((files / RESULT).read_text())
    assert (ended["outcome"], ended["scrub"]) == ("lost", "clean")
    assert Podman(node.state).standing() == []
    assert subprocess.run(["pgrep", "-f", f"conmon.*{start.attempt}"], check=False).returncode == 1
