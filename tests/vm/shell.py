"""Inside the virtual machine: carries out what the test outside asks for, one command after the other.

A line of JSON comes by the virtual serial port: a script for bash, its standard input, how many seconds it may take. A line goes
back: its exit code (null where it was over its time) and what it said. It stands on the standard library alone, and runs as a
service of root's, so that what it starts is what an owner's own shell would start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def carried_out(order: dict[str, object]) -> dict[str, object]:
    """Run one order to its end, or to the end of its time."""
    try:
        done = subprocess.run(
            ["/bin/bash", "-c", str(order["script"])], input=str(order["stdin"]), text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=float(str(order["seconds"])), check=False,
            start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return {"code": None, "said": (late.stdout or b"").decode("utf-8", "replace")}
    return {"id": order.get("id"), "code": done.returncode, "said": done.stdout}


def main(port: str) -> None:
    """Say that the machine stands, then serve until it ends."""
    while not os.path.exists(port):  # udev makes the name, some time after the start
        time.sleep(0.2)
    fd = os.open(port, os.O_RDWR | os.O_CLOEXEC)
    with open(fd, "rb", closefd=False) as asked, open(fd, "wb", buffering=0, closefd=False) as told:
        told.write(b'{"ready": true}\n')
        for line in asked:
            told.write(json.dumps(carried_out(json.loads(line))).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
