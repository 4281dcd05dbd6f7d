"""What each account would owe: its jobs as leases under the price of their partition, as drafts of invoices.

Decides that a tenant is an account at the top and a project any account; that a job is charged by the price that held when it began; that
one whose node failed is not charged; and that a job without a price is told and never free of charge. How time is rounded is
the rate plan's, how an invoice is made the invoice's. Nothing of this is issued: numbers are given by the platform that issues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ouvrage.base.canonical import sha256_hex
from ouvrage.base.numbers import decimal_text, number
from ouvrage.books.cluster_jobs import Attempt
from ouvrage.books.dues.account import running_nano
from ouvrage.books.dues.charging import Charged, charged_nano, charges_due
from ouvrage.books.dues.invoice import Invoice, draft
from ouvrage.books.dues.lease import Ended, Lease
from ouvrage.books.dues.record import NOTHING, SALES_TAX, DuesRecord
from ouvrage.books.fleet.record import NO_ACCOUNT, Fleet
from ouvrage.books.fleet.work import NODE_FAILED
from ouvrage.books.known import Known
from ouvrage.books.period import Period
from ouvrage.model.fleet import ClusterRate
from ouvrage.model.selling import OwnOffer
from ouvrage.model.sites import Term
from ouvrage.model.tenancy import Organisation, Project
from ouvrage.model.work import JobSpec, JobSubmitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """Drafts by tenant; ``unpriced`` are attempts with no price, ``nano`` what each priced one costs in the period.

    ``own`` are those that only held a place for this platform's own attempts, which it bills as leases.
    """

    drafts: Mapping[str, Invoice]
    unpriced: tuple[Attempt, ...]
    nano: Mapping[str, int]
    currency: str | None
    own: tuple[Attempt, ...] = ()


def rate_of(fleet: Fleet, attempt: Attempt) -> ClusterRate | None:
    """The price under which an attempt ran: of its partition and class, else of its partition, when it began."""
    per = "gpu" if attempt.gpus else "cpu"
    at = attempt.start_us or 0
    held = [
        each.value for each in fleet.rates
        if each.value.partition == attempt.partition and each.value.per == per and each.at(at)
    ]  # fmt: skip
    own = [each for each in held if each.qos is not None and each.qos == fleet.use(attempt).qos]
    common = [each for each in held if each.qos is None]
    return own[-1] if own else common[-1] if common else None


def billed(
    fleet: Fleet,
    attempts: Sequence[Attempt],
    period: Period,
    at_us: int,
    terms: Sequence[Known[Term]],
) -> Billed:
    """The drafts of a period; ``terms`` are the owner's, among which a tax may be."""
    leases: dict[str, Lease] = {}
    unpriced: list[Attempt] = []
    own = tuple(each for each in attempts if fleet.is_own(each))
    for each in attempts:
        if fleet.is_own(each):
            continue
        rate = rate_of(fleet, each)
        if each.run_us and each.start_us is not None:
            if rate is None:
                unpriced.append(each)
            else:
                leases[each.name] = lease_of(fleet, each, rate)
    due = {
        name: charges_due(lease, (), min(at_us, period.to_us), period.zone)
        for name, lease in leases.items()
    }
    charges = {
        name: [each for each in ours if period.from_us < each.end] for name, ours in due.items()
    }
    record = _record(fleet, leases.values(), [c for each in charges.values() for c in each], terms)
    going = [each for each in leases.values() if each.ended is None]
    currencies = {each.offer.currency for each in leases.values()}
    return Billed(
        drafts={
            org: replace(
                draft(record, org, period, {}, at_us),
                running=sum(_running(each, due[each.lease], min(at_us, period.to_us)) for each in going if each.org == org),
            )
            for org in sorted({each.org for each in leases.values()})
        },
        unpriced=tuple(unpriced), nano={name: charged_nano(each) for name, each in charges.items()},
        currency=currencies.pop() if len(currencies) == 1 else None, own=own,
    )  # fmt: skip


def _running(lease: Lease, due: Sequence[Charged], at_us: int) -> int:
    """What a job that is not over has cost beyond the charges of the months that are."""
    return running_nano([lease], due, at_us)


def lease_of(fleet: Fleet, attempt: Attempt, rate: ClusterRate) -> Lease:
    """An attempt as the lease that its price makes of it."""
    count = attempt.gpus or attempt.known.value.cpus or 0
    ended = None
    if attempt.end_us is not None:
        failed = attempt.state in NODE_FAILED
        ended = Ended(
            at_us=attempt.end_us, billable_us=0 if failed else attempt.run_us or 0,
            outcome=attempt.state.lower().replace("_", " "),
        )  # fmt: skip
    return Lease(
        lease=attempt.name, org=fleet.tenant(attempt.account), project=attempt.account or NO_ACCOUNT, kind="job",
        attempt=attempt.name, job=attempt.job, node=attempt.nodes[0] if attempt.nodes else "", devices=(),
        offer=_offer(attempt, rate, count), from_us=attempt.start_us or 0, until_us=None, ended=ended,
        grade=attempt.known.grade, key=attempt.known.key,
    )  # fmt: skip


def _offer(attempt: Attempt, rate: ClusterRate, count: int) -> OwnOffer:
    name = f"{rate.partition}{f' ({rate.qos})' if rate.qos else ''}, {count} {'GPU' if rate.per == 'gpu' else 'core'}"
    return OwnOffer(
        offer=sha256_hex(name)[:16], name=name, gpu=None, gpus=attempt.gpus or 0, cpus=attempt.known.value.cpus or 0,
        memory_mib=0, disk_mib=0, plan_name=rate.plan_name, plan=rate.plan, rate=decimal_text(number(rate.rate) * count),
        currency=rate.currency, interruptible=False, least_us=None, most_us=None, notice_us=0, sla=None, audience="tenants",
        channel="own", nodes=(), isolation="none", document=None,
    )  # fmt: skip


def _record(
    fleet: Fleet, leases: Iterable[Lease], charges: Iterable[Charged], terms: Sequence[Known[Term]]
) -> DuesRecord:
    kept = tuple(leases)
    currency = {each.org: each.offer.currency for each in kept}
    orgs = {
        name: Organisation(
            org=name,
            name=name,
            side="tenant",
            currency=coin,
            billing="credit",
            credit_limit="0",
            closed=False,
        )
        for name, coin in currency.items()
    }
    projects = {
        each.project: Project(
            project=each.project,
            org=each.org,
            name=each.project,
            weight="1",
            trusted=False,
            closed=False,
        )
        for each in kept
    }
    owner = Organisation(
        org="",
        name=f"cluster {fleet.cluster}",
        side="owner",
        currency="",
        billing="credit",
        credit_limit="0",
        closed=False,
    )
    return replace(
        NOTHING, organisations={**orgs, "": owner}, projects=projects, leases=kept, charges=tuple(charges),
        jobs={f"{each.job}": _named(each) for each in kept}, terms=tuple(t for t in terms if t.value.name == SALES_TAX),
    )  # fmt: skip


def _named(lease: Lease) -> JobSubmitted:
    """The job of a lease under the number that people know it by."""
    spec = JobSpec(
        name=f"job {lease.job}", command=(), image=None, isolation="none", gpus=lease.offer.gpus, gpu=None, cpus=lease.offer.cpus,
        memory_mib=0, disk_mib=0, environment=(), secrets=(), inputs=(), outputs=(), volumes=(), workdir="", checkpoint=None,
        unit=None, unit_regex=None, network="none", egress=(), port=None, health=None, restart="never", retries=0,
        time_limit_us=None, grace_us=0, priority=0, budget=None, deadline_us=None, interruptible=False, after=(), stop_idle_us=None,
    )  # fmt: skip
    return JobSubmitted(
        job=lease.job or "",
        org=lease.org,
        project=lease.project,
        user="",
        offer=None,
        lease=lease.lease,
        spec=spec,
    )
