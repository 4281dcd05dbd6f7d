"""``ouvrage books reconcile``: the meter against the bill, the record against payouts, debts against the bank.

Decides nothing about what matches; it finds the site and the period, and prints.
"""

from __future__ import annotations

import click

from ouvrage.books.reconcile import reconciled
from ouvrage.books.reconcile_text import reconcile_answer, reconcile_json, reconcile_lines
from ouvrage.cli.books_asked import Wanted, asked, question_options
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text


@click.command("reconcile")
@question_options
@json_option
@plain_option
def reconcile(
    wanted: Wanted,
    as_json: bool,
    plain: bool,
) -> None:
    """Bills against meters, payouts against what was earned, what is owed against the bank.

    Every difference is told with both sides and what may be behind it; none is booked away.
    """
    with opened() as ledger:
        question = asked(ledger, wanted)
    found = reconciled(question.books.record, question.site, question.period)
    if as_json:
        say_json({"site": question.site, **reconcile_json(found)})
        return
    name = question.period.name
    more = (
        f"When all is said: ouvrage books close {name}"
        if len(name) == 7
        else "A month is closed with: ouvrage books close 2026-11"
    )
    say_text("\n".join([reconcile_answer(found), *reconcile_lines(found, plain), "", more]))
