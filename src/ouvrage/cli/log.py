"""``ouvrage log``: what somebody did for a machine, said in a line.

Decides how a duration is written and that each call is a statement of its own: the same twenty minutes
again are another twenty minutes.
"""

from __future__ import annotations

import re
from decimal import Decimal

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.base.time import DAY, HOUR, MINUTE, utc_text
from ouvrage.cli.booking import book
from ouvrage.cli.import_told import about_of, in_words
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.ledger.stated import Stated
from ouvrage.model.cash import SupportTime

_PARTS = re.compile(r"(?:([0-9]{1,3}(?:\.[0-9]+)?) ?h)? ?(?:([0-9]{1,4}) ?m(?:in)?)?")


@click.group(name="log")
def log() -> None:
    """Say what was done: `ouvrage log support 20m --node n1`."""


@log.command(name="support")
@click.argument("duration", metavar="TIME")
@click.option("--node", metavar="NAME", help="For which machine (the only one).")
@click.option("--about", metavar="WHAT", help="Or for what: site:garage, device:GPU-1.")
@click.option("--tenant", metavar="NAME", help="For which tenant.")
@click.option("--what", metavar="TEXT", default="", help="What was done.")
@click.option("--at", metavar="TIME", help="When it began (now, less the time).")
@json_option
@plain_option
def support(
    duration: str,
    node: str | None,
    about: str | None,
    tenant: str | None,
    what: str,
    at: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Record TIME (`20m`, `1h30m`, `2 h`) of work for a machine or a tenant."""
    length = _length(duration)
    now = now_us()
    begins = now - length if at is None else moment(at)
    if begins > now:
        raise OuvrageError("log/future", f"{at} has not come yet", hint="log it when it is done")
    if node and about:
        raise OuvrageError("log/about", "--node and --about exclude one another", hint="name one")
    if tenant:
        check_name("tenant", tenant, "--tenant acme")
    with opened() as ledger:
        subject = about_of(ledger, f"node:{node}" if node else about)
        value = SupportTime(about=subject, tenant=tenant, duration_us=length, what=what[:400])
        said = Stated(
            natural=f"support/{subject}/{new_id()}",
            value=value,
            subject=subject,
            valid_from=begins,
            valid_to=begins + length,
            grade=Grade.ASSUMED,
        )
        book(ledger, [said])
    if as_json:
        say_json(
            {
                "about": subject,
                "tenant": tenant,
                "minutes": length // MINUTE,
                "at": utc_text(begins),
            }
        )
        return
    words = (
        f"{length // HOUR} h {length % HOUR // MINUTE:02d} min"
        if length >= HOUR
        else f"{length // MINUTE} min"
    )
    told = f" and tenant {tenant}" if tenant else ""
    line = (
        f"{words} of support ? for {subject}{told}, {utc_text(begins)[:16].replace('T', ' ')} UTC"
    )
    say_text(in_words(line) if plain else line)


def _length(text: str) -> int:
    found = _PARTS.fullmatch(text.strip().lower())
    if found and (found[1] or found[2]):
        length = int(Decimal(found[1] or 0) * HOUR) + int(found[2] or 0) * MINUTE
        if MINUTE <= length <= DAY:
            return length
    raise OuvrageError(
        "log/duration",
        f"{text!r} is no time that a person works",
        hint="write 20m, 1h30m or 2h, at most a day",
    )
