"""Runs of one command under several power limits, and the limits back as they were afterwards.

Decides what is refused before anything runs (a card that is divided, used by others, or will not
have its limit set), in which order the limits come, and what a signal does: the limits go back at
once, the command is asked to end, and what was metered stays. Whatever ends this program in another
way, ``meter.limits_guard`` puts them back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ouvrage.adapters import child_end, limit_record
from ouvrage.adapters.limit_port import CardLimits, Refused
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.output import say_text
from ouvrage.meter.feed import command
from ouvrage.meter.gpus import chosen
from ouvrage.meter.limits import Driver, put_back
from ouvrage.meter.limits_guard import Guard, claim

DEFAULT_LIMITS = 4
STEP_MW = 5_000
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
WATCHED = (*ENDINGS, signal.SIGCHLD)
_SI_KERNEL = 0x80
RESTORE = "when the driver answers again: ouvrage tune --restore"
_HINTS = {
    "permission": "setting a power limit takes root; `nvidia-smi -pl` needs the same. In a container"
    " the host must allow it; many rented machines do not",
    "unsupported": "this card's limit is fixed, as on most laptops; `nvidia-smi -q -d POWER` says so",
    "library": "NVIDIA's driver is not installed here, or its library is not on LD_LIBRARY_PATH",
}


@dataclass(slots=True)
class Tried:
    """What came of it: ids of the runs, why it ended early, and what was not put back."""

    runs: list[str] = field(default_factory=list[str])
    trouble: OuvrageError | None = None
    signal: int = 0
    not_back: list[str] = field(default_factory=list[str])


def cards_of(driver: Driver, indexes: Sequence[int] | None) -> list[CardLimits]:
    """The cards that the command would see, or of these the ones that are named by index."""
    try:
        everything = driver.look()
    except Refused as error:
        raise refusal(error, "the power limits cannot be read") from error
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    cards = [card for card in everything if chosen(seen, card.index, card.uuid)]
    if indexes is not None:
        missing = sorted(set(indexes) - {card.index for card in cards})
        if missing:
            raise OuvrageError(
                "tune/gpu", f"there is no GPU {missing[0]} that the command could see",
                hint="nvidia-smi -L lists them; CUDA_VISIBLE_DEVICES narrows them",
            )  # fmt: skip
        cards = [card for card in cards if card.index in indexes]
    if not cards:
        raise OuvrageError("tune/no-gpu", "there is no GPU here", hint=_HINTS["library"])
    return cards


def check(cards: Sequence[CardLimits], *, shared: bool) -> None:
    """Refuse cards on which a limit would say nothing, or concern others."""
    for card in cards:
        name = f"GPU {card.index} ({card.name})"
        if card.mig:
            raise OuvrageError(
                "tune/mig", f"{name} is divided (MIG): a limit would hold for all its parts",
                hint="nvidia-smi -mig 0, as root, when nobody uses it",
            )  # fmt: skip
        if card.processes and not shared:
            ids = ", ".join(map(str, card.processes))
            raise OuvrageError(
                "tune/in-use", f"{name} is used by others (process {ids})",
                hint="their work would be slowed and their energy counted; --shared does it anyway",
            )  # fmt: skip
        if card.persistence == 0:
            raise OuvrageError(
                "tune/persistence", f"{name} forgets its limit when nobody uses it",
                hint="nvidia-smi -pm 1, as root, or run nvidia-persistenced",
            )  # fmt: skip
        if card.limit_mw is None or card.least_mw is None or card.most_mw is None:
            raise OuvrageError(
                "tune/unsupported", f"{name} does not tell its power limit, or what it may be",
                hint=_HINTS["unsupported"],
            )  # fmt: skip


def limits_for(cards: Sequence[CardLimits], asked: Sequence[int] | None) -> list[int]:
    """The limits to try, in milliwatts, rising: those asked for, or four from least to most.

    Every card must allow each. Most is the default limit, or the one found where that is higher.
    """
    least = max(card.least_mw or 0 for card in cards)
    most = min(card.most_mw or 0 for card in cards)
    if asked is not None:
        limits = sorted({watts * 1000 for watts in asked})
        for limit in limits:
            if not least <= limit <= most:
                raise OuvrageError(
                    "tune/limit", f"{limit // 1000} W is outside what the cards allow",
                    hint=f"between {least / 1000:g} and {most / 1000:g} W",
                )  # fmt: skip
    else:
        usual = max(max(card.default_mw or 0, card.limit_mw or 0) for card in cards)
        top = min(most, usual) if usual else most
        steps = DEFAULT_LIMITS - 1
        between = {
            round((least + (top - least) * n / steps) / STEP_MW) * STEP_MW for n in range(1, steps)
        }
        limits = sorted({limit for limit in between if least < limit < top} | {least, top})
    if len(limits) < 2 or least > most:
        raise OuvrageError(
            "tune/one-limit", "there is only one power limit to try", hint="--limits 150,200,250"
        )
    return limits


def recover(home: Path, driver: Driver) -> bool:
    """Put back what a tune that was killed left behind; whether there was anything.

    Raises ``OuvrageError`` ``tune/not-restored`` (exit 1) where that fails; the record is kept.
    """
    left = limit_record.read(home)
    if left is None:
        return False
    held = claim(list(left))
    try:
        troubles = put_back(home, driver)
    finally:
        for each in held:
            each.close()
    if troubles:
        raise not_restored(home, troubles)
    return True


def not_restored(home: Path, troubles: Sequence[str]) -> OuvrageError:
    """Cards that stand under a limit that was meant for a while."""
    return OuvrageError(
        "tune/not-restored", "A POWER LIMIT IS NOT BACK AS IT WAS",
        where=tuple(troubles),
        hint=f"{RESTORE} ({home / limit_record.NAME} remembers it; for a card that is no longer in "
        "this machine, delete that file)",
        exit_code=1,
    )  # fmt: skip


def refusal(error: Refused, what: str) -> OuvrageError:
    """The driver's refusal as one of ours."""
    hint = _HINTS.get(error.kind, "nvidia-smi -q -d POWER shows what the driver says")
    return OuvrageError(f"tune/{error.kind}", f"{what}: {error}", hint=hint)


class Trial:
    """One command under several limits. ``words`` gives a run's options for a limit in watts."""

    def __init__(
        self,
        home: Path,
        driver: Driver,
        cards: Sequence[CardLimits],
        words: Callable[[int], list[str]],
        environment: dict[str, str],
    ) -> None:
        self._home = home
        self._driver = driver
        self._cards = list(cards)
        self._words = words
        self._environment = environment
        self._tried = Tried()

    def run(self, limits: Sequence[int], repeat: int) -> Tried:
        """Every limit ``repeat`` times, down and up in turn, so that a drift touches all alike."""
        tried = self._tried
        held = claim([card.uuid for card in self._cards])
        self._look_again()
        self._may_set()
        with _holding_signals() as usual:
            self._record()
            guard = Guard(self._home, self._driver, held)
            try:
                self._each(limits, repeat, usual, guard)
            except OuvrageError as error:
                tried.trouble = error
            finally:
                tried.not_back = guard.finish()
        return tried

    def _each(
        self, limits: Sequence[int], repeat: int, usual: set[signal.Signals], guard: Guard
    ) -> None:
        if not guard.ready():
            raise OuvrageError("tune/guard", "the process that puts limits back does not start")
        turns = [limits[:: -1 if turn % 2 == 0 else 1] for turn in range(repeat)]
        for number, limit in enumerate((limit for turn in turns for limit in turn), 1):
            say_text(f"[{number}/{repeat * len(limits)}] {limit // 1000} W", err=True)
            self._set(limit)
            self._meter(limit // 1000, usual, guard)
            if self._tried.signal:
                return

    def _look_again(self) -> None:
        """What the limits are now that nobody else of ours can change them: these go back."""
        mine = {card.uuid for card in self._cards}
        try:
            self._cards = [card for card in self._driver.look() if card.uuid in mine]
        except Refused as error:
            raise refusal(error, "the power limits cannot be read") from error

    def _record(self) -> None:
        try:
            limit_record.write(self._home, {c.uuid: c.limit_mw or 0 for c in self._cards})
        except OSError as error:
            raise OuvrageError(
                "tune/record", f"{self._home} cannot be written: {error.strerror}",
                hint="the limits to go back to are kept there; OUVRAGE_HOME names another place",
            ) from error  # fmt: skip

    def _may_set(self) -> None:
        """Set each card's limit to what it is: a driver that refuses does so before anything runs."""
        for card in self._cards:
            try:
                self._driver.set(card.uuid, card.limit_mw or 0)
            except Refused as error:
                what = f"the power limit of GPU {card.index} ({card.name}) cannot be set"
                raise refusal(error, what) from error

    def _set(self, limit: int) -> None:
        for card in self._cards:
            try:
                self._driver.set(card.uuid, limit)
            except Refused as error:
                what = f"GPU {card.index} ({card.name}) did not take {limit // 1000} W"
                raise refusal(error, what) from error

    def _meter(self, watts: int, usual: set[signal.Signals], guard: Guard) -> None:
        """One run. Its output goes to standard error: standard output is for the answer."""
        with tempfile.TemporaryDirectory() as place:
            report = Path(place, "report.json")
            child = subprocess.Popen(
                command("ouvrage.__main__", "run", "--report", str(report), *self._words(watts)),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=self._environment,
                preexec_fn=child_end.with_its_parent(usual),
            )
            code = self._await(child, guard)
            if report.exists():
                self._tried.runs.append(json.loads(report.read_bytes())["run"])
        if code and not self._tried.signal:
            raise OuvrageError(
                "tune/command", f"the command failed under {watts} W, with exit code {code}",
                hint="a run that fails says nothing about a limit; ouvrage runs lists it",
                exit_code=1,
            )  # fmt: skip

    def _await(self, child: subprocess.Popen[bytes], guard: Guard) -> int:
        """Its exit code. Told to end: the limits go back first, then the command is waited for."""
        while child.poll() is None:
            found = signal.sigtimedwait(WATCHED, 1)
            if found is None or found.si_signo == signal.SIGCHLD:
                continue
            self._tried.signal = self._tried.signal or found.si_signo
            if found.si_code != _SI_KERNEL:  # else the terminal has told the run as well
                child.send_signal(found.si_signo)
            guard.finish()
        return child.returncode


@contextmanager
def _holding_signals() -> Iterator[set[signal.Signals]]:
    """Signals wait until they are asked for; the mask that stood before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    usual = {signal.Signals(number) for number in before}
    try:
        yield usual
    finally:
        while signal.sigtimedwait(WATCHED, 0):
            pass  # what came after the limits went back has been heeded
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
