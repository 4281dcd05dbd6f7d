"""A runbook's page and the steps that the command walks are one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ouvrage.adapters.health_tables import runbooks
from ouvrage.health.ladder import runbook_of
from ouvrage.model.health import RUNGS

PAGES = Path(__file__).parents[2] / "docs" / "runbooks"


def steps_of(page: str) -> list[str]:
    """The numbered steps of a page; its commands stand on lines of their own."""
    found: list[str] = []
    inside = False
    for line in page.splitlines():
        if line.strip().startswith("```"):
            inside = not inside
        elif not inside and (begins := re.match(r"\d+\. (.*)", line)):
            found.append(begins[1])
        elif not line.startswith("   ") or not line.strip() or not found:
            continue
        else:
            text = re.sub(r"^[#$] ", "", line.strip())
            new = inside or "\n" in found[-1]
            found[-1] += f"\n{text}" if new else f" {text}"
    return [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each).replace("`", "") for each in found]


@pytest.mark.parametrize("rung", RUNGS)
def test_the_steps_that_are_walked_are_those_of_the_page(rung: str) -> None:
    page = (PAGES / f"{runbook_of(rung)}.md").read_text("utf-8")
    assert list(runbooks()[rung]) == steps_of(page)
    assert len(steps_of(page)) >= 3


def test_every_rung_has_a_page_and_every_page_its_rung() -> None:
    assert runbooks().keys() == set(RUNGS)
    pages = {path.stem for path in PAGES.glob("*.md")} - {"index"}
    assert pages >= {runbook_of(rung) for rung in RUNGS}
