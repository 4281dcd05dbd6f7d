"""What reaches a terminal or a file: harmless, aligned, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.output import begin, drawn_width, say_error, shortened, table, write_file


def test_control_characters_are_shown_and_not_sent(capsys: pytest.CaptureFixture[str]):
    begin()
    say_error(OuvrageError("x/y", "a\x1b[31mb\r\u202e", where=("\x07",)), as_json=False)
    assert capsys.readouterr().err.splitlines() == [
        "error[x/y]: a\\x1b[31mb\\r\\u202e",
        "  \\x07",
        "nothing was written",
    ]


def test_a_refusal_after_something_was_written_does_not_say_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    begin()
    write_file(tmp_path / "x", "x")
    say_error(OuvrageError("x/y", "later"), as_json=False)
    assert capsys.readouterr().err == "error[x/y]: later\n"
    begin()
    say_error(OuvrageError("x/y", "again"), as_json=False)
    assert capsys.readouterr().err == "error[x/y]: again\nnothing was written\n"


def test_columns_align_by_what_is_drawn():
    lines = table(["name", "n"], [["漢字", "1"], ["e\u0301t", "22"]], "<>").splitlines()
    assert {drawn_width(line) for line in lines} == {8}
    assert lines[1] == "漢字   1"


@pytest.mark.parametrize(
    ("text", "width", "expected"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字漢字", 5, "漢字…")]
)
def test_shortened(text: str, width: int, expected: str):
    assert shortened(text, width) == expected


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(OuvrageError) as refused:
        write_file(tmp_path / "file" / "below", "new")
    assert refused.value.code == "file/not-written"
    assert (tmp_path / "file").read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_file_is_written_with_its_directory(tmp_path: Path):
    write_file(tmp_path / "new" / "file.json", "{}\n")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["file.json"]
