"""``unit``, ``span`` and ``watch``: exact, harmless, and silent where nobody listens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.support.meter import SOURCES, Meter

PY = sys.executable
Script = Callable[[str], str]


def spans(meter: Meter) -> dict[str, tuple[int, int]]:
    """Count and microseconds of each name over the whole run."""
    sums: dict[str, tuple[int, int]] = {}
    for line in meter.of_kind("spans"):
        for span in line["spans"]:
            count, total = sums.get(span["name"], (0, 0))
            sums[span["name"]] = (count + span["count"], total + span["total_us"])
    return sums


def test_units_arrive_with_their_moments(meter: Meter, script: Script) -> None:
    program = script(
        "import time, ouvrage\n"
        "for n in range(5):\n"
        "    time.sleep(0.1)\n"
        "    ouvrage.unit('epoch')\n"
        "ouvrage.unit('epoch', 3)\n"
    )
    assert meter.run(PY, program).returncode == 0
    units = meter.units()
    assert [(via, mark, n) for via, mark, n, _ in units] == [("code", "count", 1)] * 5 + [
        ("code", "count", 3)
    ]
    times = [t for *_, t in units if t is not None]
    assert len(times) == 6
    assert all(later - earlier > 90_000 for earlier, later in pairwise(times[:5]))
    assert times[-1] <= meter.end()["t"]


def test_spans_have_their_own_time_without_that_of_inner_ones(meter: Meter, script: Script) -> None:
    program = script(
        "import time, ouvrage\n"
        "with ouvrage.span('outer'):\n"
        "    time.sleep(0.2)\n"
        "    with ouvrage.span('inner'): time.sleep(0.3)\n"
        "    time.sleep(0.1)\n"
    )
    meter.run(PY, program)
    outer, inner = spans(meter)["outer"], spans(meter)["inner"]
    assert outer[0] == inner[0] == 1
    assert 290_000 < outer[1] < 600_000
    assert 290_000 < inner[1] < 600_000
    for line in meter.of_kind("spans"):
        total = sum(span["total_us"] for span in line["spans"])
        assert total <= line["to"] - line["from"] + 1


def test_watch_counts_how_long_the_loop_waits(meter: Meter, script: Script) -> None:
    program = script(
        "import time, ouvrage\n"
        "def slow():\n"
        "    for n in range(5):\n"
        "        time.sleep(0.1)\n"
        "        yield n\n"
        "got = []\n"
        "for item in ouvrage.watch(slow()):\n"
        "    got.append(item); time.sleep(0.05)\n"
        "assert got == [0, 1, 2, 3, 4], got\n"
        "again = ouvrage.watch([1, 2, 3], name='list')\n"
        "assert len(again) == 3 and list(again) == [1, 2, 3] and again.index(2) == 1 and again\n"
    )
    done = meter.run(PY, program)
    assert done.returncode == 0, done.stderr
    count, total = spans(meter)["data"]
    assert count == 5
    assert 490_000 < total < 900_000
    assert spans(meter)["list"][0] == 3


def test_the_programs_own_errors_pass_through(meter: Meter, script: Script) -> None:
    program = script(
        "import ouvrage\n"
        "def broken():\n"
        "    yield 1\n"
        "    raise KeyError('mine')\n"
        "try:\n"
        "    with ouvrage.span('all'):\n"
        "        for item in ouvrage.watch(broken()): pass\n"
        "except KeyError as error:\n"
        "    print(error)\n"
    )
    assert meter.run(PY, program).stdout == b"'mine'\n"
    assert spans(meter)["all"][0] == 1


def test_odd_arguments_never_raise(meter: Meter, script: Script) -> None:
    calls = (
        "import ouvrage\n"
        "class Odd:\n"
        "    def __index__(self): raise KeyError('odd')\n"
        "for name in ('', 'x' * 1000, None, 3, b'b', '\\ud800', 'a\\nb'):\n"
        "    for count in (1, 0, -1, None, 'x', 2.5, 10**30, 10**5000, Odd(), True):\n"
        "        ouvrage.unit(name, count)\n"
        "    with ouvrage.span(name): pass\n"
        "    assert list(ouvrage.watch(iter([1]), name)) == [1]\n"
        "print('fine')\n"
    )
    done = meter.run(PY, script(calls))
    assert done.stdout == b"fine\n", done.stderr
    alone = subprocess.run(
        [PY, script(calls)], env=meter.environment, capture_output=True, check=False
    )
    assert alone.stdout == b"fine\n", alone.stderr


def test_threads_and_forked_children_report_for_themselves(meter: Meter, script: Script) -> None:
    program = script(
        "import multiprocessing, os, threading, time, ouvrage\n"
        "def work(name):\n"
        "    with ouvrage.span(name): time.sleep(0.2)\n"
        "    ouvrage.unit(name)\n"
        "threads = [threading.Thread(target=work, args=(f't{n}',)) for n in range(3)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "with ouvrage.span('parent'):\n"
        "    children = [multiprocessing.get_context('fork').Process(target=work, args=(f'c{n}',))"
        " for n in range(2)]\n"
        "    [c.start() for c in children]; [c.join() for c in children]\n"
    )
    assert meter.run(PY, program).returncode == 0
    assert set(spans(meter)) == {"t0", "t1", "t2", "c0", "c1", "parent"}
    assert len({line["tid"] for line in meter.of_kind("spans")}) == 6
    assert sorted(line["name"] for line in meter.of_kind("marks")) == ["c0", "c1", "t0", "t1", "t2"]


def test_a_million_spans_and_fast_units_are_few_messages(meter: Meter, script: Script) -> None:
    program = script(
        "import ouvrage\n"
        "for n in range(100_000):\n"
        "    with ouvrage.span('step'): pass\n"
        "for n in range(200): ouvrage.unit('fast')\n"
    )
    assert meter.run(PY, program).returncode == 0
    assert spans(meter)["step"][0] == 100_000
    assert len(meter.of_kind("spans")) < 20
    assert sum(n for _, _, n, _ in meter.units()) == 200


def test_units_that_come_faster_than_they_are_told_all_count(meter: Meter, script: Script) -> None:
    program = script(
        "import threading, ouvrage\n"
        "def work():\n"
        "    for n in range(500): ouvrage.unit('step')\n"
        "for n in range(20_000): ouvrage.unit('image')\n"
        "ouvrage.unit('epoch')\n"
        "threads = [threading.Thread(target=work) for n in range(100)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
    )
    done = meter.run(PY, program)
    assert (done.returncode, done.stderr) == (0, b"")
    counted: dict[str, int] = {}
    for line in meter.of_kind("marks"):
        counted[line["name"]] = counted.get(line["name"], 0) + sum(line["n"])
    assert counted == {"image": 20_000, "epoch": 1, "step": 50_000}


def test_the_longest_names_still_fit_into_a_message(meter: Meter, script: Script) -> None:
    program = script(
        "import ouvrage\n"
        "for n in range(300):\n"
        "    for name in (chr(0x1F600), '\\0', chr(0xE9), '\\x22'): ouvrage.unit(name * 100)\n"
    )
    assert meter.run(PY, program).returncode == 0
    assert sum(sum(line["n"]) for line in meter.of_kind("marks")) == 1200
    assert not meter.of_kind("note")


def test_a_watched_thing_is_otherwise_what_it_was(meter: Meter, script: Script) -> None:
    program = script(
        "import asyncio, copy, pickle, ouvrage\n"
        "class Loader:\n"
        "    size = 1\n"
        "    def __iter__(self): return iter([self.size])\n"
        "loader = Loader(); watched = ouvrage.watch(loader)\n"
        "watched.size = 3\n"
        "assert loader.size == 3 and list(watched) == [3]\n"
        "del watched.size\n"
        "assert loader.size == 1\n"
        "numbers = ouvrage.watch([1, 2, 3])\n"
        "assert numbers[0] == 1 and numbers[1:] == [2, 3] and 2 in numbers\n"
        "assert list(reversed(numbers)) == [3, 2, 1]\n"
        "assert list(copy.copy(numbers)) == list(pickle.loads(pickle.dumps(numbers))) == [1, 2, 3]\n"
        "class Later:\n"
        "    def __aiter__(self): return self\n"
        "    async def __anext__(self): raise StopAsyncIteration\n"
        "async def main():\n"
        "    async for item in ouvrage.watch(Later()): pass\n"
        "asyncio.run(main())\n"
        "print('fine')\n"
    )
    done = meter.run(PY, program)
    assert done.stdout == b"fine\n", done.stderr


def test_nothing_happens_where_nobody_listens(script: Script) -> None:
    program = script(
        "import sys, ouvrage\n"
        "loader = [1, 2]\n"
        "assert ouvrage.watch(loader) is loader\n"
        "with ouvrage.span('x'): ouvrage.unit()\n"
        "assert not {'socket', 'json', 'threading', 'typing'} & sys.modules.keys()\n"
        "print('fine')\n"
    )
    done = subprocess.run(
        [PY, "-S", program], env={"PYTHONPATH": str(SOURCES)}, capture_output=True, check=False
    )
    assert done.stdout == b"fine\n", done.stderr


def test_a_meter_that_has_gone_is_no_error(script: Script) -> None:
    program = script(
        "import ouvrage\n"
        "for n in range(10):\n"
        "    with ouvrage.span('x'): ouvrage.unit()\n"
        "print('fine')\n"
    )
    environment = {"PYTHONPATH": str(SOURCES), "OUVRAGE_SOCKET": "/nowhere/meter"}
    done = subprocess.run([PY, program], env=environment, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"fine\n", b"")


def test_the_reporting_thread_is_followed(meter: Meter, script: Script) -> None:
    program = script(
        "import time, ouvrage\n"
        "ouvrage.unit('start')\n"
        "time.sleep(1.1)\n"
        "end = time.thread_time() + 0.4\n"
        "while time.thread_time() < end: pass\n"
        "time.sleep(1.1)\n"
        "ouvrage.unit('busy')\n"
    )
    meter.run(PY, program)
    used = [value for value in meter.column("emitter_cpu_us") if value is not None]
    assert used
    assert used[-1] - used[0] > 200_000


BAD: list[Any] = [
    b"", b"{", b"[]", b"{}", b'{"v":2}', b"\xff\xfe", b"[" * 60_000, b"x" * 65_000,
    b'{"v":1,"pid":1,"tid":1,"units":[["a",1,99999999999999999999]]}',
    b'{"v":1,"pid":1,"tid":1,"units":[["a",-1,0]]}',
    b'{"v":1,"pid":1,"tid":1,"units":[["a",1.5,0]]}',
    b'{"v":1,"pid":1,"tid":1,"units":[["",1,0]]}',
    b'{"v":1,"pid":1,"tid":1,"units":[[null,1,0]]}',
    b'{"v":1,"pid":1,"tid":1,"units":{"a":1}}',
    b'{"v":1,"pid":1,"tid":1,"units":[],"from":0,"to":0,"cpu":0,"spans":[["a",1,5000000000]]}',
    b'{"v":1,"pid":1,"tid":-1,"units":[]}',
]  # fmt: skip


def test_what_does_not_fit_is_counted_and_dropped(meter: Meter, script: Script) -> None:
    program = script(
        "import os, socket, time\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "s.connect(os.environ['OUVRAGE_SOCKET'])\n"
        f"for data in {BAD!r}: s.send(data)\n"
        "now = time.monotonic_ns()\n"
        "import json\n"
        "s.send(json.dumps({'v': 1, 'pid': 1, 'tid': 1, 'units': [['good', 2, now]]}).encode())\n"
        "print(os.getpid())\n"
    )
    done = meter.run(PY, program)
    marks = meter.of_kind("marks")
    assert [(line["name"], line["n"], line["pid"]) for line in marks] == [
        ("good", [2], int(done.stdout))
    ]
    notes = [note["text"] for note in meter.of_kind("note") if note["code"] == "inbox/refused"]
    assert [text.split()[0] for text in notes] == [str(len(BAD))]


@pytest.mark.parametrize("name", ["a\nb", "tab\tname"])
def test_names_are_made_printable(meter: Meter, script: Script, name: str) -> None:
    meter.run(PY, script(f"import ouvrage; ouvrage.unit({name!r})"))
    assert meter.of_kind("marks")[0]["name"].isprintable()
