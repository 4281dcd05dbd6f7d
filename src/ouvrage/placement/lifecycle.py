"""What becomes of a job after an attempt: done, tried again (where not, when), or ended, and whether it is paid for.

Decides from the outcomes of its attempts alone. A failure of the machine's is not the tenant's: it costs nothing, uses
up none of the retries, and the job is never tried again on a node whose hardware failed it. What the tenant's own
program, limits or wishes ended is paid for and tried again only where that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.base.time import MINUTE, SECOND
from ouvrage.model.work import UNBILLED

PATIENCE = 5
"""So often an attempt may be lost or never start, in a row and for no reason of the tenant's, before the job fails."""
FIRST_PAUSE_US = 10 * SECOND
LONGEST_PAUSE_US = 10 * MINUTE
_FAILED = ("failed", "out of memory", "time limit", "unhealthy")
_RESTARTED = {
    "never": (),
    "on-failure": ("failed", "out of memory", "unhealthy"),
    "always": ("done", "failed", "out of memory", "unhealthy"),
}
"""After which ends a service is started again, by its own policy."""
_PLATFORM = ("platform", "operator")
_UNLUCKY = ("lost", "never started")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """An attempt that is over: where, ``outcome`` and ``cause`` from ``model/work``, and for how long it ran."""

    node: str
    outcome: str
    cause: str
    ran_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The job's next ``state`` (``waiting`` or one of ``model/work.ENDED``), and why.

    ``billed`` speaks of the attempt that has just ended; ``not_on`` are all nodes to avoid, ``not_before_us`` when to
    try again at the earliest. ``code`` is stable, ``words`` are for a person.
    """

    state: str
    code: str
    words: str
    billed: bool
    not_on: tuple[str, ...] = ()
    not_before_us: int = 0


def after(
    past: Sequence[Past],
    *,
    retries: int,
    ended_us: int,
    cancelled: bool = False,
    restart: str = "never",
) -> Next:
    """What a job becomes when the last of ``past`` (oldest first) ended at ``ended_us``.

    ``retries`` and ``restart`` are the job's own; ``cancelled`` says that somebody asked for its end meanwhile.
    """
    last = past[-1]
    state, code, words = _restarted(last, restart, cancelled) or _fate(past, retries, cancelled)
    again = state == "waiting"
    return Next(
        state=state,
        code=code,
        words=words,
        billed=billed(last),
        not_on=avoided(past),
        not_before_us=ended_us + _pause(past) if again else 0,
    )


def _restarted(last: Past, restart: str, cancelled: bool) -> tuple[str, str, str] | None:
    """A service that goes on after its own end; None where that is not for its policy to say."""
    own = last.outcome == "done" or not (_by_hardware(last) or _is_unlucky(last))
    if cancelled or not own or last.outcome not in _RESTARTED[restart]:
        return None
    return "waiting", "job/restart", f"it ended ({last.outcome}) and is started again, as it asks"


def billed(attempt: Past) -> bool:
    """Whether the time of an attempt is charged: not where it never got anywhere, nor where the fault is ours."""
    ours = attempt.outcome in _FAILED and attempt.cause in ("hardware", *_PLATFORM)
    return attempt.outcome not in UNBILLED and not ours


def avoided(past: Sequence[Past]) -> tuple[str, ...]:
    """The nodes whose hardware failed a job."""
    return tuple(sorted({p.node for p in past if _by_hardware(p)}))


def _by_hardware(attempt: Past) -> bool:
    ended_ill = attempt.outcome in _FAILED or attempt.outcome in UNBILLED
    return attempt.outcome == "hardware" or (ended_ill and attempt.cause == "hardware")


def _fate(past: Sequence[Past], retries: int, cancelled: bool) -> tuple[str, str, str]:
    last = past[-1]
    if last.outcome == "done":
        return "done", "job/done", "it ended by itself with success"
    if cancelled or last.outcome == "cancelled":
        return "cancelled", "job/cancelled", "it was cancelled"
    if last.outcome in ("idle", "budget"):
        words = {
            "idle": "its GPUs stood idle for as long as was agreed",
            "budget": "its budget was used up",
        }
        return "cancelled", f"job/{last.outcome}", words[last.outcome]
    if _by_hardware(last):
        return "waiting", "job/hardware", "the machine failed it: it is tried again on another one"
    if last.outcome == "preempted":
        return "waiting", "job/preempted", "it made room for work that ranks before it"
    return _unlucky(past) if _is_unlucky(last) else _own_fault(past, retries)


def _is_unlucky(attempt: Past) -> bool:
    """Ended for a reason of the platform's, or for none that anybody knows."""
    if attempt.outcome in _UNLUCKY:
        return attempt.cause not in ("program", "tenant")
    return attempt.outcome in _FAILED and attempt.cause in _PLATFORM


def _unlucky(past: Sequence[Past]) -> tuple[str, str, str]:
    """Tried again without using up a retry, but not for ever."""
    if _in_a_row(past) >= PATIENCE:
        return (
            "failed",
            "job/gave-up",
            f"{PATIENCE} attempts in a row failed for no reason of its own",
        )
    words = {"lost": "nobody saw its end", "never started": "it could not be started"}
    code = past[-1].outcome.replace(" ", "-") if past[-1].outcome in words else "platform"
    return "waiting", f"job/{code}", words.get(past[-1].outcome, "the platform failed it")


_WORDS = {
    "out of memory": ("job/out-of-memory", "it needed more memory than it asked for"),
    "unhealthy": ("job/unhealthy", "its service was not well"),
}


def _own_fault(past: Sequence[Past], retries: int) -> tuple[str, str, str]:
    last = past[-1]
    if last.outcome == "time limit":
        return "failed", "job/time-limit", "it reached its time limit"
    if last.outcome == "never started":
        return "failed", "job/never-started", "its command or image could not be started"
    code, words = _WORDS.get(last.outcome, ("job/failed", "it failed"))
    used = sum(1 for p in past if _counts(p))
    if used <= retries:
        return "waiting", code, f"{words}: retry {used} of {retries}"
    tries = f" {used} times" if used > 1 else ""
    return "failed", code, f"{words}{tries}"


def _counts(attempt: Past) -> bool:
    """Whether an attempt uses up a retry."""
    own = not _by_hardware(attempt) and not _is_unlucky(attempt)
    return attempt.outcome in ("failed", "out of memory", "unhealthy") and own


def _in_a_row(past: Sequence[Past]) -> int:
    """How many attempts at the end of ``past`` ended as the last one did, all kinds of bad luck taken as one.

    One that ran for as long as the longest pause begins a new row: what went well so long is not what fails at once.
    """
    last = past[-1]
    count = 0
    for attempt in reversed(past):
        both_unlucky = _is_unlucky(attempt) and _is_unlucky(last)
        if not both_unlucky and attempt.outcome != last.outcome:
            break
        count += 1
        if attempt.ran_us >= LONGEST_PAUSE_US:
            break
    return count


def _pause(past: Sequence[Past]) -> int:
    """None after an interruption or a broken machine; else ten seconds, doubled each time, at most ten minutes."""
    if past[-1].outcome == "preempted" or _by_hardware(past[-1]):
        return 0
    return min(LONGEST_PAUSE_US, FIRST_PAUSE_US * 2 ** min(_in_a_row(past) - 1, 20))
