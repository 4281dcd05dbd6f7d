"""Everything known about what tenants owe, decoded from facts in force: leases, charges, payments, invoices.

Decides which facts those are and joins a lease from its grant, its offer, its end and its attempt. What they mean together is
decided by the account, the invoice and the laws. A lease whose offer is not known here cannot be priced and is left out: a law says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import number
from ouvrage.books.known import Known, by_kind, known_of
from ouvrage.ledger.facts import Line, Recorded, line_of
from ouvrage.model.dues import Budget, LeaseCharge, Payment, TenantInvoice
from ouvrage.model.machines import NodeEnrolled
from ouvrage.model.records import Withdrawal
from ouvrage.model.selling import LeaseEnded, LeaseGranted, OwnOffer
from ouvrage.model.sites import Term
from ouvrage.model.tenancy import Organisation, Project
from ouvrage.model.work import AttemptEnded, AttemptOrdered, JobSubmitted

if TYPE_CHECKING:  # an owner without tenants need not wait for the rate plans of leases
    from ouvrage.books.dues.charging import Charged
    from ouvrage.books.dues.lease import Lease

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
SALES_TAX = "sales_tax"
_KINDS: tuple[Any, ...] = (
    Organisation, Project, NodeEnrolled, OwnOffer, LeaseGranted, LeaseEnded, JobSubmitted, AttemptOrdered,
    AttemptEnded, LeaseCharge, Payment, Budget, TenantInvoice, Term,
)  # fmt: skip
DUES_KINDS: tuple[str, ...] = (*(kind.KIND for kind in _KINDS), Withdrawal.KIND)


_OWN = frozenset(
    (
        LeaseGranted.KIND,
        LeaseCharge.KIND,
        Payment.KIND,
        TenantInvoice.KIND,
        Budget.KIND,
        Organisation.KIND,
    )
)
"""Where none of these is stated there is no platform, and nothing to join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuesRecord:
    """The facts by kind, the last statement about each thing by its id, each list in order of time.

    ``inside`` are the attempts that were ordered into each lease; ``unpriced`` are leases whose offer nobody states.
    """

    organisations: Mapping[str, Organisation]
    projects: Mapping[str, Project]
    nodes: Mapping[str, str]
    jobs: Mapping[str, JobSubmitted]
    attempts: Mapping[str, Known[AttemptEnded]]
    inside: Mapping[str, tuple[AttemptOrdered, ...]]
    leases: tuple[Lease, ...]
    unpriced: tuple[str, ...]
    charges: tuple[Charged, ...]
    payments: tuple[Known[Payment], ...]
    budgets: Mapping[str, Budget]
    invoices: tuple[Known[TenantInvoice], ...]
    terms: tuple[Known[Term], ...]

    def tax_rate(self, tenant: str, channel: str, at_us: int) -> Fraction | None:
        """The share of tax that the owner states for a tenant, else for its channel; None: not stated."""
        return tax_rate(self.terms, tenant, channel, at_us)

    def of(self, org: str) -> DuesRecord:
        """The part of it that is one organisation's own."""
        return DuesRecord(
            organisations=_only(self.organisations, lambda v: v.org == org),
            projects=_only(self.projects, lambda v: v.org == org),
            nodes=self.nodes,
            jobs=_only(self.jobs, lambda v: v.org == org),
            attempts=self.attempts,
            inside=self.inside,
            leases=tuple(each for each in self.leases if each.org == org),
            unpriced=self.unpriced,
            charges=tuple(each for each in self.charges if each.value.org == org),
            payments=tuple(each for each in self.payments if each.value.org == org),
            budgets=_only(self.budgets, lambda v: v.org == org),
            invoices=tuple(each for each in self.invoices if each.value.org == org),
            terms=self.terms,
        )


def tax_rate(
    terms: Iterable[Known[Term]], tenant: str, channel: str, at_us: int
) -> Fraction | None:
    """The share of tax stated for ``tenant:NAME``, else for ``channel:NAME``, else for ``channel:own``, at a moment."""
    held: dict[str, Fraction] = {}
    for each in terms:
        if each.value.name == SALES_TAX and each.at(at_us):
            held[each.value.about] = number(each.value.value)
    names = (f"tenant:{tenant}", f"channel:{channel}", "channel:own")
    return next((held[name] for name in names if name in held), None)


NOTHING = DuesRecord(
    organisations={}, projects={}, nodes={}, jobs={}, attempts={}, inside={}, leases=(), unpriced=(), charges=(),
    payments=(), budgets={}, invoices=(), terms=(),
)  # fmt: skip


def _only(found: Mapping[str, T], wanted: Callable[[T], bool]) -> dict[str, T]:
    return {key: value for key, value in found.items() if wanted(value)}


def dues_record(records: Iterable[Recorded]) -> DuesRecord:
    """The platform's money among some records, as far as nothing corrected or withdrew it."""
    return dues_of_lines([line_of(entry) for entry in records if entry.fact.kind in DUES_KINDS])


def dues_of_lines(lines: Sequence[Line]) -> DuesRecord:
    """``dues_record`` from lines, as a store reads them."""
    found: dict[type, list[Known[Any]]] = {kind: [] for kind in _KINDS}
    ours = [line for line in lines if line.kind in DUES_KINDS]
    if not any(line.kind in _OWN for line in ours):
        return NOTHING
    for (kind, version), told in by_kind(ours).items():
        for each in known_of(kind, version, told):
            found[type(each.value)].append(each)
    for each in found.values():
        each.sort(key=lambda known: (known.valid_from, known.key))
    leases, unpriced = _leases(found)
    return DuesRecord(
        organisations=_last(found[Organisation], lambda v: v.org),
        projects=_last(found[Project], lambda v: v.project),
        nodes={k: v.name for k, v in _last(found[NodeEnrolled], lambda v: v.node).items()},
        jobs=_last(found[JobSubmitted], lambda v: v.job),
        attempts={each.value.attempt: each for each in found[AttemptEnded]},
        inside=_inside(found[AttemptOrdered]),
        leases=leases,
        unpriced=unpriced,
        charges=tuple(found[LeaseCharge]),
        payments=tuple(found[Payment]),
        budgets=_last(found[Budget], lambda v: v.project),
        invoices=tuple(
            sorted(found[TenantInvoice], key=lambda e: (e.value.issued_us, e.value.number))
        ),
        terms=tuple(each for each in found[Term] if each.value.name == SALES_TAX),
    )


def _last(entries: Iterable[Known[T]], key: Callable[[T], K]) -> dict[K, T]:
    return {key(each.value): each.value for each in entries}


def _inside(ordered: Iterable[Known[AttemptOrdered]]) -> dict[str, tuple[AttemptOrdered, ...]]:
    found: dict[str, list[AttemptOrdered]] = {}
    for each in ordered:
        found.setdefault(each.value.lease, []).append(each.value)
    return {lease: tuple(attempts) for lease, attempts in found.items()}


def _leases(
    found: Mapping[type, Sequence[Known[Any]]],
) -> tuple[tuple[Lease, ...], tuple[str, ...]]:
    offers: dict[str, OwnOffer] = _last(found[OwnOffer], lambda v: v.offer)
    ended = {each.value.lease: each for each in found[LeaseEnded]}
    attempts = {each.value.attempt: each for each in found[AttemptEnded]}
    jobs = {each.value.attempt: each.value.job for each in found[AttemptOrdered]}
    kept: list[Lease] = []
    unpriced: list[str] = []
    for each in found[LeaseGranted]:
        granted: LeaseGranted = each.value
        offer = offers.get(granted.offer)
        if offer is None:
            unpriced.append(granted.lease)
            continue
        attempt = attempts.get(granted.attempt or "")
        job = jobs.get(granted.attempt or "") or (attempt.value.job if attempt else None)
        kept.append(lease_of(each, offer, ended.get(granted.lease), attempt, job))
    return tuple(kept), tuple(unpriced)


def lease_of(
    granted: Known[LeaseGranted],
    offer: OwnOffer,
    ended: Known[LeaseEnded] | None,
    attempt: Known[AttemptEnded] | None,
    job: str | None,
) -> Lease:
    """A lease as it is billed, from the facts about it."""
    from ouvrage.books.dues.lease import Ended, Lease

    value = granted.value
    peaks = attempt.value.peaks if attempt else None
    grades = [each.grade for each in (granted, ended, attempt) if each is not None]
    return Lease(
        lease=value.lease,
        org=value.org,
        project=value.project,
        kind=value.kind,
        attempt=value.attempt,
        job=job,
        node=value.placed.node,
        devices=value.placed.devices,
        offer=offer,
        from_us=granted.valid_from,
        until_us=value.until_us,
        ended=None
        if ended is None
        else Ended(
            at_us=ended.value.at_us,
            billable_us=ended.value.billable_us,
            outcome=attempt.value.outcome if attempt else None,
        ),
        sent=peaks.sent_bytes if peaks else None,
        received=peaks.received_bytes if peaks else None,
        grade=max([Grade.METERED, *grades]),
        key=granted.key,
    )
