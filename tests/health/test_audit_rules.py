"""Versions, known escapes, and each point of an audit, on made-up machines."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import pytest

from ouvrage.adapters.audit_tables import audit_table, audit_table_in
from ouvrage.base.errors import OuvrageError
from ouvrage.health.audit import (
    CHECKS,
    GpuGroup,
    HostSeen,
    Listening,
    Networks,
    Said,
    Ssh,
    Upgrades,
    audit,
)
from ouvrage.health.versions import later
from ouvrage.model.health import CRITICAL, OK, UNKNOWN, WARN, CheckResult

TABLE = audit_table()
LAN = (("eth0", IPv4Network("192.168.1.0/24")), ("eth1", IPv4Network("10.9.0.0/24")))
GOOD = HostSeen(
    listening=(
        Listening(protocol="tcp", port=22, address="0.0.0.0", near=False),
        Listening(protocol="tcp", port=6379, address="127.0.0.1", near=True),
    ),
    ssh=Ssh(
        settings={"passwordauthentication": "no", "kbdinteractiveauthentication": "no"}, within=()
    ),
    namespaces={"max_user_namespaces": "10000"},
    docker_open=False,
    versions={"kernel": "6.12.9", "runc": "1.3.3", "bubblewrap": "0.8.0-2+deb12u1"},
    gpus=(GpuGroup(address="0000:01:00.0", group="14", others=()),),
    upgrades=Upgrades(on=False, driver=(), left_alone=frozenset()),
    networks=Networks(near=LAN, way_out=frozenset({"eth0"}), bmc=False),
    unread={},
)


def _one(name: str, said: Said = Said(), **changed: Any) -> CheckResult:  # noqa: B008 -- it is frozen
    found = {each.check: each for each in audit(replace(GOOD, **changed), TABLE, said)}
    assert list(found) == list(CHECKS)
    return found[name]


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("1.17.8", "1.17.7"), ("1.10.0", "1.9.9"), ("1.4.0", "1.4.0-rc.3"), ("1.4.0-rc.3", "1.4.0-rc.2"),
        ("1.4.0-rc.1", "1.3.9"), ("1.1.5+ds1-1+deb12u1", "1.1.5"), ("2:0.1", "1:9"), ("1.0", "1.0~rc1"),
        ("v1.7.27", "1.7.26"), ("1.0.0~rc93+ds1-5", "1.0.0-rc3"), ("1.2.0-rc.3", "1.2.0~rc2+ds"), ("5.15.149", "5.15.99"), ("1.17.8-1", "1.17.8~rc2-1"),
    ],
)  # fmt: skip
def test_the_later_of_two_versions(newer: str, older: str):
    assert later(newer, older)
    assert not later(older, newer)
    assert not later(newer, newer)


@pytest.mark.parametrize(
    ("component", "version", "cves"),
    [
        ("nvidia-container-toolkit", "1.17.8-1", ()),
        ("nvidia-container-toolkit", "1.17.7-1", ("CVE-2025-23266", "CVE-2025-23267")),
        ("nvidia-container-toolkit", "1.16.2", ("CVE-2024-0135", "CVE-2025-23266", "CVE-2025-23267", "CVE-2025-23359")),
        ("nvidia-container-toolkit", "1.16.1", ("CVE-2024-0132", "CVE-2024-0135", "CVE-2025-23266", "CVE-2025-23267", "CVE-2025-23359")),
        ("runc", "1.2.8", ()),
        ("runc", "1.3.2", ("CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881")),
        ("runc", "1.4.0-rc.2", ("CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881")),
        ("runc", "1.6.0", ()),
        ("runc", "1.1.15", ("CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881")),
        # Debian mended 21626 under the old number, and the others not.
        ("runc", "1.1.5+ds1-1+deb12u1", ("CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881")),
        ("runc", "1.1.5+ds1-1+b1", ("CVE-2024-21626", "CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881")),
        ("containerd", "1.7.27", ()),
        ("containerd", "2.0.3", ("CVE-2024-40635",)),
        ("podman", "4.9.4", ()),
        ("runc", "1.0.0~rc93+ds1-5+deb11u3", ("CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881")),
        ("runc", "1.0.0~rc6+dfsg1-3", ("CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881")),
        ("runc", "1.0.0~rc2+docker1", ("CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52881")),
        ("bubblewrap", "0.3.1-4", ()),
        ("bubblewrap", "0.4.0-1", ("CVE-2020-5291",)),
        ("kernel", "5.4.250", ("CVE-2024-1086",)),
        ("kernel", "5.4.172", ("CVE-2022-0185", "CVE-2022-0492", "CVE-2024-1086")),
        ("kernel", "6.1.119", ()),
        ("kernel", "5.15.148", ("CVE-2024-1086",)),
        ("kernel", "6.5.13", ("CVE-2024-1086",)),
        ("kernel", "5.10.92", ("CVE-2022-0185", "CVE-2022-0492", "CVE-2022-0847", "CVE-2024-1086")),
    ],
)  # fmt: skip
def test_which_escapes_a_version_has(component: str, version: str, cves: tuple[str, ...]):
    known = [each for each in TABLE.escapes if each.component == component]
    open_ = [each.cve for each in known if each.is_in(version)]
    assert tuple(sorted(open_)) == cves


def test_every_escape_is_data_with_a_source():
    assert all(each.source and each.what and each.fixed for each in TABLE.escapes)
    assert {each.component for each in TABLE.escapes} >= {"runc", "nvidia-container-toolkit", "kernel", "podman"}  # fmt: skip


def test_a_good_machine_is_ok():
    assert {each.verdict for each in audit(GOOD, TABLE, Said())} == {OK}


_KEYS = {"passwordauthentication": "no", "kbdinteractiveauthentication": "no"}


@pytest.mark.parametrize(
    ("name", "changed", "verdict", "words"),
    [
        ("services", {"listening": (Listening(protocol="tcp", port=2375, address="::", near=False),)}, CRITICAL, "Docker without TLS"),
        ("services", {"listening": (Listening(protocol="tcp", port=4711, address="10.0.0.1", near=False),)}, WARN, "nobody said why"),
        ("ssh", {"ssh": None}, OK, "no SSH server"),
        ("ssh", {"ssh": Ssh(settings={}, within=())}, CRITICAL, "with a password"),
        ("ssh", {"ssh": Ssh(settings={"passwordauthentication": "no", "usepam": "yes"}, within=())}, CRITICAL, "PAM may ask"),
        ("ssh", {"ssh": Ssh(settings={"passwordauthentication": "no"}, within=())}, OK, "keys"),
        ("ssh", {"ssh": Ssh(settings=_KEYS, within=(("passwordauthentication", "yes"),))}, WARN, "for some users"),
        ("containers", {"namespaces": {"max_user_namespaces": "0"}}, WARN, "can't be made"),
        ("containers", {"namespaces": {"unprivileged_userns_clone": "0"}}, WARN, "can't be made"),
        ("containers", {"docker_open": True}, CRITICAL, "Docker's socket"),
        ("kernel", {"versions": {"kernel": ""}}, UNKNOWN, "can't be told"),
        ("runc", {"versions": {}}, OK, "not installed"),
        ("runc", {"versions": {"runc": "1.1.14"}}, CRITICAL, "CVE-2025-31133"),
        ("podman", {"versions": {"podman": "4.9.3"}}, WARN, "CVE-2024-1753"),
        ("iommu", {"gpus": ()}, OK, "no GPU"),
        ("iommu", {"gpus": (GpuGroup(address="a", group=None, others=()),)}, WARN, "no IOMMU group"),
        ("iommu", {"gpus": (GpuGroup(address="a", group="1", others=("b",)),)}, WARN, "shares its group with b"),
        ("driver-upgrades", {"upgrades": Upgrades(on=True, driver=("nvidia-driver-570",), left_alone=frozenset())}, WARN, "nvidia-driver-570"),
        ("driver-upgrades", {"upgrades": Upgrades(on=True, driver=("nvidia-driver-570",), left_alone=frozenset({"nvidia-driver-570"}))}, OK, "held"),
        ("driver-upgrades", {"upgrades": Upgrades(on=False, driver=("nvidia-driver-570",), left_alone=frozenset())}, OK, "nothing is upgraded"),
        ("admin-network", {"networks": Networks(near=LAN, way_out=frozenset({"eth0"}), bmc=True)}, WARN, "--admin-network"),
        ("services", {"unread": {"services": "it can't be read: no"}}, UNKNOWN, "can't be read"),
    ],
)  # fmt: skip
def test_what_is_held_against_a_machine(name: str, changed: Any, verdict: str, words: str):
    found = _one(name, **changed)
    assert (found.verdict, words in found.reasons[0]) == (verdict, True), found
    assert found.rule.startswith(f"{name}/")


@pytest.mark.parametrize(
    ("admin", "verdict"), [("10.9.0.0/24", OK), ("192.168.1.128/25", CRITICAL), ("10.77.0.0/16", OK)]
)  # fmt: skip
def test_the_admin_network_apart_from_the_way_out(admin: str, verdict: str):
    assert _one("admin-network", Said(admin=IPv4Network(admin))).verdict == verdict


def test_what_the_owner_says_is_said_again():
    old = {"versions": {"runc": "1.1.14"}}
    said = Said(mended=frozenset({"CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"}))
    found = _one("runc", said, **old)
    assert found.verdict == OK
    assert "CVE-2025-31133" in found.reasons[0]
    assert "as you say" in found.reasons[0]
    odd = (Listening(protocol="tcp", port=4711, address="10.0.0.1", near=False),)
    assert _one("services", Said(allowed=frozenset({4711})), listening=odd).verdict == OK


def test_a_table_that_is_none_is_refused():
    for text in ("version = 1", "[[escape]]\ncve = 1", "x = "):
        with pytest.raises(OuvrageError, match="host_audit"):
            audit_table_in("host_audit.toml", text)
