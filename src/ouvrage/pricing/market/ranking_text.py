"""A ranking in words and as a JSON value: the answer first, the cheapest hour beside it, why not.

Decides words and digits only; nothing is computed here that the ranking does not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND
from ouvrage.model.offers import ExchangeRate, MarketOffer
from ouvrage.pricing.market.listed import STALE_DAYS
from ouvrage.pricing.market.promises import promised
from ouvrage.pricing.market.quote import lines_of, span_json
from ouvrage.pricing.market.ranking import (
    Effects,
    Excluded,
    Ranked,
    Ranking,
    effects,
    frontier,
    would_win,
)
from ouvrage.pricing.market.scaling import Span, slowed_by
from ouvrage.pricing.words import (
    counted,
    duration,
    mark,
    percent,
    plural,
    ranged,
    rounded,
    shortened,
)

Row = tuple[str, ...]
HEAD = ("#", "offer", "per hour", "cost / {unit}", "finished", "limited by", "grade", "# by hour")


def seconds_number(seconds: Fraction) -> float | int:
    """Seconds as reports print them: a number with at most six decimals."""
    value = round(seconds, 6)
    return int(value) if value.denominator == 1 else float(value)


def headline(ranking: Ranking, plain: bool) -> list[str]:
    """The answer, and what the cheapest hour would have cost."""
    if not ranking.ranked:
        return ["No offer can do this work."]
    best = ranking.ranked[0]
    quote = best.quote
    offer = quote.offer
    total = quote.total
    shown, span = ranged(total.likely, total.low, total.high, plain)
    each, each_span = ranged(quote.per_unit.likely, quote.per_unit.low, quote.per_unit.high, plain)
    named = offer.name.replace(" ", "").lower()
    gpu = f", {safe(offer.gpu)}" if offer.gpu and offer.gpu.lower() not in named else ""
    many = _work_words(ranking)
    grade = mark(quote.grade, plain)
    more = " + ?" if open_lines(best) else ""
    if ranking.profile.units is None:
        answer = f"{each} {offer.currency}{grade}{_bracket(each_span)}{more}, {_took(quote.finish_s.likely)}"
    else:
        answer = f"{shown} {offer.currency}{grade}{_bracket(span)}{more}, in {_took(quote.finish_s.likely)}"
    where = f"{safe(offer.provider)}, {shortened(offer.name, 40)}{gpu}"
    return [f"Cheapest way to finish {many}: {where}, {answer}", *_hour_lines(ranking)]


def _work_words(ranking: Ranking) -> str:
    units = ranking.profile.units
    if units is None:
        return f"one more {safe(ranking.profile.unit)}"
    number = int(units) if units.denominator == 1 else decimal_text(units)
    return (
        counted(number, ranking.profile.unit)
        if isinstance(number, int)
        else f"{number} {plural(safe(ranking.profile.unit))}"
    )


def _bracket(span: str) -> str:
    return f" ({span})" if span else ""


def _took(seconds: Fraction) -> str:
    return duration(round(seconds * SECOND))


def _hour_lines(ranking: Ranking) -> list[str]:
    """That the cheapest hour is not the cheapest way, and why; or that it is."""
    best, hour = ranking.ranked[0], ranking.cheapest_hour
    if hour is None or ranking.able < 2:
        return []
    if best.by_hour == 1:
        return ["  It is also the cheapest hour."]
    offer = hour.quote.offer
    price = f"{rounded(hour.hour)} {ranking.currency}/h"
    cost = f"{rounded(hour.cost * hour.quote.units)} {ranking.currency}"
    why = effects(hour, best)
    reason = "" if why is None else f": {effect_words(why, hour, best)}"
    return [f"  The cheapest hour ({safe(offer.provider)}, {price}) would cost {cost}{reason}."]


def effect_words(why: Effects, slower: Ranked, faster: Ranked) -> str:
    """Why the one costs more than the other although its hour is cheaper."""
    said = []
    if why.time > 1:
        on = slower.quote.profile.on
        part = slowed_by(slower.quote.carried, faster.quote.carried, on)
        starved = " and starves its GPU" if part in ("CPU", "disk") and on.gpus != 0 else ""
        by = f", since its {part} is the lesser{starved}" if part else ""
        said.append(f"each unit takes {rounded(why.time)} times as long{by}")
    if why.waste > 1:
        idle = 1 - slower.quote.likely.busy
        said.append(f"{percent(idle)} of the paid hours finish nothing")
    if why.beside > 1:
        said.append(f"storage, traffic and tax make it {rounded(why.beside)} times as much")
    return " and ".join(said) or "its hour is not cheap enough"


def rows(ranking: Ranking, plain: bool) -> list[Row]:
    """The table: one row for each ranked offer."""
    return [
        _row(place, each, ranking.currency, plain) for place, each in enumerate(ranking.ranked, 1)
    ]


def _row(place: int, each: Ranked, currency: str, plain: bool) -> Row:
    """One offer; its cost stands in the currency in which all are compared."""
    quote = each.quote
    offer = quote.offer
    per = quote.per_unit
    rate = each.cost / per.likely if per.likely else Fraction(1)
    shown, span = ranged(each.cost, per.low * rate, per.high * rate, plain)
    foreign = f" {currency}" if offer.currency != currency else ""
    return (
        str(place),
        f"{shortened(offer.provider, 14)}  {shortened(offer.name, 34)}",
        f"{rounded(quote.hour)} {offer.currency}{mark(Grade.LISTED, plain)}",
        f"{shown}{foreign}{_bracket(span)}{' + ?' if open_lines(each) else ''}",
        _took(quote.finish_s.likely),
        quote.carried.bottleneck,
        f"{mark(quote.grade, plain).strip()} time {mark(quote.carried.grade, plain).strip()}",
        str(each.by_hour),
    )


def open_lines(each: Ranked) -> list[str]:
    """Lines without a price that may set offers apart; tax is told beside all of them."""
    return [name for name in each.quote.not_counted if name != "tax"]


def _open_words(ranking: Ranking) -> list[str]:
    """What ``+ ?`` stands for in the table."""
    counts = Counter(name for each in ranking.ranked for name in open_lines(each))
    words = ", ".join(f"{name} ({counted(many, 'offer')})" for name, many in counts.items())
    more = "+ ? costs more than is shown, and may belong lower: no price is stated of "
    return [more + words] if words else []


def second_words(ranking: Ranking) -> list[str]:
    """What would have to be true for the second to win, and both effects between the two."""
    if len(ranking.ranked) < 2:
        return []
    first, second = ranking.ranked[:2]
    won = would_win(first, second)
    name = f"{safe(second.quote.offer.provider)}, {shortened(second.quote.offer.name, 40)}"
    unit, currency = safe(ranking.profile.unit), second.quote.offer.currency
    said = []
    if won.hour is not None:
        said.append(f"its hour cost less than {rounded(won.hour)} {currency}")
    if won.unit_s is not None:
        said.append(f"its {unit} took less than {rounded(won.unit_s)} s")
    if won.first_s is not None:
        said.append(f"the first's took more than {rounded(won.first_s)} s")
    lines = [f"The second ({name}) would win if {', or '.join(said)}."] if said else []
    return lines + _effects_lines(effects(first, second), unit)


def _effects_lines(why: Effects | None, unit: str) -> list[str]:
    if why is None:
        return []
    return [
        f"First against second: hour {_times(why.price)}, time of one {unit} {_times(why.time)}, "
        f"paid hours without work {_times(why.waste)}, the rest {_times(why.beside)}: "
        f"cost {_times(why.whole)}."
    ]


def _times(value: Fraction) -> str:
    return f"× {rounded(value)}"


def excluded_line(excluded: Sequence[Excluded]) -> str | None:
    """``not able: 212 offers (memory 140, deadline 61, unknown GPU 11)``."""
    if not excluded:
        return None
    counts: Counter[str] = Counter()
    for each in excluded:
        counts[each.why] += len(each.lot)
    words = ", ".join(f"{why} {count}" for why, count in counts.most_common())
    many = counts.total()
    return f"not able: {many} offer{'s' if many != 1 else ''} ({words})"


def warnings(ranking: Ranking, today: str) -> list[str]:
    """What a buyer should know before counting on the first of these."""
    if not ranking.ranked:
        return []
    best = ranking.ranked[0]
    offer = best.quote.offer
    said = []
    age = best.listed.age_days(today)
    if age > STALE_DAYS:
        said.append(f"the price of the first was last seen {age} days ago")
    if offer.counterparty is None or offer.terms is None:
        said.append("the first names no counterparty or no terms: nobody is bound by its price")
    said += _open_words(ranking)
    lines = lines_of(best.quote)
    said += [f"tax {line.because}" for line in lines if line.name == "tax" and line.quantity]
    missing = [line for line in lines if line.amount is None]
    said += [f"not counted, {line.name}: {line.because}" for line in missing]
    if best.quote.carried.scaled:
        parts = "; ".join(f"{term.key}: {term.because}" for term in best.quote.carried.terms)
        said.append(f"the time of the first is {best.quote.carried.said_by}, a model: {parts}")
    said += [
        f"not known of {safe(who)}: {each}"
        for who, asked in ranking.questions.items()
        for each in asked
    ]
    return [*said, *ranking.notes, *ranking.profile.notes, *map(rate_words, ranking.rates)]


def rate_words(rate: ExchangeRate) -> str:
    """A rate of exchange with its day and who says it."""
    return (
        f"1 {rate.base} is taken as {rate.rate} {rate.quote}, as {rate.said_by} says of {rate.day}"
    )


def ranking_json(ranking: Ranking, today: str) -> dict[str, Any]:
    """The ranking as ``--json`` prints it."""
    edge = {id(each) for each in frontier(ranking.ranked)}
    return {
        "unit": ranking.profile.unit,
        "units": None if ranking.profile.units is None else decimal_text(ranking.profile.units),
        "currency": ranking.currency,
        "able": ranking.able,
        "ranked": [
            {
                **_ranked_json(each, today, id(each) in edge),
                "questions": list(ranking.questions.get(each.quote.offer.provider, ())),
            }
            for each in ranking.ranked
        ],
        "second_wins_if": _second_json(ranking),
        "cheapest_hour": None
        if ranking.cheapest_hour is None
        else _ranked_json(ranking.cheapest_hour, today, None),
        "excluded": [
            {"offer": e.lot.offer.name, "why": e.why, "reason": e.reason, **_who(each.offer)}
            for e in ranking.excluded
            for each in e.lot.each()
        ],
        "rates": [rate_words(each) for each in ranking.rates],
        "notes": warnings(ranking, today),
    }


def _who(offer: MarketOffer) -> dict[str, str]:
    return {"provider": offer.provider, "key": offer.key, "catalogue": offer.catalogue}


def _ranked_json(each: Ranked, today: str, on_frontier: bool | None) -> dict[str, Any]:
    quote = each.quote
    offer = quote.offer
    finish = quote.finish_s
    return {
        "offer": offer.name,
        **_who(offer),
        "gpu": offer.gpu,
        "gpus": offer.gpus,
        "vcpus": offer.vcpus,
        "memory_gib": None
        if offer.memory_mib is None
        else decimal_text(Fraction(offer.memory_mib, 1024)),
        "price_per_hour": decimal_text(quote.hour),
        "currency": offer.currency,
        "cost_per_unit": span_json(quote.per_unit),
        "cost": span_json(quote.total),
        "not_counted": list(quote.not_counted),
        "cost_per_unit_compared": decimal_text(each.cost),
        "time_s": seconds_number(finish.likely),
        "time_s_range": {"low": seconds_number(finish.low), "high": seconds_number(finish.high)},
        "unit_s": _seconds_json(quote.carried.seconds),
        "time_grade": quote.carried.grade.word,
        "time_from": quote.carried.said_by,
        "terms": [
            {"key": t.key, "seconds": _seconds_json(t.seconds), "because": t.because}
            for t in quote.carried.terms
        ],
        "bottleneck": quote.carried.bottleneck,
        "busy_share": float(round(quote.likely.busy, 6)),
        "rank_by_hour": each.by_hour,
        "on_frontier": on_frontier,
        "grade": quote.grade.word,
        "plan": quote.billing.plan,
        "bills": quote.billing.words,
        "counterparty": offer.counterparty,
        "terms_document": offer.terms,
        "seen_on": each.listed.seen_on,
        "age_days": each.listed.age_days(today),
        "fact": each.listed.fact,
        "promises": [asdict(said) for said in promised(offer)],
        "lines": [line.as_json() for line in lines_of(quote)],
    }


def _seconds_json(span: Span) -> dict[str, float | int]:
    return {name: seconds_number(getattr(span, name)) for name in ("low", "likely", "high")}


def _second_json(ranking: Ranking) -> dict[str, Any] | None:
    if len(ranking.ranked) < 2:
        return None
    first, second = ranking.ranked[:2]
    won, why = would_win(first, second), effects(first, second)
    return {
        "price_per_hour_below": None if won.hour is None else decimal_text(won.hour),
        "unit_s_below": None if won.unit_s is None else seconds_number(won.unit_s),
        "first_unit_s_above": None if won.first_s is None else seconds_number(won.first_s),
        "effects": None
        if why is None
        else {
            "price": float(round(why.price, 6)),
            "finishing_faster": float(round(why.time, 6)),
            "fewer_paid_hours": float(round(why.waste, 6)),
            "beside": float(round(why.beside, 6)),
            "cost": float(round(why.whole, 6)),
        },
    }
