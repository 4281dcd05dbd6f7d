"""The page of a quote: the answer, the offers in order, and cost against time.

Decides which rows and pictures it has; every word and digit is the command's own.
"""

from __future__ import annotations

from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.time import SECOND
from ouvrage.console.frontier import Mark, scatter
from ouvrage.console.page import Drawing, Page, Row, Shown
from ouvrage.pricing.market.quote import Line, lines_of
from ouvrage.pricing.market.ranking import Ranked, Ranking, frontier
from ouvrage.pricing.market.ranking_text import (
    excluded_line,
    headline,
    open_lines,
    second_words,
    warnings,
)
from ouvrage.pricing.words import duration, ranged, rounded, shortened

_SHOWN = 8


def quote_page(ranking: Ranking, today: str) -> Page:
    """The page of a ranking."""
    said = headline(ranking, False)
    unable = excluded_line(ranking.excluded)
    return Page(
        title=f"{ranking.profile.unit}: what finishing it costs · Ouvrage",
        headline=said[0],
        lead=tuple(line.strip() for line in [*said[1:], *second_words(ranking)]),
        columns=("per hour", f"cost per {ranking.profile.unit}", "finished", "limited by", ""),
        rows=tuple(_row(each) for each in ranking.ranked),
        drawings=tuple(_drawings(ranking)),
        notes=(*([unable] if unable else []), *warnings(ranking, today)),
        about=tuple(
            _line_words(each, line)
            for each in ranking.ranked[:_SHOWN]
            for line in lines_of(each.quote)
        ),
        said="\n".join(said),
        as_of=today,
    )


def _row(each: Ranked) -> Row:
    quote = each.quote
    offer, per = quote.offer, quote.per_unit
    shown, span = ranged(per.likely, per.low, per.high, False)
    more = " + ?" if open_lines(each) else ""
    return Row(
        label=f"{shortened(offer.provider, 20)} {shortened(offer.name, 30)}",
        cells=(
            Shown(
                text=f"{rounded(quote.hour)} {offer.currency}",
                grade=Grade.LISTED,
                note=f"#{each.by_hour} by hour",
            ),
            Shown(text=f"{shown} {offer.currency}{more}", grade=quote.grade, note=span),
            Shown(text=duration(round(quote.finish_s.likely * SECOND)), grade=quote.carried.grade),
            Shown(text=quote.carried.bottleneck),
        ),
    )


def _drawings(ranking: Ranking) -> list[Drawing]:
    if not ranking.ranked:
        return []
    heading = f"Cost of one {ranking.profile.unit} against the time until all are finished"
    edge = {id(each) for each in frontier(ranking.ranked)}
    marks = [_mark(each, id(each) in edge, _worth(each)) for each in ranking.ranked]
    caption = (
        "Filled: no other offer is both cheaper and faster. The line behind a mark is its range."
    )
    return [
        Drawing(
            heading=heading,
            svg=scatter("frontier", heading, marks, ranking.profile.unit),
            caption=caption,
        )
    ]


def _worth(each: Ranked) -> Fraction:
    """What one of the offer's currency is worth in that of the ranking."""
    own = each.quote.per_unit.likely
    return each.cost / own if own else Fraction(1)


def _mark(each: Ranked, best: bool, worth: Fraction) -> Mark:
    quote = each.quote
    scale = float(worth)
    name = f"{quote.offer.provider} {quote.offer.name}"[:32]
    return Mark(
        name=name,
        seconds=float(quote.finish_s.likely),
        cost=float(each.cost),
        low=float(quote.per_unit.low) * scale,
        high=float(quote.per_unit.high) * scale,
        label=f"{name}: {rounded(each.cost)}, {duration(round(quote.finish_s.likely * SECOND))}",
        best=best,
    )


def _line_words(each: Ranked, line: Line) -> tuple[str, str]:
    currency = each.quote.offer.currency
    amount = "not known" if line.amount is None else f"{rounded(line.amount.likely)} {currency}"
    return (
        f"{shortened(each.quote.offer.name, 30)}: {line.name}",
        f"{amount} ({line.grade.word}): {line.rule}; {line.because}",
    )
