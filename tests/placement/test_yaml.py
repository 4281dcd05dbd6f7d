"""Job files in YAML: plain values with their lines, and everything surprising refused."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

import pytest

from ouvrage.adapters import yaml_text
from ouvrage.adapters.yaml_text import LARGEST, load_yaml, read_yaml
from ouvrage.base.errors import OuvrageError


def test_scalars_by_the_core_rules_alone():
    text = "a: 1\nb: -2\nc: 1.50\nd: true\ne: null\nf: ~\ng:\nh: yes\ni: 1:30\nj: 007\nk: 1e3\nl: 0x1f\nm: '1'\nn: 2026-12-01\no: |\n  x\n  y\n"
    value, _ = load_yaml("f", text, "job")
    assert value == {
        "a": 1, "b": -2, "c": Decimal("1.50"), "d": True, "e": None, "f": None, "g": None, "h": "yes", "i": "1:30",
        "j": "007", "k": "1e3", "l": "0x1f", "m": "1", "n": "2026-12-01", "o": "x\ny\n",
    }  # fmt: skip


def test_every_part_knows_its_line():
    _, source = load_yaml("job.yaml", "# one\na: 1\nb:\n  - c: 2\n    d: 3\n", "job")
    assert source.where(("a",)) == "job.yaml:2   a: 1"
    assert source.where(("b", 0, "d")) == "job.yaml:5   d: 3"
    assert source.where(("b", 0, "d", "deeper")) == "job.yaml:5   d: 3"


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("a: &x 1\nb: *x\n", "anchor or alias", 1),
        ("b: *x\n", "anchor or alias", 1),
        ("x: [1, &y [2], *y]\n", "anchor or alias", 1),
        ("a: 1\nb: 2\na: 3\n", "'a' twice", 3),
        ("a: 1\n'a': 3\n", "'a' twice", 2),
        ("1: 2\n", "no text", 1),
        ("true: 2\n", "no text", 1),
        ("? [a]\n: b\n", "no text", 1),
        ("? {a: 1}\n: b\n", "no text", 1),
        ("a: !!python/object/apply:os.system [x]\n", "the tag", 1),
        ("a: !!str 1\n", "the tag", 1),
        ("a: [\n", "is no YAML", None),
        ("a:\n\tb: 1\n", "is no YAML", 2),
        ("a: b\n---\nc: d\n", "second document", 3),
        ("a: " + "[" * 30 + "]" * 30, "levels", 1),
        ("[" * 100_000, "", 1),
        ("{a: " * 50_000, "", 1),
        ("a: [" + "1," * 30_000 + "]", "values", 1),
        ("a: \x01", "is no YAML", None),
        ("a: \ud800", "is no YAML", None),
        ("x" * (LARGEST + 1), "larger than 256 KiB", None),
    ],
)
def test_what_would_surprise_is_refused_with_its_line(text: str, problem: str, line: int | None):
    began = time.process_time()
    with pytest.raises(OuvrageError) as caught:
        load_yaml("job.yaml", text, "job")
    assert caught.value.code == "job/yaml"
    assert problem in caught.value.message
    assert caught.value.message.isprintable()
    assert line is None or caught.value.where[0].startswith(f"job.yaml:{line}   ")
    assert time.process_time() - began < 5


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{b}: &{b} [{', '.join(['*' + a] * 9)}]"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    with pytest.raises(OuvrageError, match="anchor"):
        load_yaml("bomb", "\n".join(lines), "job")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null\n"])
def test_an_empty_file_is_nothing(text: str):
    assert load_yaml("f", text, "job")[0] is None


def test_a_file_is_read_and_one_without_end_is_not(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text("\ufeffcommand: [date]\n", "utf-8")
    assert read_yaml(path, "job")[0] == {"command": ["date"]}
    with pytest.raises(OuvrageError, match="larger than 256 KiB"):
        read_yaml(Path("/dev/zero"), "job")
    with pytest.raises(OuvrageError, match="could not be read"):
        read_yaml(tmp_path / "none", "job")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yaml_text, "yaml", None)
    with pytest.raises(OuvrageError) as caught:
        load_yaml("f", "a: 1", "job")
    assert "ouvrage[server]" in (caught.value.hint or "")
