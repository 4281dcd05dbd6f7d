"""Jobs of a cluster from what its accounting says of them, in whatever order and however often it said it.

Decides what a job is: a number, a submission and an attempt. Rows of one number are of one job where they name one
submission, and of one attempt where they name one beginning; two pieces of which one begins when the other ends are
one attempt that an export cut at midnight, unless it was put back into the queue there. Of several rows about one
attempt the one that says its end counts over one that saw it running, then the later end; what that row leaves out
the others fill in. Steps never add time to a job: they lie within it, or end a little after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ouvrage.base.nodelists import unfolded
from ouvrage.books.known import Known
from ouvrage.model.cluster import ClusterJobRow

Row = Known[ClusterJobRow]
GOING = frozenset(
    [
        "COMPLETING",
        "CONFIGURING",
        "EXPEDITING",
        "PENDING",
        "POWER_UP_NODE",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESIZING",
        "RESV_DEL_HOLD",
        "RUNNING",
        "SIGNALING",
        "SPECIAL_EXIT",
        "STAGE_OUT",
        "STOPPED",
        "SUSPENDED",
        "UPDATE_DB",
    ]
)
"""States in which a job has not come to its end."""
BEGUN_ANEW = frozenset(("BOOT_FAIL", "NODE_FAIL", "PREEMPTED", "REQUEUED"))
"""States after which the same job may begin again at once."""
_FILLED = (
    "shown", "submit_us", "start_us", "elapsed_us", "nodes", "node_count", "gpus", "cpus", "account",
    "user", "partition",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One time that a job was started (or waited to be), numbered from 1 within its submission.

    ``end_us`` None: not over as far as anybody says; ``until_us`` is then how far it is known. ``run_us``
    is the time it ran, without suspensions, None where unknown; ``gpus`` all of them together.
    ``said`` is the row that counts, filled in from the others; ``steps_after`` counts its steps that
    ended after it.
    """

    cluster: str
    job: str
    attempt: int
    state: str
    submit_us: int | None
    start_us: int | None
    end_us: int | None
    until_us: int | None
    run_us: int | None
    gpus: int | None
    nodes: tuple[str, ...]
    account: str | None
    user: str | None
    partition: str | None
    steps: int
    steps_after: int
    only_steps: bool
    known: Row
    keys: tuple[str, ...]

    @property
    def name(self) -> str:
        """``cluster/201844/2``: the job and the attempt."""
        return f"{self.cluster}/{self.job}/{self.attempt}"

    @property
    def gpu_us(self) -> int | None:
        """GPU time; None where either part of it is unknown. What never began took none."""
        if self.run_us == 0 or (self.start_us is None and self.state == "PENDING"):
            return 0
        return None if self.gpus is None or self.run_us is None else self.gpus * self.run_us


def attempts_of(rows: Iterable[Row]) -> tuple[Attempt, ...]:
    """Every attempt that some rows tell of, by cluster, job and beginning."""
    jobs: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        jobs.setdefault((row.value.cluster, row.value.job), []).append(row)
    return tuple(attempt for _, each in sorted(jobs.items()) for attempt in _job(each))


def _job(rows: Sequence[Row]) -> Iterator[Attempt]:
    main = [row for row in rows if row.value.step is None]
    steps = _steps([row for row in rows if row.value.step is not None])
    only_steps = not main
    if only_steps:
        main = [_standing_for_the_job(steps)]
    found: list[list[Row]] = []
    for submission in _by_submission(main):
        found += [group for _, group in _by_beginning(submission)]
    held = _held(found, steps)
    number = 0
    before: int | None = None
    for group, own in zip(found, held, strict=True):
        submit = _best(group).value.submit_us
        number = number + 1 if before == submit else 1
        before = submit
        yield _attempt(group, own, number, only_steps)


def _standing_for_the_job(steps: Sequence[Row]) -> Row:
    """Of a job whose own row is in no export: the step that lasts as long as it, else the largest."""
    order = {"extern": 2, "batch": 1}

    def weight(row: Row) -> tuple[int, int, str]:
        return (order.get(row.value.step or "", 0), row.value.gpus or 0, repr(row.value))

    return max(steps, key=weight)


def _steps(rows: Sequence[Row]) -> list[Row]:
    """One row for each step and its beginning."""
    groups: dict[tuple[str | None, int | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.value.step, row.value.start_us), []).append(row)
    return [_best(group) for group in groups.values()]


def _by_submission(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[int | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.value.submit_us, []).append(row)
    named = sorted(submit for submit in groups if submit is not None)
    if None in groups and len(named) == 1:
        groups[named[0]] += groups.pop(None)
    ordered = ([None] if None in groups else []) + named
    return [groups[submit] for submit in ordered]


def _by_beginning(rows: Sequence[Row]) -> list[tuple[int, list[Row]]]:
    """Rows by attempt. Those without a beginning go with the end they name, else with the last."""
    groups: dict[int, list[Row]] = {}
    loose = [row for row in rows if row.value.start_us is None]
    for row in rows:
        if row.value.start_us is not None:
            groups.setdefault(row.value.start_us, []).append(row)
    found = _pieces_joined(sorted(groups.items()))
    if not found:
        return [(0, loose)]
    for row in loose:
        ends = [group for _, group in found if row.value.end_us in {r.value.end_us for r in group}]
        (ends[0] if ends and row.value.end_us is not None else found[-1][1]).append(row)
    return found


def _pieces_joined(groups: Sequence[tuple[int, list[Row]]]) -> list[tuple[int, list[Row]]]:
    found: list[tuple[int, list[Row]]] = []
    for start, group in groups:
        if found:
            last = _best(found[-1][1]).value
            if last.end_us == start and last.state not in BEGUN_ANEW:
                found[-1][1].extend(group)
                continue
        found.append((start, group))
    return found


def _best(rows: Sequence[Row]) -> Row:
    return max(rows, key=_weight)


def _weight(row: Row) -> tuple[bool, int, int, str]:
    said = row.value
    until = said.end_us or (said.start_us or 0) + (said.elapsed_us or 0)
    filled = sum(getattr(said, name) is not None for name in _FILLED)
    return (said.state not in GOING or said.end_us is not None, until, filled, repr(said))


def _held(groups: Sequence[Sequence[Row]], steps: Sequence[Row]) -> list[list[Row]]:
    """The steps of each attempt: of the last one that had begun when the step did."""
    held: list[list[Row]] = [[] for _ in groups]
    starts = [min((r.value.start_us or 0) for r in group) for group in groups]
    for step in steps:
        at = step.value.start_us
        begun = [i for i, start in enumerate(starts) if at is None or start <= at]
        held[begun[-1] if begun else 0].append(step)
    return held


def _attempt(group: Sequence[Row], steps: Sequence[Row], number: int, only_steps: bool) -> Attempt:
    ordered = sorted(group, key=_weight, reverse=True)
    best = ordered[0]
    filled = {name: _first(getattr(row.value, name) for row in ordered) for name in _FILLED}
    starts = [row.value.start_us for row in group if row.value.start_us is not None]
    said = best.value
    start = min(starts, default=None)
    elapsed = said.elapsed_us if len(set(starts)) <= 1 else None
    until = said.end_us
    if until is None and said.start_us is not None and said.elapsed_us is not None:
        until = said.start_us + said.elapsed_us
    return Attempt(
        cluster=said.cluster, job=said.job, attempt=number, state=said.state,
        submit_us=filled["submit_us"], start_us=start, end_us=said.end_us, until_us=until,
        run_us=_run(start, until, elapsed),
        gpus=filled["gpus"], nodes=unfolded(filled["nodes"] or ""), account=filled["account"],
        user=filled["user"], partition=filled["partition"], steps=len(steps),
        steps_after=sum(_ends_after(step, said.end_us) for step in steps),
        only_steps=only_steps, known=best, keys=tuple(sorted(row.key for row in group if row.key)),
    )  # fmt: skip


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _run(start: int | None, until: int | None, elapsed: int | None) -> int | None:
    """How long it ran: never longer than from its beginning to its end, whatever is said to have elapsed."""
    if start is None or until is None:
        return elapsed
    return until - start if elapsed is None else min(elapsed, until - start)


def _ends_after(step: Row, end_us: int | None) -> bool:
    return end_us is not None and step.value.end_us is not None and step.value.end_us > end_us


def hours_by_state(attempts: Iterable[Attempt]) -> Mapping[str, int]:
    """GPU time by state, of what is known, in microseconds."""
    found: dict[str, int] = {}
    for each in attempts:
        if each.gpu_us is not None:
            found[each.state] = found.get(each.state, 0) + each.gpu_us
    return found


def gpus_per_node(attempt: Attempt) -> int:
    """How many GPUs it had on each of its nodes; 0 where that cannot be said."""
    if not attempt.gpus or not attempt.nodes or attempt.gpus % len(attempt.nodes):
        return 0
    if attempt.start_us is None or attempt.until_us is None or attempt.until_us <= attempt.start_us:
        return 0
    return attempt.gpus // len(attempt.nodes)
