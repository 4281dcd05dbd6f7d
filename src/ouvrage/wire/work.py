"""What people and programs say to the server about machines, offers, leases and jobs, and what it answers.

The runner's messages are in ``wire/runner``. Moments are microseconds UTC, lengths of time microseconds, sizes as their names say. What only
the owner may know (on which node something stands) is null for others.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from ouvrage.model.machines import FENCE_HOLDERS
from ouvrage.model.selling import AUDIENCES
from ouvrage.model.work import ISOLATIONS
from ouvrage.wire.api import PLAIN, Amount, Answer, Currency, Name, Slug, Words
from ouvrage.wire.runner import Message

Count = Annotated[int, Field(ge=0, le=4096)]
Mebibytes = Annotated[int, Field(ge=0, le=2**40)]
Duration = Annotated[int, Field(ge=0, lt=2**53)]
Text = Annotated[str, Field(max_length=20_000, pattern=r"^[^\x00]*$")]
PlanText = Annotated[str, Field(max_length=200_000)]
FactLine = Annotated[str, Field(min_length=2, max_length=200_000, pattern=r"^[^\x00]*$")]
Device = Annotated[str, Field(min_length=1, max_length=200, pattern=PLAIN)]


def _one_of(words: tuple[str, ...]) -> Any:
    return Field(pattern=f"^({'|'.join(words)})$")


class NewEnrolment(Message):
    """``POST /v1/nodes/enrolments``: a one-time token for a runner. ``node``: an enrolled one that lost its key."""

    node: Name | None = None


class EnrolmentMade(Answer):
    """A one-time token, shown this once."""

    SHOWN_ONCE: ClassVar[tuple[str, ...]] = ("secret",)

    enrolment: str
    secret: str | None
    expires_us: int


class NewFence(Message):
    """``POST /v1/nodes/{node}/fence``: hold a node, or one of its devices, back from new work, or let go."""

    held: bool
    device: Device | None = None
    holder: Annotated[str, _one_of(FENCE_HOLDERS)] = "operator"
    why: Words = ""


class NewListing(Message):
    """``POST /v1/nodes/{node}/listing``: whether a node takes new leases."""

    listed: bool
    why: Words = ""


class FenceTold(Answer):
    """Who holds something back, and why."""

    device: str | None
    holder: str
    why: str
    since_us: int


class DeviceTold(Answer):
    """A GPU of a node and who has it; ``fenced`` by itself or with its node; ``health`` one of the states of health."""

    device: str
    slot: int
    model: str
    memory_mib: int
    fenced: bool
    lease: str | None
    attempt: str | None
    health: str = "unknown"


class NodeTold(Answer):
    """A node as it stands. ``state`` is ``here`` or ``away``; ``empty_us`` when all on it has ended at the latest.

    ``empty_us`` is null where something on it has no end, and ``now`` where nothing is on it. ``health`` is its state of health, the worst
    of it and its GPUs; ``health_why`` what is held against it; ``health_since_us`` null where nothing ever looked.
    """

    node: str
    code: str
    name: str
    state: str
    seen_us: int | None
    listed: bool
    fences: list[FenceTold]
    cpus: int
    cpus_free: int
    memory_mib: int
    memory_free_mib: int
    disk_mib: int
    disk_free_mib: int
    devices: list[DeviceTold]
    isolations: list[str]
    cgroup: str
    version: str
    enrolled_us: int
    attempts: int
    leases: int
    empty_us: int | None
    empty: bool
    health: str = "unknown"
    health_why: str = ""
    health_since_us: int | None = None


class NewProofs(Message):
    """``POST /v1/nodes/{node}/proofs``: certificates and audits of a node, each a fact as one line of a backup."""

    facts: Annotated[list[FactLine], Field(min_length=1, max_length=50)]


class ProofsTaken(Answer):
    """What became of each fact: ``accepted``, ``exists`` or ``conflict``; and what still speaks against offers to strangers."""

    results: list[str]
    against: list[str]


class Need(Answer):
    """Something that needs a person: ``node-away``, ``fence``, ``job`` or ``balance``, its name, why, since when, and the page where it is seen to."""

    what: str
    name: str
    device: str | None = None
    state: str | None = None
    why: str
    since_us: int | None
    page: str


class CapacityTold(Answer):
    """What there is to sell now: of nodes, cores and GPUs how many stand, and how many of them can be had or are leased."""

    nodes: int
    nodes_here: int
    cores: int
    cores_free: int
    gpus: int
    gpus_leased: int


class MoneyTodayTold(Answer):
    """Money of one currency today (UTC): ``charged`` for time that ended today, ``running`` and not charged yet, and what the next hour costs.

    Of all tenants together for those on the owner's side, of their own organisation for others.
    """

    currency: str
    charged: str
    running: str
    burn_per_hour: str


class TodayTold(Answer):
    """What needs a person, what is under way, the money of today, and (for those who keep the machines running) what there is to sell.

    ``money`` is null for those who may not see it.
    """

    as_of_us: int
    needs: list[Need]
    running: int
    waiting: int
    capacity: CapacityTold | None
    money: list[MoneyTodayTold] | None


class ForSaleTold(Answer):
    """An offer for everybody; ``room``: it could be had at this moment."""

    name: str
    gpu: str | None
    gpus: int
    cpus: int
    memory_mib: int
    disk_mib: int
    plan: str
    rate: str | None
    currency: str
    interruptible: bool
    room: bool


class StatusTold(Answer):
    """What anybody may know, where the owner wants that: what is for sale to everybody, and how much of it can be had now."""

    as_of_us: int
    offers: list[ForSaleTold]
    free: int


class NewOffer(Message):
    """``POST /v1/offers``. ``plan`` names a shipped rate plan; ``plan_text`` is a plan's file as ``offer create`` sends it.

    ``anyway`` with ``why`` puts an offer to strangers up for sale though its machines are not proven for them.
    """

    name: Slug
    gpu: Name | None = None
    gpus: Count = 0
    cpus: Annotated[int, Field(ge=1, le=4096)]
    memory_mib: Annotated[int, Field(ge=16, le=2**40)]
    disk_mib: Mebibytes = 1024
    plan: Name = "per-second"
    plan_text: PlanText | None = None
    rate: Amount | None = None
    currency: Currency | None = None
    interruptible: bool = False
    least_us: Duration | None = None
    most_us: Duration | None = None
    notice_us: Duration = 30_000_000
    sla: Text | None = None
    audience: Annotated[str, _one_of(AUDIENCES)] = "tenants"
    channel: Slug = "own-tenants"
    nodes: Annotated[list[Name], Field(max_length=1000, default_factory=list)]
    isolation: Annotated[str, _one_of(ISOLATIONS)] = "sandbox"
    document: Text | None = None
    anyway: bool = False
    why: Words = ""


class Why(Message):
    """Why something is ended; for the trail and for whoever it concerns."""

    why: Words = ""


class OfferTold(Answer):
    """An offer; for sale while ``withdrawn_us`` is null. ``plan_text`` is its frozen plan."""

    offer: str
    code: str
    name: str
    gpu: str | None
    gpus: int
    cpus: int
    memory_mib: int
    disk_mib: int
    plan: str
    plan_text: str
    rate: str | None
    currency: str
    interruptible: bool
    least_us: int | None
    most_us: int | None
    notice_us: int
    sla: str | None
    audience: str
    channel: str
    nodes: list[str] | None
    isolation: str
    document: str | None
    created_us: int
    withdrawn_us: int | None


class NewLease(Message):
    """``POST /v1/leases``: take an offer for a project. ``for_us`` null: until released (where the offer has no end)."""

    offer: Name
    project: Name
    for_us: Annotated[int, Field(gt=0, lt=2**53)] | None = None


class Release(Message):
    """``POST /v1/leases/{lease}/release``. ``stop``: also where work still runs in it."""

    stop: bool = False
    why: Words = ""


class LeaseTold(Answer):
    """A lease; ``state`` is ``open``, ``ending`` or ``ended``. ``working_us``: while at least one attempt ran in it."""

    lease: str
    code: str
    offer: str
    offer_name: str
    org: str
    project: str
    project_name: str
    kind: str
    attempt: str | None
    state: str
    gpus: int
    devices: list[str]
    cpus: int
    memory_mib: int
    disk_mib: int
    node: str | None
    from_us: int
    until_us: int | None
    ended_us: int | None
    end: str | None
    billable_us: int | None
    working_us: int


class NewJob(Message):
    """``POST /v1/jobs``: to an ``offer`` (a lease for each attempt) or into a ``lease`` of one's own; exactly one of them.

    ``spec`` is what stands in a job file.
    """

    project: Name
    offer: Name | None = None
    lease: Name | None = None
    spec: dict[str, Any]


class UsedTold(Answer):
    """What an attempt used; null where the kernel did not tell."""

    memory_bytes: int | None
    cpu_us: int | None
    processes: int | None
    disk_bytes: int | None
    sent_bytes: int | None
    received_bytes: int | None
    oom_kills: int | None


class AttemptTold(Answer):
    """One execution of a job. ``units`` of ``unit`` so far, ``unit_us`` for one; null where nothing was said yet.

    ``idle_us``: for how long its GPUs have stood idle now; ``warned_us`` is when its tenant was told so.
    """

    attempt: str
    number: int
    state: str
    lease: str
    node: str | None
    ordered_us: int
    began_us: int | None
    ended_us: int | None
    wall_us: int | None
    exit_code: int | None
    signal: int | None
    outcome: str | None
    cause: str | None
    reason: str | None
    isolation: str | None
    stop: str | None
    unit: str | None
    units: int | None
    unit_us: int | None
    idle_us: int | None
    warned_us: int | None
    used: UsedTold | None
    scrub: str | None
    log_bytes: int
    log_cut: bool


class JobTold(Answer):
    """A job as it stands; ``reason`` says why it ended, or why its last attempt did. ``last`` is its latest attempt."""

    job: str
    code: str
    name: str
    org: str
    project: str
    project_name: str
    user: str
    offer: str | None
    offer_name: str | None
    lease: str | None
    state: str
    end_code: str | None
    reason: str | None
    submitted_us: int
    ended_us: int | None
    attempts: int
    last: AttemptTold | None


class TimesTold(Answer):
    """Half of all took no longer than ``p50_us``, 95 of 100 no longer than ``p95_us``; each known to an eighth of itself."""

    p50_us: int | None
    p95_us: int | None


class ServiceTold(Answer):
    """A service: below ``address`` it is asked with a token of its organisation's.

    ``counted`` of its answers told their tokens, ``tokens_in`` and ``tokens_out`` are theirs; ``pieces`` came in streams that told none.
    ``first`` is the time to the first byte, ``token`` to the first text of a stream, ``took`` to the end. ``cost_per_unit`` is null
    where the job is not billed by itself.
    """

    address: str
    port: int
    well: bool | None
    restarts: int
    requests: int
    failed: int
    counted: int
    tokens_in: int | None
    tokens_out: int | None
    pieces: int
    bytes_in: int
    bytes_out: int
    first: TimesTold
    token: TimesTold
    took: TimesTold
    unit: str
    units: int
    cost_per_unit: str | None
    currency: str | None


class JobShown(JobTold):
    """A job with what was asked for and all of its attempts; ``service`` where it is one."""

    service: ServiceTold | None
    spec: dict[str, Any]
    all_attempts: list[AttemptTold]
    files: list[FileTold]


class FileTold(Answer):
    """A file of a job: ``in`` as it was sent, or ``out`` as its last attempt left it."""

    direction: str
    name: str
    bytes: int
    sha256: str
    at_us: int


class Explained(Answer):
    """Why a job stands as it does, as data. ``owner`` is null for everybody else."""

    job: str
    state: str
    code: str
    words: str
    detail: dict[str, Any]
    owner: dict[str, Any] | None


JobShown.model_rebuild()
