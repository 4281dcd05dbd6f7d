"""The same training on two hosts, and which of them finishes an epoch for less money.

The *standard* host has one core for everything and costs 0.30 an hour. The *optimised* host gives
the loader a core of its own and costs 0.36, the two prices of a trial published on 29 March 2023.
This script only places the work on cores and calls the ``ouvrage`` command, as anyone would. The
verdict is computed from what was measured: where the dearer host loses, it says so.

Then it shows the owner's half, a year of a made-up machine: every figure of it is marked as simulated.

It ends when the report is written, with ``ONCE=1`` in the environment or without.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from platform_of_ours import OFFERS, TENANT, Platform, lacking, train

TRAIN = Path(__file__).with_name("train.py")
OUVRAGE = [sys.executable, "-m", "ouvrage"]
CLAIM = "clearml-2023"


@dataclass(frozen=True)
class Host:
    """One configuration: its name, its price, and the CPUs of its two processes."""

    label: str
    price: str
    compute: int
    loader: int

    def words(self) -> str:
        """What a person needs to know about it, in one line."""
        if self.compute == self.loader:
            return f"the {self.label} host, {self.price}: CPU {self.compute} for everything"
        return (
            f"the {self.label} host, {self.price}: CPU {self.compute} trains, "
            f"CPU {self.loader} prepares the data"
        )


def two_cores() -> tuple[int, int]:
    """Two CPUs that we may use, on different physical cores where there are any."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise SystemExit(
            "This comparison needs two CPUs: on one, both hosts would be the same machine.\n"
            f"  this process may use: CPU {allowed[0]}\n"
            "  hint: run it where `nproc` says 2 or more, or meter a job of your own:\n"
            "        ouvrage run --price 0.30/h -- python train.py"
        )
    apart = [cpu for cpu in allowed[1:] if cpu not in _siblings(allowed[0])]
    return allowed[0], (apart or allowed[1:])[0]


def _siblings(cpu: int) -> set[int]:
    """The CPUs that share a physical core with this one, as far as the kernel tells."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    if not path.is_file():
        return {cpu}
    found: set[int] = set()
    for part in path.read_text().strip().split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def meter(host: Host, epochs: int, out: Path) -> str:
    """Train on one host under the meter and return the run's id."""
    report = out / f"{host.label}.json"
    command = [*OUVRAGE, "run", "--quiet", "--price", host.price, "--label", host.label]
    command += ["--report", str(report), "--", sys.executable, str(TRAIN)]
    command += ["--epochs", str(epochs), "--compute-core", str(host.compute)]
    command += ["--loader-core", str(host.loader)]
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {host.compute, host.loader})
    try:
        code = subprocess.run(command, check=False).returncode
    finally:
        os.sched_setaffinity(0, everywhere)
    if code:
        raise SystemExit(code)
    return json.loads(report.read_text())["run"]


def owner(out: Path) -> int:
    """The other half of the question, for whoever owns such a machine, on a simulated year."""
    show = [*OUVRAGE, "demo", "--state", str(out / "demo"), "--show"]
    code = subprocess.run([*show, "--into", str(out / "report.html")], check=False).returncode
    if not code:
        print(f"Look around in it: OUVRAGE_HOME={out / 'demo'} ouvrage books pnl --by gpu")
    return code


def main() -> int:
    """The same work on two hosts, let ``ouvrage compare`` say what came out, then show the owner's half."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    cores = two_cores()
    options.out.mkdir(parents=True, exist_ok=True)
    missing = lacking()
    if missing is None:
        return on_a_platform(options.out, options.epochs)
    print(f"No sandbox here, so the work runs as it is, without a platform: {missing}.\n")
    return without_one(options.out, options.epochs, *cores)


def on_a_platform(out: Path, epochs: int) -> int:
    """As a tenant's two jobs on a platform of this machine's own, with what the tenant owes for them."""
    platform = Platform(out)
    print(
        "A small GPU cloud on this machine, and a tenant's real training on both of its offers: about two minutes.",
        flush=True,
    )
    platform.start()
    print(
        f"\n{platform.words()}\n\nThis machine joins: its sandbox is tried in every way first ...",
        flush=True,
    )
    platform.wait_for_node()
    platform.set_up()
    runs = []
    for number, (name, price, cores) in enumerate(OFFERS, 1):
        many = "one core" if cores == 1 else f"{cores} cores"
        print(
            f"\n{number} of {len(OFFERS)}  {TENANT}'s training under the offer {name}: {many} at {price}",
            flush=True,
        )
        runs.append(train(platform, name, epochs))
    print(flush=True)
    code = compared(out, runs, os.environ | {"OUVRAGE_HOME": str(platform.state)})
    if not code:
        print(flush=True)
        bill = [*OUVRAGE, "invoice", "draft"]
        code = subprocess.run(
            bill, env=platform.environment(as_tenant=True), check=False
        ).returncode
    print(flush=True)
    code = code or owner(out)
    called()
    if os.environ.get("ONCE"):
        platform.stop(quiet=True)
        print(f"The platform is stopped; its state stays: ouvrage up --state {platform.state}")
    else:
        print(
            f"The console runs on: {platform.url}      End it: ouvrage down --state {platform.state}"
        )
    return code


def without_one(out: Path, epochs: int, first: int, second: int) -> int:
    """On the machine as it is: the two hosts are two sets of its cores."""
    hosts = [Host("standard", "0.30/h", first, first), Host("optimised", "0.36/h", first, second)]
    print("Real training on real digits, the same work on two hosts: about a minute and a half.")
    runs = []
    for number, host in enumerate(hosts, 1):
        print(f"\n{number} of {len(hosts)}  {host.words()}", flush=True)
        runs.append(meter(host, epochs, out))
    print(flush=True)
    code = compared(out, runs, dict(os.environ))
    if not code:
        print(flush=True)
        code = owner(out)
    called()
    return code


def called() -> None:
    """How to call the command that the lines above name, where it is not on the path."""
    installed = Path(sys.executable).with_name("ouvrage")
    if installed.exists() and shutil.which("ouvrage") is None:
        print(f"Here `ouvrage` is {os.path.relpath(installed)}.")


def compared(out: Path, runs: list[str], environment: dict[str, str]) -> int:
    """Let ``ouvrage compare`` say what came out."""
    compare = [*OUVRAGE, "compare", *runs, "--claim", CLAIM]
    compare += ["--report", str(out / "report.json"), "--html", str(out / "report.html")]
    return subprocess.run(compare, check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
