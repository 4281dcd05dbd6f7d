"""A person at the console: sign in, let a machine join, sell, submit, watch, cancel; and another who sees none of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.platform.working import Working

WIDTHS = (1280, 390)
SHOTS = os.environ.get("OUVRAGE_SHOTS")
"""A directory for pictures of every page, for a person to look at."""


@contextmanager
def tab(browser: Browser, work: Working, **options: object) -> Iterator[Page]:
    """A browser of somebody's own; whatever a page's script or policy complains of fails the test."""
    context = browser.new_context(base_url=work.server.url, locale="en-GB", **options)  # type: ignore[arg-type]  # Playwright's own options
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.set_default_timeout(10_000)
    yield page
    context.close()
    assert not [fault for fault in faults if "status of 40" not in fault]


def sign_in(page: Page, login: str, password: str | None) -> None:
    page.goto("/")
    page.get_by_label("Login").fill(login)
    page.get_by_label("Password").fill(password or "")
    page.get_by_role("button", name="Sign in").click()


def opened(page: Page, heading: str) -> None:
    """Open a form that the page keeps folded."""
    page.get_by_text(heading, exact=True).first.click()


def test_from_an_empty_platform_to_a_finished_job(browser: Browser, working: Working):
    with tab(browser, working) as page:
        sign_in(page, "admin", "wrong-password-entirely")
        expect(page.get_by_text("no such login and password")).to_be_visible()
        sign_in(page, "admin", working.server.password)
        expect(page.get_by_role("heading", level=1)).to_contain_text("Nothing needs you")
        page.get_by_role("link", name="Nodes").first.click()
        page.get_by_role("button", name="Make an enrolment").click()
        token = page.locator("dd").first.inner_text()
        assert token.startswith("ouve_")
        twin = working.joined(token)
        page.get_by_role("link", name="Offers and leases").first.click()
        page.get_by_label("Name").fill("standard")
        page.get_by_role("button", name="Put it up for sale").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("standard")
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_label("Command").fill("python train.py")
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("waiting")
        expect(page.locator(".lead")).not_to_be_empty()

        working.engine.observe()
        twin.ask()
        start = twin.starts[0]
        assert start.command == ["/bin/sh", "-c", "python train.py"]
        twin.report([twin.began(start.attempt)])
        expect(page.get_by_role("heading", level=1)).to_contain_text("running")  # without a reload
        page.reload()
        twin.log(start.attempt, 0, b"epoch 1\n")
        expect(page.locator("pre.log")).to_have_text("epoch 1\n")
        twin.log(start.attempt, 8, "epoch 2 é\n<b>bold</b>\n".encode())
        expect(page.locator("pre.log")).to_have_text("epoch 1\nepoch 2 é\n<b>bold</b>\n")
        twin.report([twin.progress(start.attempt, 2)])
        expect(page.get_by_text("2 epoch").first).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("stopping")
        twin.ask()
        assert twin.stops[0].attempt == start.attempt
        twin.report([twin.ended(start.attempt, "cancelled", signal=15)])
        expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")


def test_another_tenant_sees_nothing_of_the_first(browser: Browser, working: Working):
    twin = working.node(gpus=1)
    working.offer("standard", rate="0.30")
    ann = working.tenant("acme")
    job = working.submit(ann, name="secret-work")
    working.engine.observe()
    twin.ask()
    start = twin.starts[0]
    twin.report([twin.began(start.attempt)])
    made = working.owner.post("/v1/organisations", {"name": "bolt", "admin": "bob"})
    with tab(browser, working) as page:
        sign_in(page, made["login"], made["password"])
        assert page.locator("nav a").all_inner_texts() == [
            "Today", "Jobs", "Offers and leases", "Tenants and budgets", "Money", "Quotes", "Audit",
        ]  # fmt: skip
        for path in ("/", "/jobs?all=1", "/offers", "/tenants", "/money", "/audit"):
            page.goto(path)
            said = page.content()
            assert not re.search("acme|secret-work|node-1|" + job["job"], said), path
        for path in (
            f"/jobs/{job['job']}",
            f"/jobs/{job['code']}",
            f"/jobs/{job['job']}.json",
            f"/jobs/{job['job']}/log",
            f"/leases/{start.lease}",
            "/tenants/acme",
            "/money?org=acme",
        ):
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == 404, path
            assert "secret-work" not in page.content()
        for path in ("/nodes", "/nodes/node-1", "/books"):
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == 403, path


PAGES = ("/", "/nodes", "/nodes/node-1", "/jobs", "/jobs/JOB", "/offers", "/offers/standard", "/leases/LEASE",
         "/tenants", "/tenants/acme", "/money", "/money?org=acme", "/books", "/quotes", "/audit", "/nodes/none")  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_by_everybody(browser: Browser, working: Working, scheme: str):
    """axe finds nothing, nothing is wider than the screen, and each page answers to the keyboard."""
    twin = working.node(gpus=2)
    working.offer("standard", rate="0.30")
    ann = working.tenant("acme")
    job = working.submit(ann)
    working.submit(ann, gpus=0, name="second")
    working.engine.observe()
    twin.ask()
    start = twin.starts[0]
    twin.report([twin.began(start.attempt)])
    twin.log(start.attempt, 0, b"epoch 1\n" * 40)
    working.owner.post("/v1/nodes/node-1/fence", {"held": True, "why": "a fan is loud"})
    axe = Axe()
    with tab(
        browser, working, color_scheme=scheme, viewport={"width": 1280, "height": 900}
    ) as page:
        page.goto("/sign-in")
        assert axe.run(page).violations_count == 0, axe.run(page).generate_report()
        sign_in(page, "admin", working.server.password)
        for path in PAGES:
            place = path.replace("JOB", job["job"]).replace("LEASE", start.lease)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(place)
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{path} is {wide} wide at {width}"
                picture(page, f"{path}-{width}-{scheme}")
            found = axe.run(page)
            assert found.violations_count == 0, f"{path}\n{found.generate_report()}"
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.className") == "skip", path


def picture(page: Page, name: str) -> None:
    if SHOTS:
        file = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "today"
        page.screenshot(path=Path(SHOTS) / f"{file}.png", full_page=True)


def test_a_tenant_sees_what_it_owes_before_the_bill(browser: Browser, working: Working):
    twin = working.node()
    working.offer("standard", rate="0.36")
    made = working.owner.post("/v1/organisations", {"name": "acme", "admin": "ann"})
    with tab(browser, working) as page:
        sign_in(page, "admin", working.server.password)
        page.goto("/money?org=acme")
        opened(page, "Note a payment")
        page.get_by_label("Amount").last.fill("2.50")
        page.get_by_role("button", name="Note it").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("left to spend 2.50 EUR")
    ann = working.server.signed_in(made["login"], made["password"])
    working.submit(ann, name="train")
    working.engine.observe()
    twin.ask()
    start = twin.starts[0]
    twin.report([twin.began(start.attempt)])
    working.clock.move(100_000_000)
    with tab(browser, working) as page:
        sign_in(page, made["login"], made["password"])
        page.goto("/money")
        expect(page.get_by_role("row", name="train").first).to_contain_text("0.01 EUR")
        opened(page, "Set a budget")
        page.get_by_label("Amount").fill("1.00")
        page.get_by_role("button", name="Set it").click()
        expect(page.get_by_role("row").filter(has_text="work is stopped")).to_contain_text(
            "1.00 EUR"
        )
        twin.report([twin.ended(start.attempt)])
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_contain_text("left to spend 2.49 EUR")


def test_the_pages_say_the_same_without_a_script_and_in_french(browser: Browser, working: Working):
    working.node()
    working.offer("standard", rate="0.30")
    with tab(browser, working, java_script_enabled=False) as page:
        sign_in(page, "admin", working.server.password)
        page.goto("/jobs")
        page.get_by_label("Command").fill("true")
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("waiting")
        page.get_by_role("button", name="Français").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("en attente")
        page.goto("/offers")
        expect(page.get_by_role("heading", level=1)).to_contain_text("En vente")
        expect(page.get_by_text("0,30")).to_be_visible()
        page.get_by_role("button", name="Se déconnecter").click()
        page.goto("/jobs")
        expect(page.get_by_role("button", name="Se connecter")).to_be_visible()


def test_a_form_sent_twice_counts_once_and_a_strange_one_not_at_all(
    browser: Browser, working: Working
):
    working.node()
    with tab(browser, working) as page:
        sign_in(page, "admin", working.server.password)
        page.goto("/tenants")
        opened(page, "New tenant")
        fields = {
            each.get_attribute("name") or "": each.input_value()
            for each in page.locator(
                "form[action='/tenants'] input, form[action='/tenants'] select"
            ).all()
        }
        fields["name"] = "acme"
        first = page.request.post("/tenants", form=fields)
        again = page.request.post("/tenants", form=fields)
        assert (first.status, again.status) == (200, 200)
        assert "not again" in again.text()
        strange = page.request.post("/tenants", form={**fields, "csrf": "0" * 64, "name": "evil"})
        assert strange.status == 403
        assert [o["name"] for o in working.owner.get("/v1/organisations")["items"]].count(
            "acme"
        ) == 1
        assert "evil" not in str(working.owner.get("/v1/organisations"))
