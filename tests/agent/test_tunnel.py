"""Places in a node's streams, of which no attempt takes those of all others."""

from __future__ import annotations

from contextlib import ExitStack

from ouvrage.agent.tunnel import Places


def taken(places: Places, held: ExitStack, attempt: str) -> int:
    """How many places an attempt gets that takes all it can."""
    for count in range(100):
        try:
            held.enter_context(places.one(attempt))
        except OSError:
            return count
    raise AssertionError("there is no end of places")


def test_no_attempt_takes_all_places_and_those_that_come_later_still_have_some() -> None:
    places = Places(64)
    with ExitStack() as held:
        assert [taken(places, held, name) for name in ("a", "b", "c")] == [32, 16, 8]
        with places.one("d"):
            pass
    with ExitStack() as held:
        assert taken(places, held, "b") == 32  # what was given back is there for whoever asks
