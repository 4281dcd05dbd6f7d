"""The documentation says what is so: commands, options, targets, links and words exist.

Commands are taken from the blocks that show a shell (lines that begin with ``$``) and asked for
their own help, which must know every option that the page uses. Sphinx checks the links between
pages; those of the README, which Sphinx does not read, are checked here.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from cli_reference import help_of

from ouvrage.base.grades import Grade
from ouvrage.ledger.kinds import KINDS
from ouvrage.model.runs import OUTCOMES
from tests.house.source import ROOT

README = ROOT / "README.md"
PAGES = sorted([README, *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if "_build" not in page.parts]
TIME_KEYS = (
    *("computing", "waiting_data", "waiting_cpu", "waiting_storage", "waiting_network"),
    *("waiting_memory", "throttled", "unknown"),
)


def _shell_lines(page: Path) -> list[str]:
    text = page.read_text("utf-8")
    shown = re.findall(r"^\s*\$ (.+)$", text, re.M)
    return shown + re.findall(r"^\|[^|]*\|\s*`((?:ouvrage|make) [^`]+)`", text, re.M)


def _calls(page: Path) -> list[list[str]]:
    """The calls of our command on this page, without what stands behind ``--``."""
    calls: list[list[str]] = []
    for line in _shell_lines(page):
        words = shlex.split(line.replace("…", ""), comments=True)
        while words and "=" in words[0]:
            words = words[1:]
        if words[:2] == ["python3", "ouvrage.pyz"]:
            words = words[1:]
        if words and Path(words[0]).name in {"ouvrage", "ouvrage.pyz"}:
            calls.append(words[1 : words.index("--")] if "--" in words else words[1:])
    return calls


@cache
def _help(*verb: str) -> str:
    try:
        return help_of(verb)
    except ValueError:
        return ""


def _verb(call: list[str]) -> list[str]:
    """The verb of a call, with its sub-verbs where it is a group of them; a name may stand between."""
    below = _help(call[0]).partition("Commands:")[2]
    if call[0] == "run":  # the meter answers for it, and knows its options alone
        below = "  export \n  import \n  push \n"
    verb = call[:1]
    for word in call[1:]:
        if re.search(rf"^  {re.escape(word)} ", below, re.M):
            verb = [*verb, word]
            below = _help(*verb).partition("Commands:")[2]
    return verb


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_exists_with_its_options(page: Path) -> None:
    for call in _calls(page):
        if call[:1] == ["--version"] or not call:
            continue
        verb = _verb(call)
        told = _help(*verb)
        assert told, f"ouvrage {' '.join(verb)} has no help"
        unknown = [word for word in call if word.startswith("--") and word not in told]
        assert not unknown, f"ouvrage {' '.join(verb)} knows no {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_on_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    text = page.read_text("utf-8")
    named = set(re.findall(r"`make ([a-z]+)[^`]*`", text)) | set(
        re.findall(r"\$ make ([a-z]+)", text)
    )
    assert not named - targets


def test_the_links_and_pictures_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", README.read_text("utf-8")):
        if "://" not in target:
            assert (ROOT / target.partition("#")[0]).exists(), target


def test_every_target_of_the_makefile_is_listed_and_no_file_hides_one() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY:(.*)$", makefile, re.M)
    assert phony
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    assert targets == set(phony[1].split())


def test_the_glossary_holds_every_word_of_the_output() -> None:
    page = (ROOT / "docs/concepts/glossary.md").read_text("utf-8")
    terms = set(re.findall(r"^([A-Za-z_][\w -]*)$", page.partition("```{glossary}")[2], re.M))
    nouns = {kind.rpartition(".")[2].removesuffix("s") for kind, _ in KINDS}
    nouns -= {"started", "ended", "qo"}  # how a run begins and ends: the word is run; and qos
    wanted = {grade.word for grade in Grade} | set(OUTCOMES) | set(TIME_KEYS) | nouns
    assert not sorted(wanted - terms)
