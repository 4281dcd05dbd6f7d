"""A machine under load: what is told of it, parts that die, a plug that answers, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ouvrage.adapters.gpu_port import PLACE
from ouvrage.adapters.power_port import PowerFault
from ouvrage.meter import endurance, host_gpus, load_child
from ouvrage.meter.endurance import Part, Plan, endure
from ouvrage.model.hosts import HostReading
from ouvrage.model.power import Reading
from tests.support.nvml import Cards, build, compiler


@pytest.fixture
def plug() -> Iterator[str]:
    """A Shelly plug that reads 421.5 W."""

    class Plug(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"apower": 421.5, "aenergy": {"total": 1.0}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Plug) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/rpc/Switch.GetStatus?id=0"
        server.shutdown()
        thread.join()


def plan(place: Path, **more: object) -> Plan:
    values: dict[str, object] = {
        "seconds": 0.6, "directory": str(place), "memory_percent": 1, "gpu": None, "wall": None, "sys": str(place),
    }  # fmt: skip
    return Plan(**{**values, **more})


def by_id(found: list[HostReading]) -> dict[str, HostReading]:
    return {each.id: each for each in found}


def test_every_part_is_kept_busy_for_as_long_as_asked(
    tmp_path: Path, plug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endurance, "DISK_BYTES", 16 << 20)
    monkeypatch.setattr(endurance, "memory_share", lambda _: 16 << 20)
    told: list[Fraction] = []
    found = by_id(endure(plan(tmp_path, wall=plug), lambda share, _: told.append(share)))
    assert Fraction(found["load.time"].low or 0) >= Fraction(1, 100)
    assert (found["load.lost"].low, found["cpu.errors"].low) == ("0", "0")
    assert (found["memory.errors"].low, found["disk.errors"].low) == ("0", "0")
    assert Fraction(found["memory.tested"].low or 0) > 0
    assert found["cpu.kept"].how == "the load was too short to tell"
    assert (found["cpu.temperature"].low, found["cpu.temperature"].how) == (None, "no sensor tells it")  # fmt: skip
    assert found["power.wall"].low == found["power.wall_most"].low == "421.5"
    assert told[0] < told[-1] <= 1
    assert told == sorted(told)


class Bmc:
    """A BMC that tells 500 W, nothing, or that it is too busy."""

    kind = "redfish"

    def __init__(self, *said: Reading | PowerFault | None) -> None:
        self._said = list(said)

    def power_w(self) -> Reading | None:
        said = self._said.pop(0) if len(self._said) > 1 else self._said[0]
        if isinstance(said, PowerFault):
            raise said
        return said


@pytest.mark.parametrize(
    ("bmc", "watts", "how"),
    [
        (
            Bmc(Reading(name="power", value=Decimal(500), unit="W", verdict="OK")),
            "500",
            " readings of the redfish",
        ),
        (Bmc(None), None, "redfish measures no power"),
        (Bmc(PowerFault("busy", "try later")), None, "redfish does not tell: try later"),
    ],
)
def test_a_bmc_is_asked_where_no_plug_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bmc: Bmc, watts: str | None, how: str
) -> None:
    monkeypatch.setattr(endurance, "DISK_BYTES", 16 << 20)
    found = by_id(endure(plan(tmp_path, seconds=0.3, remote=bmc), lambda *_: None))
    assert (found["power.wall"].low, found["power.wall_most"].low) == (watts, watts)
    assert found["power.wall"].how.endswith(how)


def test_a_part_that_dies_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endurance, "DISK_BYTES", 16 << 20)
    parts: list[Part] = []
    started = endurance._started

    def keep(kind: str, settings: dict[str, object]) -> Part:
        parts.append(started(kind, settings))
        return parts[-1]

    def kill(share: Fraction, _: str) -> None:
        if share > Fraction(1, 4):
            for part in parts:
                if part.kind == "memory":
                    part.child.kill()

    monkeypatch.setattr(endurance, "_started", keep)
    found = by_id(endure(plan(tmp_path), kill))
    assert found["load.lost"].low == "1"
    assert "memory" in found["load.lost"].how


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Part] = []
    started = endurance._started

    def keep(kind: str, settings: dict[str, object]) -> Part:
        parts.append(started(kind, settings))
        return parts[-1]

    def interrupt(_: Fraction, __: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(endurance, "_started", keep)
    with pytest.raises(KeyboardInterrupt):
        endure(plan(tmp_path, seconds=60), interrupt)
    assert parts
    assert all(part.child.returncode is not None for part in parts)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_takes_no_file_is_a_part_that_ended(tmp_path: Path) -> None:
    found = by_id(endure(plan(tmp_path, directory=str(tmp_path / "none")), lambda *_: None))
    assert found["load.lost"].how == "ended early: disk"
    assert found["disk.errors"].low is None


def test_cores_that_get_slower(tmp_path: Path) -> None:
    def core(rates: list[tuple[int, int, int]]) -> Part:
        return Part(kind="cpu", child=None, rates=rates)

    # Half of the processor time and half of the work: a neighbour. Half of the work alone: heat.
    neighbour = [(n, 100, 100) if n < 30 else (n, 50, 50) for n in range(62)]
    heat = [(n, 100, 100) if n < 30 else (n, 50, 100) for n in range(62)]
    assert endurance._kept([core(neighbour)]).low == "100"
    assert endurance._kept([core(heat), core(heat)]).low == "50"


def test_readings_of_days_are_thinned_and_the_hottest_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_gpus, "MOST_KEPT", 8)
    said = host_gpus.Said()
    for second in range(1000):
        row: list[int | None] = [None] * len(PLACE)
        row[PLACE["temperature_c"]] = 93 if second == 777 else 60
        said.keep([row, None])
    assert len(said.readings) <= 8
    assert said.stride >= 128
    assert max(host_gpus._heat_of(row) for row in said.readings) == 93


@pytest.mark.parametrize(("seconds", "every_us"), [(1, 100_000), (60, 1_000_000), (172_800, 172_800_000)])  # fmt: skip
def test_a_child_says_no_more_than_a_thousand_lines(seconds: float, every_us: int) -> None:
    assert load_child._every(seconds) == every_us


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_ctrl_c_ends_the_load_of_the_gpus_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = Cards(build(tmp_path), tmp_path / "state")
    for name, value in cards.environment.items():
        monkeypatch.setenv(name, value)
    pid = tmp_path / "pid"

    def interrupt(_: Fraction, __: str) -> None:
        if pid.exists() and pid.read_text().strip():
            raise KeyboardInterrupt

    load = f"echo $$ > {pid}; exec sleep 600"
    with pytest.raises(KeyboardInterrupt):
        endure(plan(tmp_path, seconds=30, gpu=load), interrupt)
    assert not Path("/proc", pid.read_text().strip()).exists()
