"""Exports of ``sacct``: broken letters, line breaks, cuts, repeats, and hours that come twice."""

from __future__ import annotations

import contextlib
import json
import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.feeds.node_events import is_node_list, read_events
from ouvrage.adapters.feeds.sacct import read_sacct, text_of
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.nodelists import unfolded
from ouvrage.base.time import HOUR, utc_us
from ouvrage.books.cluster_jobs import Attempt, attempts_of
from tests.cluster.exports import COLUMNS, attempts, export, known, read, row


def test_lists_of_nodes_unfold():
    assert unfolded("node[001-003,7],gpu1") == ("node001", "node002", "node003", "node7", "gpu1")
    assert unfolded("r[1-2]n[01-02]") == ("r1n01", "r1n02", "r2n01", "r2n02")
    assert unfolded("None assigned") == unfolded("") == ()
    for wrong in (
        "n[1-",
        "n[3-1]",
        "n[1-999999]",
        "n1,,n2",
        "a[1-9]b[1-9]c[1-9]d[1-9]e[1-99]f[1-9]",
        "n[a]",
    ):
        with pytest.raises(ValueError, match=r"range|list|unfolds"):
            unfolded(wrong)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet="n0129[]-,. ", max_size=24))
def test_any_list_of_nodes_unfolds_or_is_refused(text: str):
    with contextlib.suppress(ValueError):
        assert len(unfolded(text)) <= 100_000


def test_a_comment_with_line_breaks_is_one_row_and_broken_letters_stay_different():
    told = Told(form="sacct", file="f")
    head = "JobID|Comment|State|End\n"
    text = text_of(
        head.encode()
        + b"1|a\nb\n\nc|COMPLETED|2026-11-01T00:00:00\n2|\xff|FAILED|2026-11-01T00:00:00\n",
        told,
    )
    said = read_sacct(text, told, "UTC", None, None)
    assert not told.faults
    assert [each.value.job for each in said] == ["1", "2"]
    assert r"\xff" in text
    assert told.notes[r"bytes that are no UTF-8 are kept as \xNN"] == 1
    assert told.notes["rows with line breaks in them are put together"] == 1


def test_parts_of_rows_are_told_and_cost_no_other_row():
    whole = row(JobIDRaw="7")
    text = export(
        row(JobIDRaw="5")[30:], row(JobIDRaw="6"), whole + "|more", row(JobIDRaw="8")[:40]
    )
    said, told = read(text)
    assert [each.value.job for each in said] == ["6"]
    assert [fault.place for fault in told.faults] == ["2", "4", "5"]


def test_separators_and_trailing_ones():
    for separator in ("|#", "|", "\t"):
        head = separator.join(["JobID", "State", "End", ""])
        body = separator.join(["1", "COMPLETED", "2026-11-01T00:00:00", ""])
        said, told = read(f"{head}\n{body}\n")
        assert len(said) == 1
        assert not told.faults
    with pytest.raises(OuvrageError, match="names no column") as caught:
        read("1|COMPLETED|2026-11-01T00:00:00\n")
    assert caught.value.code == "sacct/columns"
    told = Told(form="sacct", file="f")
    said = read_sacct("1|COMPLETED|2026-11-01T00:00:00\n", told, "UTC", "lab", "JobIDRaw,State,End")
    assert said[0].value.cluster == "lab"


def test_rows_that_cannot_be_are_located():
    bad = {
        "JobIDRaw": "bash", "State": "CANCELLED+", "Start": "yesterday", "End": "2026-11-01T09:59:59",
        "NodeList": "n[2-1]",
    }  # fmt: skip
    said, told = read(export(*(row(**{name: value}) for name, value in bad.items())))
    assert not said
    assert [(f.place, f.field.lower()) for f in told.faults] == [
        ("2", "jobid"), ("3", "state"), ("4", "start"), ("5", "end"), ("6", "nodelist"),
    ]  # fmt: skip


def test_an_hour_that_comes_twice_is_settled_by_how_long_the_job_ran_or_left_out():
    night = {"Submit": "2026-10-25T00:30:00", "Start": "2026-10-25T01:30:00"}
    zone = "Europe/Paris"
    for elapsed, hours in (("3600", 1), ("7200", 2)):
        text = export(row(**night, End="2026-10-25T02:30:00", ElapsedRaw=elapsed))
        (said,), told = read(text, zone)
        assert not told.faults
        assert said.value.end_us - said.value.start_us == hours * HOUR
    said, told = read(export(row(**night, End="2026-10-25T02:30:00")), zone)
    assert not said
    assert "SLURM_TIME_FORMAT=%s" in told.faults[0].expected
    spring = row(
        Submit="2026-03-29T01:00:00", Start="2026-03-29T02:30:00", End="2026-03-29T04:00:00"
    )
    assert "Europe/Paris" in read(export(spring), zone)[1].faults[0].expected
    seconds = row(Submit="1792890000", Start="1792893600", End="1792897200")
    assert read(export(seconds), zone)[0][0].value.start_us == 1_792_893_600_000_000


def test_identity_is_number_submission_and_attempt():
    late = {
        "Submit": "2026-11-03T09:00:00",
        "Start": "2026-11-03T10:00:00",
        "End": "2026-11-03T11:00:00",
    }
    again = {"Start": "2026-11-01T12:00:00", "End": "2026-11-01T13:00:00"}
    found = attempts(row(State="PREEMPTED"), row(**again, State="FAILED"), row(**late))
    assert [(a.attempt, a.state, a.run_us) for a in found] == [
        (1, "PREEMPTED", 2 * HOUR), (2, "FAILED", HOUR), (1, "COMPLETED", HOUR),
    ]  # fmt: skip
    assert [a.gpu_us for a in found] == [8 * HOUR, 4 * HOUR, 4 * HOUR]


def test_the_end_counts_over_what_was_seen_running_and_pieces_are_one():
    running = row(State="RUNNING", End="Unknown", ElapsedRaw="1800")
    pending = row(
        State="PENDING", Start="Unknown", End="Unknown", AllocTRES="", NodeList="None assigned"
    )
    (found,) = attempts(running, row(), pending)
    assert (found.state, found.gpu_us) == ("COMPLETED", 8 * HOUR)
    (found,) = attempts(running)
    assert (found.end_us, found.gpu_us) == (None, 2 * HOUR)
    cut = "2026-11-01T11:00:00"
    (found,) = attempts(row(End=cut, ElapsedRaw="3600"), row(Start=cut, ElapsedRaw="3600"))
    assert (found.run_us, found.gpu_us) == (2 * HOUR, 8 * HOUR)


def test_steps_add_no_time_and_waiting_is_not_running():
    step = row(JobIDRaw="1.0", Submit="2026-11-01T10:00:00", End="2026-11-01T12:00:07")
    (found,) = attempts(row(ElapsedRaw="10800"), step)
    assert (found.steps, found.steps_after, found.gpu_us) == (1, 1, 8 * HOUR)
    (alone,) = attempts(step)
    assert alone.only_steps
    (suspended,) = attempts(row(ElapsedRaw="3600"))
    assert suspended.gpu_us == 4 * HOUR


def test_unknown_gpus_are_not_none():
    (found,) = attempts(row(AllocTRES=""))
    assert found.gpu_us is None
    (found,) = attempts(row(AllocTRES="cpu=8,node=2"))
    assert found.gpu_us == 0
    (found,) = attempts(row(AllocTRES="gres/gpu:a100=3,gres/gpu:v100=2,node=1"))
    assert found.gpus == 5


CELLS = st.fixed_dictionaries(
    {
        "JobIDRaw": st.sampled_from(["1", "2", "1.batch", "2.0"]),
        "State": st.sampled_from(["COMPLETED", "RUNNING", "REQUEUED", "CANCELLED by 0"]),
        "Submit": st.sampled_from(["2026-11-01T09:00:00", "Unknown"]),
        "Start": st.sampled_from(["2026-11-01T10:00:00", "2026-11-01T11:00:00", "Unknown"]),
        "End": st.sampled_from(["2026-11-01T11:00:00", "2026-11-01T12:00:00", "Unknown"]),
        "ElapsedRaw": st.sampled_from(["", "0", "3600"]),
        "AllocTRES": st.sampled_from(["", "gres/gpu=2,node=1"]),
    }
)


@settings(max_examples=80, deadline=None)
@given(cells=st.lists(CELLS, max_size=6), random=st.randoms(use_true_random=False))
def test_order_repeats_and_cuts_change_nothing(cells: list[dict[str, str]], random: Random):
    rows = [row(**each) for each in cells]
    said, _ = read(export(*rows))
    whole = {each.id for each in said}

    mixed = rows * 2
    random.shuffle(mixed)
    at = random.randint(0, len(mixed))
    parts = [*read(export(*mixed[:at]))[0], *read(export(*mixed[at:]))[0]]
    assert {each.id for each in parts} == whole
    unique = list({each.id: each for each in parts}.values())
    assert [_said(a) for a in attempts_of(known(unique))] == [
        _said(a) for a in attempts_of(known(said))
    ]


def _said(attempt: Attempt) -> tuple[object, ...]:
    return (
        attempt.name,
        attempt.state,
        attempt.start_us,
        attempt.until_us,
        attempt.gpu_us,
        attempt.keys,
        attempt.steps,
    )


@settings(max_examples=150, deadline=None)
@given(body=st.binary(max_size=120))
def test_any_bytes_are_read_told_or_refused(body: bytes):
    told = Told(form="sacct", file="f")
    text = text_of(b"|".join(name.encode() for name in COLUMNS) + b"\n" + body, told)
    said = read_sacct(text, told, "UTC", None, None)
    json.dumps([fault.as_json() for fault in told.faults])
    assert len(said) <= told.rows


EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
lab||2026-11-01T00:00:00|Unknown||Cluster Registered TRES|slurm
lab|n[1-2]|2026-11-01T18:00:00|2026-11-01T22:00:00|DRAIN|new fan|root
lab|n3|2026-11-04T00:00:00|Unknown|DOWN*|Not responding|slurm
lab|n4|never|Unknown|DOWN|x|slurm
"""
REASONS = """REASON               USER        TIMESTAMP           NODELIST
gpu fell off the bus root        2026-11-05T09:00:00 n[1,3]
"""


def test_events_of_nodes_are_read_from_both_lists():
    for text, nodes in ((EVENTS, ["n1", "n2", "n3"]), (REASONS, ["n1", "n3"])):
        assert is_node_list(text.split("\n", 1)[0])
        told = Told(form="node events", file="f")
        said = read_events(text, told, "UTC", None, utc_us("2026-11-06T00:00:00Z"))
        assert [each.value.node for each in said] == nodes
        assert [f.field for f in told.faults] == (["start"] if text is EVENTS else [])
    assert (said[0].value.reason, said[0].value.seen_us) == (
        "gpu fell off the bus",
        utc_us("2026-11-06T00:00:00Z"),
    )
    assert not is_node_list("JobID|NodeList|State|End")
    assert re.match("[0-9a-f]{12}", said[0].natural.rpartition("/")[2])
