"""The page of a dossier: the same sections, words and order as the command prints.

Decides only how they look. Like every page it runs no script and loads nothing, so that it can be
mailed and kept.
"""

from __future__ import annotations

from ouvrage.base.grades import Grade
from ouvrage.base.time import utc_text
from ouvrage.console.page import template
from ouvrage.evidence.dossier import Dossier
from ouvrage.evidence.dossier_text import headline, sections


def dossier_html(found: Dossier) -> str:
    """The dossier as one HTML document."""
    marks = [
        (Grade.MEASURED, "we asked, and kept the answer"),
        (Grade.REPORTED, "somebody says so"),
        (Grade.LISTED, "listed, in a registry or a price list"),
        (Grade.ASSUMED, "assumed"),
    ]
    return template("dossier.html.j2").render(
        title=f"{found.provider}: evidence · Ouvrage",
        headline=headline(found),
        sections=sections(found),
        marks=marks,
        as_of=utc_text(found.as_of),
    )
