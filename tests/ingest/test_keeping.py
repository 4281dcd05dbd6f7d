"""Files of telemetry that are full are sealed once, whatever a crash leaves; beyond the limit the oldest go, and that is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ouvrage.base.grades import Grade
from ouvrage.ledger.kinds import read
from ouvrage.model.ingest import TelemetryDropped, TelemetrySealed
from ouvrage.server import keeping
from ouvrage.server.work_limits import WorkLimits
from ouvrage.store.audit import audit
from ouvrage.store.telemetry_files import held_in
from tests.ingest.sending import START, batch, node_key, post
from tests.support.server import Running, running

parquet: Any = pytest.importorskip("pyarrow.parquet")
SMALL = WorkLimits(tick_us=0, telemetry_file_bytes=1)
"""Every batch makes a file full."""


def sealed(server: Running) -> list[TelemetrySealed]:
    stated = server.platform.store.records(kind=TelemetrySealed.KIND)
    assert all(entry.fact.grade is Grade.METERED for entry in stated)
    return [read(entry.fact) for entry in stated]


def keep(server: Running, **limits: Any) -> None:
    platform = replace(server.platform, limits=replace(server.platform.limits, **limits))
    keeping.keep(platform, server.app.state.intake)


def names(server: Running) -> list[str]:
    return [held.path.name for held in held_in(server.platform.state_dir)]


def breach(server: Running) -> Any:
    return audit(server.platform.store, server.platform.state_dir).first


def test_sealed_once_with_every_sample(tmp_path: Path) -> None:
    with running(tmp_path / "state", limits=WorkLimits(tick_us=0)) as server:
        (node, key), (other, other_key) = node_key(server), node_key(server)
        for sequence in (1, 2, 3):
            assert post(server.owner.http, key, batch(sequence)).status_code == 200
            assert post(server.owner.http, other_key, batch(sequence, gpus=0)).status_code == 200
        keep(server)
        assert len(names(server)) == 1, "the file that is written to is left alone"
    with running(tmp_path / "state", limits=WorkLimits(tick_us=0)) as server:
        assert breach(server) is None
        (held,) = held_in(server.platform.state_dir)
        left = held.path.read_bytes()
        keep(server)
        (seal,) = sealed(server)
        assert names(server) == [seal.file]
        assert (seal.batches, seal.samples) == (6, 3 * 5 * 3 + 3 * 5)
        assert (seal.from_us, seal.to_us) == (START + 5_000_000, START + 19_000_000)
        rows = parquet.read_table(server.platform.state_dir / "telemetry" / seal.file).to_pylist()
        assert len(rows) == seal.samples
        assert {row["node"] for row in rows} == {node, other}
        of_card = [r for r in rows if (r["node"], r["device"]) == (node, "GPU-1")]
        assert [r["busy_percent"] for r in of_card] == [55, 56, 57, 58, 59] * 3
        assert {r["cpu_permille"] for r in rows if r["device"] is None} == {None, 500}
        # A crash before the batches were removed leaves them; they are not sealed a second time.
        held.path.write_bytes(left)
        keep(server)
        assert names(server) == [seal.file] and len(sealed(server)) == 1
        assert post(server.owner.http, key, batch(3)).json()["result"] == "exists"
        assert breach(server) is None
        path = server.platform.state_dir / "telemetry" / seal.file
        path.write_bytes(path.read_bytes() + b" ")
        assert breach(server).law == "store/telemetry"


def test_beyond_the_limit_the_oldest_go(tmp_path: Path) -> None:
    with running(tmp_path / "state", limits=SMALL) as server:
        _, key = node_key(server)
        for sequence in (1, 2, 3):
            post(server.owner.http, key, batch(sequence))
        keep(server)
        files = [seal.file for seal in sealed(server)]
        assert names(server) == files and len(files) == 3
        keep(server, telemetry_bytes=sum(h.bytes for h in held_in(server.platform.state_dir)) - 1)
        assert names(server) == files[1:]
        (dropped,) = server.platform.store.records(kind=TelemetryDropped.KIND)
        assert read(dropped.fact).file == files[0]
        keep(server, telemetry_bytes=0)
        assert names(server) == []
        assert len(server.platform.store.records(kind=TelemetryDropped.KIND)) == 3
        assert breach(server) is None


def test_without_the_library_batches_stay_within_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping.importlib.util, "find_spec", lambda _: None)
    with running(tmp_path / "state", limits=SMALL) as server:
        _, key = node_key(server)
        for sequence in (1, 2):
            post(server.owner.http, key, batch(sequence))
        keep(server)
        assert len(names(server)) == 2 and not sealed(server)
        assert breach(server) is None
        keep(server, telemetry_bytes=held_in(server.platform.state_dir)[1].bytes)
        assert len(names(server)) == 1
        assert len(server.platform.store.records(kind=TelemetryDropped.KIND)) == 1


def test_a_damaged_file_is_found_and_not_sealed(tmp_path: Path) -> None:
    with running(tmp_path / "state", limits=SMALL) as server:
        _, key = node_key(server)
        post(server.owner.http, key, batch(1))
        (held,) = held_in(server.platform.state_dir)
        data = bytearray(held.path.read_bytes())
        data[60] ^= 1
        held.path.write_bytes(data)
        keep(server)
        assert not sealed(server) and len(server.app.state.intake.unsealable) == 1
        held.path.unlink()  # left alone until the next start: nothing is tried on it
        keep(server)
        held.path.write_bytes(data)
        assert breach(server).law == "store/telemetry"
