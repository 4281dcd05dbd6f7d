"""The units for systemd: what they start exists, and what hardens them is there."""

from __future__ import annotations

import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import click
import pytest

from ouvrage.cli.main import root

UNITS = sorted((Path(__file__).parents[2] / "deploy/systemd").glob("*.service"))


def service(path: Path) -> dict[str, str]:
    parser = ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names are case-sensitive here
    parser.read(path, "utf-8")
    return dict(parser["Service"])


def test_there_are_three():
    assert [path.stem for path in UNITS] == ["ouvrage-agent", "ouvrage-server", "ouvrage-watch"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_what_a_unit_starts_is_a_command_with_these_options(path: Path):
    program, *words = service(path)["ExecStart"].split()
    assert program == "/opt/ouvrage/bin/ouvrage"
    command: click.Command = root
    context = click.Context(root)
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    known = {name for param in command.params for name in param.opts}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_call_that_is_forbidden_is_refused_and_kills_nobody(path: Path):
    """A unit's filter is inherited by all that it starts; without this systemd's answer is SIGSYS."""
    assert service(path)["SystemCallErrorNumber"] == "EPERM"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_hardened(path: Path):
    said = service(path)
    assert said["UMask"] == "0077"
    assert said["StateDirectoryMode"] == "0700"
    assert said["ProtectKernelModules"] == "yes"
    if path.stem == "ouvrage-server":
        assert said["DynamicUser"] == "yes"
        assert said["CapabilityBoundingSet"] == ""
        assert said["NoNewPrivileges"] == "yes"
        assert said["ProtectSystem"] == "strict"
    elif path.stem == "ouvrage-watch":
        assert said["NoNewPrivileges"] == "yes"
        assert said["ProtectSystem"] == "strict"
        assert "CAP_SYS_TIME" not in said["CapabilityBoundingSet"]
    else:
        assert said["KillMode"] == "process"  # supervisors outlive the runner


@pytest.mark.parametrize("stem", ["ouvrage-agent", "ouvrage-watch"])
def test_what_the_watch_asks_is_not_kept_from_it(stem: str):
    """``ProtectClock=`` refuses adjtimex to whoever only asks, ``ProtectKernelLogs=`` the kernel's log."""
    said = service(next(path for path in UNITS if path.stem == stem))
    assert not {"ProtectClock", "ProtectKernelLogs", "PrivateDevices"} & said.keys()


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_understands_a_unit(path: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    left = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert left == []


def test_the_runner_s_unit_lets_a_sandbox_stand():
    """Each was seen to keep bubblewrap from making one, or would: the filters are inherited."""
    said = service(next(path for path in UNITS if path.stem == "ouvrage-agent"))
    forbids = {
        "ProtectHostname",
        "RestrictNamespaces",
        "ProtectControlGroups",
        "ProtectKernelTunables",
        "PrivateUsers",
    }
    assert not forbids & said.keys()
