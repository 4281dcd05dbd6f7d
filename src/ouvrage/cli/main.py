"""The command line's root: which verbs there are, and the one way a mistake leaves the program.

Decides how refusals, usage errors and interrupts become lines (or JSON) and an exit code. A verb's
module is imported when that verb is called, so that ``ouvrage --help`` does not load the store.
Anything unexpected is left to end the program with its traceback: hiding it would help nobody.
"""

from __future__ import annotations

import gc
import importlib
import io
import sys
from collections.abc import Sequence

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.output import begin, say_error, say_text
from ouvrage.cli.server_extra import server_extra

VERBS: dict[str, tuple[str, str, str]] = {
    "run": ("run_files", "run", "Meter a command: what did a finished unit of it cost?"),
    "runs": ("runs", "runs", "List the runs, newest first."),
    "report": ("report", "report", "What one run cost, and where its time went."),
    "accept": ("accept", "accept", "Say how much of a run's work is good, and why."),
    "compare": ("compare", "compare", "Which of several runs finishes a unit for less money?"),
    "unit-cost": ("unit_cost", "unit_cost", "Which power limit finishes an epoch for the least?"),
    "tune": ("tune", "tune", "Which power limit finishes a unit for the least, tried out here?"),
    "explain": ("explain", "explain", "Where a printed figure comes from, down to its facts."),
    "evidence": ("evidence", "evidence", "Who says what about a provider, and what it is worth."),
    "rates": ("rates", "rates", "Billing rules as plans: what does usage cost under them?"),
    "market": ("market", "market", "Others' offers: what is for sale, and who says so?"),
    "quote": ("quote", "quote", "Which offer finishes this work for the least money?"),
    "init": ("init", "init", "Set up the books of a machine: the place, the parts, what it cost."),
    "own": ("own", "own", "State what you own: machines, GPUs, parts, loans, leases, terms."),
    "import": (
        "importing",
        "import_",
        "Earnings, meters, bank lines and bills, from files and feeds.",
    ),
    "focus": ("focus", "focus", "Bills of clouds in FOCUS: what was billed, and what is odd."),
    "log": ("log", "log", "Say what was done for a machine: 20 minutes of support."),
    "books": ("books", "books", "What did a machine earn, with every cost of it?"),
    "plan": ("plan", "plan", "What should a machine do next: grow, reprice, hold, retire?"),
    "demo": ("demo", "demo", "A made-up owner's year, in a home of its own, to try the books on."),
    "fx": ("fx", "fx", "Dated rates of exchange, to compare prices in two currencies."),
    "inference": ("inference", "inference", "A served model: what does a million tokens cost?"),
    "host": ("host", "host", "Is this the machine that was promised, and what is it?"),
    "check": ("check", "check", "Is this machine well? Exit code 0, 1, 2 or 3, for any scheduler."),
    "rental": ("rental", "rental", "What is paid for a machine around the commands on it."),
    "campaign": ("campaign", "campaign", "All attempts and rentals behind one accepted result."),
    "up": ("up", "up", "Start the platform here: offers, leases, jobs in a sandbox."),
    "down": ("up", "down", "Stop the platform that `ouvrage up` started."),
    "today": ("today", "today", "What needs you, what runs, what is free, the money of today."),
    "login": ("signing", "login", "Sign in to a server."),
    "logout": ("signing", "logout", "Sign out: the token is revoked and forgotten."),
    "whoami": ("signing", "whoami", "Who you are to the server, and what you may do."),
    "tenant": ("tenant", "tenant", "Organisations on the platform, and how they pay."),
    "project": ("project", "project", "Projects: work and budgets kept apart."),
    "member": ("member", "member", "Who belongs to an organisation, and as what."),
    "token": ("token", "token", "Tokens for programs: limited, expiring, revocable."),
    "webhook": ("webhook", "webhook", "Tell an address of ended jobs, budgets, held machines."),
    "audit": ("trail", "audit", "Who did what on the platform, and what was refused."),
    "offer": ("offer", "offer", "What is for sale here: a configuration, a price, terms."),
    "lease": ("lease", "lease", "Machines that are yours for a time: take, give back."),
    "job": ("job", "job", "Work in a sandbox: submit, follow, cancel, explain."),
    "shell": ("shell", "shell", "A terminal inside a job of yours that runs."),
    "cp": ("copying", "cp", "Copy files and directories out of a running job, or into it."),
    "ssh": ("ssh", "ssh", "OpenSSH's client into a job of yours that runs."),
    "ssh-proxy": ("ssh", "ssh_proxy", "What OpenSSH's client calls to reach a job."),
    "key": ("key", "key", "Your public SSH keys, with which you enter jobs."),
    "forward": ("shell", "forward", "Reach a port inside a running job from this machine."),
    "node": ("node", "node", "The platform's machines: enrol, fence, list, unlist."),
    "fleet": (
        "fleet",
        "fleet",
        "Machines under Slurm: bring them up; who had them, what stood idle?",
    ),
    "build": ("build", "build", "Standard builds: how a machine should be, from a proven one."),
    "agent": (
        "agent",
        "agent",
        "One program on each machine: watches it, and runs a platform's jobs.",
    ),
    "doctor": ("doctor", "doctor", "Does this machine keep strangers' work apart? Tries it out."),
    "usage": ("usage", "usage", "What work costs: charged, and running at this moment."),
    "statement": ("usage", "statement", "An account line by line: charges, payments, taxes."),
    "payment": ("payment", "payment", "What tenants paid in."),
    "budget": ("budget", "budget", "What projects may spend, and how much of it is spent."),
    "invoice": ("invoice", "invoice", "Bills: drafted, issued without a gap, corrected."),
    "verify": ("ledger_verbs", "verify", "Check every law over everything recorded."),
    "rebuild": ("ledger_verbs", "rebuild", "Make the derived tables anew from the facts."),
    "backup": ("ledger_verbs", "backup", "Write everything recorded into one file."),
    "restore": ("ledger_verbs", "restore", "Fill an empty home from a backup."),
}
"""Verb → module below ``ouvrage.cli``, attribute, and the line that ``--help`` shows."""


class Verbs(click.Group):
    """A group whose verbs are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which a newcomer needs them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now; None for a word that is no verb."""
        if cmd_name not in VERBS:
            return None
        module, attribute, _ = VERBS[cmd_name]
        with server_extra():
            return getattr(importlib.import_module(f"ouvrage.cli.{module}"), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs from the table above, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in VERBS.items()])


@click.group(cls=Verbs, invoke_without_command=True)
@click.pass_context
def root(ctx: click.Context) -> None:
    """What did a finished unit of work cost, on this machine and on that one?

    \b
    Begin:  ouvrage run --price 0.30/h -- python train.py
    Then:   ouvrage report last
    """
    if ctx.invoked_subcommand is None:
        say_text(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 done, 1 something failed, 2 bad input."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(*_SWEEP)
    _print_what_the_terminal_can()
    begin()
    try:
        result = root.main(args=arguments, prog_name="ouvrage", standalone_mode=False)
    except OuvrageError as error:
        return say_error(error, as_json="--json" in arguments)
    except click.ClickException as error:
        return say_error(_usage(error), as_json="--json" in arguments)
    except click.Abort:
        say_text("interrupted", err=True)
        return 130
    except SystemExit:
        # Click's only one without its standalone mode: the reader of a pipe has seen enough.
        return 0
    return result if isinstance(result, int) else 0


_SWEEP = (100_000, 20, 100)
"""How seldom Python looks for things that hold each other. A verb keeps nearly all that it reads until
it ends, and looking through it again and again took a fifth of a large answer's time."""


def _usage(error: click.ClickException) -> OuvrageError:
    """Click's complaint in the form of every other refusal."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "ouvrage"
    message = error.format_message().rstrip(".")
    return OuvrageError("command/usage", message, hint=f"{path} --help shows what it takes")


def _print_what_the_terminal_can() -> None:
    """A terminal without UTF-8 gets ``?`` for a mark instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
