"""What a cluster's accounting does to the calendar of an owner's nodes."""

from __future__ import annotations

from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR, utc_us
from ouvrage.books.calendar import calendar
from ouvrage.books.known import Known
from ouvrage.books.period import period_named
from ouvrage.model.cluster import ClusterNodeEvent, ClusterWhole
from tests.books.owner import Owner
from tests.cluster.exports import export, read, row

DAY = period_named("2026-11-01", "UTC")
HOLDS = {"Start": "2026-11-01T10:00:00", "End": "2026-11-01T12:00:00"}


def hours(
    *rows: str, events: tuple[tuple[str, str, int], ...] = (), whole: bool = False
) -> dict[str, Fraction]:
    """Device-hours of a node with two GPUs by state, on a day."""
    owner = Owner().sets_up(2)
    for each in read(export(*rows))[0]:
        owner.says(each.value, each.valid_from, each.valid_to, Grade.METERED)
    for state, at, many in events:
        start = utc_us(f"2026-11-01T{at}:00:00Z")
        value = ClusterNodeEvent(
            cluster="lab", node="n1", state=state, reason="r", start_us=start, end_us=start + many * HOUR, seen_us=None,
        )  # fmt: skip
        owner.says(value, start, start + many * HOUR, Grade.METERED)
    if whole:
        owner.says(ClusterWhole(cluster="lab"), DAY.from_us, DAY.to_us)
    found: dict[str, Fraction] = {}
    for device in ("n1-gpu0", "n1-gpu1"):
        for stretch in calendar(owner.record, device, DAY):
            found[stretch.state] = found.get(stretch.state, Fraction(0)) + Fraction(
                stretch.us, HOUR
            )
    return found


def test_jobs_work_on_the_gpus_they_were_given_and_add_up():
    two = row(AllocTRES="gres/gpu=1,node=1", NodeList="n1", **HOLDS)
    other = row(JobIDRaw="2", AllocTRES="gres/gpu=2,node=2", NodeList="n[1-2]", **HOLDS)
    assert hours(two) == {"working": 2, "unknown": 46}
    assert hours(two, other) == {"working": 4, "unknown": 44}
    assert hours(two, whole=True) == {"working": 2, "free": 46}


def test_what_cannot_be_placed_makes_nothing_free():
    odd = row(AllocTRES="gres/gpu=3,node=2", NodeList="n[1-2]", **HOLDS)
    assert hours(odd, whole=True) == {"unknown": 4, "free": 44}
    assert hours(row(AllocTRES="", NodeList="n1", **HOLDS), whole=True) == {
        "unknown": 4,
        "free": 44,
    }
    nowhere = row(JobIDRaw="2", NodeList="None assigned", **HOLDS)
    cpu = row(AllocTRES="cpu=1,node=1", NodeList="n1", **HOLDS)
    assert hours(cpu, whole=True) == {"free": 48}
    assert hours(cpu, nowhere, whole=True) == {"unknown": 4, "free": 44}


def test_a_drained_node_works_on_until_its_job_has_left_and_down_is_down():
    job = row(AllocTRES="gres/gpu=2,node=1", NodeList="n1", **HOLDS)
    assert hours(job, events=(("DRAIN", "11", 3),), whole=True) == {
        "working": 4,
        "maintenance": 4,
        "free": 40,
    }
    assert hours(job, events=(("IDLE+DRAIN", "12", 3),)) == {
        "working": 4,
        "maintenance": 6,
        "unknown": 38,
    }
    assert hours(job, events=(("DOWN*", "11", 3),), whole=True) == {
        "working": 2,
        "down": 6,
        "free": 40,
    }
    assert hours(job, events=(("POWERED_DOWN", "12", 3),)) == {"working": 4, "unknown": 44}


def test_an_event_is_over_when_anybody_says_its_end():
    owner = Owner().sets_up(2)
    start = utc_us("2026-11-01T10:00:00Z")
    value = {"cluster": "lab", "node": "n1", "state": "DOWN", "reason": "r", "start_us": start}
    owner.says(
        ClusterNodeEvent(**value, end_us=start + HOUR, seen_us=None),
        start,
        start + HOUR,
        Grade.METERED,
    )
    owner.says(ClusterNodeEvent(**value, end_us=None, seen_us=None), start, None, Grade.METERED)
    states = [s.state for s in calendar(owner.record, "n1-gpu0", DAY)]
    assert states == ["unknown", "down", "unknown"]
    assert isinstance(owner.record.cluster_events[0], Known)
