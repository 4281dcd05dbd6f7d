"""A sandbox by bubblewrap: what a command sees of the machine, and the arguments that make it so.

Decides the view: ``/usr`` and a few files of ``/etc`` read-only, a root that cannot be written, one
limited place to write (its own directory and ``/tmp``), a ``/proc`` and ``/dev`` of its own, no
network unless one was prepared. Everything is handed over through a descriptor (``--args``), so that
neither environment nor paths stand in a process list; bubblewrap itself runs with an environment of
ours, since it begins outside the sandbox it makes. Limits and system calls are ``sandbox_cgroup``'s
and ``seccomp``'s; as whom it runs is decided by who starts it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ouvrage.adapters.prepared import Prepared
from ouvrage.base.errors import OuvrageError

USER, HOME = 1000, "/scratch"
TMP, SHM = "/tmp", "/dev/shm"  # noqa: S108 -- the sandbox's own
HOST = "job"
METER = "/run/meter"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
RESERVED = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/proc", "/dev", "/sys",
    "/run", TMP, "/boot",
)  # fmt: skip
"""What no path of a job may cover."""

_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone",
    "mime.types", "services", "protocols", "ca-certificates.conf", "ssl/certs", "ssl/openssl.cnf",
    "fonts", "OpenCL", "vulkan", "debian_version", "os-release",
)  # fmt: skip
_ROOTS = ("lib", "lib32", "lib64", "libx32", "bin", "sbin")
_SEEN_OF_SYS = ("/sys/devices/system",)
_SYS_OF_GPUS = ("/sys/bus/pci", "/sys/module/nvidia")
_PASSWD = f"root:x:0:0:root:/:/usr/sbin/nologin\njob:x:{USER}:{USER}:job:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
_GROUP = f"root:x:0:\njob:x:{USER}:\nnogroup:x:65534:\n"
_HOSTS = f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {HOST}\n"
_NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
_WRITTEN = {
    "passwd": _PASSWD,
    "group": _GROUP,
    "hosts": _HOSTS,
    "hostname": f"{HOST}\n",
    "nsswitch.conf": _NSSWITCH,
    "resolv.conf": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """``source`` of the host shown at ``target``; the source must be reachable by whom it runs as."""

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a command gets. ``etc`` is what ``make_etc`` made; ``work`` and ``tmp`` are on limited space.

    ``binds`` come after the system's own, in order. ``devices`` are nodes such as ``/dev/nvidia0``.
    ``network`` False gives it none; True leaves it in that of whoever starts bubblewrap.
    ``hosts`` are names and addresses it knows; ``resolver`` is the content of its ``resolv.conf``.
    ``shm_bytes`` bounds ``/dev/shm``.
    """

    etc: str
    work: str
    tmp: str
    workdir: str
    binds: tuple[Bind, ...]
    devices: tuple[str, ...]
    environment: Mapping[str, str]
    network: bool
    hosts: tuple[tuple[str, str], ...]
    resolver: str
    shm_bytes: int


@lru_cache(maxsize=1)
def find() -> str:
    """Where bubblewrap is. Raises ``OuvrageError`` ``sandbox/no-bubblewrap``."""
    found = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if found is None:
        raise OuvrageError(
            "sandbox/no-bubblewrap",
            "bubblewrap is not installed",
            hint="apt install bubblewrap",
        )
    return found


def prepare(view: View, command: Sequence[str], seccomp: int, status: int, uid: int) -> Prepared:
    """The way to start this command. ``seccomp`` holds the filter; ``status`` is told how it ends.

    Neither descriptor becomes the caller's to close.
    """
    files = _Files()
    words = [
        "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        *([] if view.network else ["--unshare-net"]),
        "--die-with-parent", "--new-session", "--hostname", HOST,
        "--uid", str(USER), "--gid", str(USER), "--cap-drop", "ALL",
        "--seccomp", str(seccomp), "--json-status-fd", str(status),
        *_system(view, files), *_devices(view), *_places(view),
        "--remount-ro", "/", "--chdir", view.workdir, *_environment(view),
    ]  # fmt: skip
    arguments = files.holding("\0".join([*words, ""]))
    return Prepared(
        path=find(),
        argv=["bwrap", "--args", str(arguments), "--", *command],
        environment={"PATH": "/usr/bin:/bin"},
        directory="/",
        descriptors=(*files.descriptors, seccomp, status),
        uid=uid,
        joins=True,
        tells=True,
    )


class _Files:
    """Contents in files of memory."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def holding(self, text: str) -> int:
        fd = os.memfd_create("sandbox", os.MFD_CLOEXEC)
        with open(fd, "wb", closefd=False) as file:
            file.write(os.fsencode(text))
        os.lseek(fd, 0, os.SEEK_SET)
        self.descriptors.append(fd)
        return fd

    def at(self, path: str, text: str) -> list[str]:
        return ["--perms", "0444", "--ro-bind-data", str(self.holding(text)), path]


def make_etc(at: Path) -> None:
    """Make the ``/etc`` of every sandbox, once: few files of the host's, and none that name its users.

    One directory to show instead of two dozen files takes a third of a sandbox's start.
    """
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    for name in _ETC:
        source, target = Path("/etc", name), at / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
        elif source.exists() or source.is_symlink():
            shutil.copy2(source, target, follow_symlinks=False)
    for name, text in _WRITTEN.items():
        (at / name).write_text(text, "utf-8")
        (at / name).chmod(0o644)


def _system(view: View, files: _Files) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in _ROOTS:
        if os.path.islink(f"/{name}"):
            words += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    words += ["--ro-bind", view.etc, "/etc"]
    if view.hosts:
        known = "".join(f"{address} {name}\n" for name, address in view.hosts)
        words += files.at("/etc/hosts", _HOSTS + known)
    return words + (files.at("/etc/resolv.conf", view.resolver) if view.resolver else [])


def _devices(view: View) -> list[str]:
    words = ["--proc", "/proc", "--dev", "/dev"]
    for node in view.devices:
        words += ["--dev-bind", node, node]
    words += ["--size", str(view.shm_bytes), "--perms", "1777", "--tmpfs", SHM]
    words += ["--remount-ro", "/dev"]
    for path in (*_SEEN_OF_SYS, *(_SYS_OF_GPUS + _pci_buses() if view.devices else ())):
        words += ["--ro-bind-try", path, path]
    return words


def _pci_buses() -> tuple[str, ...]:
    with os.scandir("/sys/devices") as entries:
        return tuple(sorted(e.path for e in entries if e.name.startswith("pci")))


def _places(view: View) -> list[str]:
    words = ["--bind", view.work, view.workdir, "--bind", view.tmp, TMP]
    words += ["--symlink", "../tmp", f"/var{TMP}", "--perms", "0755", "--dir", "/run"]
    for bind in view.binds:
        words += ["--bind" if bind.writable else "--ro-bind", bind.source, bind.target]
    return words


def _environment(view: View) -> list[str]:
    told = {**ENVIRONMENT, "HOME": view.workdir, "TMPDIR": TMP, **view.environment}
    words = ["--clearenv"]
    for name, value in told.items():
        words += ["--setenv", name, value]
    return words


def exit_status(told: bytes) -> tuple[bool, int | None, int | None]:
    """From what bubblewrap said: whether the command began, its exit code, the signal that ended it.

    It tells a signal as a shell does, 128 and the number, so an exit code of 129 to 192 that a
    program chose itself cannot be told from one.
    """
    code: int | None = None
    for line in told.decode("utf-8", "replace").splitlines():
        try:
            said: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and isinstance(said.get("exit-code"), int):
            code = said["exit-code"]
    if code is None:
        return False, None, None
    return (True, None, code - 128) if 128 < code <= 192 else (True, code, None)
