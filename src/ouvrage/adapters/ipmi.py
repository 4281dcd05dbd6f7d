"""A BMC that speaks IPMI, through ipmitool.

Decides which of ipmitool's commands answers what, how its complaints are told apart, and that the password reaches it by an
environment of its own: never by an argument, which every user of the machine could read. Without an address it is the machine's
own BMC, through the kernel's driver, which asks for no password and is root's.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ouvrage.adapters import ipmi_text as text
from ouvrage.adapters.power_port import PowerFault, page_after
from ouvrage.adapters.power_turn import bmc_at, turn
from ouvrage.model.power import LogPage, PowerLimit, Reading

LOCAL = "local"
_PASSWORD = "IPMI_PASSWORD"  # noqa: S105 - the name of the variable that ipmitool reads
_KEPT = ("PATH", "HOME", "LANG", "TERM")
_SILENT = re.compile(
    r"unable to establish|no response|timeout|could not open device|no route|unreachable|lookup failed",
    re.I,
)
_REFUSED = re.compile(
    r"rakp 2 hmac|unauthorized|invalid user|password|insufficient privilege|privilege level|HMAC is invalid",
    re.I,
)
_BUSY = re.compile(r"node busy|insufficient resources|0xc0", re.I)
_CHATTER = re.compile(
    r"Loading IANA|Unable to Get Channel Cipher|Running Get VSO|Invalid completion code|Discovered IPMB|SDRR ",
    re.I,
)
_LACKING = re.compile(
    r"invalid command|not supported|command not supported|\(c1\)|\(0xc1\)|out of range|not implemented",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bmc:
    """How a BMC is reached: host, port, user, cipher suite (None: what ipmitool finds)."""

    host: str
    port: int = 623
    user: str | None = None
    password: Callable[[], str] | None = None
    cipher: int | None = None
    timeout_s: float = 20

    @property
    def name(self) -> str:
        """Its address, as others write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Run = Callable[[Sequence[str], dict[str, str], float], tuple[int, str, str]]


def run(
    command: Sequence[str], environment: dict[str, str], seconds: float
) -> tuple[int, str, str]:
    """Exit code, output and complaints of a command within a deadline. Raises ``PowerFault``."""
    try:
        done = subprocess.run(
            list(command), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=seconds, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise PowerFault("unsupported", "ipmitool is not installed") from None
    except subprocess.TimeoutExpired:
        raise PowerFault("silent", f"no answer within {seconds:g} s") from None
    return done.returncode, done.stdout, done.stderr


class Ipmi:
    """One BMC; each question is one run of ipmitool."""

    kind = "ipmi"

    def __init__(self, bmc: Bmc, ignores: Callable[[str], bool], execute: Run = run) -> None:
        self._bmc = bmc
        self._ignores = ignores
        self._run = execute

    def state(self) -> str:
        """By ``chassis status``, which tells the policy and faults with it."""
        return text.state_in(self._ask("chassis", "status"))

    def turn_on(self) -> None:
        """``chassis power on``."""
        self._ask("chassis", "power", "on")

    def turn_off(self, *, hard: bool = True) -> None:
        """``off`` cuts the power, ``soft`` presses the button for an orderly end."""
        self._ask("chassis", "power", "off" if hard else "soft")

    def sensors(self) -> list[Reading]:
        """The chassis' faults and every sensor that has a value."""
        told = text.chassis_faults(self._ask("chassis", "status"))
        told += text.readings_in(self._ask("sdr", "elist", "all"))
        return [each for each in told if not self._ignores(each.name)]

    def events(self, after: str | None = None) -> LogPage:
        """The system event log."""
        used = text.used_in(self._ask("sel", "info"))
        return page_after(text.entries_in(self._ask("-c", "sel", "elist")), after, used)

    def power_w(self) -> Reading | None:
        """By DCMI, where the BMC has it."""
        try:
            return text.draw_in(self._ask("dcmi", "power", "reading"))
        except PowerFault as fault:
            if fault.kind == "unsupported":
                return None
            raise

    def restore_policy(self) -> str | None:
        """By ``chassis status``."""
        told = text.fields(self._ask("chassis", "status")).get("Power Restore Policy", "")
        return text.RESTORES.get(told)

    def power_limit(self) -> PowerLimit:
        """By DCMI."""
        try:
            told = self._ask("dcmi", "power", "get_limit")
        except PowerFault as fault:
            if fault.kind != "failed":
                raise
            return PowerLimit(
                watts=None
            )  # a BMC without an active limit answers with an error (DCMI 1.5, 6.6.2)
        limit = text.limit_in(told)
        if limit is None:
            raise PowerFault("garbled", "its answer names no limit")
        return limit

    def set_power_limit(self, watts: int | None) -> None:
        """By DCMI: the number first, then that it holds."""
        if watts is None:
            self._ask("dcmi", "power", "deactivate")
            return
        self._ask("dcmi", "power", "set_limit", "limit", str(watts))
        self._ask("dcmi", "power", "activate")

    def _ask(self, *words: str) -> str:
        bmc = self._bmc
        with turn(bmc_at(bmc.name), bmc.timeout_s):
            # Only at length does it tell a wrong password from a BMC that is not there; its tables change then.
            length = ["-v"] if words[0] == "chassis" or words[:2] == ("sel", "info") else []
            command = [*self._command(), *length, *words]
            code, told, complaint = self._run(command, self._environment(), bmc.timeout_s)
        if code == 0:
            return told
        raise _fault(complaint or told)

    def _command(self) -> list[str]:
        bmc = self._bmc
        if bmc.host == LOCAL:
            return ["ipmitool", "-I", "open"]
        line = [
            "ipmitool",
            "-I",
            "lanplus",
            "-H",
            bmc.host,
            "-p",
            str(bmc.port),
            "-N",
            "2",
            "-R",
            "2",
        ]
        if bmc.user is not None:
            line += ["-U", bmc.user, "-E"]
        return line if bmc.cipher is None else [*line, "-C", str(bmc.cipher)]

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        kept |= {"TZ": "UTC", "LC_ALL": "C"}
        if self._bmc.password is not None:
            kept[_PASSWORD] = self._bmc.password()
        return kept


def _fault(complaint: str) -> PowerFault:
    """What ipmitool's complaint means; what it says on its way to a session is none."""
    lines = [
        line.strip() for line in complaint.splitlines() if line.strip() and not _CHATTER.match(line)
    ]
    complaint = "\n".join(lines)
    words = (lines[-1] if lines else "ipmitool says nothing")[:200]
    with suppress(StopIteration):
        kind = next(
            kind
            for kind, form in (
                ("refused", _REFUSED),
                ("busy", _BUSY),
                ("unsupported", _LACKING),
                ("silent", _SILENT),
            )
            if form.search(complaint)
        )
        return PowerFault(kind, words)
    return PowerFault("failed", words)
