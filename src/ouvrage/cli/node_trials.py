"""``ouvrage node trials``: what the rules on trial would have done, so that somebody can turn them on with open eyes.

Decides only the words. The verdicts are those of this home: of this machine's watch, or on a platform's machine of all that told it
theirs. A rule is turned on by whoever ships the tables, not here.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.health_tables import thresholds
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.cli.work_words import counted
from ouvrage.health.trial import Trial, trials
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.health import Verdict


@click.command("trials")
@json_option
@plain_option
def trials_(as_json: bool, plain: bool) -> None:
    """What rules on trial would have done: how often, on how many machines, and where another rule found the same.

    Read from the verdicts in this home. A rule on trial fences nothing.
    """
    with opened() as ledger:
        entries = in_force(ledger.store.records(kind=Verdict.KIND))
        said = [
            (each.fact.valid_from, value)
            for each in entries
            if isinstance(value := read(each.fact), Verdict)
        ]
    found = trials(said, now_us(), thresholds())
    if as_json:
        say_json([asdict(each) for each in found])
    else:
        say_text("\n".join(_told(found)))


def _told(found: list[Trial]) -> list[str]:
    if not found:
        return [
            "No rule on trial has said anything yet.",
            "",
            "What is on trial: docs/reference/health-thresholds.md",
        ]
    long = sum(each.over for each in found)
    rows = [
        (each.rule, str(each.would_have), str(each.nodes), str(each.agreed), str(each.days),
         "long enough to decide" if each.over else "goes on")
        for each in found
    ]  # fmt: skip
    return [
        f"{counted(len(found), 'rule')} on trial spoke; {long} long enough to decide about. They fenced nothing.",
        "",
        table(("rule", "would have", "machines", "agreed", "days", "trial"), rows, "<>>>><"),
        "",
        "agreed: parts on which another rule found a fault within a day. What each rule is: docs/reference/health-thresholds.md",
    ]
