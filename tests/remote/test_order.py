"""Orders and their pace on the twin: slow, deaf, silent and wrong; turns between programs; cursors."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from ouvrage.adapters.power_order import Pace, Switch, set_limit
from ouvrage.adapters.power_port import PowerFault, page_after
from ouvrage.adapters.power_turn import asked, bmc_at, turn
from ouvrage.adapters.power_twin import PowerTwin
from ouvrage.model.power import LogEntry, PowerLimit

PACE = Pace(change_s=60, look_s=5, off_s=10, soft_s=300)


@dataclass
class Time:
    """A clock that goes on only while somebody pauses."""

    us: int = 0
    pauses: list[float] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.us += int(seconds * 1_000_000)


@pytest.fixture
def time() -> Time:
    return Time()


def switch(twin: PowerTwin, time: Time) -> Switch:
    return Switch(twin, PACE, pause=time.pause, clock=lambda: time.us)


def test_a_slow_change_is_waited_for(time: Time) -> None:
    done = switch(PowerTwin(looks=4), time).carry_out("off", hard=True)
    assert (done.outcome, done.seen, done.took_us) == ("done", ("on", "off"), 20_000_000)


def test_a_deaf_machine_is_told_from_one_that_did_it(time: Time) -> None:
    twin = PowerTwin(deaf=True)
    done = switch(twin, time).carry_out("cycle", hard=True)
    assert (done.outcome, done.after, twin.orders) == ("failed", "on", ["off"])
    assert done.why == "it is on 60 s after it was told to be off"


def test_a_soft_end_may_take_longer(time: Time) -> None:
    twin = PowerTwin(looks=50)
    assert switch(twin, time).carry_out("off", hard=False).outcome == "done"
    assert twin.orders == ["shut down"]
    twin = PowerTwin(looks=50)
    assert switch(twin, time).carry_out("off", hard=True).outcome == "failed"


def test_a_cycle_leaves_it_without_power_for_a_while(time: Time) -> None:
    switch(PowerTwin(), time).carry_out("cycle", hard=True)
    assert 10 in time.pauses


def test_a_cycle_of_one_that_is_off_turns_it_on(time: Time) -> None:
    twin = PowerTwin(state="off")
    done = switch(twin, time).carry_out("cycle", hard=True)
    assert (done.outcome, done.seen, twin.orders) == ("done", ("off", "on"), ["on"])


def test_nothing_is_ordered_where_the_state_cannot_be_read(time: Time) -> None:
    twin = PowerTwin()
    twin.faults = [PowerFault("silent", "no answer")] * 3
    with pytest.raises(PowerFault):
        switch(twin, time).carry_out("off", hard=True)
    assert twin.orders == []


def test_an_order_without_an_answer_is_not_given_twice_but_looked_after(time: Time) -> None:
    class Loses(PowerTwin):
        def turn_off(self, *, hard: bool = True) -> None:
            super().turn_off(hard=hard)
            raise PowerFault("silent", "no answer in time")

    twin = Loses()
    done = switch(twin, time).carry_out("off", hard=True)
    assert (done.outcome, twin.orders) == ("done", ["off"])


def test_a_refused_order_is_over_at_once(time: Time) -> None:
    twin = PowerTwin()
    twin.faults = [None, PowerFault("refused", "not for you")]
    done = switch(twin, time).carry_out("off", hard=True)
    assert (done.outcome, done.why, time.pauses) == ("failed", "not for you", [])


def test_a_bmc_that_falls_silent_while_it_changes_is_waited_for_and_then_named(time: Time) -> None:
    twin = PowerTwin(looks=1)
    silent = PowerFault("silent", "no answer in time")
    twin.faults = [None, None, *[silent] * 7, None]
    done = switch(twin, time).carry_out("off", hard=True)
    assert (done.outcome, done.seen) == ("done", ("on", "unknown", "on", "off"))
    twin = PowerTwin()
    twin.faults = [None, None, *[silent] * 99]
    done = switch(twin, time).carry_out("off", hard=True)
    assert (done.outcome, done.after) == ("failed", "unknown")
    assert done.why.endswith("; no answer in time")


def test_questions_are_repeated_with_longer_pauses_and_only_where_it_helps() -> None:
    pauses: list[float] = []
    twin = PowerTwin()
    twin.faults = [PowerFault("busy", "x"), PowerFault("silent", "x", after_s=7)]
    assert asked(twin.state, pause=pauses.append) == "on"
    assert pauses == [1, 7]
    for fault in (PowerFault("refused", "x"), PowerFault("busy", "x", after_s=600)):
        twin.faults = [fault]
        with pytest.raises(PowerFault):
            asked(twin.state, pause=pauses.append)
    assert pauses == [1, 7]


def test_a_limit_is_read_back() -> None:
    twin = PowerTwin(limit=PowerLimit(watts=None, least=300, most=1200))
    set_limit(twin, 800)
    assert twin.power_limit().watts == 800
    with pytest.raises(PowerFault, match="outside 300 to 1200"):
        set_limit(twin, 100)
    twin.deaf = True
    with pytest.raises(PowerFault, match="reads 800 W after it was told 500 W"):
        set_limit(twin, 500)


_HOLD = """
import sys
from ouvrage.adapters.power_turn import turn
with turn("a bmc", 5):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_programs_take_turns_and_one_that_dies_gives_its_own_up() -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdin
    assert other.stdout
    assert other.stdout.readline() == "held\n"
    with turn("another bmc", 0):
        pass
    with pytest.raises(PowerFault) as told, turn("a bmc", 0.05):
        raise AssertionError("two at once")
    assert told.value.kind == "busy"
    other.kill()
    other.wait()
    with turn("a bmc", 5):
        pass
    other.stdin.close()
    other.stdout.close()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://10.0.0.21", "10.0.0.21:623", True),
        ("https://Bmc1.example.org:443/", "bmc1.example.org.:623", True),
        ("http://[2001:DB8::1]", "[2001:db8:0::1]:623", True),
        ("https://10.0.0.21", "https://10.0.0.22", False),
        ("https://10.0.0.21:8001", "https://10.0.0.21:8002", False),
        ("https://10.0.0.21:8001", "https://10.0.0.21", False),
        ("local", "local:623", True),
    ],
)
def test_a_bmc_is_one_however_its_address_is_written(one: str, other: str, same: bool) -> None:
    assert (bmc_at(one) == bmc_at(other)) is same


def entry(id: str, at_us: int | None) -> LogEntry:
    return LogEntry(id=id, at_us=at_us, verdict="OK", sensor="", words="")


def test_a_cursor_of_a_log_that_wrapped_finds_what_is_not_older() -> None:
    log = [entry("1", 10), entry("2", 20), entry("3", None)]
    first = page_after(log, None)
    assert (first.cursor, first.gap) == ("3@", False)
    assert page_after(log, "2@20").entries == (log[2],)
    wrapped = page_after([entry("7", 15), entry("8", 30)], "2@20")
    assert ([e.id for e in wrapped.entries], wrapped.gap) == (["8"], True)
    assert page_after([], "2@20").cursor == "2@20"
    assert page_after(log, "nonsense").gap
