"""The text of every file that a Slurm is configured by: slurm.conf, gres.conf, cgroup.conf, slurmdbd.conf.

Decides each setting. All of it follows from the owner's settings and the members, so that the same fleet gives the same bytes and a
host can be held to them; one slurm.conf and one gres.conf serve every host. Forms are those of https://slurm.schedmd.com/, of the
22.05 that is the oldest release held to: nothing here needs a newer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ouvrage.base.errors import OuvrageError
from ouvrage.fleet.layout import Layout
from ouvrage.fleet.shape import groups, types_of
from ouvrage.model.bringup import FleetMember, FleetSettings

MARK = "# Written by ouvrage fleet. A change by hand is told by `ouvrage fleet status` and undone by `ouvrage fleet upgrade`."
"""The first line of every file of ours that may have comments: a file without it is somebody else's."""
OURS = (
    *("nodename", "partitionname", "clustername", "slurmctldhost", "slurmuser", "authtype"),
    *("authalttypes", "authaltparameters", "credtype", "accountingstoragetype", "jobsubmitplugins"),
    *("accountingstoragehost", "accountingstorageport", "accountingstoragepass", "slurmctldport"),
    *("slurmdport", "include", "plugindir", "grestypes", "statesavelocation", "slurmdspooldir"),
    *("prolog", "epilog", "healthcheckprogram", "downnodes", "nodeset", "accountingstorageenforce"),
)
"""Settings that an owner's own line may not take the place of: other files, or the account of work, depend on them."""
INTERRUPTIBLE = "interruptible"
"""The quality of service whose jobs give way to all others."""


def check_setting(name: str, value: str) -> None:
    """Raise ``OuvrageError`` ``fleet/setting`` where an owner's own line cannot stand in slurm.conf."""
    hint = None
    if not name.isascii() or not name.isalnum() or name[0].isdigit():
        hint = "Name=value, as in SlurmdTimeout=120"
    elif name.lower() in OURS:
        hint = "this one follows from the fleet's settings and its nodes; ouvrage fleet init has options for it"
    elif not value or any(c in value for c in '\n\r#"\\') or not value.isprintable():
        hint = "a value of one line, without quotes, '#' and backslashes"
    if hint is not None:
        raise OuvrageError("fleet/setting", f"{name[:40]}={value[:60]!r} cannot be set", hint=hint)


def slurm_conf(settings: FleetSettings, members: Sequence[FleetMember]) -> str:
    """The ``slurm.conf`` of a fleet, the same on every host."""
    values = {**_common(settings), **_counted(members)}
    names = {name.lower(): name for name in values}
    for each in settings.settings:
        values.pop(names.get(each.name.lower(), ""), None)
        values[each.name] = each.value
    lines = [MARK, *(f"{name}={value}" for name, value in values.items())]
    return "\n".join([*lines, *map(_node, members), *_partitions(members), ""])


def _auth(layout: Layout, *more: str) -> str:
    """``AuthInfo`` where there is anything to say in it."""
    words = [*([f"socket={layout.munge_socket}"] if layout.own else []), *more]
    return ",".join(words)


def _common(settings: FleetSettings) -> dict[str, str]:
    """What does not depend on the members.

    A put-back job waits for as long as a job's credential lives (``cred_expire``, 120 s unless it is set).
    """
    at = Layout(settings.root)
    address = f"({settings.address})" if settings.address else ""
    accounting = {"AccountingStoragePass": at.munge_socket} if at.own else {}
    return {
        "ClusterName": settings.cluster,
        "SlurmctldHost": f"{settings.controller}{address}",
        "SlurmctldPort": str(settings.controller_port),
        "SlurmdPort": str(settings.node_port),
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "AuthInfo": _auth(at, "cred_expire=30"),
        "CredType": "cred/munge",
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": f"jwt_key={at.jwt_key}",
        "StateSaveLocation": at.state,
        "SlurmdSpoolDir": at.spool,
        "SlurmctldPidFile": f"{at.run}/slurmctld.pid",
        "SlurmdPidFile": f"{at.run}/slurmd.%n.pid" if at.own else f"{at.run}/slurmd.pid",
        "SlurmctldLogFile": f"{at.log}/slurmctld.log",
        "SlurmdLogFile": f"{at.log}/slurmd.%n.log" if at.own else f"{at.log}/slurmd.log",
        "MpiDefault": "none",
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/cgroup,task/affinity",
        "JobAcctGatherType": "jobacct_gather/cgroup",
        "JobAcctGatherFrequency": "task=15",
        "ReturnToService": "1",
        "MaxArraySize": "20001",
        "MaxJobCount": "100000",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "batch_sched_delay=0,default_queue_depth=1000,bf_continue",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "GresTypes": "gpu",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": settings.address or settings.controller,
        "AccountingStoragePort": str(settings.accounting_port),
        **accounting,
        "AccountingStorageEnforce": "associations,limits,qos",
        "PriorityType": "priority/multifactor",
        "PriorityWeightFairshare": "10000",
        "PriorityWeightQOS": "10000",
        "PriorityWeightAge": "1000",
        "PreemptType": "preempt/qos",
        "PreemptMode": "REQUEUE",
        "JobRequeue": "1",
        "JobSubmitPlugins": "lua",
        "PrologFlags": "Alloc,Contain",
        "Prolog": f"{at.hooks}/prolog",
        "Epilog": f"{at.hooks}/epilog",
        "HealthCheckProgram": f"{at.hooks}/health",
        "HealthCheckInterval": "300",
        "HealthCheckNodeState": "ANY,CYCLE",
    }


def _counted(members: Sequence[FleetMember]) -> dict[str, str]:
    """What follows from the members: which GPUs are accounted for, and the memory of a job that asks for none."""
    tres = ["gres/gpu", *(f"gres/gpu:{name}" for name in sorted(types_of(members)))]
    found = {"AccountingStorageTRES": ",".join(tres)}
    if members:
        share = min(each.memory_mib // (each.sockets * each.cores) for each in members)
        found["DefMemPerCPU"] = str(max(1, share))
    return found


def cpus(member: FleetMember) -> int:
    """What Slurm counts of a member: every thread."""
    return member.sockets * member.cores * member.threads


def _node(member: FleetMember) -> str:
    gres = ",".join(f"gpu:{name}:{len(found)}" for name, found in groups(member))
    words = {
        "NodeName": member.node,
        "NodeHostname": member.host,
        "NodeAddr": member.address,
        **({"Port": str(member.port)} if member.port is not None else {}),
        "CPUs": str(cpus(member)),
        "Boards": "1",
        "SocketsPerBoard": str(member.sockets),
        "CoresPerSocket": str(member.cores),
        "ThreadsPerCore": str(member.threads),
        "RealMemory": str(member.memory_mib),
        **({"Gres": gres} if gres else {}),
        "Feature": member.build,
        "State": "UNKNOWN",
    }
    return " ".join(f"{name}={value}" for name, value in words.items())


def _partitions(members: Sequence[FleetMember]) -> Iterator[str]:
    """One with every node, and where there are several types of GPUs one for each."""
    if not members:
        return
    yield "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
    types = types_of(members)
    for name in sorted(types) if len(types) > 1 else ():
        nodes = ",".join(m.node for m in members if any(gpu.type == name for gpu in m.gpus))
        yield f"PartitionName={name} Nodes={nodes} MaxTime=INFINITE State=UP"


def gres_conf(members: Sequence[FleetMember]) -> str:
    """The ``gres.conf``: each GPU's device file by node, with its NVLinks where any are told."""
    return "\n".join([MARK, *(line for member in members for line in _devices(member)), ""])


def _devices(member: FleetMember) -> Iterator[str]:
    for name, found in groups(member):
        head = f"NodeName={member.node} Name=gpu Type={name} File={member.devices}"
        if any(gpu.links for gpu in found):
            yield from (f"{head}{gpu.number} Links={gpu.links}" for gpu in found)
        else:
            numbers = [gpu.number for gpu in found]
            whole = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1))
            listed = f"[{numbers[0]}-{numbers[-1]}]" if whole else _listed(numbers)
            yield f"{head}{listed}"


def _listed(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"[{','.join(map(str, numbers))}]"


CGROUP_CONF = f"""{MARK}
ConstrainCores=yes
ConstrainDevices=yes
ConstrainRAMSpace=yes
"""
"""A job has the cores, GPUs and memory that it was given, and can't touch others; the same for cgroups of both versions."""


def slurmdbd_conf(settings: FleetSettings, password: str) -> str:
    """The ``slurmdbd.conf`` of the accounting daemon, which stands beside the controller."""
    at = Layout(settings.root)
    where = _auth(at)
    values = {
        "AuthType": "auth/munge",
        **({"AuthInfo": where} if where else {}),
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": f"jwt_key={at.jwt_key}",
        "DbdHost": settings.controller,
        **({"DbdAddr": settings.address} if settings.address else {}),
        "DbdPort": str(settings.accounting_port),
        "SlurmUser": "slurm",
        "LogFile": f"{at.log}/slurmdbd.log",
        "PidFile": f"{at.run}/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": settings.database,
        "StoragePort": str(settings.database_port),
        "StorageUser": "slurm",
        "StoragePass": password,
        "StorageLoc": "slurm_acct_db",
    }
    return "\n".join([MARK, *(f"{name}={value}" for name, value in values.items()), ""])


def accounting_sql(password: str) -> str:
    """What the database server is told once: a database, and a user for it with a password of hexadecimal digits."""
    users = ("'slurm'@'localhost'", "'slurm'@'127.0.0.1'")
    made = [
        f"CREATE USER IF NOT EXISTS {user}; ALTER USER {user} IDENTIFIED BY '{password}';"
        for user in users
    ]
    given = [f"GRANT ALL ON slurm_acct_db.* TO {user};" for user in users]
    return "\n".join(["CREATE DATABASE IF NOT EXISTS slurm_acct_db;", *made, *given, ""])
