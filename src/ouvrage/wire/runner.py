"""What a node's runner and the server say to each other.

The runner calls out and the server answers: it enrols once, then asks for orders and reports what it saw. Every report carries
its place in the runner's own sequence, so that sent twice it counts once. Orders are repeated until their effect is reported.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(min_length=32, max_length=32, pattern=r"^[0-9a-f]{32}$")]
Moment = Annotated[int, Field(ge=0, lt=2**62)]


class Message(BaseModel):
    """Strict in both directions: an unknown field is refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Device(Message):
    """One GPU of the node."""

    device: str
    slot: int
    model: str
    memory_mib: int


class Inventory(Message):
    """What the node is: usable cores by number, memory, scratch space, GPUs, isolations that work."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    cpus: list[int]
    memory_mib: int
    disk_mib: int
    devices: list[Device]
    isolations: list[str]
    cgroup: Literal["v1", "v2", "none"]
    boot: str
    version: str


class Enrol(Message):
    """``POST /v1/runner/enrol``, with the one-time token in it."""

    token: str
    inventory: Inventory


class Enrolled(Message):
    """The node's id and its own key, shown once; ``Authorization: Bearer KEY`` from here on."""

    node: Id
    key: str


class File(Message):
    """A file that goes in or comes out: its path inside the sandbox and the name it is asked or sent by."""

    path: str
    name: str


class Pair(Message):
    """A name and a value."""

    name: str
    value: str


class Start(Message):
    """Execute an attempt. ``job`` names whose scratch, checkpoint and volumes it shares with earlier attempts."""

    order: Literal["start"] = "start"
    attempt: Id
    job: Id
    project: Id
    lease: Id
    label: str
    isolation: Literal["sandbox", "podman", "none"]
    command: list[str]
    image: str | None
    workdir: str
    environment: list[Pair]
    secrets: list[Pair]
    inputs: list[File]
    outputs: list[File]
    volumes: list[File]
    checkpoint: str | None
    devices: list[str]
    cpus: list[int]
    memory_mib: int
    disk_mib: int
    pids: int
    network: Literal["none", "egress"]
    egress: list[str]
    port: int | None
    health: str | None = None
    unit: str | None
    unit_regex: str | None
    price: str | None
    time_limit_us: int | None
    grace_us: int
    log_limit_bytes: int
    not_before: Moment


class Stop(Message):
    """End an attempt: SIGTERM, then after ``grace_us`` SIGKILL. ``why`` becomes its outcome."""

    order: Literal["stop"] = "stop"
    attempt: Id
    why: Literal["cancelled", "preempted", "time limit", "idle", "budget", "unhealthy", "hardware"]
    reason: str
    grace_us: int


class Forget(Message):
    """The server has all that there is about an attempt: its leftovers may go."""

    order: Literal["forget"] = "forget"
    attempt: Id


Order = Annotated[Start | Stop | Forget, Field(discriminator="order")]


class Standing(Message):
    """An attempt that the runner knows, and how far it is."""

    attempt: Id
    state: Literal["starting", "running", "stopping", "scrubbing", "ended"]


class Ask(Message):
    """``POST /v1/runner/orders``: waits up to ``wait_s`` until there is something new to do.

    ``known`` are all attempts on the node; the server orders what is missing and stops what should not be there.
    """

    inventory: Inventory | None
    known: list[Standing]
    wait_s: Annotated[float, Field(ge=0, le=30)]


class Orders(Message):
    """What is to be done now; each order may come again until it was reported done."""

    orders: list[Order]
    at: Moment


class Used(Message):
    """What an attempt used so far or at its end; None where it could not be read."""

    memory_bytes: int | None
    cpu_us: int | None
    processes: int | None
    disk_bytes: int | None
    sent_bytes: int | None
    received_bytes: int | None
    oom_kills: int | None


class Began(Message):
    """The command is running, since ``at`` by the node's clock."""

    event: Literal["began"] = "began"
    sequence: int
    attempt: Id
    at: Moment


class Progress(Message):
    """Units seen so far, and whether the GPUs were idle; the newest counts.

    ``well``: whether a service answers its health check; None where there is none, or it was not asked yet. ``ill_us``:
    for how long it has not, since it last did or began.
    """

    event: Literal["progress"] = "progress"
    sequence: int
    attempt: Id
    at: Moment
    unit: str | None
    units: int
    unit_us: int | None
    idle_us: int
    used: Used
    well: bool | None = None
    ill_us: int = 0


class Held(Message):
    """A place that Slurm gave for an attempt is there (``HERE``), or Slurm sent it a signal, by name. It is a hint to look at Slurm."""

    event: Literal["held"] = "held"
    sequence: int
    attempt: Id
    at: Moment
    word: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,16}$")]


class Ended(Message):
    """The attempt is over and scrubbed; times by the node's clock, ``wall_us`` by its monotonic one."""

    event: Literal["ended"] = "ended"
    sequence: int
    attempt: Id
    began: Moment | None
    ended: Moment
    wall_us: int
    exit_code: int | None
    signal: int | None
    outcome: str
    cause: str
    reason: str
    isolation: str
    used: Used
    scrub: Literal["clean", "failed", "none"]
    scrub_detail: str


Event = Annotated[Began | Progress | Held | Ended, Field(discriminator="event")]


class Report(Message):
    """``POST /v1/runner/events``: events in order of ``sequence``, from 1 without gaps since enrolment."""

    events: Annotated[list[Event], Field(max_length=1000)]


class Received(Message):
    """The last sequence that the server has; whatever is up to it may be forgotten."""

    sequence: int


class LogPlace(Message):
    """Answer to ``PUT /v1/runner/attempts/ID/log?offset=N`` (raw bytes): where the next bytes go.

    An offset beyond what is there is refused with 409 and the place; bytes before it are taken to be a repetition.
    """

    offset: int
    full: bool
