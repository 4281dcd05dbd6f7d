"""Looks become a verdict that may fence: at once, by count, by rate; after grace; until verified."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.health.tables import Debounce, Thresholds
from ouvrage.health.watching import Look, Watch, looked, stated, verified
from ouvrage.model.health import VERDICTS, CheckResult
from tests.health.rules import BOUNDS

S = 1_000_000
GRACE = 600 * S


def look(
    at_s: float, verdict: str, rule: str = "nvlink-down", boot: str = "b", events: int = 1
) -> Look:
    result = CheckResult(check="gpu", verdict=verdict, rule="" if verdict == "OK" else rule)
    return Look(at_us=int(at_s * S), boot=boot, result=result, events=events)


def watched(looks: Iterable[Look], bounds: Thresholds = BOUNDS) -> Watch:
    watch = Watch()
    for each in looks:
        watch = looked(watch, each, bounds)
    return watch


def polls(
    verdicts: str, rule: str = "nvlink-down", start_s: float = 1000, every_s: float = 10
) -> Watch:
    """A letter a poll: o, w, c, u."""
    words = {word[0].lower(): word for word in VERDICTS}
    return watched(look(start_s + every_s * n, words[v], rule) for n, v in enumerate(verdicts))


def test_a_hard_rule_counts_at_once_even_right_after_boot() -> None:
    assert watched([look(3, "CRITICAL", "xid-79")]).verdict == "CRITICAL"


def test_a_soft_rule_needs_three_of_the_last_five_looks() -> None:
    assert polls("ooc").verdict == "OK"
    assert polls("oococ").verdict == "OK"
    assert polls("ococc").verdict == "CRITICAL"
    assert polls("cooooc").verdict == "OK"
    assert polls("cwc").verdict == "WARN"


def test_a_soft_rule_only_warns_for_some_minutes_after_boot() -> None:
    assert polls("cccccccccc", start_s=10).verdict == "WARN"
    assert polls("cccccccccc", start_s=590).verdict == "CRITICAL"


def test_a_rate_needs_more_than_six_events_in_ten_minutes() -> None:
    def flaps(count: int, every_s: float) -> Watch:
        return watched(look(1000 + every_s * n, "CRITICAL", "link-flap") for n in range(count))

    assert flaps(1, 10).verdict == "OK"
    assert flaps(6, 60).verdict == "OK"
    assert flaps(7, 60).verdict == "CRITICAL"
    assert flaps(30, 300).verdict == "OK"
    assert watched([look(1000, "CRITICAL", "link-flap", events=40)]).verdict == "CRITICAL"


def test_what_was_critical_stays_until_it_is_verified() -> None:
    watch = watched([look(1000, "CRITICAL", "xid-79"), *(look(1010 + n, "OK") for n in range(50))])
    assert (watch.verdict, watch.latched) == ("CRITICAL", True)
    rebooted = looked(watch, look(5, "OK", boot="next"), BOUNDS)
    assert (rebooted.verdict, rebooted.boot) == ("CRITICAL", "next")
    assert verified(rebooted, look(6, "WARN", boot="next")).latched
    assert verified(rebooted, look(4, "OK", boot="next")).latched
    free = verified(rebooted, look(6, "OK", boot="next"))
    assert (free.verdict, free.latched) == ("OK", False)


def asking(at_s: float, action: str) -> Look:
    made = look(at_s, "CRITICAL", "recovery-action")
    return replace(made, result=replace(made.result, action=action))


def test_a_latched_fault_that_gets_worse_asks_for_more_and_never_for_less() -> None:
    watch = watched([asking(1000, "gpu_reset"), asking(1010, "reboot"), asking(1020, "gpu_reset")])
    assert watch.result is not None
    assert (watch.result.action, watch.latched, watch.since_us) == ("reboot", True, 1000 * S)


def test_quick_looks_that_are_good_do_not_push_bad_ones_out() -> None:
    flaps = [look(1000 + 60 * n, "CRITICAL", "link-flap") for n in range(7)]
    quiet = [look(1000 + n, "OK") for n in range(361) if n % 60]
    watch = watched(sorted([*flaps, *quiet], key=lambda each: each.at_us))
    assert watch.verdict == "CRITICAL"
    assert len(watch.looks) < 20


def test_what_counts_is_stated_as_a_fact() -> None:
    watch = watched([asking(1000, "reboot"), look(1010, "OK")])
    fact = stated(watch, "n1", 4)
    assert (fact.verdict, fact.action, fact.code, fact.epoch) == (
        "CRITICAL",
        "reboot",
        "recovery-action",
        4,
    )
    assert (fact.since_us, fact.boot, fact.shadow) == (1000 * S, "b", False)
    with pytest.raises(ValueError, match="nothing was looked at"):
        stated(Watch(), "n1", 0)


def test_a_warning_goes_away_by_itself() -> None:
    assert polls("wwwww").verdict == "WARN"
    assert polls("wwwwwoooo").verdict == "OK"


def test_a_brake_that_lasts_is_critical() -> None:
    rule = "slow-hw-power-brake"
    assert polls("w" * 59, rule).verdict == "WARN"
    assert polls("w" * 62, rule).verdict == "CRITICAL"
    assert polls("w" * 40 + "o" + "w" * 40, rule).verdict == "WARN"
    assert polls("w" * 400, "slow-sw-thermal").verdict == "WARN"


def test_unknown_that_lasts_is_critical() -> None:
    assert polls("u" * 10, "gpu-silent").verdict == "UNKNOWN"
    assert polls("u" * 31, "gpu-silent").verdict == "CRITICAL"
    assert polls("u" * 20 + "o" + "u" * 20, "gpu-silent").verdict == "UNKNOWN"


def test_a_rule_on_trial_fences_nothing_and_says_what_it_would_have_done() -> None:
    trial = Debounce(pattern="*", sort="hard", mode="shadow", after_us=0, becomes=None, why="new")
    bounds = Thresholds(version=1, as_of="", all=BOUNDS.all, rules=(trial,))
    watch = watched([look(1000, "CRITICAL", "new-rule")], bounds)
    assert (watch.verdict, watch.shadow, watch.latched) == ("OK", True, False)
    fact = stated(watch, "n1", 0)
    assert (fact.verdict, fact.shadow, fact.code) == ("CRITICAL", True, "new-rule")


LOOKS = st.lists(
    st.tuples(
        st.integers(0, 3000), st.sampled_from(VERDICTS),
        st.sampled_from(["xid-48", "nvlink-down", "link-flap", "gpu-silent"]), st.sampled_from("ab"),
    ),
    max_size=30,
)  # fmt: skip


@given(LOOKS)
def test_the_same_look_twice_is_one_and_an_older_one_is_none(
    given_looks: list[tuple[int, str, str, str]],
) -> None:
    watch = Watch()
    for at, verdict, rule, boot in given_looks:
        each = look(at, verdict, rule, boot)
        after = looked(watch, each, BOUNDS)
        assert looked(after, each, BOUNDS) == after
        assert after.latched >= watch.latched
        if watch.latched:
            assert after.verdict == "CRITICAL"
        if after.verdict == "OK" and not after.shadow:
            assert verdict in VERDICTS
        watch = after


def test_a_first_look_without_an_answer_is_stated_as_unknown() -> None:
    watch = watched([look(3, "UNKNOWN", "gpu-hang")])
    assert (watch.verdict, watch.since_us) == ("UNKNOWN", 3 * S)
    assert stated(watch, "n1", 0).code == "gpu-hang"


def test_a_verdict_stands_on_another_reason_after_three_looks_that_give_it() -> None:
    before = [look(1000 + n, "WARN", "xid-92") for n in range(3)]
    after = [look(1010 + n, "WARN", "ecc-volatile") for n in range(3)]
    assert stated(watched([*before, *after[:2]]), "n1", 0).code == "xid-92"
    turned = stated(watched([*before, *after]), "n1", 0)
    assert (turned.code, turned.since_us) == ("ecc-volatile", 1000 * S)
    flapping = [look(2000 + n, "WARN", ("xid-92", "ecc-volatile")[n % 2]) for n in range(20)]
    assert stated(watched([*before, *flapping]), "n1", 0).code == "xid-92"
