"""A place that Slurm gives: what its batch job does there, and the files by which it and the node's runner speak.

Decides that the batch job executes nothing of a tenant's. It keeps the place for the runner beside it: it says that it is there, hands on what
signals Slurm sends it, waits until the runner writes how the attempt ended, and ends with that. While it lives it holds a lock, so that a
runner sees at once that a place was taken back, also where it was killed. It is a few lines of shell, because a job of Slurm's should cost
no more than one.
"""

from __future__ import annotations

PREFIX = "ouvrage:"
"""A batch job is called by this and its attempt: the controller and accounting both tell a job's name."""
BELL = "bell"
HELD, TOLD, END = ".held", ".told", ".end"
"""Beside each attempt's name: the lock, the words that were handed on (a line each), the pipe on which its end is written."""
HERE = "HERE"
"""The word that a place is there; the others are names of signals."""

_SCRIPT = """\
#!/bin/sh
# Holds a place that Slurm gave for attempt {attempt}, which the runner of this node executes.
cd "{places}/$SLURMD_NODENAME" || exit 74
a={attempt}
exec 9>>"$a.held" && flock -n 9 || exit 75
rm -f "$a.end" && mkfifo -m 600 "$a.end" || exit 76
tell() {{ echo "$1" >>"$a.told"; [ ! -p bell ] || echo 1<>bell; }}
trap 'tell TERM' TERM
trap 'tell USR1' USR1
tell HERE
{{ trap '' TERM USR1; read -r code <"$a.end"; exit "${{code:-70}}"; }} 9>&- &
while :; do
  wait "$!"; code=$?
  kill -0 "$!" 2>/dev/null || break
done
rm -f "$a.end" "$a.told" "$a.held"
exit "$code"
"""


def name_of(attempt: str) -> str:
    """What the batch job of an attempt is called."""
    return PREFIX + attempt


def attempt_named(name: str) -> str | None:
    """The attempt of a batch job's name; None for a name that is not one of ours."""
    attempt = name.removeprefix(PREFIX)
    ours = name.startswith(PREFIX) and len(attempt) == 32 and attempt.isalnum()
    return attempt if ours else None


def script_of(attempt: str, places: str) -> str:
    """What the batch job executes. ``places``: the directory on every node in which each node has its own."""
    return _SCRIPT.format(attempt=attempt, places=places)
