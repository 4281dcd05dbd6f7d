"""The page of an invoice: one file that needs nothing else, to read on a screen and to print.

Decides nothing about the invoice: every word is ``invoice_view``'s. It runs no script and loads nothing.
"""

from __future__ import annotations

from ouvrage.console.invoice_view import Shown
from ouvrage.console.invoice_words import language
from ouvrage.console.page import template


def invoice_page(page: Shown) -> str:
    """The invoice as one HTML document."""
    say = language(page.language)
    labels = (say.say("from"), say.say("to"))
    return template("invoice.html.j2").render(page=page, labels=labels)
