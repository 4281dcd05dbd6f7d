"""The first process of a Slurm of the tests' own: starts its daemons, and ends with whoever asked for them.

It runs as process 1 of a namespace (``unshare --pid``), so that the kernel ends all daemons and all jobs, also those that
left their session, when it ends; and it ends when its standard input is closed, by whatever became of the tests.
Lines on standard input: ``start NAME``, ``kill NAME SIGNAL``; each is answered by one line.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
from pathlib import Path


def main(directory: Path) -> None:
    daemons = json.loads((directory / "daemons.json").read_text())
    running: dict[str, int] = {}
    line = b""
    while True:
        _reap()
        ready, _, _ = select.select(
            [0], [], [], 0.5
        )  # the time-out only bounds how long a zombie stays
        if not ready:
            continue
        read = os.read(0, 4096)
        if not read:
            break
        line += read
        while b"\n" in line:
            command, _, line = line.partition(b"\n")
            os.write(1, f"{_do(command.decode().split(), daemons, running, directory)}\n".encode())
    shutil.rmtree(directory, ignore_errors=True)


def _do(
    words: list[str], daemons: dict[str, list[str]], running: dict[str, int], directory: Path
) -> str:
    verb, name = words[:2]
    try:
        if verb == "start":
            running[name] = _start(name, daemons[name], directory)
        else:
            os.kill(running[name], signal.Signals[words[2]])
    except OSError as error:
        return f"failed {error}"
    return f"ok {running[name]}"


def _start(name: str, argv: list[str], directory: Path) -> int:
    child = os.fork()
    if child:
        return child
    os.setsid()
    log = os.open(directory / "log" / f"{name}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for to, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, to)
    os.environ["SLURM_CONF"] = str(directory / "etc" / "slurm.conf")
    try:
        os.execvp(argv[0], argv)
    finally:
        os._exit(127)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main(Path(sys.argv[1]))
