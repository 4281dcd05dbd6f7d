"""Where the time of a run went: eight keys in whole microseconds that add up to the period.

Spans come first: what one thread of the program said about itself, less what the kernel measured as
that thread's wait for a core, is ``measured``. The rest is inferred window by window from samples
of the whole process tree and is ``assumed``, by the rules below. Time that no rule explains, and
time in which no samples came, is ``unknown``: unknown rather than wrong.

Waiting for data is only ever known from spans, since a sleeping process does not say what for.
Waiting for the network is not inferred either: bytes on the wire are no proof of a wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ouvrage.base.numbers import split_whole
from ouvrage.metering.run_view import RunView
from ouvrage.model.runs import RunSpans, RunWindow

KEYS: tuple[str, ...] = (
    "computing",
    "waiting_data",
    "waiting_cpu",
    "waiting_storage",
    "waiting_network",
    "waiting_memory",
    "throttled",
    "unknown",
)
WAITS = KEYS[1:7]
_SPAN_KEYS: tuple[str, ...] = (
    ("waiting_data", ("data", "load", "fetch", "wait")),
    ("computing", ("compute", "body", "step", "train", "forward", "backward")),
    ("waiting_storage", ("storage", "io", "checkpoint", "save")),
    ("waiting_network", ("network", "comm", "allreduce")),
)
SPAN_RULE = (
    "spans of the thread that reports most: data*, load* are waiting for data; storage, io, "
    "checkpoint for storage; network, comm* for the network; compute* and, up to the thread's own "
    "CPU time, what is in no span are computing, less the cgroup's throttling and the kernel's run "
    "delay of that thread"
)
SAMPLE_RULE = (
    "samples of the process tree: computing while any thread worked; of the rest, throttled by the "
    "cgroup's counter, waiting for a core by the run delay, for storage by block-I/O delay or "
    "uninterruptible sleep while bytes were read or written, for memory by its pressure while "
    "pages were faulted in; unknown otherwise"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeUse:
    """Microseconds of each key in ``from_us .. to_us``, and the part of each that was measured.

    ``counts`` is how many spans stand behind a key; ``gap_us`` the part without samples.
    """

    from_us: int
    to_us: int
    us: dict[str, int]
    measured: dict[str, int]
    counts: dict[str, int]
    gap_us: int
    emitter: tuple[int, int] | None

    @property
    def total_us(self) -> int:
        return self.to_us - self.from_us

    def largest_wait(self) -> str | None:
        """The key in ``WAITS`` that took longest; None when none took any time."""
        best = max(WAITS, key=lambda key: self.us[key])
        return best if self.us[best] else None


def time_use(view: RunView, from_us: int, to_us: int) -> TimeUse:
    """Where the time of a run went in a period; a window cut by its edge counts in proportion."""
    spans = _emitter_spans(view.spans)
    told, counts = _told(spans, from_us, to_us)
    _own_time(told, view.windows, spans, from_us, to_us)
    inferred, gap = _inferred(view.windows, spans, from_us, to_us)
    total = to_us - from_us
    told = _fitted(told, total)
    inferred = _fitted(inferred, total - sum(told.values()))
    us = {key: told[key] + inferred[key] for key in KEYS}
    us["unknown"] += total - sum(us.values())
    return TimeUse(
        from_us=from_us,
        to_us=to_us,
        us=us,
        measured=told,
        counts=counts,
        gap_us=gap,
        emitter=(spans[0].pid, spans[0].tid) if spans else None,
    )


def key_of_span(name: str) -> str | None:
    """The key that a span's name stands for; None: it says nothing about waiting."""
    lowered = name.lower()
    for key, beginnings in _SPAN_KEYS:
        if lowered.startswith(beginnings):
            return key
    return None


def _emitter_spans(spans: Sequence[RunSpans]) -> list[RunSpans]:
    """The reports of the one thread that speaks for most time: others ran beside it."""
    held: dict[tuple[int, int], list[RunSpans]] = {}
    for report in spans:
        held.setdefault((report.pid, report.tid), []).append(report)
    if not held:
        return []
    best = max(held, key=lambda who: (sum(s.to_us - s.from_us for s in held[who]), who))
    return sorted(held[best], key=lambda report: (report.from_us, report.index))


def _share(amount: int, start: int, end: int, from_us: int, to_us: int) -> int:
    """The part of an amount spread evenly over ``start .. end`` that falls in ``from .. to``."""
    if from_us <= start and end <= to_us:
        return amount
    overlap = min(end, to_us) - max(start, from_us)
    return amount * overlap // (end - start) if overlap > 0 else 0


def _told(
    spans: Iterable[RunSpans], from_us: int, to_us: int
) -> tuple[dict[str, int], dict[str, int]]:
    told, counts = dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, 0)
    for report in spans:
        if report.to_us <= from_us or report.from_us >= to_us:
            continue
        for span in report.spans:
            key = key_of_span(span.name)
            if key is not None:
                told[key] += _share(
                    max(0, span.total_us), report.from_us, report.to_us, from_us, to_us
                )
                counts[key] += _share(
                    max(0, span.count), report.from_us, report.to_us, from_us, to_us
                )
    return told, counts


def _own_time(
    told: dict[str, int],
    windows: Sequence[RunWindow],
    spans: Sequence[RunSpans],
    from_us: int,
    to_us: int,
) -> None:
    """Split what the thread does outside its waits by what the kernel says of that thread.

    Time in no span at all, such as the body of a loop over ``watch``, is computing as far as the
    thread's own CPU time goes. Its delays come first out of that time, then out of spans of work,
    and never exceed what is left beside its CPU time: the counters also run while it waits for data.
    """
    if not spans:
        return
    start, end = max(from_us, spans[0].from_us), min(to_us, spans[-1].to_us)
    cpu = delay = stopped = 0
    for report in spans:
        cpu += _share(report.cpu_us or 0, report.from_us, report.to_us, from_us, to_us)
    for window in windows:
        if window.from_us < end and window.to_us > start:
            edges = (window.from_us, window.to_us, start, end)
            delay += _share(window.emitter_run_delay_us or 0, *edges)
            stopped += _share(window.throttled_us or 0, *edges)
    unnamed = max(0, end - start - sum(told.values()))
    room = max(0, told["computing"] + unnamed - cpu)
    throttled = max(0, min(stopped, room))
    waiting = min(max(0, delay - stopped), room - throttled)
    from_unnamed = min(unnamed, throttled + waiting)
    told["computing"] -= throttled + waiting - from_unnamed
    told["computing"] += min(unnamed - from_unnamed, max(0, cpu - told["computing"]))
    told["throttled"], told["waiting_cpu"] = throttled, waiting


def _inferred(
    windows: Sequence[RunWindow], spans: Sequence[RunSpans], from_us: int, to_us: int
) -> tuple[dict[str, int], int]:
    """What samples say about the time that no span told of, and how long no samples came."""
    inferred = dict.fromkeys(KEYS, 0)
    told = _Told(spans)
    seen = 0
    for window in windows:
        start, end = max(window.from_us, from_us), min(window.to_us, to_us)
        if start >= end:
            continue
        edges = (window.from_us, window.to_us, from_us, to_us)
        covered = _share(max(0, window.covered_us), *edges)
        seen += covered
        outside = min(covered, max(0, end - start - told.within(start, end)))
        if not outside or window.covered_us <= 0:
            continue
        for key, amount in _guess(window).items():
            inferred[key] += amount * outside // window.covered_us
    return inferred, to_us - from_us - seen


class _Told:
    """How much of a stretch was told by spans; asked for stretches in order."""

    def __init__(self, spans: Sequence[RunSpans]) -> None:
        self._reports = [
            (r.from_us, r.to_us, sum(max(0, s.total_us) for s in r.spans if key_of_span(s.name)))
            for r in spans
        ]
        self._next = 0

    def within(self, start: int, end: int) -> int:
        while self._next < len(self._reports) and self._reports[self._next][1] <= start:
            self._next += 1
        told = 0
        for index in range(self._next, len(self._reports)):
            begin, finish, amount = self._reports[index]
            if begin >= end:
                break
            told += _share(amount, begin, finish, start, end)
        return told


def _guess(window: RunWindow) -> dict[str, int]:
    """Split a window's covered time by the rules of ``SAMPLE_RULE``; the rest stays unknown."""
    if window.active_us is None:
        return {}
    guess = {"computing": max(0, min(window.active_us, window.covered_us))}
    rest = window.covered_us - guess["computing"]
    moved = (window.read_bytes or 0) + (window.write_bytes or 0)
    stuck = max(window.blkio_delay_us or 0, window.blocked_us or 0) if moved else 0
    pressed = (window.psi_memory_us or 0) if window.major_faults else 0
    for key, amount in (
        ("throttled", window.throttled_us or 0),
        ("waiting_cpu", max(0, (window.run_delay_us or 0) - (window.throttled_us or 0))),
        ("waiting_storage", stuck),
        ("waiting_memory", pressed),
    ):
        guess[key] = max(0, min(amount, rest))
        rest -= guess[key]
    return guess


def _fitted(amounts: dict[str, int], room: int) -> dict[str, int]:
    """The amounts, scaled down where overlapping reports claim more time than there is."""
    if sum(amounts.values()) <= room:
        return amounts
    return dict(zip(KEYS, split_whole(room, [amounts[key] for key in KEYS]), strict=True))
