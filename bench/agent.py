"""What watching a machine costs: the agent with every probe and child on eight GPUs of the stand-in, beside nvitop.

The supervisor and all its children are counted, those that come and go included: processor time over a stretch in which
every probe but the drives' (each ten minutes) has looked, and what is resident of all of them at once, at its peak. A
plug at the wall and two peers answer on this machine, and a receiver of alerts is told what is not well here. nvitop takes a snapshot of the same GPUs as often as the agent looks
at them, and nothing else. The stand-in answers from memory: a driver's own cost is not in it. Exit code 1 where a bar is
missed.

    python -m bench.agent [--seconds 120]
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench._peers import peer
from bench.gpus import GPUS, NVITOP_PACKAGE, build
from bench.overhead import Bench

SHARE, MEMORY_MB = 0.01, 128 * 1.048576
EVERY_S = 10
SETTLED_S = 110
"""Until then verdicts are made for the first time, stated and delivered; afterwards only what changes is."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
NVITOP = f"""
import time, nvitop
devices = [nvitop.Device(index) for index in range({GPUS})]
while True:
    [device.as_snapshot() for device in devices]
    time.sleep({EVERY_S})
"""


def tree(pid: int) -> list[int]:
    """A process and all that it started which live now."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += tree(int(child))
    return found


def used_s(pid: int) -> float:
    """Processor time of a process, its living descendants, and those of its children that ended."""
    total = 0.0
    for each in tree(pid):
        with contextlib.suppress(OSError, IndexError):
            words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, words[11:15])) * _TICK_S
    return total


def resident_mb(pid: int) -> tuple[float, float]:
    """What is resident of a process and its descendants: pages that they share counted for each of them, and once."""
    every = once = 0.0
    for each in tree(pid):
        with contextlib.suppress(OSError):
            told = dict(
                line.split(":", 1)
                for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()[1:]
            )
            every += int(told["Rss"].split()[0]) * 1024 / 1e6
            once += int(told["Pss"].split()[0]) * 1024 / 1e6
    return every, once


class Plug(http.server.BaseHTTPRequestHandler):
    """A plug at the wall, and who is told of what is not well."""

    told = 0

    def do_GET(self) -> None:
        """Say what is drawn."""
        body = b'{"apower": 3210.5, "aenergy": {"total": 12345.6}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Take an alert."""
        self.rfile.read(int(self.headers["Content-Length"]))
        Plug.told += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *_: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def agent(bench: Bench, state: Path) -> Iterator[int]:
    """The agent at work, every probe turned on."""
    plug = http.server.HTTPServer(("127.0.0.1", 0), Plug)
    threading.Thread(target=plug.serve_forever, daemon=True).start()
    state.mkdir()
    address = f"127.0.0.1:{plug.server_port}"
    (state / "agent.toml").write_text(
        f'[watch]\nwall = "http://{address}/rpc/Switch.GetStatus?id=0"\npeers = ["127.0.0.1", "{address}"]\n'
        f'[alerts]\nwebhook = "http://{address}/"\nsecret = "command:echo of-no-worth"\n'
    )
    words = [sys.executable, "-m", "ouvrage", "agent", "run", "--state", str(state), "--node", "n1"]
    with subprocess.Popen(words, env=bench.environment, stdout=subprocess.DEVNULL) as process:
        yield process.pid
        process.terminate()
    plug.shutdown()


def watched(pid: int, seconds: float) -> tuple[float, float, float, float]:
    """Share of a core, resident at most and as a rule, and at most with shared pages counted once, over so many seconds."""
    before, began = used_s(pid), time.monotonic()
    sizes: list[tuple[float, float]] = []
    while time.monotonic() - began < seconds:
        sizes.append(resident_mb(pid))
        time.sleep(0.05)
    took = time.monotonic() - began
    usual = sorted(each for each, _ in sizes)[len(sizes) // 2]
    return (
        (used_s(pid) - before) / took, max(each for each, _ in sizes), usual, max(once for _, once in sizes),
    )  # fmt: skip


def facts_in(state: Path) -> int:
    """How many facts the spool has taken."""
    lines = (state / "spool.ndjson").read_text().splitlines()
    return sum(len(json.loads(line).get("facts", ())) for line in lines)


def main() -> int:
    """Both, one after the other, so that neither reads the other's processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    if not (shutil.which("cc") or shutil.which("gcc")):
        sys.stdout.write("no C compiler to build the stand-in library with: not measured\n")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(os.path.join(directory, "home"))
        bench.environment |= build(Path(directory))
        with agent(bench, Path(directory) / "watch") as pid:
            first = watched(pid, SETTLED_S)
            stated = facts_in(Path(directory) / "watch")
            share, most, usual, once = watched(pid, given.seconds)
            stated = facts_in(Path(directory) / "watch") - stated
        sys.stdout.write(
            f"  its first {SETTLED_S} s, until verdicts stand: {first[0]:.2%} of a core\n"
        )
        sys.stdout.write(f"  as a rule {usual:.0f} MB are resident\n")
        sys.stdout.write(
            f"  {stated} facts stated and delivered in the {given.seconds:.0f} s measured, {Plug.told} alerts in all\n"
        )
        bench.tell("agent, all probes and children", share, SHARE, "of a core")
        bench.tell("resident, all children included, at most", max(first[1], most), MEMORY_MB, "MB")
        sys.stdout.write(
            f"  the same with shared pages counted once: {max(first[3], once):.0f} MB\n"
        )
        place = peer(NVITOP_PACKAGE)
        if place is None:
            sys.stdout.write("  nvitop could not be installed here: left out\n")
            return 1 if bench.missed else 0
        words = [str(place / "python"), "-c", NVITOP]
        with subprocess.Popen(words, env=bench.environment) as process:
            watched(process.pid, 5)
            theirs = watched(process.pid, min(60.0, given.seconds))
            process.kill()
        sys.stdout.write(
            f"  nvitop, a snapshot of {GPUS} GPUs each {EVERY_S} s: {theirs[0]:.2%} of a core,"
            f" {theirs[1]:.0f} MB\n"
        )
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
