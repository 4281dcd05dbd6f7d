"""``ouvrage quote verify``: what was quoted against what was delivered, timed and billed.

Decides how a kept quote is read back from its JSON and which of its offers is meant; what was kept is
decided by ``pricing.market.invoice``.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.bills import Bill, load_bill
from ouvrage.adapters.catalogues.rows import number_in
from ouvrage.adapters.json_text import load_json
from ouvrage.adapters.rate_files import load_plan, shipped_names
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.base.text import safe
from ouvrage.cli.host_book import host_checks
from ouvrage.cli.ledger import Assessed, Ledger, known_runs, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.model.hosts import HostPromise, HostReading
from ouvrage.pricing.market.billing import Billing, billing_of_plan, with_rivals
from ouvrage.pricing.market.host_checks import run_readings
from ouvrage.pricing.market.host_text import readings_in
from ouvrage.pricing.market.invoice import Done, Finding, Promise, findings, kept
from ouvrage.pricing.market.promises import NAMED, in_order, promise
from ouvrage.pricing.words import mark


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--quote",
    "quote_file",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The quote, as `ouvrage quote --json` printed it.",
)
@click.option("--offer", metavar="NAME", help="Which of its offers was taken (the first).")
@click.option(
    "--invoice",
    "invoice_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The provider's bill: FOCUS CSV, Vast.ai charges JSON, or plain CSV.",
)
@click.option(
    "--host",
    "host_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A check of the run's host, as `ouvrage host check --json` printed it there.",
)
@json_option
@plain_option
def verify(
    run: str,
    quote_file: Path,
    offer: str | None,
    invoice_file: Path | None,
    host_file: Path | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Was the quote kept?

    The host that was delivered, as RUN and the last `host check` of its machine saw it, the time and the cost
    of a unit, and the provider's bill line by line against what the rules say it should be. The exit
    code is 1 where something was not kept, or the bill could not be compared.
    """
    promise = promise_in(quote_file, offer)
    bill = None if invoice_file is None else load_bill(invoice_file)
    given = None if host_file is None else checked_in(host_file)
    with opened() as ledger:
        (found,) = ledger.assessed(known_runs(ledger, [run], None))
        checked = given or last_check(ledger, found.view)
    compared = findings(
        promise, _done(found, checked), _billing(promise.plan), None if bill is None else bill.lines
    )
    ok = kept(compared)
    if bill is not None and bill.faults and ok:
        ok = None
    if as_json:
        say_json(_json(promise, compared, bill, ok))
    else:
        say_text("\n".join(safe(line) for line in _lines(promise, compared, bill, ok, plain)))
    return 0 if ok else 1


def _billing(name: str | None) -> Billing:
    """How the quoted plan bills, with the readings that contradict it."""
    plan = None if name is None else load_plan(name)
    rivals = () if plan is None else map(load_plan, plan.conflicts_with)
    return with_rivals(billing_of_plan(plan), rivals)


Checked = tuple[int, tuple[HostReading, ...]]
"""When a host was checked, and what was read."""


def checked_in(file: Path) -> Checked:
    """The check of a host that a file keeps."""
    return readings_in(load_json(str(file), read_text(file, "host"), "host/json"), str(file))


def last_check(ledger: Ledger, view: RunView) -> Checked | None:
    """The last check of a run's machine before the run ended, else the first after it."""
    ended = view.started.started_us + view.wall_us
    found = [each for each in host_checks(ledger) if each.machine == view.source]
    before = [each for each in found if each.started_us <= ended]
    chosen = before[-1] if before else next(iter(found), None)
    return None if chosen is None else (chosen.started_us, chosen.readings)


def _done(found: Assessed, checked: Checked | None) -> Done:
    view = found.view
    reckoning = reckon(view)
    return Done(
        code=view.code,
        unit=reckoning.units.name,
        units=reckoning.units.finished,
        unit_s=found.sheet.number("seconds_per_unit.median"),
        wall_us=view.wall_us,
        started_us=view.started.started_us,
        host=tuple(run_readings(view)),
        checked=None if checked is None else checked[1],
        checked_us=None if checked is None else checked[0],
        grade=view.grade,
    )


def promise_in(file: Path, offer: str | None) -> Promise:
    """The offer that a kept quote promises; the first one unless another is named."""
    value = load_json(str(file), read_text(file, "quote"), "quote/json")
    ranked = value.get("ranked") if isinstance(value, dict) else None
    if not isinstance(ranked, list) or not all(isinstance(each, dict) for each in ranked):
        raise _no_quote(file, "it holds no list of ranked offers")
    chosen = [e for e in ranked if offer is None or offer in (e.get("offer"), e.get("key"))]
    if not chosen:
        names = ", ".join(str(each.get("offer"))[:40] for each in ranked[:5])
        raise OuvrageError(
            "quote/no-offer",
            f"{file} quotes no offer called {offer!r}" if ranked else f"{file} ranks no offer",
            hint=f"it ranks: {names}" if names else "quote again with other offers",
        )
    try:
        return _promise(chosen[0], value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _no_quote(file, f"{error!r}"[:120]) from error


def _no_quote(file: Path, words: str) -> OuvrageError:
    return OuvrageError(
        "quote/unreadable",
        f"{file} is no quote: {words}",
        hint="keep what `ouvrage quote … --json` prints: > quote.json",
    )


def _number(value: Any) -> Fraction:
    found = number_in(value)
    if found is None:
        raise ValueError(f"{value!r} is no number")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{str(value)[:40]!r} is no text")
    return value


def promises_of(entry: dict[str, Any]) -> tuple[HostPromise, ...]:
    """What a quote says of the host; one kept before quotes said it has its vCPUs, memory and GPU."""
    if "promises" in entry:
        said = [
            promise(each["id"], str(each["value"]), each["field"]) for each in entry["promises"]
        ]
        for each in said:
            if each.operator not in NAMED:
                _number(each.value)
        return in_order(said)
    plain = {"cpu.allowed": "vcpus", "memory.limit": "memory_gib"}
    found = [
        promise(id, decimal_text(_number(entry[name])), name)
        for id, name in plain.items()
        if entry[name] is not None
    ]
    return in_order(found + ([promise("gpu.model", entry["gpu"], "gpu")] if entry["gpu"] else []))


def _promise(entry: dict[str, Any], quote: dict[str, Any]) -> Promise:
    cost, unit = entry["cost_per_unit"], entry["unit_s"]
    plan = entry["plan"]
    if plan is not None and plan not in shipped_names():
        raise ValueError(
            f"no plan called {str(plan)[:40]!r} is shipped; the bill follows its rules"
        )
    lines = {line["line"]: line["amount"] for line in entry["lines"]}
    return Promise(
        offer=_text(entry["offer"]),
        provider=_text(entry["provider"]),
        hour=_number(entry["price_per_hour"]),
        currency=_text(entry["currency"]),
        plan=plan,
        unit=_text(quote["unit"]),
        unit_low=_number(unit["low"]),
        unit_likely=_number(unit["likely"]),
        unit_high=_number(unit["high"]),
        cost_low=_number(cost["low"]),
        cost_likely=_number(cost["likely"]),
        cost_high=_number(cost["high"]),
        host=promises_of(entry),
        lines={
            name: None if amount is None else _number(amount["high"])
            for name, amount in lines.items()
        },
    )


def _json(
    promise: Promise, compared: list[Finding], bill: Bill | None, ok: bool | None
) -> dict[str, Any]:
    return {
        "offer": promise.offer,
        "provider": promise.provider,
        "kept": ok,
        "findings": [each.as_json() for each in compared],
        "invoice": None if bill is None else {"form": bill.form, "lines": len(bill.lines)},
        "faults": [] if bill is None else [fault.as_json() for fault in bill.faults],
    }


_SAID = {True: "kept", False: "NOT KEPT", None: "not known"}


def _lines(
    promise: Promise, compared: list[Finding], bill: Bill | None, ok: bool | None, plain: bool
) -> list[str]:
    broken = [each.what for each in compared if each.kept is False]
    answer = "The quote was kept" if ok else f"The quote was not kept: {', '.join(broken)}"
    if ok is None:
        answer = "Whether the quote was kept is not known: the bill could not be compared"
        if bill is not None and bill.faults:
            answer = "The bill could not be read whole"
    unknown = sum(1 for each in compared if each.kept is None)
    more = f"; {unknown} could not be told" if unknown else ""
    rows = [
        (
            each.what,
            each.promised,
            f"{each.found}{mark(each.grade, plain)}",
            _SAID[each.kept],
            each.why,
        )
        for each in compared
    ]
    drawn = table(("", "quoted", "found", "", ""), rows, "<<<<<").split("\n")
    lines = [f"{answer} ({promise.provider}, {promise.offer}){more}.", ""]
    lines += [f"  {line}" for line in drawn]
    if bill is not None and bill.faults:
        lines.append(f"  {len(bill.faults)} rows of the bill could not be read:")
        lines += [f"    {fault.line}" for fault in bill.faults[:20]]
    return lines
