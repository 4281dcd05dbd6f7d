"""Which BMC or plug switches which machine: ``remote.toml`` in a home, and the passwords it refers to.

Decides what may stand there: an address without secrets in it, a password by reference alone (``file:``, ``env:``, ``command:``),
for Redfish beyond this machine only https. A password is fetched when it is needed, kept nowhere, and in no refusal's words.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from ouvrage.adapters.ipmi import LOCAL, Bmc, Ipmi
from ouvrage.adapters.plugs import Shelly, Socket, Tasmota
from ouvrage.adapters.power_order import Pace
from ouvrage.adapters.power_port import PowerFault, PowerPort
from ouvrage.adapters.power_quirks import Quirk, quirk_for
from ouvrage.adapters.power_turn import bmc_at
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.names import check_name
from ouvrage.model.power import RESTORES

FILE = "remote.toml"
KINDS = ("redfish", "ipmi", "shelly", "tasmota")
EXAMPLE = (
    "[node.gpu1]\n"
    'kind = "redfish"                      # or ipmi, shelly, tasmota\n'
    'address = "https://10.0.0.21"\n'
    'user = "ouvrage"\n'
    'password = "file:/etc/ouvrage/gpu1-bmc"   # or env:NAME, command:PROGRAM'
)
_KEYS = {
    "kind": str, "address": str, "user": str, "password": str, "pin": str, "ca": str, "login": str, "system": str,
    "maker": str, "model": str, "cipher": int, "pdu": str, "timeout_s": int, "off_s": int, "look_s": int, "restore": str,
}  # fmt: skip
_ONLY = {
    "pin": ("redfish",), "ca": ("redfish",), "login": ("redfish",), "system": ("redfish",),
    "cipher": ("ipmi",), "outlet": ("redfish", "shelly", "tasmota"), "pdu": ("redfish",),
}  # fmt: skip
_PIN = re.compile(r"sha256:([0-9a-f]{64})")
_ID = re.compile(r"(?!\.+$)[^/?#\x00-\x20\x7f]{1,128}")
"""One step of a path: what would lead elsewhere in the service is none."""
_URL = re.compile(r"https?://(?:[0-9A-Za-z][0-9A-Za-z._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/?")
_COMMAND_S = 20
_LONGEST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """How one node's power is reached. ``restore`` is what it should do when electricity comes back."""

    node: str
    kind: str
    address: str
    settings: Mapping[str, Any]
    where: str

    @property
    def restore(self) -> str | None:
        """What the owner wants of the restore policy; None: anything but staying off."""
        return self.settings.get("restore")


def remotes(home: Path) -> dict[str, Remote]:
    """Every node in the file; none where there is no file. Raises ``OuvrageError`` ``remote/...``."""
    file = home / FILE
    if not file.exists():
        return {}
    data = load_toml(str(file), read_text(file, "remote", 1 << 20), "remote/file")
    nodes = data.get("node", {})
    odd = sorted(data.keys() - {"node"})
    if odd or not isinstance(nodes, dict):
        raise OuvrageError(
            "remote/file",
            f"{file} has no place for {', '.join(odd) or 'node other than as tables'}",
            hint=f"write it like this:\n{EXAMPLE}",
        )
    return {name: _remote(name, entry, str(file)) for name, entry in nodes.items()}


def remote_of(home: Path, node: str) -> Remote:
    """One node's. Raises ``OuvrageError`` ``remote/none`` where the file does not name it."""
    found = remotes(home)
    if node in found:
        return found[node]
    known = f"; it names {', '.join(sorted(found))}" if found else ""
    raise OuvrageError(
        "remote/none", f"{home / FILE} does not say how the power of {node!r} is reached{known}",
        hint=f"write it there like this:\n{EXAMPLE}",
    )  # fmt: skip


def _remote(node: str, entry: Any, file: str) -> Remote:
    where = f"{file}: [node.{node}]"

    def refuse(code: str, words: str, hint: str) -> OuvrageError:
        return OuvrageError(f"remote/{code}", words, where=(where,), hint=hint)

    check_name("node", node, "[node.gpu1]")
    if not isinstance(entry, dict):
        raise refuse("file", f"{node} is no table", EXAMPLE)
    for name, value in entry.items():
        wanted = _outlet_is(entry) if name == "outlet" else _KEYS.get(name)
        if wanted is None:
            known = ", ".join((*_KEYS, "outlet"))
            raise refuse("key", f"nothing is called {name!r}", f"known are {known}")
        if type(value) is not wanted:
            raise refuse("value", f"{name} is no {'number' if wanted is int else 'text'}", EXAMPLE)
    kind = entry.get("kind")
    if kind not in KINDS:
        raise refuse("kind", f"kind is {kind!r}", f"one of {', '.join(KINDS)}")
    for name, kinds in _ONLY.items():
        if name in entry and kind not in kinds:
            raise refuse(
                "key", f"{name} says nothing to {kind}", f"it goes with {' and '.join(kinds)}"
            )
    _check_values(entry, refuse)
    address = _address(kind, str(entry.get("address", "")), entry, refuse)
    return Remote(node=node, kind=kind, address=address, settings=entry, where=where)


def _outlet_is(entry: Mapping[str, Any]) -> type:
    """A plug counts its relays; a rack's unit has names for its outlets."""
    return str if entry.get("kind") == "redfish" else int


Refuse = Callable[[str, str, str], OuvrageError]


def _check_values(entry: Mapping[str, Any], refuse: Refuse) -> None:
    if "password" in entry and entry["password"].partition(":")[0] not in (
        "file",
        "env",
        "command",
    ):
        raise refuse(
            "password",
            "password is no reference",
            "file:PATH, env:NAME or command:PROGRAM; never the password itself",
        )
    if "pin" in entry and not _PIN.fullmatch(entry["pin"]):
        raise refuse(
            "pin", "pin is no SHA-256 of a certificate", 'pin = "sha256:" and 64 hexadecimal digits'
        )
    if entry.get("login", "basic") not in ("basic", "session"):
        raise refuse(
            "login",
            f"login is {entry['login']!r}",
            "basic, or session for a BMC that takes no other",
        )
    if entry.get("restore", "on") not in RESTORES:
        raise refuse("restore", f"restore is {entry['restore']!r}", f"one of {', '.join(RESTORES)}")
    _check_places(entry, refuse)
    for name, least, most in (
        ("timeout_s", 1, 120),
        ("off_s", 0, 600),
        ("look_s", 1, 60),
        ("outlet", 0, 63),
        ("cipher", 0, 17),
    ):
        if isinstance(entry.get(name), int) and not least <= entry[name] <= most:
            raise refuse("value", f"{name} is {entry[name]}", f"{least} to {most}")


def _check_places(entry: Mapping[str, Any], refuse: Refuse) -> None:
    """What of a service is meant: a system or an outlet, by an id that is one step of a path."""
    if "pdu" in entry and "outlet" not in entry:
        raise refuse("key", "pdu names no outlet", 'pdu = "1" goes with outlet = "A1"')
    if "outlet" in entry and "system" in entry:
        raise refuse("key", "system and outlet are two ways to one machine", "name one of them")
    for name in ("pdu", "outlet", "system"):
        if isinstance(entry.get(name), str) and not _ID.fullmatch(entry[name]):
            raise refuse(
                "value", f"{name} is {entry[name][:80]!r}", "its id, as the service has it"
            )


def _address(kind: str, address: str, entry: Mapping[str, Any], refuse: Refuse) -> str:
    """The address as it is used. One that holds a user or a password is refused without being repeated."""
    if "@" in address:
        raise refuse(
            "address", "the address holds a user or a password", "they stand in user and password"
        )
    if kind == "ipmi":
        return _host_and_port(address, refuse)
    parts = _parts(address)
    if parts is None:
        raise refuse(
            "address",
            f"{address[:80]!r} is no address",
            "https://HOST or http://HOST, with nothing behind",
        )
    local = parts.hostname in ("localhost", "::1") or (parts.hostname or "").startswith("127.")
    if kind == "redfish" and parts.scheme == "http" and not local:
        raise refuse(
            "no-tls", "its password would go over the network in the clear", "use https://"
        )
    if "pin" in entry and parts.scheme != "https":
        raise refuse("pin", "there is no certificate to pin over http", "use https://")
    return f"{parts.scheme}://{parts.netloc}"


def _parts(address: str) -> SplitResult | None:
    """A URL that names a host and nothing behind it; None for any other text."""
    try:
        parts = urlsplit(address)
        return None if not _URL.fullmatch(address) or parts.port == 0 else parts
    except ValueError:  # what stands in brackets is no address, or the port none
        return None


def _host_and_port(address: str, refuse: Refuse) -> str:
    host, _, port = (
        address.rpartition(":") if re.fullmatch(r"[^:]+:[0-9]+", address) else (address, "", "623")
    )
    if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.:-]{0,253}", host) or not 0 < int(port) < 65_536:
        raise refuse(
            "address",
            f"{address[:80]!r} is no address",
            f"HOST, HOST:PORT, or {LOCAL} for this machine's own BMC",
        )
    return f"{host}:{port}" if host != LOCAL else LOCAL


def ordered_at(remote: Remote) -> str:
    """What one order at a time is given to, whoever gives it: a machine. Others behind the same BMC or strip may be ordered meanwhile."""
    part = [remote.settings.get(name, "") for name in ("system", "pdu", "outlet")]
    return f"order {bmc_at(remote.address)} {part}"


def power_port_of(remote: Remote) -> PowerPort:
    """The way to a node's power. Nothing is asked yet. Raises ``OuvrageError`` where a library is missing."""
    given = remote.settings
    maker, model = given.get("maker", ""), given.get("model", "")
    password = _secret(remote)
    user, timeout = given.get("user"), given.get("timeout_s")
    if remote.kind == "redfish":
        from ouvrage.adapters.redfish import Redfish, Where
        from ouvrage.adapters.redfish_outlet import RackOutlet

        where = Where(
            address=remote.address, user=user, password=password, ca=given.get("ca"), system=given.get("system"),
            pin=given["pin"].removeprefix("sha256:") if "pin" in given else None,
            session=given.get("login") == "session", timeout_s=timeout or 20,
        )  # fmt: skip

        def quirk(told: str, kind: str) -> Quirk:
            return quirk_for("redfish", maker or told, model or kind)

        if "outlet" in given:
            return RackOutlet(where, quirk, given.get("pdu", "1"), given["outlet"])
        return Redfish(where, quirk)
    if remote.kind == "ipmi":
        host, _, port = (
            remote.address.rpartition(":") if remote.address != LOCAL else (LOCAL, "", "0")
        )
        bmc = Bmc(
            host=host,
            port=int(port),
            user=user,
            password=password,
            cipher=given.get("cipher"),
            timeout_s=timeout or 20,
        )
        return Ipmi(bmc, quirk_for("ipmi", maker, model).ignores)
    socket = Socket(
        address=remote.address,
        outlet=given.get("outlet", 0),
        user=user,
        password=password,
        timeout_s=timeout or 5,
    )
    return Shelly(socket) if remote.kind == "shelly" else Tasmota(socket)


def pace_of(remote: Remote) -> Pace:
    """How long a change may take there, and how often one looks."""
    quirk = quirk_for(
        remote.kind, remote.settings.get("maker", ""), remote.settings.get("model", "")
    )
    usual, given = Pace(), remote.settings
    look_s = usual.look_s if quirk.look_s is None else quirk.look_s
    off_s = usual.off_s if quirk.off_s is None else quirk.off_s
    return Pace(look_s=given.get("look_s", look_s), off_s=given.get("off_s", off_s))


def _secret(remote: Remote) -> Callable[[], str] | None:
    """What fetches the password. One that cannot be had is this machine's trouble alone: a ``PowerFault``."""
    reference = remote.settings.get("password")
    if reference is None:
        return None

    def fetched() -> str:
        try:
            return secret_at(reference, remote.where)
        except OuvrageError as error:
            raise PowerFault("refused", f"its password is not to be had: {error.message}") from None

    return fetched


def secret_at(reference: str, where: str, code: str = "remote/password") -> str:
    """The password that a reference leads to: its first line. Raises ``OuvrageError`` with ``code``."""
    sort, _, what = reference.partition(":")
    read = {"file": _in_file, "env": _in_environment, "command": _by_command}[sort]
    found, trouble = read(what)
    line = found.splitlines()[0] if found else ""
    if trouble or not line:
        raise OuvrageError(
            code, trouble or f"{sort}:{what.split()[0] if what else ''} holds no password", where=(where,),
            hint="a file only you can read (chmod 600), a variable that is set, or a program that prints it",
        )  # fmt: skip
    return line


Found = tuple[str, str]


def _in_file(name: str) -> Found:
    def unwaiting(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe has nobody to wait for

    try:
        path = Path(name).expanduser()
        with open(path, encoding="utf-8", opener=unwaiting) as file:
            held = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(held):
                return "", f"{path} is no file"
            if stat.S_IMODE(held) & 0o077:
                return "", f"{path} can be read by others"
            return file.read(_LONGEST), ""
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no such user's home
        return "", f"{name} could not be read: {getattr(error, 'strerror', None) or 'no text'}"


def _in_environment(name: str) -> Found:
    return os.environ.get(name, "")[
        :_LONGEST
    ], "" if name in os.environ else f"the variable {name} is not set"


def _by_command(line: str) -> Found:
    try:
        words = shlex.split(line)
    except ValueError:
        return "", "the command is not whole: a quotation has no end"
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            errors="replace", timeout=_COMMAND_S, check=False,
        )  # fmt: skip
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired) as error:
        return "", f"{words[0] if words else 'the command'} did not give it: {type(error).__name__}"
    if done.returncode:
        return "", f"{words[0]} ended with {done.returncode}"
    return done.stdout[:_LONGEST], ""
