"""``ouvrage fleet adopt``: a Slurm cluster as it stands, read into the books without touching it.

Decides how far back is read (90 days the first time, then from the last reading on), what an answer's absence costs, and until which
moment every job is known: where the controller's queue to accounting is empty, ten seconds before that; where it is not, ten
minutes. What the answers mean is decided by the feeds, what they amount to by ``ouvrage fleet report``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.feeds.node_events import read_events
from ouvrage.adapters.feeds.sacct import read_sacct, text_of
from ouvrage.adapters.feeds.slurm_lists import (
    LAG,
    SETTLES,
    Clock,
    clock_of,
    config_of,
    gone,
    hides_jobs,
    is_current,
    organisations_of,
    read_accounts,
    read_nodes,
    read_partitions,
    read_qos,
    read_reservations,
    read_totals,
)
from ouvrage.adapters.feeds.told import Told, key_part, name_part
from ouvrage.adapters.slurm import CLOCK, QUESTIONS, Answer, Asked, Here, Saved, saved_as, script
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.base.nodelists import unfolded
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.time import HOUR, MINUTE, SECOND
from ouvrage.books.cluster_jobs import attempts_of
from ouvrage.books.fleet.record import FLEET_KINDS, Fleet, fleet_of
from ouvrage.books.known import Known
from ouvrage.books.period import day_of
from ouvrage.cli.amounts import TIME
from ouvrage.cli.booking import book
from ouvrage.cli.import_told import (
    Imported,
    counted,
    imported_json,
    imported_lines,
    in_words,
    site_zone,
)
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, write_file
from ouvrage.ledger.stated import Stated
from ouvrage.model.cluster import ClusterJobRow, ClusterWhole
from ouvrage.model.fleet import ClusterAccount, ClusterNode, ClusterRead, ClusterTotal

FIRST_DAYS = 90
_OVERLAP = HOUR
"""How far a later reading goes back behind the one before: accounting lags, and reading a row again costs nothing."""
_NEEDS = "run it where sacct answers: on a login node, with --ssh HOST, or --script > read.sh to carry answers by hand"


@click.command()
@click.option("--ssh", metavar="HOST", help="A login node, reached by your ssh.")
@click.option(
    "--from",
    "saved",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Answers that were saved in a directory.",
)
@click.option(
    "--save",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep the answers, as they came, in a directory.",
)
@click.option(
    "--script",
    "as_script",
    is_flag=True,
    help="Print a shell script that saves the answers, and do nothing.",
)
@click.option(
    "--since", type=TIME, metavar="90d", help="How far back (90d; later from the last reading on)."
)
@click.option("--cluster", metavar="NAME", help="Its name, where it does not say.")
@click.option(
    "--zone",
    metavar="ZONE",
    help="The zone of its clocks, for answers that were saved in local time.",
)
@json_option
@plain_option
def adopt(
    ssh: str | None,
    saved: Path | None,
    save: Path | None,
    as_script: bool,
    since: int | None,
    cluster: str | None,
    zone: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Read a Slurm cluster into the books; nothing there is touched.

    Jobs, what they used, nodes and what befell them, reservations, accounts, partitions and classes. Every command
    that is given there only shows: --script prints them. Again later it adds what is new, and nothing twice.
    """  # fmt: skip
    if sum(each is not None for each in (ssh, saved)) > 1 or (saved and save):
        raise OuvrageError(
            "fleet/which",
            "one place is asked",
            hint="--ssh HOST, or --from DIR, or neither: this machine",
        )
    if cluster is not None:
        check_name("cluster", cluster, "--cluster lab")
    if as_script:
        say_text(script((since or FIRST_DAYS * 24 * HOUR) // MINUTE).rstrip())
        return 0
    asked: Asked = Saved(saved) if saved else Here(ssh)
    with opened() as ledger:
        answers = ask(asked, _minutes(ledger, since))
        if save is not None:
            for question in QUESTIONS:
                if answers[question.name].why is None:
                    write_file(saved_as(save, question), answers[question.name].data)
        reading = _Reading(asked.place, answers, site_zone(ledger, zone), cluster)
        done = _recorded(ledger, reading)
    done.first = in_words(done.first) if plain or as_json else done.first
    if as_json:
        say_json({**imported_json(done), **reading.as_json()})
    else:
        say_text("\n".join(imported_lines(done, reading.lines())))
    return 1 if done.flagged else 0


def ask(asked: Asked, minutes: int) -> dict[str, Answer]:
    """Every question's answer. Raises ``OuvrageError`` ``fleet/no-answer`` where one is missing that is needed."""
    found: dict[str, Answer] = {}
    for question in QUESTIONS:
        found[question.name] = answer = asked.answer(question, minutes)
        if answer.why is not None and question.needed:
            raise OuvrageError(
                "fleet/no-answer",
                f"{asked.place} does not say {question.name}: {answer.why}",
                hint=_NEEDS,
            )
    return found


def _minutes(ledger: Ledger, since: int | None) -> int:
    """How many minutes back to ask: as said, else from the last reading on, else 90 days."""
    if since is not None:
        return max(1, -(-since // MINUTE))
    reads = [record.fact.valid_to or 0 for record in ledger.store.records(kind=ClusterRead.KIND)]
    if not reads:
        return FIRST_DAYS * 24 * 60
    return max(1, -(-(now_us() - max(reads) + _OVERLAP) // MINUTE))


@dataclass(slots=True)
class _Reading:
    """The answers of one cluster, being read: what each told, and until when every job is known (``whole_to``; None: not)."""

    place: str
    answers: dict[str, Answer]
    zone: str
    given: str | None
    told: list[Told] = field(default_factory=list)
    cluster: str = ""
    clock: Clock = field(init=False)
    config: dict[str, str] = field(init=False)
    whole_to: int | None = None
    unsure: str = ""

    def __post_init__(self) -> None:
        told, text = self._text(CLOCK)
        clock = clock_of(text)
        if clock is None:
            raise OuvrageError(
                "fleet/clock", f"{self.place} does not say when it was read", where=(f"{told.file}:1   found {text[:60]!r}",),
                hint="it holds what `date '+%s %z MINUTES'` prints: 1796083364 +0100 129600",
            )  # fmt: skip
        self.clock = clock
        self.config = config_of(self._text("config")[1])
        self.cluster = self.given or name_part(self.config.get("ClusterName", "") or "cluster")

    @property
    def since_us(self) -> int:
        """The first moment of which all jobs were asked for."""
        return self.clock.at_us - (self.clock.minutes - 1) * MINUTE

    @property
    def missing(self) -> tuple[str, ...]:
        """The questions without an answer."""
        return tuple(
            question.name for question in QUESTIONS if self.answers[question.name].why is not None
        )

    def _text(self, name: str) -> tuple[Told, str]:
        question = next(each for each in QUESTIONS if each.name == name)
        told = Told(form=name, file=saved_as(Path(), question).name)
        return told, text_of(self.answers[name].data, told)

    def read(self, name: str, reader: Callable[[str, Told], Iterable[Stated]]) -> list[Stated]:
        """What an answer states, kept with what was told of it; nothing where there is no answer."""
        if self.answers[name].why is not None or not self.answers[name].data.strip():
            return []
        told, text = self._text(name)
        told.stated += reader(text, told)
        self.told.append(told)
        return told.stated

    def statements(self, fleet: Fleet) -> list[Stated]:
        """Everything that the answers state, less listings that say what is known already."""
        cluster, zone, now = self.cluster, self.zone, self.clock.at_us
        jobs = self.read("jobs", lambda text, told: read_sacct(text, told, zone, cluster, None))
        self.whole_to = self._whole_to()
        events = self.read("events", lambda text, told: read_events(text, told, zone, cluster, now))
        aside = Told(form="events", file="events.txt")
        totals = (
            read_totals(text_of(self.answers["events"].data, aside), aside, cluster, zone)
            if events or self._listed("events")
            else []
        )
        since = now if fleet.nodes else self.since_us
        nodes = self.read("nodes", lambda text, told: read_nodes(text, told, cluster, since))
        if not fleet.nodes:
            nodes = [
                _not_before(each, [e.value for e in totals], [e.valid_from for e in totals])
                for each in nodes
            ]
        listed = {each.value.node for each in nodes}
        self.told_of_totals(totals, nodes)
        lists = [
            *nodes,
            *(
                gone([e[-1].value for e in fleet.nodes.values()], listed, cluster, now)
                if nodes
                else ()
            ),
            *self.read(
                "partitions", lambda text, told: read_partitions(text, told, cluster, since)
            ),
            *self.read(
                "accounts",
                lambda text, told: read_accounts(text, told, cluster, since, self._organisations()),
            ),
            *self.read("qos", lambda text, told: read_qos(text, told, cluster, since)),
        ]
        reservations = self.read(
            "reservations", lambda text, told: read_reservations(text, told, cluster, zone)
        )
        return [
            *jobs,
            *events,
            *totals,
            *_new(lists, fleet),
            *reservations,
            *self._read_facts(fleet),
        ]

    def _listed(self, name: str) -> bool:
        return bool(self.answers[name].data.strip())

    def _organisations(self) -> dict[str, str]:
        told, text = self._text("organisations")
        return organisations_of(text, told) if text.strip() else {}

    def _whole_to(self) -> int | None:
        """Until when every job is known, or None with the reason."""
        faults = sum(len(told.faults) for told in self.told if told.form == "jobs")
        if faults:
            self.unsure = (
                f"{counted(faults, 'row')} of jobs could not be read, so nothing is called free"
            )
        elif hides_jobs(self.config):
            self.unsure = "PrivateData hides other people's jobs, so nothing is called free: read it as an operator"
        if self.unsure:
            return None
        current = is_current(self._text("controller")[1])
        return self.clock.at_us - (SETTLES if current else LAG)

    def _read_facts(self, fleet: Fleet) -> list[Stated]:
        """That it was read, and how far it is known whole, from where that was not known before."""
        cluster, name = self.cluster, key_part(self.cluster)
        subject = f"cluster:{name_part(cluster)}"
        found = [Stated(
            natural=f"cluster-read/{name}/{self.clock.at_us}", value=ClusterRead(cluster=cluster, missing=self.missing),
            subject=subject, valid_from=self.since_us, valid_to=self.clock.at_us, grade=Grade.METERED,
        )]  # fmt: skip
        begins = self.since_us
        if self.whole_to is not None and begins < self.whole_to:
            found.append(Stated(
                natural=f"sacct-whole/{name}/{begins}..{self.whole_to}", value=ClusterWhole(cluster=cluster), subject=subject,
                valid_from=begins, valid_to=self.whole_to, grade=Grade.METERED,
            ))  # fmt: skip
        return found

    def told_of_totals(self, totals: Sequence[Stated], nodes: Sequence[Stated]) -> None:
        """Tell where what the cluster registered and what its nodes list differ."""
        have = sum(each.value.gpus for each in nodes)
        last: ClusterTotal | None = totals[-1].value if totals else None
        if last is not None and nodes and last.gpus != have:
            told = next(each for each in self.told if each.form == "nodes")
            told.note(
                f"the cluster registered {last.gpus} GPUs with accounting, its nodes list {have}: the nodes count"
            )

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` prints beside the import's own."""
        return {
            "cluster": self.cluster, "place": self.place, "read_at": decimal_text(Fraction(self.clock.at_us, SECOND)),
            "since": decimal_text(Fraction(self.since_us, SECOND)),
            "whole_until": None if self.whole_to is None else decimal_text(Fraction(self.whole_to, SECOND)),
            "not_whole": self.unsure or None,
            "missing": {name: self.answers[name].why for name in self.missing},
        }  # fmt: skip

    def lines(self) -> list[str]:
        """What a person is told beside the import's own."""
        lines = [f"  not read: {name} ({self.answers[name].why})" for name in self.missing]
        if self.unsure:
            lines.append(f"  {self.unsure}")
        elif self.whole_to == self.clock.at_us - LAG:
            lines.append(
                "  the controller does not say that accounting is current: the last ten minutes are left open"
            )
        return lines


def _not_before(each: Stated, totals: Sequence[ClusterTotal], starts: Sequence[int]) -> Stated:
    """A node's listing from the time at which the cluster first registered with it, where that is known and later."""
    named = [
        at
        for at, total in zip(starts, totals, strict=True)
        if each.value.node in _unfolded(total.nodes)
    ]
    if not named or min(named) <= each.valid_from:
        return each
    natural = f"{each.natural.rpartition('/')[0]}/{min(named)}"
    return Stated(
        natural=natural,
        value=each.value,
        subject=each.subject,
        valid_from=min(named),
        valid_to=None,
        grade=each.grade,
    )


def _unfolded(text: str) -> tuple[str, ...]:
    try:
        return unfolded(text)
    except ValueError:
        return ()


def _new(lists: Iterable[Stated], fleet: Fleet) -> list[Stated]:
    """The listings that say something else than the last known one of their name."""
    known = {each[-1].value for each in fleet.nodes.values()}
    held: set[Any] = {
        *known,
        *fleet.accounts.values(),
        *fleet.partitions.values(),
        *fleet.qos.values(),
    }
    return [each for each in lists if each.value not in held]


def _recorded(ledger: Ledger, reading: _Reading) -> Imported:
    before = fleet_of(ledger.store.lines(FLEET_KINDS), reading.cluster)
    late = before.until_us is not None and reading.clock.at_us < before.until_us
    said = list({each.id: each for each in reading.statements(before)}.values())
    if late:  # an old directory: what it lists is no news, what it tells of jobs and events may be
        said = [
            each
            for each in said
            if each.valid_to is not None or not isinstance(each.value, _LISTED)
        ]
    done = Imported(told=reading.told, booked=book(ledger, said))
    done.first = _first(reading, said, fleet_of(ledger.store.lines(FLEET_KINDS), reading.cluster))
    done.more = "What it did, who had it, what stood idle: ouvrage fleet report"
    return done


_LISTED = (ClusterNode, ClusterAccount)


def _first(reading: _Reading, said: Sequence[Stated], fleet: Fleet) -> str:
    rows = [
        Known(
            value=each.value,
            valid_from=each.valid_from,
            valid_to=each.valid_to,
            grade=each.grade,
            key="",
        )
        for each in said
        if isinstance(each.value, ClusterJobRow)
    ]
    attempts = attempts_of(rows)
    jobs = len({(each.job, each.submit_us) for each in attempts})
    hours = Fraction(sum(each.gpu_us or 0 for each in attempts), HOUR)
    gpus = sum(each[-1].value.gpus for each in fleet.nodes.values())
    nodes = sum(each[-1].value.listed for each in fleet.nodes.values())
    days = " to ".join(
        dict.fromkeys(
            str(day_of(at, reading.zone)) for at in (reading.since_us, reading.clock.at_us)
        )
    )
    return (
        f"{reading.cluster}: {counted(gpus, 'GPU')} on {counted(nodes, 'node')}, {counted(len(fleet.accounts), 'account')}, "
        f"{counted(jobs, 'job')} with {fixed(hours, 2)} GPU-hours {Grade.METERED.mark} read, {days}"
    )
