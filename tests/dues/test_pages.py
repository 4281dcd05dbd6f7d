"""An invoice as text, page and paper in both languages: the same figures, nothing executed, nothing left in English."""

from __future__ import annotations

import json
import re
import string

import pytest

from ouvrage.adapters.rate_files import shipped_names
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.books.dues.invoice import Counted, draft, issued
from ouvrage.books.dues.invoice_json import invoice_json
from ouvrage.books.dues.lease import cost_lines
from ouvrage.books.period import period_named
from ouvrage.console.invoice_page import invoice_page
from ouvrage.console.invoice_pdf import invoice_pdf
from ouvrage.console.invoice_view import Letterhead, shown
from ouvrage.console.invoice_words import LANGUAGES, WORDS, language
from ouvrage.pricing.rates.frozen import check_for_sale, thawed
from tests.dues.test_charging import PLANS
from tests.dues.test_invoice import busy
from tests.dues.world import NOV, H, S, World, ended, lease, offer

DEC = NOV + 30 * 24 * H
UNITS = {f"{1:032x}": Counted(unit="epoch", finished=6, grade=Grade.MEASURED)}


def invoice(world: World | None = None):
    world = world or busy()
    return draft(world.record, "acme-id", period_named("2026-11", "UTC"), UNITS, DEC)


def test_every_word_is_there_in_every_language_with_the_same_places():
    for key, words in WORDS.items():
        assert len(words) == len(LANGUAGES), key
        places = [
            {name for _, name, _, _ in string.Formatter().parse(each) if name} for each in words
        ]
        assert places[0] == places[1], key


def test_the_same_invoice_in_english_and_in_french():
    english, french = (shown(invoice(), language(code)) for code in LANGUAGES)
    assert english.headline == "Draft invoice: 1.09\u00a0EUR for November 2026"
    assert french.headline == "Projet de facture : 1,09\u00a0EUR pour novembre 2026"
    assert [(s.label, s.text) for s in english.sums] == [
        ("Charges", "0.905833333 EUR"), ("Rounding to 0.01 EUR", "0.004166667 EUR"), ("Net", "0.91\u00a0EUR"),
        ("Tax, 20 %", "0.18\u00a0EUR"), ("Total", "1.09\u00a0EUR"), ("To pay for this invoice", "1.09\u00a0EUR"),
    ]  # fmt: skip
    work, lines, unbilled = french.tables
    assert work.rows[0] == ("acme-vision", "train", "1,0194 h", "0,305833333", "6 × epoch",
                            "0,050972222 EUR/epoch")  # fmt: skip
    assert work.rows[1][4:] == ("non compté", "–")
    assert lines.rows[0][2:] == ("time: 3670 s", "3\u00a0670 s", "0,30 EUR/h", "0,305833333")
    assert unbilled.rows == (("acme-vision", "train", "1 h", "panne matérielle"),)


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_page_holds_every_figure_and_loads_and_runs_nothing(code):
    page = shown(
        invoice(),
        language(code),
        head=Letterhead(issuer=("1 Road",), recipient=("<b>2 Street</b>",)),
    )
    html = invoice_page(page)
    assert html.startswith("<!DOCTYPE html>")
    assert f'lang="{code}"' in html
    for text in (
        *(each.text for each in page.sums),
        *(cell for t in page.tables for row in t.rows for cell in row),
    ):
        assert text in html
    assert "&lt;b&gt;2 Street" in html
    assert not re.search(r"<script|src=|href=|url\((?!#)|@import", html)


@pytest.mark.parametrize("code", LANGUAGES)
def test_paper_is_the_same_bytes_for_the_same_invoice_and_has_as_many_sheets_as_it_needs(code):
    page = shown(invoice(), language(code))
    assert invoice_pdf(page) == invoice_pdf(page)
    world = World.begun()
    for n in range(60):
        world.leased(3670 * S, from_us=NOV + n * 2 * H, job=f"job-{n:03}")
    world.charged(DEC)
    paper = invoice_pdf(shown(invoice(world), language(code)))
    assert paper.startswith(b"%PDF")
    sheets = len(re.findall(rb"/Type /Page\b", paper))
    assert 3 <= sheets <= 8


def test_paper_without_a_unicode_font_still_writes_french(monkeypatch):
    from pathlib import Path

    from ouvrage.console import paper

    monkeypatch.setattr(paper, "_DEJAVU", Path("/nowhere"))
    assert invoice_pdf(shown(invoice(), language("fr"))).startswith(b"%PDF")


def test_every_reason_of_the_shipped_plans_has_its_french():
    say = language("fr")
    english = re.compile(
        r"\b(rounded|least|charged|commenced|whole|clock|billed|given|less|of them)\b"
    )
    plans = [offer(name, "0.30") for name in shipped_names()]
    for of in [*plans, *(offer(text, "0.30", gpus=1) for text in PLANS)]:
        try:
            check_for_sale(thawed(of.plan), "0.30", "EUR")
        except OuvrageError:
            continue
        for us in (20 * S, 3670 * S, 40 * 24 * H + 7):
            held = lease(of, ended=ended(us), sent=3 * 10**9, received=10**9)
            for line in cost_lines(held, NOV + us):
                assert not english.search(say.reason(line.words)), (of.plan_name, line.words)


def test_names_of_jobs_and_tenants_reach_no_page_as_anything_but_text():
    world = World.begun()
    world.leased(H, job="<script>\x1b[31m")
    world.charged(DEC)
    html = invoice_page(shown(invoice(world), language("en")))
    assert "<script" not in html
    assert "\x1b" not in html


def test_json_has_every_amount_exact_and_unknown_as_null():
    found = json.loads(json.dumps(invoice_json(invoice())))
    assert (found["charged"], found["rounding"], found["net"], found["total"]) == (
        "0.905833333", "0.004166667", "0.91", "1.09",
    )  # fmt: skip
    assert [w["cost_per_unit"] for w in found["work"]] == ["0.05097222216666666666666666667", None]
    untaxed = World.begun(tax=None)
    untaxed.leased(H)
    untaxed.charged(DEC)
    assert invoice_json(invoice(untaxed))["total"] is None


def test_an_issued_invoice_says_its_number_and_a_draft_that_it_is_one():
    world = busy()
    world.issued()
    found = issued(world.record, world.record.invoices[0], {})
    page = shown(found, language("fr"))
    assert (page.title, page.draft) == ("Facture 2026-0001", "")
    assert dict(page.about)["Date d’émission"] == "1 décembre 2026"
    assert shown(invoice(), language("fr")).draft == "Projet de facture"


def test_another_language_is_refused():
    with pytest.raises(OuvrageError, match="not written in 'de'"):
        language("de")
