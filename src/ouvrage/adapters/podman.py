"""A command in an OCI image, by podman: what is said to it, and what it cannot be trusted with.

Decides how a tenant's container stands on this machine: users of its project's own (a range that
nobody else has, and never its root), no capabilities, no new privileges, a root that cannot be written, the network that
was prepared or none, and below the attempt's control group, so that limits, figures and the end of
everything are those of every other attempt. Podman's own process runs as root: nothing of a tenant's
reaches its environment or its command line but the command and names of images.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.bubblewrap import USER
from ouvrage.adapters.prepared import Prepared
from ouvrage.adapters.sandbox_cgroup import PARENT
from ouvrage.adapters.seccomp import profile
from ouvrage.base.canonical import sha256_hex
from ouvrage.base.errors import OuvrageError

IDS = 65_536
REGISTRIES = (
    "docker.io", "ghcr.io", "quay.io", "nvcr.io", "registry.gitlab.com", "mcr.microsoft.com",
    "public.ecr.aws",
)  # fmt: skip
"""Where images may come from, unless the owner says otherwise; what is on the node needs none."""

LOCAL = "localhost"
GPUS = "nvidia.com/gpu"
"""The kind under which NVIDIA's toolkit describes its cards (CDI)."""

_CONFIGURATION = """\
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "{runtime}"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{root}"
runroot = "{run}"
[storage.options.overlay]
skip_mount_home = "true"
"""
"""Without the last line podman leaves a mount of its store on the machine, which nobody takes away."""

_IMAGE = re.compile(
    r"(?:(?P<host>[a-z0-9.-]+(?::[0-9]+)?)/)?(?P<path>[a-z0-9]+(?:[._/-][a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@sha256:[0-9a-f]{64})?"
)
NAME = "ouvrage-"
NO_COMMAND = 'exec: "'
"""In what podman says where the image holds no such command; its exit codes do not tell that apart."""

_MOST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What a container gets. ``first_id`` is the machine's number of its user 0.

    ``space`` is a prepared network's name, None for no network. ``devices`` are CDI names. ``binds``
    are (source, target, writable); ``group`` is the attempt's control group below ``PARENT``.
    """

    name: str
    image: str
    group: str
    first_id: int
    workdir: str
    environment: Mapping[str, str]
    binds: tuple[tuple[str, str, bool], ...]
    devices: tuple[str, ...]
    space: str | None
    hosts: tuple[tuple[str, str], ...]
    resolver: str
    memory_bytes: int
    pids: int


class Podman:
    """Podman with a store of its own below a state directory."""

    def __init__(self, state: Path) -> None:
        self._root = state / "containers"
        tag = sha256_hex(os.path.realpath(state))[:8]
        self._run = f"/run/ouvrage-containers-{tag}"
        self._configuration = self._root / "containers.conf"
        self._filter = self._root / "seccomp.json"
        self._storage = self._root / "storage.conf"

    @staticmethod
    def missing() -> list[str]:
        """The packages that it lacks here."""
        wanted = {"podman": "podman", "runc": "runc"}
        return [package for tool, package in wanted.items() if _tool(tool) is None]

    def set_up(self) -> None:
        """Write its configuration. Without the limits in it nothing starts where ours are lower.

        The filter of system calls is bubblewrap's, in podman's words: its own lets io_uring through.
        """
        files, processes = (_most(kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        runtime = _tool("runc") or "runc"
        told = _STORAGE.format(root=self._root / "root", run=self._run)
        self._storage.write_text(told, "utf-8")
        self._filter.write_text(json.dumps(profile()), "ascii")
        self._configuration.write_text(
            _CONFIGURATION.format(files=files, processes=processes, runtime=runtime), "ascii"
        )

    def tear_down(self) -> None:
        """Forget what it keeps outside the state directory; for a store that is not used again."""
        shutil.rmtree(self._run, ignore_errors=True)
        shutil.rmtree(f"{self._run}-now", ignore_errors=True)

    def words(self, *more: str) -> list[str]:
        """A command line of podman's."""
        return [
            _tool("podman") or "podman", "--tmpdir", f"{self._run}-now", *more,
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        """Its own, and nothing of a tenant's."""
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self._root),
            "CONTAINERS_CONF": str(self._configuration),
            "CONTAINERS_STORAGE_CONF": str(self._storage),
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Have something done now."""
        return subprocess.run(
            self.words(*words), env=self.environment(), capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def has(self, image: str) -> bool:
        """Whether an image is on this node."""
        return self.run("image", "exists", image).returncode == 0

    def make_image(self, name: str, archive: Path) -> None:
        """An image from an archive of files. Raises ``OuvrageError`` ``image/not-made``."""
        done = self.run("import", "--quiet", str(archive), name)
        if done.returncode:
            raise OuvrageError("image/not-made", f"{name}: {_last(done.stderr)}")

    def pull(self, image: str, registries: Sequence[str]) -> None:
        """Bring an image here unless it is. Raises ``OuvrageError`` ``image/...``."""
        host = registry_of(image)
        if self.has(image):
            return
        if host not in registries:
            raise OuvrageError(
                "image/registry",
                f"images from {host} are not taken on this node",
                hint=f"from {', '.join(registries)}; the owner may allow others: --registry",
            )
        done = self.run("pull", "--quiet", "--", image)
        if done.returncode:
            raise OuvrageError("image/not-pulled", f"{image}: {_last(done.stderr)}")

    def prepare(self, made: Container, command: Sequence[str], directory: Path) -> Prepared:
        """The way to start it. ``directory`` is the attempt's own: podman leaves marks there."""
        listed = _environment_file(made.environment)
        end = made.first_id
        words = [
            "run", "--name", made.name, "--rm", "--pull", "never", "--log-driver", "none",
            "--cgroup-parent", f"/{PARENT}/{made.group}", "--pidfile", str(directory / "pid"),
            "--uidmap", f"0:{end}:{IDS}", "--gidmap", f"0:{end}:{IDS}",
            "--user", f"{USER}:{USER}", *_named_user(made.workdir), "--cap-drop", "all", "--security-opt", "no-new-privileges",
            "--security-opt", f"seccomp={self._filter}",
            "--security-opt", "mask=/sys/fs/cgroup", "--read-only",
            "--read-only-tmpfs=false", "--ipc", "private", "--hostname", "job",
            "--memory", str(made.memory_bytes), "--memory-swap", str(made.memory_bytes),
            "--shm-size", str(max(1 << 20, made.memory_bytes // 2)),
            "--pids-limit", str(made.pids), "--workdir", made.workdir,
            "--env-file", f"/proc/self/fd/{listed}",
            *_network(made, directory), *_binds(made),
            *(word for each in made.devices for word in ("--device", each)),
            "--", made.image, *command,
        ]  # fmt: skip
        return Prepared(
            path=_tool("podman") or "/usr/bin/podman", argv=self.words(*words),
            environment=self.environment(), directory=str(directory), descriptors=(listed,),
            uid=None, joins=False, tells=False,
        )  # fmt: skip

    def remove(self, name: str) -> bool:
        """Take a container away, however it stands; whether none of that name is left."""
        self.run("rm", "--force", "--time", "0", "--ignore", name)
        return self.run("container", "exists", name).returncode != 0

    def standing(self) -> list[str]:
        """The names of the containers that are here."""
        done = self.run("ps", "--all", "--format", "json")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return [name for each in json.loads(done.stdout) or () for name in each["Names"]]
        return []


def _named_user(home: str) -> list[str]:
    """A name for the job's user where the image has none: what speaks SSH asks for one. No path holds a colon there."""
    if not home.isprintable() or set(home) & set(":$"):
        return []
    return ["--passwd-entry", f"job:*:{USER}:{USER}::{home}:/bin/sh"]


def began(directory: Path) -> bool:
    """Whether the container was started at all."""
    return (directory / "pid").exists()


def ran_out_of_memory(directory: Path) -> bool:
    """Whether the kernel ended something in the container for its memory.

    Podman's own account of it stays false with v1 groups; its monitor leaves this mark where podman
    was started, also where only a child died.
    """
    return (directory / "oom").exists()


def registry_of(image: str) -> str:
    """The host an image comes from. Raises ``OuvrageError`` ``image/name``."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        raise OuvrageError(
            "image/name",
            f"{image[:200]!r} is no name of an image",
            hint="docker.io/library/python:3.11",
        )
    host = match["host"]
    if host is None or not ("." in host or ":" in host or host == LOCAL):
        raise OuvrageError(
            "image/name",
            f"{image} does not say where it is from",
            hint=f"docker.io/library/{image}; or {LOCAL}/{image} for one that is on the node",
        )
    return host


def _environment_file(environment: Mapping[str, str]) -> int:
    """The variables in a file of memory: nobody reads them in a process list."""
    lines: list[str] = []
    for name, value in environment.items():
        if "\n" in value or "\r" in value or "=" in name or not name:
            raise OuvrageError(
                "podman/environment",
                f"the variable {name!r} cannot be handed to a container: it has several lines",
                hint="write it to a file that goes in",
            )
        lines.append(f"{name}={value}\n")
    fd = os.memfd_create("environment", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write("".join(lines).encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _network(made: Container, directory: Path) -> list[str]:
    if made.space is None:
        return ["--network", "none"]
    words = ["--network", f"ns:/run/netns/{made.space}"]
    words += [w for name, address in made.hosts for w in ("--add-host", f"{name}:{address}")]
    file = directory / "resolv.conf"
    file.write_text(made.resolver, "ascii")
    file.chmod(0o644)
    return [*words, "--volume", f"{file}:/etc/resolv.conf:ro"]


def _binds(made: Container) -> list[str]:
    words: list[str] = []
    for source, target, writable in made.binds:
        if set(source + target) & set(":,"):
            raise OuvrageError(
                "podman/path", f"{target!r} cannot be shown in a container: it holds : or ,"
            )
        words += ["--volume", f"{source}:{target}:{'rw' if writable else 'ro'},nosuid,nodev"]
    return words


def _most(kind: int) -> int:
    """What a container may be given of a limit: no more than this process may itself."""
    _, hard = resource.getrlimit(kind)
    return _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no word of why"


def _tool(name: str) -> str | None:
    return shutil.which(name, path="/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin")
