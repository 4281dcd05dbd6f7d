"""Directories that travel: what of them does, and what a stranger may not have us write."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ouvrage.adapters.trees import DEEPEST, Found, LeftOut, Planting, entries_below, plant_below


def planted(target: Path, *entries: tuple[str, bytes | None]) -> None:
    """Put down entries by path, with a file's bytes, or None for a directory."""
    with plant_below(str(target.parent), target.name) as planting:
        for path, data in entries:
            planting.entry(path, directory=data is None, executable=False)
            if data:
                planting.write(data)


def test_files_and_directories_travel_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "x").write_bytes(b"x" * 100_000)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "out").symlink_to("/etc")
    os.mkfifo(source / "pipe")
    (source / "two\nlines").write_text("")
    Path(os.fsdecode(os.fsencode(source) + b"/\xff")).write_text("")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(source / "sock"))
        found = list(entries_below(str(tmp_path), "source"))
    left = {each.path: each.sort for each in found if isinstance(each, LeftOut)}
    odd = "a name that is no plain text"
    assert left == {
        "out": "a link", "pipe": "a pipe", "sock": "a socket", r"two\nlines": odd, r"\udcff": odd,
    }  # fmt: skip
    target = tmp_path / "target"
    with plant_below(str(tmp_path), "target") as planting:
        for each in found:
            if isinstance(each, Found):
                inner = each.descriptor is None
                planting.entry(each.path, directory=inner, executable=each.executable)
                if each.descriptor is not None:
                    with os.fdopen(each.descriptor, "rb") as file:
                        planting.write(file.read())
        assert not target.exists()
    assert sorted(str(at.relative_to(target)) for at in target.rglob("*")) == [
        "deep", "deep/er", "deep/er/x", "run.sh",
    ]  # fmt: skip
    assert (target / "deep/er/x").read_bytes() == b"x" * 100_000
    assert os.access(target / "run.sh", os.X_OK)
    assert not os.access(target / "deep/er/x", os.X_OK)


def test_what_goes_away_or_may_not_be_read_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b", "shut"):
        (source / name).write_text(name)
    (source / "c").mkdir()
    really = os.open

    def opened(path: str, *more: int, **where: int) -> int:
        if path == "shut":
            raise PermissionError
        return really(path, *more, **where)

    monkeypatch.setattr(os, "open", opened)
    told = entries_below(str(tmp_path), "source")
    first = next(told)
    (source / "b").unlink()
    (source / "c").rmdir()
    rest = [(each.path, each.sort) for each in told if isinstance(each, LeftOut)]
    assert isinstance(first, Found)
    assert first.descriptor is not None
    os.close(first.descriptor)
    assert rest == [("b", "gone meanwhile"), ("c", "gone meanwhile"), ("shut", "not to be read")]


@pytest.mark.parametrize(
    "path",
    [
        "../x", "/tmp/x", "a/../../x", "", ".", "..", "a//b", "a/", "x\0y", "x\x1b[2Jy", "x\ny", "none/x",
        "/".join(["d"] * (DEEPEST + 2)), "n" * 5000, "n" * 300,
    ],
)  # fmt: skip
def test_no_path_leads_out_or_misleads(tmp_path: Path, path: str) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises((ValueError, OSError)):
        planted(tmp_path / "target", ("a", None), (path, b"theirs"))
    assert [at.name for at in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "mine"


def test_nothing_is_written_over_or_through_anything(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="came twice"):
        planted(tmp_path / "target", ("a", b"1"), ("a", b"2"))
    with pytest.raises(OSError, match="Not a directory"):
        planted(tmp_path / "target", ("a", b"1"), ("a/b", b"2"))
    with pytest.raises(ValueError, match="no file"), plant_below(str(tmp_path), "t") as planting:
        planting.write(b"x")
    for name in ("file", "link", "there"):
        if name == "link":
            (tmp_path / name).symlink_to(tmp_path)
        elif name == "file":
            (tmp_path / name).write_text("mine")
        else:
            (tmp_path / name).mkdir()
        with pytest.raises(ValueError, match="there already"):
            planted(tmp_path / name, ("a", b"1"))
    assert sorted(at.name for at in tmp_path.iterdir()) == ["file", "link", "there"]


def test_a_link_that_is_slipped_in_meanwhile_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "way").symlink_to(outside)
    descriptor = os.open(inner, os.O_RDONLY)
    planting = Planting(descriptor)
    for path in ("way/x", "way"):
        with pytest.raises((OSError, ValueError)):
            planting.entry(path, directory=False, executable=False)
    os.close(descriptor)
    assert not list(outside.iterdir())
    with pytest.raises((OSError, ValueError)):
        list(entries_below(str(tmp_path), "inner/way"))
    with pytest.raises(ValueError, match="it is a link, not a directory"):
        list(entries_below(str(inner), "way"))


def test_what_is_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source" / "/".join(["d"] * (DEEPEST + 1))).mkdir(parents=True)
    with pytest.raises(ValueError, match="in one another"):
        list(entries_below(str(tmp_path), "source"))
