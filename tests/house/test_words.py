"""What is written beside the code: docstrings, reasons, and no word about anybody's machine.

A docstring must say more than the name does; an exception to a rule must say why; and nothing that
is tracked may name a path of the machine it was written on or the address of a package index.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.source import ROOT, Module, modules, tracked

SENTENCE = re.compile(r"[.!?](?=\s|$)")
EXCUSE = re.compile(
    r"#\s*(?:noqa|type:\s*ignore|pyright:\s*ignore|ruff:\s*noqa)(?P<rest>[^#\n]*)(?P<more>#.*)?"
)
CODES = re.compile(r"^\s*(?::?\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*|\[[^\]]*\])\s*")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
# Written in pieces, so that this file does not name what it forbids.
ELSEWHERE = [
    re.compile(pattern)
    for pattern in (
        r"(?<![\w./~-])/wor" r"k/",
        r"(?<![\w./~-])/roo" r"t/",
        r"(?<![\w./~-])/opt/(?:pyp" r"i|wheels)",
        r"py" r"pi\.org",
        r"python" r"hosted\.org",
        r"deb\.debi" r"an\.org",
        r"npm" r"js\.org",
        r"proxy\.gol" r"ang",
        r"(?<!emit-)index-u" r"rl[\s=]",
    )
]
BINARY = {".png", ".gz", ".woff2", ".ico"}


@pytest.mark.parametrize("module", modules("src", "tools", "bench"), ids=lambda module: module.name)
def test_a_module_says_what_it_decides(module: Module) -> None:
    words = ast.get_docstring(module.tree) or ""
    if module.path.name == "__init__.py":
        assert len(words) >= 40, "say in a sentence what the package is"
    else:
        assert len(SENTENCE.findall(words)) >= 2, "say what it decides, what not, and why"
        assert len(words) >= 80, "say what it decides, what not, and why"


def test_an_exception_to_a_rule_gives_its_reason() -> None:
    bare: list[str] = []
    for module in modules():
        for number, line in enumerate(module.text.splitlines(), 1):
            found = EXCUSE.search(line)
            if not found or "re.compile" in line:
                continue
            reason = CODES.sub("", found["rest"]) + (found["more"] or "")
            if len(reason.strip(" -#:")) < 8:
                bare.append(f"{module.name}:{number} {line.strip()}")
    assert not bare


def test_nothing_is_left_for_later_in_a_comment() -> None:
    assert not [
        f"{module.name}:{number}"
        for module in modules()
        for number, line in enumerate(module.text.splitlines(), 1)
        if UNFINISHED.search(line)
    ]


def test_no_file_names_a_machine_or_a_package_index() -> None:
    found: list[str] = []
    for path in tracked():
        if path.suffix in BINARY:
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if any(pattern.search(line) for pattern in ELSEWHERE):
                found.append(f"{path.relative_to(ROOT)}:{number} {line.strip()[:80]}")
    assert not found


def test_the_licence_is_here_whole() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text("utf-8")
