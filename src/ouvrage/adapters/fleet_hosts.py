"""The hosts of a fleet: what lies there now, what a machine finds of itself, and putting a written plan in place.

Decides how a host is asked (one shell script that only reads, over SSH or on this machine) and how a plan travels (as an archive on
standard input, into a directory that only root can read and that is gone afterwards). What a secret file holds is never asked, only
its hash. What ought to be there is decided by ``fleet/plan``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import re
import shlex
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ouvrage.adapters.slurm import over_ssh
from ouvrage.base.errors import OuvrageError
from ouvrage.fleet.install import SCRIPT
from ouvrage.fleet.joining import Told
from ouvrage.fleet.plan import File

_SECONDS = 600
_LARGEST = 8 << 20
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """A file as a host has it: its hash, and of one that is no secret its content; ``first`` is its first line."""

    sha256: str
    data: bytes | None
    first: str


@dataclass(slots=True, kw_only=True)
class Seen:
    """What a host answered: files by path, the number of the user ``slurm`` (None: no such user), and itself."""

    files: dict[str, There] = field(default_factory=dict)
    slurm_user: str | None = None
    told: Told = field(default_factory=lambda: Told(slurmd={}, devices=()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host by its ``name`` in the fleet; ``ssh`` is where it is reached, None: it is this machine."""

    name: str
    ssh: str | None

    def run(self, script: str, *words: str, data: bytes = b"") -> str:
        """What a script prints there. Raises ``OuvrageError`` ``fleet/host`` where it fails."""
        command = ["sh", "-c", script, "sh", *words]
        if self.ssh is not None:
            command = over_ssh(self.ssh, command, os.environ)
        try:
            done = subprocess.run(
                command, input=data, capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._failed(str(error)) from error
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
            raise self._failed(said[-1] if said else f"it ended with {done.returncode}")
        return done.stdout[:_LARGEST].decode("utf-8", "replace")

    def _failed(self, why: str) -> OuvrageError:
        return OuvrageError(
            "fleet/host", f"{self.name} does not do what it is told: {why[:300]}", exit_code=1,
            hint=f"ssh {self.ssh} must let you in as root without asking" if self.ssh else "as root, on the host itself",
        )  # fmt: skip

    def see(self, files: Sequence[File], devices: str) -> Seen:
        """What lies there now; nothing is changed."""
        return _seen(self.run(_look(files, devices)))

    def put(self, bundle: bytes, what: str, role: str) -> list[str]:
        """Carry a written plan there and run its script; the lines that it printed."""
        return self.run(_UNPACK, what, role, data=bundle).splitlines()


_UNPACK = f"""\
umask 077
at=$(mktemp -d) || exit 1
trap 'rm -rf "$at"' EXIT
tar -C "$at" -xf - && sh "$at/{SCRIPT}" "$@"
"""


def _look(files: Sequence[File], devices: str) -> str:
    """The script that reads: hashes, contents of what is no secret, the user's number, processors, device files."""
    lines = [
        'look() { [ -f "$2" ] || return 0; printf "file %s %s " "$2" "$(sha256sum < "$2" | cut -c1-64)"; '
        'if [ "$1" = open ]; then base64 -w0 < "$2"; fi; printf " "; '
        'if [ "$1" != key ]; then head -n 1 "$2" | cut -c1-200 | base64 -w0; fi; echo; }'
    ]
    for each in files:
        how = "open" if not each.secret else "conf" if each.path.endswith(".conf") else "key"
        lines.append(f"look {how} {shlex.quote(each.path)}")
    lines += [
        'printf "user %s\\n" "$(id -u slurm 2>/dev/null)"',
        'printf "slurmd %s\\n" "$(slurmd -C 2>/dev/null | head -n 1)"',
        f'for each in {shlex.quote(devices)}[0-9]*; do [ ! -e "$each" ] || printf "device %s\\n" "$each"; done',
        "exit 0",
    ]
    return "\n".join(lines)


def _seen(text: str) -> Seen:
    found = Seen()
    slurmd: dict[str, str] = {}
    devices: list[int] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "file":
            found.files.update(_file(rest))
        elif word == "user":
            found.slurm_user = rest or None
        elif word == "slurmd":
            slurmd = dict(each.split("=", 1) for each in rest.split() if "=" in each)
        elif word == "device" and (number := re.search(r"[0-9]+$", rest)):
            devices.append(int(number[0]))
    found.told = Told(slurmd=slurmd, devices=tuple(sorted(devices)))
    return found


def _file(rest: str) -> Iterator[tuple[str, There]]:
    words = rest.split(" ")
    if len(words) != 4:
        return
    try:
        data, first = (base64.b64decode(each) for each in words[2:])
    except binascii.Error:
        return
    kept = data if hashlib.sha256(data).hexdigest() == words[1] else None
    yield words[0], There(sha256=words[1], data=kept, first=first.decode("utf-8", "replace").strip())  # fmt: skip


def in_directory(directory: Path, files: Mapping[str, File]) -> dict[str, There]:
    """What lies in a written plan; ``files`` by where they lie in it. The keys are the files' own paths."""
    found: dict[str, There] = {}
    for name, file in files.items():
        try:
            data = (directory / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OuvrageError(
                "fleet/directory", f"{directory / name} cannot be read: {error.strerror}",
                hint="name another directory: --to DIR",
            ) from error  # fmt: skip
        first = data.split(b"\n", 1)[0].decode("utf-8", "replace")
        found[file.path] = There(sha256=hashlib.sha256(data).hexdigest(), data=data, first=first)
    return found


def bundle_of(contents: Mapping[str, bytes]) -> bytes:
    """A written plan as an archive, readable by its owner alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def write_directory(directory: Path, contents: Mapping[str, bytes]) -> None:
    """A written plan in a directory that only its owner may read, each file whole or not at all."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, data in contents.items():
            file = directory / name
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = file.with_name(f".{file.name}.{os.getpid()}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(data)
            draft.replace(file)
    except OSError as error:
        raise OuvrageError(
            "fleet/directory", f"{directory} cannot be written: {error.strerror}",
            hint="name a directory that you may write to: --to DIR",
        ) from error  # fmt: skip
