"""Is a machine safe enough for strangers' work? What was seen of it, judged point by point.

Decides what is held against a machine: services that others reach, passwords over SSH, versions with a known way out of a
container, a driver that is changed under running work, an admin network that tenants share. Whether a sandbox holds is
tried out elsewhere (``agent/isolation``); what is known to be faulty is data (``health_data/host_audit.toml``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Network

from ouvrage.health.findings import weight
from ouvrage.health.versions import carries, later
from ouvrage.model.health import CRITICAL, OK, UNKNOWN, WARN, CheckResult
from ouvrage.model.work import Named

COMPONENTS = ("nvidia-container-toolkit", "runc", "containerd", "podman", "bubblewrap", "kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """A known way out: ``component`` from ``since`` on and before ``fixed`` (one version for each branch) has it."""

    cve: str
    component: str
    verdict: str
    what: str
    fixed: tuple[str, ...]
    mended: tuple[str, ...]
    source: str
    since: str = ""

    def is_in(self, version: str) -> bool:
        """Whether a version has it."""
        if self.since and later(self.since, version):
            return False
        return not carries(version, self.fixed, self.mended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is known of a port, and the verdict where other machines reach it."""

    port: int
    protocol: str
    name: str
    verdict: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTable:
    """Everything that an audit holds against a machine, in one version. ``valid_days``: how long it counts."""

    version: int
    as_of: str
    escapes: tuple[Escape, ...]
    services: Mapping[tuple[str, int], Service]
    valid_days: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A socket that waits for others; ``near``: on the loopback alone."""

    protocol: str
    port: int
    address: str
    near: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    """What the SSH server is set to, lower case; ``within`` are settings that hold for some users alone."""

    settings: Mapping[str, str]
    within: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuGroup:
    """A GPU's IOMMU group (None: there is none) and the other devices in it that are neither of it nor bridges."""

    address: str
    group: str | None
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrades:
    """Whether packages are upgraded unattended, which of the driver's there are, and which are left alone."""

    on: bool
    driver: tuple[str, ...]
    left_alone: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """Directly reached networks with their interface, the interfaces of the way out, and whether there is a BMC."""

    near: tuple[tuple[str, IPv4Network], ...]
    way_out: frozenset[str]
    bmc: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """What was seen of a machine. None where it could not be read; ``unread`` says why, by the check's name.

    ``versions`` hold what is installed of ``COMPONENTS``; an empty version: installed, and it does not say which.
    """

    listening: tuple[Listening, ...] | None
    ssh: Ssh | None
    namespaces: Mapping[str, str]
    docker_open: bool
    versions: Mapping[str, str]
    gpus: tuple[GpuGroup, ...]
    upgrades: Upgrades | None
    networks: Networks | None
    unread: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the owner says: ports that are open on purpose, mends that a distribution carries, the admin network."""

    allowed: frozenset[int] = frozenset()
    mended: frozenset[str] = frozenset()
    admin: IPv4Network | None = None


Judge = Callable[[HostSeen, AuditTable, Said], CheckResult]


def audit(seen: HostSeen, table: AuditTable, said: Said) -> list[CheckResult]:
    """Every point, in order; what could not be read is UNKNOWN."""
    return [
        _result(name, UNKNOWN, "unread", seen.unread[name]) if name in seen.unread else judge(seen, table, said)
        for name, judge in CHECKS.items()
    ]  # fmt: skip


def _result(
    check: str, verdict: str, rule: str, *reasons: str, evidence: Sequence[Named] = ()
) -> CheckResult:
    action = "none" if verdict == OK else "update_software" if check in COMPONENTS else "look"
    return CheckResult(
        check=check,
        verdict=verdict,
        evidence=tuple(evidence),
        action=action,
        reasons=reasons,
        rule=f"{check}/{rule}",
    )


def _services(seen: HostSeen, table: AuditTable, said: Said) -> CheckResult:
    far = [each for each in seen.listening or () if not each.near]
    found: list[tuple[str, str]] = []
    for protocol, port in sorted({(each.protocol, each.port) for each in far}):
        known = table.services.get((protocol, port))
        if port in said.allowed or (known is not None and known.verdict == OK):
            continue
        name = f"port {port}/{protocol} is open to other machines"
        words = f"{name}: {known.name}, {known.why}" if known else f"{name}: nobody said why"
        found.append((known.verdict if known else WARN, words))
    found.sort(key=lambda each: -weight(each[0]))
    evidence = [Named(name=f"{e.protocol}/{e.port}", value=e.address) for e in far]
    if not found:
        words = f"{len({e.port for e in far})} ports are open beyond the loopback, each known or allowed"
        return _result("services", OK, "known", words, evidence=evidence)
    verdict = found[0][0]
    return _result("services", verdict, "open", *(words for _, words in found), evidence=evidence)


def _ssh(seen: HostSeen, _table: AuditTable, _said: Said) -> CheckResult:
    if seen.ssh is None:
        return _result("ssh", OK, "none", "no SSH server is set up here")
    held = seen.ssh.settings
    words: list[str] = []
    if held.get("passwordauthentication", "yes") == "yes":
        words.append("one signs in with a password (PasswordAuthentication is not no)")
    typed = held.get("kbdinteractiveauthentication", held.get("challengeresponseauthentication", "yes"))  # fmt: skip
    if typed == "yes" and held.get("usepam", "no") == "yes":
        words.append("PAM may ask for a password (KbdInteractiveAuthentication is not no)")
    if held.get("permitemptypasswords", "no") == "yes":
        words.append("an empty password will do (PermitEmptyPasswords yes)")
    if held.get("permitrootlogin", "prohibit-password") == "yes" and words:
        words.append("root signs in with one (PermitRootLogin yes)")
    if words:
        return _result("ssh", CRITICAL, "password", *words)
    some = [f"{n} {v}" for n, v in seen.ssh.within if n.endswith("authentication") and v == "yes"]
    if some:
        return _result("ssh", WARN, "password-within", f"for some users: {', '.join(some)}")
    return _result("ssh", OK, "keys", "one signs in with keys alone")


def _namespaces(seen: HostSeen, _table: AuditTable, _said: Said) -> CheckResult:
    held = seen.namespaces
    if seen.docker_open:
        words = "Docker's socket can be written by everybody: whoever writes to it is root here"
        return _result("containers", CRITICAL, "docker-socket", words)
    evidence = [Named(name=name, value=value) for name, value in sorted(held.items())]
    off = [
        name
        for name, no in (("max_user_namespaces", "0"), ("unprivileged_userns_clone", "0"))
        if held.get(name) == no
    ]
    if off:
        words = f"a container without privileges can't be made here ({off[0]} is 0), so that its root would be this machine's"
        return _result("containers", WARN, "no-namespaces", words, evidence=evidence)
    words = "containers without privileges can be made: a container's root is nobody here"
    if held.get("apparmor_restrict_unprivileged_userns") == "1":
        words += "; AppArmor says by which programs"
    return _result("containers", OK, "namespaces", words, evidence=evidence)


def _component(component: str) -> Judge:
    def judge(seen: HostSeen, table: AuditTable, said: Said) -> CheckResult:
        version = seen.versions.get(component)
        if version is None:
            return _result(component, OK, "none", f"{component} is not installed")
        if not version:
            words = f"{component} is here, and which version it is can't be told: hold it to the maker's advisories"
            return _result(component, UNKNOWN, "no-version", words)
        known = [each for each in table.escapes if each.component == component]
        open_ = [each for each in known if each.is_in(version)]
        left = sorted(
            (e for e in open_ if e.cve not in said.mended), key=lambda e: -weight(e.verdict)
        )
        evidence = [Named(name="version", value=version)]
        if left:
            reasons = [
                f"{component} {version} has {e.cve}: {e.what}; mended in {', '.join(e.fixed)}"
                for e in left
            ]
            return _result(component, left[0].verdict, left[0].cve, *reasons, evidence=evidence)
        told = (
            f"; its distribution mended {', '.join(e.cve for e in open_)}, as you say"
            if open_
            else ""
        )
        words = f"{component} {version} has none of {len(known)} known escapes{told}"
        return _result(component, OK, "mended", words, evidence=evidence)  # fmt: skip

    return judge


def _iommu(seen: HostSeen, _table: AuditTable, _said: Said) -> CheckResult:
    if not seen.gpus:
        return _result(
            "iommu", OK, "none", "no GPU is here that could be passed to a virtual machine"
        )
    without = [each.address for each in seen.gpus if each.group is None]
    if without:
        words = f"{len(without)} of {len(seen.gpus)} GPUs are in no IOMMU group: no GPU can be given to a virtual machine, and a device may reach all memory"
        return _result("iommu", WARN, "off", words)
    shared = [
        f"{each.address} shares its group with {', '.join(each.others)}"
        for each in seen.gpus
        if each.others
    ]
    if shared:
        return _result("iommu", WARN, "shared", *shared)
    return _result("iommu", OK, "apart", f"each of {len(seen.gpus)} GPUs has an IOMMU group of its own")  # fmt: skip


def _upgrades(seen: HostSeen, _table: AuditTable, _said: Said) -> CheckResult:
    held = seen.upgrades
    if held is None or not held.driver:
        return _result("driver-upgrades", OK, "none", "no package of NVIDIA's driver is installed")
    free = [name for name in held.driver if name not in held.left_alone]
    if not held.on or not free:
        how = "nothing is upgraded unattended" if not held.on else "each of its packages is held"
        return _result("driver-upgrades", OK, "held", f"the driver stays as it is: {how}")
    words = f"{free[0]} may be upgraded unattended: running work then meets another library than the kernel's module"
    return _result("driver-upgrades", WARN, "unattended", words)


def _admin(seen: HostSeen, _table: AuditTable, said: Said) -> CheckResult:
    held = seen.networks
    assert held is not None
    if said.admin is None:
        if held.bmc:
            words = "a management controller is here, and nobody said which network is the admins' own: --admin-network 10.9.0.0/24"
            return _result("admin-network", WARN, "not-said", words)
        return _result(
            "admin-network",
            OK,
            "none",
            "no management controller is here, and no admin network was named",
        )
    admin = said.admin
    near = {interface for interface, network in held.near if network.overlaps(admin)}
    if near & held.way_out:
        words = f"{admin} is on {', '.join(sorted(near & held.way_out))}, by which tenants' work goes out as well"
        return _result("admin-network", CRITICAL, "shared", words)
    where = f"on {', '.join(sorted(near))} alone" if near else "not reached from here directly"
    words = f"{admin} is {where}; keep work out of it: ouvrage agent run --deny {admin}"
    return _result("admin-network", OK, "apart", words)  # fmt: skip


CHECKS: dict[str, Judge] = {
    "services": _services,
    "ssh": _ssh,
    "containers": _namespaces,
    **{component: _component(component) for component in COMPONENTS},
    "iommu": _iommu,
    "driver-upgrades": _upgrades,
    "admin-network": _admin,
}
"""Every point by its name, in the order in which they are told."""
