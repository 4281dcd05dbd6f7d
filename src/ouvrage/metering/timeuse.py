"""Where the time of a run went: eight keys in whole microseconds that add up to the period.

Spans come first: what one thread of the program said about itself, less what the kernel measured as
that thread's wait for a core, is ``measured``. The rest is inferred window by window from samples
of the whole process tree and is ``assumed``, by the rules of ``window_split``. Time that no rule
explains, and time in which no samples came, is ``unknown``: unknown rather than wrong.

Waiting for data is known from spans, since a sleeping process does not say what for; a GPU that is
idle while the processes work says so too (``gpu_time``), which is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from ouvrage.base.numbers import split_whole
from ouvrage.base.time import SECOND
from ouvrage.metering.gpu_time import GPU_RULE, GpuTime
from ouvrage.metering.run_view import RunView
from ouvrage.metering.window_split import SAMPLE_RULE, signs_of, split, split_with_gpu
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
_SPAN_KEYS = (
    ("waiting_data", ("data", "load", "fetch", "wait")),
    ("computing", ("compute", "body", "step", "train", "forward", "backward")),
    ("waiting_storage", ("storage", "io", "checkpoint", "save")),
    ("waiting_network", ("network", "comm", "allreduce")),
)
LOOP_GAP_US = 10 * SECOND
SPAN_RULE = (
    "spans of the thread that reports most: data*, load* are waiting for data; storage, io, "
    "checkpoint for storage; network, comm* for the network; compute* and what lies between waits "
    "for data up to ten seconds apart are computing, less the cgroup's throttling and the kernel's "
    "run delay of that thread"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeUse:
    """Microseconds of each key in ``from_us .. to_us``, and the part of each that was measured.

    ``counts`` is how many spans stand behind a key; ``gap_us`` the part without samples.
    ``by_gpu`` is the part of each key that GPUs spoke for.
    """

    from_us: int
    to_us: int
    us: dict[str, int]
    measured: dict[str, int]
    counts: dict[str, int]
    gap_us: int
    emitter: tuple[int, int] | None
    by_gpu: dict[str, int] = field(default_factory=dict)

    @property
    def sample_rule(self) -> str:
        """The rule by which samples were read."""
        return f"{GPU_RULE}; {SAMPLE_RULE}" if self.by_gpu else SAMPLE_RULE

    @property
    def total_us(self) -> int:
        """The length of the period; the keys add up to it."""
        return self.to_us - self.from_us

    def largest_wait(self) -> str | None:
        """The key in ``WAITS`` that took longest; None when none took any time."""
        best = max(WAITS, key=lambda key: self.us[key])
        return best if self.us[best] else None


def time_use(view: RunView, from_us: int, to_us: int) -> TimeUse:
    """Where the time of a run went in a period; a window cut by its edge counts in proportion."""
    emitter, pieces = _pieces(view.spans)
    told, counts = _told(pieces, from_us, to_us)
    _less_delays(told, view.windows, pieces, from_us, to_us)
    inferred, by_gpu, gap = _inferred(view, pieces, from_us, to_us)
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
        emitter=emitter,
        by_gpu={key: min(by_gpu[key], inferred[key]) for key in KEYS} if by_gpu else {},
    )


@lru_cache(maxsize=256)
def key_of_span(name: str) -> str | None:
    """The key that a span's name stands for; None: it says nothing about waiting."""
    lowered = name.lower()
    for key, beginnings in _SPAN_KEYS:
        if lowered.startswith(beginnings):
            return key
    return None


@dataclass(slots=True)
class _Piece:
    """A stretch that the program told of: microseconds by key, how many spans, and its CPU time."""

    from_us: int
    to_us: int
    us: dict[str, int]
    counts: dict[str, int]
    cpu_us: int


def _pieces(spans: Sequence[RunSpans]) -> tuple[tuple[int, int] | None, list[_Piece]]:
    """The reports of the one thread that speaks for most time, as pieces that do not overlap.

    Where reports of waits for data follow on one another, what lies between the waits is the body
    of the loop: computing.
    """
    held: dict[tuple[int, int], list[RunSpans]] = {}
    for report in spans:
        held.setdefault((report.pid, report.tid), []).append(report)
    if not held:
        return None, []
    best = max(held, key=lambda who: (sum(s.to_us - s.from_us for s in held[who]), who))
    reports = sorted(held[best], key=lambda report: (report.from_us, report.index))
    pieces = [_piece(report) for report in reports]
    for chain in _chains(pieces):
        waits = [i for i, piece in enumerate(chain) if piece.counts["waiting_data"]]
        if waits:
            _fill_bodies(chain[waits[0] : waits[-1] + 1])
    return best, pieces


def _piece(report: RunSpans) -> _Piece:
    us, counts = dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, 0)
    for span in report.spans:
        key = key_of_span(span.name)
        if key is not None:
            us[key] += max(0, span.total_us)
            counts[key] += max(0, span.count)
    return _Piece(report.from_us, report.to_us, us, counts, max(0, report.cpu_us or 0))


def _chains(pieces: Sequence[_Piece]) -> Iterable[list[_Piece]]:
    """Pieces in groups, each near enough to the one before to belong to the same loop."""
    chain: list[_Piece] = []
    for piece in pieces:
        if chain and piece.from_us - chain[-1].to_us > LOOP_GAP_US:
            yield chain
            chain = []
        chain.append(piece)
    if chain:
        yield chain


def _fill_bodies(loop: Sequence[_Piece]) -> None:
    """Join the pieces of a loop without holes; what no span of theirs took is computing."""
    for earlier, piece in pairwise(loop):
        piece.from_us = min(earlier.to_us, piece.to_us)
    for piece in loop:
        length = piece.to_us - piece.from_us
        piece.us["computing"] += max(0, length - sum(piece.us.values()))


def _share(amount: int, start: int, end: int, from_us: int, to_us: int) -> int:
    """The part of an amount spread evenly over ``start .. end`` that falls in ``from .. to``."""
    if from_us <= start and end <= to_us:
        return amount
    overlap = min(end, to_us) - max(start, from_us)
    return amount * overlap // (end - start) if overlap > 0 else 0


def _told(
    pieces: Iterable[_Piece], from_us: int, to_us: int
) -> tuple[dict[str, int], dict[str, int]]:
    told, counts = dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, 0)
    for piece in pieces:
        if piece.to_us <= from_us or piece.from_us >= to_us:
            continue
        edges = (piece.from_us, piece.to_us, from_us, to_us)
        for key, amount in piece.us.items():
            if amount:
                told[key] += _share(amount, *edges)
                counts[key] += _share(piece.counts[key], *edges)
    return told, counts


def _less_delays(
    told: dict[str, int],
    windows: Sequence[RunWindow],
    pieces: Sequence[_Piece],
    from_us: int,
    to_us: int,
) -> None:
    """Move out of computing what the kernel says the thread spent throttled or without a core.

    Never more than the thread's spans of work exceed its CPU time: the counters also run while it
    waits for data.
    """
    if not pieces:
        return
    start, end = max(from_us, pieces[0].from_us), min(to_us, pieces[-1].to_us)
    cpu = sum(_share(p.cpu_us, p.from_us, p.to_us, from_us, to_us) for p in pieces)
    delay = throttled = 0
    for window in windows:
        if window.from_us < end and window.to_us > start:
            edges = (window.from_us, window.to_us, start, end)
            delay += _share(window.emitter_run_delay_us or 0, *edges)
            throttled += _share(window.throttled_us or 0, *edges)
    room = max(0, told["computing"] - cpu)
    told["throttled"] = max(0, min(throttled, room))
    told["waiting_cpu"] = min(max(0, delay - throttled), room - told["throttled"])
    told["computing"] -= told["throttled"] + told["waiting_cpu"]


def _inferred(
    view: RunView, pieces: Sequence[_Piece], from_us: int, to_us: int
) -> tuple[dict[str, int], dict[str, int], int]:
    """What samples say about the time that no span told of, and how long no samples came.

    The second is the part that GPUs spoke for, empty where none was used.
    """
    inferred = dict.fromkeys(KEYS, 0)
    gpus = GpuTime(view)
    by_gpu = dict.fromkeys(KEYS, 0) if gpus.speaks else {}
    told = _Told(pieces)
    waits = {one.index: one for one in view.waits}
    seen = 0
    for window in view.windows:
        start, end = max(window.from_us, from_us), min(window.to_us, to_us)
        if start >= end:
            continue
        edges = (window.from_us, window.to_us, from_us, to_us)
        covered = _share(max(0, window.covered_us), *edges)
        seen += covered
        outside = min(covered, max(0, end - start - told.within(start, end)))
        if not outside or window.covered_us <= 0:
            continue
        signs = signs_of(window, waits.get(window.index), view.started.host)
        load = gpus.load(window) if by_gpu else None
        said = split_with_gpu(window, signs, load) if load else {}
        part = window.to_us - window.from_us - (load.length if load else 0)
        for key, amount in said.items():
            by_gpu[key] += amount * outside // window.covered_us
            inferred[key] += amount * outside // window.covered_us
        for key, amount in (split(window, signs) if signs else {}).items():
            alone = amount * part // (window.to_us - window.from_us)
            inferred[key] += alone * outside // window.covered_us
    return inferred, by_gpu, to_us - from_us - seen


class _Told:
    """How much of a stretch was told by spans; asked for stretches in order."""

    def __init__(self, pieces: Sequence[_Piece]) -> None:
        self._reports = [(p.from_us, p.to_us, sum(p.us.values())) for p in pieces]
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


def _fitted(amounts: dict[str, int], room: int) -> dict[str, int]:
    """The amounts, scaled down where overlapping reports claim more time than there is."""
    if sum(amounts.values()) <= room:
        return amounts
    return dict(zip(KEYS, split_whole(room, [amounts[key] for key in KEYS]), strict=True))
