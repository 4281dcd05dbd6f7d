"""Children that look, one a lane: started, asked, given a deadline, and let go of when they do not answer.

Decides what becomes of a child that is silent. Its input is closed and it is asked to end; only after a good while is it
killed, a driver's client much later than others, since killing one has frozen GPUs. One that even then stays sits in
the kernel: that is the finding, and nothing more is asked of its probe until it is gone, so that stuck children never pile
up. Another child takes over the rest of its lane. A child that ended while it was asked is replaced and asked once more.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, cast

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.agent.probing.asking import CRASH, GARBAGE, HANG, REFUSED, STUCK, Answer
from ouvrage.agent.probing.probes import BY_NAME, DRIVER_LANES, KEPT_LANES, LINGERS_US
from ouvrage.base.time import SECOND

_LONGEST = 4 << 20
_LAST_US = 1 << 53
"""A moment after which no clock is believed (the year 2255)."""
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_KILLED_AFTER_US = {True: 30 * SECOND, False: 5 * SECOND}
"""How long a child has to end by itself, by whether it is a driver's client."""
_ENDS_WITHIN_S = 0.5
"""How long is waited for the end of a child whose output has ended; most are gone by then."""


@dataclass(slots=True)
class _Question:
    probe: str
    text: bytes
    number: int
    asked_us: int
    deadline_us: int
    again: bool = False


class _Child:
    """One process of a lane."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        os.set_blocking(self.output.fileno(), False)
        os.set_blocking(self.input.fileno(), False)
        self.heard = b""

    def ask(self, text: bytes) -> bool:
        """Whether the question went out."""
        with suppress(OSError):
            return self.input.write(text) == len(text)
        return False

    def hear(self) -> bool:
        """Take what it said; False where it will say nothing more."""
        with suppress(BlockingIOError):
            while len(self.heard) <= _LONGEST:
                piece = self.output.read(1 << 16)
                if piece is None:
                    return True
                if not piece:
                    return False
                self.heard += piece
        return True

    def let_go(self) -> None:
        """Close both ends."""
        for end in (self.input, self.output):
            with suppress(OSError):
                end.close()


@dataclass(slots=True)
class _Leaving:
    """A child that was given up while it was asked for ``probe``."""

    child: _Child
    probe: str
    kill_us: int
    killed: bool = False


@dataclass(slots=True)
class _Lane:
    name: str
    child: _Child | None = None
    current: _Question | None = None
    idle_us: int = 0
    queue: list[_Question] = field(default_factory=list)
    leaving: list[_Leaving] = field(default_factory=list)


class Lanes:
    """Every lane. ``ask`` never waits; ``wait`` gives what was answered, or went wrong, meanwhile."""

    def __init__(self, root: str = "/", command: list[str] | None = None) -> None:
        self._command = command or [
            sys.executable, "-m", "ouvrage.agent.probing.child", "--root", root,
        ]  # fmt: skip
        self._lanes: dict[str, _Lane] = {}
        self._selector = selectors.DefaultSelector()
        self._number = 0
        self._done: list[Answer] = []

    def ask(self, probe: str, asked: Mapping[str, Any]) -> None:
        """Have a probe look; where its last child has not ended yet, that is the answer."""
        lane = self._lanes.setdefault(BY_NAME[probe].lane, _Lane(name=BY_NAME[probe].lane))
        held = next((each for each in lane.leaving if each.probe == probe), None)
        if held is not None:
            self._fail_held(held)
            return
        self._number += 1
        text = json.dumps({**asked, "n": self._number, "probe": probe}) + "\n"
        question = _Question(probe, text.encode(), self._number, monotonic_us(), 0)
        lane.queue.append(question)
        self._next(lane)

    def _fail_held(self, held: _Leaving) -> None:
        pid = held.child.process.pid
        if held.killed and _state(pid) == "D":
            words = f"process {pid} hangs in the kernel{_where(pid)} and cannot be ended"
            self._fail(held.probe, STUCK, words)
        else:
            self._fail(held.probe, HANG, f"process {pid}, which did not answer, has not ended yet")

    def _fail(self, probe: str, sort: str, words: str, took_us: int = 0) -> None:
        self._done.append(
            Answer(
                probe=probe, at_us=now_us(), monotonic_us=monotonic_us(), took_us=took_us,
                fault=words, sort=sort,
            )
        )  # fmt: skip

    def _next(self, lane: _Lane) -> None:
        """Put the next question of a lane to its child, starting one where there is none."""
        while lane.current is None and lane.queue:
            question = lane.current = lane.queue.pop(0)
            question.deadline_us = monotonic_us() + BY_NAME[question.probe].deadline_s * SECOND
            try:
                child = lane.child or self._start(lane)
            except OSError as error:
                lane.current = None
                self._fail(question.probe, REFUSED, f"no child could be started: {error.strerror}")
                continue
            if not child.ask(question.text):
                self._ended(lane)

    def _start(self, lane: _Lane) -> _Child:
        lane.child = _Child(self._command)
        self._selector.register(lane.child.output, selectors.EVENT_READ, lane)
        return lane.child

    def wait(self, seconds: float) -> list[Answer]:
        """Answers that are there within so many seconds; it returns with the first."""
        if not self._done:
            until_us = monotonic_us() + int(max(0.0, seconds) * SECOND)
            self._hear(min(until_us, self._next_us()))
        self._look_after(monotonic_us())
        done, self._done = self._done, []
        return done

    def _hear(self, until_us: int) -> None:
        for key, _ in self._selector.select(max(0.0, (until_us - monotonic_us()) / SECOND)):
            lane = cast("_Lane", key.data)
            if lane.child is not None and key.fileobj is lane.child.output:
                self._take(lane, lane.child)

    def _take(self, lane: _Lane, child: _Child) -> None:
        if not child.hear():
            self._ended(lane)
        elif b"\n" in child.heard:
            line, _, child.heard = child.heard.partition(b"\n")
            self._answered(lane, line)
        elif len(child.heard) > _LONGEST:
            self._answered(lane, b"")

    def _answered(self, lane: _Lane, line: bytes) -> None:
        question = lane.current
        if question is None:
            self._give_up(lane, "", DRIVER_LANES)  # it speaks without being asked
            return
        took_us = monotonic_us() - question.asked_us
        answer = _read(question, line, took_us)
        lane.current = None
        if answer is None:
            self._fail(question.probe, GARBAGE, f"the answer is none: {line[:80]!r}", took_us)
            self._give_up(lane, question.probe, DRIVER_LANES)
        else:
            self._done.append(answer)
            lane.idle_us = monotonic_us()
        self._next(lane)

    def _ended(self, lane: _Lane) -> None:
        """Its child is gone: the question is put to another one, once; one that says no more and lives on is given up."""
        child, question = lane.child, lane.current
        probe = "" if question is None else question.probe
        lane.current = None
        if child is not None and _ends(child.process, _ENDS_WITHIN_S):
            lane.child = None
            self._selector.unregister(child.output)
            child.let_go()
            if question is not None and question.again:
                words = f"the probe's process ended, {_code(child.process)}, before it answered"
                self._fail(probe, CRASH, words)
            elif question is not None:
                question.again = True
                lane.queue.insert(0, question)
        elif child is not None:
            if probe:
                words = f"process {child.process.pid} closed its output and has not ended"
                self._fail(probe, CRASH, words)
            self._give_up(lane, probe, DRIVER_LANES)
        self._next(lane)

    def _give_up(self, lane: _Lane, probe: str, careful: Any) -> None:
        """Ask a child to end, and hear it no more."""
        child = lane.child
        lane.child = None
        if child is None:
            return
        self._selector.unregister(child.output)
        child.let_go()
        if probe:
            _signal_all(child.process, signal.SIGTERM)
        patience = _KILLED_AFTER_US[lane.name in careful]
        lane.leaving.append(_Leaving(child, probe, monotonic_us() + patience))

    def _look_after(self, now: int) -> None:
        for lane in self._lanes.values():
            question = lane.current
            if question is not None and now >= question.deadline_us:
                lane.current = None
                seconds = BY_NAME[question.probe].deadline_s
                words = f"no answer within {seconds} s{_where(_pid(lane))}"
                self._fail(question.probe, HANG, words, now - question.asked_us)
                self._give_up(lane, question.probe, DRIVER_LANES)
                self._next(lane)
            if lane.current is None and _leaves(lane, now):
                self._give_up(lane, "", ())
            lane.leaving = [each for each in lane.leaving if not _gone(each, now)]

    def _next_us(self) -> int:
        """When something has to be looked after next."""
        times = [q.deadline_us for q in (lane.current for lane in self._lanes.values()) if q]
        if any(lane.leaving or _leaves(lane) for lane in self._lanes.values()):
            times.append(monotonic_us() + SECOND)
        return min(times, default=1 << 62)

    def let_go(self, names: Collection[str]) -> None:
        """Have the children of some lanes end; the next question starts another one."""
        for lane in self._lanes.values():
            if lane.name in names and lane.current is None:
                self._give_up(lane, "", ())

    @property
    def resting(self) -> bool:
        """Whether only those children are there that are kept."""
        return all(
            each.name in KEPT_LANES or (each.child is None and not each.leaving)
            for each in self._lanes.values()
        )

    @property
    def pids(self) -> list[int]:
        """The children that are there now."""
        return [lane.child.process.pid for lane in self._lanes.values() if lane.child is not None]

    def close(self) -> None:
        """Let every child end, which it does with its input; one that does not is killed unless it is a driver's client."""
        for lane in self._lanes.values():
            self._give_up(lane, "", ())
            for each in lane.leaving:
                if not _ends(each.child.process) and lane.name not in DRIVER_LANES:
                    each.child.process.kill()
                    _ends(each.child.process)
        self._selector.close()


def _leaves(lane: _Lane, now: int | None = None) -> bool:
    """Whether a lane's child is one that goes when nothing is asked of it; with ``now``, whether that is now."""
    goes = lane.child is not None and lane.name not in KEPT_LANES
    return goes and (now is None or now >= lane.idle_us + LINGERS_US)


def _ends(process: subprocess.Popen[bytes], seconds: float = 1) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return True
    return False


def _read(question: _Question, line: bytes, took_us: int) -> Answer | None:
    """The answer on a line, None where it is none to this question."""
    held = _told(line)
    if held is None:
        return None
    if held.get("n") != question.number or held.get("probe") != question.probe:
        return None
    at, since = held.get("at_us"), held.get("monotonic_us")
    values, absent, fault = (held.get(name) for name in ("values", "absent", "fault"))
    if not isinstance(at, int) or not isinstance(since, int):
        return None
    if not 0 <= at < _LAST_US or not 0 <= since - question.asked_us <= took_us:
        return None  # a moment that cannot be: the next look would be set by it
    if not (isinstance(values, dict) or isinstance(absent, str) or isinstance(fault, str)):
        return None
    return Answer(
        probe=question.probe, at_us=at, monotonic_us=since, took_us=took_us,
        values=cast("dict[str, Any] | None", values), absent=absent, fault=fault,
    )  # fmt: skip


def _told(line: bytes) -> dict[str, Any] | None:
    """The object on a line: finite numbers, and text that every file and terminal can hold; None for anything else."""
    try:
        told = json.loads(line, parse_constant=_no_number, parse_float=_finite)
        told = _plain(told) if _HALF.search(line) else told
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", told) if isinstance(told, dict) else None


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _finite(word: str) -> float:
    value = float(word)
    return value if isfinite(value) else _no_number(word)


def _plain(told: Any) -> Any:
    """The same with halves of characters written out, which stand for bytes of names that are no UTF-8."""
    if isinstance(told, str):
        return told.encode("utf-8", "backslashreplace").decode()
    if isinstance(told, list):
        return [_plain(each) for each in cast("list[Any]", told)]
    if isinstance(told, dict):
        return {_plain(name): _plain(each) for name, each in cast("dict[str, Any]", told).items()}
    return told


def _gone(each: _Leaving, now: int) -> bool:
    """Whether a child that was given up has ended; it is killed when its time is over, and what it started with it."""
    process = each.child.process
    over = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    if over or (now >= each.kill_us and not each.killed):
        each.killed = True
        _signal_all(process, signal.SIGKILL)  # before it is waited for, while its number is its own
    return over and process.poll() is not None


def _signal_all(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a child that was not waited for yet, and what it started: each child leads a session of its own."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def _code(process: subprocess.Popen[bytes]) -> str:
    """How a process that is gone ended, in words."""
    code = process.returncode
    return f"by signal {-code}" if code < 0 else f"with code {code}"


def _pid(lane: _Lane) -> int:
    return lane.child.process.pid if lane.child is not None else 0


def _state(pid: int) -> str:
    """The state of a process as the kernel shows it: ``D`` waits and cannot be disturbed."""
    with suppress(OSError, IndexError):
        return (
            Path(f"/proc/{pid}/stat")
            .read_text("utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[0]
        )
    return ""


def _where(pid: int) -> str:
    """`` (in WHERE)``: where in the kernel a process waits, empty where it does not tell."""
    with suppress(OSError):
        told = Path(f"/proc/{pid}/wchan").read_text("ascii", errors="replace")
        if told not in ("", "0"):
            return f" (in {told[:60]})"
    return ""
