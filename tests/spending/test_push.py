"""Runs pushed into a directory: whole or absent, once each, and more when more is known."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.blackbox.spools import price, run_id, spool
from tests.support.inside import Inside


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "drop").mkdir()
    return tmp_path / "drop"


def _holds(ouvrage: Inside) -> None:
    ouvrage.holds(spool(run_id(1), [1.0] * 3, label="work", rate=price("1")), run_id(1))


def test_what_lies_in_its_place_and_is_no_file_is_not_waited_for(ouvrage: Inside, place: Path):
    _holds(ouvrage)
    ouvrage("run", "push", "work", "--to", "drop")
    (file,) = place.iterdir()
    file.unlink()
    os.mkfifo(file)
    said = ouvrage("run", "push", "work", "--to", "drop")
    assert (said.code, "error[push/not-written]" in said.err) == (2, True)


def test_a_pushed_run_is_imported_elsewhere(
    ouvrage: Inside, homes: Callable[[str], Inside], place: Path
):
    _holds(ouvrage)
    pushed = ouvrage("run", "push", "work", "--to", "drop", "--json")
    assert (pushed.code, pushed.json["result"]) == (0, "accepted")
    (file,) = place.iterdir()
    other = homes("other")
    assert other("run", "import", str(file)).code == 0
    ours, theirs = (home("report", "work", "--json").json for home in (ouvrage, other))
    assert {**theirs, "as_of": None} == {**ours, "as_of": None}


def test_pushed_again_it_is_there_already(ouvrage: Inside, place: Path):
    _holds(ouvrage)
    ouvrage("run", "push", "work", "--to", "drop")
    again = ouvrage("run", "push", "work", "--to", "drop", "--json")
    assert (again.code, again.json["result"]) == (0, "exists")
    assert len(list(place.iterdir())) == 1


def test_what_was_learnt_since_is_another_file(
    ouvrage: Inside, homes: Callable[[str], Inside], place: Path
):
    _holds(ouvrage)
    ouvrage("run", "push", "work", "--to", "drop")
    ouvrage("accept", "work", "--units", "2", "--why", "checked")
    ouvrage("run", "push", "work", "--to", "drop")
    files = sorted(place.iterdir())
    assert len(files) == 2
    other = homes("other")
    for file in [*files, *files]:
        assert other("run", "import", str(file)).code == 0
    assert other("report", "work", "--json").json["units_accepted"] == 2
    assert other("verify").code == 0


def test_a_file_changed_in_the_drop_is_found(ouvrage: Inside, place: Path):
    _holds(ouvrage)
    ouvrage("run", "push", "work", "--to", "drop")
    (file,) = place.iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    said = ouvrage("run", "push", "work", "--to", "drop")
    assert said.code == 2
    assert said.err.startswith("error[push/damaged]")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--to", "nowhere"], "push/no-directory"),
        (["--to", "https://example.org/runs"], "server/address"),
        ([], "server/none"),
        (["--to", "drop", "--project", "main"], "push/project"),
    ],
)
def test_where_nothing_can_be_pushed(ouvrage: Inside, place: Path, arguments: list[str], code: str):
    _holds(ouvrage)
    said = ouvrage("run", "push", "work", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[{code}]")
    assert not list(place.iterdir())
