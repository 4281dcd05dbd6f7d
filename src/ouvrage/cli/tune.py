"""``ouvrage tune -- COMMAND``: which power limit finishes a unit for the least, tried out here.

Decides what the options mean and how a trial, or one that was metered earlier, becomes an answer.
Changing limits and putting them back is ``tuning``'s; every run is an ordinary one of the ledger, so
the same figures can be made again, with other prices, when the cards are long gone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import click

from ouvrage.adapters.clock import new_id
from ouvrage.adapters.home import home
from ouvrage.base.energy_price import parse_energy_price
from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import code_of
from ouvrage.base.names import check_campaign
from ouvrage.base.price import Price, parse_price
from ouvrage.cli.campaigning import members
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import Seconds, json_option, plain_option
from ouvrage.cli.output import exact_json_text, say_text
from ouvrage.cli.tuning import Trial, Tried, cards_of, check, limits_for, not_restored, recover
from ouvrage.meter.launch import find_command
from ouvrage.meter.limits import Driver
from ouvrage.meter.options import read_options
from ouvrage.pricing.tuning import Terms, Tuning, finer, tuning_of
from ouvrage.pricing.tuning_text import tuning_json, tuning_lines

_USAGE = "usage: ouvrage tune [OPTIONS] -- COMMAND [ARGUMENT ...]"


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND", nargs=-1)
@click.option("--limits", metavar="150,200,250", help="Watts to try (four, from least to usual).")
@click.option("--gpu", "gpus", metavar="0,1", help="These GPUs (all that the command would see).")
@click.option("--repeat", type=click.IntRange(1, 100), default=2, show_default=True,
              help="How often to run it under each limit; down and up in turn.")  # fmt: skip
@click.option("--electricity", metavar="0.25/kWh", help="What energy costs the owner.")
@click.option("--rate", metavar="0.10/h", help="The owner's amortisation, beside the energy.")
@click.option("--price", metavar="2.00/h", help="What the machine costs the renter.")
@click.option("--currency", metavar="EUR", help="Currency of all prices (EUR).")
@click.option("--unit", metavar="NAME", help="Which unit to count, where several are shown.")
@click.option("--unit-regex", metavar="RE", help="A unit is finished where a line matches.")
@click.option("--campaign", metavar="NAME", help="The campaign of the runs (one of its own).")
@click.option("--shared", is_flag=True, help="Also where other processes use the GPUs.")
@click.option("--deadline", type=Seconds(0.1, 600), default=30.0, show_default=True,
              metavar="SECONDS", help="How long the driver may take to answer.")  # fmt: skip
@click.option("--show", metavar="NAME", help="Only show what this campaign of tune's found.")
@click.option("--restore", is_flag=True, help="Only put back what a killed tune left behind.")
@json_option
@plain_option
def tune(command: tuple[str, ...], as_json: bool, plain: bool, **given: Any) -> int:
    """Which power limit finishes a unit of COMMAND for the least money, here?

    Runs COMMAND, a short and typical piece of the work, under each limit and meters it. The limits
    go back to what they were whatever happens. Setting one takes root.
    """
    driver = Driver(given["deadline"])
    if given["restore"]:
        return _restore(driver, as_json)
    terms = _terms(given)
    if given["show"]:
        with opened() as ledger:
            found = _found(ledger, list(members(ledger, None).get(given["show"], ())), terms)
        return _say(found, given["show"], Tried(), as_json=as_json, plain=plain)
    if not command:
        raise OuvrageError("tune/no-command", "nothing stands after --", hint=_USAGE)
    campaign = given["campaign"] or f"tune-{code_of(new_id()).lower()}"
    check_campaign(campaign)
    tried = _try(driver, command, campaign, given)
    return _told(tried, campaign, terms, as_json=as_json, plain=plain)


def _try(driver: Driver, command: Sequence[str], campaign: str, given: dict[str, Any]) -> Tried:
    """Check everything, then run it under each limit."""
    asked = _whole_numbers("--limits", given["limits"])
    indexes = _whole_numbers("--gpu", given["gpus"])

    def words(watts: int) -> list[str]:
        named = {"--unit": given["unit"], "--unit-regex": given["unit_regex"],
                 "--price": given["price"], "--currency": given["currency"],
                 "--electricity": given["electricity"]}  # fmt: skip
        if not given["price"] and not given["electricity"]:
            named["--currency"] = None
        options = [word for name, text in named.items() if text for word in (name, text)]
        label = f"{campaign} {watts} W"
        return ["--quiet", "--campaign", campaign, "--label", label, *options, "--", *command]

    read_options(words(0))
    find_command(command[0])
    if recover(home(), driver):
        say_text("A tune that was killed had left power limits behind; they are back.", err=True)
    cards = cards_of(driver, indexes)
    check(cards, shared=given["shared"])
    limits = limits_for(cards, asked)
    environment = dict(os.environ)
    if indexes is not None:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(card.uuid for card in cards)
    return Trial(home(), driver, cards, words, environment).run(limits, given["repeat"])


def _told(tried: Tried, campaign: str, terms: Terms, *, as_json: bool, plain: bool) -> int:
    """The answer, or why there is none; a limit that is not back is said first."""
    if tried.not_back:
        error = not_restored(home(), tried.not_back)
        say_text("\n".join(error.lines()), err=True)
    if tried.signal:
        say_text(
            f"interrupted by {signal.Signals(tried.signal).name}; {_limits_words(tried)}\n"
            f"What was metered until then: ouvrage tune --show {campaign}", err=True,
        )  # fmt: skip
        return 128 + tried.signal
    if tried.trouble:
        trouble = tried.trouble
        raise OuvrageError(
            trouble.code, f"{trouble.message}; {_limits_words(tried)}",
            where=trouble.where, hint=trouble.hint, exit_code=1,
        )  # fmt: skip
    with opened() as ledger:
        found = _compared(ledger, tried.runs, terms, campaign)
    return _say(found, campaign, tried, as_json=as_json, plain=plain)


def _limits_words(tried: Tried) -> str:
    return "A POWER LIMIT IS NOT BACK" if tried.not_back else "the power limits are back"


def _found(ledger: Ledger, runs: Sequence[str], terms: Terms) -> Tuning:
    """The figures of some runs, from their raw samples where this home has them."""
    if not runs:
        raise OuvrageError(
            "tune/no-runs", "no run belongs to that campaign", hint="ouvrage campaign lists them"
        )
    views = [finer(one.view, ledger.spool(one.view.run)) for one in ledger.assessed(runs)]
    return tuning_of(views, terms)


def _compared(ledger: Ledger, runs: Sequence[str], terms: Terms, campaign: str) -> Tuning:
    """As ``_found``. Nothing to compare is no mistake in what was asked: the runs are recorded."""
    try:
        return _found(ledger, runs, terms)
    except OuvrageError as error:
        hint = f"what was metered: ouvrage report --campaign {campaign}"
        raise OuvrageError(
            error.code, error.message, where=error.where, hint=hint, exit_code=1
        ) from error


def _say(found: Tuning, campaign: str, tried: Tried, *, as_json: bool, plain: bool) -> int:
    if as_json:
        said = tuning_json(found) | {"campaign": campaign, "not_restored": tried.not_back}
        say_text(exact_json_text(said))
    else:
        lines = tuning_lines(found, plain=plain)
        lines += ["", f"The runs: ouvrage report --campaign {campaign}      "
                      f"Other prices: ouvrage tune --show {campaign} --price …"]  # fmt: skip
        say_text("\n".join(lines))
    return 1 if tried.not_back else 0


def _restore(driver: Driver, as_json: bool) -> int:
    back = recover(home(), driver)
    if as_json:
        say_text(exact_json_text({"restored": back}))
    else:
        say_text("The power limits are back." if back else "There is nothing to put back.")
    return 0


def _terms(given: dict[str, Any]) -> Terms:
    """The prices, in one currency. A rate alone says nothing of what the limit changes."""
    if given["rate"] and not given["electricity"]:
        raise OuvrageError(
            "tune/rate-alone", "--rate says nothing without --electricity",
            hint="--electricity 0.25/kWh; what a renter pays by the hour is --price",
        )  # fmt: skip
    stated = parse_energy_price(given["electricity"]) if given["electricity"] else None
    currency: str | None = given["currency"] or (stated and stated.currency)
    price, rate = (_by_time(given[name], currency) for name in ("price", "rate"))
    named = {each.currency for each in (price, rate) if each}
    if len(named) > 1:
        raise OuvrageError(
            "price/two-currencies", f"the prices are in {' and '.join(sorted(named))}",
            hint="no exchange rate is assumed; give all in one currency",
        )  # fmt: skip
    electricity = stated and stated.in_currency(currency or next(iter(named), None))
    return Terms(electricity=electricity, rate=rate, price=price)


def _by_time(text: str | None, currency: str | None) -> Price | None:
    return parse_price(text, currency) if text else None


def _whole_numbers(option: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and word.isascii() and len(word) < 6 for word in words):
        raise OuvrageError(
            "tune/list", f"{option} {text!r} is no list of whole numbers", hint=f"{option} 1,2,3"
        )
    return [int(word) for word in words]
