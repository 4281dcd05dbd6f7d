"""``verify``, ``rebuild``, ``backup`` and ``restore`` as a person types them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.spools import run_id, spool

RUN = run_id(1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "spool").mkdir(parents=True)
    (tmp_path / "home" / "spool" / f"{RUN}.ndjson").write_bytes(spool(RUN))
    return tmp_path / "home"


def ouvrage(*words: object, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OUVRAGE_")}
    return subprocess.run(
        [sys.executable, "-m", "ouvrage", *map(str, words)],
        env={**kept, "OUVRAGE_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_whole_books(home: Path) -> None:
    said = ouvrage("verify", home=home)
    assert (said.returncode, said.stderr) == (0, "")
    first = said.stdout.splitlines()[0]
    assert first.startswith("The books hold: ")
    assert first.endswith(" facts, nothing broken.")
    told = json.loads(ouvrage("verify", "--json", home=home).stdout)
    assert told["holds"] is True
    assert {law["records"] for law in told["laws"]} == {told["facts"]}


def test_an_empty_home(tmp_path: Path) -> None:
    said = ouvrage("verify", home=tmp_path / "new")
    assert said.returncode == 0
    assert said.stdout.startswith("Nothing is recorded yet")


def test_a_changed_fact(home: Path) -> None:
    ouvrage("verify", home=home)
    with sqlite3.connect(home / "ouvrage.db") as changed:
        changed.execute("DROP TRIGGER facts_no_update")
        changed.execute("UPDATE facts SET payload = replace(payload, '0.30', '0.03') WHERE seq = 1")
    changed.close()
    said = ouvrage("verify", home=home)
    assert said.returncode == 1
    assert said.stdout.startswith("The books do not hold: ")
    assert f"first broken: ledger/hash\n  seq 1, run.started {'a' * 32}/{RUN}/start" in said.stdout
    told = json.loads(ouvrage("verify", "--json", home=home).stdout)
    assert told["first_broken"]["law"] == "ledger/hash"


def test_a_file_that_is_no_database(home: Path) -> None:
    (home / "ouvrage.db").write_bytes(b"scribble" * 1000)
    said = ouvrage("verify", home=home)
    assert said.returncode == 1
    assert said.stderr.startswith("error[store/damaged]: ")
    assert (home / "spool" / f"{RUN}.ndjson").exists()


@pytest.mark.slow
def test_there_and_back(home: Path, tmp_path: Path) -> None:
    made = json.loads(ouvrage("rebuild", "--json", home=home).stdout)
    assert made["runs"] == 1
    file, there = tmp_path / "books.tar.gz", tmp_path / "there"
    written = ouvrage("backup", file, home=home)
    assert written.returncode == 0
    assert written.stdout.startswith(f"Wrote {made['facts']} facts and the samples of 1 run to ")
    assert ouvrage("backup", file, home=home).returncode == 2
    assert ouvrage("restore", file, home=there).returncode == 0
    assert json.loads(ouvrage("rebuild", "--json", home=there).stdout) == made
    assert ouvrage("verify", home=there).returncode == 0
    again = ouvrage("restore", file, home=there)
    assert again.returncode == 2
    assert again.stderr.startswith("error[restore/not-empty]")


@pytest.mark.slow
def test_from_sqlite_to_postgresql(
    home: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue("cluster").database()
    file, there = tmp_path / "books.tar.gz", tmp_path / "there"
    made = json.loads(ouvrage("rebuild", "--json", home=home).stdout)
    ouvrage("backup", file, home=home)
    restored = ouvrage("restore", file, home=there, OUVRAGE_STORE=address)
    assert (restored.returncode, restored.stderr) == (0, "")
    rebuilt = ouvrage("rebuild", "--json", home=there, OUVRAGE_STORE=address)
    assert json.loads(rebuilt.stdout) == made
    assert ouvrage("verify", home=there, OUVRAGE_STORE=address).returncode == 0
    assert not (there / "ouvrage.db").exists()
