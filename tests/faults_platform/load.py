"""A mixed load of several tenants, and what must have come of it whatever was killed meanwhile.

Every command notes in a file of its job's own, kept from attempt to attempt, that it ran, and prints how often that was by then:
an attempt executed twice says so in its log, and prints its lines twice.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.model.dues import LeaseCharge
from ouvrage.model.selling import LeaseEnded, LeaseGranted
from ouvrage.model.work import AttemptEnded, AttemptOrdered, JobEnded, JobSubmitted
from ouvrage.store.audit import audit
from ouvrage.store.store import open_store
from tests.faults_platform.processes import Asker

LINES = 40
_SAYS = (
    "echo run >> kept/runs; n=$(wc -l < kept/runs); i=0; "
    f"while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; done; echo runs $n"
)
KINDS: dict[str, tuple[str, dict[str, object], str]] = {
    "ok": (_SAYS, {}, "done"),
    "fails": (f"{_SAYS}; exit 3", {}, "failed"),
    "again": (f"{_SAYS}; [ $n -ge 2 ]", {"retries": 1}, "done"),
    "bomb": (f"{_SAYS}; exec tail /dev/zero", {}, "failed"),
    "long": (f"{_SAYS}; exec sleep 600", {"grace": "1s"}, "cancelled"),
}
"""What each kind of job runs, what else it asks for, and how it must end."""
_OFTEN = ("ok",) * 6 + ("fails", "long", "lease", "again", "bomb", "impossible")
_AT_ONCE = 5


class Load:
    """Work for a platform, submitted by a thread of its own until told to stop."""

    def __init__(self, owner: Asker, seed: int) -> None:
        self._chance = random.Random(seed)
        terms = {"name": "small", "cpus": 1, "memory_mib": 48, "disk_mib": 8, "rate": "0.36"}
        owner.post("/v1/offers", terms)
        self._tenants = [owner.tenant("acme"), owner.tenant("rival")]
        self.owner = owner
        self.jobs: dict[str, str] = {}
        """By id, of which kind each is."""
        self._leases: dict[str, Asker] = {}
        self._cancelled: set[str] = set()
        self._ending = threading.Event()
        self.thread = threading.Thread(target=self._run, name="load")
        self.failed: BaseException | None = None

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._once()
        except BaseException as error:
            self.failed = error
            raise

    def _once(self) -> None:
        who = self._chance.choice(self._tenants)
        kind = self._chance.choice(_OFTEN)
        if kind == "impossible":
            spec = {"command": ["true"], "memory": "900GiB"}
            asked = {"project": "main", "offer": "small", "spec": spec}
            assert who("POST", "/v1/jobs", asked).status_code == 422
        elif kind == "lease" and not self._leases:
            self._lease(who)
        else:
            self._submit(who, "ok" if kind == "lease" else kind, {"offer": "small"})
        self._tidy()

    def _lease(self, who: Asker) -> None:
        asked = {"project": "main", "offer": "small", "for_us": 3_600_000_000}
        answer = who("POST", "/v1/leases", asked)
        if answer.status_code == 409:
            return  # every core is taken
        assert answer.status_code == 201, answer.text
        lease = answer.json()["lease"]
        self._leases[lease] = who
        for _ in range(2):
            self._submit(who, "ok", {"lease": lease})

    def _submit(self, who: Asker, kind: str, where: dict[str, str]) -> None:
        script, more, _ = KINDS[kind]
        spec = {"name": kind, "command": ["sh", "-c", script], "checkpoint": "kept", **more}
        told = who.post("/v1/jobs", {"project": "main", **where, "spec": spec})
        self.jobs[told["job"]] = kind

    def _tidy(self) -> None:
        """Cancel what would run for ever, give back leases whose work is done, and wait while much is under way."""
        while True:
            states = {job["job"]: job for job in self.owner.all("/v1/jobs")}
            open_ = [
                j for j in states.values() if j["state"] not in ("done", "failed", "cancelled")
            ]
            for job in open_:
                endless = self.jobs.get(job["job"]) == "long" and job["job"] not in self._cancelled
                if endless and (job["state"] == "running" or self._chance.random() < 0.2):
                    self._cancelled.add(job["job"])
                    self.owner.post(f"/v1/jobs/{job['job']}/cancel", {})
            for lease, who in list(self._leases.items()):
                if not any(job["lease"] == lease for job in open_):
                    who.post(f"/v1/leases/{lease}/release", {})
                    del self._leases[lease]
            ending = self._ending.is_set()
            if (not open_ and not self._leases) if ending else len(open_) < _AT_ONCE:
                return
            self._ending.wait(0.1) if not ending else threading.Event().wait(0.1)

    def finish(self, patience_s: float) -> None:
        """Submit no more, and wait until everything has come to its end."""
        self._ending.set()
        self.thread.join(patience_s)
        assert not self.thread.is_alive(), "work is still under way"
        assert self.failed is None
        self._tidy()

    def logs_are_whole(self) -> None:
        """Each attempt's log has every line once, and says how many attempts there had been."""
        for job, kind in self.jobs.items():
            for attempt in self.owner.get(f"/v1/jobs/{job}")["all_attempts"]:
                number = attempt["number"]
                text = self.owner("GET", f"/v1/jobs/{job}/log?attempt={number}").text
                lines = [line for line in text.splitlines() if not line.startswith("[ouvrage: ")]
                whole = [f"line {n}" for n in range(1, LINES + 1)] + [f"runs {number}"]
                if kind in ("ok", "fails", "again"):
                    assert lines == whole, (job, kind, number, text)
                else:  # it may have been ended on its way
                    assert lines == whole[: len(lines)], (job, kind, number, text)

    def close(self) -> None:
        for each in (self.owner, *self._tenants):
            each.close()


def holds(state: Path, store: str | None = None) -> list[Recorded]:
    """``ouvrage verify`` finds nothing; all that is recorded."""
    with open_store(store or state / "ouvrage.db") as opened:
        found = audit(opened, state)
        assert found.first is None, found.first
        return opened.records()


def counted_once(records: list[Recorded], jobs: dict[str, str]) -> None:
    """Every job that was answered is there and over, each attempt is one, and each lease is charged once."""
    values = [read(entry.fact) for entry in records]
    of = {kind: [v for v in values if isinstance(v, kind)] for kind in (
        JobSubmitted, JobEnded, AttemptOrdered, AttemptEnded, LeaseGranted, LeaseEnded, LeaseCharge,
    )}  # fmt: skip
    assert {job.job for job in of[JobSubmitted]} == set(jobs)
    ends = {end.job: end.state for end in of[JobEnded]}
    assert ends == {job: KINDS[kind][2] for job, kind in jobs.items()}
    assert len(of[JobEnded]) == len(jobs)
    for made, ended, name in (
        (AttemptOrdered, AttemptEnded, "attempt"),
        (LeaseGranted, LeaseEnded, "lease"),
    ):
        assert Counter(getattr(v, name) for v in of[made]) == Counter(
            getattr(v, name) for v in of[ended]
        )
        assert len({getattr(v, name) for v in of[made]}) == len(of[made])
    assert not [end for end in of[AttemptEnded] if end.outcome == "lost"]
    tries = Counter(attempt.job for attempt in of[AttemptOrdered])
    for job, kind in jobs.items():
        assert tries[job] <= (2 if kind == "again" else 1), (job, kind, tries[job])
    walls = {end.attempt: end.wall_us for end in of[AttemptEnded]}
    billable = {end.lease: end.billable_us for end in of[LeaseEnded]}
    for lease in of[LeaseGranted]:
        if lease.attempt is not None:
            assert billable[lease.lease] <= walls[lease.attempt]
    charged = Counter(charge.lease for charge in of[LeaseCharge])
    assert charged, "nothing was charged"
    assert set(charged.values()) == {1}, charged
    assert set(charged) <= set(billable)
