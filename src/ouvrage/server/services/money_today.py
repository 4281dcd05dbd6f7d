"""The money of today: what was charged, what runs, what the next hour costs, and whose balance is nearly used up.

Decides that today is a day of UTC, as bills are; that what is charged is counted when its time has ended, as in a statement; and that a
balance which does not last another day needs a person. Amounts of different currencies stand beside one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ouvrage.base.time import DAY, HOUR, utc_text
from ouvrage.books.dues.account import running_nano
from ouvrage.books.dues.budgets import period_at
from ouvrage.books.dues.lease import Lease, amount_text, burn_per_hour
from ouvrage.model.tenancy import Organisation
from ouvrage.server.authorise import is_owner_side, may
from ouvrage.server.context import Actor, Platform
from ouvrage.server.services.billing import ZONE, account, billed
from ouvrage.store.platform.dues import charged_by_org, charges_of_leases
from ouvrage.store.platform.selling import open_leases
from ouvrage.store.platform.tenancy import list_organisations
from ouvrage.store.transaction import Connection
from ouvrage.wire.work import MoneyTodayTold, Need

_EVERY = 1_000_000


def money_today(platform: Platform, actor: Actor) -> tuple[list[MoneyTodayTold] | None, list[Need]]:
    """The money that somebody may see, by currency (None: they may see none), and the balances that need a person."""
    now = platform.clock()
    with platform.reading() as connection:
        seen = [each for each in _organisations(connection, actor) if _sees(actor, each)]
        if not seen and not (is_owner_side(actor) and may(actor, "usage.read", org=None)):
            return None, []
        ours = {each.org for each in seen}
        rows = [row for row in open_leases(connection) if row.org in ours]
        going = billed(connection, rows)
        told = _by_currency(connection, seen, going, now)
        needs = list(_nearly_used_up(connection, seen, going, now))
    return told, needs


def _organisations(connection: Connection, actor: Actor) -> list[Organisation]:
    """Those whose money it is about: all tenants for the owner's side, for others their own."""
    if is_owner_side(actor):
        found = list_organisations(connection, within=None, after="", limit=_EVERY)
        return [each for each in found if each.side == "tenant"]
    own = {held.org for held in actor.memberships}
    return list_organisations(connection, within=own, after="", limit=_EVERY)


def _sees(actor: Actor, org: Organisation) -> bool:
    return may(actor, "usage.read", org=org.org)


def _by_currency(
    connection: Connection, orgs: Sequence[Organisation], going: Sequence[Lease], now_us: int
) -> list[MoneyTodayTold]:
    _, begins, _ = period_at("day", now_us, ZONE)
    charged = charged_by_org(connection, begins, now_us + 1)
    before = charges_of_leases(connection, [each.lease for each in going])
    found: list[MoneyTodayTold] = []
    for currency in sorted({each.currency for each in orgs}):
        ours = {each.org for each in orgs if each.currency == currency}
        leases = [each for each in going if each.org in ours]
        mine = {each.lease for each in leases}
        found.append(
            MoneyTodayTold(
                currency=currency,
                charged=amount_text(sum(charged.get(org, 0) for org in ours)),
                running=amount_text(
                    running_nano(leases, [c for c in before if c.value.lease in mine], now_us)
                ),
                burn_per_hour=amount_text(burn_per_hour(leases, now_us, HOUR)),
            )
        )
    return found


def _nearly_used_up(
    connection: Connection, orgs: Sequence[Organisation], going: Sequence[Lease], now_us: int
) -> Iterable[Need]:
    """Whose work will stop within a day for want of money, the first first."""
    busy = {each.org for each in going}
    accounts = [account(connection, each, now_us) for each in orgs if each.org in busy]
    ends = [(each.used_up_us, each.name) for each in accounts if each.used_up_us is not None]
    for at_us, name in sorted(ends):
        if at_us >= now_us + DAY:
            return
        why = "nothing is left to spend" if at_us <= now_us else f"lasts until {utc_text(at_us)}"
        yield Need(what="balance", name=name, why=why, since_us=None, page=f"/money?org={name}")
