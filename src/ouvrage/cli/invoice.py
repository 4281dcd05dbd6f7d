"""``ouvrage invoice``: drafts, invoices and credit notes, on the terminal, as a page and on paper.

Decides only how they are asked for and printed: words and figures are the server's, in the language asked for. Each verb is one
request under ``/v1/invoices``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ouvrage.base.text import safe
from ouvrage.cli.money_words import day
from ouvrage.cli.options import json_option, this_month_options
from ouvrage.cli.output import say_json, say_text, table, write_file, wrote
from ouvrage.cli.talking import talk

_FILE = click.Path(dir_okay=False, path_type=Path)
_LANG = click.option(
    "--lang", type=click.Choice(["en", "fr"]), default="en", show_default=True, help="Its language."
)


def _files(verb: Any) -> Any:
    verb = click.option(
        "--pdf", "pdf_file", metavar="FILE", type=_FILE, help="Also write it as PDF."
    )(verb)
    return click.option(
        "--html",
        "html_file",
        metavar="FILE",
        type=_FILE,
        help="Also write a page that needs nothing else.",
    )(verb)


@click.group()
def invoice() -> None:
    """Invoices to tenants: drafted at any time, issued once, corrected by credit notes."""


@invoice.command()
@click.option("--org", metavar="NAME", help="Whose; else your own organisation's.")
@this_month_options
@_LANG
@_files
@json_option
def draft(
    org: str | None,
    period: str | None,
    lang: str,
    html_file: Path | None,
    pdf_file: Path | None,
    as_json: bool,
) -> None:
    """The bill as it would be issued now. Without a period, of this month."""
    query = {"org": org, "period": period, "lang": lang}
    _show("/v1/invoices/draft", query, html_file, pdf_file, as_json)


@invoice.command()
@click.argument("number")
@_LANG
@_files
@json_option
def show(
    number: str, lang: str, html_file: Path | None, pdf_file: Path | None, as_json: bool
) -> None:
    """An issued invoice or credit note."""
    _show(f"/v1/invoices/{number}", {"lang": lang}, html_file, pdf_file, as_json)


def _show(
    path: str, query: dict[str, Any], html_file: Path | None, pdf_file: Path | None, as_json: bool
) -> None:
    with talk() as server:
        found = server.get(path, **query)
        for kind, file in (("page", html_file), ("paper", pdf_file)):
            if file is not None:
                with server.stream(f"{path}/{kind}", **query) as answer:
                    write_file(file, b"".join(answer.pieces))
    if as_json:
        say_json(found)
        return
    written = [f"  written: {safe(str(file))}" for file in (html_file, pdf_file) if file]
    say_text("\n".join([*invoice_lines(found["shown"]), *written, _more(found)]))


def _more(found: Any) -> str:
    if found["number"] is None:
        return "For the tenant: --html FILE, --pdf FILE, --lang fr      Issue it: ouvrage invoice issue TENANT"
    return f"For the tenant: ouvrage invoice show {found['number']} --pdf FILE --lang fr"


def invoice_lines(page: Any) -> list[str]:
    """An invoice as the terminal prints it: the answer, the tables, the sum."""
    lines = [page["headline"], f"  {page['issuer'][0]} → {page['recipient'][0]}"]
    lines += [f"  {word}: {value}" for word, value in page["about"]]
    for each in page["tables"]:
        body = table(each["columns"], each["rows"], each["right"]).splitlines()
        lines += ["", each["heading"], *(f"  {line}" for line in body)]
    width = max(len(each["label"]) for each in page["sums"])
    amounts = max(len(each["text"]) for each in page["sums"])
    lines.append("")
    lines += [f"  {e['label']:<{width}}  {e['text']:>{amounts}}" for e in page["sums"]]
    return [*lines, "", *(f"  {note}" for note in page["notes"])]


@invoice.command()
@click.argument("tenant")
@this_month_options
@json_option
def issue(tenant: str, period: str | None, as_json: bool) -> None:
    """Issue to TENANT what it was charged up to the end of a period (else of this month so far).

    It gets the next number, and never changes.
    """
    with talk() as server:
        made = server.post("/v1/invoices", {"org": tenant, "period": period})
    wrote()
    _said(made, as_json)


@invoice.command()
@click.argument("number")
@click.option("--why", metavar="TEXT", required=True, help="What was wrong; it stands on the note.")
@click.option(
    "--charge",
    "charges",
    metavar="CHARGE",
    multiple=True,
    help="Only this charge; may be repeated.",
)
@json_option
def credit(number: str, why: str, charges: tuple[str, ...], as_json: bool) -> None:
    """Give back invoice NUMBER, or some of its charges, by a credit note."""
    with talk() as server:
        made = server.post(f"/v1/invoices/{number}/credit", {"why": why, "charges": list(charges)})
    wrote()
    _said(made, as_json)


def _said(made: Any, as_json: bool) -> None:
    if as_json:
        say_json(made)
    else:
        say_text(f"{made['shown']['headline']}\n{_more(made)}")


@invoice.command("list")
@click.option("--org", metavar="NAME", help="Whose; else of all that you may see.")
@json_option
def list_(org: str | None, as_json: bool) -> None:
    """Issued invoices and credit notes, newest first."""
    with talk() as server:
        found = list(server.every("/v1/invoices", org=org))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            each["number"], "credit note" if each["credits"] else "invoice", safe(each["name"]),
            day(each["issued_at"]), day(each["from"]), day(each["to"]), str(each["charges"]),
            f"{each['total']} {each['currency']}",
        ]
        for each in found
    ]  # fmt: skip
    said = f"{len(found)} issued" if found else "Nothing is issued yet"
    lines = [said]
    if rows:
        head = ("number", "", "tenant", "issued", "from", "to", "charges", "total")
        lines += ["", table(head, rows, "<<<<<<>>")]
    say_text("\n".join([*lines, "One of them: ouvrage invoice show NUMBER"]))


@invoice.command()
@click.argument("rate")
@click.option("--tenant", metavar="NAME", help="Of one tenant alone, such as 0 for one abroad.")
@json_option
def tax(rate: str, tenant: str | None, as_json: bool) -> None:
    """From now on tenants are charged a tax of RATE, a share such as 0.20; 0 where there is none."""
    with talk() as server:
        made = server.post("/v1/taxes", {"rate": rate, "tenant": tenant})
    wrote()
    if as_json:
        say_json(made)
        return
    whom = f"to {safe(tenant)}" if tenant else "to tenants"
    say_text(
        f"A tax of {made['rate']} is added to what is invoiced {whom}.\nSee it: ouvrage invoice draft --org TENANT"
    )
