"""Documents and money as entries: what was invoiced, billed, due and paid in a period.

Decides what a document reverses: an invoice of a channel what was accrued for the earnings of its time, a
bill the accrued cost of its sort, an instalment the interest that accrued. Money settles a document where
reconciling is sure of it or somebody said so; everything else waits under ``Unmatched`` and is never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import NANO, nano, number
from ouvrage.books.bank_items import instalment_key
from ouvrage.books.cells import Grid
from ouvrage.books.costs import LINE_OF_BILL
from ouvrage.books.dues.entries import RECEIVED, Leg, TenantEntry, tenant_entries
from ouvrage.books.entries import (
    EXCHANGE,
    OWNER,
    RESIDUE,
    UNMATCHED,
    Entry,
    Names,
    Posting,
    accrued,
    title,
)
from ouvrage.books.loans import loan_schedule
from ouvrage.books.money import converted
from ouvrage.books.paying import Match, Share
from ouvrage.books.period import day_of
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.terms import term
from ouvrage.model.cash import BankLine, CostBill
from ouvrage.model.earnings import ChannelInvoice, Earning

TENANT_ACCOUNTS = {
    "receivable": "Assets:Receivable", "accrued": "Assets:Accrued", "received": "Assets:Received",
    "tax": "Liabilities:Sales-tax", "rounding": RESIDUE,
}  # fmt: skip
"""On which account a leg of a tenant's entry stands; of the first three under the tenant's or the channel's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A sum that is to move: above zero it comes in. It stands on ``account`` until it does.

    ``carried`` is what it stands there with, in nano-units of the books' currency; ``key`` is that of
    its item among what is owed.
    """

    at_us: int
    about: str
    account: str
    carried: int
    key: str


def documents(
    record: OwnerRecord, grid: Grid, names: Names, matches: Sequence[Match]
) -> Iterator[Entry]:
    """The entries of what was bought, borrowed, invoiced, billed, due and paid in the grid's period.

    ``matches`` are those that are sure, over everything known.
    """
    desk = _Desk(record, grid, names)
    yield from desk.bought()
    yield from desk.borrowed()
    known: list[Document] = []
    for invoice in record.invoices if desk.first else ():
        document, entry = desk.invoiced(invoice)
        known.append(document)
        yield from desk.if_within(document.at_us, entry)
    for bill in record.bills:
        if desk.concerns(bill.value.about):
            document, entry = desk.billed(bill)
            known.append(document)
            yield from desk.if_within(document.at_us, entry)
    for document, entry in desk.instalments():
        known.append(document)
        yield from desk.if_within(document.at_us, entry)
    if desk.first:
        for document, entry in desk.tenants():
            known += [document] if document else []
            yield from desk.if_within(entry.at_us, desk.named(entry))
        yield from desk.paid({each.key: each for each in known}, matches)


class _Desk:
    """What enters the documents of one site."""

    def __init__(self, record: OwnerRecord, grid: Grid, names: Names) -> None:
        self.record, self.grid, self.names = record, grid, names
        self.zone, self.currency = grid.period.zone, grid.currency
        self.first = bool(record.sites) and record.sites[0].value.site == grid.site

    def concerns(self, about: str) -> bool:
        """Whether a document is of this site: a channel's is of the first one."""
        return self.grid.holds(about) or (about.startswith("channel:") and self.first)

    def if_within(self, at_us: int, entry: Entry) -> Iterable[Entry]:
        """The entry, where its moment lies in the period and anything moves."""
        within = self.grid.period.from_us <= at_us < self.grid.period.to_us
        return [entry] if within and entry.postings else []

    def _in_books(
        self, amount: str | Fraction, currency: str, at_us: int, known: Known[Any]
    ) -> int:
        text = amount if isinstance(amount, str) else f"{amount.numerator}/{amount.denominator}"
        return nano(converted(self.record, text, currency, self.currency, at_us, known).amount)

    def _entry(self, at_us: int, text: str, sums: dict[str, int], *facts: str) -> Entry:
        postings = tuple(Posting(account=name, nano=each) for name, each in sums.items() if each)
        assert sum(posting.nano for posting in postings) == 0
        return Entry(day=day_of(at_us, self.zone), text=text, postings=postings, facts=facts)

    def bought(self) -> Iterator[Entry]:
        """Parts that came into use and those that left it."""
        gone = {each.value.asset: each for each in self.record.retirements}
        for each in self.record.assets:
            asset = each.value
            if not self.grid.holds(asset.about):
                continue
            place = f"Assets:Equipment:{self.names.of('asset', asset.asset)}"
            price = self._in_books(asset.price, asset.currency, each.valid_from, each)
            entry = self._entry(
                each.valid_from, f"{asset.asset} bought", {place: price, OWNER: -price}, each.key
            )
            yield from self.if_within(each.valid_from, entry)
            left = gone.get(asset.asset)
            if left is not None and number(left.value.proceeds):
                got = self._in_books(
                    left.value.proceeds, left.value.currency, left.valid_from, left
                )
                worth = self._in_books(
                    left.value.proceeds, left.value.currency, each.valid_from, left
                )
                sums = {OWNER: got, place: -worth, EXCHANGE: worth - got}
                sold = self._entry(
                    left.valid_from, f"{asset.asset} left use, {left.value.why}", sums, left.key
                )
                yield from self.if_within(left.valid_from, sold)

    def borrowed(self) -> Iterator[Entry]:
        """Loans that were paid out."""
        for each in self.record.loans:
            if self.grid.holds(each.value.about):
                sum_ = self._in_books(
                    each.value.principal, each.value.currency, each.valid_from, each
                )
                owed = self._loan(each.value.loan)
                entry = self._entry(
                    each.valid_from,
                    f"loan {each.value.loan} paid out",
                    {OWNER: sum_, owed: -sum_},
                    each.key,
                )
                yield from self.if_within(each.valid_from, entry)

    def _loan(self, name: str) -> str:
        return f"Liabilities:Loan:{self.names.of('loan', name)}"

    def instalments(self) -> Iterator[tuple[Document, Entry]]:
        """What falls due of loans: principal and the interest that accrued."""
        for each in self.record.loans:
            loan = each.value
            if not self.grid.holds(loan.about):
                continue
            for number_, due in enumerate(loan_schedule(each, self.zone), 1):
                parts = [Fraction(part, NANO) for part in (due.principal, due.interest)]
                principal, interest = (
                    self._in_books(part, loan.currency, each.valid_from, each) for part in parts
                )
                payable = f"Liabilities:Payable:{self.names.of('loan', loan.loan)}"
                sums = {
                    self._loan(loan.loan): principal, accrued("interest"): interest,
                    payable: -principal - interest,
                }  # fmt: skip
                about = f"instalment {number_} of loan {loan.loan}"
                document = Document(
                    at_us=due.at_us, about=about, account=payable, carried=-principal - interest,
                    key=instalment_key(each.key, number_),
                )  # fmt: skip
                yield document, self._entry(due.at_us, about, sums, each.key)

    def tenants(self) -> Iterator[tuple[Document | None, TenantEntry]]:
        """Invoices to tenants and what they paid; what was paid waits for the bank's line that shows it."""
        for entry in tenant_entries(self.record.tenants):
            paid = next((leg for leg in entry.legs if leg.sort == RECEIVED), None)
            document = None
            if paid is not None:
                amount = Fraction(paid.nano, NANO)
                carried = self._in_books(amount, entry.currency, entry.at_us, entry.known)
                document = Document(
                    at_us=entry.at_us, about=entry.text, account=self._account(paid), carried=carried,
                    key=entry.known.key,
                )  # fmt: skip
            yield document, entry

    def named(self, entry: TenantEntry) -> Entry:
        """An entry of a tenant on named accounts in the books' currency; what converting left is exchange."""
        sums: dict[str, int] = {}
        for leg in entry.legs:
            moved = self._in_books(
                Fraction(leg.nano, NANO), entry.currency, entry.at_us, entry.known
            )
            account = self._account(leg)
            sums[account] = sums.get(account, 0) + moved
        left = sum(sums.values())
        return self._entry(entry.at_us, entry.text, {**sums, EXCHANGE: -left}, entry.known.key)

    def _account(self, leg: Leg) -> str:
        whose = {"receivable": "tenant", "received": "tenant", "accrued": "channel"}.get(leg.sort)
        root = TENANT_ACCOUNTS[leg.sort]
        return root if whose is None else f"{root}:{self.names.of(whose, leg.name)}"

    def billed(self, each: Known[CostBill]) -> tuple[Document, Entry]:
        """A bill: what it asks for, against the cost that accrued; its tax is kept apart."""
        bill = each.value
        at_us = max(each.valid_from, each.end - 1)
        line = LINE_OF_BILL.get(bill.sort, "electricity")
        payable = f"Liabilities:Payable:{title(line)}"
        net = self._in_books(bill.amount, bill.currency, at_us, each)
        tax = self._in_books(bill.tax or "0", bill.currency, at_us, each)
        about = f"bill {bill.number} of {bill.sort}"
        sums = {accrued(line): net, "Assets:Input-tax": tax, payable: -net - tax}
        document = Document(
            at_us=at_us, about=about, account=payable, carried=-net - tax, key=each.key
        )
        return document, self._entry(at_us, about, sums, each.key)

    def invoiced(self, each: Known[ChannelInvoice]) -> tuple[Document, Entry]:
        """An invoice of a channel: what it states becomes a receivable, what it covers is not accrued
        any more. Where both are the same sum, what differs in the books is exchange or rounding.
        """
        invoice, at_us = each.value, each.value.issued_us
        name = self.names.of("channel", invoice.channel)
        claim, waits = f"Assets:Receivable:{name}", f"Assets:Accrued:{name}"
        net = number(invoice.net)
        carried = self._in_books(invoice.net, invoice.currency, at_us, each)
        earned, posted = self._covered(each)
        sums = {claim: carried, waits: -carried}
        if earned and earned == net:
            other = RESIDUE if invoice.currency == self.currency else EXCHANGE
            sums = {claim: carried, waits: -posted, other: posted - carried}
        elif earned and invoice.currency != self.currency:
            reversed_ = round(posted * net / earned)
            sums = {claim: carried, waits: -reversed_, EXCHANGE: reversed_ - carried}
        about = f"invoice {invoice.number} of {invoice.channel}"
        document = Document(at_us=at_us, about=about, account=claim, carried=carried, key=each.key)
        return document, self._entry(at_us, about, sums, each.key)

    def _covered(self, each: Known[ChannelInvoice]) -> tuple[Fraction, int]:
        """What the earnings of an invoice's time come to after fees: in its currency, and as accrued."""
        total, posted = Fraction(0), 0
        for earning in self.record.earnings:
            value: Earning = earning.value
            if value.channel != each.value.channel or value.currency != each.value.currency:
                continue
            if each.valid_from <= earning.valid_from < each.end and self.grid.holds(value.about):
                fee = self._fee(earning)
                total += number(value.amount) - fee
                posted += self._in_books(value.amount, value.currency, earning.valid_from, earning)
                posted -= self._in_books(fee, value.currency, earning.valid_from, earning)
        return total, posted

    def _fee(self, earning: Known[Earning]) -> Fraction:
        """What the channel keeps of an earning, as the statement has it."""
        value = earning.value
        if value.fee is not None:
            return number(value.fee)
        billed = any(
            bill.value.sort == "platform-fee"
            and bill.value.about == f"channel:{value.channel}"
            and bill.at(earning.valid_from)
            for bill in self.record.bills
        )
        if billed or value.component in ("credit", "own-use"):
            return Fraction(0)
        rate = term(self.record, f"channel:{value.channel}", "fee", earning.valid_from)
        return Fraction(0) if rate is None else number(value.amount) * rate.value

    def paid(self, known: Mapping[str, Document], matches: Sequence[Match]) -> Iterator[Entry]:
        """Lines of the bank, against the documents that each settles and ``Unmatched`` for the rest."""
        every = [share for match in matches for share in match.shares if share.claim.key in known]
        settled = _settled(every, known)
        for line in self.record.payments:
            value, at_us = line.value, line.valid_from
            if not self.grid.period.from_us <= at_us < self.grid.period.to_us:
                continue
            ours = [share for share in every if share.line.key == line.key]
            sums = {
                f"Assets:Bank:{self.names.of('bank', value.account)}": self._moved(
                    line, number(value.amount)
                )
            }
            rest = number(value.amount) - sum((share.took for share in ours), Fraction(0))
            _add(sums, UNMATCHED, -self._moved(line, rest))
            for share in ours:
                document = known[share.claim.key]
                _add(sums, document.account, -settled[share.claim.key, line.key])
                _add(sums, self._lost_to(share), -self._moved(line, share.on_the_way))
            exchanged = any(self.currency != i.currency for s in ours for i in (s.line, s.claim))
            _add(sums, EXCHANGE if exchanged else RESIDUE, -sum(sums.values()))
            text = ", ".join(f"{known[share.claim.key].about} paid" for share in ours)
            said = f"{value.counterparty} {value.text}".strip() or "a line of the bank"
            facts = [key for share in ours for key in (share.claim.fact, share.fact) if key]
            yield self._entry(at_us, text or said, sums, line.key, *dict.fromkeys(facts))

    def _moved(self, line: Known[BankLine], amount: Fraction) -> int:
        return self._in_books(amount, line.value.currency, line.valid_from, line)

    def _lost_to(self, share: Share) -> str:
        """Where what a payment lost on its way stands: a channel's charge is a cost that accrued."""
        if share.claim.less and share.on_the_way == -share.claim.less:
            return f"Assets:Accrued:{self.names.of('channel', share.claim.who)}"
        return UNMATCHED


def _add(sums: dict[str, int], account: str, amount: int) -> None:
    if amount:
        sums[account] = sums.get(account, 0) + amount


def _settled(shares: Sequence[Share], known: Mapping[str, Document]) -> dict[tuple[str, str], int]:
    """What each share takes off its document's account; those that pay it in full take all of it."""
    found: dict[tuple[str, str], int] = {}
    paid: dict[str, Fraction] = {}
    for share in sorted(shares, key=lambda each: (each.line.day_us, each.line.key)):
        key, carried, whole = share.claim.key, known[share.claim.key].carried, share.claim.amount
        before = paid.get(key, Fraction(0))
        paid[key] = before + share.amount
        taken = round(carried * paid[key] / whole) - round(carried * before / whole)
        found[key, share.line.key] = found.get((key, share.line.key), 0) + taken
    return found
