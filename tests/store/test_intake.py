"""Runs come from the spool into the store once, whatever stops the bringing, and none is lost."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.kinds import read
from ouvrage.model.runs import RunEnded, RunSamples
from ouvrage.store import intake as intake_module
from ouvrage.store.intake import IntakeReport, bring_in
from ouvrage.store.store import Store
from tests.support.facts import fact
from tests.support.spools import STARTED, run_id, spool

ONE, TWO, THREE = run_id(1), run_id(2), run_id(3)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "spool").mkdir(parents=True)
    return tmp_path / "home"


def lay(home: Path, run: str, data: bytes | None = None) -> Path:
    path = home / "spool" / f"{run}.ndjson"
    path.write_bytes(spool(run) if data is None else data)
    return path


def take(home: Path, store: Store) -> IntakeReport:
    return bring_in(home, store, STARTED + 10**9)


def ended(store: Store, run: str) -> RunEnded:
    (entry,) = store.records(subject=run, kind=RunEnded.KIND)
    value = read(entry.fact)
    assert isinstance(value, RunEnded)
    return value


def test_a_finished_run(home: Path, store: Store) -> None:
    path = lay(home, ONE)
    data = path.read_bytes()
    report = take(home, store)
    assert (report.brought, report.running, report.broken) == ([ONE], [], [])
    assert not path.exists()
    sealed = home / "samples" / f"{ONE}.ndjson.gz"
    assert gzip.decompress(sealed.read_bytes()) == data
    (entry,) = store.records(kind=RunSamples.KIND)
    stated = read(entry.fact)
    assert isinstance(stated, RunSamples)
    assert (stated.sha256, stated.size_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
    assert stated.samples == 3
    assert ended(store, ONE).outcome == "completed"
    assert take(home, store) == IntakeReport()


def test_nothing_to_bring(tmp_path: Path, store: Store) -> None:
    assert bring_in(tmp_path / "no-home", store, 1) == IntakeReport()
    assert not (tmp_path / "no-home").exists()


def test_a_lost_run_and_a_torn_line(home: Path, store: Store) -> None:
    torn = spool(ONE, ended=False) + '{"k":"note","t":3,"text":"ü'.encode()[:-1]
    lay(home, ONE, torn)
    assert take(home, store).brought == [ONE]
    assert ended(store, ONE).outcome == "lost"
    assert ended(store, ONE).notes != ()


def test_a_running_run_is_left_alone(home: Path, store: Store) -> None:
    path = lay(home, ONE, spool(ONE, ended=False))
    lay(home, TWO)
    with path.open("rb") as meter:
        fcntl.flock(meter, fcntl.LOCK_EX)
        report = take(home, store)
    assert report.brought == [TWO]
    (running,) = report.running
    assert (running.run, running.label, running.started_us) == (ONE, "small", STARTED)
    assert running.spool is not None
    assert path.exists()
    assert take(home, store).brought == [ONE]


def test_a_running_run_that_cannot_be_read_is_still_only_running(home: Path, store: Store) -> None:
    path = lay(home, ONE, b"{}\n{}\n")
    with path.open("rb") as meter:
        fcntl.flock(meter, fcntl.LOCK_EX)
        (running,) = take(home, store).running
    assert (running.spool, running.label, running.started_us) == (None, None, STARTED)


def test_a_broken_spool_stops_no_other(home: Path, store: Store) -> None:
    bad = spool(ONE).replace(b'"t": [0', b'"t": ["x"')
    lay(home, ONE, bad)
    lay(home, TWO)
    lay(home, THREE, b"")
    report = take(home, store)
    assert report.brought == [TWO]
    assert [broken.path.name for broken in report.broken] == [f"{ONE}.ndjson", f"{THREE}.ndjson"]
    assert report.broken[0].path.read_bytes() == bad
    assert "line 2" in str(report.broken[0])
    assert store.records(subject=ONE) == []
    lay(home, ONE, bad)
    (again,) = take(home, store).broken
    assert again.path.name == f"{ONE}.ndjson.1"


def test_another_account_of_a_known_run_is_set_aside(home: Path, store: Store) -> None:
    lay(home, ONE)
    take(home, store)
    before = [entry.fact for entry in store.records()]
    lay(home, ONE, spool(ONE, label="other"))
    (broken,) = take(home, store).broken
    assert broken.error.code == "samples/differ"
    (home / "samples" / f"{ONE}.ndjson.gz").unlink()
    lay(home, ONE, spool(ONE, label="other"))
    (broken,) = take(home, store).broken
    assert broken.error.code == "spool/conflict"
    assert "payload.label" in broken.error.lines()[1]
    assert [entry.fact for entry in store.records()][: len(before)] == before


def test_what_cannot_be_a_fact_is_set_aside(home: Path, store: Store) -> None:
    lay(home, ONE, spool(ONE, started_us=2**70))
    (broken,) = take(home, store).broken
    assert broken.error.code == "fact/malformed"
    assert store.head().seq == 0


def test_other_files_are_none_of_its_business(home: Path, store: Store) -> None:
    for name in (f".{ONE}.ndjson.new", "notes.txt", "short.ndjson"):
        (home / "spool" / name).write_text("x")
    assert take(home, store) == IntakeReport()
    assert (home / "spool" / "short.ndjson").exists()


class Stop(Exception):
    """Thrown where a crash is played."""


@pytest.mark.parametrize("step", ["seal", "facts_of", "append", "unlink"])
def test_stopped_at_any_step_it_is_done_again(
    home: Path, store: Store, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crash comes after the step was done, except for the removal, which it prevents."""
    path = lay(home, ONE)

    def stop(*_: object, **__: object) -> None:
        raise Stop

    def then_stop(real: Callable[..., object]) -> Callable[..., object]:
        def done(*args: object, **kwargs: object) -> None:
            real(*args, **kwargs)
            raise Stop

        return done

    with monkeypatch.context() as patched:
        if step == "append":
            patched.setattr(Store, "append", then_stop(Store.append))
        elif step == "unlink":
            patched.setattr(Path, "unlink", stop)
        else:
            patched.setattr(intake_module, step, then_stop(getattr(intake_module, step)))
        with pytest.raises(Stop):
            take(home, store)
    assert path.exists()
    report = take(home, store)
    assert (report.brought, report.broken) == ([ONE], [])
    ids = [entry.fact.id for entry in store.records()]
    assert len(ids) == len(set(ids))
    assert not path.exists()
    assert [kept.name for kept in (home / "samples").iterdir()] == [f"{ONE}.ndjson.gz"]


def test_a_store_that_refuses_leaves_the_spool(
    home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lay(home, ONE)

    def full(*_: object, **__: object) -> None:
        raise OuvrageError("store/disk-full", "no room")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "append", full)
        with pytest.raises(OuvrageError, match="no room"):
            take(home, store)
    assert path.exists()
    store.append([fact()], now_us=1, own_source="x")
    assert take(home, store).brought == [ONE]


def test_two_at_once_bring_each_run_once(home: Path, store: Store) -> None:
    for number in range(1, 13):
        lay(home, run_id(number))
    gate = threading.Barrier(2)
    reports: list[IntakeReport] = []

    def work() -> None:
        gate.wait(30)
        reports.append(take(home, store))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(run for report in reports for run in report.brought) == [
        run_id(number) for number in range(1, 13)
    ]
    assert [report.running + report.broken for report in reports] == [[], []]
