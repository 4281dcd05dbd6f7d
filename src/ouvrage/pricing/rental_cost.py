"""What a rental cost, and how much of it was paid for nothing.

Decides the figures of a rental: what was paid, for how long it worked and was held, and what each
of these cost. The parts add up to the whole, exactly. A rental's moments and price are somebody's
word: its times are ``reported`` and its costs ``assumed``; only what its runs took is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.evidence.figures import Figure, Sheet, known
from ouvrage.metering.rental_view import RentalTime, RentalView, Stay, rental_time
from ouvrage.pricing.summary import money, row
from ouvrage.pricing.words import duration, mark, percent, shortened

US = 1_000_000
HELD = ("before", "between", "after")
_HELD_WORDS = {
    "before": "before the first run: boot, download, setting up",
    "between": "between runs",
    "after": "after the last run",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalAccount:
    """A rental as known at ``as_of``, with the runs on it and its time divided.

    ``running`` are runs that have not ended; they count as working up to ``as_of``.
    """

    view: RentalView
    stays: tuple[Stay, ...]
    running: tuple[str, ...]
    time: RentalTime
    run_facts: tuple[str, ...]
    as_of: int

    def cost_of(self, us: int | Fraction) -> Fraction:
        """What a stretch of the rental costs, exactly."""
        return self.view.started.price.cost_of(us)


def account_of(
    view: RentalView,
    stays: Iterable[Stay],
    as_of: int,
    *,
    running: Sequence[str] = (),
    run_facts: Iterable[str] = (),
) -> RentalAccount:
    """The account of a rental up to ``as_of``, or to its end."""
    held = tuple(stays)
    return RentalAccount(
        view=view,
        stays=held,
        running=tuple(running),
        time=rental_time(view.started.started_us, view.until(as_of), held),
        run_facts=tuple(run_facts),
        as_of=as_of,
    )


def rental_sheet(account: RentalAccount) -> Sheet:
    """Every figure about a rental, named ``rental/CODE:PATH``."""
    figures = {figure.path: figure for figure in (*_times(account), *_costs(account))}
    return Sheet(object=f"rental/{account.view.code}", as_of=account.as_of, figures=figures)


def _times(account: RentalAccount) -> Iterable[Figure]:
    view, time = account.view, account.time
    how = "from its start to its end" if view.ended_us is not None else "from its start to now"
    yield known("paid_s", Fraction(time.paid_us, US), "s", view.grade, how, facts=view.keys)
    worked = weakest([stay.grade for stay in account.stays] or [view.grade])
    yield known(
        "working_s",
        Fraction(time.working_us, US),
        "s",
        worked,
        "time in which at least one run stood on the machine",
        facts=(*view.keys, *account.run_facts),
    )
    parts = {"before": time.before_us, "between": time.between_us, "after": time.after_us}
    both = weakest((worked, view.grade))
    inputs = ("paid_s", "working_s")
    for name, us in parts.items():
        words = f"paid for, and nothing ran, {_HELD_WORDS[name]}"
        yield known(f"held.{name}_s", Fraction(us, US), "s", both, words, inputs=inputs)
    words = "paid for, and nothing ran"
    yield known("held_s", Fraction(time.held_us, US), "s", both, words, inputs=inputs)


def _costs(account: RentalAccount) -> Iterable[Figure]:
    price, time = account.view.started.price, account.time
    grade = weakest((Grade.ASSUMED, account.view.grade))
    amount, unit = Fraction(Decimal(price.amount)), f"{price.currency}/{price.per}"
    start = account.view.keys[:1]
    typed = "as typed on the command line"
    yield known("price.amount", amount, unit, grade, typed, facts=start)
    rows = [
        ("cost.total", "paid_s", time.paid_us),
        ("cost.working", "working_s", time.working_us),
        ("cost.held", "held_s", time.held_us),
        ("cost.held_before", "held.before_s", time.before_us),
        ("cost.held_between", "held.between_s", time.between_us),
        ("cost.held_after", "held.after_s", time.after_us),
    ]
    for path, of, us in rows:
        inputs = ("price.amount", of)
        cost = account.cost_of(us)
        yield known(path, cost, price.currency, grade, f"price x {of}", inputs=inputs)


def rental_json(account: RentalAccount, codes: Mapping[str, str]) -> dict[str, Any]:
    """A rental as ``rental show --json`` prints it; ``codes`` are the runs' by id."""
    view, time, sheet = account.view, account.time, rental_sheet(account)
    price, ended = view.started.price, view.ended_us
    costs = ("total", "working", "held", "held_before", "held_between", "held_after")
    return {
        "rental": view.rental,
        "code": view.code,
        "label": view.started.label,
        "started": utc_text(view.started.started_us),
        "ended": None if ended is None else utc_text(ended),
        "price": {"amount": price.amount, "currency": price.currency, "per": price.per},
        "paid_s": _seconds(time.paid_us),
        "working_s": _seconds(time.working_us),
        "held_s": _seconds(time.held_us),
        "held": {name: _seconds(getattr(time, f"{name}_us")) for name in HELD},
        "cost": {name: decimal_text(sheet.number(f"cost.{name}") or 0) for name in costs},
        "grades": {name: _word(sheet[name]) for name in ("paid_s", "working_s", "cost.total")},
        "campaigns": list(view.campaigns),
        "runs": [
            {"run": run, "code": codes.get(run), "share_s": float(fixed(share / US, 6))}
            for run, share in time.shares.items()
        ],
        "running": list(account.running),
        "as_of": utc_text(account.as_of),
    }


def _seconds(us: int) -> float:
    return float(fixed(Fraction(us, US), 6))


def _word(figure: Figure) -> str | None:
    return None if figure.grade is None else figure.grade.word


def rental_text(account: RentalAccount, *, plain: bool) -> str:
    """A rental as a person reads it; the first line says what was paid for nothing."""
    view, time, sheet = account.view, account.time, rental_sheet(account)
    began, label = utc_text(view.started.started_us)[:19] + "Z", view.started.label
    if view.ended_us is not None:
        ended = f"{began} to {utc_text(view.ended_us)[:19]}Z"
    else:
        ended = f"since {began}, still paid for"
    lines = [
        _answer(account, sheet, plain),
        "",
        row("rental", f"{view.code}{'  ' + shortened(label, 40) if label else ''}"),
        row("paid", f"{duration(time.paid_us)}, {ended}{mark(sheet['paid_s'].grade, plain)}"),
        row("price", view.started.price.text() + mark(sheet["price.amount"].grade, plain)),
        row("working", _part(sheet, "working", time.working_us, plain) + _runs_words(account)),
    ]
    for name in HELD:
        us = getattr(time, f"{name}_us")
        if us:
            words = "nothing ran yet" if not account.stays else _HELD_WORDS[name]
            lines.append(row("held", f"{_part(sheet, f'held_{name}', us, plain)}   {words}"))
    if view.campaigns:
        lines.append(row("campaign", ", ".join(safe(name) for name in view.campaigns)))
    why = f"Why: ouvrage explain rental/{view.code}:cost.held"
    if view.ended_us is None:
        return "\n".join([*lines, "", f"Stop paying: ouvrage rental stop {view.code}      {why}"])
    return "\n".join([*lines, "", why])


def _answer(account: RentalAccount, sheet: Sheet, plain: bool) -> str:
    time, so_far = account.time, "" if account.view.ended_us is not None else " so far"
    total, held = (money(sheet, path, plain) for path in ("cost.total", "cost.held"))
    name = shortened(account.view.name, 40)
    if not time.paid_us:
        return f"{name} has cost nothing yet."
    if not time.held_us:
        return f"{name} cost {total}{so_far}, and worked all the time."
    share = percent(Fraction(time.held_us, time.paid_us))
    return f"{name} cost {total}{so_far}; {held} of it, {share}, while nothing ran."


def _part(sheet: Sheet, name: str, us: int, plain: bool) -> str:
    return f"{duration(us)}, {money(sheet, f'cost.{name}', plain)}"


def _runs_words(account: RentalAccount) -> str:
    many = len(account.time.shares)
    going = f", {len(account.running)} still going" if account.running else ""
    return f"   {many} run{'' if many == 1 else 's'}{going}"
