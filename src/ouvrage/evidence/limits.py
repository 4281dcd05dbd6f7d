"""What the evidence does not show, in sentences that do not depend on who is asking.

Decides which limits a dossier states: those of every kind of evidence in it, always in the same
words, and for everybody alike. None of them is derived from what the evidence says.
"""

from __future__ import annotations

from collections.abc import Iterable

ALWAYS = (
    "None of this proves an offer or a closure: what is for sale, and on which terms, only its seller "
    "can say."
)
NO_ANSWER_PROVES_NOTHING = (
    "No answer proves nothing: a refusal, a 404 or a silence does not say that something is absent."
)
SEARCH_PROVES_NOTHING = (
    "A search that found nothing proves nothing: it tells where somebody looked, and when."
)
_LIMITS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("prefix",),
        "A prefix is an address block: it is neither GPUs nor traffic, and announcing none does not "
        "show that no machine runs.",
    ),
    (("peer",), "A peer's name reveals no contract, and not what passes between the two."),
    (
        ("registered name", "registration", "registrant", "holder", "label"),
        "An administrative label, such as a holder's or a registered name, reveals no use.",
    ),
    (
        ("country",),
        "A country field reveals no seat and no location of anybody or anything.",
    ),
    (
        ("announced", "visible", "seen", "last seen"),
        "One dated observation does not rebuild the time between it and an earlier one, nor a cause.",
    ),
    (
        ("utilisation", "idle", "trial", "cost per", "price"),
        "A published trial or testimonial is the experience of one customer at one time; an aim is no "
        "rate of use.",
    ),
    (
        ("people", "officer", "role"),
        "That a person moved shows continuity of people as it was stated, not of contracts.",
    ),
    (
        ("acquired", "acquisition", "successor"),
        "That technology was acquired says nothing of companies, machines, contracts, AS numbers or "
        "prefixes that are not named.",
    ),
)


def limits_of(properties: Iterable[str], *, unanswered: bool, searches: bool) -> tuple[str, ...]:
    """The sentences for a dossier that holds evidence of these properties."""
    about = " | ".join(properties).casefold()
    said = [sentence for words, sentence in _LIMITS if any(word in about for word in words)]
    if unanswered:
        said.append(NO_ANSWER_PROVES_NOTHING)
    if searches:
        said.append(SEARCH_PROVES_NOTHING)
    return (*said, ALWAYS)
