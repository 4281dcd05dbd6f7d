"""What an audit needs to know of a machine, read below one root: sockets, SSH, packages, IOMMU groups, networks.

Decides where each stands and how it is read; what it means is ``health/audit``'s. A program is asked for its version only on
the machine itself, and a package's version counts before it, since a distribution mends without a new number.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from glob import glob
from pathlib import Path
from typing import TypeVar

from ouvrage.health.audit import GpuGroup, HostSeen, Listening, Networks, Ssh, Upgrades

Made = TypeVar("Made")
_LISTEN, _UNCONNECTED = "0A", "07"
_GPU_MAKERS = ("0x10de", "0x1002")
_DISPLAY, _BRIDGE = "0x03", "0x0604"
_DEADLINE_S = 5
_PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nvidia-container-toolkit": (
        "nvidia-ctk",
        ("nvidia-container-toolkit-base", "nvidia-container-toolkit"),
    ),
    "runc": ("runc", ("runc",)),
    "containerd": ("containerd", ("containerd", "containerd.io")),
    "podman": ("podman", ("podman",)),
    "bubblewrap": ("bwrap", ("bubblewrap",)),
}
_DRIVER = re.compile(
    r"(nvidia-(driver|kernel|dkms|open)|libnvidia-|cuda-drivers|linux-modules-nvidia)"
)
_NUMBER = re.compile(r"\bv?([0-9]+\.[0-9]+(?:\.[0-9]+)?(?:[-~.+][0-9A-Za-z.+~-]+)?)")
_OWN_NUMBERS = re.compile(r"\.el[0-9]|\.amzn|-generic\b|-amd64\b|-arm64\b|-aws\b|-gcp\b|-azure\b")
"""Kernels whose makers mend them under one number: it doesn't tell what they have."""
_NAMESPACES = {
    "max_user_namespaces": "proc/sys/user/max_user_namespaces",
    "unprivileged_userns_clone": "proc/sys/kernel/unprivileged_userns_clone",
    "apparmor_restrict_unprivileged_userns": "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
}


def host_seen(root: str = "/") -> HostSeen:
    """Everything about the machine whose file system is below ``root``; what can't be read is said in ``unread``."""
    unread: dict[str, str] = {}

    def told(check: str, ask: Callable[[Path], Made]) -> Made | None:
        try:
            return ask(at)
        except (OSError, ValueError, IndexError) as error:
            unread[check] = f"it can't be read: {error}"[:200]
            return None

    at = Path(root)
    packages = told("driver-upgrades", _packages) or {}
    namespaces = ((name, _line(at / path)) for name, path in _NAMESPACES.items())
    return HostSeen(
        listening=told("services", _listening),
        ssh=told("ssh", _ssh),
        namespaces={name: value for name, value in namespaces if value is not None},
        docker_open=_docker_open(at),
        versions=_versions(at, packages),
        gpus=told("iommu", _gpus) or (),
        upgrades=told("driver-upgrades", lambda place: _upgrades(place, packages)),
        networks=told("admin-network", _networks),
        unread=unread,
    )


def _line(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return None


# Sockets


def _listening(root: Path) -> tuple[Listening, ...]:
    limits = (_line(root / "proc/sys/net/ipv4/ip_local_port_range") or "32768").split()
    tables = (("tcp", _LISTEN, 1 << 16), ("udp", _UNCONNECTED, int(limits[0])))
    found: list[Listening] = []
    for protocol, state, below in tables:
        for name in (protocol, f"{protocol}6"):
            path = root / "proc/net" / name
            if name.endswith("6") and not path.exists():
                continue  # a kernel without IPv6
            rows = path.read_text("ascii").splitlines()[1:]
            found += [s for row in rows if (s := _socket(protocol, row, state, below)) is not None]
    return tuple(found)


def _socket(protocol: str, row: str, state: str, below: int) -> Listening | None:
    """The socket of a line that waits for others; a program's own ends of what it sends are left out."""
    words = row.split()
    host, _, port = words[1].rpartition(":")
    if words[3] != state or int(port, 16) >= below:
        return None
    address = _address(host)
    near = address.is_loopback or (
        isinstance(address, ipaddress.IPv6Address)
        and address.ipv4_mapped is not None
        and address.ipv4_mapped.is_loopback
    )
    return Listening(protocol=protocol, port=int(port, 16), address=str(address), near=near)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """As the kernel writes it: words of 32 bits, each in the order of this processor."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    return ipaddress.ip_address(b"".join(words))


# SSH


def _ssh(root: Path) -> Ssh | None:
    path = root / "etc/ssh/sshd_config"
    if not path.exists():
        return None
    settings: dict[str, str] = {}
    within: list[tuple[str, str]] = []
    inside = False
    for name, value in _ssh_lines(root, path, 0):
        if name == "match":
            inside = value.lower() != "all"
        elif inside:
            within.append((name, value.lower()))
        else:
            settings.setdefault(name, value.lower())  # the first one counts
    return Ssh(settings=settings, within=tuple(within))


def _ssh_lines(root: Path, path: Path, depth: int) -> Iterator[tuple[str, str]]:
    for line in path.read_text("utf-8", "replace").splitlines():
        words = re.split(r"[\s=]+", line.partition("#")[0].strip(), maxsplit=1)
        if len(words) < 2:
            continue
        name, value = words[0].lower(), words[1].strip().strip('"')
        if name != "include":
            yield name, value
        elif depth < 8:
            for pattern in value.split():
                where = pattern if pattern.startswith("/") else f"/etc/ssh/{pattern}"
                for file in sorted(glob(f"{root}{where}" if str(root) != "/" else where)):
                    yield from _ssh_lines(root, Path(file), depth + 1)


# Packages and versions


def _packages(root: Path) -> dict[str, tuple[str, str]]:
    """Installed Debian packages with how they are wanted (``hold``, ``install``) and their version; none elsewhere."""
    text = _line(root / "var/lib/dpkg/status")
    found: dict[str, tuple[str, str]] = {}
    for block in (text or "").split("\n\n"):
        fields = dict(re.findall(r"^(Package|Status|Version): (.+)$", block, re.M))
        status = fields.get("Status", "").split()
        if status[-1:] == ["installed"] and "Package" in fields:
            found[fields["Package"]] = (status[0], fields.get("Version", ""))
    return found


def _versions(root: Path, packages: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for component, (program, names) in _PROGRAMS.items():
        packaged = next((packages[name][1] for name in names if name in packages), None)
        path = shutil.which(program) if str(root) == "/" else None
        if packaged is not None and (path is None or path.startswith(("/usr/bin/", "/usr/sbin/"))):
            found[component] = packaged
        elif path is not None:
            found[component] = _asked(path)
    found["kernel"] = _kernel(root)
    return found


def _asked(program: str) -> str:
    """The version that a program says it is; empty where it says none."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=_DEADLINE_S, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    said = _NUMBER.search(done.stdout.decode("utf-8", "replace").partition("\n")[0])
    return said[1] if said else ""


def _kernel(root: Path) -> str:
    """The number under which kernel.org released what runs; empty where its maker's number doesn't tell it."""
    signature = _line(root / "proc/version_signature")  # Ubuntu's kernels say it last
    if signature:
        return signature.split()[-1]
    debian = re.search(r"Debian ([0-9]+\.[0-9]+\.[0-9]+)-", _line(root / "proc/version") or "")
    if debian:
        return debian[1]
    release = _line(root / "proc/sys/kernel/osrelease") or ""
    number = re.match(r"[0-9]+\.[0-9]+\.[0-9]+", release)
    return number[0] if number and not _OWN_NUMBERS.search(release) else ""


def _upgrades(root: Path, packages: Mapping[str, tuple[str, str]]) -> Upgrades:
    files = [root / "etc/apt/apt.conf", *sorted((root / "etc/apt/apt.conf.d").glob("*"))]
    text = "\n".join(_line(path) or "" for path in files if path.is_file())
    text = re.sub(r"//[^\n]*|#[^\n]*", "", text)
    said = re.findall(r'APT::Periodic::Unattended-Upgrade\s+"([^"]*)"', text)
    lists = re.findall(r"Unattended-Upgrade::Package-Blacklist\s*\{([^}]*)\}", text)
    excluded = re.findall(r'"([^"]+)"', " ".join(lists))
    driver = sorted(name for name in packages if _DRIVER.match(name))
    alone = {
        name
        for name in driver
        if packages[name][0] == "hold" or any(_begins(pattern, name) for pattern in excluded)
    }
    on = bool(said) and said[-1] not in ("", "0")
    return Upgrades(on=on, driver=tuple(driver), left_alone=frozenset(alone))


def _begins(pattern: str, name: str) -> bool:
    try:
        return re.match(pattern, name) is not None
    except re.error:
        return False


# Devices and networks


def _gpus(root: Path) -> tuple[GpuGroup, ...]:
    devices = sorted((root / "sys/bus/pci/devices").glob("*"))
    return tuple(
        _group(root, device)
        for device in devices
        if (_line(device / "class") or "").startswith(_DISPLAY)
        and _line(device / "vendor") in _GPU_MAKERS
    )


def _group(root: Path, device: Path) -> GpuGroup:
    link = device / "iommu_group"
    number = Path(os.readlink(link)).name if link.is_symlink() else None
    own = device.name.rpartition(".")[0]
    members = (root / "sys/kernel/iommu_groups" / (number or "none") / "devices").glob("*")
    others = tuple(
        sorted(
            each.name
            for each in members
            if each.name.rpartition(".")[0] != own
            and not (_line(root / "sys/bus/pci/devices" / each.name / "class") or "").startswith(_BRIDGE)
        )
    )  # fmt: skip
    return GpuGroup(address=device.name, group=number, others=others)


def _networks(root: Path) -> Networks:
    near: list[tuple[str, ipaddress.IPv4Network]] = []
    way_out: set[str] = set()
    for row in (root / "proc/net/route").read_text("ascii").splitlines()[1:]:
        words = row.split()
        mask = int.from_bytes(bytes.fromhex(words[7])[::-1], "big")
        if mask == 0:
            way_out.add(words[0])
        elif words[2] == "00000000":
            length = bin(mask).count("1")
            near.append((words[0], ipaddress.IPv4Network(f"{_address(words[1])}/{length}")))
    places = ("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0", "sys/class/ipmi/ipmi0")
    return Networks(
        near=tuple(near),
        way_out=frozenset(way_out),
        bmc=any((root / place).exists() for place in places),
    )


def _docker_open(root: Path) -> bool:
    """Whether everybody may write to Docker's socket."""
    for place in ("run/docker.sock", "var/run/docker.sock"):
        try:
            if (root / place).stat().st_mode & 0o002:
                return True
        except OSError:
            continue
    return False
