"""A run travels in one file and is the same run where it arrives."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ouvrage.base.canonical import canonical
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.metering.exchange import export_run as pack
from ouvrage.metering.exchange import read_export
from ouvrage.model.runs import RunSamples
from ouvrage.store.audit import audit
from ouvrage.store.exchange import export_run, import_run
from ouvrage.store.intake import bring_in
from ouvrage.store.projections import current_runs
from ouvrage.store.samples import read_sealed
from ouvrage.store.store import Store
from tests.support.facts import OTHER, fact
from tests.support.spools import STARTED, run_id, spool

RUN = run_id(1)


@pytest.fixture
def home(tmp_path: Path, store: Store) -> Path:
    (tmp_path / "home" / "spool").mkdir(parents=True)
    (tmp_path / "home" / "spool" / f"{RUN}.ndjson").write_bytes(spool(RUN))
    bring_in(tmp_path / "home", store, STARTED)
    newer = fact("n", kind="gpu.window", version=9, subject=RUN, body={"w": 1.5})
    store.append([newer], now_us=1, own_source=OTHER)
    return tmp_path / "home"


@pytest.fixture
def data(store: Store, home: Path) -> bytes:
    return export_run(store.records(subject=RUN), read_sealed(home, RUN))


def code_of(data: bytes, store: Store, home: Path) -> str:
    with pytest.raises(OuvrageError) as refused:
        import_run(data, store, home, now_us=1, own_source=OTHER)
    assert store.head().seq == 0
    assert not home.exists()
    return refused.value.code


def test_there(store: Store, other_store: Store, home: Path, data: bytes, tmp_path: Path) -> None:
    there = tmp_path / "there"
    done = import_run(data, other_store, there, now_us=5, own_source=OTHER)
    assert (done.run, done.samples) == (RUN, True)
    assert done.count("accepted") == len(done.outcomes) == len(store.records(subject=RUN))
    assert [e.fact for e in other_store.records()] == [e.fact for e in store.records(subject=RUN)]
    assert audit(other_store, there).first is None
    again = import_run(data, other_store, there, now_us=9, own_source=OTHER)
    assert again.count("exists") == len(again.outcomes)
    ours, theirs = current_runs(store).rows[0], current_runs(other_store).rows[0]
    assert (ours.code, ours.label, ours.command) == (theirs.code, theirs.label, theirs.command)
    sent_on = export_run(other_store.records(subject=RUN), read_sealed(there, RUN))
    assert sent_on == data


def test_without_samples(store: Store, other_store: Store, home: Path, tmp_path: Path) -> None:
    data = export_run(store.records(subject=RUN), None)
    done = import_run(data, other_store, tmp_path / "there", now_us=5, own_source=OTHER)
    assert done.samples is False
    found = audit(other_store, tmp_path / "there")
    assert (found.first, found.missing) == (None, (RUN,))


def test_another_account_is_recorded_as_a_conflict(
    store: Store, stores: Callable[[], Store], home: Path, data: bytes, tmp_path: Path
) -> None:
    there = stores()
    start = read_export(data).facts[0]
    changed = fact(start.id, source=start.source, subject=RUN)
    there.append([changed], now_us=1, own_source=OTHER)
    done = import_run(data, there, tmp_path / "there", now_us=5, own_source=OTHER)
    assert done.count("conflict") == 1
    assert done.outcomes[0].field == "kind"
    assert there.records()[0].fact == changed


def test_exactly_one_run(store: Store, home: Path) -> None:
    store.append([fact("o", subject="other")], now_us=1, own_source=OTHER)
    for records in ([], store.records()):
        with pytest.raises(OuvrageError, match="exactly one"):
            export_run(records, None)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_cut_short(data: bytes, other_store: Store, tmp_path: Path, part: float) -> None:
    cut = data[: int(len(data) * part)]
    assert code_of(cut, other_store, tmp_path / "there") == "exchange/damaged"


def packed(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


def rehashed(text: bytes) -> bytes:
    """The file with a first line that states the right hash of a changed rest."""
    first, _, body = text.partition(b"\n")
    at = first.index(b'"sha256":"') + 10
    honest = first[:at] + hashlib.sha256(body).hexdigest().encode() + first[at + 64 :]
    return packed(honest + b"\n" + body)


def test_changed(data: bytes, other_store: Store, tmp_path: Path) -> None:
    text, there = gzip.decompress(data), tmp_path / "there"
    changes = [
        packed(text.replace(b"0.30", b"0.03")),
        rehashed(text.replace(b"0.30", b"0.03")),
        rehashed(text.replace(b'"facts":', b'"facts":1')),
        rehashed(text.replace(b'"facts":', b'"facts":-')),
        rehashed(text.replace(b'"samples":', b'"samples":1')),
        rehashed(text.replace(RUN.encode(), run_id(2).encode(), 1)),
        rehashed(text.replace(b'"k": "end"', b'"k": "bad"')),
        rehashed(text.replace(b"ouvrage-run", b"ouvrage-fun")),
        packed(b"[]\n"),
        packed(b""),
        data + b"more",
    ]
    for number, changed in enumerate(changes):
        assert code_of(changed, other_store, there) == "exchange/damaged", number
    newer = rehashed(text.replace(b'"version":1}', b'"version":2}', 1))
    assert code_of(newer, other_store, there) == "exchange/newer"


def test_a_file_that_unpacks_without_end(
    data: bytes, other_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ouvrage.metering.exchange.LARGEST", 1000)
    assert code_of(packed(b"0" * 2000), other_store, tmp_path / "there") == "exchange/too-large"


def test_a_run_cannot_name_a_path(other_store: Store, tmp_path: Path) -> None:
    evil = "../../evil"
    stated = RunSamples(run=evil, sha256=hashlib.sha256(b"x").hexdigest(), size_bytes=1, samples=1)
    made = fact_of(stated, source=OTHER, id="x", subject=evil, valid_from=1, valid_to=1,
                   grade=Grade.MEASURED)  # fmt: skip
    assert code_of(pack(evil, [made], b"x"), other_store, tmp_path / "there") == "exchange/damaged"


def changed(data: bytes, kind: str, subject: str | None = None, **fields: object) -> bytes:
    """The same file with other words in the payloads of one kind, and all hashes right."""
    exported = read_export(data)
    facts: list[Fact] = []
    for one in exported.facts:
        payload = json.loads(one.payload)
        payload.update(fields if one.kind == kind else {})
        facts.append(replace(one, payload=canonical(payload), subject=subject or one.subject))
    return pack(subject or RUN, facts, None)


PRICE = {"amount": "1", "currency": "EUR", "per": "h"}


def test_a_file_that_could_never_be_reported_is_refused(
    data: bytes, other_store: Store, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    hostile = [
        changed(data, "none", subject="zzz"),
        changed(data, "none", subject="f" * 32),
        changed(data, "run.started", run="zz"),
        changed(data, "run.started", price={**PRICE, "amount": "1e9"}),
        changed(data, "run.started", price={**PRICE, "currency": "\x1b[2J"}),
        changed(data, "run.ended", outcome="splendid"),
        changed(data, "run.ended", wall_us=-1),
        pack(RUN, [one for one in read_export(data).facts if one.kind == "run.ended"], None),
    ]
    for number, made in enumerate(hostile):
        assert code_of(made, other_store, there) == "exchange/damaged", number


def test_moments_that_no_calendar_holds_do_not_hide_the_other_runs(
    data: bytes, other_store: Store, tmp_path: Path
) -> None:
    for made in (
        changed(data, "run.started", started_us=-(10**18)),
        changed(data, "run.ended", wall_us=10**30),
    ):
        import_run(made, other_store, tmp_path / "there", now_us=5, own_source=OTHER)
        assert [row.run for row in current_runs(other_store).rows] == [RUN]
