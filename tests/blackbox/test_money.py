"""Money on a platform, from an empty directory to an invoice in the books: the installed commands against a real server.

The node's runner is a twin over the real wire, so that minutes of work take none; everything else is as an owner and a tenant
have it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.clock import now_us
from ouvrage.base.time import utc_text
from tests.blackbox.home import COMMAND, Home, Said
from tests.support.runner_twin import Twin, inventory

S = 1_000_000


@dataclass
class Platform:
    """A server, its owner's home, and a tenant's."""

    owner: Home
    ann: Home
    twin: Twin
    state: Path

    def worked(self, us: int, *arguments: str) -> str:
        """A job that ran for a time that ends now; its code."""
        made = self.ann(
            "job", "submit", "--offer", "standard", *arguments, "--json", "--", "true"
        ).json
        before = len(self.twin.starts)
        while len(self.twin.starts) == before:
            self.twin.ask(wait_s=5)
        attempt = self.twin.starts[before].attempt
        began = now_us() - us
        self.twin.report([self.twin.began(attempt, at=began), self.twin.progress(attempt, 6)])
        self.twin.report([self.twin.ended(attempt, ended=began + us)])
        return made["code"]


@pytest.fixture
def platform(homes: Callable[[str], Home], tmp_path: Path) -> Iterator[Platform]:
    home, state = homes("owner"), tmp_path / "state"
    up = (
        "up",
        "--state",
        str(state),
        "--listen",
        "127.0.0.1:0",
        "--no-runner",
        "--detach",
        "--json",
    )
    started = home(*up)
    assert started.code == 0, started.err
    told = started.json
    reached = {"OUVRAGE_URL": told["url"], "OUVRAGE_TOKEN_FILE": told["token_file"]}
    owner = replace(home, environment={**home.environment, **reached})
    try:
        made = owner("tenant", "create", "acme", "--admin", "ann", "--json").json
        token = owner("node", "enrol", "--json").json["secret"]
        twin = Twin.enrolled(told["url"], token, now_us, inventory("node-1", gpus=1))
        offer = ("--gpus", "1", "--cpus", "1", "--memory", "1GiB", "--price", "21.60/h")
        assert owner("offer", "create", "standard", *offer).code == 0
        yield Platform(owner, _signed_in(homes("ann"), told["url"], made), twin, state)
        twin.close()
    finally:
        assert home("down", "--state", str(state)).code == 0


def _signed_in(home: Home, url: str, made: Any) -> Home:
    done = subprocess.run(
        [*COMMAND, "login", url, "--login", made["login"], "--password-stdin"],
        env=dict(home.environment), input=made["password"], capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return home


def good(said: Said) -> Said:
    assert said.code == 0, said.err
    return said


def test_from_a_prepaid_tenant_to_an_invoice_that_the_books_know(
    platform: Platform, tmp_path: Path
) -> None:
    _nothing_is_known(platform.ann)
    _work_is_charged(platform)
    _a_budget_is_spent(platform.ann)
    _a_draft_waits_for_its_tax(platform, tmp_path)
    _issued_once_and_corrected(platform)

    # The owner's books over the platform's own store.
    owner = platform.owner
    good(owner("down", "--state", str(platform.state)))
    books = replace(
        owner,
        path=platform.state,
        environment={**owner.environment, "OUVRAGE_HOME": str(platform.state)},
    )
    assert good(books("verify")).code == 0
    _in_the_books(books)
    good(
        owner(
            "up",
            "--state",
            str(platform.state),
            "--listen",
            "127.0.0.1:0",
            "--no-runner",
            "--detach",
        )
    )


def _nothing_is_known(ann: Home) -> None:
    """Nothing is known, nothing is zero, nothing starts."""
    said = good(ann("job", "estimate", "train", "--offer", "standard"))
    assert (
        said.first
        == "What train costs on standard is not known: none of your runs of it has finished."
    )
    held = good(
        ann("job", "submit", "--offer", "standard", "--name", "waits", "--json", "--", "true")
    ).json
    assert "balance" in good(ann("job", "explain", held["code"])).out
    good(ann("job", "cancel", held["code"]))


def _work_is_charged(platform: Platform) -> None:
    """Paid in advance, work, and what it costs."""
    owner, ann = platform.owner, platform.ann
    said = good(owner("payment", "add", "acme", "25", "--reference", "T-1001"))
    assert said.first == "25 EUR of acme is recorded; it has 25.00 EUR left to spend"
    platform.worked(60 * S, "--name", "train")
    platform.worked(120 * S, "--name", "train")
    found = good(ann("usage", "--by", "project", "--json")).json
    assert (found["cost"], found["account"]["balance"]) == ("1.08", "23.92")
    assert good(ann("usage")).first.startswith("1.08 EUR ◐ in ")
    said = good(ann("job", "estimate", "train", "--offer", "standard", "--plain"))
    assert said.first == (
        "train on standard will cost about 0.540 EUR (listed) (0.360 to 0.720), "
        "in 1 min 30 s (metered) (1 min 00 s to 2 min 00 s)"
    )
    assert "  per epoch  0.0900 EUR (0.0600 to 0.120)" in said.out


def _a_budget_is_spent(ann: Home) -> None:
    """A budget that is spent, and one that was lifted."""
    said = good(ann("budget", "set", "main", "1", "--action", "warn"))
    assert said.first == "main may spend 1 EUR a month; 1.08 EUR is spent"
    assert good(ann("budget", "list")).first == "1 budgets, 1 of them spent"
    good(ann("budget", "set", "main", "--lift"))


def _a_draft_waits_for_its_tax(platform: Platform, tmp_path: Path) -> None:
    """The draft, without a tax and with one."""
    owner, ann = platform.owner, platform.ann
    assert good(ann("invoice", "draft", "--json")).json["total"] is None
    refused = owner("invoice", "issue", "acme")
    assert refused.code == 2
    assert "error[invoice/tax-not-stated]" in refused.err
    good(owner("invoice", "tax", "0.20"))
    page, paper = tmp_path / "facture.html", tmp_path / "facture.pdf"
    said = good(ann("invoice", "draft", "--lang", "fr", "--html", str(page), "--pdf", str(paper)))
    assert said.first.startswith("Projet de facture : 1,30\u00a0EUR pour ")
    assert said.out.count("6 × epoch") == 2
    assert "0,06 EUR/epoch" in said.out
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert paper.read_bytes().startswith(b"%PDF")


def _issued_once_and_corrected(platform: Platform) -> None:
    """Issued once, shown the same, corrected by a note."""
    owner, ann = platform.owner, platform.ann
    made = good(owner("invoice", "issue", "acme", "--json")).json
    assert (made["net"], made["tax"], made["total"], made["due"]) == ("1.08", "0.22", "1.3", "0")
    number = made["number"]
    assert number.endswith("-0001")
    assert good(ann("invoice", "show", number, "--json")).json["lines"] == made["lines"]
    assert ann("invoice", "issue", "acme").code == 2
    wrong = min(made["lines"], key=lambda line: Decimal(line["amount"]))["charge"]
    note = good(
        owner(
            "invoice",
            "credit",
            number,
            "--why",
            "it ran on the wrong data",
            "--charge",
            wrong,
            "--json",
        )
    )
    assert (note.json["total"], note.json["corrects"]) == ("-0.43", made_id(owner, number))
    listed = good(ann("invoice", "list")).out
    assert "credit note" in listed
    statement = good(ann("statement", "--json")).json
    assert [each["sort"] for each in statement["lines"]].count("charge") == 2
    assert (
        statement["closing"] == good(ann("usage", "--json")).json["account"]["balance"] == "24.13"
    )


def made_id(owner: Home, number: str) -> str:
    found = good(owner("invoice", "list", "--json")).json
    return next(each["invoice"] for each in found if each["number"] == number)


def _in_the_books(books: Home) -> None:
    """The owner states where the machine stands; the platform's charges, invoices and payments are there already."""
    month = now_text()[:7]
    good(books("init", "--currency", "EUR", "--zone", "UTC", "--site", "home", "--node", "node-1", "--gpus", "1",
               "--model", "RTX 4090", "--price", "1200", "--bought", f"{month}-01", "--electricity", "0.30/kWh"))  # fmt: skip
    journal = good(books("books", "journal", "--month", month, "--json")).json
    moved = journal["balances"]
    assert moved["Assets:Receivable:Acme"] == "-24.13"
    assert moved["Assets:Received:Acme"] == "25.00"
    assert moved["Liabilities:Sales-tax"] == "-0.15"
    assert moved["Income:Own-tenants:Gpu"] == "-1.08"
    assert moved["Expenses:Failed:Own-tenants"] == "0.36"
    found = good(books("books", "reconcile", "--month", month)).out
    assert "paid by tenants +25.00 EUR = paid 0, open +25.00   (adds up)" in found
    by_tenant = good(books("books", "pnl", "--month", month, "--by", "tenant", "--json")).json
    earned = {row["name"]: row["figures"]["revenue.gpu"]["value"] for row in by_tenant["rows"]}
    assert earned["acme"] == "1.08"


def now_text() -> str:
    return utc_text(now_us())
