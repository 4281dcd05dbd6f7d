"""The same training as a tenant's jobs on a fleet of two nodes, scheduled by a real Slurm that is brought up here and ended again.

The machine proves itself twice, once as each node; ``ouvrage fleet`` writes the files of a Slurm, which is started from them; a platform
drives it; a tenant submits four trainings, which Slurm spreads over both nodes. Then: what a finished epoch cost on each, what
the tenant owes, how long people waited. Both nodes share this machine, a core each, so the figures are this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import platform_of_ours as ours
import slurm_of_ours as slurm
from platform_of_ours import OUVRAGE, TENANT, Platform, visible
from slurm_of_ours import NODES, Fleet

JOBS = 4
OFFER, PRICE = "one-core", "0.30/h"
ENDS_WITHIN_S = 900


class FleetPlatform(Platform):
    """The platform of that fleet: Slurm gives out its places, a runner stands on each node."""

    def __init__(self, out: Path, fleet: Fleet) -> None:
        super().__init__(out)
        self.fleet = fleet
        self.runners: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start it with a ``[slurm]`` of its own, and a runner under each node's name."""
        self.stop(quiet=True)
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.state / "server.toml").write_text(self.fleet.server_toml())
        up = ("up", "--state", str(self.state), "--listen", "127.0.0.1:0", "--no-runner", "--detach", "--json")  # fmt: skip
        started = self.ask(*up)
        self.url, self.password = started["url"], started["password"]
        for core, node in zip(ours_cores(), NODES, strict=False):
            self.runners.append(self._runner(node, core))

    def _runner(self, node: str, core: int) -> subprocess.Popen[bytes]:
        enrol = self.out / f"enrol-{node}"
        enrol.write_text(self.ask("node", "enrol", "--json")["secret"])
        seen = [word for path in visible() for word in ("--see", str(path))]
        words = ["agent", "run", "--state", str(self.out / f"agent-{node}"), "--server", self.url, "--name", node,
                 "--enrol-file", str(enrol), "--places", str(self.fleet.places), "--no-watch", *seen]  # fmt: skip
        with (self.out / f"agent-{node}.log").open("wb") as log:
            return subprocess.Popen(
                ["taskset", "--cpu-list", str(core), *OUVRAGE, *words], stdout=log, stderr=log
            )

    def wait_for_node(self) -> None:
        """Until both have joined: the sandbox of each is tried in every way first."""
        until = time.monotonic() + ours.JOINS_WITHIN_S * 2
        while sum(node["state"] == "here" for node in self.ask("node", "list", "--json")) < len(
            NODES
        ):
            if time.monotonic() > until:
                raise SystemExit(f"The nodes did not join: see {self.out}/agent-{NODES[0]}.log")
            time.sleep(0.5)

    def end(self) -> None:
        """Stop the runners and the server."""
        for runner in self.runners:
            runner.terminate()
        for runner in self.runners:
            runner.wait(30)
        self.stop(quiet=True)


def ours_cores() -> list[int]:
    """The first CPUs that we may use, one for each node."""
    return sorted(os.sched_getaffinity(0))[: len(NODES)]


def submit(platform: FleetPlatform, epochs: int) -> list[str]:
    """The trainings, each with a seed of its own; the names of the jobs."""
    names = [f"digits-{number}" for number in range(1, JOBS + 1)]
    for number, name in enumerate(names, 1):
        train = [sys.executable, str(ours.HERE / "train.py"), "--epochs", str(epochs), "--seed", str(number)]  # fmt: skip
        platform.ask("job", "submit", "--offer", OFFER, "--name", name, "--unit", "epoch", "--json", "--", *train, as_tenant=True)  # fmt: skip
    return names


def ended(platform: FleetPlatform, names: list[str]) -> list[dict[str, Any]]:
    """The jobs once all have ended; a line for each that starts or ends."""
    seen: dict[str, str] = {}
    until = time.monotonic() + ENDS_WITHIN_S
    while True:
        jobs = [platform.ask("job", "show", name, "--json", as_tenant=True) for name in names]
        for job in jobs:
            if seen.get(job["name"]) != job["state"]:
                seen[job["name"]] = job["state"]
                print(f"  {job['name']}: {job['state']}", flush=True)
        if all(job["state"] in ("done", "failed", "cancelled") for job in jobs):
            return jobs
        if time.monotonic() > until:
            raise SystemExit(f"The jobs did not end within {ENDS_WITHIN_S} s: {seen}")
        time.sleep(1)


def told(platform: FleetPlatform, fleet: Fleet, jobs: list[dict[str, Any]]) -> int:
    """What came out: the cost of an epoch, the bill, the waits, and the record held to its laws."""
    books = {**os.environ, "OUVRAGE_HOME": str(platform.state), "SLURM_CONF": fleet.conf}
    runs = list({job["last"]["node"]: job["last"]["attempt"] for job in jobs}.values())
    commands = [
        ([*OUVRAGE, "compare", *runs], books),
        ([*OUVRAGE, "invoice", "draft"], platform.environment(as_tenant=True)),
        ([*OUVRAGE, "fleet", "adopt", "--since", "1h"], books),
        ([*OUVRAGE, "fleet", "report"], books),
        ([*OUVRAGE, "verify"], books),
    ]
    for command, environment in commands:
        print(f"\n$ ouvrage {' '.join(command[len(OUVRAGE) :])}", flush=True)
        code = subprocess.run(command, check=False, env=environment).returncode
        if code:
            return code
    return 0


def main() -> int:
    """Bring the fleet up, let a tenant work on it, say what came out, and end everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args()
    missing = ours.lacking() or slurm.lacking()
    missing = missing or (None if len(ours_cores()) == len(NODES) else "two nodes need two CPUs")
    if missing:
        print(f"No fleet here: {missing}.\nOne machine's platform: make run")
        return 1
    out = options.out.absolute() / "fleet"
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ends:
        fleet = Fleet(out)
        ends.callback(fleet.stop)
        return worked(fleet, out, options.epochs, ends)


def worked(fleet: Fleet, out: Path, epochs: int, ends: ExitStack) -> int:
    """From a machine to a bill."""
    print("This machine proves itself, once as each of two nodes, and a Slurm is written and started: about a minute ...", flush=True)  # fmt: skip
    fleet.prove()
    print(f"\n$ ouvrage fleet add {NODES[-1]}\n{fleet.write().splitlines()[0]}", flush=True)
    fleet.start()
    print(f"\n$ ouvrage fleet status\n{fleet.ask('fleet', 'status')}", flush=True)
    platform = FleetPlatform(out, fleet)
    ends.callback(platform.end)
    platform.start()
    print(f"{platform.words()}\n\nBoth nodes join: the sandbox of each is tried in every way first ...", flush=True)  # fmt: skip
    platform.wait_for_node()
    platform.set_up()
    print(f"\n{TENANT}'s {JOBS} trainings under the offer {OFFER} at {PRICE}; Slurm places them:", flush=True)  # fmt: skip
    jobs = ended(platform, submit(platform, epochs))
    failed = [job["name"] for job in jobs if job["state"] != "done"]
    if failed:
        raise SystemExit(f"not done: {', '.join(failed)}: {json.dumps(jobs)[:2000]}")
    code = told(platform, fleet, jobs)
    print("\nThe fleet is stopped, its daemons and its files are gone; what was recorded stays in", out)  # fmt: skip
    return code


if __name__ == "__main__":
    ours.OFFERS = ((OFFER, PRICE, 1),)
    sys.exit(main())
