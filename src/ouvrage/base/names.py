"""Names that people or programs choose and that stand in other names: campaigns, jobs, sites, nodes.

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


def named(text: str) -> str | None:
    """A launcher's id of a job as a name: what cannot stand in one becomes ``-``; None if nothing is left."""
    clean = "".join(c if c.isalnum() or c in "-_." else "-" for c in text.strip())[:LONGEST].strip(
        "-."
    )
    return clean if is_campaign(clean) else None


def check_job(name: str) -> None:
    """Raise ``OuvrageError`` ``job/name`` where a text cannot name a job."""
    if not is_campaign(name):
        raise OuvrageError(
            "job/name",
            f"{name!r} is not a job's name",
            hint="letters, digits, '-', '_' and '.': --job resnet-4-hosts",
        )
