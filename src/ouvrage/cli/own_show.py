"""``ouvrage own show`` and ``withdraw``: what is stated so far, and taking back what never was so.

Decides how each statement is named: as it is withdrawn, so that the list is the way to correct it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.books.period import day_of
from ouvrage.books.record import Known
from ouvrage.cli.booking import withdrawal
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.cli.own_context import Owning, owning
from ouvrage.model.records import Withdrawal
from ouvrage.pricing.words import mark


@click.command("withdraw")
@click.argument("what", metavar="WHAT")
@click.option("--why", metavar="TEXT", required=True, help="Why it never was so.")
@json_option
def withdraw(what: str, why: str, as_json: bool) -> None:
    """Take back a statement that never was so, such as lease/spring or asset/node-1."""
    natural = what if what.startswith("own/") else f"own/{what}"
    with owning(None) as here:
        source, now = source_id(here.ledger.home), now_us()
        gone = {e.fact.corrects for e in here.books.records if e.fact.kind == Withdrawal.KIND}
        ours = [
            entry.fact
            for entry in here.books.records
            if entry.fact.source == source
            and entry.fact.id.rpartition("/")[0] == natural
            and entry.fact.key not in gone
        ]
        if not ours:
            raise OuvrageError(
                "own/unknown", f"nothing is stated as {what!r}", hint="ouvrage own show"
            )
        facts = [withdrawal(why, fact, source, now) for fact in ours]
        here.ledger.store.append(facts, now_us=now, own_source=source)
    if as_json:
        say_json({"natural": natural, "result": "withdrawn"})
    else:
        say_text(f"{safe(what)}: withdrawn.\nWhat is stated so far: ouvrage own show")


@click.command("show")
@click.option("--site", metavar="NAME", help="Whose, where there are several sites.")
@json_option
@plain_option
def show(site: str | None, as_json: bool, plain: bool) -> None:
    """Everything stated about a site so far, and how to correct it."""
    with owning(site) as here:
        rows = list(_stated_rows(here))
    if as_json:
        say_json({"site": here.place.site, "currency": here.place.currency, "zone": here.place.zone,
                  "stated": [{"what": what, "says": says, "from": when, "grade": grade.word, "by": by}
                             for what, says, when, grade, by in rows]})  # fmt: skip
        return
    said = sum(1 for row in rows if row[3] != Grade.ASSUMED)
    lines = [
        f"{here.place.site}, books in {here.place.currency} by the clock of {here.place.zone}: "
        f"{len(rows)} statements, {len(rows) - said} of them assumed.",
        "",
        table(
            ("what", "says", "from", "by"),
            [
                (safe(what), safe(says) + mark(grade, plain), when, safe(by))
                for what, says, when, grade, by in rows
            ],
            "<<<<",
        ),
        "",
        "State one anew to correct it; take one back: ouvrage own withdraw WHAT --why TEXT",
    ]
    say_text("\n".join(lines))


Row = tuple[str, str, str, Grade, str]


def _stated_rows(here: Owning) -> Iterator[Row]:
    """A row for each statement: what, what it says, from when, its grade, who says it."""
    ends = _Dated(here.place.zone)
    for known, what, says in _statements(here, ends):
        _, own, natural = known.key.partition("/own/")
        what = natural.rpartition("/")[0] if own else what  # as it is withdrawn
        yield what, says, ends.day(known.valid_from), known.grade, known.said_by


@dataclass(frozen=True, slots=True)
class _Dated:
    """Days by the clock of a site."""

    zone: str

    def day(self, at_us: int) -> str:
        """The day of a moment."""
        return f"{day_of(at_us, self.zone)}"

    def until(self, known: Known[Any]) -> str:
        """`` until 2026-05-01``, or nothing where no end is known."""
        return "" if known.valid_to is None else f" until {self.day(known.valid_to)}"


def _statements(here: Owning, ends: _Dated) -> Iterator[tuple[Known[Any], str, str]]:
    record = here.record
    for node in record.nodes:
        if node.value.site == here.place.site:
            yield node, f"node/{node.value.node}", f"in service{ends.until(node)}"
    for placed in record.devices:
        value, model = placed.value, placed.value.model or "a GPU"
        says = f"{model} in {value.node}{ends.until(placed)}"
        yield placed, f"device/{value.device}/{value.node}", says
    for (about, name), terms in sorted(record.terms.items()):
        for each in terms:
            unit = "" if each.value.unit == "1" else f" {each.value.unit}"
            yield each, f"term/{about}/{name}", f"{each.value.value}{unit}"
    yield from _bought(here)
    for sheet in record.tariffs:
        value, since = sheet.value, ends.day(sheet.valid_from)
        says = f"{len(value.bands)} bands, {value.currency} by the clock of {value.zone}{ends.until(sheet)}"
        yield sheet, f"tariff/{value.site}/{value.name}/{since}", says
    for plan in record.plans:
        hours = sum((Fraction(sale.hours) for sale in plan.value.sales), Fraction(0))
        says = f"version {plan.value.number}, {fixed(hours, 1)} h sold{ends.until(plan)}"
        yield plan, f"plan/{plan.value.about}", says
    for held in record.leases:
        lease = held.value
        price = f"{lease.price} {lease.currency}/h{ends.until(held)}"
        says = f"{lease.count} of {lease.about} to {lease.tenant} at {price}"
        yield held, f"lease/{lease.lease}", says


def _bought(here: Owning) -> Iterator[tuple[Known[Any], str, str]]:
    record = here.record
    for part in record.assets:
        asset = part.value
        life = f"{asset.life_months} months" if asset.life_months else asset.method
        says = f"{asset.price} {asset.currency} for {asset.about}, {life}"
        yield part, f"asset/{asset.asset}", says
    for each in record.asset_parts:
        named = ", ".join((*each.value.serials, *each.value.slots)) or "the whole of it"
        by = f" from {each.value.supplier}" if each.value.supplier else ""
        yield each, f"part/{each.value.asset}", f"{named}{by}"
    for gone in record.retirements:
        yield gone, f"retire/{gone.value.asset}", f"left use, {gone.value.why}"
    for lent in record.loans:
        loan = lent.value
        says = (
            f"{loan.principal} {loan.currency} at {loan.rate_per_year} a year, {loan.months} months"
        )
        yield lent, f"loan/{loan.loan}", says
