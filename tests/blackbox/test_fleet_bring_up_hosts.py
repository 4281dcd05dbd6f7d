"""A fleet brought up on its hosts, over SSH and here, and everything hostile: each is named, and nothing is written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ouvrage.cli.agent import host_name
from ouvrage.cli.fleet_carry import Where, contents_of, planned
from ouvrage.cli.fleet_kept import the_fleet
from ouvrage.cli.ledger import Ledger, opened
from tests.blackbox.home import Home, Said, home_in
from tests.blackbox.test_fleet_bring_up import ask, known, proven, tree
from tests.house.source import SRC
from tests.support.slurm import missing
from tests.support.ssh_server import ssh_server


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with no fleet yet, and two machines on record that could join one."""
    if missing() is not None:
        pytest.skip(f"no Slurm: {missing()}")
    found = home_in(tmp_path_factory.mktemp("machines"), "home")
    known(found, "g1", "g2")
    return found


@pytest.fixture
def home(machines: Home, homes: Callable[[str], Home]) -> Home:
    """A home of the test's own, as that one is."""
    found = homes("home")
    shutil.copytree(machines.path, found.path)
    return found


def started(home: Home, *more: str, code: int = 0) -> Said:
    words = "fleet init lab --controller head --address 10.0.0.1 --build h100-2 --for batch"
    return ask(home, *words.split(), *more, code=code)


def refused(home: Home, *words: str, code: int = 2) -> str:
    """What a command is refused with; it leaves nothing behind."""
    before = (home.facts(), home.files())
    said = ask(home, *words, code=code)
    assert "nothing was written" in said.err, said
    assert (home.facts(), home.files()) == before
    return said.err


def test_a_plan_is_shown_and_writes_nothing(home: Home, tmp_path: Path) -> None:
    before = (home.facts(), home.files())
    said = started(home)
    assert said.first.startswith("lab: controller and accounting on head, 0 nodes; a machine joins")
    assert "systemctl enable --quiet slurmdbd && systemctl restart slurmdbd" in said.out
    assert said.out.splitlines()[-1].startswith("Nothing was written.")
    assert (home.facts(), home.files()) == before
    assert "error[fleet/none]" in refused(home, "fleet", "add", "g1")
    out = tmp_path / "out"
    started(home, "--to", str(out))
    assert out.stat().st_mode & 0o77 == 0
    for path in (each for each in out.rglob("*") if each.is_file()):
        assert path.stat().st_mode & 0o77 == 0, path
    said = ask(home, "fleet", "add", "g1", "--diff")
    assert "+NodeName=g1 NodeHostname=g1 NodeAddr=g1 " in said.out
    for key in (home.path / "fleet/keys").iterdir():
        assert key.stat().st_mode & 0o77 == 0
    password = (home.path / "fleet/keys/accounting.password").read_text()
    assert password in (out / "controller/etc/slurm/slurmdbd.conf").read_text()
    everything = started(home, "--diff").out + started(home, "--json").out + str(home.facts())
    assert password not in everything
    assert "(secret, not shown)" in started(home, "--database", "db:3307", "--diff").out


def test_the_same_again_changes_nothing(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    started(home, "--to", str(out))
    ask(home, "fleet", "add", "g1", "--to", str(out))
    before = (home.facts(), {p: p.read_bytes() for p in out.rglob("*") if p.is_file()})
    said = ask(home, "fleet", "add", "g1", "--to", str(out))
    assert " changed" not in said.out
    assert " new" not in said.out
    assert (home.facts(), {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}) == before


@pytest.mark.parametrize(
    "name",
    ["g1,g2", "g[1-9]", "g1\nNodeName=x", "g1 Gres=gpu:9", "-g1", "g_1", "ALL", "default", "é", "a" * 64, "g1=x", "localhost", ""],
)  # fmt: skip
def test_a_name_that_is_no_host_name(home: Home, tmp_path: Path, name: str) -> None:
    started(home, "--to", str(tmp_path / "out"))
    assert "error[fleet/host-name]" in refused(home, "fleet", "add", "--", name)
    assert "error[fleet/" in refused(home, "fleet", "add", "g1", "--host", name or " ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--address", "10.0.0.1 x"), "fleet/address"),
        (("--address", "host$(reboot)"), "fleet/address"),
        (("--port", "0"), "fleet/port"),
        (("--port", "65536"), "fleet/port"),
        (("--devices", "/dev/nvidia0 Count=9 "), "fleet/path"),
        (("--devices", "../nvidia"), "fleet/path"),
        (("--gpu-type", "h100:9"), "fleet/word"),
        (("--cores", "99999"), "fleet/not-told"),
        (("--build", "no-such"), "build/unknown"),
    ],
)
def test_what_cannot_stand_in_slurms_files(
    home: Home, tmp_path: Path, words: tuple[str, ...], code: str
) -> None:
    started(home, "--to", str(tmp_path / "out"))
    assert f"error[{code}]" in refused(home, "fleet", "add", "g1", *words)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--set", "NodeName=x"), "fleet/setting"),
        (("--set", "Include=/etc/passwd"), "fleet/setting"),
        (("--set", "KillWait"), "fleet/setting"),
        (("--set", "Kill Wait=3"), "fleet/setting"),
        (("--set", "KillWait=3\nNodeName=x"), "fleet/setting"),
        (("--root", "etc"), "fleet/path"),
        (("--root", "/a/../b"), "fleet/path"),
        (("--ports", "1,2,3"), "fleet/port"),
        (("--ports", "1,2,3,x"), "fleet/port"),
        (("--ports", "6817,6817,6819,6820"), "fleet/port"),
        (("--database", "db:x"), "fleet/port"),
        (("--controller", "a.b"), "fleet/host-name"),
        (("--for", "mining"), "qualify/class"),
        (("--build", "none"), "build/unknown"),
        (("--refuse", "a b=why"), "fleet/word"),
        (("--to", "x", "--apply"), "fleet/which"),
    ],
)
def test_settings_that_cannot_be(home: Home, words: tuple[str, ...], code: str) -> None:
    base = ("fleet", "init", "lab", "--controller", "head", "--build", "h100-2", "--for", "batch")
    assert f"error[{code}]" in refused(home, *base, *words)
    assert "error[fleet/cluster-name]" in refused(home, "fleet", "init", "La b")
    assert "error[fleet/init]" in refused(home, "fleet", "init", "lab")


def test_a_machine_that_is_not_the_build_or_proved_nothing(home: Home, tmp_path: Path) -> None:
    started(home, "--to", str(tmp_path / "out"))
    ask(home, "fleet", "add", "g1", "--to", str(tmp_path / "out"))
    assert "error[inventory/none]" in refused(home, "fleet", "add", "g9")
    other = tree(home, "g3")
    other.gpus.popitem()
    other.packages["bash"] = ("install", "6")
    ask(home, "node", "inventory", "g3", "--root", str(other.write().root))
    told = refused(home, "fleet", "add", "g3")
    assert "error[fleet/may-not-join]: g3 may not join lab: " in told
    assert "build: part gpu 0000:81:00.0 is missing: NVIDIA H100 80GB HBM3" in told
    assert "build: package bash is 6, the build has 5.2.15-2+b7" in told
    assert "certificate: it has no certificate for batch" in told
    proven(home, "g3", passed=False)
    assert "its certificate for batch is failed" in refused(home, "fleet", "add", "g3", "--allow", "*:*")  # fmt: skip
    proven(home, "g3", days=-1)
    assert "its certificate for batch is expired" in refused(home, "fleet", "add", "g3", "--allow", "*:*")  # fmt: skip
    proven(home, "g3")
    said = ask(home, "fleet", "add", "g3", "--allow", "*:*", "--to", str(tmp_path / "out"))
    assert said.first.startswith("g3 may join lab: 1 h100, ")
    twin = tree(home, "g2")
    twin.kernel = "6.1.0-29-amd64"
    ask(home, "node", "inventory", "g2", "--root", str(twin.write().root))
    assert "its certificate for batch is void: software kernel was" in refused(home, "fleet", "add", "g2")  # fmt: skip


def test_an_address_that_another_node_has(home: Home, tmp_path: Path) -> None:
    started(home, "--to", str(tmp_path / "out"))
    ask(home, "fleet", "add", "g1", "--address", "10.0.0.2", "--to", str(tmp_path / "out"))
    told = refused(home, "fleet", "add", "g2", "--address", "10.0.0.2")
    assert "name: g1 is reached at 10.0.0.2 already" in told
    ask(home, "fleet", "add", "g2", "--address", "10.0.0.2", "--port", "7000")


def test_somebody_elses_slurm_conf_is_left_alone(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    foreign = out / "all/etc/slurm/slurm.conf"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("ClusterName=other\nthis is no line\nNodeName=x CPUs=1\n")
    words = "fleet init lab --controller head --build h100-2 --for batch --to"
    told = refused(home, *words.split(), str(out))
    assert "error[fleet/foreign]" in told
    assert "begins with 'ClusterName=other'" in told
    assert "slurm.conf:2" in told
    assert foreign.read_text().startswith("ClusterName=other")
    started(home, "--to", str(out), "--replace")
    assert "ClusterName=lab" in foreign.read_text()


def test_a_key_that_was_cut_is_refused(home: Home, tmp_path: Path) -> None:
    started(home, "--to", str(tmp_path / "out"))
    key = home.path / "fleet/keys/munge.key"
    key.write_bytes(key.read_bytes()[:100])
    told = refused(home, "fleet", "upgrade", "--to", str(tmp_path / "out"))
    assert "munge.key has 100 bytes, it was made with 1024" in told


def test_a_fleet_keeps_its_name_and_its_root(home: Home, tmp_path: Path) -> None:
    started(home, "--to", str(tmp_path / "out"))
    assert "error[fleet/one]" in refused(home, "fleet", "init", "two")
    assert "error[fleet/root]" in refused(home, "fleet", "init", "lab", "--root", "/srv/x")
    again = ("fleet", "init", "lab", "--to", str(tmp_path / "out"), "--set")
    assert "+KillWait=5" in ask(home, *again, "KillWait=5").out.splitlines()
    assert "KillWait=5" in (tmp_path / "out/all/etc/slurm/slurm.conf").read_text()
    ask(home, *again, "KillWait=")
    assert "KillWait" not in (tmp_path / "out/all/etc/slurm/slurm.conf").read_text()


def test_on_the_hosts_over_ssh_and_here(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """The controller is this machine, the node is reached over SSH; both have their files below a root of their own."""
    if shutil.which("sshd") is None:
        pytest.skip("no sshd: tools/debian.sh test")
    root = tmp_path / "root"
    (tmp_path / "ssh").mkdir()
    for number in range(2):
        (tmp_path / f"nvidia{number}").touch()
    added = ("fleet", "add", "g1", "--devices", f"{tmp_path}/nvidia", "--apply")
    with ssh_server(tmp_path / "ssh", {}) as command:
        monkeypatch.setenv("OUVRAGE_SSH", command)
        owner = replace(home, environment={**home.environment, "OUVRAGE_SSH": command})
        words = (
            f"fleet init lab --controller {host_name()} --build h100-2 --for batch --root {root}"
        )
        said = ask(owner, *words.split(), "--apply")
        assert f"{host_name()}: put {root}/etc/slurm/slurm.conf" in said.out
        slurmdbd = root / "etc/slurm/slurmdbd.conf"
        assert (slurmdbd.owner(), slurmdbd.stat().st_mode & 0o777) == ("slurm", 0o600)
        key = root / "etc/munge/munge.key"
        assert (key.owner(), key.stat().st_mode & 0o777) == ("munge", 0o400)
        assert (root / "var/lib/slurm").stat().st_mode & 0o777 == 0o755
        (tmp_path / "nvidia1").unlink()
        told = refused(owner, *added)
        assert "gpus: its inventory has 2 GPUs, the machine has device files for 1" in told
        (tmp_path / "nvidia1").touch()
        told = refused(owner, *added, "--memory", "99999999")
        assert "shape: RealMemory would be 99999999, its slurmd finds " in told
        said = ask(owner, *added)
        assert f"put {root}/etc/slurm/gres.conf" in said.out
        assert "NodeName=g1" in (root / "etc/slurm/slurm.conf").read_text()
        (root / "etc/slurm/cgroup.conf").write_text("ConstrainCores=no\n")
        told = refused(owner, "fleet", "upgrade", "--apply")
        assert "error[fleet/foreign]" in told
        ask(owner, "fleet", "upgrade", "--apply", "--replace")
        assert (root / "etc/slurm/cgroup.conf.before-ouvrage").read_text() == "ConstrainCores=no\n"
    told = ask(owner, *added, code=1).err
    assert "error[fleet/host]: g1 does not do what it is told" in told
    said = ask(owner, "fleet", "init", "lab", "--set", "KillWait=9", "--apply", code=1)
    assert "away          g1 keeps its old files: g1 does not do what it is told" in said.out
    assert "KillWait=9" in (root / "etc/slurm/slurm.conf").read_text()
    assert ask(owner, "fleet", "init", "lab", "--apply", "--json", code=1).json["away"].keys() == {"g1"}  # fmt: skip


def test_the_script_stops_where_slurm_is_not_installed(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    started(home, "--root", str(tmp_path / "root"), "--to", str(out))
    empty = tmp_path / "bin"
    empty.mkdir()
    for name in ("sh", "dirname"):
        (empty / name).symlink_to(shutil.which(name) or name)
    (empty / "id").write_text("#!/bin/sh\nexit 1\n")
    (empty / "id").chmod(0o755)
    done = subprocess.run(
        ["sh", out / "install.sh", "all", "node"], env={"PATH": str(empty)}, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 1
    assert "apt-get install munge slurmd slurm-client" in done.stderr
    assert not (tmp_path / "root").exists()


def test_a_node_is_sent_no_secret_of_the_controllers(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    started(home, "--to", str(out))
    with opened_in(home) as ledger:
        fleet = the_fleet(ledger)
        where = Where(to=out, apply=False, replace=False, whole=False, as_json=False)
        carry = planned(ledger, fleet, fleet, where)
    sent = contents_of(carry, ("node",))
    password = (home.path / "fleet/keys/accounting.password").read_bytes()
    assert {"install.sh", "all/etc/munge/munge.key"} <= set(sent)
    assert not any(password in data for data in sent.values())
    assert not any("jwt" in name and data for name, data in sent.items())


def test_what_a_machine_knows_of_itself_comes_over(
    machines: Home, homes: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine's home is one, the owner's another."""
    owner = homes("owner")
    lines = ask(machines, "node", "facts", "g1").out
    (tmp_path / "g1").write_text(lines)
    said = ask(owner, "fleet", "learn", "g1", "--from", str(tmp_path / "g1"))
    assert said.first.endswith("; 1 certificate, 2 of 2 facts new."), said.first
    assert "0 of 2 facts new" in ask(owner, "fleet", "learn", "g1", "--from", str(tmp_path / "g1")).first  # fmt: skip
    (tmp_path / "ssh").mkdir()
    there = f"env OUVRAGE_HOME={machines.path} PYTHONPATH={SRC.parent} {sys.executable} -m ouvrage"
    with ssh_server(tmp_path / "ssh", {}) as command:
        monkeypatch.setenv("OUVRAGE_SSH", command)
        monkeypatch.setenv("OUVRAGE_THERE", there)
        asked = replace(owner, environment={**owner.environment, "OUVRAGE_SSH": command, "OUVRAGE_THERE": there})  # fmt: skip
        said = ask(asked, "fleet", "learn", "g2", "--ssh", "root@g2")
    assert said.first.endswith("; 1 certificate, 2 of 2 facts new."), said.first
    ask(owner, "build", "save", "h100-2", "--node", "g1")
    started(owner, "--to", str(tmp_path / "out"))
    for node in ("g1", "g2"):
        ask(owner, "fleet", "add", node, "--to", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda text: "", "has 0 lines"),
        (lambda text: text * 40, "has 80 lines"),
        (lambda text: text + "{}\n", "x:3 "),
        (lambda text: text + "[" * 20_000 + "\n", "x:3"),
        (lambda text: text.replace('"subject":"node:g1"', '"subject":"node:g2"'), "expected about g1"),
        (lambda text: text.replace("AMD EPYC 9554", "AMD EPYC 9654"), "expected hash"),
        (lambda text: text.replace("node.certificate", "node.blessing"), "expected node.inventory or node.certificate"),
        (lambda text: text.replace("\\\"passed\\\":true", "\\\"passed\\\":7"), "error["),
    ],
)  # fmt: skip
def test_lines_that_are_not_a_machines_own(
    machines: Home, homes: Callable[[str], Home], tmp_path: Path, change: Callable[[str], str], found: str
) -> None:  # fmt: skip
    text = ask(machines, "node", "facts", "g1").out
    assert change(text) != text
    (tmp_path / "x").write_text(change(text))
    owner = homes("owner")
    said = ask(owner, "fleet", "learn", "g1", "--from", str(tmp_path / "x"), code=2)
    assert found in said.err, said
    assert "nothing was written" in said.err
    assert "error[inventory/none]" in ask(owner, "node", "facts", "g1", code=2).err


@contextmanager
def opened_in(home: Home) -> Iterator[Ledger]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OUVRAGE_HOME", str(home.path))
        with opened() as ledger:
            yield ledger
