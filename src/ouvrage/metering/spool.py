"""The spool: what a meter wrote, line by line, and the facts that follow from it.

Decides how a spool is read: lenient about a torn last line only, since a meter may be killed while
it writes; anything else broken is refused with its line. It opens no file and takes no lock. The
same spool gives the same facts however often it is asked, so bringing it in twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import is_campaign
from ouvrage.base.price import Price
from ouvrage.base.time import SECOND
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of, from_plain
from ouvrage.metering import around
from ouvrage.metering.gpus import GpuTrack, MeterTrack, gpu_windows, meter_windows
from ouvrage.metering.plain import (
    Json,
    cleaned,
    column,
    mapping,
    object_in,
    text_in,
    whole,
    whole_or_none,
)
from ouvrage.metering.run_view import fault_of, price_fault
from ouvrage.metering.serving import ServerTrack, server_windows
from ouvrage.metering.span_reports import merged_spans
from ouvrage.metering.windows import Columns, waits_of, windows_of
from ouvrage.model.accepted import RunCampaign
from ouvrage.model.gpus import METER_KINDS, RunDevice, RunElectricity, RunEnergyMeter
from ouvrage.model.runs import (
    Host,
    RunEnded,
    RunMarks,
    RunSamples,
    RunSpans,
    RunStarted,
    SpanSum,
)
from ouvrage.model.serving import RunLoad, RunRequests, RunServer

VERSION = 1
WINDOW_US = 10 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolEnd:
    """The last line of a spool that was closed: how the command ended."""

    t: int
    exit_code: int | None
    signal: int | None
    interrupted: bool
    cpu_user_us: int | None
    cpu_system_us: int | None
    outlived: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spool:
    """Everything one spool says. ``end`` is None while the meter lives, and when it was killed.

    ``last_us`` is the last moment that anything in the spool speaks of; ``notes`` are
    ``code: words`` of what the meter met and of what could not be read.
    """

    source: str
    started: RunStarted
    columns: Columns
    marks: tuple[RunMarks, ...]
    spans: tuple[RunSpans, ...]
    notes: tuple[str, ...]
    end: SpoolEnd | None
    last_us: int
    gpus: tuple[GpuTrack, ...] = ()
    meters: tuple[MeterTrack, ...] = ()
    electricity: RunElectricity | None = None
    campaigns: tuple[str, ...] = ()
    around: tuple[tuple[int, Any], ...] = ()
    load: RunLoad | None = None
    requests: tuple[RunRequests, ...] = ()
    servers: tuple[ServerTrack, ...] = ()

    @property
    def run(self) -> str:
        """The id of the run it tells of."""
        return self.started.run

    @property
    def outcome(self) -> str:
        """``completed``, ``failed``, ``interrupted`` or ``lost``."""
        if self.end is None:
            return "lost"
        if self.end.interrupted:
            return "interrupted"
        return "completed" if self.end.exit_code == 0 else "failed"

    @property
    def wall_us(self) -> int:
        """First to last moment; of a lost run, up to what reached the spool."""
        return self.last_us if self.end is None else self.end.t


def read_spool(lines: Iterable[str]) -> Spool:
    """Read a spool. Raises ``OuvrageError`` ``spool/...`` that names the first bad line."""
    reader = _Reader()
    numbered = _numbered(lines)
    for number, line, is_last in numbered:
        if is_last and not line.endswith("\n"):
            reader.torn(line)
            break
        try:
            reader.take(object_in(line))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if is_last and reader.header is not None:
                reader.torn(line)
                break
            raise _broken(number, error) from error
    return reader.spool()


def _numbered(lines: Iterable[str]) -> Iterator[tuple[int, str, bool]]:
    held: str | None = None
    number = 0
    for line in lines:
        if held is not None:
            yield number, held, False
        held, number = line, number + 1
    if held is not None:
        yield number, held, True


def _broken(number: int, error: Exception) -> OuvrageError:
    words = f"no field {error}" if isinstance(error, KeyError) else str(error)
    return OuvrageError(
        "spool/line",
        f"line {number} of the spool cannot be read: {words}",
        hint="only the last line may be torn; the file was changed or its disk is failing",
    )


class _Rows:
    """Samples gathered line by line; their times only rise."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.values: dict[str, list[int | None]] = {}

    def take(self, line: Json) -> list[int]:
        """Append a line's samples; its times."""
        times = [whole(t) for t in line["t"]]
        before = [*self.times[-1:], *times]
        if any(later < earlier for earlier, later in pairwise(before)):
            raise ValueError("samples run backwards in time")
        columns = {str(name): column(values, times) for name, values in mapping(line["c"]).items()}
        for name in columns.keys() - self.values.keys():
            self.values[name] = [None] * len(self.times)
        for name, held in self.values.items():
            held.extend(columns.get(name) or [None] * len(times))
        self.times.extend(times)
        return times

    def columns(self) -> Columns:
        """Everything taken."""
        return Columns(times=tuple(self.times), values=self.values)


class _Reader:
    """Takes the lines of one spool in order."""

    def __init__(self) -> None:
        self.header: tuple[str, RunStarted] | None = None
        self.rows = _Rows()
        self.gpus: dict[int, tuple[RunDevice, _Rows]] = {}
        self.meters: dict[int, tuple[RunEnergyMeter, _Rows]] = {}
        self.electricity: RunElectricity | None = None
        self.marks: list[RunMarks] = []
        self.spans: list[RunSpans] = []
        self.notes: list[str] = []
        self.campaigns: list[str] = []
        self.around: list[tuple[int, Any]] = []
        self.load: RunLoad | None = None
        self.requests: list[RunRequests] = []
        self.servers: dict[int, tuple[RunServer, _Rows]] = {}
        self.end: SpoolEnd | None = None
        self.last_us = 0
        self.foreign = 0

    def take(self, line: Json) -> None:
        kind = line["k"]
        if self.header is None:
            self.header = _header(line)
            return
        takers: dict[str, Callable[[Json], object]] = {
            "samples": self._samples,
            "marks": self._marks,
            "spans": self._spans,
            "note": self._note,
            "gpu": self._gpu,
            "gpus": lambda line: self._of(self.gpus, line["gpu"]).take(line),
            "meter": self._meter,
            "meters": lambda line: self._of(self.meters, line["meter"]).take(line),
            "electricity": self._electricity,
            "campaign": self._campaign,
            "around": self._around,
            "load": self._load,
            "requests": self._requests,
            "server": self._server,
            "servers": lambda line: self._of(self.servers, line["server"]).take(line),
            "end": self._end,
        }
        if kind in takers:
            takers[kind](line)
        elif kind == "run":
            raise ValueError("a second header")
        else:
            self.foreign += 1

    def torn(self, line: str) -> None:
        self.notes.append(f"spool/torn: the last line broke off after {len(line)} characters")

    def spool(self) -> Spool:
        if self.header is None:
            raise OuvrageError("spool/empty", "the spool holds no complete line")
        if self.foreign:
            words = f"{self.foreign} lines of a kind not known here were left unread"
            self.notes.append(f"spool/unread: {words}")
        source, started = self.header
        return Spool(
            source=source,
            started=started,
            columns=self.rows.columns(),
            marks=tuple(self.marks),
            spans=tuple(self.spans),
            notes=tuple(self.notes),
            end=self.end,
            last_us=self.last_us,
            gpus=tuple(
                GpuTrack(device=device, columns=rows.columns())
                for device, rows in self.gpus.values()
            ),
            meters=tuple(
                MeterTrack(meter=meter, columns=rows.columns())
                for meter, rows in self.meters.values()
            ),
            electricity=self.electricity,
            campaigns=tuple(dict.fromkeys(self.campaigns)),
            around=tuple(self.around),
            load=self.load,
            requests=tuple(self.requests),
            servers=tuple(
                ServerTrack(server=server, columns=rows.columns())
                for server, rows in self.servers.values()
            ),
        )

    @property
    def _run(self) -> str:
        return self.header[1].run if self.header else ""

    def _see(self, moments: Iterable[int | None]) -> None:
        self.last_us = max(self.last_us, *(t for t in moments if t is not None), 0)

    def _samples(self, line: Json) -> None:
        self._see(self.rows.take(line))

    def _gpu(self, line: Json) -> None:
        number = whole(line["gpu"])
        if number in self.gpus:
            raise ValueError(f"GPU {number} for the second time")
        self.gpus[number] = (_device(self._run, number, mapping(line["about"])), _Rows())

    def _meter(self, line: Json) -> None:
        number, kind = whole(line["meter"]), text_in(line["kind"])
        if number in self.meters or kind not in METER_KINDS:
            raise ValueError(f"energy meter {number}, {kind!r}")
        meter = RunEnergyMeter(
            run=self._run,
            meter=number,
            kind=kind,
            name=text_in(line["name"]),
            covers=text_in(line["covers"]),
        )
        self.meters[number] = (meter, _Rows())

    def _electricity(self, line: Json) -> None:
        stated = RunElectricity(
            run=self._run, amount=text_in(line["amount"]), currency=text_in(line["currency"])
        )
        fault = fault_of(stated)
        if fault or self.electricity:
            raise ValueError(fault or "a second price of electricity")
        self.electricity = stated

    @staticmethod
    def _of(held: Mapping[int, tuple[Any, _Rows]], number: Any) -> _Rows:
        if number not in held:
            raise ValueError(f"readings of {number!r}, which was not introduced")
        return held[number][1]

    def _marks(self, line: Json) -> None:
        marks = RunMarks(
            run=self._run,
            index=len(self.marks),
            name=text_in(line["name"]),
            via=text_in(line["via"]),
            pid=whole_or_none(line.get("pid")),
            mark=tuple(text_in(word) for word in line["mark"]),
            n=tuple(whole(value) for value in line["n"]),
            at_us=tuple(whole_or_none(value) for value in line["t"]),
        )
        fault = fault_of(marks)
        if fault:
            raise ValueError(fault)
        self.marks.append(marks)
        self._see(marks.at_us)

    def _spans(self, line: Json) -> None:
        sums = tuple(
            SpanSum(
                name=text_in(span["name"]),
                count=whole(span["count"]),
                total_us=whole(span["total_us"]),
            )
            for span in line["spans"]
        )
        start, end = whole(line["from"]), whole(line["to"])
        if end < start:
            raise ValueError("spans that end before they begin")
        self.spans.append(
            RunSpans(
                run=self._run,
                index=len(self.spans),
                pid=whole(line["pid"]),
                tid=whole(line["tid"]),
                from_us=start,
                to_us=end,
                cpu_us=whole_or_none(line.get("cpu_us")),
                spans=sums,
            )
        )
        self._see([end])

    def _note(self, line: Json) -> None:
        self.notes.append(f"{text_in(line['code'])}: {text_in(line['text'])}")
        self._see([whole(line["t"])])

    def _campaign(self, line: Json) -> None:
        name = text_in(line["name"])
        if is_campaign(name):
            self.campaigns.append(name)
        else:
            self.foreign += 1

    def _around(self, line: Json) -> None:
        kind, t = around.KINDS.get(text_in(line["kind"])), whole(line["t"])
        if kind is None:
            self.foreign += 1
        else:
            self.around.append((t, self._stated(kind, line["value"])))
            self._see([t])

    def _load(self, line: Json) -> None:
        if self.load:
            raise ValueError("a second load")
        self.load = self._stated(RunLoad, line["about"])

    def _requests(self, line: Json) -> None:
        about = {**mapping(line["c"]), "index": len(self.requests), "via": line["via"]}
        requests = self._stated(RunRequests, about)
        self.requests.append(requests)
        self._see(requests.ended_us)

    def _server(self, line: Json) -> None:
        number = whole(line["server"])
        if number in self.servers:
            raise ValueError(f"server {number} for the second time")
        about = {**mapping(line["about"]), "server": number}
        self.servers[number] = (self._stated(RunServer, about), _Rows())

    def _stated(self, kind: type, about: Any) -> Any:
        """What a line says in the very fields of a fact."""
        said = {name: cleaned(value) for name, value in mapping(about).items()}
        value = from_plain(kind, {**said, "run": self._run})
        if fault := fault_of(value):
            raise ValueError(fault)
        return value

    def _end(self, line: Json) -> None:
        if self.end is not None:
            raise ValueError("a second end")
        self.end = SpoolEnd(
            t=whole(line["t"]),
            exit_code=whole_or_none(line.get("exit_code")),
            signal=whole_or_none(line.get("signal")),
            interrupted=bool(line.get("interrupted")),
            cpu_user_us=whole_or_none(line.get("cpu_user_us")),
            cpu_system_us=whole_or_none(line.get("cpu_system_us")),
            outlived=whole_or_none(line.get("outlived")),
        )


def _header(line: Json) -> tuple[str, RunStarted]:
    if line["k"] != "run":
        raise ValueError("the first line is no header")
    if line["v"] != VERSION:
        raise ValueError(f"spool version {line['v']}; this program reads version {VERSION}")
    run, source = line["run"], line["source"]
    int(run, 16)
    if len(run) != 32 or not source or not isinstance(source, str):
        raise ValueError("no proper run and source ids")
    started = RunStarted(
        run=run,
        label=None if line.get("label") is None else text_in(line["label"]),
        command=tuple(text_in(word) for word in line["command"]),
        cwd=text_in(line["cwd"]),
        started_us=whole(line["started_us"]),
        price=_price(line.get("price")),
        unit=None if line.get("unit") is None else text_in(line["unit"]),
        period_us=whole(line["period_us"]),
        host=_host(mapping(line["host"])),
        meter=text_in(line["meter"]),
    )
    if started.period_us <= 0:
        raise ValueError("a sampling period that is not positive")
    return source, started


def _price(stated: Json | None) -> Price | None:
    if stated is None:
        return None
    texts = {name: text_in(mapping(stated)[name]) for name in ("amount", "currency", "per")}
    price = Price(**texts)
    fault = price_fault(price)
    if fault:
        raise ValueError(fault)
    return price


def _host(stated: Json) -> Host:
    model, kernel = stated.get("cpu_model"), stated.get("kernel")
    return Host(
        cpu_model=None if model is None else text_in(model),
        cpus_online=whole_or_none(stated.get("cpus_online")),
        cpus_allowed=whole(stated["cpus_allowed"]),
        cpu_quota_ppm=whole_or_none(stated.get("cpu_quota_ppm")),
        memory_bytes=whole_or_none(stated.get("memory_bytes")),
        memory_limit_bytes=whole_or_none(stated.get("memory_limit_bytes")),
        kernel=None if kernel is None else text_in(kernel),
    )


_DEVICE_TEXTS = ("uuid", "name", "serial", "pci", "driver")


def _device(run: str, number: int, about: Json) -> RunDevice:
    told: dict[str, Any] = {
        name: None
        if about.get(name) is None
        else (text_in(about[name]) if name in _DEVICE_TEXTS else whole(about[name]))
        for name in (field.name for field in fields(RunDevice))
        if name not in ("run", "gpu", "chosen")
    }
    return RunDevice(run=run, gpu=number, chosen=about.get("chosen") is not False, **told)


def facts_of(spool: Spool, *, sealed: RunSamples) -> list[Fact]:
    """The facts of a run: start, campaigns, windows, marks, spans, sealed samples, end, in order."""
    make = _Maker(spool)
    wall = spool.wall_us
    cut = {"wall_us": wall, "period_us": spool.started.period_us, "window_us": WINDOW_US}
    windows = windows_of(spool.run, spool.columns, **cut)
    waits = waits_of(spool.run, spool.columns, **cut)
    facts = [make.fact(spool.started, "start", 0, 0)]
    for campaign in spool.campaigns:
        joined = RunCampaign(run=spool.run, campaign=campaign)
        facts.append(make.fact(joined, f"campaign/{campaign}", 0, wall))
    facts += [make.fact(w, f"window/{w.index}", w.from_us, w.to_us) for w in windows]
    facts += [make.fact(w, f"waits/{w.index}", w.from_us, w.to_us) for w in waits]
    for marks in spool.marks:
        known = [t for t in marks.at_us if t is not None] or [0, wall]
        facts.append(make.fact(marks, f"marks/{marks.index}", min(known), max(known)))
    for spans in merged_spans(spool.spans, WINDOW_US):
        facts.append(make.fact(spans, f"spans/{spans.index}", spans.from_us, spans.to_us))
    facts += _energy_facts(spool, make)
    for name, value, t, grade in around.named(spool.around):
        facts.append(make.fact(value, name, min(t, wall), wall, grade))
    facts += _serving_facts(spool, make)
    facts.append(make.fact(sealed, "samples", 0, wall))
    facts.append(make.fact(_ended(spool), "end", wall, wall))
    return facts


def _energy_facts(spool: Spool, make: _Maker) -> list[Fact]:
    """What the GPUs and the energy meters of a run said."""
    wall, period = spool.wall_us, spool.started.period_us
    facts: list[Fact] = []
    for track in spool.gpus:
        name = f"gpu/{track.device.gpu}"
        facts.append(make.fact(track.device, name, 0, wall))
        cut = gpu_windows(track, wall_us=wall, period_us=period, window_us=WINDOW_US)
        facts += [make.fact(w, f"{name}/{w.index}", w.from_us, w.to_us) for w in cut]
    for meter in spool.meters:
        name = f"meter/{meter.meter.meter}"
        facts.append(make.fact(meter.meter, name, 0, wall))
        parts = meter_windows(meter, wall_us=wall, period_us=period, window_us=WINDOW_US)
        facts += [make.fact(w, f"{name}/{w.index}", w.from_us, w.to_us) for w in parts]
    if spool.electricity:
        facts.append(make.fact(spool.electricity, "electricity", 0, wall, Grade.ASSUMED))
    return facts


def _serving_facts(spool: Spool, make: _Maker) -> list[Fact]:
    """The load, the requests, and what servers counted."""
    wall, period = spool.wall_us, spool.started.period_us
    facts = [make.fact(spool.load, "load", 0, wall)] if spool.load else []
    for requests in spool.requests:
        ended = [t for t in requests.ended_us if t is not None] or [0, wall]
        facts.append(make.fact(requests, f"requests/{requests.index}", min(ended), max(ended)))
    for track in spool.servers:
        name = f"server/{track.server.server}"
        facts.append(make.fact(track.server, name, 0, wall))
        cut = server_windows(track, wall_us=wall, period_us=period, window_us=WINDOW_US)
        facts += [make.fact(w, f"{name}/{w.index}", w.from_us, w.to_us) for w in cut]
    return facts


@dataclass(frozen=True, slots=True)
class _Maker:
    spool: Spool

    def fact(
        self, value: Any, name: str, start: int, end: int, grade: Grade = Grade.MEASURED
    ) -> Fact:
        began = self.spool.started.started_us
        return fact_of(
            value,
            source=self.spool.source,
            id=f"{self.spool.run}/{name}",
            subject=self.spool.run,
            valid_from=began + start,
            valid_to=began + end,
            grade=grade,
        )


def _ended(spool: Spool) -> RunEnded:
    end = spool.end
    return RunEnded(
        run=spool.run,
        outcome=spool.outcome,
        exit_code=end.exit_code if end else None,
        signal=end.signal if end else None,
        wall_us=spool.wall_us,
        cpu_user_us=end.cpu_user_us if end else None,
        cpu_system_us=end.cpu_system_us if end else None,
        outlived=end.outlived if end else None,
        notes=spool.notes,
    )
