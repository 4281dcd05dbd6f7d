"""What Slurm's words mean here: why a job of its waits, and as what an attempt ends whose place it took back.

Decides the translation, as tables; Slurm's own word is kept beside ours for the owner, so that nobody has to trust it. A word that is not in a
table is told as it is. States and reasons are those of https://slurm.schedmd.com/squeue.html and /job_reason_codes.html (22.05 and later).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ouvrage.placement.why import Why

WAITS: Mapping[str, tuple[str, str]] = {
    "None": ("slurm/new", "has just been handed to Slurm, which has not looked at it yet"),
    "Resources": ("slurm/resources", "is next, and waits until enough of what it needs comes free"),
    "Priority": ("slurm/priority", "waits behind jobs that Slurm ranks before it"),
    "Dependency": ("slurm/dependency", "waits for another job"),
    "JobHeldUser": ("slurm/held", "is held at Slurm"),
    "JobHeldAdmin": ("slurm/held", "is held at Slurm by the owner"),
    "BeginTime": ("slurm/begin", "may not begin yet"),
    "ReqNodeNotAvail": ("slurm/nodes", "waits for nodes that are down, drained or reserved now"),
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": (
        "slurm/nodes", "waits for nodes that are down, drained or reserved now"),
    "Reservation": ("slurm/reservation", "waits for its reservation to begin"),
    "PartitionDown": ("slurm/partition", "waits, since its partition starts no jobs now"),
    "PartitionInactive": ("slurm/partition", "waits, since its partition starts no jobs now"),
    "PartitionTimeLimit": ("slurm/too-long", "asks for more time than its partition allows"),
    "PartitionNodeLimit": ("slurm/too-large", "asks for more than its partition has"),
    "PartitionConfig": ("slurm/too-large", "asks for more than its partition has"),
    "BadConstraints": ("slurm/too-large", "asks for what no node of its partition has"),
    "Licenses": ("slurm/licenses", "waits for a licence"),
    "Cleaning": ("slurm/cleaning", "is being cleaned up at Slurm"),
    "Prolog": ("slurm/prolog", "has a place that is being prepared"),
    "launch failed requeued held": ("slurm/launch", "could not be launched, and is held at Slurm"),
}  # fmt: skip
"""By Slurm's reason: our code, and words that a tenant may read."""
_LIMITED = ("Assoc", "QOS", "Max")
_LIMIT = ("slurm/limit", "waits, since its project's limits at Slurm are used up")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """How an attempt is ended whose place Slurm took back: ``stop`` as in ``wire.runner.Stop``, and whether the node is to be doubted."""

    stop: str
    words: str
    node_failed: bool = False


TAKEN: Mapping[str, TakenBack] = {
    "CANCELLED": TakenBack(stop="cancelled", words="it was cancelled at Slurm"),
    "PREEMPTED": TakenBack(stop="preempted", words="Slurm gave its place to work that ranks before it"),
    "REVOKED": TakenBack(stop="preempted", words="Slurm took its place back"),
    "TIMEOUT": TakenBack(stop="time limit", words="Slurm's time limit was over"),
    "DEADLINE": TakenBack(stop="time limit", words="its deadline at Slurm was over"),
    "NODE_FAIL": TakenBack(stop="hardware", words="Slurm gave its node up", node_failed=True),
    "BOOT_FAIL": TakenBack(stop="hardware", words="its node did not boot", node_failed=True),
    "OUT_OF_MEMORY": TakenBack(stop="hardware", words="Slurm's own part on the node was killed for memory"),
}  # fmt: skip
"""By Slurm's state, how an attempt ends that was still running. ``COMPLETED`` and ``FAILED`` are the batch job's own end, after the attempt's."""
DONE = ("COMPLETED", "FAILED", *TAKEN)
"""The states in which Slurm is done with a job."""
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
HAS_PLACE = ("RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT", "STOPPED", "SIGNALING")


def why_it_waits(job: str, reason: str) -> Why:
    """Slurm's reason as ours."""
    code, words = WAITS.get(reason) or _by_kind(reason)
    return Why(job=job, code=code, detail={"words": words}, owner={"slurm": reason})


def _by_kind(reason: str) -> tuple[str, str]:
    if reason.startswith(_LIMITED):
        return _LIMIT
    if reason.startswith("ReqNodeNotAvail"):
        return WAITS["ReqNodeNotAvail"]
    return "slurm/other", f"waits at Slurm, which says: {reason}"
