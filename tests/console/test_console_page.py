"""The console's pages as HTML and JSON: what they say, in which language, and that nothing breaks out."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from ouvrage.base.grades import Grade
from ouvrage.console.blocks import (
    Buttons,
    Cell,
    ConsolePage,
    Facts,
    Field,
    Form,
    Log,
    Notice,
    Picture,
    Reader,
    Said,
    Table,
    Tiles,
)
from ouvrage.console.console_page import (
    HEADERS,
    STATIC,
    console_html,
    console_json,
    static_file,
    twin_of,
)
from ouvrage.console.translated import preferred, translator

BAD = '"><script>alert(1)</script>\x1b[31m{{7*7}}'
ROOT = Path(__file__).parents[2]


def reader(language: str = "en", login: str | None = "ada") -> Reader:
    return Reader(
        login=login, organisation=BAD, language=language, csrf="c5rf", key="k3y", path=f"/jobs?{BAD}",
        places=(("jobs", "Jobs", "/jobs"), ("today", BAD, "/")),
    )  # fmt: skip


def page() -> ConsolePage:
    cell = Cell(text=BAD, note=BAD, grade=Grade.ASSUMED, href="/x?" + BAD, tone="bad")
    return ConsolePage(
        title=BAD,
        headline=BAD,
        lead=(BAD,),
        place="jobs",
        trail=((BAD, "/jobs"),),
        live_s=5,
        blocks=(
            Tiles(tiles=((BAD, cell),)),
            Notice(text=BAD, href="/n", action=BAD),
            Table(heading=BAD, columns=(BAD, "Cost"), rows=((cell, Cell(text="1.5", number=True)),), more="/m"),
            Table(heading="None", columns=("Job",), rows=(), empty=BAD),
            Facts(heading=BAD, pairs=((BAD, cell),)),
            Picture(heading=BAD, svg="<svg></svg>", caption=BAD),
            Buttons(buttons=((BAD, "/do", "bad"),)),
            Log(heading=BAD, text=BAD, follow="/v1/jobs/1/log", offset=7, note=BAD),
            Said(heading=BAD, text=BAD),
            Form(
                heading=BAD,
                action="/send",
                submit=BAD,
                open=False,
                fields=(
                    Field(name="a", label=BAD, value=BAD, help=BAD),
                    Field(name="b", label="B", kind="select", choices=((BAD, BAD),), value=BAD),
                    Field(name="c", label="C", kind="area", value=BAD, required=False),
                    Field(name="d", label="D", kind="hidden", value=BAD),
                    Field(name="e", label="E", error=BAD),
                ),
            ),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("language", ["en", "fr"])
def test_hostile_words_stay_words(language: str):
    html = console_html(page(), reader(language))
    assert "<script>alert" not in html
    assert "{{7*7}}" in html
    assert html.count("<script") == 1  # ours
    assert f'lang="{language}"' in html
    assert re.search(r"\son[a-z]+=", re.sub(r'"[^"]*"', '""', html)) is None
    assert " style=" not in html


def test_every_form_that_sends_carries_the_token():
    html = console_html(page(), reader())
    forms = html.split("<form ")[1:]
    assert len(forms) == 4
    assert all('name="csrf" value="c5rf"' in form.partition("</form>")[0] for form in forms)


def test_the_twin_says_what_the_page_says():
    said = json.loads(console_json(page()))
    assert said["headline"] == BAD
    table = said["blocks"][2]
    assert table["rows"][0][0] == {
        "text": BAD, "href": "/x?" + BAD, "grade": "assumed", "note": BAD, "tone": "bad", "number": False,
    }  # fmt: skip
    assert "svg" not in said["blocks"][5]


@pytest.mark.parametrize(
    ("path", "twin"),
    [("/", "/today.json"), ("/jobs", "/jobs.json"), ("/jobs/R7K2?all=1", "/jobs/R7K2.json?all=1")],
)
def test_where_the_twin_is(path: str, twin: str):
    assert twin_of(path) == twin


def test_the_answer_is_said_without_a_login_and_without_places():
    html = console_html(page(), reader(login=None))
    assert "<nav" not in html
    assert "Sign out" not in html


@pytest.mark.parametrize(
    ("accept", "language"),
    [
        (None, "en"),
        ("fr-CH, en;q=0.9", "fr"),
        ("de, fr;q=0.5", "fr"),
        ("*", "en"),
        ("xx" * 999, "en"),
    ],
)
def test_the_first_language(accept: str | None, language: str):
    assert preferred(accept) == language


def test_a_language_without_a_file_is_refused():
    with pytest.raises(ValueError, match="de"):
        translator("de")


def test_every_word_of_the_pages_is_translated():
    places = [
        *ROOT.glob("src/ouvrage/console/templates/console*.j2"),
        *ROOT.glob("src/ouvrage/server/pages/*.py"),
    ]
    words = {
        found.group(2)
        for place in places
        for found in re.finditer(r"\b(?:_|seen\.word)\(\s*(['\"])(.+?)\1", place.read_text("utf-8"))
    }
    assert len(words) >= 10
    french = translator("fr")
    same = {
        "Service",
        "Budget",
        "Budgets",
        "Pages",
        "Code",
        "GPU",
        "Isolation",
        "Machines",
        "Organisation",
        "Version",
        "signal",
    }
    assert not sorted(word for word in words if french(word) == word and word not in same)


def test_what_a_page_loads_is_ours():
    for name in STATIC:
        text = static_file(name).decode("utf-8")
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    listed = {each.name for each in (files("ouvrage.console") / "static").iterdir()}
    assert listed == set(STATIC)
