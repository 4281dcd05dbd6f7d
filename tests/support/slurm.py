"""A Slurm of the tests' own on the loopback: controller, accounting with MariaDB, some nodes with made-up GPUs.

Everything is Debian's own build and really runs; made up are the GPUs (device files that nobody opens) and that one
machine is several nodes. It stands in a directory of its own, on ports that were free, with a munge key and socket of its
own, and ends with the tests whatever becomes of them (``slurm_keeper``). Jobs run as users that every Debian has.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

_NEEDED = (
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "slurmdbd",
    "slurmctld",
    "slurmd",
    "slurmrestd",
    "sacct",
    "unshare",
)
_DEADLINE = 60
CLUSTER = "lab"
GPU = "h100"
USERS = ("games", "news", "mail", "backup")
"""Users that Debian's base system has; nobody logs in as one."""
PLACES_USER = "proxy"
"""As whom a platform asks for places."""


def missing() -> str | None:
    """Why no Slurm can be started here, or None."""
    absent = [name for name in _NEEDED if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed: tools/debian.sh test"
    return None if os.geteuid() == 0 else "only root can run jobs as other users"


class Slurm:
    """A running cluster. ``run`` is a command of Slurm's as an administrator gives it."""

    def __init__(
        self, directory: Path, keeper: subprocess.Popen[bytes], ports: Mapping[str, int]
    ) -> None:
        self.directory = directory
        self.ports = ports
        self._keeper = keeper

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach this cluster and no other."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SACCT", "SINFO"))
        }
        return {**kept, "SLURM_CONF": str(self.directory / "etc" / "slurm.conf")}

    def run(self, *words: str, text: str | None = None, check: bool = True) -> str:
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, env=self.environment, check=False, timeout=_DEADLINE,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{words}: {done.stderr}{done.stdout}"
        return done.stdout

    def submit(self, script: str, *options: str, user: str = USERS[0]) -> str:
        """The number of a job that runs a shell script as a user."""
        words = [
            "sbatch",
            "--parsable",
            f"--uid={user}",
            "--chdir=/tmp",
            "--output=/dev/null",
            *options,
        ]
        return self.run(*words, text=f"#!/bin/sh\n{script}\n").strip().partition(";")[0]

    def wait(self, query: Sequence[str], wanted: str, seconds: float = _DEADLINE) -> str:
        """Ask until the answer is this one."""
        end = time.monotonic() + seconds
        while (found := self.run(*query, check=False).strip()) != wanted:
            assert time.monotonic() < end, f"{query}: {found!r}, not {wanted!r}\n{self.log()}"
            time.sleep(0.1)
        return found

    def has_run(self, job: str) -> None:
        """Wait until a job has run for a second, by the clock of the queue."""
        query = ("squeue", "-h", "-j", job, "-t", "RUNNING", "-o", "%M")
        _until(self, lambda: self.run(*query).strip() not in ("", "0:00"))

    def settled(self) -> None:
        """Wait until accounting has all that the controller knows."""
        _until(self, lambda: "DBD Agent queue size: 0\n" in self.run("sdiag"))

    def finished(self, jobs: Sequence[str], seconds: float = _DEADLINE) -> None:
        """Wait until accounting (which lags) has the end of every one of some jobs."""
        query = ("sacct", "-X", "-n", "-P", "-o", "State", "-S", "now-1hours", "-j", ",".join(jobs))
        end = time.monotonic() + seconds
        going = {"PENDING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED"}
        while True:
            states = [line.split()[0] for line in self.run(*query).splitlines() if line.strip()]
            if len(states) >= len(jobs) and not going & set(states):
                return
            assert time.monotonic() < end, f"{states}\n{self.log()}"
            time.sleep(0.2)

    def asked_of_accounting(self, query: str) -> list[str]:
        """The rows of the accounting's database, their columns parted by tabs."""
        place = f"--socket={self.directory}/db/s.sock"
        words = (
            "mariadb",
            "--no-defaults",
            place,
            "--user=root",
            "--batch",
            "--skip-column-names",
            "slurm_acct_db",
        )
        return self.run(*words, text=query).splitlines()

    def start(self, daemon: str) -> None:
        """Start ``slurmctld``, ``slurmdbd``, ``mariadbd``, ``munged`` or ``slurmd.n1``."""
        self._tell(f"start {daemon}")

    def kill(self, daemon: str, signal: str = "SIGKILL") -> None:
        self._tell(f"kill {daemon} {signal}")

    def rest(self) -> str:
        """The address of slurmrestd, which is started when it is first asked for."""
        if not _listens(self.ports["slurmrestd"]):
            self.start("slurmrestd")
            _until(self, lambda: _listens(self.ports["slurmrestd"]))
        return f"http://127.0.0.1:{self.ports['slurmrestd']}"

    def log(self) -> str:
        """The last lines of every daemon."""
        found = []
        for path in sorted((self.directory / "log").iterdir()):
            lines = path.read_text(errors="replace").splitlines()[-6:]
            found.append("\n".join([f"== {path.name}", *lines]))
        return "\n".join(found)

    def end(self) -> None:
        """End every daemon and every job, and remove what they wrote."""
        assert self._keeper.stdin and self._keeper.stdout
        self._keeper.stdin.close()
        self._keeper.wait(_DEADLINE)
        self._keeper.stdout.close()

    def _tell(self, line: str) -> None:
        assert self._keeper.stdin and self._keeper.stdout
        self._keeper.stdin.write(f"{line}\n".encode())
        self._keeper.stdin.flush()
        answer = self._keeper.stdout.readline().decode()
        assert answer.startswith("ok"), f"{line}: {answer}\n{self.log()}"


_RUNNING = pytest.StashKey[Slurm]()


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Slurm:
    """One cluster for the session, also where several ``conftest.py`` import this fixture.

    Tests leave its nodes as they found them, and look at jobs of their own alone.
    """
    why = missing()
    if why is not None:
        pytest.skip(f"no Slurm: {why}")
    running = request.config.stash.get(_RUNNING, None)
    if running is None:
        stack = ExitStack()
        request.config.add_cleanup(stack.close)
        running = request.config.stash[_RUNNING] = stack.enter_context(slurm())
    return running


def _free_ports(names: Sequence[str]) -> dict[str, int]:
    with ExitStack() as stack:
        found: dict[str, int] = {}
        for name in names:
            taken = stack.enter_context(socket.socket())
            taken.bind(("127.0.0.1", 0))
            found[name] = taken.getsockname()[1]
        return found


@contextmanager
def slurm(nodes: int = 4, gpus: int = 4) -> Iterator[Slurm]:
    """A cluster of ``nodes`` (``n1``, …) with ``gpus`` each; all of it is gone at the end."""
    directory = Path(tempfile.mkdtemp(prefix="ouvrage-slurm-"))
    directory.chmod(0o755)
    names = [f"n{number}" for number in range(1, nodes + 1)]
    ports = _free_ports(["slurmctld", "slurmdbd", "slurmrestd", "mariadbd", *names])
    _files(directory, names, gpus, ports)
    made = Slurm(directory, _keeper(directory), ports)
    try:
        _bring_up(made, names)
        yield made
    finally:
        made.end()


def _keeper(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", sys.executable, "-I",
         str(Path(__file__).with_name("slurm_keeper.py")), str(directory)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
    )  # fmt: skip


@dataclass(kw_only=True)
class Prepared:
    """A place for a Slurm whose files somebody else writes below ``root``: ports that were free, and device files of GPUs."""

    directory: Path
    ports: Mapping[str, int]
    nodes: Sequence[str]

    @property
    def root(self) -> Path:
        """What stands before every path of its files."""
        return self.directory / "root"

    def devices(self, node: str) -> str:
        """What stands before the number of a GPU's device file on a node."""
        return f"{self.directory}/dev/{node}/nvidia"

    @contextmanager
    def running(self) -> Iterator[Slurm]:
        """The cluster of the files that were written: everything is started from them alone, and gone at the end."""
        _around(self)
        made = Slurm(self.directory, _keeper(self.directory), self.ports)
        try:
            _start_accounting(made, self.root)
            yield made
        finally:
            made.end()
            _remove_groups(self.nodes)


@contextmanager
def prepared(nodes: Sequence[str], gpus: int = 2) -> Iterator[Prepared]:
    """A place for a cluster of these nodes. It is removed, with the cluster that ran there."""
    directory = Path(tempfile.mkdtemp(prefix="ouvrage-slurm-"))
    directory.chmod(0o755)
    names = ["slurmctld", "slurmdbd", "slurmrestd", "mariadbd", "slurmd", *nodes]
    found = Prepared(directory=directory, ports=_free_ports(names), nodes=nodes)
    _gpu_files(directory, nodes, gpus)
    try:
        yield found
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _around(place: Prepared) -> None:
    """What a written cluster needs around it here: a database, and who starts its daemons."""
    d, root = place.directory, place.root
    (d / "etc").symlink_to(root / "etc/slurm")
    (d / "log").symlink_to(root / "var/log/slurm")
    _database(d)
    munge = f"{root}/run/munge"
    daemons = _daemons(d, place.nodes, place.ports)
    daemons["munged"] = [*_as("munge"), "munged", "--foreground", f"--key-file={root}/etc/munge/munge.key",
                         f"--socket={munge}/munge.socket.2", f"--pid-file={munge}/pid", f"--log-file={munge}/log",
                         f"--seed-file={munge}/seed", "--num-threads=4"]  # fmt: skip
    (d / "daemons.json").write_text(json.dumps(daemons))


def _start_accounting(made: Slurm, root: Path) -> None:
    made.start("munged")
    made.start("mariadbd")
    at = made.directory / "db" / "s.sock"
    _until(made, at.exists)
    sql = (root / "etc/slurm/ouvrage/accounting.sql").read_text()
    made.run("mariadb", "--no-defaults", f"--socket={at}", "--user=root", text=sql)
    made.start("slurmdbd")
    _until(made, lambda: _listens(made.ports["slurmdbd"]))


def _remove_groups(nodes: Sequence[str]) -> None:
    """The kernel's empty groups that a node's daemon leaves behind when it is killed."""
    for node in nodes:
        for top in Path("/sys/fs/cgroup").glob(f"**/*slurm*{node}*"):
            for group, _, _ in os.walk(top, topdown=False):
                with suppress(OSError):
                    os.rmdir(group)


def _bring_up(made: Slurm, names: Sequence[str]) -> None:
    made.start("munged")
    made.start("mariadbd")
    socket_of_mariadb = made.directory / "db" / "s.sock"
    _until(made, socket_of_mariadb.exists)
    made.run("mariadb", "--no-defaults", f"--socket={socket_of_mariadb}", "--user=root", text=(
        "create database slurm_acct_db; create user 'slurm'@'127.0.0.1' identified by 'pw';"
        "grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1'"
    ))  # fmt: skip
    made.start("slurmdbd")
    _until(made, lambda: _listens(made.ports["slurmdbd"]))
    made.run("sacctmgr", "-i", "-Q", text=_ACCOUNTS)
    made.start("slurmctld")
    _until(made, lambda: _listens(made.ports["slurmctld"]))
    for name in names:
        made.start(f"slurmd.{name}")
    made.run(*_LIMIT)
    made.wait(["sinfo", "-h", "-o", "%D %T"], f"{len(names)} idle")


def _until(made: Slurm, holds: object) -> None:
    assert callable(holds)
    end = time.monotonic() + _DEADLINE
    while not holds():
        assert time.monotonic() < end, made.log()
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


_ACCOUNTS = f"""add cluster {CLUSTER}
add account physics description=Physics organization=physics
add account vision parent=physics description=Vision organization=physics
add account speech parent=physics description=Speech organization=physics
add account guests description=Guests organization=outside
add user {USERS[0]} account=vision
add user {USERS[1]} account=speech
add user {USERS[2]} account=guests
add qos low set priority=1 flags=DenyOnLimit
"""
_LIMIT = (
    "sacctmgr",
    "-i",
    "-Q",
    "modify",
    "account",
    "where",
    "name=guests",
    "set",
    "GrpTRES=gres/gpu=2",
)
"""What accounting can only be told once the controller has told it that there are GPUs."""


def _files(directory: Path, names: Sequence[str], gpus: int, ports: Mapping[str, int]) -> None:
    for name in (
        "etc",
        "log",
        "run",
        "state",
        "munge",
        *(f"spool.{name}" for name in names),
    ):
        (directory / name).mkdir(mode=0o755)
    (directory / "munge" / "key").write_bytes(secrets.token_bytes(1024))
    (directory / "munge" / "key").chmod(0o400)
    for path, user in (("log", "slurm"), ("run", "slurm"), ("state", "slurm"), ("munge", "munge"),
                       ("munge/key", "munge")):  # fmt: skip
        shutil.chown(directory / path, user)
    key = directory / "state" / "jwt_hs256.key"
    key.write_bytes(secrets.token_bytes(32))
    key.chmod(0o600)
    shutil.chown(key, "slurm")
    dbd = directory / "etc" / "slurmdbd.conf"
    dbd.write_text(_SLURMDBD.format(d=directory, **ports))
    dbd.chmod(0o600)
    shutil.chown(dbd, "slurm")
    here = socket.gethostname()
    node = (
        "NodeName={name} NodeHostname={here} NodeAddr=127.0.0.1 Port={port} CPUs=16 Boards=1 SocketsPerBoard=2 "
        "CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 Gres=gpu:{gpu}:{gpus} State=UNKNOWN\n"
    )
    lines = "".join(
        node.format(name=name, here=here, port=ports[name], gpu=GPU, gpus=gpus) for name in names
    )
    (directory / "etc" / "slurm.conf").write_text(
        _SLURM.format(
            d=directory, here=here, cluster=CLUSTER, gpu=GPU, nodes=lines, last=names[-1], **ports
        )
    )
    _gpu_files(directory, names, gpus)
    (directory / "etc" / "gres.conf").write_text("".join(
        f"NodeName={name} Name=gpu Type={GPU} File={directory}/dev/{name}/nvidia[0-{gpus - 1}]\n" for name in names
    ))  # fmt: skip
    (directory / "etc" / "cgroup.conf").write_text("CgroupAutomount=no\n")
    _database(directory)
    (directory / "daemons.json").write_text(json.dumps(_daemons(directory, names, ports)))


def _gpu_files(directory: Path, names: Sequence[str], gpus: int) -> None:
    """Device files that nobody opens: there is no driver behind them."""
    for number, name in enumerate(names):
        (directory / "dev" / name).mkdir(parents=True)
        for gpu in range(gpus):
            made = directory / "dev" / name / f"nvidia{gpu}"
            os.mknod(made, 0o20666, os.makedev(195, number * gpus + gpu))


def _database(directory: Path) -> None:
    (directory / "db").mkdir(mode=0o755)
    shutil.chown(directory / "db", "mysql")
    _run_as_root("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={directory}/db",
                 "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip


def _as(user: str) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def _run_as_root(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_DEADLINE)
    assert done.returncode == 0, done.stderr


def _daemons(
    directory: Path, names: Sequence[str], ports: Mapping[str, int]
) -> dict[str, list[str]]:
    d = directory
    return {
        "munged": [*_as("munge"), "munged", "--foreground",
                   f"--key-file={d}/munge/key", f"--socket={d}/munge/sock", f"--pid-file={d}/munge/pid",
                   f"--log-file={d}/munge/log", f"--seed-file={d}/munge/seed", "--num-threads=4"],
        "mariadbd": ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={d}/db", f"--socket={d}/db/s.sock",
                     f"--port={ports['mariadbd']}", "--bind-address=127.0.0.1", f"--pid-file={d}/db/pid",
                     "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2",
                     "--innodb-lock-wait-timeout=900"],
        "slurmdbd": ["slurmdbd", "-D"],
        "slurmctld": ["slurmctld", "-D"],
        # It refuses to be root, and knows who asks by a token alone.
        "slurmrestd": ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", "SLURM_JWT=daemon",
                       "slurmrestd", "-a", "rest_auth/jwt", f"127.0.0.1:{ports['slurmrestd']}"],
        **{f"slurmd.{name}": ["slurmd", "-D", "-N", name] for name in names},
    }  # fmt: skip


_SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={d}/munge/sock
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={d}/state/jwt_hs256.key
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={slurmdbd}
SlurmUser=slurm
LogFile={d}/log/slurmdbd.log
PidFile={d}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={mariadbd}
StorageUser=slurm
StoragePass=pw
StorageLoc=slurm_acct_db
"""
_SLURM = """\
ClusterName={cluster}
SlurmctldHost={here}(127.0.0.1)
SlurmctldPort={slurmctld}
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={d}/munge/sock,cred_expire=5
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={d}/state/jwt_hs256.key
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool.%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd.%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd.%n.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
ReturnToService=1
SlurmdTimeout=60
KillWait=2
MinJobAge=300
MaxArraySize=20001
MaxJobCount=50000
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=5,bf_continue,sched_min_interval=1000,sched_interval=5,batch_sched_delay=0,default_queue_depth=1000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
DefMemPerCPU=256
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={slurmdbd}
AccountingStoragePass={d}/munge/sock
AccountingStorageTRES=gres/gpu,gres/gpu:{gpu}
AccountingStorageEnforce=associations,limits,qos
PriorityType=priority/multifactor
PriorityWeightFairshare=10000
PreemptType=preempt/qos
PreemptMode=REQUEUE
JobRequeue=1
PrologFlags=Alloc
{nodes}PartitionName=gpu Nodes=ALL Default=YES MaxTime=1-0 State=UP TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu=10.0"
PartitionName=debug Nodes={last} MaxTime=1:00:00 State=UP TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu=2.0"
"""
