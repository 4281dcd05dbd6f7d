"""``ouvrage rates``: billing rules as plans, and what usage costs under them.

Decides how a bill and a plan are laid out for a person. What a usage costs is decided by
``pricing.rates``; only ``--record`` opens the store, and nothing else is written.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from ouvrage.adapters.rate_files import load_plan, load_usage, shipped_names
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.pricing.rates.bill import Bill, Charge
from ouvrage.pricing.rates.plan import GIVEN, Plan
from ouvrage.pricing.rates.quantity import Rate, money_text, parse_rate
from ouvrage.pricing.rates.rating import apply_plan
from ouvrage.pricing.rates.record import fact_of_bill
from ouvrage.pricing.rates.show import (
    confidence_words,
    doubtful,
    plan_json,
    plan_text,
    summary_json,
)
from ouvrage.pricing.rates.usage import Usage
from ouvrage.pricing.words import mark


@click.group()
def rates() -> None:
    """Billing rules as dated plans: what does this usage cost under them?

    \b
    Begin:  ouvrage rates list
    Then:   ouvrage rates apply per-minute-up --rate 2.52/h --usage USAGE.csv
    """


@rates.command()
@click.argument("plan", metavar="PLAN")
@click.option(
    "--usage",
    "usage_file",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="CSV with the columns resource,event,at,quantity,unit.",
)
@click.option(
    "--rate",
    "given",
    metavar="RATE",
    multiple=True,
    help="A price that the plan leaves open: 2.52/h, or NAME=0.10/GB-month.",
)
@click.option("--currency", metavar="CODE", help="The currency of a rate that names none (EUR).")
@click.option("--record", is_flag=True, help="Keep the bill in the ledger, where verify checks it.")
@click.option("--until", metavar="TIME", help="Where to end what still runs after the last row.")
@json_option
@plain_option
def apply(
    plan: str,
    usage_file: Path,
    given: tuple[str, ...],
    currency: str | None,
    record: bool,
    until: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """What usage costs under a plan.

    Every charge is shown with the rule that made it. PLAN is the name of a shipped plan or a TOML file. Events are requested, created, active,
    healthy, stopped, started, terminated; any other event is a quantity, such as egress in GB.
    """
    used_plan, usage = load_plan(plan), load_usage(usage_file)
    bill = apply_plan(
        used_plan,
        usage,
        _rates(given),
        currency=_currency(currency),
        until=None if until is None else moment(until),
    )
    kept = _kept(bill, used_plan, usage) if record else None
    if as_json:
        say_json({**bill.as_json(), "kept": kept} if record else bill.as_json())
        return
    say_text(printable_lines(bill_text(bill, plain)))
    if kept:
        say_text(f"Kept as {kept}; ouvrage verify adds it up again.")


def _kept(bill: Bill, plan: Plan, usage: Usage) -> str:
    """Keep a bill in the ledger; the id of the fact. The same bill again is the same fact."""
    from ouvrage.adapters.clock import now_us
    from ouvrage.adapters.home import source_id
    from ouvrage.cli.ledger import opened

    with opened() as ledger:
        source = source_id(ledger.home)
        fact = fact_of_bill(bill, plan, usage, source=source)
        ledger.store.append([fact], now_us=now_us(), own_source=source)
    return fact.id


def _currency(text: str | None) -> str | None:
    if text is not None and not (len(text) == 3 and text.isalpha() and text.isupper()):
        raise OuvrageError(
            "price/currency", f"{text!r} is not a currency code", hint="write it as --currency EUR"
        )
    return text


def _rates(given: tuple[str, ...]) -> dict[str, Rate]:
    """The rates of ``--rate``, by the names that plans use for them."""
    found: dict[str, Rate] = {}
    for text in given:
        name, named, value = text.rpartition("=")
        key = name.strip() if named else GIVEN
        if key in found:
            raise OuvrageError("rate/twice", f"--rate {key} is given twice", hint="give it once")
        try:
            found[key] = parse_rate(value)
        except ValueError as error:
            raise OuvrageError(
                "rate/unreadable", f"{text!r} is not {error}", hint="write it as --rate 2.52/h"
            ) from error
    return found


@rates.command(name="list")
@json_option
def list_plans(as_json: bool) -> None:
    """The shipped plans.

    Since when they hold, and how many of their fields are not verified.
    """
    plans = [load_plan(name) for name in shipped_names()]
    if as_json:
        say_json({"plans": [summary_json(plan) for plan in plans]})
        return
    say_text(
        table(("plan", "what", "since", "not verified"), [_row(plan) for plan in plans], "<<<<")
    )
    say_text("\nOne of them, with its sources: ouvrage rates show PLAN")


def _row(plan: Plan) -> tuple[str, ...]:
    words = confidence_words(plan)
    return (
        plan.name,
        shortened(plan.title, 58),
        plan.versions[-1].period.partition(" …")[0],
        "–" if words == "verified" else words,
    )


@rates.command()
@click.argument("plan", metavar="PLAN")
@json_option
def show(plan: str, as_json: bool) -> None:
    """One plan in words.

    Its rules, its sources, and what is not verified.
    """
    found = load_plan(plan)
    if as_json:
        say_json(plan_json(found))
        return
    say_text(printable_lines(plan_text(found)))


@rates.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@json_option
def check(files: tuple[str, ...], as_json: bool) -> None:
    """Whether plans can be used as they stand.

    Their form, dates that meet, and who vouches for what. Nothing is changed.
    """
    plans = [load_plan(name if "/" in name else f"./{name}") for name in files]
    if as_json:
        say_json({"plans": [summary_json(plan) for plan in plans]})
        return
    for plan in plans:
        rules = sum(len(version.rules) for version in plan.versions)
        say_text(
            printable_lines(
                f"{plan.file} can be used: {plan.name}, versions: {len(plan.versions)}, rules: {rules}"
            )
        )
        for cell in doubtful(plan):
            source = "no source" if cell.source is None else cell.source
            say_text(printable_lines(f"  {cell.confidence}: {cell.words} ({source})"))


def printable_lines(text: str) -> str:
    """Every line made safe for a terminal."""
    return "\n".join(safe(line) for line in text.split("\n"))


_BELOW = {"stops": "what runs is stopped before zero", "accrues": "charges go on below zero"}
_HEAD = ("resource", "rule", "from (UTC)", "quantity", "price", "amount")


def bill_text(bill: Bill, plain: bool) -> str:
    """A bill for a person: the total first, then each charge with its reason."""
    lines = [f"{_money(bill.total)} {bill.currency}{mark(bill.grade, plain)} under {bill.plan}"]
    lines += _tax_lines(bill)
    rows = [_charge_row(charge, bill, plain) for charge in bill.charges]
    drawn = table(_HEAD, rows, "<<<>>>").split("\n") if rows else ["", "no charges"]
    lines += ["", f"  {drawn[0]}"]
    for charge, line in zip(bill.charges, drawn[1:], strict=bool(rows)):
        lines += [f"  {line}", f"      {charge.because}"]
    doubts = {
        f"{c.rule} ({c.confidence})": None for c in bill.charges if c.confidence != "verified"
    }
    if doubts:
        lines.append(f"rules with fields that are not verified: {', '.join(doubts)}")
    for each in bill.unrated:
        lines.append(f"not rated: {each.resource}: {each.reason}")
    if bill.balance:
        lines.append(
            f"prepaid: {_money(bill.balance.deposited)} less these charges leaves "
            f"{_money(bill.balance.left)} ({_BELOW[bill.balance.negative]})"
        )
        if bill.balance.spent_at is not None:
            at = utc_text(bill.balance.spent_at)
            lines.append(f"the balance was used up at {at}; by the plan the charges go on")
    lines += [f"balance: {stop.words}" for stop in bill.stops]
    lines += [each.words for each in bill.not_run]
    lines += [f"note: {note}" for note in bill.notes]
    return "\n".join([*lines, "", f"The rules and their sources: ouvrage rates show {bill.plan}"])


def _tax_lines(bill: Bill) -> list[str]:
    words = {
        "excluded": "tax is not included" if bill.tax.rate is None else "tax is added below",
        "included": "tax is included",
        "none": "no tax is charged",
        "unknown": "whether tax is included is not known",
    }
    return [f"  {words[bill.tax.status]}"]


def _charge_row(charge: Charge, bill: Bill, plain: bool) -> tuple[str, ...]:
    value = charge.as_json(bill.currency)
    return (
        shortened(charge.resource or "–", 24),
        charge.rule if charge.kind in ("usage", charge.rule) else f"{charge.rule}, {charge.kind}",
        value["from"][:19].replace("T", " "),
        f"{_short(value['quantity'])} {charge.unit}".strip() if charge.unit else "–",
        value["price"] or "–",
        f"{_short(value['amount'])}{mark(charge.grade, plain)}",
    )


def _money(amount: Fraction) -> str:
    return _short(money_text(amount))


def _short(text: str) -> str:
    """Digits that end stay; of those that do not, six decimals are enough to read."""
    whole, point, decimals = text.partition(".")
    return text if len(decimals) <= 12 else f"{whole}{point}{decimals[:6]}…"
