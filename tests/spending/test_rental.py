"""``ouvrage rental``: what is stated, what it makes of the runs, and who is told when it idles."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ouvrage.base.time import utc_text
from tests.blackbox.spools import SECOND, run_id, spool
from tests.support.inside import Inside

BEGAN = 1_764_500_000


def at(seconds: int) -> str:
    return utc_text((BEGAN + seconds) * SECOND)


def _source(ouvrage: Inside) -> str:
    ouvrage("rental", "show")
    (ouvrage.path / "source").write_text(_SOURCE + "\n")
    return _SOURCE


_SOURCE = json.loads(spool(run_id(1), []).splitlines()[0])["source"]


def _holds(ouvrage: Inside, number: int, begin: int, units: int = 4) -> None:
    """A run of this machine: 1 s to start up, 2 s a unit, a quarter to end."""
    _source(ouvrage)
    started = (BEGAN + begin) * SECOND
    text = spool(run_id(number), [2.0] * units, label=f"run {number}", started_us=started)
    ouvrage.holds(text, run_id(number))


def _rented(ouvrage: Inside, *more: str) -> None:
    _source(ouvrage)
    said = ouvrage("rental", "start", "--price", "36/h", "--label", "gpu", "--since", at(0), *more)
    assert said.code == 0, said.err


def test_boot_and_forgotten_hours_are_counted_and_add_up(ouvrage: Inside):
    _holds(ouvrage, 1, begin=60)
    _holds(ouvrage, 2, begin=100)
    _rented(ouvrage)
    stopped = ouvrage("rental", "stop", "--at", at(200))
    assert stopped.first == "gpu cost 2.00 EUR ?; 1.82 EUR ? of it, 91 %, while nothing ran."
    found = ouvrage("rental", "show", "gpu", "--json").json
    assert (found["paid_s"], found["working_s"], found["held_s"]) == (200, 18.5, 181.5)
    assert found["held"] == {"before": 60, "between": 30.75, "after": 90.75}
    assert found["cost"] == {
        "total": "2",
        "working": "0.185",
        "held": "1.815",
        "held_before": "0.6",
        "held_between": "0.3075",
        "held_after": "0.9075",
    }
    assert found["grades"] == {
        "paid_s": "reported",
        "working_s": "measured",
        "cost.total": "assumed",
    }
    explained = ouvrage("explain", f"rental/{found['code']}:cost.held")
    assert explained.code == 0
    assert "rental.started" in explained.out
    assert "run.ended" in explained.out
    assert ouvrage("verify").code == 0


def test_a_wrong_end_is_corrected_and_the_past_stays(ouvrage: Inside):
    _rented(ouvrage)
    before = ouvrage("rental", "stop", "--at", at(100), "--json").json
    assert ouvrage("rental", "stop", "gpu").err.startswith("error[rental/ended]")
    after = ouvrage("rental", "stop", "gpu", "--at", at(150), "--json").json
    assert (before["paid_s"], after["paid_s"]) == (100, 150)
    past = ouvrage("rental", "show", "gpu", "--as-of", before["as_of"], "--json").json
    assert past["paid_s"] == 100
    assert ouvrage("verify").code == 0


def test_runs_of_another_machine_are_added_by_name(ouvrage: Inside):
    _holds(ouvrage, 1, begin=10)
    assert ouvrage("runs").code == 0
    (ouvrage.path / "source").write_text("b" * 32 + "\n")
    arguments = ("rental", "start", "--price", "36/h", "--label", "far", "--since", at(0))
    assert ouvrage(*arguments, "--elsewhere").code == 0
    assert ouvrage("rental", "stop", "far", "--at", at(100), "--json").json["working_s"] == 0
    added = ouvrage("rental", "add", "far", "run 1", "--json").json
    assert added["working_s"] == 9.25
    assert ouvrage("rental", "add", "far", "run 1", "--json").json["working_s"] == 9.25


def test_a_run_that_goes_on_counts_as_working(ouvrage: Inside):
    _rented(ouvrage)
    _holds(ouvrage, 1, begin=10)
    with _going_on(ouvrage, 1):
        found = ouvrage("rental", "show", "gpu", "--json").json
    assert found["running"] == [run_id(1)]
    assert found["held"] == {"before": 10, "between": 0, "after": 0}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["start", "--price", "1/h"], "rental/open"),
        (["start", "--price", "1/h", "--elsewhere", "--since", "2999-01-01"], "rental/future"),
        (["start", "--price", "1", "--elsewhere"], "price/no-unit"),
        (["start", "--price", "1/h", "--elsewhere", "--webhook", "ftp://x"], "rental/webhook"),
        (["start", "--price", "1/h", "--elsewhere", "--webhook", "http://a:b@x"], "rental/webhook"),
        (["start", "--price", "1/h", "--elsewhere", "--label", "last"], "rental/label"),
        (["start", "--price", "1/h", "--elsewhere", "--campaign", "a b"], "campaign/name"),
        (["stop", "--at", at(-5)], "rental/end"),
        (["stop", "none"], "rental/unknown"),
        (["watch", "--once", "--idle", "soon"], "command/usage"),
    ],
)
def test_what_cannot_be_stated(ouvrage: Inside, arguments: list[str], code: str):
    _rented(ouvrage)
    before = ouvrage("rental", "show", "--json").json["rentals"][0]
    said = ouvrage("rental", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]")
    (after,) = ouvrage("rental", "show", "--json").json["rentals"]
    assert (after["ended"], after["started"]) == (before["ended"], before["started"])


# Alarms


@contextmanager
def _going_on(ouvrage: Inside, number: int) -> Iterator[None]:
    """The run's meter is alive: it holds the lock on its spool, and has written no end."""
    path = ouvrage.path / "spool" / f"{run_id(number)}.ndjson"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Hook:
    """A server that takes what is posted; ``answers`` are its next statuses, then 200."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.heard: list[dict[str, Any]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                hook.heard.append(json.loads(self.rfile.read(length)))
                self.send_response(hook.answers.pop(0) if hook.answers else 200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?key=1"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_the_end_of_the_work_is_told_until_it_was_heard_and_then_no_more(
    ouvrage: Inside, hook: Hook
):
    _holds(ouvrage, 1, begin=10)
    _rented(ouvrage, "--webhook", hook.url)
    hook.answers = [500, 503]
    codes = [ouvrage("rental", "watch", "--once").code for _ in range(4)]
    assert codes == [1, 1, 0, 0]
    assert len(hook.heard) == 3
    assert len({message["alarm"] for message in hook.heard}) == 1
    told = hook.heard[-1]
    assert (told["sort"], told["label"], told["price"]) == ("ended", "gpu", "36 EUR/h")
    assert told["since"] == "2025-11-30T10:53:39.250000Z"
    assert told["words"].startswith("gpu: the work ended at 2025-11-30T10:53:39Z")
    _holds(ouvrage, 2, begin=500)
    assert ouvrage("rental", "watch", "--once").code == 0
    assert len(hook.heard) == 4
    assert ouvrage("verify").code == 0


def test_a_run_without_units_for_long_is_told(ouvrage: Inside, hook: Hook):
    _rented(ouvrage)
    _holds(ouvrage, 1, begin=10)
    with _going_on(ouvrage, 1):
        assert ouvrage("rental", "watch", "--once", "--webhook", hook.url).code == 0
    (told,) = hook.heard
    assert (told["sort"], told["run"]) == ("hang", run_id(1))
    assert "no epoch since 2025-11-30T10:53:39Z, where one takes 2.00 s" in told["words"]


def test_a_command_is_told_and_must_end_well(ouvrage: Inside, tmp_path: Path):
    _rented(ouvrage)
    heard = tmp_path / "heard"
    failing = f"cat >> {heard}; exit 3"
    said = ouvrage("rental", "watch", "--once", "--on-alarm-command", failing)
    assert (said.code, "it ended with 3" in said.err) == (1, True)
    passing = f'cat >> {heard}; test "$OUVRAGE_SORT" = idle'
    assert ouvrage("rental", "watch", "--once", "--on-alarm-command", passing).code == 0
    first, second = (json.loads(line) for line in heard.read_text().splitlines())
    assert first["alarm"] == second["alarm"]


def test_one_machine_is_not_paid_for_twice_at_once(ouvrage: Inside):
    _rented(ouvrage)
    assert ouvrage("rental", "stop", "gpu", "--at", at(3600)).code == 0
    twice = ("rental", "start", "--price", "1/h", "--since", at(1800))
    said = ouvrage(*twice)
    assert (said.code, "error[rental/overlap]" in said.err) == (2, True)
    assert ouvrage(*twice, "--elsewhere", "--label", "other").code == 0
    assert ouvrage("rental", "start", "--price", "1/h", "--since", at(3600)).code == 0
    said = ouvrage("rental", "stop", "gpu", "--at", at(3601))
    assert (said.code, "error[rental/overlap]" in said.err) == (2, True)
    assert ouvrage("rental", "stop", "gpu", "--at", at(3000)).code == 0


def test_a_length_of_time_beyond_a_year_is_none(ouvrage: Inside):
    said = ouvrage("rental", "watch", "--every", "99999999999999h")
    assert (said.code, "longer than a year" in said.err) == (2, True)


def test_where_alarms_go_is_no_fact_and_forgotten_at_the_end(ouvrage: Inside, tmp_path: Path):
    _rented(ouvrage, "--webhook", "http://127.0.0.1:9/whom-to-wake")
    (kept,) = (ouvrage.path / "alarms").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    unheard = ouvrage("rental", "watch", "--once", "--json")
    assert unheard.code == 1
    assert unheard.json["alarms"][0]["troubles"]
    assert b"whom-to-wake" not in (ouvrage.path / "ouvrage.db").read_bytes()
    ouvrage("rental", "stop")
    assert not kept.exists()
    assert ouvrage("rental", "watch", "gpu").code == 0


def test_an_empty_home_teaches(ouvrage: Inside):
    assert "ouvrage rental start --price" in ouvrage("rental", "show").out
    assert "ouvrage campaign add" in ouvrage("campaign", "list").out


# Campaigns


def test_a_campaign_from_its_attempts_to_one_sum(ouvrage: Inside, tmp_path: Path):
    for number in (1, 2, 3):
        _holds(ouvrage, number, begin=20 * number)
    _rented(ouvrage, "--campaign", "spring")
    ouvrage("rental", "stop", "--at", at(100))
    ouvrage("accept", "run 1", "--units", "3", "--why", "fine")
    added = ouvrage("campaign", "add", "spring", "run 1", "run 2")
    assert added.first.startswith("spring: 0.333 EUR ? per accepted epoch, 1.00 EUR ? in all")
    assert ouvrage("campaign", "add", "spring", "run 1", "run 2").out == added.out
    found = ouvrage("report", "--campaign", "spring", "--json").json
    assert found["cost"] == {
        "total": "1",
        "known": "1",
        "accepted": "0.069375",
        "rejected": "0.023125",
        "failed": "0",
        "cancelled": "0",
        "unjudged": "0.0925",
        "held": "0.7225",
        "other": "0.0925",
    }
    assert (found["units_accepted"], found["cost_per_accepted_result"]) == (3, "1")
    assert ouvrage("campaign", "remove", "spring", "run 2", "--why", "another work").code == 0
    after = ouvrage("report", "--campaign", "spring", "--json").json
    assert (after["cost"]["total"], after["cost"]["other"]) == ("1", "0.185")
    past = ouvrage("report", "--campaign", "spring", "--as-of", found["as_of"], "--json").json
    assert past == found
    assert ouvrage("campaign", "list", "--json").json["campaigns"][0]["campaign"] == "spring"
    assert ouvrage("explain", "campaign/spring:cost_per_accepted_unit").code == 0
    assert ouvrage("verify").code == 0


def test_the_pages_of_a_campaign(ouvrage: Inside, tmp_path: Path):
    for number in range(1, 13):
        _holds(ouvrage, number, begin=20 * number)
    _rented(ouvrage, "--campaign", "spring")
    ouvrage("rental", "stop", "--at", at(300))
    ouvrage("campaign", "add", "spring", *(f"run {n}" for n in range(1, 13)))
    said = ouvrage("report", "--campaign", "spring", "--html", "page.html")
    assert said.code == 0
    assert "and 2 more: --json" in said.out
    page = (tmp_path / "page.html").read_text()
    assert "2\u00a0more attempts are not listed here." in page
    assert "Rented, and nothing ran" in page
    assert "<script" not in page


def test_the_sheet_of_a_campaign_is_one_page_and_the_same_twice(ouvrage: Inside, tmp_path: Path):
    pytest.importorskip("fpdf", reason="the extra [pdf] is not installed")
    for number in range(1, 13):
        _holds(ouvrage, number, begin=20 * number)
    assert ouvrage("runs").code == 0
    ouvrage("campaign", "add", "spring", *(f"run {n}" for n in range(1, 13)))
    for name in ("one.pdf", "two.pdf"):
        assert ouvrage("report", "--campaign", "spring", "--pdf", name).code == 0
    content = (tmp_path / "one.pdf").read_bytes()
    assert content == (tmp_path / "two.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.count(b"/Type /Page\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["report", "--campaign", "autumn"], "campaign/unknown"),
        (["report", "run 1", "--campaign", "spring"], "report/which"),
        (["report"], "command/usage"),
        (["report", "run 1", "--pdf", "x.pdf"], "report/which"),
        (["campaign", "add", "spring"], "campaign/nothing"),
        (["campaign", "add", "a/b", "run 1"], "campaign/name"),
        (["campaign", "remove", "spring", "run 1", "--why", "x"], "campaign/not-in-it"),
        (["explain", "campaign/autumn:cost.total"], "campaign/unknown"),
        (["explain", "rental/none:cost.total"], "rental/none"),
    ],
)
def test_what_a_campaign_is_not(ouvrage: Inside, arguments: list[str], code: str):
    _holds(ouvrage, 1, begin=0)
    said = ouvrage(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]")


def test_several_homes_keep_their_own(homes: Callable[[str], Inside]):
    first, second = homes("first"), homes("second")
    _rented(first)
    assert second("rental", "show", "--json").json == {"rentals": []}


def test_a_spool_names_its_campaign_and_nothing_else_passes_for_one(ouvrage: Inside):
    head, *rest = spool(run_id(1), [1.0] * 3, label="run 1").splitlines()
    named = [
        json.dumps({"k": "campaign", "name": name}) for name in ("spring", "\x1b[2J", "spring")
    ]
    ouvrage.holds("\n".join([head, *named, *rest, ""]), run_id(1))
    report = ouvrage("report", "run 1", "--json").json
    assert report["campaigns"] == ["spring"]
    assert any("left unread" in note for note in report["notes"])
    assert ouvrage("report", "--campaign", "spring").code == 0
    assert ouvrage("verify").code == 0
