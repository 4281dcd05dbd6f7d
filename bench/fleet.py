"""What a platform adds to a Slurm: a thousand tasks and one-by-one submission beside bare Slurm, and a status view of ten thousand jobs.

Slurm is Debian's own, started here with three nodes of made-up size; nothing of it is made up but GPUs. A task does nothing, bare as a batch script
and through the platform as a job; the platform is a server process with its engine on that Slurm. Its runners run nothing (the tests' twins), except
in the part that says so, so that what is measured is what stands between a job and its place. All share this machine, their time is not taken out.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.adapters.slurm_commands import Commands
from ouvrage.adapters.slurm_job import Asked, as_json
from ouvrage.adapters.slurm_rest import Rest
from ouvrage.agent.places import Places
from ouvrage.model.work import UNDER_WAY
from ouvrage.server.slurm.credential import Credential
from tests.faults_platform.processes import Asker, Process, free_port
from tests.support.driven import PLACES_USER, partition_of_ours
from tests.support.runner_twin import Twin, inventory
from tests.support.slurm import Slurm, slurm

TASKS = 1000
SUBMITS = 200
LISTED = 10_000
CLIENTS = 2
NODES = ("n1", "n2", "n3")
PARTITION = "bench"
SCRIPT = "#!/bin/sh\nexit 0\n"
LOST_PERCENT, ADDED_MS, VIEW_S = 5.0, 5.0, 1.0
"""The targets."""


def main() -> int:
    """Measure, print, and fail where a target is missed."""
    with tempfile.TemporaryDirectory(prefix="ouvrage-bench-") as directory, ExitStack() as ends:
        lab = ends.enter_context(slurm(nodes=len(NODES)))
        places = lab.directory / "places"
        address = ends.enter_context(partition_of_ours(lab, NODES, PARTITION, places))
        bare = _Bare(lab, address)
        array = TASKS / bare.array()
        single = TASKS / bare.one_by_one()
        asked_ms = bare.submits()
        with _platform(Path(directory), lab, address, places) as at:
            with _nodes(at, places):
                ours = TASKS / _through(at, lab)
            told_ms, behind_s = _submits(at, lab)
            listed = _views(at)
    lost = 100 * (1 - ours / array)
    added = told_ms - asked_ms
    slowest = max(listed.values())
    print(f"{TASKS} tasks that do nothing, {len(NODES)} nodes of a Slurm on this machine:")
    print(f"  {array:.1f} tasks/s bare, as one array")
    print(f"  {single:.1f} tasks/s bare, each submitted through slurmrestd")
    print(f"  {ours:.1f} jobs/s through the platform, from submission to the recorded end")
    print(
        f"  {lost:.0f} % lost to the array: target {LOST_PERCENT:.0f} %: {_met(lost <= LOST_PERCENT)}"
    )
    print(f"{SUBMITS} submitted one by one, medians:")
    print(
        f"  {asked_ms:.1f} ms bare, through slurmrestd; {told_ms:.1f} ms to the platform, on the disk"
    )
    print(f"  Slurm had the last of them {behind_s:.1f} s after the platform had taken it")
    print(f"  {added:.1f} ms added: target {ADDED_MS:.0f} ms: {_met(added <= ADDED_MS)}")
    print(f"{LISTED} jobs that wait, while the platform hands them to Slurm:")
    for what, seconds in listed.items():
        print(f"  {seconds * 1e3:.0f} ms {what}")
    print(f"  target {VIEW_S:.0f} s: {_met(slowest <= VIEW_S)}")
    return 0 if lost <= LOST_PERCENT and added <= ADDED_MS and slowest <= VIEW_S else 1


def _met(holds: bool) -> str:
    return "met" if holds else "missed"


class _Bare:
    """Slurm alone, asked as the platform's user with what the platform asks."""

    def __init__(self, lab: Slurm, address: str) -> None:
        commands = Commands(PLACES_USER, f"{lab.directory}/etc/slurm.conf")
        if not commands.has_account("bench"):
            commands.make_account("bench", None, 1)
            commands.let_charge("bench", ())
        self._lab = lab
        self._rest = Rest(address, PLACES_USER, Credential(commands, monotonic_us).now)
        self._words = ("--partition", PARTITION, "--account=bench", "--mem=16M")

    def array(self) -> float:
        """Seconds for all tasks as an array, until Slurm has none of them any more."""
        began = time.monotonic()
        self._lab.submit("exit 0", f"--array=1-{TASKS}", *self._words, user=PLACES_USER)
        _gone(self._lab)
        return time.monotonic() - began

    def one_by_one(self) -> float:
        """Seconds for as many jobs, each submitted for itself."""
        began = time.monotonic()
        for number in range(TASKS):
            self._submit(number)
        _gone(self._lab)
        return time.monotonic() - began

    def submits(self) -> float:
        """The median of a submit in ms, while nothing starts."""
        with _closed(self._lab):
            took = [_timed(partial(self._submit, number)) for number in range(SUBMITS)]
            self._lab.run("scancel", f"--user={PLACES_USER}")
            _gone(self._lab)
        return statistics.median(took) * 1e3

    def _submit(self, number: int) -> None:
        asked = Asked(
            name=f"bare-{number}", account="bench", partition=PARTITION, qos=None, gpus=0, cpus=1,
            memory_mib=16, minutes=None, nice=0, not_on=(),
        )  # fmt: skip
        self._rest.submit(SCRIPT, as_json(asked))


def _gone(lab: Slurm) -> None:
    while lab.run("squeue", "-h", "-p", PARTITION, "-o", "%A").strip():
        time.sleep(0.2)


@contextmanager
def _closed(lab: Slurm) -> Iterator[None]:
    lab.run("scontrol", "update", f"PartitionName={PARTITION}", "State=DOWN")
    try:
        yield
    finally:
        lab.run("scontrol", "update", f"PartitionName={PARTITION}", "State=UP")


def _timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


@contextmanager
def _platform(at: Path, lab: Slurm, address: str, places: Path) -> Iterator[Asker]:
    """A server on that Slurm, with its engine; asked as its owner."""
    state = at / "state"
    state.mkdir(mode=0o700)
    (state / "server.toml").write_text(
        "\n".join([
            "[limits]", "requests_a_second = 10000",
            "[slurm]", f'rest = "{address}"', f'user = "{PLACES_USER}"', f'places = "{places}"',
            f'partition = "{PARTITION}"', f'conf = "{lab.directory}/etc/slurm.conf"', "",
        ])
    )  # fmt: skip
    url = f"http://127.0.0.1:{free_port()}"
    up = (
        "up",
        "--state",
        str(state),
        "--no-runner",
        "--json",
        "--listen",
        url.removeprefix("http://"),
    )
    server = Process(at / "server.txt", *up)
    server.start()
    try:
        server.said()
        owner = Asker(url, (state / "owner.token").read_text("ascii").strip())
        terms = {"name": "small", "cpus": 1, "memory_mib": 16, "disk_mib": 1, "rate": "0.10"}
        owner.post("/v1/offers", terms)
        yield owner
    finally:
        server.stop()


@contextmanager
def _nodes(owner: Asker, places: Path) -> Iterator[None]:
    """A runner on each node that executes nothing: a place that is there is given back with its attempt's order."""
    over = threading.Event()
    threads: list[threading.Thread] = []
    for name in NODES:
        token = owner.post("/v1/nodes/enrolments", {})["secret"]
        twin = Twin.enrolled(owner.url, token, now_us, inventory(name, cpus=16))
        threads.append(threading.Thread(target=_execute, args=(twin, Places(places, name), over)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _execute(twin: Twin, places: Places, over: threading.Event) -> None:
    ended: set[str] = set()
    while not over.is_set():
        words = places.news()
        twin.report([twin.held(attempt, word) for attempt, word in words])
        twin.ask(wait_s=0.2)
        new = [start.attempt for start in twin.starts]
        twin.starts.clear()
        twin.report([event for each in new for event in (twin.began(each), twin.ended(each))])
        ended.update(new)
        for attempt in list(ended):
            places.release(attempt, 0)
            if not places.is_held(attempt):
                places.forget(attempt)
                ended.discard(attempt)
    twin.close()


def _through(owner: Asker, lab: Slurm) -> float:
    """Seconds from the first submission until every job has its recorded end and Slurm has none of them."""
    began = time.monotonic()
    _submit_all(owner)
    while _going(owner):
        time.sleep(0.2)
    _gone(lab)
    return time.monotonic() - began


def _submit_all(owner: Asker) -> None:
    """All tasks, by clients at once."""
    clients = [
        threading.Thread(target=_submit, args=(owner, TASKS // CLIENTS)) for _ in range(CLIENTS)
    ]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


def _submit(owner: Asker, count: int) -> list[float]:
    own = Asker(owner.url, owner.token)
    body = {"project": "main", "offer": "small", "spec": {"command": ["/bin/true"]}}
    took = [_timed(lambda: own.post("/v1/jobs", body)) for _ in range(count)]
    own.close()
    return took


def _going(owner: Asker) -> bool:
    return any(owner.get(f"/v1/jobs?limit=1&state={state}")["items"] for state in UNDER_WAY)


def _submits(owner: Asker, lab: Slurm) -> tuple[float, float]:
    """The median in ms until the platform has taken a job, and how long after the last of them Slurm had all, in s."""
    with _closed(lab):
        took = _submit(owner, SUBMITS)
        seconds = _timed(lambda: _handed(lab, SUBMITS))
    return statistics.median(took) * 1e3, seconds


def _handed(lab: Slurm, count: int) -> None:
    while len(lab.run("squeue", "-h", "-p", PARTITION, "-o", "%A").split()) < count:
        time.sleep(0.05)


def _views(owner: Asker) -> dict[str, float]:
    """How long each view takes with all those jobs, in s: the median of five."""
    for _ in range((LISTED - SUBMITS) // TASKS + 1):
        _submit_all(owner)
    views = {
        "the newest 200 jobs": "/v1/jobs?limit=200",
        "200 jobs that wait": "/v1/jobs?limit=200&state=waiting",
        "how the site stands today": "/v1/today",
    }
    return {
        what: statistics.median(_timed(partial(owner.get, path)) for _ in range(5))
        for what, path in views.items()
    }


if __name__ == "__main__":
    sys.exit(main())
