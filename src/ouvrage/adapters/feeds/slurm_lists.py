"""What a Slurm cluster shows of itself: its clock, configuration, nodes, partitions, accounts, classes and reservations.

Decides how each listing becomes statements, and what of it is noticed: a node that says it has fewer GPUs than it is configured to
have, a job list that hides other people's jobs. ``scontrol --oneliner`` writes ``Name=value`` with blanks in values, so that a value ends where
the next name begins, and a name that comes again in a free text counts once. Fields are those of https://slurm.schedmd.com/scontrol.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ouvrage.adapters.catalogues.rows import Row, printable
from ouvrage.adapters.feeds.moments import moment_of, wall_moments
from ouvrage.adapters.feeds.sacct import form_of, lines_of
from ouvrage.adapters.feeds.sacct_use import gpus_in, limit_of, tres_of
from ouvrage.adapters.feeds.told import Told, key_part, name_part
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.nodelists import unfolded
from ouvrage.base.time import MINUTE, SECOND
from ouvrage.ledger.kinds import payload_of
from ouvrage.ledger.stated import HASHED, Stated
from ouvrage.model.fleet import (
    ClusterAccount,
    ClusterNode,
    ClusterPartition,
    ClusterQos,
    ClusterReservation,
    ClusterTotal,
)

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/:]*)=")
_GRES = re.compile(r"gpu(?::(?P<kind>[^:,(]+))?(?::(?P<count>[0-9]{1,5}))?(?:\([^)]*\))?(?:,|$)")
_UNSET = ("", "(null)", "n/a", "none", "unknown")
_LIES = re.compile(r"gres/gpu count (?:reported )?(?:lower|too low|changed)|INVALID_REG", re.I)
ROOT = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """When a cluster was read by its own clock, and how many minutes back it was asked."""

    at_us: int
    minutes: int


def clock_of(text: str) -> Clock | None:
    """``1796083364 +0100 129600``; None for anything else."""
    found = re.fullmatch(r"([0-9]{9,11}) [+-][0-9]{4} ([0-9]{1,8})", text.strip())
    if found is None:
        return None
    return Clock(at_us=int(found[1]) * SECOND, minutes=int(found[2]))


def pairs_of(line: str) -> dict[str, str]:
    """The names and values of a line that ``scontrol --oneliner`` printed; the first of a name counts."""
    found: dict[str, str] = {}
    at = list(_PAIR.finditer(line))
    for number, match in enumerate(at):
        ends = at[number + 1].start() if number + 1 < len(at) else len(line)
        found.setdefault(match[1], line[match.end() : ends].strip())
    return found


def config_of(text: str) -> dict[str, str]:
    """``scontrol show config`` by name."""
    lines = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in lines}


def is_current(text: str) -> bool:
    """Whether ``sdiag`` says that everything the controller knows had reached accounting."""
    found = re.search(r"^DBD Agent queue size: *([0-9]+)$", text, re.M)
    return found is not None and not int(found[1])


def _lines(text: str, told: Told, key: str) -> Iterator[tuple[Row, dict[str, str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("No "):
            continue
        told.rows += 1
        pairs = pairs_of(printable(line))
        row = told.row(pairs, str(number))
        if not pairs.get(key):
            row.fault(key, line[:60], f"a line that begins with {key}=")
            told.faults += row.faults
            continue
        yield row, pairs


def read_nodes(text: str, told: Told, cluster: str, since_us: int) -> list[Stated]:
    """The nodes of ``scontrol show nodes``, as they stood ``since_us``."""
    found: list[Stated] = []
    for row, pairs in _lines(text, told, "NodeName"):
        gpus, kind = gres_of(pairs.get("Gres", ""))
        name = pairs["NodeName"]
        registered = gpus_in(tres_of(pairs.get("CfgTRES", "")))
        if _LIES.search(pairs.get("Reason", "") + pairs.get("State", "")):
            told.note(f"{name} is configured with {gpus} GPUs and says otherwise: {_said(pairs)}")
        elif registered not in (None, gpus) and "gres/gpu" in pairs.get("CfgTRES", ""):
            told.note(f"{name} has {gpus} GPUs by Gres and {registered} by CfgTRES; Gres counts")
        cpus, memory = pairs.get("CPUTot", ""), pairs.get("RealMemory", "")
        for what, value in (("CPUTot", cpus), ("RealMemory", memory)):
            if value and not value.isdigit():
                row.fault(what, value, "a whole number")
        told.faults += row.faults
        if not row.faults:
            value = ClusterNode(
                cluster=cluster, node=name, listed=True, gpus=gpus, gpu=kind, cpus=int(cpus) if cpus else None,
                memory_mib=int(memory) if memory else None, partitions=tuple(sorted(_split(pairs.get("Partitions", "")))),
            )  # fmt: skip
            found.append(
                listed(
                    f"node-listed/{key_part(cluster)}/{key_part(name)}", value, cluster, since_us
                )
            )
    return found


def _said(pairs: Mapping[str, str]) -> str:
    return pairs.get("Reason", "").partition(" [")[0][:120] or pairs.get("State", "")


def gres_of(text: str) -> tuple[int, str | None]:
    """``gpu:h100:4(S:0-1)`` as how many GPUs, and of which kind where there is one."""
    found = list(_GRES.finditer(text))
    kinds = {each["kind"] for each in found if each["kind"] and not each["kind"].isdigit()}
    total = sum(
        int(each["count"] or (each["kind"] if (each["kind"] or "").isdigit() else 1))
        for each in found
    )
    return total, kinds.pop() if len(kinds) == 1 else None


def _split(text: str) -> list[str]:
    return [each for each in text.split(",") if each.lower() not in _UNSET]


def listed(natural: str, value: object, cluster: str, since_us: int) -> Stated:
    """A statement of what a cluster lists, which holds until another takes its place."""
    return Stated(
        natural=f"{natural}/{since_us}", value=value, subject=f"cluster:{name_part(cluster)}", valid_from=since_us, valid_to=None,
        grade=Grade.METERED,
    )  # fmt: skip


def read_partitions(text: str, told: Told, cluster: str, since_us: int) -> list[Stated]:
    """The partitions of ``scontrol show partitions``."""
    found: list[Stated] = []
    for row, pairs in _lines(text, told, "PartitionName"):
        nodes = pairs.get("Nodes", "")
        nodes = "" if nodes.lower() in _UNSET else nodes
        try:
            unfolded(nodes)
        except ValueError:
            row.fault("Nodes", nodes, "a list of nodes: node[001-004,007]")
            told.faults += row.faults
            continue
        tier, name = pairs.get("PriorityTier", ""), pairs["PartitionName"]
        value = ClusterPartition(
            cluster=cluster, partition=name, nodes=nodes, weights=_set(pairs.get("TRESBillingWeights")) or "",
            default=pairs.get("Default") == "YES", state=pairs.get("State", ""), tier=int(tier) if tier.isdigit() else None,
            limit_us=limit_of(pairs.get("MaxTime")), qos=_set(pairs.get("QoS")),
        )  # fmt: skip
        found.append(
            listed(f"partition/{key_part(cluster)}/{key_part(name)}", value, cluster, since_us)
        )
    return found


def _set(text: str | None) -> str | None:
    return None if text is None or text.lower() in _UNSET else text


def _rows(text: str, told: Told, key: str) -> Iterator[Row]:
    """The rows of a ``--parsable2`` listing by the names of their columns, in small letters."""
    form = form_of(text, None, told.file, (key,))
    names = [name.lower() for name in form.names]
    for line, row in lines_of(text, form, told):
        cells = [printable(cell) for cell in form.cells(row)]
        yield told.row(dict(zip(names, cells, strict=True)), str(line))


def read_accounts(
    text: str, told: Told, cluster: str, since_us: int, organisations: Mapping[str, str]
) -> list[Stated]:
    """The accounts of ``sacctmgr show association``; those of other clusters are left out."""
    parents: dict[str, Row] = {}
    users: dict[str, set[str]] = {}
    for row in _rows(text, told, "Account"):
        if row.cells.get("cluster", cluster) not in (cluster, ""):
            continue
        name, user = row.cells.get("account", ""), row.cells.get("user", "")
        users.setdefault(name, set()).update({user} - {""})
        if not user:
            parents[name] = row
    found: list[Stated] = []
    for name, row in sorted(parents.items()):
        parent = _cell(row, "parentname", "par name")
        value = ClusterAccount(
            cluster=cluster, account=name, parent=parent or None, organisation=organisations.get(name) or None,
            limits=row.cells.get("grptres", ""), users=tuple(sorted(users.get(name, ()))),
        )  # fmt: skip
        found.append(
            listed(f"account/{key_part(cluster)}/{key_part(name)}", value, cluster, since_us)
        )
    return [each for each in found if each.value.account != ROOT]


def _cell(row: Row, *names: str) -> str:
    return next((row.cells[name] for name in names if name in row.cells), "")


def organisations_of(text: str, told: Told) -> dict[str, str]:
    """``sacctmgr show account``: the organisation of each."""
    return {
        row.cells.get("account", ""): _cell(row, "org", "organization")
        for row in _rows(text, told, "Account")
    }


def read_qos(text: str, told: Told, cluster: str, since_us: int) -> list[Stated]:
    """The classes of ``sacctmgr show qos``."""
    found: list[Stated] = []
    for row in _rows(text, told, "Name"):
        name, priority = row.cells["name"], row.cells.get("priority", "")
        limits = (("GrpTRES", "grptres"), ("MaxTRESPU", "maxtrespu"), ("MaxWall", "maxwall"))
        value = ClusterQos(
            cluster=cluster, qos=name, priority=int(priority) if priority.isdigit() else None,
            preempts=row.cells.get("preempt", ""), preempt_mode=row.cells.get("preemptmode", ""),
            factor=row.cells.get("usagefactor", "") or "1",
            limits=" ".join(f"{word}={row.cells[key]}" for word, key in limits if row.cells.get(key)),
        )  # fmt: skip
        found.append(listed(f"qos/{key_part(cluster)}/{key_part(name)}", value, cluster, since_us))
    return found


def read_reservations(text: str, told: Told, cluster: str, zone: str) -> list[Stated]:
    """The reservations of ``sacctmgr show reservation``; one that was changed is a piece before and one after."""
    found: list[Stated] = []
    for row in _rows(text, told, "Name"):
        starts, ends = (
            _when(row, zone, *names) for names in (("start", "timestart"), ("end", "timeend"))
        )
        nodes = _cell(row, "nodename", "nodenames", "nodelist", "nodes")
        try:
            unfolded(nodes)
        except ValueError:
            row.fault("NodeNames", nodes, "a list of nodes: node[001-004,007]")
        if starts is None or (ends is not None and ends < starts):
            row.fault("Start", _cell(row, "start", "timestart"), "a moment before the end")
        told.faults += row.faults
        if row.faults or starts is None:
            continue
        value = ClusterReservation(
            cluster=cluster, name=row.cells["name"], nodes=nodes, flags=row.cells.get("flags", "")
        )
        told_of = sha256_hex(canonical([payload_of(value), starts]))[:HASHED]
        found.append(Stated(
            natural=f"reservation/{key_part(cluster)}/{key_part(value.name)}/{told_of}", value=value,
            subject=f"cluster:{name_part(cluster)}", valid_from=starts, valid_to=ends, grade=Grade.METERED,
        ))  # fmt: skip
    return found


def _when(row: Row, zone: str, *names: str) -> int | None:
    text = _cell(row, *names)
    known = moment_of(text)
    if known is not None:
        return known
    moments = wall_moments(text, "", zone)
    return moments[0] if len(moments) == 1 else None


def read_totals(text: str, told: Told, cluster: str, zone: str) -> list[Stated]:
    """What the cluster registered of itself: the events without a node in ``sacctmgr show event``.

    Their faults are those of the events' own reading, so ``told`` should be one that is thrown away.
    """
    found: list[Stated] = []
    for row in _rows(text, told, "NodeName"):
        starts, gpus = _when(row, zone, "timestart"), gpus_in(tres_of(row.cells.get("tres", "")))
        if (
            row.cells.get("nodename")
            or starts is None
            or gpus is None
            or row.cells.get("cluster", cluster) != cluster
        ):
            continue
        value = ClusterTotal(
            cluster=cluster, gpus=gpus, nodes=_cell(row, "cluster nodes", "clusternodes")
        )
        found.append(Stated(
            natural=f"cluster-total/{key_part(cluster)}/{starts}", value=value, subject=f"cluster:{name_part(cluster)}",
            valid_from=starts, valid_to=_when(row, zone, "timeend"), grade=Grade.METERED,
        ))  # fmt: skip
    return found


def hides_jobs(config: Mapping[str, str]) -> bool:
    """Whether people see their own jobs alone, so that a list may hold a part of them."""
    return "jobs" in re.split("[, ]+", config.get("PrivateData", "").lower())


LAG = 10 * MINUTE
"""How long after the fact accounting may still lack something, where nothing says that it is current."""
SETTLES = 10 * SECOND
"""And where the controller's queue to it is empty: it writes of jobs that began every five seconds; two rounds of that."""


def gone(
    known: Iterable[ClusterNode], now_listed: Iterable[str], cluster: str, at_us: int
) -> list[Stated]:
    """Statements that nodes are listed no more: known, and missing from a list that was read whole."""
    present = set(now_listed)
    return [
        listed(
            f"node-listed/{key_part(cluster)}/{key_part(each.node)}",
            ClusterNode(cluster=cluster, node=each.node, listed=False, gpus=0, gpu=None, cpus=None, memory_mib=None, partitions=()),
            cluster, at_us,
        )
        for each in known
        if each.listed and each.node not in present
    ]  # fmt: skip
