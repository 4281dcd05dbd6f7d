"""Tries out on this machine whether a sandbox holds, and keeps what came of it.

Decides what counts as proof: the whole list of ``escapes``, carried out here, on this kernel, by the
same supervisor that will run strangers' work, with another tenant's attempt beside it. What was proven
holds for this kernel, this bubblewrap and this version of ours, and is tried again when one changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ouvrage
from ouvrage.adapters import bubblewrap, seccomp
from ouvrage.adapters.clock import monotonic_us, new_id
from ouvrage.adapters.podman import Podman
from ouvrage.adapters.sandbox_cgroup import standing, version
from ouvrage.agent.bell import Bell
from ouvrage.agent.enclosure import MOST_UIDS, STAGE, UIDS, Order, group_prefix
from ouvrage.agent.escapes import BOMBS, PROBE, TRIES, Bomb
from ouvrage.agent.files import INPUTS, LOG, OUTPUTS, RESULT, AttemptFiles
from ouvrage.agent.nursery import Nursery
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND
from ouvrage.store.samples import write_whole
from ouvrage.wire.runner import Start

PYTHON = "/usr/bin/python3"
_UIDS = UIDS + MOST_UIDS
"""Users of trials only: nobody's project has them."""

_IMAGE = "localhost/ouvrage-trial:1"
_UNKNOWN_TO_RUNTIMES = ("statmount", "listmount", "open_tree_attr")
"""Newer than the library by which Debian 12's runtime looks names up. Without privileges they tell or
copy no more than a program's own mounts."""
_MEMORY_MIB, _DISK_MIB, _PIDS, _LOG_BYTES = 64, 16, 48, 100_000
_LIMIT_US, _PATIENCE_US = 120 * SECOND, 240 * SECOND
"""Far beyond what a try takes: where the machine is slow, that is no hole. The neighbour must outlive all tries."""

_KEPT = "isolation.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: what was tried, what came of it, what must, and what to do where it does not hold."""

    name: str
    what: str
    found: str
    expected: str
    holds: bool
    hint: str


def proven(state: Path) -> list[str]:
    """The isolations that work here; the sandbox is tried out where that was not done on this ground.

    Containers are tried by ``ouvrage doctor --isolation --podman``, since that takes a minute.
    """
    kept = _kept(state)
    return _names(kept if "sandbox" in kept else keep(state, {"sandbox": examine()}))


def keep(state: Path, found: Mapping[str, Sequence[Finding]]) -> dict[str, Any]:
    """Put down what was tried, beside what had been tried on the same ground; all of it."""
    kept = _kept(state)
    kept |= {name: [asdict(each) for each in checks] for name, checks in found.items()}
    told = {"on": _ground(), "findings": kept}
    write_whole(state / _KEPT, (json.dumps(told, indent=2) + "\n").encode())
    return kept


def _kept(state: Path) -> dict[str, Any]:
    """The findings by isolation; none where they were made on another ground."""
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
        told = json.loads((state / _KEPT).read_bytes())
        if told["on"] == _ground():
            return told["findings"]
    return {}


def _names(kept: Mapping[str, Any]) -> list[str]:
    """``none`` keeps nothing apart: it wants no proof, only root and groups."""
    held = [name for name, checks in kept.items() if all(each["holds"] for each in checks)]
    return [*held, *(["none"] if version() != "none" and os.geteuid() == 0 else [])]


def _ground() -> dict[str, str]:
    """What the proof stands on."""
    return {
        "kernel": os.uname().release,
        "bubblewrap": bubblewrap_version(),
        "podman": " ".join(Podman.missing()) or "there",
        "cgroup": version(),
        "ouvrage": ouvrage.__version__,
    }


def bubblewrap_version() -> str:
    """As it says itself; empty where it is not there."""
    try:
        done = subprocess.run([bubblewrap.find(), "--version"], capture_output=True, check=True)
    except (OuvrageError, OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("ascii", "replace").strip()


def examine(isolation: str = "sandbox", bombs: Sequence[Bomb] = BOMBS) -> list[Finding]:
    """Every check, in order; without what a sandbox is made of, only those that say so."""
    ground = list(_ground_checks())
    if isolation == "podman":
        ground.append(_podman_check())
    if not all(each.holds for each in ground):
        return ground
    with tempfile.TemporaryDirectory(prefix="ouvrage-trial-") as directory:
        trial = _Trial(Path(directory), isolation)
        try:
            tries = list(trial.tries())
            stands = any(each.name != "starts" for each in tries)
            return [*ground, *tries, *(map(trial.bomb, bombs) if stands else ())]
        finally:
            trial.close()


def _podman_check() -> Finding:
    missing = Podman.missing()
    return Finding(
        name="podman", what="runs OCI images", found=", ".join(missing) + " missing" if missing else "there",
        expected="podman and runc", holds=not missing, hint="apt install podman runc",
    )  # fmt: skip


def _ground_checks() -> Iterator[Finding]:
    def check(name: str, what: str, found: str, expected: str, holds: bool, hint: str) -> Finding:
        return Finding(name=name, what=what, found=found, expected=expected, holds=holds, hint=hint)

    root = os.geteuid() == 0
    found = "root" if root else f"user {os.geteuid()}"
    yield check("root", "who runs the agent", found, "root", root, "run it as root")
    told = bubblewrap_version()
    yield check(
        "bubblewrap", "makes the sandbox", told or "not installed", "bubblewrap 0.8 or newer",
        bool(told), "apt install bubblewrap",
    )  # fmt: skip
    spaces = _user_namespaces()
    yield check(
        "user-namespaces", "a user of its own for each sandbox", spaces, "allowed",
        spaces == "allowed", "sysctl user.max_user_namespaces=10000, and allow bwrap in AppArmor",
    )  # fmt: skip
    groups = version()
    yield check(
        "cgroup", "limits and exact figures", groups, "v1 or v2, with memory, cpu, cpuset, pids",
        groups != "none", "mount control groups; in a container, hand them in",
    )  # fmt: skip
    machine = os.uname().machine
    yield check(
        "architecture", "the filter of system calls", machine, " or ".join(seccomp.MACHINES),
        machine in seccomp.MACHINES, "no table of system calls for this architecture yet",
    )  # fmt: skip
    there = [p for p in ("/dev/loop-control", "/usr/sbin/mkfs.ext4") if not os.path.exists(p)]
    yield check(
        "scratch", "limited space on disk", ", ".join(there) + " missing" if there else "there",
        "there", not there, "modprobe loop; apt install e2fsprogs",
    )  # fmt: skip
    yield check(
        "python", "carries out the tries", "there" if os.path.exists(PYTHON) else "missing",
        "there", os.path.exists(PYTHON), "apt install python3",
    )  # fmt: skip


def _user_namespaces() -> str:
    """Whether somebody who is not root may make one, tried by bubblewrap itself."""
    try:
        words = [bubblewrap.find(), "--unshare-user", "--ro-bind", "/", "/", "/bin/true"]
        done = subprocess.run(words, capture_output=True, check=False, user=_user())
    except (OuvrageError, OSError, subprocess.SubprocessError) as error:
        return str(error)
    return "allowed" if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip()


def _user() -> int | None:
    return _UIDS if os.geteuid() == 0 else None


class _Trial:
    """A node's directory of its own, and a neighbour in it."""

    def __init__(self, state: Path, isolation: str) -> None:
        self._state = state
        self._isolation = isolation
        if isolation == "podman":
            self._make_image()
        self._bell = Bell(state)
        os.makedirs(STAGE, mode=0o755, exist_ok=True)
        self._nursery = Nursery(state)
        self._token = f"neighbour-{new_id()}"
        self._canary = Path(tempfile.gettempdir(), f"ouvrage-canary-{new_id()}")
        self._canary.write_text(self._token, "ascii")
        self._canary.chmod(0o644)

    def _make_image(self) -> None:
        """An image of links into ``/usr``, which is shown to it: no registry is needed for a trial."""
        archive = self._state / "image.tar"
        with tarfile.open(archive, "w") as tar:
            for name in ("bin", "lib", "lib64", "sbin"):
                if os.path.islink(f"/{name}"):
                    link = tarfile.TarInfo(name)
                    link.type, link.linkname = tarfile.SYMTYPE, os.readlink(f"/{name}")
                    tar.addfile(link)
            for name in ("usr", "etc", "proc", "dev", "sys", "tmp", "run"):
                directory = tarfile.TarInfo(name)
                directory.type, directory.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(directory)
        podman = Podman(self._state)
        podman.set_up()
        podman.make_image(_IMAGE, archive)

    def close(self) -> None:
        """End what still runs."""
        self._nursery.close()
        self._bell.close()
        Podman(self._state).tear_down()
        self._canary.unlink()

    def tries(self) -> Iterator[Finding]:
        """Everything that one program can try, beside a neighbour and the host's own services."""
        neighbour = self._begin(self._neighbour(), uid=_UIDS + 1)
        ended = neighbour / RESULT
        self._until(lambda: "ready" in self._log(neighbour) or ended.exists(), neighbour)
        if "ready" not in self._log(neighbour):
            yield self._unbegun(neighbour)
            return
        with _services() as (port, abstract):
            told = {
                "tries": [[each.name, each.body] for each in TRIES],
                "neighbour": self._token,
                "host_paths": [*map(str, (self._canary, self._state, neighbour.at, STAGE))],
                "host_pids": [1, os.getpid(), os.getppid()],
                "ports": [port],
                "abstract": abstract,
                "denied": self._denied(),
                "host_name": os.uname().nodename,
                "agent_words": [str(self._state), "OUVRAGE_HOME", self._token],
                "cpus": [min(os.sched_getaffinity(0))],
            }
            probe = self._run(self._order(PYTHON, "probe.py", inputs=("probe.py", "told.json")),
                              {"probe.py": PROBE, "told.json": json.dumps(told)})  # fmt: skip
        seen = self._seen_outside(neighbour)
        neighbour.ask_to_stop({"why": "cancelled", "reason": "the trial is over", "grace_us": 0})
        self._until(lambda: (neighbour / RESULT).exists(), neighbour)
        yield from self._judged(probe)
        yield _finding(
            "secrets-outside", "a secret that others on the machine could read", seen,
            "report this: secrets must never be in a command line or a file",
        )  # fmt: skip

    def _unbegun(self, neighbour: AttemptFiles) -> Finding:
        """What kept even the first from standing; nothing else can be tried then."""
        reason = json.loads((neighbour / RESULT).read_bytes())["reason"]
        return _finding(
            "starts", "a sandbox stands at all", [self._log(neighbour).strip()[-300:] or reason],
            "the service's own limits may forbid it: deploy/systemd/ouvrage-agent.service has those that do not",
        )  # fmt: skip

    def _denied(self) -> dict[str, tuple[int | None, int | None]]:
        denied = seccomp.DENIED | seccomp.ABSENT
        if self._isolation == "podman":
            denied = {n: numbers for n, numbers in denied.items() if n not in _UNKNOWN_TO_RUNTIMES}
        return denied

    def _neighbour(self) -> Start:
        script = f"touch {self._token}; echo ready; exec sleep 600 # {self._token}"
        start = self._order("sh", "-c", script).model_dump()
        secret = {"name": "SECRET", "value": f"secret-{self._token}"}
        return Start.model_validate(start | {"project": new_id(), "secrets": [secret]})

    def _seen_outside(self, neighbour: AttemptFiles) -> list[str]:
        """Where its secret can be read by anybody but root."""
        secret = f"secret-{self._token}".encode()
        found = [
            str(p) for p in neighbour.at.rglob("*") if p.is_file() and secret in p.read_bytes()
        ]
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if secret in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(f"the command line of {pid}")
        return found

    def _judged(self, probe: AttemptFiles) -> Iterator[Finding]:
        got: dict[str, list[str]] = {}
        for line in self._log(probe).splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                said = json.loads(line)
                got[said["name"]] = said["got"]
        for each in TRIES:
            missing = [f"the try was not carried out: {self._log(probe)[-300:]}"]
            yield _finding(each.name, each.what, got.get(each.name, missing), each.hint)

    def bomb(self, bomb: Bomb) -> Finding:
        """One program that takes too much, and what its account says."""
        outputs = ("link", "directory/passwd", "pipe", "../own", "own")
        order = self._order(
            PYTHON, "bomb.py", inputs=("bomb.py",), limit_us=bomb.limit_us,
            outputs=outputs if bomb.within == "outputs" else (),
            environment={"CANARY": str(self._canary)},
        )  # fmt: skip
        files = self._run(order, {"bomb.py": bomb.program})
        faults = self._faults(bomb, files, json.loads((files / RESULT).read_bytes()))
        return _finding(
            bomb.name, bomb.what, faults, "the limits of control groups must work: see cgroup"
        )

    def _faults(self, bomb: Bomb, files: AttemptFiles, ended: dict[str, Any]) -> list[str]:
        faults: list[str] = []
        if ended["outcome"] not in bomb.outcomes:
            faults.append(f"{ended['outcome']}: {ended['reason']}")
        if ended["scrub"] != "clean":
            faults.append(ended["scrub_detail"])
        if standing(group_prefix(self._state)):
            faults.append("processes were left")
        limits = {
            "memory_bytes": _MEMORY_MIB << 20,
            "disk_bytes": _DISK_MIB << 20,
            "processes": _PIDS,
        }
        if bomb.within in limits:
            used = ended["used"][bomb.within]
            if used is None or used > limits[bomb.within]:
                faults.append(f"{bomb.within} {used}")
        elif bomb.within == "log_bytes":
            size = (files / LOG).stat().st_size
            faults += [f"a log of {size} bytes"] if size > _LOG_BYTES else []
        else:
            names = sorted(os.listdir(files / OUTPUTS))
            faults += [f"sent {name}" for name in names if name != "own"]
            faults += [] if names == ["own"] else ["its own file was not sent"]
        return faults

    def _order(
        self, *command: str, inputs: Sequence[str] = (), outputs: Sequence[str] = (),
        limit_us: int = _LIMIT_US, environment: dict[str, str] | None = None,
    ) -> Start:  # fmt: skip
        pairs = [{"name": name, "value": value} for name, value in (environment or {}).items()]
        return Start.model_validate(
            {
                "attempt": new_id(), "job": new_id(), "project": new_id(), "lease": new_id(),
                "label": "trial", "isolation": self._isolation, "command": list(command),
                "image": _IMAGE if self._isolation == "podman" else None,
                "workdir": "/scratch", "environment": pairs, "secrets": [],
                "inputs": [{"path": name, "name": name} for name in inputs],
                "outputs": [{"path": p, "name": p.replace("/", "-")} for p in outputs],
                "volumes": [], "checkpoint": None, "devices": [],
                "cpus": [min(os.sched_getaffinity(0))], "memory_mib": _MEMORY_MIB,
                "disk_mib": _DISK_MIB, "pids": _PIDS, "network": "none", "egress": [],
                "port": None, "unit": None, "unit_regex": None, "price": None,
                "time_limit_us": limit_us, "grace_us": 100_000, "log_limit_bytes": _LOG_BYTES,
                "not_before": 0,
            }
        )  # fmt: skip

    def _run(self, start: Start, inputs: dict[str, str]) -> AttemptFiles:
        files = self._begin(start, inputs)
        self._until(lambda: (files / RESULT).exists(), files)
        return files

    def _begin(
        self, start: Start, inputs: dict[str, str] | None = None, uid: int = _UIDS
    ) -> AttemptFiles:
        files = AttemptFiles(self._state / "attempts", start.attempt)
        see = ("/usr",) if self._isolation == "podman" else ()
        order = Order(start=start, uid=uid, see=see, nodes=())
        files.keep(order.as_json(), [pair.model_dump() for pair in start.secrets])
        for name, text in (inputs or {}).items():
            (files / INPUTS).mkdir(exist_ok=True)
            (files / INPUTS / name).write_text(text, "utf-8")
            (files / INPUTS / name).chmod(0o644)
        self._nursery.start(start.attempt)
        return files

    def _until(self, condition: Any, files: AttemptFiles) -> None:
        last = monotonic_us() + _PATIENCE_US
        while not condition():
            if monotonic_us() > last:
                raise OuvrageError(
                    "isolation/no-answer", f"a trial did not end: {self._log(files)[-500:]}"
                )
            self._bell.wait(0.05)

    def _log(self, files: AttemptFiles) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (files / LOG).read_text("utf-8", "replace")
        return ""


@contextlib.contextmanager
def _services() -> Iterator[tuple[int, str]]:
    """A service on the host's loopback and one behind an abstract name, as a machine has them."""
    name = f"ouvrage-{new_id()}"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        unix.bind(f"\0{name}")
        unix.listen()
        yield tcp.getsockname()[1], name


def _finding(name: str, what: str, faults: Sequence[str], hint: str) -> Finding:
    found = "; ".join(faults) if faults else "nothing"
    return Finding(
        name=name, what=what, found=found, expected="nothing", holds=not faults, hint=hint
    )
