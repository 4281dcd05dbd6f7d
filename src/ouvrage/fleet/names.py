"""What may stand as a name or an address in the files of a Slurm: hosts, addresses, clusters, paths, ports.

Decides by the letters alone, before anything is written: a line break or a bracket in a name would be another setting, or many
nodes. Host names are those of RFC 1123; whether one exists is asked elsewhere.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from ouvrage.base.errors import OuvrageError

_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_CLUSTER = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_PATH = re.compile(r"(?:/[A-Za-z0-9._-]+)+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_TAKEN = ("all", "default", "localhost", "none", "unknown")
"""Words that mean something else to Slurm in the place of a node's name, or another machine to each host."""


def check_host(what: str, name: str) -> None:
    """Raise ``OuvrageError`` ``fleet/host-name`` where a text is no short host name of one machine."""
    if not _LABEL.fullmatch(name) or name.lower() in _TAKEN:
        why = "means something else to Slurm" if name.lower() in _TAKEN else "is no host name"
        raise OuvrageError(
            "fleet/host-name", f"{what} {name[:80]!r} {why}",
            hint="letters, digits and '-' inside, one machine at a time, 63 at most: gpu-03. Another name for it: --host NAME",
        )  # fmt: skip


def check_address(text: str) -> None:
    """Raise ``OuvrageError`` ``fleet/address`` where a text is neither an IP address nor a host name."""
    try:
        ip_address(text)
    except ValueError:
        if len(text) > 253 or not all(_LABEL.fullmatch(each) for each in text.split(".")):
            raise OuvrageError(
                "fleet/address", f"{text[:80]!r} is neither an address nor a host name",
                hint="10.0.0.7, or gpu-03.example.org",
            ) from None  # fmt: skip


def check_cluster(name: str) -> None:
    """Raise ``OuvrageError`` ``fleet/cluster-name`` where a text cannot name a cluster to its accounting."""
    if not _CLUSTER.fullmatch(name):
        raise OuvrageError(
            "fleet/cluster-name", f"{name[:80]!r} cannot name a cluster",
            hint="small letters, digits, '_' and '-', a letter first, 40 at most: lab",
        )  # fmt: skip


def check_path(what: str, path: str) -> None:
    """Raise ``OuvrageError`` ``fleet/path`` where a text is no plain absolute path."""
    if not _PATH.fullmatch(path) or "/.." in path:
        raise OuvrageError(
            "fleet/path", f"{what} {path[:80]!r} is no plain path from /",
            hint="letters, digits, '.', '_' and '-' between slashes; Slurm reads % and blanks as something else",
        )  # fmt: skip


def check_word(what: str, name: str) -> None:
    """Raise ``OuvrageError`` ``fleet/word`` where a text cannot stand as one word in Slurm's files."""
    if not _WORD.fullmatch(name):
        raise OuvrageError(
            "fleet/word", f"{what} {name[:80]!r} cannot stand in Slurm's files",
            hint="letters, digits, '_' and '-', a letter first",
        )  # fmt: skip


def check_port(what: str, port: int) -> None:
    """Raise ``OuvrageError`` ``fleet/port`` where a number is no port."""
    if not 1 <= port <= 65_535:
        raise OuvrageError("fleet/port", f"{what} {port} is no port", hint="1 to 65535")
