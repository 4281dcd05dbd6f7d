"""``ouvrage report``: what one run cost and where its time went, or a campaign, or a job of many hosts.

Decides that every page is made before any is written, so that a refusal leaves nothing behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.ledger import known_runs, opened, past
from ouvrage.cli.options import as_of_option, html_option, json_option, plain_option
from ouvrage.cli.output import say_json, say_text, write_file
from ouvrage.pricing.report import report_json, report_text

if TYPE_CHECKING:
    from ouvrage.pricing.campaign import Campaign


@click.command()
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--campaign", metavar="NAME", help="All that was spent on a campaign, in one sum.")
@click.option("--job", metavar="ID", help="One job over several hosts, in one record.")
@html_option
@click.option(
    "--pdf",
    "pdf_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a campaign's page as PDF.",
)
@json_option
@plain_option
@as_of_option
def report(
    run: str | None,
    campaign: str | None,
    job: str | None,
    html_file: Path | None,
    pdf_file: Path | None,
    as_json: bool,
    plain: bool,
    as_of: int | None,
) -> None:
    """What a finished unit of RUN cost, and where its time went.

    RUN is an id, a short code such as R7K2, a label (its latest run), or `last`. With --campaign:
    what an accepted result cost, all attempts and rentals included. With --job: what a unit of the
    job cost on all its hosts together, and which of them holds the others up.
    """
    asked = sum(each is not None for each in (run, campaign, job))
    if not asked:
        context = click.get_current_context()
        raise click.UsageError("a RUN, --campaign NAME or --job ID is missing", context)
    if asked == 1 and campaign is not None:
        _campaign(campaign, html_file, pdf_file, as_json, plain, as_of)
    elif asked == 1 and run is not None and pdf_file is None:
        _run(run, html_file, as_json, plain, as_of)
    elif asked == 1 and job is not None and pdf_file is None:
        _job(job, html_file, as_json, plain, as_of)
    else:
        raise OuvrageError(
            "report/which",
            "a report is about one RUN, one --campaign or one --job, and --pdf is a campaign's",
            hint="ouvrage report last, or ouvrage report --campaign NAME --pdf page.pdf",
        )


def _run(run: str, html_file: Path | None, as_json: bool, plain: bool, as_of: int | None) -> None:
    with opened() as ledger:
        as_of = past(as_of, ledger)
        (found,) = ledger.assessed(known_runs(ledger, [run], as_of), as_of)
        if html_file:
            from ouvrage.console.page import html
            from ouvrage.console.run_page import run_page

            spool = ledger.spool(found.view.run)
            columns, gpus = (spool.columns, spool.gpus) if spool else (None, ())
            write_file(html_file, html(run_page(found.view, found.sheet, columns, gpus)))
    if as_json:
        say_json(report_json(found.view, found.sheet))
        return
    say_text(report_text(found.view, found.sheet, plain=plain).rstrip("\n"))
    if html_file:
        say_text(f"Whole report: {html_file}")


def _campaign(
    name: str,
    html_file: Path | None,
    pdf_file: Path | None,
    as_json: bool,
    plain: bool,
    as_of: int | None,
) -> None:
    from ouvrage.cli.campaigning import campaign_found
    from ouvrage.pricing.campaign_report import campaign_json, campaign_text

    with opened() as ledger:
        found = campaign_found(ledger, name, past(as_of, ledger)).campaign
    for file, content in _pages(found, html_file, pdf_file):
        write_file(file, content)
    if as_json:
        say_json(campaign_json(found))
        return
    say_text(campaign_text(found, plain=plain))
    for file in (html_file, pdf_file):
        if file:
            say_text(f"Whole report: {file}")


def _job(job: str, html_file: Path | None, as_json: bool, plain: bool, as_of: int | None) -> None:
    from ouvrage.cli.jobs import job_found
    from ouvrage.pricing.job_report import job_json, job_text

    with opened() as ledger:
        found = job_found(ledger, job, past(as_of, ledger)).report
    if html_file:
        from ouvrage.console.job_page import job_page
        from ouvrage.console.page import html

        write_file(html_file, html(job_page(found)))
    if as_json:
        say_json(job_json(found))
        return
    say_text(job_text(found, plain=plain))
    if html_file:
        say_text(f"Whole report: {html_file}")


def _pages(
    found: Campaign, html_file: Path | None, pdf_file: Path | None
) -> list[tuple[Path, str | bytes]]:
    """What to write where, all made before any of it is written."""
    pages: list[tuple[Path, str | bytes]] = []
    if html_file:
        from ouvrage.console.campaign_page import campaign_page
        from ouvrage.console.page import html

        pages.append((html_file, html(campaign_page(found))))
    if pdf_file:
        from ouvrage.console.campaign_pdf import campaign_pdf

        pages.append((pdf_file, campaign_pdf(found)))
    return pages
