"""``ouvrage audit``: who did what on the platform, and what was refused.

Decides only how the trail is printed: newest first, as many lines as were asked for.
"""

from __future__ import annotations

from itertools import islice

import click

from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.cli.talking import talk


@click.command()
@click.option("--org", metavar="NAME", help="What concerns this organisation.")
@click.option(
    "--last", type=click.IntRange(1), default=20, show_default=True, help="How many lines."
)
@json_option
def audit(org: str | None, last: int, as_json: bool) -> None:
    """Who did what, newest first, and what was refused."""
    with talk() as server:
        found = list(islice(server.every("/v1/audit", org=org), last))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            utc_text(each["at_us"])[:19].replace("T", " "), safe(each["login"]), each["action"],
            each["outcome"], shortened(each["detail"], 60), each["address"] or "",
        ]
        for each in found
    ]  # fmt: skip
    refused = sum(each["outcome"] != "done" for each in found)
    head = ["UTC", "who", "what", "outcome", "", "from"]
    say_text(
        f"The last {len(found)} things done here, {refused or 'none'} refused\n\n"
        f"{table(head, rows, '<<<<<<')}\nMore: ouvrage audit --last {last * 10}"
    )
