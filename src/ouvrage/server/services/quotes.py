"""Where else a job's work could be done, and what a finished unit of it would cost there.

Decides whose work may be quoted (whoever may read the job) and from which offers: those of the store's market, else the few that come
with the package. The ranking is ``pricing.market``'s, the same as that of ``ouvrage quote``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.adapters.market_terms import Billings, starter
from ouvrage.base.time import utc_text
from ouvrage.metering.run_view import run_views
from ouvrage.pricing.market.lots import Lot, unpacked
from ouvrage.pricing.market.ranking import Ranker, Ranking
from ouvrage.pricing.market.run_profile import profile_of_run
from ouvrage.pricing.unit_cost import sheet_of
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict
from ouvrage.server.services.jobs import readable
from ouvrage.store.market_table import current_market
from ouvrage.store.platform.work import last_attempts

TOP = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A ranking, the day on which it was made, and whether the offers are only the package's own."""

    ranking: Ranking
    today: str
    starter: bool


def of_job(platform: Platform, actor: Actor, name: str, units: int | None) -> Quoted:
    """The offers ranked by what a unit of a job's last metered attempt would cost on them."""
    with platform.reading() as connection:
        job = readable(connection, actor, name)
        last = last_attempts(connection, [job.job]).get(job.job)
    records = platform.store.records(subject=last.attempt) if last else []
    view = run_views(records).get(last.attempt) if last else None
    profile = None
    if view is not None:
        moment = max(each.recorded_at for each in records)
        profile = profile_of_run(view, sheet_of(view, moment), gpu=None)
    if profile is None:
        raise conflict(
            "quote/untimed",
            "no unit of this job was timed yet, so its work cannot be quoted",
            hint="let it finish a few units; --unit says what one is",
        )
    today = utc_text(platform.clock())[:10]
    lots, packaged = _offers(platform)
    currency = _common([lot for lot in lots if lot.offer.currency])
    usable = [lot for lot in lots if lot.offer.currency == currency]
    ranker = Ranker(
        profile=replace(profile, units=Fraction(units) if units else profile.units),
        currency=currency,
        billing=Billings(),
        rates={},
        stated={},
        screen=None,
    )
    return Quoted(ranking=ranker.rank(usable, TOP), today=today, starter=packaged)


def _offers(platform: Platform) -> tuple[Sequence[Lot], bool]:
    market = current_market(platform.store)
    lots = [lot for text in market.catalogues.values() for lot in unpacked(text)]
    return (lots, False) if lots else (starter(), True)


def _common(lots: Sequence[Lot]) -> str:
    counts = Counter(lot.offer.currency for lot in lots)
    return max(sorted(counts), key=lambda code: counts[code]) if counts else "EUR"
