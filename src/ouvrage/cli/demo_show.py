"""The demonstration's year on one screen: a statement, how its margin came about, and a decision.

Decides which three answers are shown; each is made by the same code as on anybody's books, from the
demonstration's own ledger.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.adapters.clock import now_us
from ouvrage.books.account import account
from ouvrage.books.bridge import bridge_lines, bridge_of
from ouvrage.books.period import period_named
from ouvrage.books.pnl import statement_of
from ouvrage.books.pnl_text import answer, detail
from ouvrage.books.scope import Scope
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.ledger import opened
from ouvrage.console.margin_bridge import margin_bridge
from ouvrage.console.page import Drawing
from ouvrage.planning.channels import channels_of
from ouvrage.planning.decide import decide
from ouvrage.planning.decide_text import decision_lines
from ouvrage.planning.decision_case import case_of
from ouvrage.planning.rules import rules_of
from ouvrage.planning.simulated_owner import NODE, SITE
from ouvrage.planning.simulated_world import FIRST, ZONE

KEY = "simulated-owner"
HEADING = "The owner's half: did the machine earn its keep? (simulated)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The lines for a terminal, and the bridge for a page."""

    lines: tuple[str, ...]
    drawing: Drawing


def shown(plain: bool) -> Shown:
    """The three answers, from the ledger of this home, which must be a demonstration's."""
    with opened() as ledger:
        record = books_of(ledger, None).record
    year = period_named(str(FIRST.year), ZONE)
    sheet = statement_of(account(record, SITE, year), "node", payback=False).rows[0]
    steps = bridge_of(sheet)
    asked = case_of(record, SITE, Scope(node=NODE), now_us(), rules_of({}))
    found = decide(asked.case, rules_of({}))
    pay = channels_of(asked.account, Scope(node=NODE), asked.opportunity)
    first, currency = answer(sheet, year, plain), asked.case.currency
    lines = (
        f"The owner's half, on a simulated year ({'simulated' if plain else '◌'} marks what is made up):",
        "", first, "", *detail(sheet, plain), "",
        f"How the margin of {FIRST.year} came about:",
        *bridge_lines(steps, currency, plain), "",
        *decision_lines(asked, found, pay, plain),
    )  # fmt: skip
    title = f"From revenue to margin, {NODE} in {FIRST.year}, simulated"
    caption = f"{first} ◌ marks what is simulated: made by ouvrage demo, nobody's figures."
    drawing = Drawing(
        heading=HEADING, svg=margin_bridge("margin-bridge", title, steps, currency), caption=caption
    )
    return Shown(lines=lines, drawing=drawing)
