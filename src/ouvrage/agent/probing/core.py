"""The watch of a machine without its processes: when each probe looks, what its answer counts for, which facts follow.

Decides the schedule (a look that does not agree with what counts is made again sooner), which looks a probe's silence
stands for (every part it told of: silence is never well), when a verdict is stated (when it changes, and never
otherwise), and that a fault of the kernel's log is stated at once and its count put right when it is over. It reads no
clock and starts nothing: ``watch`` does, and a test with a stopped clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ouvrage.agent.probing.asking import Answer
from ouvrage.agent.probing.events import Events
from ouvrage.agent.probing.judging import (
    WELL_WHEN_UNNAMED,
    Case,
    Judged,
    faulty,
    inventory_of,
    judged,
)
from ouvrage.agent.probing.memory import Key, Memory
from ouvrage.agent.probing.now import CheckNow, Dropped, Now, ProbeNow
from ouvrage.agent.probing.probes import BY_NAME, FEW, PROBES, Probe
from ouvrage.agent.probing.settings import Settings
from ouvrage.agent.probing.wall import answer_of, hour_after, hour_stated
from ouvrage.base.canonical import sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.time import MINUTE, SECOND
from ouvrage.health.findings import unknown, weight
from ouvrage.health.timekeeping import step_between
from ouvrage.health.watching import Look, Watch, looked, stated, verified, wants
from ouvrage.health.xid import Rules
from ouvrage.ledger.kinds import payload_of
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import CRITICAL, OK, RUNGS, UNKNOWN, CheckResult

_OWN = "agent"


@dataclass(slots=True)
class _State:
    """Where one probe is: when it looks next (None: it is looking), and how its last look went."""

    next_us: int | None
    last_us: int | None = None
    took_us: int = 0
    fault: str | None = None


class Core:
    """One machine's watch. Times are microseconds since boot where nothing else is said.

    ``news``: something is to be remembered though nothing was stated; whoever writes it down takes it back.
    """

    def __init__(
        self, node: str, memory: Memory, rules: Rules, settings: Settings, now_us: int,
        state: str | None = None,
    ) -> None:  # fmt: skip
        self.node = node
        self.memory = memory
        self.epoch = 0
        self.dropped = Dropped()
        self.news = False
        self._rules = rules
        self._settings = settings
        self._state_at = state
        self._probes: dict[str, _State] = {
            each.name: _State(next_us=now_us) for each in PROBES if settings.has(each.option)
        }
        self._answers: dict[str, Answer] = {}
        self._facts: list[Stated] = []
        self._events = Events(node, memory, rules.bounds.us("event.merge"))
        self._clocks: tuple[int, int] | None = None
        self._probes["inventory"].next_us = now_us + MINUTE  # when the driver has told of its GPUs
        if not memory.uuids and "gpu" in self._probes:
            self._probes[
                "kernel_log"
            ].next_us = None  # its lines name places: first, which GPU is where

    # The schedule

    def due(self, now_us: int, lanes: frozenset[str] | None = None) -> list[Probe]:
        """The probes (of some lanes) that are to look now; each is looking from here on, until it was answered."""
        found = [
            BY_NAME[name]
            for name, each in self._probes.items()
            if each.next_us is not None
            and each.next_us <= now_us
            and (lanes is None or BY_NAME[name].lane in lanes)
        ]
        for probe in found:
            self._probes[probe.name].next_us = None
        return found

    def later(self, probe: Probe, at_us: int) -> None:
        """Have a probe that was due look at another moment."""
        self._probes[probe.name].next_us = at_us

    def next_us(self) -> int:
        """When the next probe is to look; far away while all of them are looking."""
        return min(
            (s.next_us for s in self._probes.values() if s.next_us is not None), default=1 << 62
        )

    def question(self, probe: Probe) -> dict[str, Any]:
        """What a probe is told with its question."""
        told: dict[str, Any] = {}
        if probe.name == "kernel_log":
            told["place"] = self.memory.place
        elif probe.name == "files":
            told["paths"] = list(self._settings.paths)
        elif probe.name == "gpu":
            told["expect"] = self._settings.expect_gpus
        elif probe.name == "inventory":
            gpus = self._answers.get("gpu")
            told |= {"node": self.node, "state": self._state_at}
            told["gpus"] = [] if gpus is None else (gpus.values or {})["gpus"]
        elif probe.option is not None:
            value = getattr(self._settings, probe.option)
            told[probe.option] = list(value) if isinstance(value, tuple) else value
        return told

    # Answers

    def answered(self, answer: Answer) -> None:
        """Take an answer: judge it, count it, and note what is to be stated."""
        probe = BY_NAME[answer.probe]
        state = self._probes[probe.name]
        state.last_us, state.took_us = answer.at_us, answer.took_us
        state.fault = answer.fault or answer.absent
        self._see_the_clock(answer)
        if answer.absent is not None and self._watched(probe):
            answer = replace(answer, absent=None, fault=answer.absent)  # it was there before
        if answer.values is not None:
            answer = self._take(probe, answer)
            state.fault = answer.fault
        if answer.fault is not None:
            self._silent(probe, answer)
        more = (answer.values or {}).get("more") is True
        state.next_us = answer.monotonic_us + (SECOND if more else self._pause_us(probe))
        if probe.name == "gpu" and "kernel_log" not in self._answers:
            self._probes["kernel_log"].next_us = answer.monotonic_us

    def _take(self, probe: Probe, answer: Answer) -> Answer:
        """Judge an answer with values; what cannot be judged is no answer."""
        before, self._answers[probe.name] = self._answers.get(probe.name), answer
        case = Case(
            values=answer.values or {}, now_us=answer.monotonic_us, at_us=answer.at_us, before=before, memory=self.memory,
            rules=self._rules, settings=self._settings, last=self._answers,
        )  # fmt: skip
        try:
            self._follow(probe, judged(probe.name, case), answer)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the watch of all the rest goes on
            self._answers.pop(probe.name)
            words = f"its answer cannot be understood: {type(error).__name__}: {error}"[:300]
            return replace(answer, values=None, fault=words, sort="garbage")
        return answer

    def _follow(self, probe: Probe, results: Iterable[Judged], answer: Answer) -> None:
        """Count what was judged, and note what is to be stated beside it."""
        self._count(probe.checks, results, answer)
        if probe.name == "inventory":
            self._state_inventory(answer)
        if probe.name == "kernel_log":
            self._facts += self._events.over(answer)
            self.news |= bool((answer.values or {})["lines"])
        if probe.name == "wall":
            self._count_the_wall(answer)

    def _count_the_wall(self, answer: Answer) -> None:
        """Energy of hours that are over, for the books of whoever keeps them here."""
        values = answer.values or {}
        now = answer_of(values["power_mw"], values["energy_uj"], answer.at_us, answer.monotonic_us)
        self.memory.hour, over = hour_after(self.memory.hour, now)
        if self._settings.keeps_books:
            self._facts += [hour_stated(each, self.node) for each in over]

    def _state_inventory(self, answer: Answer) -> None:
        """State what the machine is made of: once in each boot, and where it differs from what was stated last."""
        now = inventory_of(answer.values or {})
        hash = sha256_hex(payload_of(now))
        if hash == self.memory.inventory:
            return
        self.memory.inventory = hash
        self.memory.number += 1
        self._facts.append(
            Stated(
                natural=f"inventory/{self.memory.boot}/{self.memory.number}", value=now,
                subject=f"node:{self.node}", valid_from=answer.at_us, valid_to=None, grade=Grade.MEASURED,
            )
        )  # fmt: skip

    def _watched(self, probe: Probe) -> list[Key]:
        return [key for key in self.memory.watches if key[0] in probe.checks]

    def _silent(self, probe: Probe, answer: Answer) -> None:
        """A look without values: for everything that this probe told of, nothing is known now."""
        result = faulty(answer)
        about = {(result.check, None), *self._watched(probe)}
        for check, device in sorted(about, key=lambda key: (key[0], key[1] or "")):
            self._look(replace(result, check=check, device=device), answer, 1)

    def _count(self, checks: Iterable[str], results: Iterable[Judged], answer: Answer) -> None:
        named: dict[Key, Judged] = {}
        for each in results:
            key = (each.result.check, each.result.device)
            known = named.get(key)
            # Two parts of one name, as a driver that talks nonsense tells: the worse one must not be lost.
            worse = known is None or weight(each.result.verdict) > weight(known.result.verdict)
            if worse and not each.result.rule.endswith("/none"):
                named[key] = each
        for each in named.values():
            self._look(each.result, answer, each.events)
        spoken = {check for check, _ in named}
        for key in [key for key in self.memory.watches if key[0] in checks and key not in named]:
            if key[0] in spoken or key[1] is not None:
                self._look(_unnamed(key), answer, 1)

    def _look(self, result: CheckResult, answer: Answer, events: int) -> None:
        key = (result.check, result.device)
        before = self.memory.watches.get(key, Watch())
        look = Look(at_us=answer.monotonic_us, boot=self.memory.boot, result=result, events=events)
        bounds = self._rules.bounds
        if key in self.memory.to_verify:
            self.memory.to_verify.discard(key)
            after = verified(before, look)
        else:
            after = _not_well_yet(before, looked(before, look, bounds), result)
        self.memory.watches[key] = after
        if _says(after) != _says(before) or before.boot != self.memory.boot:
            self._state(key, after, answer)

    def _state(self, key: Key, watch: Watch, answer: Answer) -> None:
        self.memory.number += 1
        said = stated(watch, self.node, self.epoch)
        if self._settings.observer and said.action in RUNGS:
            said = replace(said, action="person")
        if self._settings.observer:
            said = replace(said, at_drain="none")
        ago_us = max(0, answer.monotonic_us - watch.since_us)
        self._facts.append(
            Stated(
                natural=f"verdict/{self.memory.boot}/{key[0]}/{key[1] or ''}/{self.memory.number}",
                value=said,
                subject=f"node:{self.node}",
                valid_from=answer.at_us - ago_us,
                valid_to=None,
                grade=Grade.MEASURED,
            )
        )

    def _pause_us(self, probe: Probe) -> int:
        """Until the next look: shorter while the last one does not agree with what counts."""
        watches = [w for (check, _), w in self.memory.watches.items() if check in probe.checks]
        unsettled = any(
            w.looks and not w.latched and not w.shadow and w.looks[-1].result.verdict != w.verdict
            for w in watches
        )
        return probe.interval_us // FEW if unsettled else probe.interval_us

    def _see_the_clock(self, answer: Answer) -> None:
        """A step of the clock between two answers is looked at by the probe of time at once."""
        now = (answer.at_us, answer.monotonic_us)
        before, self._clocks = self._clocks, now
        step = None if before is None else step_between(before, now, self._rules.bounds)
        state = self._probes.get("time")
        if step is not None:
            self.memory.step = step
            if state is not None and state.next_us is not None:
                state.next_us = answer.monotonic_us

    # Of itself

    def tell_of_itself(self, result: CheckResult, answer: Answer) -> None:
        """What the agent says of itself, counted as any other check."""
        self._look(replace(result, check=_OWN), answer, 1)

    def verify(self, device: str | None, now_us: int, *, gone: bool = False) -> None:
        """Somebody repaired a part (None: the machine): its next look may open a latch, older faults count no more.

        ``gone``: the part was taken out, and nothing of it is watched any more.
        """
        self.news = True
        names = {device, *(p for p, u in self.memory.uuids.items() if u == device)} - {None}
        self.memory.verified |= {str(name): now_us for name in names or {""}}
        for key in list(self.memory.watches):
            if device is None or key[1] in names:
                if gone:
                    del self.memory.watches[key]
                else:
                    self.memory.to_verify.add(key)
        for each in self._probes.values():
            if each.next_us is not None:
                each.next_us = now_us

    @property
    def understood(self) -> Mapping[str, Answer]:
        """The last answer of each probe whose values could be judged."""
        return self._answers

    @property
    def trouble(self) -> bool:
        """Whether anything counts as CRITICAL, so that something may be to do."""
        return any(w.verdict == CRITICAL and not w.shadow for w in self.memory.watches.values())

    @property
    def counting(self) -> frozenset[tuple[str, str | None, str]]:
        """What counts now on each part; another set is another view to tell of."""
        return frozenset(
            (*key, watch.verdict) for key, watch in self.memory.watches.items() if not watch.shadow
        )

    def take_facts(self) -> list[Stated]:
        """What is to be stated since the last time."""
        facts, self._facts = self._facts, []
        return facts

    def view(self, at_us: int, now_us: int) -> Now:
        """Everything that is known now. ``at_us`` is UTC."""
        return Now(
            node=self.node,
            boot=self.memory.boot,
            at_us=at_us,
            monotonic_us=now_us,
            epoch=self.epoch,
            observer=self._settings.observer,
            probes=tuple(
                ProbeNow(
                    name=name, interval_s=BY_NAME[name].interval_s, last_us=each.last_us,
                    fault=each.fault, took_us=each.took_us,
                )
                for name, each in self._probes.items()
            ),
            checks=tuple(
                self._check(key, watch, at_us - now_us)
                for key, watch in sorted(
                    self.memory.watches.items(), key=lambda each: (each[0][0], each[0][1] or "")
                )
                if watch.result is not None
            ),
            dropped=self.dropped,
        )  # fmt: skip

    def _check(self, key: Key, watch: Watch, boot_us: int) -> CheckNow:
        last = watch.looks[-1].result if watch.looks else None
        if last is not None and last.verdict == watch.verdict and not watch.latched:
            watch = replace(watch, result=last)  # the same verdict, with what was read last
        said = stated(watch, self.node, self.epoch)
        reasons = () if watch.result is None else watch.result.reasons
        action = "person" if self._settings.observer and said.action in RUNGS else said.action
        return CheckNow(
            check=key[0], device=key[1], verdict=said.verdict, code=said.code, action=action,
            since_us=boot_us + watch.since_us, latched=watch.latched, shadow=watch.shadow,
            reasons=reasons, evidence=said.evidence,
        )  # fmt: skip


def _not_well_yet(before: Watch, after: Watch, result: CheckResult) -> Watch:
    """What was never known to be well does not become so by a look that is not well, however it is debounced."""
    if before.verdict == UNKNOWN and after.verdict == OK and result.verdict != OK:
        return after if after.shadow else replace(after, verdict=UNKNOWN, result=result)
    return after


def _says(watch: Watch) -> tuple[Any, ...]:
    """What makes a verdict another one: its word, the rule it stands on, whether it is on trial."""
    told = wants(watch.result) if watch.verdict != OK or watch.shadow else wants(None)
    return watch.verdict, watch.shadow, *told


def _unnamed(key: Key) -> CheckResult:
    """A part that was told of before and is not now."""
    check, device = key
    if check in WELL_WHEN_UNNAMED or device is None:
        return CheckResult(
            check=check, verdict=OK, device=device, reasons=("nothing speaks of it",)
        )
    return unknown(check, f"{device} is told of no more", device, f"{check}-gone")
