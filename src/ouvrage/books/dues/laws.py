"""The laws of what tenants owe: invoices add up, nothing is charged or invoiced twice, and the balance is the postings.

They judge what is recorded by another road than it was made on: charges are made again from the plan that the lease was
granted under, and a tenant's balance is added up from the journal's postings. Whether a price is fair they do not say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import number
from ouvrage.books.dues.charging import Charged, charged_nano, of_cost
from ouvrage.books.dues.entries import owed, tenant_entries
from ouvrage.books.dues.invoice import number_of, to_pay
from ouvrage.books.dues.lease import amount_nano, cost_until
from ouvrage.books.dues.record import dues_record
from ouvrage.books.known import Known
from ouvrage.books.period import day_of
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.laws import Law
from ouvrage.model.dues import TenantInvoice

Found = Iterator[tuple[str, str]]


def _invoices_add_up(records: Sequence[Recorded]) -> Found:
    record = dues_record(records)
    charges = {each.value.charge: each for each in record.charges}
    for each in record.invoices:
        yield from ((each.key, found) for found in _faults(each.value, charges))


def _faults(value: TenantInvoice, charges: dict[str, Charged]) -> Iterator[str]:
    missing = [name for name in value.charges if name not in charges]
    if missing:
        yield f"the charge {missing[0]} is not recorded"
        return
    ours = [charges[name] for name in value.charges]
    strange = [
        e.value.charge
        for e in ours
        if (e.value.org, e.value.currency) != (value.org, value.currency)
    ]
    if strange:
        yield f"the charge {strange[0]} is another organisation's, or in another currency"
    net, tax, exact = amount_nano(value.net), amount_nano(value.tax), charged_nano(ours)
    if exact + amount_nano(value.rounding) != net:
        yield f"its charges are {exact} nano-units and its rounding {value.rounding}, its net is {value.net}"
    if to_pay(exact, value.currency) != net:
        yield f"its net {value.net} is not its charges in whole cents"
    if to_pay(net * number(value.tax_rate), value.currency) != tax:
        yield f"its tax {value.tax} is not {value.tax_rate} of {value.net}"
    if net + tax != amount_nano(value.total):
        yield f"its net {value.net} and tax {value.tax} are not its total {value.total}"


def _once(records: Sequence[Recorded]) -> Found:
    seen: dict[str, str] = {}
    for each in dues_record(records).invoices:
        for charge in each.value.charges:
            first = seen.setdefault(charge, each.value.number)
            if first != each.value.number or each.value.charges.count(charge) > 1:
                yield each.key, f"the charge {charge} is on invoice {first} too"


def _numbered(records: Sequence[Recorded]) -> Found:
    years: dict[int, list[Known[TenantInvoice]]] = {}
    for each in dues_record(records).invoices:
        years.setdefault(day_of(each.value.issued_us, "UTC").year, []).append(each)
    for year, invoices in years.items():
        for place, each in enumerate(invoices, 1):
            if each.value.number != number_of(year, place):
                yield each.key, f"number {each.value.number} where {number_of(year, place)} follows"


def _no_overlap(records: Sequence[Recorded]) -> Found:
    rules: dict[tuple[str, str], list[Charged]] = {}
    for each in dues_record(records).charges:
        if not each.value.credits:
            rules.setdefault((each.value.lease, each.value.rule), []).append(each)
    for (lease, rule), ours in rules.items():
        for before, after in pairwise(sorted(ours, key=lambda e: (e.valid_from, e.end))):
            if after.valid_from < before.end:
                yield (
                    f"lease {lease}",
                    f"{rule} is charged twice from {after.valid_from} to {before.end}",
                )


def _as_the_plan_says(records: Sequence[Recorded]) -> Found:
    record = dues_record(records)
    by_lease: dict[str, list[Charged]] = {}
    for each in of_cost(record.charges):
        by_lease.setdefault(each.value.lease, []).append(each)
    for name in record.unpriced:
        yield f"lease {name}", "the offer that it was granted under is not recorded"
    for lease in record.leases:
        ours = by_lease.pop(lease.lease, [])
        if not ours:
            continue  # not charged yet: the running cost is no fact
        until = max(each.end for each in ours)
        over = lease.unbilled or (lease.stops_us is not None and until >= lease.stops_us)
        try:
            cost = 0 if lease.unbilled else cost_until(lease, until)
        except OuvrageError as error:
            yield f"lease {lease.lease}", f"cannot be charged by its plan: {error.message}"
            continue
        told = charged_nano(ours)
        if told != cost and (lease.ended is None or over):
            yield f"lease {lease.lease}", f"{told} nano-units are charged, its plan makes {cost}"
    for name in by_lease.keys() - set(record.unpriced):
        yield f"lease {name}", "charges of a lease that was never granted"


def _credits(records: Sequence[Recorded]) -> Found:
    charges = {each.value.charge: each for each in dues_record(records).charges}
    left = {name: amount_nano(each.value.amount) for name, each in charges.items()}
    for each in charges.values():
        amount, credited = amount_nano(each.value.amount), each.value.credits
        if (amount < 0) != bool(credited):
            yield each.key, "a negative charge that gives nothing back, or a credit that is none"
        elif credited is not None and credited not in charges:
            yield each.key, f"gives back {credited}, which is not recorded"
        elif credited is not None:
            left[credited] += amount
    for name, rest in left.items():
        if rest < 0 and not charges[name].value.credits:
            yield charges[name].key, f"{-rest} nano-units more than it are given back"


def _nothing_simulated(records: Sequence[Recorded]) -> Found:
    record = dues_record(records)
    grades = {each.value.charge: each.grade for each in record.charges}
    for each in record.invoices:
        made_up = [c for c in each.value.charges if grades.get(c) is Grade.SIMULATED]
        if made_up:
            yield each.key, f"asks for {made_up[0]}, which is simulated"


def _balance(records: Sequence[Recorded]) -> Found:
    record = dues_record(records)
    entries = list(tenant_entries(record))
    for entry in entries:
        if sum(leg.nano for leg in entry.legs):
            yield entry.known.key, f"the entry {entry.text} does not balance"
    posted = owed(record, entries)
    for org in record.organisations.values():
        invoices = [amount_nano(e.value.total) for e in record.invoices if e.value.org == org.org]
        paid = [amount_nano(e.value.amount) for e in record.payments if e.value.org == org.org]
        left = sum(invoices) - sum(paid)
        if posted[org.name] != left:
            yield (
                f"org {org.name}",
                f"the postings say {posted[org.name]} nano-units owed, invoices less payments {left}",
            )


LAWS: tuple[Law, ...] = (
    Law(
        name="dues/invoices-add-up",
        statement="an invoice's charges and rounding are its net, tax is its rate of that, and both are its total",
        check=_invoices_add_up,
    ),
    Law(
        name="dues/invoiced-once",
        statement="each charge stands on at most one invoice",
        check=_once,
    ),
    Law(
        name="dues/numbered",
        statement="invoices of a year are numbered from 1 in the order of their issue, without a gap",
        check=_numbered,
    ),
    Law(
        name="dues/no-overlap",
        statement="charges of a lease by the same rule never overlap in time",
        check=_no_overlap,
    ),
    Law(
        name="dues/as-the-plan-says",
        statement="what is charged of a lease is what the plan it was granted under makes of its time",
        check=_as_the_plan_says,
    ),
    Law(
        name="dues/credits",
        statement="only credits are negative, and no charge is given back beyond its amount",
        check=_credits,
    ),
    Law(
        name="dues/nothing-simulated",
        statement="no invoice asks for a charge that is simulated",
        check=_nothing_simulated,
    ),
    Law(
        name="dues/balance",
        statement="what a tenant owes is the sum of the postings on its account",
        check=_balance,
    ),
)
