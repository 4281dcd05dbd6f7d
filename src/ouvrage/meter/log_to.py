"""``--log-to``: hands the report to a tracking library, when the command has ended.

The library is the user's and lives where the user's program does, so the sender runs under the
Python that the command ran under, and the meter itself imports nothing. Decides which Python that
is. Whatever goes wrong there, or takes longer than ``PATIENCE_S``, is a warning.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from tempfile import TemporaryFile
from typing import IO

from ouvrage.base.errors import OuvrageError
from ouvrage.meter import voice
from ouvrage.meter.launch import SOCKET_VARIABLE, find_command

PATIENCE_S = 120
_ANSWER = "ouvrage-logged: "
_NOT_IMPORTABLE = 3
_PYTHON = re.compile(r"python[0-9.]*\Z")
_WRAPPERS = ("env", "nice", "ionice", "nohup", "time", "stdbuf", "taskset", "numactl", "setsid")
_MOST_WORDS = 12
_MOST_SAID = 1 << 20


def log_to(asked: str, report: str, command: Sequence[str], *, quiet: bool) -> None:
    """Log one report (JSON) as asked; say where it went."""
    name, _, where = asked.partition("=")
    source = files("ouvrage.integrations").joinpath("send.py").read_text("utf-8")
    fault = ""
    for python in dict.fromkeys((python_of(command), sys.executable)):
        done = _send(python, source, name, where, report)
        lines = done.stdout.splitlines()
        told = [line.removeprefix(_ANSWER) for line in lines if line.startswith(_ANSWER)]
        if done.returncode == 0 and told:
            if not quiet:
                voice.say(f"  logged to {name}: {_shown(told[-1])}\n")
            return
        fault = fault or (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        if done.returncode != _NOT_IMPORTABLE:
            break
    voice.warn(f"log/{name}", f"nothing was logged: {_shown(fault)}")


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:500]


def _send(
    python: str, source: str, name: str, where: str, report: str
) -> subprocess.CompletedProcess[str]:
    """What the sender said. Into files, since a library may leave a service behind that would keep
    a pipe open: it is the sender alone that is waited for."""
    environment = {k: v for k, v in os.environ.items() if k != os.fsdecode(SOCKET_VARIABLE)}
    words = [python, "-c", source, name, where]
    with TemporaryFile() as out, TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=out, stderr=err, env=environment
            )
        except OSError as error:
            return subprocess.CompletedProcess(
                words, _NOT_IMPORTABLE, "", f"{python}: {error.strerror}"
            )
        try:
            child.communicate(report.encode(), timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 1, "", f"no answer within {PATIENCE_S} s")
        finally:
            child.kill()
            child.wait()
        return subprocess.CompletedProcess(words, child.returncode, _begin(out), _begin(err))


def _begin(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_SAID).decode("utf-8", "replace")


def python_of(command: Sequence[str]) -> str:
    """The Python that runs a command: itself, the one its first line names, else that on PATH."""
    for word in command[:_MOST_WORDS]:
        base = os.path.basename(word)
        if base in _WRAPPERS or word.startswith("-") or "=" in word:
            continue
        try:
            path = find_command(word)
        except OuvrageError:
            continue
        if _PYTHON.match(base):
            return path
        named = _first_line(path)
        if named:
            return named
        break
    try:
        return find_command("python3")
    except OuvrageError:
        return sys.executable


def _first_line(path: str) -> str | None:
    """The Python in a script's ``#!`` line, as ``torchrun`` and ``accelerate`` have one."""
    try:
        with open(path, "rb") as file:
            line = file.readline(256)
    except OSError:
        return None
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    if not words or not _PYTHON.match(os.path.basename(words[0])):
        return None
    try:
        return find_command(words[0])
    except OuvrageError:
        return None
