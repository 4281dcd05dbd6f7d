"""Names that people choose and that stand in other names: of campaigns, sites, nodes, channels.

Decides their letters alone: whatever a figure's name uses to separate its parts (``:``, ``@``,
``+``, ``/``) cannot stand in one, nor can white space.
"""

from __future__ import annotations

from ouvrage.base.errors import OuvrageError

LONGEST = 64


def is_campaign(name: str) -> bool:
    """Whether a text can name a campaign."""
    joined = name.replace("-", "_").replace(".", "_")
    return bool(name) and len(name) <= LONGEST and f"_{joined}".isidentifier()


def check_campaign(name: str) -> None:
    """Raise ``OuvrageError`` ``campaign/name`` where a text cannot name a campaign."""
    check_name("campaign", name, "--campaign spring-retraining")


def check_name(what: str, name: str, example: str) -> None:
    """Raise ``OuvrageError`` ``WHAT/name`` where a text cannot name a ``what``."""
    if not is_campaign(name):
        raise OuvrageError(
            f"{what}/name",
            f"{name!r} is not a {what}'s name",
            hint=f"letters, digits, '-', '_' and '.': {example}",
        )
