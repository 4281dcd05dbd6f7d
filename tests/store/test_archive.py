"""A backup restores to the same books, on either database; anything less is refused whole."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.lines import record_line
from ouvrage.store.archive import backup, restore
from ouvrage.store.audit import audit
from ouvrage.store.intake import bring_in
from ouvrage.store.projections import current_runs
from ouvrage.store.store import Store
from tests.support.facts import OTHER, fact, withdrawal
from tests.support.spools import STARTED, run_id, spool

RUN = run_id(1)
Change = Callable[["bytes | None"], "bytes | None"]


@pytest.fixture
def home(tmp_path: Path, store: Store) -> Path:
    """A home with two runs, a conflict, a correction and a fact from the future in its store."""
    spools = tmp_path / "home" / "spool"
    spools.mkdir(parents=True)
    for run in (RUN, run_id(2)):
        (spools / f"{run}.ndjson").write_bytes(spool(run))
    bring_in(tmp_path / "home", store, STARTED)
    odd = fact("new", kind="gpu.window", version=9, body=[1.5])
    store.append([odd, withdrawal("w", odd.key)], now_us=STARTED + 5, own_source=OTHER)
    store.append([fact("new")], now_us=STARTED + 6, own_source=OTHER)
    return tmp_path / "home"


def text_of(store: Store) -> list[str]:
    return [record_line(entry) for entry in store.records()]


@pytest.fixture
def file(store: Store, home: Path, tmp_path: Path) -> Path:
    path = tmp_path / "books.tar.gz"
    backup(store, home, path)
    return path


def refused(file: Path, store: Store, home: Path) -> OuvrageError:
    with pytest.raises(OuvrageError) as error:
        restore(file, store, home)
    return error.value


def test_across_databases(
    store: Store, other_store: Store, home: Path, file: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    found = restore(file, other_store, there)
    assert (found.facts, found.samples, found.missing) == (len(store.records()), 2, ())
    assert text_of(other_store) == text_of(store)
    assert other_store.head() == store.head()
    assert current_runs(other_store) == current_runs(store)
    checked = audit(other_store, there)
    assert checked.first is None
    assert checked.unread == {("gpu.window", 9): 1}
    assert checked.missing == ()
    again = tmp_path / "again.tar.gz"
    backup(other_store, there, again)
    assert again.read_bytes() == file.read_bytes()
    more = other_store.append([fact("more")], now_us=1, own_source=OTHER)
    assert more[0].seq == len(store.records()) + 1


def test_only_into_an_empty_store(store: Store, home: Path, file: Path) -> None:
    before = text_of(store)
    assert refused(file, store, home).code == "restore/not-empty"
    assert text_of(store) == before


def test_not_over_other_samples(file: Path, other_store: Store, tmp_path: Path) -> None:
    there = tmp_path / "there" / "samples"
    there.mkdir(parents=True)
    (there / f"{RUN}.ndjson.gz").write_bytes(b"mine")
    assert refused(file, other_store, tmp_path / "there").code == "restore/not-empty"
    assert (there / f"{RUN}.ndjson.gz").read_bytes() == b"mine"
    assert other_store.head().seq == 0


def test_missing_samples_are_told(store: Store, home: Path, tmp_path: Path) -> None:
    (home / "samples" / f"{RUN}.ndjson.gz").unlink()
    assert backup(store, home, tmp_path / "b.tar.gz").missing == (RUN,)


def test_backups_are_not_overwritten(store: Store, home: Path, file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(OuvrageError) as error:
        backup(store, home, file)
    assert error.value.code == "backup/exists"
    assert file.read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".new")]


def test_an_empty_ledger(other_store: Store, database: str, tmp_path: Path) -> None:
    backup(other_store, tmp_path, tmp_path / "empty.tar.gz")
    assert restore(tmp_path / "empty.tar.gz", other_store, tmp_path).facts == 0


@pytest.mark.parametrize("kept", [0, 1, 0.3, 0.6, 0.9])
def test_a_file_cut_short(file: Path, other_store: Store, tmp_path: Path, kept: float) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept) if kept < 1 else 1])
    assert refused(file, other_store, tmp_path / "there").code == "restore/damaged"
    assert other_store.head().seq == 0
    assert not (tmp_path / "there").exists()


def test_no_file(other_store: Store, database: str, tmp_path: Path) -> None:
    assert refused(tmp_path / "x", other_store, tmp_path).code == "restore/absent"


def rewrite(file: Path, name: str, change: Change) -> None:
    """Change one member of a backup; ``change`` gets its bytes, None where it is new."""
    with tarfile.open(file, "r:gz") as tar:
        opened = {member.name: tar.extractfile(member) for member in tar}
        members = {name: content.read() for name, content in opened.items() if content}
    changed = change(members.get(name))
    if changed is None:
        members.pop(name)
    else:
        members[name] = changed
    with tarfile.open(file, "w:gz") as tar:
        for member, data in members.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def manifest(**changes: object) -> Change:
    return lambda data: json.dumps({**json.loads(data or b""), **changes}).encode()


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("facts.ndjson", lambda d: d[:-100], "restore/damaged"),
        ("facts.ndjson", lambda d: d.replace(b"0.30", b"0.03"), "restore/damaged"),
        ("facts.ndjson", lambda d: None, "restore/damaged"),
        (f"samples/{RUN}.ndjson.gz", lambda d: d[:-1], "restore/damaged"),
        (f"samples/{RUN}.ndjson.gz", lambda d: None, "restore/damaged"),
        ("../outside", lambda d: b"x", "restore/damaged"),
        ("manifest.json", lambda d: None, "restore/damaged"),
        ("manifest.json", lambda d: b"{", "restore/damaged"),
        ("manifest.json", manifest(format="zip"), "restore/damaged"),
        ("manifest.json", manifest(members=[]), "restore/damaged"),
        ("manifest.json", manifest(version=2), "restore/newer"),
    ],
    ids=[
        "facts-short", "facts-changed", "facts-gone", "samples-short", "samples-gone", "a-stranger",
        "no-manifest", "no-json", "other-format", "no-members", "newer",
    ],
)  # fmt: skip
def test_a_changed_file(
    file: Path, other_store: Store, tmp_path: Path, name: str, change: Change, code: str
) -> None:
    rewrite(file, name, change)
    assert refused(file, other_store, tmp_path / "there").code == code
    assert other_store.head().seq == 0
    assert not (tmp_path / "there").exists()
    assert not (tmp_path / "outside").exists()


def test_the_file_can_be_read_without_us(file: Path) -> None:
    """It is a tar of JSON lines, so that a record outlives the program."""
    with tarfile.open(file, "r:gz") as tar:
        names = tar.getnames()
        facts = tar.extractfile("facts.ndjson")
        assert facts is not None
        lines = [json.loads(line) for line in facts]
    assert names[:2] == ["manifest.json", "facts.ndjson"]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    with gzip.open(shutil.copy(file, file.with_suffix(".copy"))) as plain:
        assert plain.read(8) == b"manifest"
