"""What to do now about the health of a fleet: moves, fences, remedies and whom to tell, each with its reasons.

Decides from a record of facts and the moment alone, so that asked twice it answers the same, and asked after its answer was recorded
it answers nothing. A place that a check finds broken is fenced, as far as the fleet's bounds allow; its work ends; a rung of the
ladder is climbed where its owner turned it on, else a person is called; its checks verify it; then it is free. Automation's fences
are what the states say: nothing else sets them or lets them go. It carries nothing out (``server/health``, ``agent/probing/alone`` do).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ouvrage.health.fences import Place, changes
from ouvrage.health.fleet import Allowed, allowed
from ouvrage.health.ladder import Step, runbook_of
from ouvrage.health.record import HealthRecord, Heard, Try, height
from ouvrage.health.situation import (
    Silence,
    Situation,
    beside_of,
    is_busy,
    is_idle,
    next_for,
    place_name,
    silence_of,
    window_of,
    worst_owed,
)
from ouvrage.health.states import AUTOMATION, Standing, Wish, moved
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import MaintenanceWindow, Paged, Remedy, StateMove
from ouvrage.model.machines import FenceSet

FENCED = frozenset(
    {"fenced", "draining", "repairing", "verifying", "awaiting_hands", "rma", "retired"}
)
"""States in which automation keeps a place from new work; ``maintenance`` is a person's fence."""

_LEFT_ALONE = frozenset({"rma", "retired"})
_MOST_MOVES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """A rung that is to be climbed now on a place, for a check (``code`` and ``action``) that found it broken.

    ``beside`` are GPUs that it may take along: they are held back, and nothing runs on them.
    """

    place: Place
    rung: str
    epoch: int
    code: str
    action: str
    why: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What follows. ``moves``, ``fences`` and ``remedies`` are to be recorded in this order; ``ordered`` is to be carried out.

    ``reasons`` says of each place that is not well why it stands as it does.
    """

    moves: tuple[StateMove, ...] = ()
    fences: tuple[FenceSet, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    ordered: tuple[Ordered, ...] = ()
    pages: tuple[Paged, ...] = ()
    reasons: Mapping[Place, str] = field(default_factory=dict[Place, str])


def respond(situation: Situation, now_us: int, bounds: Thresholds) -> Response:
    """What is to be done at ``now_us``."""
    record = situation.record
    places = [place for place in record.places() if place[0] in situation.nodes]
    fleet, idle = _fleet(situation, places, now_us, bounds)
    courses = {
        place: _Course(
            situation=situation, now_us=now_us, bounds=bounds, fleet=fleet, place=place,
            standing=record.standing(place), takes_up=place == idle,
        )
        for place in places
    }  # fmt: skip
    for course in courses.values():
        course.run()
    pages = [page for course in courses.values() for page in course.pages]
    if fleet.page is not None:
        key = "fleet/stopped" if fleet.stopped else "fleet/cap"
        pages.insert(0, _page(key, None, None, fleet.page, "person"))
    return Response(
        moves=tuple(move for course in courses.values() for move in course.moves),
        fences=tuple(_fences(situation, courses, now_us)),
        remedies=tuple(each for course in courses.values() for each in course.remedies),
        ordered=tuple(c.ordered for c in courses.values() if c.ordered is not None),
        pages=tuple(page for page in pages if _untold(record, page, now_us, bounds)),
        reasons={p: course.reason for p, course in courses.items() if course.reason},
    )


def _fleet(
    situation: Situation, places: Sequence[Place], now_us: int, bounds: Thresholds
) -> tuple[Allowed, Place | None]:
    """Which machines may have something fenced now that has not been; the one place that is taken up since it is idle.

    What waits for idleness never takes the room of what is broken, and one at a time is enough.
    """
    record, wanting = situation.record, dict[str, str]()
    found = [(place, heard) for place in places for heard in record.against(place)[:1]]
    found.sort(key=lambda each: (-height(each[1].asks), each[1].at_us, each[0][0]))
    for (node, device), heard in found:
        if record.standing((node, device)).state not in (*_LEFT_ALONE, "maintenance"):
            wanting.setdefault(node, heard.verdict.code or heard.verdict.check)
    for node in sorted({*situation.silent, *situation.unwatched} & situation.nodes):
        silence = silence_of(situation, node, bounds)
        if silence is not None and silence.fences:
            wanting.setdefault(node, "silent")
    count = len(situation.nodes)
    made = allowed(wanting, record.fenced(), count, now_us, bounds)
    for place in (each for each in places if each[0] not in wanting and is_idle(situation, each)):
        more = {**wanting, place[0]: record.due(place)[0].verdict.code}
        also = allowed(more, record.fenced(), count, now_us, bounds)
        if not also.stopped and place[0] not in also.waiting:
            return also, place
    return made, None


def _untold(record: HealthRecord, page: Paged, now_us: int, bounds: Thresholds) -> bool:
    told = record.pages.get(page.key)
    return told is None or (
        now_us - told[0] >= bounds.us("page.again") and not page.key.startswith("hands/")
    )


def _page(key: str, node: str | None, device: str | None, words: str, runbook: str | None) -> Paged:
    return Paged(key=key, node=node, device=device, words=words, runbook=runbook)


@dataclass(slots=True, kw_only=True)
class _Course:
    """One place on its way: the moves that it makes in one look, and what comes with them."""

    situation: Situation
    now_us: int
    bounds: Thresholds
    fleet: Allowed
    place: Place
    standing: Standing
    moves: list[StateMove] = field(default_factory=list[StateMove])
    remedies: list[Remedy] = field(default_factory=list[Remedy])
    pages: list[Paged] = field(default_factory=list[Paged])
    ordered: Ordered | None = None
    reason: str = ""
    beside: frozenset[str | None] = frozenset()
    """What the rung that comes next, or is under way, takes along: the machine (None), or other GPUs."""
    takes_up: bool = False
    """Whether it is repaired now for what was due when idle."""

    def run(self) -> None:
        """Make every move that can be made now."""
        for _ in range(_MOST_MOVES):
            wish = self._wish()
            if wish is None:
                return
            found = moved(self.standing, wish)
            if found.move is None:
                self.reason = found.why_not or ""
                return
            self.standing = found.standing
            self.moves.append(found.move)
            if self.takes_up and found.move.to_state == "fenced":
                return  # what it owes by that is known once it is recorded

    @property
    def record(self) -> HealthRecord:
        return self.situation.record

    @property
    def tries(self) -> list[Try]:
        """What was tried here, oldest first."""
        return self.record.tries.get(self.place, [])

    def _to(
        self, state: str, reason: str, evidence: Iterable[str], actor: str = AUTOMATION,
        boot: str | None = None,
    ) -> Wish:  # fmt: skip
        return Wish(
            to_state=state, actor=actor, reason=reason, evidence=tuple(dict.fromkeys(evidence)),
            boot=boot, epoch=self.standing.epoch, at_us=self.now_us,
        )  # fmt: skip

    def _wish(self) -> Wish | None:
        state = self.standing.state
        self.ordered, self.beside, self.reason = None, frozenset(), ""
        if state in _LEFT_ALONE:
            self.reason = f"it is {state}: a person alone changes that"
            return None
        window = window_of(self.record, self.place[0], self.now_us)
        if window is not None and self.place[1] is None and state != "maintenance":
            why = f"maintenance: {window.why}"
            return self._to("maintenance", why, [window.window], window.by)
        if state == "maintenance":
            return self._maintained(window)
        if state in ("healthy", "suspect", "unknown"):
            return self._watched(state)
        if state == "verifying":
            return self._verifying()
        if state == "repairing":
            return self._repairing()
        return self._broken(state)

    def _maintained(self, window: MaintenanceWindow | None) -> Wish | None:
        """A window that is over ends the state that it began; one that a person set stays."""
        if window is not None:
            self.reason = f"maintenance until its window ends: {window.why}"
            return None
        over = [
            each for each in self.record.windows.values()
            if each.node == self.place[0] and each.from_us <= self.standing.since_us
            and (each.cancelled or each.to_us <= self.now_us)
        ]  # fmt: skip
        last = max(over, key=lambda each: each.from_us, default=None)
        if last is None:
            self.reason = "in maintenance until a person ends it"
            return None
        return self._to("verifying", "its window of maintenance is over", [last.window])

    def _watched(self, state: str) -> Wish | None:
        """Of something that may take work: fence it, doubt it, or find it well."""
        against = self.record.against(self.place)
        looked = self.record.looked(self.place)
        if against:
            return self._fence(state, against)
        silence = self._silence()
        if silence is not None and self.place[1] is None:
            return self._silent(state, silence)
        if self.takes_up and not self.moves:
            return self._fence(state, self.record.due(self.place))
        ill = [each for each in self.record.own(self.place) if each.verdict.verdict != "OK"]
        if ill:
            self.reason = f"{ill[0].verdict.check}: {ill[0].verdict.verdict}" + self._later()
            if state == "suspect":
                return None
            return self._to("suspect", _said(ill[0]), [each.id for each in ill], boot=_boot(ill))
        if not looked or state == "healthy":
            self.reason = "" if looked else "nothing has looked at it yet"
            return None
        ids = [each.id for each in looked]
        if state == "unknown":
            return self._to("verifying", "it is heard of again", ids, boot=_boot(looked))
        return self._to("healthy", "every check finds it well", ids, boot=_boot(looked))

    def _later(self) -> str:
        """What is done once it is idle, or would be."""
        due = self.record.due(self.place)
        if not due:
            return ""
        rung = due[0].verdict.at_drain
        off = rung not in self.situation.turned_on or self.place[0] in self.situation.observed
        return f"; {rung} once it is idle" + (", which is not turned on" if off else "")

    def _fence(self, state: str, against: list[Heard]) -> Wish | None:
        node, first = self.place[0], against[0]
        if node in self.fleet.waiting:
            self.reason = f"{_said(first)}; no fence yet: {self.fleet.page}"
            if state == "suspect":
                return None
            words = f"{_said(first)}; automation may not fence it now"
            return self._to("suspect", words, [h.id for h in against], boot=_boot(against))
        return self._to("fenced", _said(first), [h.id for h in against], boot=_boot(against))

    def _silence(self) -> Silence | None:
        return silence_of(self.situation, self.place[0], self.bounds)

    def _silent(self, state: str, silence: Silence) -> Wish | None:
        minutes = silence.for_us // 60_000_000
        self.reason = f"{silence.words} for {minutes} min"
        evidence = [f"silence/{self.place[0]}/{(self.now_us - silence.for_us) // 1_000_000}"]
        if state != "unknown":
            return self._to("unknown", silence.words, evidence)
        if silence.fences and self.place[0] not in self.fleet.waiting:
            return self._to("fenced", self.reason, evidence)
        return None

    def _broken(self, state: str) -> Wish | None:
        """Of something fenced: let it end what it does, then repair it, unless it is found well."""
        well = self._found_well()
        if well is not None and self._silence() is None:
            return self._to("verifying", "its checks find it well", well)
        if state == "fenced":
            return self._to("draining", "what runs there may end", self._evidence())
        if state == "awaiting_hands":
            return self._awaited()
        if is_busy(self.situation, self.place):
            self._drains()
            return None
        return self._begin(self._step())

    def _drains(self) -> None:
        self.reason = "work that runs there goes on; nothing new is placed"
        for_us = self.now_us - self.standing.since_us
        if self.standing.since_us and for_us >= self.bounds.us("ladder.drain"):
            name = place_name(self.place, self.record)
            words = f"{name}: work has gone on for {for_us // 3_600_000_000} h where a repair waits"
            self.pages.append(
                _page(f"drain/{name}/{self.standing.epoch}", *self.place, words, "person")
            )

    def _awaited(self) -> Wish | None:
        """Hands are awaited: they have done it, or what they were awaited for was turned on meanwhile."""
        done = self._done()
        if done is not None:
            return self._to("verifying", f"{done.remedy.by} did: {done.remedy.rung}", [_id(done)])
        step = self._step()
        if step.hands or is_busy(self.situation, self.place) or not self._seen_again():
            self._call(step)
            return None
        return self._begin(step)

    def _seen_again(self) -> bool:
        """Whether what it is repaired for was seen since the last rung; what only stayed silent is a person's."""
        last = next((each for each in reversed(self.tries) if not each.remedy.dry_run), None)
        against = self.record.against(self.place)
        return last is None or any(heard.seq > last.seq for heard in against)

    def _begin(self, step: Step) -> Wish:
        if step.hands:
            return self._to("awaiting_hands", step.why, self._evidence())
        return self._to("repairing", f"{step.rung}: {step.why}", self._evidence())

    def _repairing(self) -> Wish | None:
        """A rung is climbed: order it, or see how it ended."""
        done = self._done()
        if done is not None:
            return self._to("verifying", f"{done.remedy.rung} was done", [_id(done)])
        begun = next((each for each in self.tries if self._under_way(each)), None)
        if begun is not None and self.now_us - begun.at_us < self.bounds.us("ladder.step"):
            self.beside = beside_of(self.record, self.place, begun.remedy.rung)
            self.reason = f"{begun.remedy.rung} is under way"
            return None
        if begun is not None:
            failed = replace(
                begun.remedy, node=self.place[0], outcome="failed", why="it did not end"
            )
            self.remedies.append(failed)
            self.reason = f"{begun.remedy.rung} did not end"
            return None
        step = self._step()
        if step.hands:
            return self._to("awaiting_hands", step.why, self._evidence())
        self.beside = beside_of(self.record, self.place, step.rung)
        if any(is_busy(self.situation, (self.place[0], each)) for each in self.beside):
            self._drains()
            return None
        if not all(self._is_held(each) for each in self.beside):
            self.reason = f"{step.rung}: what it takes along is held back first"
            return None
        first = self._first()
        self.reason = f"{step.rung}: {step.why}"
        self.ordered = Ordered(
            place=self.place, rung=step.rung, epoch=self.standing.epoch, why=step.why,
            code=first.verdict.code if first else "", action=first.asks if first else "",
            beside=tuple(sorted(each for each in self.beside if each is not None)),
        )  # fmt: skip
        return None

    def _verifying(self) -> Wish | None:
        """Repaired or looked at again: found well by every check that it owes, or not."""
        well = self._found_well()
        if well is not None:
            self._verified(found=True)
            return self._to("healthy", "every check finds it well", well)
        since = self.record.moved_seq.get(self.place, 0)
        bad = [] if self.moves else [h for h in self.record.against(self.place) if h.seq > since]
        waited = self.now_us - self.standing.since_us >= self.bounds.us("ladder.verify")
        if not bad and not (waited and self._owes()):
            self.reason = "its checks have yet to find it well"
            return None
        self._verified(found=False)
        if not bad:
            words = "no check has found it well in time"
            return self._to("awaiting_hands", words, self._evidence())
        if is_busy(self.situation, self.place):  # a person let work in meanwhile
            return self._to("awaiting_hands", "it is not well and work runs on it", [bad[0].id])
        return self._begin(self._step(failed=True))

    def _found_well(self) -> list[str] | None:
        """The evidence that it is well; what owes nothing needs none but the window that it comes from."""
        well = self.record.well(self.place)
        if well is None:
            return None
        if well or self._owes():
            return [each.id for each in well]
        if self.standing.state != "verifying" or self.record.looked(self.place):
            return None
        last = next((m for m in reversed(self.record.moves) if self._is_mine(m.move)), None)
        return [last.id] if last and last.move.from_state == "maintenance" else None

    def _is_mine(self, move: StateMove) -> bool:
        return (self.record.node(move.node), move.device) == self.place

    def _owes(self) -> bool:
        return bool(self.record.owed.get(self.place))

    def _verified(self, *, found: bool) -> None:
        """Say of the last rung whether it helped."""
        last = self._done()
        if last is not None:
            self.remedies.append(replace(last.remedy, node=self.place[0], verified=found))

    def _done(self) -> Try | None:
        """The last rung, where it was done and nobody has said yet whether it helped."""
        last = next((each for each in reversed(self.tries) if not each.remedy.dry_run), None)
        if last is None or last.remedy.outcome != "done" or last.remedy.verified is not None:
            return None
        said_now = any(each.verified is not None for each in self.remedies)
        return None if said_now else last

    def _under_way(self, each: Try) -> bool:
        same = each.remedy.epoch == self.standing.epoch and not each.remedy.dry_run
        return same and each.remedy.outcome == "waiting"

    def _first(self) -> Heard | None:
        return worst_owed(self.record, self.place)

    def _step(self, *, failed: bool = False) -> Step:
        observed = self.place[0] in self.situation.observed
        step = next_for(
            self.record, self.place, self.situation.turned_on, self.now_us, self.bounds,
            observed=observed, failed=failed,
        )  # fmt: skip
        return step or Step(
            rung="person", dry_run=False, hands=True, why="nothing says what is wrong"
        )

    def _call(self, step: Step) -> None:
        """Call a person, once for each time that it comes to hands; say what would have been done."""
        first = self._first()
        name = place_name(self.place, self.record)
        said = _said(first) if first else "it is not heard of"
        self.reason = f"{said}; {step.rung}: {step.why}"
        key = f"hands/{self.place[0]}/{self.place[1] or ''}/{self.standing.epoch}"
        words = f"{name}: {said}; next is {step.rung}: {step.why}"
        self.pages.append(_page(key, *self.place, words, runbook_of(step.rung)))
        said_before = any(
            each.remedy.dry_run and each.remedy.epoch == self.standing.epoch
            and each.remedy.rung == step.rung for each in self.tries
        )  # fmt: skip
        if step.dry_run and not said_before:
            self.remedies.append(
                Remedy(
                    node=self.place[0], device=self.place[1], rung=step.rung, outcome="dry_run",
                    verified=None, dry_run=True, by=AUTOMATION, why=step.why,
                    epoch=self.standing.epoch,
                )
            )  # fmt: skip

    def _is_held(self, device: str | None) -> bool:
        """Whether automation holds a part of the machine back already."""
        held, node = self.record.held, self.place[0]
        return any("automation" in held.get((node, each), {}) for each in {device, None})

    def _evidence(self) -> list[str]:
        """Ids for a move: what is held against it, else what it was moved for before."""
        owed = [each.id for each in self.record.owing(self.place)]
        if owed:
            return owed
        if self.moves:
            return list(self.moves[-1].evidence)
        last = next((m for m in reversed(self.record.moves) if self._is_mine(m.move)), None)
        return [last.id] if last else []


def _id(tried: Try) -> str:
    remedy = tried.remedy
    return f"remedy/{remedy.node}/{remedy.device or ''}/{remedy.epoch}/{remedy.rung}"


def _said(heard: Heard) -> str:
    said = heard.verdict
    return f"{said.check} is {said.verdict}" + (f" ({said.code})" if said.code else "")


def _boot(heard: Iterable[Heard]) -> str | None:
    return next((each.verdict.boot for each in heard), None)


def _fences(
    situation: Situation, courses: Mapping[Place, _Course], now_us: int
) -> Iterable[FenceSet]:
    """The fences that the states ask for, less those that stand."""
    record = situation.record
    wants: dict[Place, str] = {}
    for (node, device), course in courses.items():
        if course.standing.state not in FENCED:
            continue
        why = course.moves[0].reason if course.moves else course.reason or course.standing.state
        wants.setdefault((node, device), why)
        for each in course.beside:
            wants.setdefault((node, each), why)
    held = [p for p, by in record.held.items() if "automation" in by and p[0] in situation.nodes]
    yield from changes(record.fences(), wants, held, AUTOMATION)
    for (node, device), course in courses.items():
        if device is None:
            yield from _of_window(record, node, course, now_us)


def _of_window(record: HealthRecord, node: str, course: _Course, now_us: int) -> Iterable[FenceSet]:
    """A window of maintenance holds its node in the operator's name, and lets go of what it held."""
    holder = record.held.get((node, None), {}).get("operator")
    window = window_of(record, node, now_us)
    if window is not None and holder is None and course.standing.state == "maintenance":
        yield _window_fence(window, held=True)
    elif window is None and holder is not None and holder.why.startswith("maintenance "):
        named = holder.why.removeprefix("maintenance ").partition(":")[0]
        ended = record.windows.get(named)
        if ended is not None:
            yield _window_fence(ended, held=False)


def _window_fence(window: MaintenanceWindow, *, held: bool) -> FenceSet:
    return FenceSet(
        node=window.node, device=None, holder="operator", held=held,
        why=f"maintenance {window.window}: {window.why}", by=window.by,
    )  # fmt: skip
