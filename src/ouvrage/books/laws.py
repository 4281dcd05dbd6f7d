"""The laws of the books: time adds up to the calendar, devices to the site, revenue less costs to margin.

They add up a second time, over the last month of which anything is known and by another road than the
statement takes: the calendars against the time that devices stood there, the postings against the
statement of every kind of object. Whether a price is right they do not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from ouvrage.base.errors import OuvrageError
from ouvrage.books.account import Account, account, money
from ouvrage.books.bank_items import lines
from ouvrage.books.calendar import calendar, hours_by_state, in_turn, placements
from ouvrage.books.cells import grid_of
from ouvrage.books.energy import energy_of
from ouvrage.books.journal import journal, lines_of
from ouvrage.books.period import Period, month_of
from ouvrage.books.pnl import BY, COSTS, Statement, key_of, pnl, sheet_of
from ouvrage.books.reconcile_bank import banked, owed
from ouvrage.books.record import OwnerRecord, owner_record
from ouvrage.books.sealing import seal_breaches
from ouvrage.books.tariffs import PriceBook
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.laws import Law

Found = Iterable[tuple[str, str]]


def _months(record: OwnerRecord) -> Iterator[tuple[str, Period]]:
    """Each site with the last month of which anything is known about it, as far as it was known."""
    for site in sorted({each.value.site for each in record.sites}):
        held = record.site(site)
        happened = [each.valid_from for each in (*record.earnings, *record.states, *record.leases)]
        if held is not None and happened:
            yield site, month_of(max(happened), held.value.zone).until(record.as_of)


def _time_adds_up(records: Sequence[Recorded]) -> Found:
    record = owner_record(records)
    for _, period in _months(record):
        for device in sorted({each.value.device for each in record.devices}):
            yield from calendar_breaches(record, device, period)


def calendar_breaches(record: OwnerRecord, device: str, period: Period) -> Found:
    """What does not tile in the calendar of a device."""
    stretches = calendar(record, device, period)
    for before, after in pairwise(stretches):
        if after.from_us < before.to_us:
            yield (
                f"device:{device}",
                f"two states at {after.from_us}: {before.state}, {after.state}",
            )
    owned = _stood(record, device, period)
    told = sum(hours_by_state(stretches).values())
    if told != owned:
        yield f"device:{device}", f"its states take {told} us of the {owned} us it stood there"


def _stood(record: OwnerRecord, device: str, period: Period) -> int:
    """How long a device stood in a node in service, counted without any state."""
    service: dict[str, list[tuple[int, int]]] = {}
    for held in in_turn(record.nodes, lambda value: [value.node]):
        service.setdefault(held.value.node, []).append((held.from_us, held.to_us))
    total = 0
    for turn in placements(record):
        if turn.value.device != device:
            continue
        spans = [
            (max(turn.from_us, begins, period.from_us), min(turn.to_us, ends, period.to_us))
            for begins, ends in service.get(turn.value.node, [])
        ]
        at = period.from_us
        for begins, ends in sorted(span for span in spans if span[0] < span[1]):
            total += max(0, ends - max(at, begins))
            at = max(at, ends)
    return total


def _energy_adds_up(records: Sequence[Recorded]) -> Found:
    record = owner_record(records)
    for site, period in _months(record):
        try:
            yield from energy_breaches(record, site, period)
        except OuvrageError:  # refused for want of a rate: nothing is priced, so nothing is wrong
            continue


def energy_breaches(record: OwnerRecord, site: str, period: Period) -> Found:
    """Where what meters read is not what was given to devices and what was lost beside them."""
    grid = grid_of(record, site, period)
    book = PriceBook(record, site, period.from_us, period.to_us)
    taken = energy_of(record, grid, book)
    read, lost = sum(taken.read_j.values()), sum(each.joules for each in taken.lost)
    if read != taken.metered_j + lost:
        given = f"{taken.metered_j} J were given to devices and {lost} J to none"
        yield f"site:{site} {period.name}", f"meters read {read} J; {given}"
    stood = sum(stretch.us for stretch in grid.all())
    if stood != taken.us:
        yield f"site:{site} {period.name}", f"{taken.us} us of {stood} us have a power"


def _money_adds_up(records: Sequence[Recorded]) -> Found:
    record = owner_record(records)
    for site, period in _months(record):
        try:
            made = account(record, site, period)
        except OuvrageError:  # refused for want of a rate: nothing is added up, so nothing is wrong
            continue
        yield from account_breaches(made)


def account_breaches(made: Account) -> Found:
    """What does not add up in the account of a site, in any view of it."""
    where = f"site:{made.grid.site} {made.grid.period.name}"
    whole = sheet_of(made, made.cells, made.grid.site, None)
    posted = {line: 0 for line, _ in made.sums}
    for (line, _), held in made.sums.items():
        posted[line] += held.nano
    for by in BY:
        key = key_of(made, by)
        groups: dict[str, list[object]] = {}
        for cell in made.cells:
            groups.setdefault(key(cell), []).append(cell)
        if sorted(map(str, made.cells)) != sorted(
            str(c) for cells in groups.values() for c in cells
        ):
            yield where, f"by {by}, a part is missing or counted twice"
    for line, nano in posted.items():
        figure = whole.figures.get(line)
        if figure is not None and figure.value is not None and figure.value != money(nano):
            yield where, f"{line} is {figure.value}, posted were {money(nano)}"
    margin, revenue = whole.number("margin.net"), whole.number("revenue.total")
    if margin is not None and revenue is not None:
        costs = sum((Fraction(whole[f"cost.{name}"].value or 0) for name in COSTS), Fraction(0))
        if revenue - costs != margin:
            yield where, f"revenue {revenue} less costs {costs} is not the margin {margin}"


def _journal_adds_up(records: Sequence[Recorded]) -> Found:
    record = owner_record(records)
    for site, period in _months(record):
        try:
            yield from journal_breaches(record, site, period)
        except OuvrageError:  # refused for want of a rate, as the statement is
            continue


def journal_breaches(record: OwnerRecord, site: str, period: Period) -> Found:
    """Entries that do not balance, and lines of the statement that the journal has otherwise."""
    found = journal(record, site, period)
    where = f"site:{site} {period.name}"
    for entry in found.entries:
        if sum(posting.nano for posting in entry.postings):
            yield where, f"the entry {entry.text} of {entry.day} does not balance"
    statement = pnl(record, site, period, "site", payback=False).total
    lines = lines_of(found)
    for line, nano in lines.items():
        figure = statement.figures[line]
        if figure.value is not None and figure.value != money(nano):
            yield where, f"{line} is {figure.value}, the journal has {money(nano)}"
    margin = statement["margin.net"].value
    left = sum(nano if line.startswith("revenue.") else -nano for line, nano in lines.items())
    if margin is not None and margin != money(left):
        yield where, f"the margin is {margin}, the journal leaves {money(left)}"


def _bank_adds_up(records: Sequence[Recorded]) -> Found:
    yield from bank_breaches(owner_record(records))


def bank_breaches(record: OwnerRecord) -> Found:
    """Documents that are not paid and open to their sum, and lines not matched and unmatched to theirs."""
    found = banked(record)
    shares = [share for match in found.matches for share in match.shares]
    paid = [(share.claim.key, share.amount) for share in shares]
    took = [(share.line.key, share.took) for share in shares]
    sides = ((owed(record), paid, found.open), (lines(record), took, found.unmatched))
    for items, parts, left in sides:
        sums: dict[str, Fraction] = {}
        for key, amount in (*parts, *((each.item.key, each.amount) for each in left)):
            sums[key] = sums.get(key, Fraction(0)) + amount
        for item in items:
            if sums.pop(item.key, Fraction(0)) != item.amount:
                yield (
                    item.key,
                    f"{item.name} is of {item.amount}, and its parts do not add up to it",
                )
        yield from ((key, f"{amount} is of nothing that is known") for key, amount in sums.items())


def statement_breaches(statement: Statement) -> Found:
    """Whether the rows of a statement add up to its total, figure by figure."""
    for path, figure in statement.total.figures.items():
        sums = path.startswith(("hours.", "cost.", "revenue.")) and "per_owned" not in path
        if (
            not sums
            or figure.value is None
            or any(row[path].value is None for row in statement.rows)
        ):
            continue
        parts = sum((Fraction(row[path].value or 0) for row in statement.rows), Fraction(0))
        if path != "hours.sold" and parts != figure.value:
            yield (
                statement.total.object,
                f"{path}: rows add up to {parts}, the total is {figure.value}",
            )


LAWS: tuple[Law, ...] = (
    Law(
        name="books/journal-adds-up",
        statement="every entry balances, and the journal's income and expenses are the statement's",
        check=_journal_adds_up,
    ),
    Law(
        name="books/bank-adds-up",
        statement="of every document and bank line, what is matched and what is open add up to it",
        check=_bank_adds_up,
    ),
    Law(
        name="books/energy-adds-up",
        statement="what meters read is what was given to devices and what was lost, to the joule",
        check=_energy_adds_up,
    ),
    Law(
        name="books/time-adds-up",
        statement="the states of a device add up to the time that it stood in a machine in service",
        check=_time_adds_up,
    ),
    Law(
        name="books/money-adds-up",
        statement="every view of a site's books is the same postings, and revenue less costs is the margin",
        check=_money_adds_up,
    ),
    Law(
        name="books/sealed",
        statement="the facts known at the seal of a closed month give the sums that were sealed",
        check=seal_breaches,
    ),
)
