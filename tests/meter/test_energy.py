"""The processors' counters, a plug at the wall, and the child that nothing can hurt."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.kept_file import Room
from ouvrage.adapters.process_tree import ProcessTree
from ouvrage.adapters.rapl import rapl_counters
from ouvrage.adapters.wall_meter import (
    PlugMeter,
    WallFault,
    WallMeterTwin,
    WallReading,
    reading_of,
)
from ouvrage.meter.feed import Feed, Reads
from ouvrage.meter.gpus import chosen
from ouvrage.meter.record import Record
from ouvrage.meter.spool_file import SpoolFile
from tests.support.meter import Meter, until


def zone(root: Path, name: str, label: str, count: str | None, greatest: str = "1000") -> Path:
    place = root / name
    place.mkdir(parents=True)
    (place / "name").write_text(label + "\n")
    (place / "max_energy_range_uj").write_text(greatest)
    if count is not None:
        (place / "energy_uj").write_text(count + "\n")
    return place


class TestRapl:
    def test_packages_and_memory_but_nothing_twice(self, tmp_path: Path) -> None:
        zone(tmp_path, "intel-rapl:0", "package-0", "5")
        zone(tmp_path, "intel-rapl:0:0", "core", "3")
        zone(tmp_path, "intel-rapl:0:1", "dram", "2")
        zone(tmp_path, "intel-rapl:1", "package-1", "7")
        zone(tmp_path, "intel-rapl:2", "psys", "99")
        zone(tmp_path, "intel-rapl-mmio:0", "package-0", None)
        found = rapl_counters(Room(9), str(tmp_path))
        assert [(counter.name, counter.read()) for counter in found] == [
            ("intel-rapl:0 package-0", 5), ("intel-rapl:0:1 dram", 2),
            ("intel-rapl:1 package-1", 7),
        ]  # fmt: skip

    def test_a_wrap_is_unwound(self, tmp_path: Path) -> None:
        place = zone(tmp_path, "intel-rapl:0", "package-0", "900")
        (counter,) = rapl_counters(Room(9), str(tmp_path))
        seen = []
        for value in ("900", "50", "60", "10"):
            (place / "energy_uj").write_text(value)
            seen.append(counter.read())
        assert seen == [900, 1050, 1060, 2010]

    def test_what_may_not_be_read_is_not_there(self, tmp_path: Path) -> None:
        zone(tmp_path, "intel-rapl:0", "package-0", None)
        assert rapl_counters(Room(9), str(tmp_path)) == []
        assert rapl_counters(Room(9), str(tmp_path / "none")) == []

    def test_nonsense_is_not_known(self, tmp_path: Path) -> None:
        place = zone(tmp_path, "intel-rapl:0", "package-0", "900", "0")
        (counter,) = rapl_counters(Room(9), str(tmp_path))
        assert counter.read() == 900
        (place / "energy_uj").write_text("5")
        assert counter.read() is None, "it stepped back and the kernel tells no range"
        (place / "energy_uj").write_text("many")
        assert counter.read() is None


FORMS = [
    ({"id": 0, "apower": 812.5, "aenergy": {"total": 2.5}}, (812_500, 9_000_000_000)),
    ({"power": 40.0, "total": 3}, (40_000, 180_000_000)),
    ({"StatusSNS": {"ENERGY": {"Power": 12, "Total": 0.5}}}, (12_000, 1_800_000_000_000)),
    ({"ENERGY": {"Power": 12}}, (12_000, None)),
    ({"apower": 1e9, "aenergy": {"total": 1}}, (None, 3_600_000_000)),
]
NONE = [{}, [], 5, None, {"apower": "much"}, {"apower": True}, {"ENERGY": {"Power": -4}}]


class TestPlug:
    @pytest.mark.parametrize(("said", "expected"), FORMS)
    def test_forms(self, said: Any, expected: tuple[int | None, int | None]) -> None:
        reading = reading_of(said)
        assert (reading.power_mw, reading.energy_uj) == expected

    @pytest.mark.parametrize("said", NONE, ids=str)
    def test_what_is_no_form_is_refused(self, said: Any) -> None:
        with pytest.raises(WallFault):
            reading_of(said)

    def test_over_http_with_every_fault(self, plug: tuple[str, list[Any]]) -> None:
        url, answers = plug
        answers[:] = [b'{"apower": 7}']
        assert PlugMeter(url).read() == WallReading(power_mw=7000, energy_uj=None)
        for bad in (404, b"<html>", b"[" * 100_000, b"", b'{"apower": NaN}', None, b"x" * 70_000):
            answers[:] = [bad]
            with pytest.raises(WallFault):
                PlugMeter(url).read()
        with pytest.raises(WallFault):
            PlugMeter("http://127.0.0.1:1/").read()

    def test_its_twin_says_what_it_was_told(self) -> None:
        twin = WallMeterTwin(WallFault("no"), WallReading(power_mw=1, energy_uj=None))
        with pytest.raises(WallFault):
            twin.read()
        assert [twin.read().power_mw, twin.read().power_mw] == [1, 1]

    @pytest.mark.slow
    def test_beside_a_run(self, meter: Meter, plug: tuple[str, list[Any]], tmp_path: Path) -> None:
        url, answers = plug
        answers[:] = [500, b'{"apower": 100, "aenergy": {"total": 5}}']
        target = tmp_path / "report.json"
        words = ("--wall-meter", url, "--report", str(target))
        done = meter.run("sleep", "2.5", options=("--quiet", *words))
        assert done.returncode == 0
        (line,) = meter.of_kind("meter")
        assert (line["kind"], line["covers"]) == ("wall", "everything behind the plug")
        report = json.loads(target.read_text())
        assert report["energy"]["wall_j"] == 0, "its counter did not move"
        assert [note for note in report["notes"] if note.startswith("wall/no-answer")]


@pytest.fixture
def plug() -> Iterator[tuple[str, list[Any]]]:
    """A local server: gives its answers in turn, the last again and again; None hangs up."""
    answers: list[Any] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if answer is None:
                return
            self.send_response(answer if isinstance(answer, int) else 200)
            self.end_headers()
            if isinstance(answer, bytes):
                self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/rpc/Switch.GetStatus?id=0", answers
    server.shutdown()
    server.server_close()
    thread.join()


SECOND = 1_000_000


class Fed:
    """A feed of a small program, looked after at moments of the test's choosing."""

    def __init__(self, program: str) -> None:
        self.said: list[dict[str, Any]] = []
        self.spool = SpoolFile(None)
        self.spool.open({"k": "run"})
        self.record = Record(self.spool)
        self.now = monotonic_us()
        reads = Reads(code="x", what="the thing", words=[sys.executable, "-c", program])
        tree = ProcessTree(os.getpid(), Room(9))
        self.feed = Feed(reads, self._hear, self.record, tree, self.now, SECOND)
        self.feed.begin(self.now)

    def _hear(self, said: dict[str, Any], now: int) -> None:
        if said["k"] != "read":
            raise KeyError(said["k"])
        self.said.append(said)

    def look(self, seconds: float = 0) -> None:
        self.now += round(seconds * SECOND)
        self.feed.read(self.now)

    def until(self, condition: Callable[[], Any], what: str) -> None:
        def looked() -> Any:
            self.look()
            return condition()

        until(looked, what)

    def codes(self) -> set[str]:
        self.record.flush()
        lines = [json.loads(line) for line in self.spool.lines()]
        return {line["code"] for line in lines if line["k"] == "note"}


SPEAKS = """
import sys, time
print('{"k":"read","t":1}', flush=True)
%s
sys.stdin.read()
"""


class TestFeed:
    def test_silence_is_asked_to_end_and_replaced_later(self) -> None:
        fed = Fed(SPEAKS % "")
        fed.until(lambda: fed.said, "a first word")
        first = fed.feed.pid
        fed.look(2.9)
        assert fed.codes() == set()
        fed.look(0.2)
        assert fed.codes() == {"x/silent"}
        fed.until(lambda: not fed.feed.pid, "its end")
        assert "x/gap" in fed.codes()
        fed.look(0.9)
        assert not fed.feed.pid
        fed.look(0.2)
        assert fed.feed.pid not in (0, first)
        fed.feed.finish(fed.now)

    def test_lines_wait_in_the_pipe_and_silence_is_noticed_when_it_was(self) -> None:
        """What one that is heard says is taken when that could change anything; each line is dated."""
        fed = Fed("")
        fed.feed.finish(fed.now)
        began = fed.now
        at = [began, began + SECOND, began + 2 * SECOND]
        lines = "".join(f"""print('{{"k":"read","t":{t}}}')\n""" for t in at[1:])
        told = f"""print('{{"k":"read","t":{at[0]}}}', flush=True)\n"""
        fed = Fed(
            f"import sys\n{told}sys.stdin.read(1)\n{lines}sys.stdout.flush()\nsys.stdin.read()"
        )
        fed.now = began
        fed.until(lambda: fed.said, "a first word")
        os.write(fed.feed._requests, b"!")
        fed.look(2)
        assert [line["t"] for line in fed.said] == at[:1], "it is not due yet"

        def whole() -> bool:
            fed.feed.read(fed.now, everything=True)
            return len(fed.said) == 3

        until(whole, "what waited")
        fed.look(2.9)
        assert fed.codes() == set(), "the last line is of two seconds after the begin"
        fed.look(0.2)
        assert fed.codes() == {"x/silent"}
        fed.feed.finish(fed.now)

    def test_one_that_will_not_end_is_left_and_has_no_successor(self) -> None:
        fed = Fed(SPEAKS % "import signal; signal.signal(15, lambda *_: None); time.sleep(30)")
        fed.until(lambda: fed.said, "a first word")
        pid = fed.feed.pid
        for _ in range(20):
            fed.look(10)
        assert fed.feed.pid == pid
        fed.feed.finish(fed.now)
        os.kill(pid, 9)

    def test_back_off_doubles_up_to_a_minute(self) -> None:
        fed = Fed("")
        waits = []
        for _ in range(8):
            fed.until(lambda: not fed.feed.pid, "its end")
            waited = 0.0
            while not fed.feed.pid:
                fed.look(0.5)
                waited += 0.5
            waits.append(waited)
        assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
        assert fed.codes() == set(), "what never spoke leaves no gap to tell of"
        fed.feed.finish(fed.now)

    def test_nothing_to_read_is_not_tried_again(self) -> None:
        fed = Fed("""print('{"k":"nothing"}')""")
        fed.until(lambda: not fed.feed.pid, "its end")
        fed.look(3600)
        assert (fed.feed.pid, fed.codes()) == (0, set())

    def test_nonsense_is_no_sign_of_life(self) -> None:
        nonsense = ["", "{", "[]", "5", '{"k":1}', '{"k":"odd"}', '{"k":"fault"}', "\\x00\\xff"]
        program = "".join(f"print({line!r})\n" for line in nonsense)
        fed = Fed(program + "import sys; sys.stdout.flush(); sys.stdin.read()")
        fed.look(29.9)
        assert fed.codes() == set()
        fed.look(0.2)
        assert fed.codes() == {"x/silent"}
        fed.feed.finish(fed.now)

    def test_a_flood_without_lines_is_bounded(self) -> None:
        fed = Fed(
            "import sys\nfor _ in range(64): sys.stdout.write('x' * 65536)\nsys.stdout.flush()"
        )
        fed.until(lambda: not fed.feed.pid, "its end")
        assert not fed.said

    def test_what_cannot_be_started_is_noted_once(self) -> None:
        fed = Fed("")
        fed.feed.finish(fed.now)
        reads = Reads(code="x", what="the thing", words=["/nowhere/python"])
        tree = ProcessTree(os.getpid(), Room(9))
        feed = Feed(reads, fed._hear, fed.record, tree, fed.now, SECOND)
        feed.begin(fed.now)
        feed.read(fed.now + 99 * SECOND)
        feed.finish(fed.now)
        assert fed.codes() == {"x/not-read"}


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [True, True, True]), ("", [False, False, False]), ("-1", [False, False, False]),
        ("1", [False, True, False]), ("0,2", [True, False, True]), ("0,x,2", [True, False, False]),
        ("GPU-b", [False, True, False]), ("GPU-a, GPU-c", [True, False, True]),
        ("MIG-1", [True, True, True]), ("NoDevFiles", [False, False, False]),
    ],
)  # fmt: skip
def test_which_gpus_are_left_to_the_command(visible: str | None, expected: list[bool]) -> None:
    uuids = ("GPU-aaaa", "GPU-bbbb", "GPU-cccc")
    assert [chosen(visible, index, uuid) for index, uuid in enumerate(uuids)] == expected
