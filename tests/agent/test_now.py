"""The view of the watch: what is written is what is read, and nothing else is taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ouvrage.agent.probing.exposition import page_in
from ouvrage.agent.probing.heart import last_beat
from ouvrage.agent.probing.now import (
    FILE,
    CheckNow,
    Dropped,
    Now,
    ProbeNow,
    now_json,
    read_now,
    write_now,
)
from ouvrage.base.errors import OuvrageError
from ouvrage.model.work import Named

VIEW = Now(
    node="n1", boot="b", at_us=1_000_000, monotonic_us=5, epoch=3, observer=False,
    probes=(ProbeNow(name="gpu", interval_s=10, last_us=None, fault="it hangs", took_us=0),),
    checks=(
        CheckNow(
            check="xid", device="0000:41:00", verdict="CRITICAL", code="xid-79", action="reboot",
            since_us=7, latched=True, shadow=False, reasons=("gone",),
            evidence=(Named(name="xid", value="79"),),
        ),
    ),
    dropped=Dropped(telemetry=2),
)  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_now(tmp_path, VIEW)
    assert read_now(tmp_path) == VIEW
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_probes_are_asked_for_by_their_names() -> None:
    assert now_json(VIEW)["probes"]["gpu"]["fault"] == "it hangs"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "[" * 100_000, '{"at_us": 1}', '{"at_us": "x", "monotonic_us": 1, "boot": "b"}'],
)
def test_another_file_is_no_beat(tmp_path: Path, text: str) -> None:
    (tmp_path / "heartbeat").write_text(text)
    assert last_beat(tmp_path) is None
    assert "ouvrage_agent_heartbeat_age_seconds" not in page_in(tmp_path), "the page goes on"


def test_before_the_first_round_there_is_no_view(tmp_path: Path) -> None:
    assert read_now(tmp_path) is None


PLAIN = json.dumps(now_json(VIEW))


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[1]", '{"node": 1', "[" * 100_000,
        PLAIN.replace('"CRITICAL"', '"GONE"'), PLAIN.replace('"since_us": 7', '"since_us": "x"'),
        PLAIN.replace('["gone"]', "[1]"), PLAIN.replace('"dropped": {', '"dropped": [{').replace("}}", "}]}"),
        PLAIN.replace('"probes": {', '"probes": {"x": 1, '),
    ],
)  # fmt: skip
def test_another_file_is_no_view(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(OuvrageError, match=r"is not the view of an agent"):
        read_now(tmp_path)
