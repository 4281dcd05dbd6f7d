"""What others took from the machine while a run lasted."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ouvrage.metering.reckoning import neighbours_cpu
from ouvrage.pricing.summary import crowd_words
from tests.support.runs import S, end, header, samples, view_of

# Two cores for 10 s: the run takes 9 s of them. (busy, idle) a second -> the others' share.
CASES = [
    (0.9, 1.1, Fraction(0), None),
    (1.7, 0.3, Fraction(2, 5), "other programs used 40 % of this machine's CPU meanwhile"),
    (2.0, 0.0, Fraction(11, 20), "other programs used 55 % of this machine's CPU meanwhile"),
    (0.8, 1.2, Fraction(0), None),
]


@pytest.mark.parametrize(("busy", "idle", "share", "words"), CASES)
def test_share_of_others(busy: float, idle: float, share: Fraction, words: str | None) -> None:
    rates = {"host_busy_us": busy * S, "host_idle_us": idle * S, "cpu_user_us": 0.9 * S}
    view = view_of(header(), *samples(10, cpu_system_us=0, **rates), end(10))
    assert neighbours_cpu(view) == share
    assert crowd_words(view) == words


def test_a_machine_that_does_not_tell_is_not_known() -> None:
    view = view_of(header(), *samples(10, cpu_user_us=S, cpu_system_us=0), end(10))
    assert neighbours_cpu(view) is None
    assert crowd_words(view) is None
