"""Exports of a Slurm cluster's accounting (``sacct``): rows of jobs and steps, whatever is in them.

Decides what a row is where comments hold line breaks and broken letters (lines are put together until they have as
many cells as the line of names), that a row which repeats itself is one statement, and which moment a wall clock
meant: an hour that comes twice is settled by the time that the job ran, or told and left out, never
guessed. Fields are those of https://slurm.schedmd.com/sacct.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ouvrage.adapters.catalogues.rows import Row, printable
from ouvrage.adapters.feeds.moments import moment_of, wall_moments
from ouvrage.adapters.feeds.sacct_use import use_of
from ouvrage.adapters.feeds.told import Told, key_part, name_part
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.nodelists import unfolded
from ouvrage.base.time import SECOND
from ouvrage.ledger.kinds import payload_of
from ouvrage.ledger.stated import HASHED, Stated
from ouvrage.model.cluster import ClusterJobRow
from ouvrage.model.fleet import ClusterJobUse

STATES = frozenset(
    [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "COMPLETING",
        "CONFIGURING",
        "DEADLINE",
        "EXPEDITING",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PENDING",
        "POWER_UP_NODE",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESIZING",
        "RESV_DEL_HOLD",
        "REVOKED",
        "RUNNING",
        "SIGNALING",
        "SPECIAL_EXIT",
        "STAGE_OUT",
        "STOPPED",
        "SUSPENDED",
        "TIMEOUT",
        "UPDATE_DB",
    ]
)
_ID = re.compile(
    r"(?P<job>(?:[0-9]{1,12}|s[0-9A-Z]{13})(?:_(?:[0-9]{1,9}|\[[0-9,:%.-]{1,200}\]))?(?:\+[0-9]{1,6})?)"
    r"(?:\.(?P<step>batch|extern|interactive|[0-9]{1,9}(?:\+[0-9]{1,6})?))?"
)
_STATE = re.compile(r"(?P<state>[A-Z_]{4,20})(?: by (?P<by>\S{1,40}))?")
_CLOCK = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?")
_GPU = re.compile(r"gres/gpu(:[^=,]+)?=([0-9]{1,7})(?:,|$)")
_UNSET = ("", "unknown", "none", "n/a", "(null)")
_MOST_LINES = 500
"""A row of more lines than this is a file that lost its form; without a limit, reading one takes for ever."""
SEPARATORS = ("|#", "|", "\t", ";", ",")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How rows are written: the names of their cells and what parts them; ``below`` lines into the file."""

    names: tuple[str, ...]
    separator: str
    below: int

    @property
    def free_last(self) -> bool:
        """Whether the last cell is what people wrote, in which a separator is a letter like any other."""
        return self.names[-1].lower() == "reason"

    def cells(self, row: str) -> list[str]:
        """The cells of a row, as many as there are names."""
        return row.rstrip("\r").split(self.separator, len(self.names) - 1)


def text_of(data: bytes, told: Told) -> str:
    r"""A file's text; bytes that are no UTF-8 stand as ``\xff``, so that different ones stay different."""
    clean = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return clean.decode("utf-8")
    except UnicodeDecodeError:
        broken = sum("\udc80" <= c <= "\udcff" for c in clean.decode("utf-8", "surrogateescape"))
        told.note(r"bytes that are no UTF-8 are kept as \xNN", broken)
        return clean.decode("utf-8", "backslashreplace")


def form_of(text: str, columns: str | None, file: str, key: Sequence[str]) -> Form:
    """The form that the first line has, or that ``columns`` states for a file without such a line."""
    head = text.split("\n", 1)[0].rstrip("\r")
    separator = next((each for each in SEPARATORS if each in (head or "")), "|")
    names = tuple(printable(name) for name in head.split(separator))
    if {name.lower() for name in key} & {name.lower() for name in names}:
        return Form(names=names, separator=separator, below=1)
    if columns is None:
        raise OuvrageError(
            "sacct/columns",
            f"the first line names no column {' or '.join(key)}",
            where=(f"{file}:1",),
            hint="export with --parsable2 and its line of names, or name them: "
            "--columns JobIDRaw,State,Submit,Start,End,AllocTRES,NodeList",
        )
    return Form(names=tuple(columns.split(",")), separator=separator, below=0)


def lines_of(text: str, form: Form, told: Told) -> Iterator[tuple[int, str]]:
    """Every row with the number of its first line; lines that make no row are faults in ``told``."""
    lines = text.split("\n")
    wanted = len(form.names) - 1
    at = form.below
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        told.rows += 1
        count, after = _together(lines, at, form.separator, wanted)
        if count == wanted or (form.free_last and count > wanted):
            if after > at + 1:
                told.note("rows with line breaks in them are put together")
            yield at + 1, "\n".join(lines[at:after])
            at = after
        else:
            cells = lines[at].count(form.separator) + 1
            told.fault(str(at + 1), "row", f"{cells} cells", f"{wanted + 1}: a part of a row")
            at += 1


def _together(lines: Sequence[str], at: int, separator: str, wanted: int) -> tuple[int, int]:
    """How many separators the lines from ``at`` have until they are enough, and where they end."""
    count, after = lines[at].count(separator), at + 1
    while count < wanted and after < min(len(lines), at + _MOST_LINES):
        more = lines[after].count(separator)
        if count + more > wanted:
            break
        count, after = count + more, after + 1
    return count, after


def read_sacct(
    text: str, told: Told, zone: str, cluster: str | None, columns: str | None
) -> list[Stated]:
    """The statements of an export, each once; rows that cannot be read are faults in ``told``."""
    form = form_of(text, columns, told.file, ("JobID", "JobIDRaw"))
    first = {name.lower(): i for i, name in reversed(list(enumerate(form.names)))}
    _missing(first, told)
    seen: dict[str, int] = {}
    for line, row in lines_of(text, form, told):
        if row in seen:
            told.note("rows repeat one before them word for word, and count once")
        seen.setdefault(row, line)
    found: dict[str, Stated] = {}
    for row, line in seen.items():
        cells = form.cells(row)
        values = {name: printable(cells[i]) for name, i in first.items()}
        stated = _JobRow(told.row(values, str(line)), zone, cluster).stated(told)
        if stated is not None and stated.id in found:
            told.note("rows say nothing else than one before them, and count once")
        if stated is not None:
            found.setdefault(stated.id, stated)
            used = use_of(stated.value, values, zone)
            if used is not None:
                beside = replace(stated, natural=f"use-{natural_of(used)}", value=used)
                found.setdefault(beside.id, beside)
    return list(found.values())


def _missing(names: Mapping[str, int], told: Told) -> None:
    if not {"state", "end"} <= names.keys():
        raise OuvrageError(
            "sacct/columns", "the export has no State or no End", where=(f"{told.file}:1",),
            hint="sacct --parsable2 --duplicates --format JobIDRaw,Cluster,State,Submit,Start,End,"
            "ElapsedRaw,AllocTRES,NodeList,Account,User,Partition",
        )  # fmt: skip
    for name, words in (
        ("submit", "no Submit: a number that was given to two jobs cannot be told apart"),
        ("alloctres", "no AllocTRES: how many GPUs a job had is unknown"),
        ("start", "no Start: how long a job ran is unknown"),
    ):
        if name not in names:
            told.note(words)


class _JobRow:
    """One row, read cell by cell."""

    def __init__(self, row: Row, zone: str, cluster: str | None) -> None:
        self._row = row
        self._zone = zone
        self._cluster = cluster

    def stated(self, told: Told) -> Stated | None:
        """The statement, or None where the row's faults say why not."""
        value = self._value()
        told.faults += self._row.faults
        if value is None or self._row.faults:
            return None
        begins = next(
            at for at in (value.start_us, value.submit_us, value.end_us) if at is not None
        )
        return Stated(
            natural=natural_of(value),
            value=value,
            subject=f"cluster:{name_part(value.cluster)}",
            valid_from=begins,
            valid_to=_until(value, begins),
            grade=Grade.METERED,
        )

    def _text(self, name: str) -> str | None:
        text = self._row.cells.get(name, "")
        return None if text.lower() in _UNSET else text[:500]

    def _value(self) -> ClusterJobRow | None:
        shown, raw = self._id("jobid"), self._id("jobidraw")
        if shown is None and raw is None:
            self._row.fault("JobID", self._row.cells.get("jobid"), "a job's number")
            return None
        job, step = raw or shown or ("", None)
        state = _STATE.fullmatch(self._row.cells["state"])
        if state is None or state["state"] not in STATES:
            self._row.fault("State", self._row.cells["state"], "a state as Slurm writes it in full")
            return None
        times = self._times()
        if times is None:
            return None
        return ClusterJobRow(
            cluster=self._text("cluster") or self._cluster or "cluster",
            job=job,
            step=step,
            shown=shown[0] if shown and shown[0] != job else None,
            submit_us=times[0],
            start_us=times[1],
            end_us=times[2],
            elapsed_us=self._elapsed(),
            state=state["state"],
            nodes=self._nodes(),
            node_count=self._whole("nnodes"),
            gpus=self._gpus(),
            cpus=self._whole("alloccpus"),
            account=self._text("account"),
            user=self._text("user"),
            partition=self._text("partition"),
        )

    def _id(self, name: str) -> tuple[str, str | None] | None:
        found = _ID.fullmatch(self._row.cells.get(name, ""))
        return None if found is None else (found["job"], found["step"])

    def _whole(self, name: str) -> int | None:
        text = self._text(name)
        if text is None:
            return None
        if not re.fullmatch("[0-9]{1,15}", text):
            self._row.fault(name, text, "a whole number")
            return None
        return int(text)

    def _nodes(self) -> str | None:
        text = self._text("nodelist")
        try:
            return text if text and unfolded(text) else None
        except ValueError:
            self._row.fault("NodeList", text, "a list of nodes: node[001-004,007]")
            return None

    def _gpus(self) -> int | None:
        """All GPUs allocated; 0 where resources are listed and no GPU among them."""
        text = self._text("alloctres")
        if text is None:
            return None
        found = _GPU.findall(text)
        whole = [int(count) for kind, count in found if not kind]
        return whole[0] if whole else sum(int(count) for _, count in found)

    def _elapsed(self) -> int | None:
        raw = self._text("elapsedraw")
        if raw is not None and re.fullmatch("[0-9]{1,12}", raw):
            return int(raw) * SECOND
        return self._clock("elapsed")

    def _clock(self, name: str) -> int | None:
        found = _CLOCK.fullmatch(self._row.cells.get(name, ""))
        if found is None:
            return None
        days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
        return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND

    def _times(self) -> tuple[int | None, int | None, int | None] | None:
        """Submit, start and end; None, and a fault, where they cannot be settled."""
        submits, starts, ends = (self._moments(name) for name in ("submit", "start", "end"))
        if self._row.faults:
            return None
        every = [
            (submit, start, end)
            for submit, start, end in product(submits, starts, ends)
            if _in_order(start, end)
        ]
        fitting = every if len(every) < 2 else [times for times in every if self._fits(*times)]
        if len(fitting) == 1 and any(at is not None for at in fitting[0]):
            return fitting[0]
        if not every:
            self._row.fault("End", self._said(), "an end after the beginning")
        elif len(fitting) != 1:
            expected = "no hour that comes twice: export with SLURM_TIME_FORMAT=%s"
            self._row.fault("Start", self._said(), expected)
        else:
            self._row.fault("Start", self._said(), "a moment of submission, beginning or end")
        return None

    def _said(self) -> str:
        return " ".join(
            self._row.cells.get(name, "") for name in ("submit", "start", "end")
        ).strip()

    def _moments(self, name: str) -> tuple[int | None, ...]:
        text = self._text(name)
        if text is None:
            return (None,)
        known = moment_of(text)
        found = (known,) if known is not None else wall_moments(text, "", self._zone)
        if not found:
            self._row.fault(name, text, f"a moment that clocks in {self._zone} show")
        return found

    def _fits(self, submit: int | None, start: int | None, end: int | None) -> bool:
        """Whether a choice among the moments of a wall clock agrees with how long the job ran."""
        elapsed = self._elapsed()
        if not _in_order(submit, start):
            return False
        if start is None or end is None or elapsed is None:
            return True
        return end - start == elapsed + (self._clock("suspended") or 0)


def _in_order(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one <= other


def _until(value: ClusterJobRow, begins: int) -> int | None:
    if value.end_us is not None:
        return max(begins, value.end_us)
    if value.start_us is not None and value.elapsed_us is not None:
        return value.start_us + value.elapsed_us
    return None


def natural_of(value: ClusterJobRow | ClusterJobUse) -> str:
    """What a row is about and all that it says: no row ever replaces another."""
    step = f".{value.step}" if value.step else ""
    said = sha256_hex(canonical(payload_of(value)))[:HASHED]
    return f"sacct/{key_part(value.cluster)}/{value.job}{step}/{said}"
