"""What to know before a machine is switched: whether work runs there, and whether an earlier order was cut off.

Decides that a platform which is named (``OUVRAGE_URL``) and says that work runs on a machine holds back an order that takes its
power, and that one which cannot be asked does not: it may be what hangs. Giving the order is ``node_power``'s.
"""

from __future__ import annotations

import os

from ouvrage.adapters.home import home
from ouvrage.adapters.server_client import Talk
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import opened
from ouvrage.cli.output import say_text
from ouvrage.cli.talking import server_meant
from ouvrage.cli.work_words import counted
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.power import ORDERED, PowerOrdered

_ASKED_S = 5.0


def work_refused(node: str) -> None:
    """Raises ``OuvrageError`` ``power/work`` where the platform of the environment says that work runs on a node."""
    if not os.environ.get("OUVRAGE_URL"):
        return
    try:
        with Talk(server_meant(), timeout_s=_ASKED_S) as server:
            found = server.get(f"/v1/nodes/{node}")
    except OuvrageError as error:
        say_text(f"warning: whether work runs on {node} is not known: {error.message}", err=True)
        return
    jobs, leases = int(found["attempts"]), int(found["leases"])
    if not jobs and not leases:
        return
    raise OuvrageError(
        "power/work", f"{counted(jobs, 'job')} and {counted(leases, 'lease').lower()} stand on {node}",
        hint=f"ouvrage node fence {node} keeps new ones away; when these have ended, or with --anyway, it can be switched",
    )  # fmt: skip


def last_unended(node: str) -> str | None:
    """The node's last order in words, if it is on record without what became of it; None too where nothing is on record."""
    if not os.environ.get("OUVRAGE_STORE") and not (home() / "ouvrage.db").exists():
        return None
    try:
        with opened() as ledger:
            given = list(ledger.store.records(kind=PowerOrdered.KIND))
    except OuvrageError:  # a look at a machine does not depend on a ledger
        return None
    place = {each.fact.key: number for number, each in enumerate(given)}  # a clock may be set back
    mine = [
        (place[each.fact.key], each.fact.valid_from, value)
        for each in in_force(given)
        if isinstance(value := read(each.fact), PowerOrdered) and value.node == node
    ]
    _, at_us, last = max(mine, key=lambda each: each[0], default=(0, 0, None))
    if last is None or last.outcome != ORDERED:
        return None
    return f"{last.order} at {utc_text(at_us)[:19]}Z, not ended: it goes on now, or was cut off; see that the machine is as you want it"
