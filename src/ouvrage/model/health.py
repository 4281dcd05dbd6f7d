"""Health of machines: what a probe saw, what a check made of it, and what was done about it.

Decides the words for verdicts, states, actions and the rungs of the ladder, and which of them are facts. A ``Seen``
is an input and not kept; a verdict, a merged event of the kernel's log, a move between states and a remedy are
facts, so that they can be judged again when the rules change. Who keeps a node from new work is
``model/machines.FenceSet``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ouvrage.base.grades import Grade
from ouvrage.model.work import Named

OK, WARN, CRITICAL, UNKNOWN = VERDICTS = ("OK", "WARN", "CRITICAL", "UNKNOWN")
"""Exit codes of a check in this order: 0, 1, 2, 3."""

BY_WEIGHT = (OK, WARN, UNKNOWN, CRITICAL)
"""The same, best first: what is known to be broken outweighs what is not known."""

STATES = (
    "healthy",
    "suspect",
    "fenced",
    "draining",
    "repairing",
    "verifying",
    "awaiting_hands",
    "rma",
    "retired",
    "maintenance",
    "unknown",
)

RUNGS = ("restart_job", "gpu_reset", "reboot", "power_cycle", "diagnostic", "replace", "person")
"""The ladder, mildest first. ``replace`` is a return to the maker or a spare; ``person`` ends it."""

ACTIONS = ("none", *RUNGS, "drain", "update_software", "look")
"""What a check asks for: a rung, or to end with running work, to update, to look at it in the next window."""

FENCES = ("none", "drain", "now")
"""What a finding keeps away: nothing, new work, new work while what runs is in doubt."""

OUTCOMES = ("done", "failed", "refused", "dry_run", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one probe saw of a node (``device`` None) or of one device, at ``at_us`` UTC.

    ``boot`` is the kernel's boot id and ``monotonic_us`` the time since that boot. ``values`` hold what was read by
    name; None is what was asked for and not told. ``fault`` says why nothing was read: the probe hung, crashed,
    was refused; then ``values`` is empty.
    """

    probe: str
    device: str | None
    at_us: int
    boot: str
    monotonic_us: int
    values: Mapping[str, int | str | None]
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check found, the same for the command line, the agent and the interface.

    ``verdict`` is one of ``VERDICTS``, ``action`` of ``ACTIONS``. ``reasons`` are sentences, the weightiest first;
    ``evidence`` the values they stand on; ``rule`` names the rule of the tables that decided; ``device`` is the part
    it is about, None for the whole machine. ``at_drain`` is an action for when the work on it has ended;
    ``fence`` is one of ``FENCES``.
    """

    check: str
    verdict: str
    device: str | None = None
    evidence: tuple[Named, ...] = ()
    action: str = "none"
    at_drain: str = "none"
    fence: str = "none"
    reasons: tuple[str, ...] = ()
    rule: str = ""
    grade: Grade = Grade.MEASURED


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A check's verdict on a node, or on one ``device`` of it, from ``since_us`` until the next one.

    ``code`` names the rule or the error's number, ``action`` what it asks for. ``boot`` and ``epoch`` say what the
    verdict knew: one of an older boot or epoch moves nothing. ``shadow``: the rule is on trial and only reports.
    ``at_drain`` is what it asks for once the work on it has ended, ``fence`` one of ``FENCES``: what came before these
    two asked for nothing later, and was fenced by its word and action alone.
    """

    KIND: ClassVar[str] = "health.verdict"
    VERSION: ClassVar[int] = 1
    LATER: ClassVar[Mapping[str, object]] = {"at_drain": "none", "fence": "none"}

    node: str
    device: str | None
    check: str
    verdict: str
    code: str
    evidence: tuple[Named, ...]
    action: str
    since_us: int
    boot: str
    epoch: int
    shadow: bool
    at_drain: str = "none"
    fence: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthEvent:
    """One fault in the kernel's log, its many lines merged: ``count`` of them within a few minutes.

    ``code`` is the number of an Xid as text, or a word (``lost``, ``sxid``). ``device`` is the PCI address of the GPU,
    None where the line names none. The two times are microseconds since ``boot``; ``line`` is the first one.
    """

    KIND: ClassVar[str] = "health.event"
    VERSION: ClassVar[int] = 1

    node: str
    device: str | None
    code: str
    count: int
    boot: str
    first_monotonic_us: int
    last_monotonic_us: int
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMove:
    """A node or one device went from one state to another: who moved it, why, and on what evidence.

    ``evidence`` are ids of facts. ``epoch`` is the fencing epoch after the move; it grows by one with each.
    """

    KIND: ClassVar[str] = "health.move"
    VERSION: ClassVar[int] = 1

    node: str
    device: str | None
    from_state: str
    to_state: str
    actor: str
    reason: str
    evidence: tuple[str, ...]
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One rung of the ladder, tried on a node or a device by ``by``. ``outcome`` is one of ``OUTCOMES``.

    ``verified`` says whether checks afterwards found it well; None where nothing was checked. ``dry_run``: it was
    only said what would have been done.
    """

    KIND: ClassVar[str] = "health.remedy"
    VERSION: ClassVar[int] = 1

    node: str
    device: str | None
    rung: str
    outcome: str
    verified: bool | None
    dry_run: bool
    by: str
    why: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a machine. ``kind`` is cpu, dimm, board, disk, nic, gpu, psu, firmware or software.

    ``slot`` is where it sits (a bus address, a socket, a name); ``serial`` None where it tells none.
    """

    kind: str
    slot: str
    maker: str | None
    model: str | None
    serial: str | None
    version: str | None
    size: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a part hangs on the PCI bus: ``slot`` its address, ``path`` the bridges from the root down to it.

    ``cpus`` are the processors near to it in the kernel's form (``0-31``), ``width_max`` its lanes. None is not told.
    """

    slot: str
    path: tuple[str, ...]
    numa: int | None
    cpus: str | None
    width_max: int | None
    speed_max: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The nearest way between two slots, in the words of ``metering.topology.WAYS``: ``NV18``, ``PIX``, ``SYS``."""

    one: str
    other: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInventory:
    """What a machine is made of, at this boot. The next one in the same node that differs is a change.

    ``packages`` are all that are installed with their versions, ``settings`` what was set by name. ``untold`` names
    each kind of part that could not be read, and why: nothing is known of it, which is not that there is none.
    """

    KIND: ClassVar[str] = "node.inventory"
    VERSION: ClassVar[int] = 1

    node: str
    boot: str
    parts: tuple[Part, ...]
    packages: tuple[Named, ...] = ()
    settings: tuple[Named, ...] = ()
    places: tuple[Place, ...] = ()
    ways: tuple[Way, ...] = ()
    untold: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One thing that a qualification tried: ``actual`` held to ``required``. ``passed`` None: it was not tried.

    ``id`` names the check, ``code`` what is wrong where it is not passed: both stay the same from version to version.
    ``how`` says how it was found out, or why it was not. ``needed``: without it the certificate is not passed.
    """

    id: str
    code: str
    actual: str | None
    operator: str
    required: str
    unit: str
    passed: bool | None
    needed: bool
    how: str
    remediation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedFigure:
    """What the books need of a proven machine: ``value`` as decimal text, None where ``how`` says why not.

    ``grade`` is the grade's word.
    """

    name: str
    value: str | None
    unit: str
    grade: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCertificate:
    """A machine proved what a class of work needs, until ``expires_us`` or until one of ``parts`` changes.

    ``parts`` are ``kind:slot:serial or version`` of all that it was proved with; ``tested_us`` is how long the load lasted,
    ``table`` the version of the needs that it was held to.
    """

    KIND: ClassVar[str] = "node.certificate"
    VERSION: ClassVar[int] = 1

    certificate: str
    node: str
    work_class: str
    passed: bool
    proofs: tuple[Proof, ...]
    figures: tuple[CertifiedFigure, ...]
    parts: tuple[str, ...]
    table: int
    tested_us: int
    expires_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One result of an audit as it was recorded: a ``CheckResult`` without its evidence."""

    check: str
    verdict: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAudited:
    """A machine's own safety against strangers was looked at; ``verdict`` is the worst of ``results``.

    ``table`` is the version of the known escapes that it was held to; ``expires_us`` when it must be looked at again.
    """

    KIND: ClassVar[str] = "node.audit"
    VERSION: ClassVar[int] = 1

    audit: str
    node: str
    verdict: str
    results: tuple[Audited, ...]
    table: int
    expires_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePatched:
    """Software of a machine went from one version to another; ``planned`` within a window or not."""

    KIND: ClassVar[str] = "node.patched"
    VERSION: ClassVar[int] = 1

    node: str
    what: str
    from_version: str | None
    to_version: str | None
    planned: bool
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairStep:
    """One step of a runbook, as a person walked it: ``outcome`` is done, skipped or failed, ``note`` what they saw.

    ``number`` counts the steps of the page from 1. ``epoch`` is that of the place's state when it was walked.
    """

    KIND: ClassVar[str] = "health.step"
    VERSION: ClassVar[int] = 1

    node: str
    device: str | None
    rung: str
    number: int
    step: str
    outcome: str
    note: str
    by: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged:
    """A person was told something about a node, one device of it, or (``node`` None) the fleet.

    ``key`` names what it is about, so that it is not said again while it lasts; ``runbook`` a page, or None.
    """

    KIND: ClassVar[str] = "health.page"
    VERSION: ClassVar[int] = 1

    key: str
    node: str | None
    device: str | None
    words: str
    runbook: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWindow:
    """A node is out of service on purpose from ``from_us`` to ``to_us`` UTC. ``cancelled``: it is not, after all.

    A later one of the same ``window`` takes its place.
    """

    KIND: ClassVar[str] = "node.maintenance"
    VERSION: ClassVar[int] = 1

    window: str
    node: str
    from_us: int
    to_us: int
    why: str
    by: str
    cancelled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBlamed:
    """Whose fault the end of an attempt was: ``hardware``, ``program`` or ``unknown``, so sure in percent.

    ``evidence`` are ids of facts about its machines from ten minutes before to five minutes after its end. ``billed``:
    whether its tenant was charged for it all the same, as the fault came to light when it was.
    """

    KIND: ClassVar[str] = "health.blame"
    VERSION: ClassVar[int] = 1

    job: str
    attempt: str
    node: str
    cause: str
    percent: int
    evidence: tuple[str, ...]
    why: str
    billed: bool


HEALTH = (
    Verdict,
    HealthEvent,
    StateMove,
    Remedy,
    RepairStep,
    Paged,
    MaintenanceWindow,
    JobBlamed,
    NodeInventory,
    NodeCertificate,
    NodeAudited,
    NodePatched,
)
