"""Makes the disk of a Debian 12 machine with systemd, control groups v2 and Ouvrage as an owner would install it.

Decides what is kept between runs, outside the repository (``$XDG_CACHE_HOME/ouvrage-vm``): the system from Debian's packages, as long
as the list of them stays the same, and the wheels. Ouvrage itself is built and installed anew each time, from a wheel into
``/opt/ouvrage``, without a network, as ``docs/guides/console.md`` says. The disk is written without mounting anything. It needs root,
since the system's files belong to root and its packages are set up inside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"
PACKAGES = (
    "linux-image-cloud-amd64", "initramfs-tools", "zstd", "systemd-sysv", "dbus", "kmod", "procps", "iproute2",
    "python3", "python3-venv", "bubblewrap", "e2fsprogs", "nftables", "util-linux", "podman", "runc", "smartmontools",
)  # fmt: skip
"""A minimal system, its kernel, and what the guides tell an owner to install."""

TESTED_WITH = ("pytest", "hypothesis")
_DISK = "4G"
_HOST_NAME = "soak"
_SHELL = """\
[Unit]
Description=What the test outside asks for
[Service]
ExecStart=/usr/bin/python3 /usr/local/lib/soak/shell.py /dev/virtio-ports/shell
StandardError=journal+console
Restart=always
Environment=LANG=C.UTF-8 HOME=/root
Delegate=yes
[Install]
WantedBy=multi-user.target
"""
_QUIET = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "smartmontools.service",
    "podman-auto-update.service",
    "podman-auto-update.timer",
    "podman-restart.service",
    "podman.socket",
    "podman.service",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a machine is started with."""

    kernel: Path
    initrd: Path
    disk: Path


def lacking() -> str:
    """Why no image can be made or started here; empty where it can."""
    tools = {
        "qemu-system-x86_64": "qemu-system-x86",
        "mmdebstrap": "mmdebstrap",
        "mke2fs": "e2fsprogs",
    }
    missing = [package for tool, package in tools.items() if _tool(tool) is None]
    if missing:
        return f"a virtual machine needs {', '.join(missing)}: tools/debian.sh soak"
    if os.geteuid():
        return "the disk of a virtual machine is made by root"
    return "" if os.uname().machine == "x86_64" else f"no machine for {os.uname().machine}"


def made() -> Image:
    """The image of this checkout. ``subprocess.CalledProcessError`` where Debian or PyPI is not reached."""
    with _alone(cache()) as place:
        system = _system(place)
        _install(system, place)
        disk = place / "disk.img"
        disk.unlink(missing_ok=True)
        _run("mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", system, disk, _DISK)
        boot = system / "boot"
        return Image(kernel=_one(boot, "vmlinuz-*"), initrd=_one(boot, "initrd.img-*"), disk=disk)


def cache() -> Path:
    """Where it is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ouvrage-vm"


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[Path]:
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def _system(place: Path) -> Path:
    """The system as Debian's packages leave it; made anew when the list changed."""
    told = hashlib.sha256(repr((SUITE, PACKAGES)).encode()).hexdigest()[:12]
    system = place / f"system-{told}"
    if not system.exists():
        for old in place.glob("system-*"):
            shutil.rmtree(old)
        half = place / "half"
        shutil.rmtree(half, ignore_errors=True)
        _run(
            "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=directory",
            f"--include={','.join(PACKAGES)}", SUITE, half,
        )  # fmt: skip
        half.rename(system)
    return system


def _install(system: Path, place: Path) -> None:
    """What is ours: the product by its wheel, the tests beside it, and who carries out what the test asks for."""
    wheels = _wheels(place)
    inside = system / "wheels"
    for old in (inside, system / "opt/ouvrage", system / "opt/tests", system / "srv/ouvrage"):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(wheels, inside)
    offline = ("--quiet", "--no-index", "--find-links", "/wheels", "--disable-pip-version-check")
    _run("chroot", system, "python3", "-m", "venv", "/opt/ouvrage")
    pip = ("chroot", system, "/opt/ouvrage/bin/python", "-m", "pip", "install", *offline)
    _run(*pip, "ouvrage[server]")
    _run(*pip, "--target", "/opt/tests", *TESTED_WITH)
    shutil.rmtree(inside)
    for name in ("tests", "tools", "deploy"):
        shutil.copytree(
            ROOT / name, system / "srv/ouvrage" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", system / "srv/ouvrage")
    _settings(system)


def _settings(system: Path) -> None:
    shell = system / "usr/local/lib/soak/shell.py"
    shell.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("shell.py"), shell)
    for name, text in {
        "etc/systemd/system/soak-shell.service": _SHELL,
        "etc/hostname": f"{_HOST_NAME}\n",
        "etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {_HOST_NAME}\n",
        "etc/fstab": "/dev/vda / ext4 rw,noatime 0 0\n",
    }.items():
        (system / name).write_text(text)
    _run("systemctl", "--root", system, "enable", "--quiet", "soak-shell.service")
    _run("systemctl", "--root", system, "mask", "--quiet", *_QUIET)


def _wheels(place: Path) -> Path:
    """The product's wheel, built now, and what it and the tests need, of the versions that are pinned."""
    wheels = place / "wheels"
    wheels.mkdir(exist_ok=True)
    for old in wheels.glob("ouvrage-*.whl"):
        old.unlink()
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels)
    pins = place / "pins.txt"
    pinned = r"^[A-Za-z0-9_.-]+==[^\\\n]+"
    pins.write_text(
        "\n".join(re.findall(pinned, (ROOT / "requirements/dev.txt").read_text(), re.MULTILINE))
    )
    wanted = f"{_one(wheels, 'ouvrage-*.whl')}[server]"
    _run(
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
        "--dest", wheels, "--find-links", wheels, "--constraint", pins, wanted, *TESTED_WITH,
    )  # fmt: skip
    return wheels


def _one(directory: Path, pattern: str) -> Path:
    (found,) = directory.glob(pattern)
    return found


def _run(*words: object) -> None:
    """Run it to its end; what it said stands in the error where it failed."""
    done = subprocess.run(
        list(map(str, words)), cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(map(str, words[:3]))}: {(done.stdout + done.stderr)[-3000:]}"
        )


def _tool(name: str) -> str | None:
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
