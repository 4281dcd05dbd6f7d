"""A platform made up for tests: an owner, tenants, offers, leases, and the facts about what they owe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ouvrage.adapters.rate_files import frozen_plan
from ouvrage.adapters.toml_text import load_toml
from ouvrage.base.canonical import sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.time import utc_us
from ouvrage.books.dues.charging import Charged, charges_due
from ouvrage.books.dues.invoice import Counted, Invoice, draft, to_issue
from ouvrage.books.dues.lease import Ended, Lease
from ouvrage.books.dues.record import DuesRecord, dues_record
from ouvrage.books.period import Period, period_named
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.dues import Budget, LeaseCharge, Payment, TenantInvoice
from ouvrage.model.machines import DeviceSeen, NodeEnrolled
from ouvrage.model.selling import LeaseEnded, LeaseGranted, OwnOffer, Placed
from ouvrage.model.sites import DevicePlaced, Node, Site, Term
from ouvrage.model.tenancy import Organisation, Project
from ouvrage.model.work import AttemptEnded, AttemptOrdered, JobSpec, JobSubmitted, Peaks
from ouvrage.pricing.rates.frozen import frozen

NOV = utc_us("2026-11-01T00:00:00Z")
H = 3_600_000_000
S = 1_000_000
UNITS: dict[str, Counted] = {}


def plan_text(rules: str, version: str = "") -> str:
    """A frozen plan from the TOML of its rules."""
    head = 'format = "ouvrage-rate-plan/1"\nname = "made"\ntitle = "made"\n[[version]]\n'
    return frozen(load_toml("made.toml", head + version + "\n" + rules, "rate-plan/toml"))


def offer(plan: str = "per-second", rate: str | None = "0.30", **other: Any) -> OwnOffer:
    name, text = frozen_plan(plan) if "{" not in plan else ("made", plan)
    given: dict[str, Any] = {
        "offer": "of1", "name": "standard", "gpu": None, "gpus": 0, "cpus": 1, "memory_mib": 2048,
        "disk_mib": 1024, "plan_name": name, "plan": text, "rate": rate, "currency": "EUR",
        "interruptible": False, "least_us": None, "most_us": None, "notice_us": 0, "sla": None,
        "audience": "public", "channel": "own", "nodes": (), "isolation": "sandbox", "document": None,
        **other,
    }  # fmt: skip
    return OwnOffer(**given)


def lease(of: OwnOffer | None = None, from_us: int = NOV, **other: Any) -> Lease:
    given: dict[str, Any] = {
        "lease": "l1", "org": "acme-id", "project": "p1", "kind": "job", "attempt": "a1", "job": "j1",
        "node": "node-id", "devices": (), "offer": of or offer(), "from_us": from_us, "until_us": None, **other,
    }  # fmt: skip
    return Lease(**given)


def ended(us: int, billable: int | None = None, outcome: str = "done", from_us: int = NOV) -> Ended:
    return Ended(
        at_us=from_us + us, billable_us=us if billable is None else billable, outcome=outcome
    )


def spec(name: str = "train", **other: Any) -> JobSpec:
    given: dict[str, Any] = {
        "name": name, "command": ("true",), "image": None, "isolation": "sandbox", "gpus": 0, "gpu": None,
        "cpus": 1, "memory_mib": 256, "disk_mib": 256, "environment": (), "secrets": (), "inputs": (),
        "outputs": (), "volumes": (), "workdir": "/work", "checkpoint": None, "unit": "epoch",
        "unit_regex": None, "network": "none", "egress": (), "port": None, "health": None, "restart": "never", "retries": 0,
        "time_limit_us": None, "grace_us": 0, "priority": 0, "budget": None, "deadline_us": None,
        "interruptible": False, "after": (), "stop_idle_us": None, **other,
    }  # fmt: skip
    return JobSpec(**given)


@dataclass
class World:
    """Facts in the order in which they were stated."""

    said: list[Recorded] = field(default_factory=list)
    count: int = 0

    def says(
        self,
        value: Any,
        from_us: int = NOV,
        to_us: int | None = None,
        grade: Grade = Grade.MEASURED,
    ) -> str:
        seq = len(self.said) + 1
        fact = fact_of(
            value, source="platform", id=f"{seq:05d}", subject="x", valid_from=from_us, valid_to=to_us,
            grade=grade,
        )  # fmt: skip
        self.said.append(Recorded(seq=seq, recorded_at=from_us, fact=fact))
        return fact.key

    @classmethod
    def begun(cls, *tenants: str, tax: str | None = "0.20", billing: str = "prepaid") -> World:
        """An owner in euros and tenants with a project each, called as they are."""
        world = cls()
        world.says(_organisation("host", "owner", "prepaid"))
        world.says(NodeEnrolled(
            node="node-id", name="n1", cpus=(0, 1), memory_mib=4096, disk_mib=4096,
            devices=(DeviceSeen(device="GPU-1", slot=0, model="RTX 4090", memory_mib=24_000),),
            isolations=("sandbox",), cgroup="v1", boot="b", version="1",
        ))  # fmt: skip
        if tax is not None:
            world.says(
                Term(
                    about="channel:own", name="sales_tax", value=tax, unit="1", said_by="the owner"
                )
            )
        for name in tenants or ("acme",):
            world.says(_organisation(name, "tenant", billing))
            world.says(Project(project=f"{name}-p", org=f"{name}-id", name=f"{name}-vision", weight="1",
                               trusted=False, closed=False))  # fmt: skip
        return world

    def in_a_site(self) -> World:
        """The owner's own books know the machine."""
        self.says(Site(site="s", currency="EUR", zone="UTC"))
        self.says(Node(node="n1", site="s"))
        self.says(DevicePlaced(device="GPU-1", node="n1", model="RTX 4090", slot=0))
        return self

    def leased(
        self, us: int | None, tenant: str = "acme", from_us: int = NOV, outcome: str = "done",
        of: OwnOffer | None = None, job: str = "train", billable: int | None = None,
        grade: Grade = Grade.MEASURED, peaks: Peaks | None = None, devices: tuple[str, ...] = (),
    ) -> str:  # fmt: skip
        """A job's lease (``us`` None: it still runs) with its attempt; the lease's id."""
        self.count += 1
        n, of = self.count, of or offer()
        of = replace(of, offer=sha256_hex(f"{of.plan}{of.rate}{of.name}")[:8])
        name, attempt, work = f"lease{n}", f"{n:032x}", f"job-{job}-{tenant}"
        where = Placed(node="node-id", devices=devices, cpus=(0,), memory_mib=1, disk_mib=1)
        self.says(of, from_us)
        self.says(JobSubmitted(job=work, org=f"{tenant}-id", project=f"{tenant}-p", user="u", offer=of.offer,
                               lease=None, spec=spec(job)), from_us)  # fmt: skip
        self.says(AttemptOrdered(attempt=attempt, job=work, number=1, lease=name, placed=where, why=""),
                  from_us)  # fmt: skip
        self.says(LeaseGranted(lease=name, offer=of.offer, org=f"{tenant}-id", project=f"{tenant}-p", kind="job",
                               attempt=attempt, placed=where, until_us=None), from_us, None, grade)  # fmt: skip
        if us is None:
            return name
        none = Peaks(memory_bytes=None, cpu_us=None, processes=None, disk_bytes=None, sent_bytes=None,
                     received_bytes=None, oom_kills=None)  # fmt: skip
        self.says(AttemptEnded(attempt=attempt, job=work, wall_us=us, exit_code=0, signal=None, outcome=outcome,
                               cause="program", reason="", isolation="sandbox", peaks=peaks or none, scrub="clean",
                               scrub_detail=""), from_us, from_us + us)  # fmt: skip
        self.says(LeaseEnded(lease=name, at_us=from_us + us, end="attempt ended", why="",
                             billable_us=us if billable is None else billable), from_us + us, None, grade)  # fmt: skip
        return name

    def paid(
        self, amount: str, at_us: int = NOV, tenant: str = "acme", reference: str = "T-1001"
    ) -> None:
        self.count += 1
        self.says(Payment(payment=f"pay{self.count}", org=f"{tenant}-id", amount=amount, currency="EUR",
                          reference=reference, by="finance"), at_us, at_us)  # fmt: skip

    def budget(
        self, amount: str | None, period: str = "month", action: str = "stop", tenant: str = "acme"
    ) -> None:
        self.says(Budget(org=f"{tenant}-id", project=f"{tenant}-p", amount=amount, currency="EUR", period=period,
                         action=action))  # fmt: skip

    def charged(self, at_us: int) -> list[Charged]:
        """State every charge that is due at a moment, as the server does."""
        made: list[Charged] = []
        record = self.record
        for each in record.leases:
            before = [c for c in record.charges if c.value.lease == each.lease]
            made += charges_due(each, before, at_us)
        self.states(made)
        return made

    def states(self, charges: Iterable[Charged]) -> None:
        for each in charges:
            self.says(each.value, each.valid_from, each.valid_to, each.grade)

    def issued(
        self, month: str = "2026-11", tenant: str = "acme", at_us: int | None = None
    ) -> TenantInvoice:
        """Issue the invoice of a month, a minute after it unless told otherwise."""
        period = period_named(month, "UTC")
        at = period.to_us + 60 * S if at_us is None else at_us
        made = self.draft(month, tenant, at)
        self.count += 1
        fact = to_issue(made, [e.value for e in self.record.invoices], f"inv{self.count}", at)
        self.says(fact, period.from_us, period.to_us)
        return fact

    def draft(
        self, month: str = "2026-11", tenant: str = "acme", at_us: int | None = None
    ) -> Invoice:
        period: Period = period_named(month, "UTC")
        at = period.to_us + 60 * S if at_us is None else at_us
        return draft(self.record, f"{tenant}-id", period, UNITS, at)

    @property
    def record(self) -> DuesRecord:
        return dues_record(self.said)

    @property
    def charges(self) -> list[LeaseCharge]:
        return [each.value for each in self.record.charges]


def _organisation(name: str, side: str, billing: str) -> Organisation:
    return Organisation(
        org=f"{name}-id", name=name, side=side, currency="EUR", billing=billing, credit_limit="10",
        closed=False,
    )  # fmt: skip
