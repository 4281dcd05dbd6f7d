"""``ouvrage node power NODE …``: a machine switched, limited and asked from outside it.

Decides what a person is asked before a machine loses power, that an order is recorded before it is given and again with what became
of it, and how it is all said. How each BMC or plug is reached stands in ``remote.toml``; carrying an order out is ``power_order``'s.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import home
from ouvrage.adapters.power_look import look_at
from ouvrage.adapters.power_order import Carried, Switch
from ouvrage.adapters.power_port import PowerFault, PowerPort
from ouvrage.adapters.power_turn import asked, turn
from ouvrage.adapters.remote_config import Remote, ordered_at, pace_of, power_port_of, remote_of
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.booking import book
from ouvrage.cli.import_told import in_words
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.node_power_before import last_unended, work_refused
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.health.bmc import BmcLook, value_words
from ouvrage.ledger.kinds import read
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import Remedy, StateMove
from ouvrage.model.power import (
    DONE,
    FAILED,
    NOTHING_TO_DO,
    OFF,
    ON,
    ORDERED,
    LogPage,
    PowerLimit,
    PowerOrdered,
)

_HINTS = {
    "silent": "is it plugged in and on this network? ping its address",
    "busy": "try again in a minute",
    "refused": "check user and password where remote.toml says they are",
    "untrusted": "if the certificate is its own: pin it, as docs/guides/remote-management.md shows",
    "unsupported": "docs/guides/remote-management.md says who can what",
}
OPERATOR = "operator"
AFTER = {
    "on": "it starts",
    "off": "it stays off",
    "last": "it is as it was before",
    None: "not told",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The node that was named, and the way to its power."""

    remote: Remote
    port: PowerPort

    @property
    def node(self) -> str:
        """Its name."""
        return self.remote.node


class _NamedFirst(click.Group):
    """A group whose verbs come after a name; the help of a verb is had without one, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``cycle --help`` as if a name stood before it."""
        if args[1:2] == ["--help"] and args[0] in self.commands:
            args = ["NODE", *args]
        return super().parse_args(ctx, args)


@click.group("power", cls=_NamedFirst)
@click.argument("node", metavar="NODE")
@click.pass_context
def power(ctx: click.Context, node: str) -> None:
    """Switch, limit or ask a machine through its BMC or the plug it hangs on.

    \b
    How NODE is reached stands in remote.toml of the home:
      [node.gpu1]
      kind = "redfish"              (or ipmi, shelly, tasmota)
      address = "https://10.0.0.21"
      user = "ouvrage"
      password = "file:/etc/ouvrage/gpu1-bmc"
    """  # fmt: skip
    ctx.obj = node


def reached(node: str) -> Reached:
    """The node by its name. Raises ``OuvrageError`` ``remote/...``."""
    remote = remote_of(home(), node)
    return Reached(remote=remote, port=power_port_of(remote))


def refused(what: Reached, fault: PowerFault) -> OuvrageError:
    """A fault as a refusal."""
    return OuvrageError(
        f"power/{fault.kind}", f"{what.node} ({what.remote.kind} at {what.remote.address}): {fault}",
        where=(what.remote.where,), hint=_HINTS.get(fault.kind), exit_code=1,
    )  # fmt: skip


@power.command()
@json_option
@plain_option
@click.pass_obj
def show(node: str, as_json: bool, plain: bool) -> None:
    """Is it on, what does it draw, what do its sensors say, and what happens after a power cut?"""
    to = reached(node)
    try:
        look = look_at(to.port)
        limit = _limit(to.port)
    except PowerFault as fault:
        raise refused(to, fault) from fault
    if as_json:
        say_json(_look_json(to, look, limit))
        return
    line = f"{node} is {look.state} ({to.remote.kind}){_draws(look)}"
    lines = [in_words(line) if plain else line, f"  after a power cut  {AFTER[look.restore]}"]
    cut_off = last_unended(node)
    if cut_off is not None:
        lines.append(f"  last order         {cut_off}")
    if limit is not None:
        lines.append(f"  power limit        {limit_words(limit)}")
    if look.log is not None:
        lines.append(f"  event log          {log_words(look.log)}")
    if look.sensors:
        rows = [(safe(each.name), safe(value_words(each)), each.verdict) for each in look.sensors]
        lines += ["", table(("sensor", "value", "its BMC says"), rows, "<><")]
    lines += [
        "",
        f"Judged: ouvrage check bmc --node {node}      Its log: ouvrage node power {node} events",
    ]
    say_lines(lines)


def say_lines(lines: Sequence[str]) -> None:
    """Print lines in which a BMC's own words may stand; none of their control characters reach the terminal."""
    say_text("\n".join(safe(line) for each in lines for line in each.split("\n")))


def _limit(port: PowerPort) -> PowerLimit | None:
    try:
        return asked(port.power_limit)
    except PowerFault as fault:
        if fault.kind in ("unsupported", "garbled"):
            return None
        raise


def limit_words(limit: PowerLimit) -> str:
    """``800 W (of 300 to 1,200 W)``."""
    holds = "none" if limit.watts is None else f"{limit.watts} W"
    if limit.least is None and limit.most is None:
        return holds
    return f"{holds} (it may be {limit.least or 1} to {limit.most or '?'} W)"


def log_words(log: LogPage) -> str:
    """``12 entries, 2 % full``."""
    full = "" if log.used_percent is None else f", {log.used_percent} % full"
    return f"{len(log.entries)} {'entry' if len(log.entries) == 1 else 'entries'}{full}"


def _draws(look: BmcLook) -> str:
    return "" if look.draws is None else f", draws {look.draws.value:f} W {Grade.MEASURED.mark}"


def _look_json(to: Reached, look: BmcLook, limit: PowerLimit | None) -> dict[str, Any]:
    return {
        "node": to.node,
        "via": to.remote.kind,
        "address": to.remote.address,
        "state": look.state,
        "power_w": None if look.draws is None else str(look.draws.value),
        "restore_policy": look.restore,
        "power_limit": None if limit is None else {"watts": limit.watts, "least": limit.least, "most": limit.most},
        "sensors": [
            {"name": e.name, "value": None if e.value is None else str(e.value), "unit": e.unit, "verdict": e.verdict}
            for e in look.sensors
        ],
        "log": None if look.log is None else {"entries": len(look.log.entries), "used_percent": look.log.used_percent},
    }  # fmt: skip


@power.command()
@click.option(
    "--after", metavar="CURSOR", help="Only what came after the cursor of an earlier answer."
)
@json_option
@plain_option
@click.pass_obj
def events(node: str, after: str | None, as_json: bool, plain: bool) -> None:
    """Its event log, oldest first, and a cursor to go on with."""
    to = reached(node)
    try:
        page = asked(lambda: to.port.events(after))
    except PowerFault as fault:
        raise refused(to, fault) from fault
    if as_json:
        entries = [
            {"id": e.id, "at": None if e.at_us is None else utc_text(e.at_us), "verdict": e.verdict, "sensor": e.sensor, "words": e.words}
            for e in page.entries
        ]  # fmt: skip
        say_json({"node": node, "entries": entries, "cursor": page.cursor, "gap": page.gap, "used_percent": page.used_percent})  # fmt: skip
        return
    grave = sum(1 for each in page.entries if each.verdict != "OK")
    lines = [f"{log_words(page)}, {grave} of them grave"]
    if page.gap:
        lines.append(
            "  Not all of it: the log was cleared or ran over since that cursor, or is longer than is read."
        )
    rows = [
        (each.id, "before its clock was set" if each.at_us is None else utc_text(each.at_us)[:19], each.verdict, safe(each.sensor), safe(each.words))
        for each in page.entries
    ]  # fmt: skip
    if rows:
        lines += ["", table(("entry", "its clock", "", "sensor", "what"), rows, "<<<<<")]
    lines += ["", f"What comes next: ouvrage node power {node} events --after {page.cursor}"]
    say_lines(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What goes with every order: whether it is only said, whether it is asked about first, why, and how it is said."""

    yes: bool
    dry_run: bool
    why: str
    as_json: bool
    plain: bool

    def say(self, said: dict[str, Any], words: str) -> None:
        """Print the one or the other."""
        if self.as_json:
            say_json(said)
        else:
            say_lines((in_words(words) if self.plain else words).splitlines())

    def confirm(self, question: str) -> None:
        """Ask on a terminal; elsewhere the answer must have been given. ``OuvrageError`` ``power/not-confirmed``."""
        if self.yes:
            return
        if not self.as_json and sys.stdin.isatty():
            if click.confirm(question, err=True):
                return
            raise OuvrageError("power/not-confirmed", "left as it is", exit_code=1)
        hint = "--yes does it without asking, --dry-run only says what would be done"
        raise OuvrageError("power/not-confirmed", question, hint=hint)


def order_options(verb: Any) -> Any:
    """The options of every order."""
    for option in (
        click.option("--why", metavar="TEXT", default="", help="For the record."),
        click.option("--dry-run", is_flag=True, help="Only say what would be done."),
        click.option("--yes", is_flag=True, help="Do not ask first."),
    ):
        verb = option(verb)
    return plain_option(json_option(verb))


def _hard(verb: Any) -> Any:
    return click.option(
        "--hard", is_flag=True, help="Cut the power, without asking its system to end."
    )(verb)


def _anyway(verb: Any) -> Any:
    return click.option(
        "--anyway",
        is_flag=True,
        help="Though the platform (OUVRAGE_URL) says that work runs there.",
    )(verb)


@power.command()
@order_options
@click.pass_obj
def on(node: str, **given: Any) -> int:
    """Turn it on, and see that it is."""
    return _order(node, "on", True, Given(**given))


@power.command()
@_hard
@_anyway
@order_options
@click.pass_obj
def off(node: str, hard: bool, anyway: bool, **given: Any) -> int:
    """Have it shut down and switch off, and see that it is off; --hard cuts the power."""
    return _order(node, "off", hard, Given(**given), anyway)


@power.command()
@_hard
@_anyway
@order_options
@click.pass_obj
def cycle(node: str, hard: bool, anyway: bool, **given: Any) -> int:
    """Off, seen off, a few seconds without power, on, seen on: more than a restart."""
    return _order(node, "cycle", hard, Given(**given), anyway)


_DOES = {
    ("on", True): "turn it on",
    ("off", False): "ask its system to shut down, and wait until it is off",
    ("off", True): "cut its power",
    ("cycle", False): "ask its system to shut down, wait until it is off, then turn it on",
    ("cycle", True): "cut its power, wait until it is off, then turn it on",
}


def _order(node: str, order: str, hard: bool, given: Given, anyway: bool = True) -> int:
    to = reached(node)
    does = _DOES[order, hard]
    try:
        before = asked(to.port.state)
        if before != OFF and not anyway:
            work_refused(node)
        if given.dry_run:
            said = {
                "node": node,
                "order": order,
                "hard": hard,
                "via": to.remote.kind,
                "before": before,
                "dry_run": True,
                "would": does,
            }
            given.say(said, f"{node} is {before}. Would {does}. Nothing was done or recorded.")
            return 0
        if order != "on" and before != OFF:
            given.confirm(f"{node} is {before}. {does[0].upper()}{does[1:]}?")
        done = _carried(to, order, hard, given.why)
    except PowerFault as fault:
        raise refused(to, fault) from fault
    given.say(_done_json(to, done, hard), "\n".join(_done_lines(node, done, hard)))
    return 1 if done.outcome == FAILED else 0


def _carried(to: Reached, order: str, hard: bool, why: str) -> Carried:
    """Record the order, carry it out while no other program gives this machine one, record what became of it."""
    record = Record(to.node, to.remote.kind, order, hard=hard, why=why)
    with turn(ordered_at(to.remote), 5):
        record.ordered()
        switch = Switch(to.port, pace_of(to.remote))
        try:
            done = switch.carry_out(order, hard=hard)
        except PowerFault as fault:  # before anything was ordered
            record.ended(FAILED, "unknown", "unknown", 0, str(fault))
            raise
        except KeyboardInterrupt:
            before = switch.seen[0] if switch.seen else "unknown"
            record.ended(FAILED, before, "unknown", 0, "it was broken off by hand")
            say_text(
                f"{to.node} was left in the middle: ouvrage node power {to.node} show", err=True
            )
            raise
    try:
        record.ended(done.outcome, done.before, done.after, done.took_us, done.why)
    except (
        OuvrageError
    ) as error:  # a full disk, say: what became of the machine is told all the same
        words = f"{to.node} is {done.after} ({order}: {done.outcome}), but not on record: {error.message}"
        raise OuvrageError(
            error.code, words, where=error.where, hint=error.hint, exit_code=1
        ) from error
    return done


class Record:
    """One order in the ledger: first that it was given, then, in its place, what became of it."""

    def __init__(
        self,
        node: str,
        via: str,
        order: str,
        *,
        device: str | None = None,
        hard: bool = False,
        why: str = "",
    ) -> None:
        self._natural = f"power/{node}/{new_id()}"
        self._node = node
        self._given: dict[str, Any] = {
            "node": node, "device": device, "via": via, "order": order, "hard": hard, "by": OPERATOR, "why": why[:400],
        }  # fmt: skip
        self._at_us = now_us()

    def ordered(self) -> None:
        """Before anything is done."""
        unread: dict[str, Any] = {
            "before": "unknown",
            "after": "unknown",
            "took_us": 0,
            "trouble": "",
        }
        self._book(PowerOrdered(**self._given, outcome=ORDERED, **unread))

    def ended(self, outcome: str, before: str, after: str, took_us: int, trouble: str) -> None:
        """What became of it. A power cycle is a rung of the ladder, and stands there too."""
        told: dict[str, Any] = {
            "before": before,
            "after": after,
            "took_us": took_us,
            "trouble": trouble[:400],
        }
        self._book(PowerOrdered(**self._given, outcome=outcome, **told))

    def _book(self, value: PowerOrdered) -> None:
        with opened() as ledger:
            facts = [self._stated("", value)]
            if value.order == "cycle" and value.outcome != ORDERED:
                facts.append(self._stated("/remedy", self._remedy(ledger, value.outcome)))
            book(ledger, facts)
        wrote()

    def _stated(self, part: str, value: Any) -> Stated:
        return Stated(
            natural=f"{self._natural}{part}", value=value, subject=f"node:{self._node}", valid_from=self._at_us,
            valid_to=None, grade=Grade.MEASURED,
        )  # fmt: skip

    def _remedy(self, ledger: Ledger, outcome: str) -> Remedy:
        """The rung that was climbed, in the epoch that holds; whether it helped, only checks can tell."""
        moves = (read(each.fact) for each in ledger.store.records(kind=StateMove.KIND))
        epochs = (m.epoch for m in moves if isinstance(m, StateMove) and m.node == self._node)
        return Remedy(
            node=self._node, device=None, rung="power_cycle", outcome="failed" if outcome == FAILED else "done",
            verified=None, dry_run=False, by=OPERATOR, why=self._given["why"], epoch=max(epochs, default=0),
        )  # fmt: skip


def _done_json(to: Reached, done: Carried, hard: bool) -> dict[str, Any]:
    return {
        "node": to.node, "order": done.order, "hard": hard, "via": to.remote.kind, "outcome": done.outcome,
        "before": done.before, "after": done.after, "seen": list(done.seen), "took_us": done.took_us,
        "trouble": done.why, "dry_run": False,
    }  # fmt: skip


def _done_lines(node: str, done: Carried, hard: bool) -> list[str]:
    took = f"{done.took_us / 1_000_000:.1f} s"
    line = {
        DONE: f"{node} is {done.after}: seen {', then '.join(done.seen)} within {took}.",
        NOTHING_TO_DO: f"{node} is {done.after} already; nothing was done.",
        FAILED: f"{node} is {done.after}, NOT what was ordered ({done.order}): {done.why}.",
    }[done.outcome]
    lines = [line]
    if done.outcome == FAILED and not hard and done.after == ON:
        lines.append("Its system did not end in time; --hard cuts the power.")
    if done.outcome == DONE and done.after == ON:
        lines.append("That its system runs again is proved by a new boot id on the machine itself.")
    return [*lines, f"What it says now: ouvrage node power {node} show"]
